"""How many calls a lesson or a duel can take: the least, and the most.

Both are found by going through every course that a lesson can take, told apart by what decides
the calls of its cycles: who wrote the last message, how long the learner has been quiet, and how
many silences came in a row.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from tutorsim.systems.group.settings import GroupSettings
from tutorsim.systems.group.tasks import N_MESSAGES, Scenario
from tutorsim.systems.group.timeline import LEARNER

__all__ = ["duel_calls", "lesson_calls"]


class _At(NamedTuple):
    """Where a lesson is when a cycle begins."""

    events: int
    """Events so far; a later stage takes a place too, so a course without stages is longest."""
    last: str
    """Author of the last message: `learner`, `agent`, `floor` for an agent that keeps it, or
    nobody."""
    quiet: int
    """Messages since the learner wrote, counted up to its patience."""
    silences: int


class _Course(NamedTuple):
    """What decides how many calls there are."""

    agents: int
    predicted: bool
    person: bool
    max_events: int
    max_silences: int
    patience: int
    codings: int


def lesson_calls(settings: GroupSettings, *, predicted: bool, person: bool) -> tuple[int, int]:
    """Least and most calls of a lesson, every reply readable.

    Args:
        settings: The group.
        predicted: The next speaker is predicted; otherwise agents select themselves.
        person: The learner is a person, who can leave at once.
    """
    course = _Course(
        len(settings.agents),
        predicted,
        person,
        settings.max_events,
        settings.max_silences,
        settings.learner_patience,
        settings.ipa_codings,
    )
    least, most = _calls_from(_At(1, "", 0, 0), course)
    return (0 if person else least), most


@lru_cache(maxsize=200_000)
def _calls_from(at: _At, course: _Course) -> tuple[int, int]:
    """Least and most calls from the beginning of a cycle to the end, coding included."""
    if at.events >= course.max_events or (at.silences >= course.max_silences and not course.person):
        return 0, 0
    least, most = [], []
    for calls, following in _cycles(at, course):
        low, high = _calls_from(following, course)
        least.append(calls + low)
        most.append(calls + high)
    return min(least), max(most)


def _cycles(at: _At, course: _Course) -> Iterator[tuple[int, _At]]:
    """The cycles that can begin here: their calls, and where the next one begins."""
    managed = int(bool(at.last) and at.silences == 0)
    events = at.events + 1
    said = course.codings
    by_learner = _At(events, LEARNER, 0, 0)
    quiet = min(at.quiet + 1, course.patience)
    by_agent = [_At(events, "agent", quiet, 0)]
    if not course.predicted:
        by_agent.append(_At(events, "floor", quiet, 0))
    silence = _At(events, at.last, at.quiet, at.silences + 1)
    if course.person:
        yield said, by_learner
    asked = _learner_asked(at, course)
    if True in asked:
        yield managed + 1 + said, by_learner
    for learner in asked:
        spoken, silent = _selection(at, course)
        yield from ((managed + learner + spoken + said, following) for following in by_agent)
        yield from ((managed + learner + calls, silence) for calls in silent)


def _learner_asked(at: _At, course: _Course) -> tuple[bool, ...]:
    """Whether the simulated learner is asked: it must be, cannot be, or may be by its name."""
    if course.person or (at.last == LEARNER and not at.silences):
        return (False,)
    if at.silences or at.quiet >= course.patience:
        return (True,)
    return (False, True) if at.last else (False,)


def _selection(at: _At, course: _Course) -> tuple[int, tuple[int, ...]]:
    """Calls until somebody speaks, and calls until it is clear that nobody does."""
    if course.predicted:
        return 2, (1, 2)  # nobody named; or an agent that says nothing readable
    thinking = course.agents - (at.last == "agent")
    return thinking + 2, (thinking, thinking + 1, thinking + 2)


def duel_calls(settings: GroupSettings, scenario: Scenario, raters: int) -> tuple[int, int]:
    """Least and most calls of a duel, every reply readable."""
    speakers = [message.name.casefold() for message in scenario.messages]
    names = {name.casefold() for name in settings.agents}
    thinking = [len(names - {speaker}) for speaker in speakers]
    thoughts = sum(thinking) if settings.warm_up else thinking[N_MESSAGES - 1]
    judged = 2 + 2 * raters
    return thoughts + 1, thoughts + 1 + 1 + 1 + 1 + judged
