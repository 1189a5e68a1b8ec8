"""What a run logs: one `EpisodeRecord` a line in `episodes.jsonl`, one `RunRecord` in `run.json`.

Candidates and winners are role names, never labels. `None` means that a thing was not
reached or not readable, and is never the same as zero. `read_run` and `read_episodes` are
the only way in, and the one place where an older version of the format would be upgraded.

Logs of other programs are welcome in the same shape. Fields with a default may be left out;
further fields are ignored.
"""

from tutorsim.records.base_record import SCHEMA_VERSION, lasting, to_line, uncollected
from tutorsim.records.episode import (
    Attempt,
    BallotRecord,
    BranchPoint,
    CallRecord,
    EpisodeRecord,
    Failure,
    Note,
    Proposal,
    ReviewRecord,
    TieRound,
    Turn,
    VerdictRecord,
)
from tutorsim.records.kernel_record import BaseRecord, EpisodeLine, VotedTurn, VotingTurn
from tutorsim.records.reply_endings import StopCount, odd_stops, stop_counts
from tutorsim.records.retest import (
    RETEST_FILE,
    RETEST_HEAD_FILE,
    Retest,
    RetestHead,
    RetestRecord,
    RetestReply,
    RetestVote,
    read_retest,
)
from tutorsim.records.run_folder import (
    EPISODES_FILE,
    RUN_FILE,
    TIMINGS_FILE,
    read_episodes,
    read_lines,
    read_run,
)
from tutorsim.records.run_head import (
    Branch,
    BranchedEpisode,
    Inputs,
    PanelMakeup,
    Provenance,
    RunRecord,
    StudyHead,
    StudySettings,
    SystemSettings,
    VotingSettings,
)

__all__ = [
    "EPISODES_FILE",
    "RETEST_FILE",
    "RETEST_HEAD_FILE",
    "RUN_FILE",
    "SCHEMA_VERSION",
    "TIMINGS_FILE",
    "Attempt",
    "BallotRecord",
    "BaseRecord",
    "Branch",
    "BranchPoint",
    "BranchedEpisode",
    "CallRecord",
    "EpisodeLine",
    "EpisodeRecord",
    "Failure",
    "Inputs",
    "Note",
    "PanelMakeup",
    "Proposal",
    "Provenance",
    "Retest",
    "RetestHead",
    "RetestRecord",
    "RetestReply",
    "RetestVote",
    "ReviewRecord",
    "RunRecord",
    "StopCount",
    "StudyHead",
    "StudySettings",
    "SystemSettings",
    "TieRound",
    "Turn",
    "VerdictRecord",
    "VotedTurn",
    "VotingSettings",
    "VotingTurn",
    "lasting",
    "odd_stops",
    "read_episodes",
    "read_lines",
    "read_retest",
    "read_run",
    "stop_counts",
    "to_line",
    "uncollected",
]
