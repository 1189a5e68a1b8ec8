"""What a run logs: one `EpisodeRecord` a line in `episodes.jsonl`, one `RunRecord` in `run.json`.

Candidates and winners are role names, never labels. `None` means that a thing was not
reached or not readable, and is never the same as zero. `read_run` and `read_episodes` are
the only way in, and the one place where an older version of the format would be upgraded.

Logs of other programs are welcome in the same shape. Fields with a default may be left out;
further fields are ignored.
"""

from tutorsim.records.base import SCHEMA_VERSION, to_line
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
from tutorsim.records.reading import (
    EPISODES_FILE,
    RUN_FILE,
    TIMINGS_FILE,
    read_episodes,
    read_run,
)
from tutorsim.records.retest import (
    RETEST_FILE,
    RETEST_HEAD_FILE,
    Retest,
    RetestHead,
    RetestRecord,
    RetestVote,
    read_retest,
)
from tutorsim.records.run import (
    Branch,
    BranchedEpisode,
    Provenance,
    RunRecord,
    StudySettings,
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
    "Branch",
    "BranchPoint",
    "BranchedEpisode",
    "CallRecord",
    "EpisodeRecord",
    "Failure",
    "Note",
    "Proposal",
    "Provenance",
    "Retest",
    "RetestHead",
    "RetestRecord",
    "RetestVote",
    "ReviewRecord",
    "RunRecord",
    "StudySettings",
    "TieRound",
    "Turn",
    "VerdictRecord",
    "read_episodes",
    "read_retest",
    "read_run",
    "to_line",
]
