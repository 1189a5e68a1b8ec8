"""The parts of a debate run's summary and report, each a section with its tables."""

from tutorsim.analysis.systems.debate.sections.effects_of_rounds_and_agents import (
    agents_section,
    challenge_section,
    rounds_section,
    similarity_section,
)
from tutorsim.analysis.systems.debate.sections.scores import (
    answerable_section,
    cost_section,
    performance_section,
    turns_section,
)
from tutorsim.analysis.systems.debate.sections.what_other_protocols_decide import (
    deciding_section,
    protocols_section,
    rows_section,
)

__all__ = [
    "agents_section",
    "answerable_section",
    "challenge_section",
    "cost_section",
    "deciding_section",
    "performance_section",
    "protocols_section",
    "rounds_section",
    "rows_section",
    "similarity_section",
    "turns_section",
]
