"""The parts of a debate run's summary and report, each a section with its tables."""

from tutorsim.analysis.systems.debate.sections.experiments import (
    agents_section,
    challenge_section,
    rounds_section,
    similarity_section,
)
from tutorsim.analysis.systems.debate.sections.protocols import (
    deciding_section,
    protocols_section,
    rows_section,
)
from tutorsim.analysis.systems.debate.sections.scores import (
    answerable_section,
    cost_section,
    performance_section,
    turns_section,
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
