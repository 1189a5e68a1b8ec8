"""Agents who discuss a task until a vote or a consensus decides."""

from functools import cache
from typing import Any, Final

from tutorsim.catalog import BaseCatalog, read_catalog
from tutorsim.kernel.system_and_loaded_study import LogFormat, System
from tutorsim.records import VotingSettings
from tutorsim.records.debate import DebateRecord
from tutorsim.systems.debate.council_logs import read_council
from tutorsim.systems.debate.discussion_challenges_and_reply_reading import agent_names
from tutorsim.systems.debate.episode_flow_and_study import STAGES, DebateStudy, DebateStudyFile
from tutorsim.systems.debate.mallm_logs import read_mallm
from tutorsim.systems.debate.published_question_sets import debate_formats
from tutorsim.systems.debate.scripted_replies import debate_reply
from tutorsim.systems.debate.settings import FIRST_TEXTS, MAX_AGENTS

__all__ = ["DEBATE", "outcome"]


@cache
def _catalog() -> BaseCatalog:
    return read_catalog(BaseCatalog, "tutorsim.systems.debate")


def outcome(record: DebateRecord) -> dict[str, Any]:
    """What came of an episode, in short."""
    return {
        "ended_by": record.ended_by,
        "turns_taken": record.turns_taken,
        "decided": record.decided,
        "answer_of": record.answer_of,
        "letter": record.letter,
        "score": record.score,
        "votes": [turn.turn for turn in record.turns if turn.decision is not None],
    }


DEBATE: Final = System(
    name="debate",
    stages=STAGES,
    study=DebateStudyFile,
    loaded=DebateStudy,
    record=DebateRecord,
    tasks=debate_formats(),
    catalog=_catalog,
    outcome=outcome,
    first_texts=FIRST_TEXTS,
    view="tutorsim.analysis.systems.debate:VIEW",
    trace="tutorsim.analysis.systems.debate.episode_messages_and_telling_episodes:trace",
    standin=(debate_reply,),
    commands=frozenset({"compare", "retest", "show --turn"}),
    demo="debate",
    example="debate-demo",
    logs={
        "council": LogFormat(
            "a council",
            read_council,
            VotingSettings(fallback_order=(), cumulative_budget=None, label_order=None),
            asks_spelling=True,
        ),
        "mallm": LogFormat(
            "MALLM",
            read_mallm,
            VotingSettings(
                fallback_order=agent_names(MAX_AGENTS), cumulative_budget=None, label_order=None
            ),
        ),
    },
)
