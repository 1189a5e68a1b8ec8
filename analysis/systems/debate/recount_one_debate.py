"""What every protocol would have decided on one recorded debate.

Before it ends, a debate does not depend on its protocol. So from a debate that never stopped, each
protocol's stop and answer is exact. Any other recording gives an outer bound: what its ballots
leave open, and what lies beyond its logged end.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

from tutorsim.analysis.systems.debate.other_rules import possible_outcomes
from tutorsim.records import BallotRecord
from tutorsim.records.debate import (
    DebateRecord,
    DebateTurn,
    Message,
    Undecided,
    different_answers,
    flag,
)
from tutorsim.vocabularies import PROTOCOLS, Protocol
from tutorsim.voting import (
    CONSENSUS_RULES,
    AgreementReading,
    ConsensusRule,
    Majority,
    agreed,
    leaders,
    newest_proposal,
    read_agreement,
    tally,
)

__all__ = ["AS_LOGGED", "RULES", "Certainty", "Changes", "Outcome", "Rule", "recounted"]

Rule = Literal[
    "simple",
    "ranked",
    "cumulative",
    "approval",
    "majority",
    "supermajority",
    "unanimity",
    "hybrid",
    "solution_counting",
]
"""Everything that can decide a debate."""
Certainty = Literal["exact", "open", "beyond", "not_applicable"]
"""Known; one of several; not decided by the logged end; or not a question for this debate."""

RULES: Final[tuple[Rule, ...]] = get_args(Rule)


@dataclass(frozen=True)
class Changes:
    """Settings that a recount puts in place of the logged ones; `None` keeps the logged one."""

    vote_from: int | None = None
    majority: Majority | None = None
    undecided: Undecided | None = None
    merge_identical: bool | None = None
    agreement_reading: AgreementReading | None = None


AS_LOGGED: Final = Changes()
"""No setting changed."""


class Outcome(NamedTuple):
    """What a protocol makes of a debate."""

    certainty: Certainty
    turn: int | None = None
    """The turn in which the debate ends; `None` if that is not known."""
    decided: bool | None = None
    """Whether the protocol decided, and not the limit; `None` if that is not known."""
    answers: tuple[str | None, ...] = ()
    """What is delivered: one answer if exact, the possible ones if open."""
    author: str | None = None
    """Whose answer it is; `None` if there is none, or several are possible."""
    ties: int = 0
    """Votes that tied on the way, as far as they are known."""
    messages: int | None = None
    """Messages said until the end; `None` if that is not known."""


NOT_APPLICABLE: Final = Outcome("not_applicable")
BEYOND: Final = Outcome("beyond")


def recounted(record: DebateRecord, rule: Rule, changes: Changes = AS_LOGGED) -> Outcome:
    """What a rule decides on a logged debate.

    Args:
        record: A complete debate; a model alone has nothing to decide.
        rule: The protocol.
        changes: Settings in place of the logged ones.
    """
    if not record.turns:
        return NOT_APPLICABLE
    in_force = _in_force(record, changes)
    for consensus in CONSENSUS_RULES:
        if rule == consensus:
            return _consensus(record, consensus, in_force)
    for protocol in PROTOCOLS:
        if rule == protocol:
            return _vote(record, protocol, in_force)
    return _solution_count(record, in_force)


class _InForce(NamedTuple):
    vote_from: int
    majority: Majority
    undecided: Undecided
    merge: bool
    reading: AgreementReading


def _in_force(record: DebateRecord, changes: Changes) -> _InForce:
    setup = record.setup
    merge = changes.merge_identical
    return _InForce(
        vote_from=changes.vote_from or setup.vote_from,
        majority=changes.majority or setup.majority,
        undecided=changes.undecided or setup.undecided,
        merge=setup.merge_identical if merge is None else merge,
        reading=changes.agreement_reading or setup.agreement_reading,
    )


# --- Consensus ------------------------------------------------------------------------------


def _consensus(record: DebateRecord, rule: ConsensusRule, in_force: _InForce) -> Outcome:
    """Walk the messages, asking the rule wherever the debate would have."""
    setup = record.setup
    if setup.paradigm == "collective":
        return NOT_APPLICABLE
    flags: list[bool | None] = []
    messages: list[Message] = []
    for turn, said in _steps(record):
        messages += said
        flags += [_flag(message, record, in_force.reading) for message in said]
        found = agreed(flags, agents=setup.agents, rule=rule, turn=turn, majority=in_force.majority)
        if found is not None:
            return _proposed(messages, found, turn, decided=True)
    last = record.turns[-1].turn
    newest = newest_proposal(flags)
    if setup.max_turns is None or last < setup.max_turns or newest is None:
        return BEYOND
    return _proposed(messages, newest, last, decided=False)


def _steps(record: DebateRecord) -> Iterator[tuple[int, tuple[Message, ...]]]:
    """Messages between two moments at which the protocol is asked, with their turn."""
    for turn in record.turns:
        together = record.setup.paradigm == "debate" or all(
            message.kind == "draft" for message in turn.messages
        )
        if together:
            yield turn.turn, turn.messages
        else:
            for message in turn.messages:
                yield turn.turn, (message,)


def _flag(message: Message, record: DebateRecord, reading: AgreementReading) -> bool | None:
    if message.agreement == "none" or reading == record.setup.agreement_reading:
        return flag(message)
    return read_agreement(message.text, reading) == "agree"


def _proposed(messages: Sequence[Message], index: int, turn: int, *, decided: bool) -> Outcome:
    """A proposal is delivered; under another reading, its solution may never have been taken."""
    message = messages[index]
    if message.solution is None:
        return Outcome("open", turn, decided, (), message.agent, messages=len(messages))
    return Outcome(
        "exact", turn, decided, (message.solution,), message.agent, messages=len(messages)
    )


# --- Votes ----------------------------------------------------------------------------------


class _Vote(NamedTuple):
    """A vote as a rule counts it."""

    candidates: tuple[str, ...]
    masses: tuple[Mapping[str, int], ...]


def _vote(record: DebateRecord, rule: Protocol, in_force: _InForce) -> Outcome:
    """Walk the votes from the first one on until one has a single winner."""
    possible: list[str | None] = []
    ties, certain = 0, True
    for turn in record.turns:
        if turn.turn < in_force.vote_from:
            continue
        if not turn.answers:
            return BEYOND
        vote = _counted(turn, rule, merge=in_force.merge, merged=record.setup.merge_identical)
        if vote is None:
            outcome = _crossed(turn, rule, record.setup.cumulative_budget)
            if outcome is None:
                return BEYOND
            winners, tie = outcome
            certain = certain and len(winners) + tie == 1
            possible += [turn.answers[winner].text for winner in winners]
            if not tie:
                return _open(turn, possible, winners, ties, record, certain=certain)
            tied: tuple[str, ...] = ()
        else:
            tied = _leading(vote)
            if len(tied) == 1:
                if not certain:
                    possible.append(turn.answers[tied[0]].text)
                    return _open(turn, possible, (), ties, record, certain=False)
                return _delivered(record, turn, tied[0], ties, decided=True)
            ties += 1
        if turn.turn == record.setup.max_turns:
            return _at_limit(record, turn, tied, possible, in_force, ties, certain=certain)
    return BEYOND if not possible else Outcome("beyond", answers=tuple(dict.fromkeys(possible)))


def _counted(turn: DebateTurn, rule: Protocol, *, merge: bool, merged: bool) -> _Vote | None:
    """A turn's vote under a rule; `None` if its ballots do not determine one."""
    if len(turn.candidates) == 1:
        return _Vote(turn.candidates, ())
    first = different_answers(turn.answers)
    groups = {agent: first[agent] if merge and not merged else agent for agent in turn.candidates}
    candidates = tuple(dict.fromkeys(groups.values()))
    if len(candidates) == 1:
        return _Vote(candidates, ())
    ballots = _ballots(turn, rule)
    if ballots is None:
        return None
    masses = [ballot.mass for ballot in ballots]
    if len(candidates) == len(turn.candidates):
        return _Vote(candidates, tuple(masses))
    return _Vote(candidates, tuple(_MERGED[rule](mass, groups) for mass in masses))


def _ballots(turn: DebateTurn, rule: Protocol) -> Sequence[BallotRecord] | None:
    if rule in turn.ballots_as:
        return turn.ballots_as[rule]
    held = turn.cast
    return held if held and held[0].rule == rule else None


def _leading(vote: _Vote) -> tuple[str, ...]:
    return leaders(tally(vote.masses, vote.candidates))


def _delivered(
    record: DebateRecord, turn: DebateTurn, author: str | None, ties: int, *, decided: bool
) -> Outcome:
    text = None if author is None else turn.answers[author].text
    return Outcome(
        "exact",
        turn.turn,
        decided,
        (text,),
        author,
        ties,
        _said_until(record, turn.turn),
    )


def _said_until(record: DebateRecord, turn: int) -> int:
    return sum(len(logged.messages) for logged in record.turns if logged.turn <= turn)


def _at_limit(
    record: DebateRecord,
    turn: DebateTurn,
    tied: Sequence[str],
    possible: list[str | None],
    in_force: _InForce,
    ties: int,
    *,
    certain: bool,
) -> Outcome:
    """The last vote ties, or may tie if its ballots do not say who leads."""
    known = bool(tied) or in_force.undecided != "leader"
    author = {
        "first_agent": next(iter(turn.answers)),
        "leader": tied[0] if tied else None,
        "none": None,
    }[in_force.undecided]
    if certain and known:
        return _delivered(record, turn, author, ties, decided=False)
    if known:
        possible.append(None if author is None else turn.answers[author].text)
    else:
        possible += [turn.answers[agent].text for agent in turn.candidates]
    return _open(turn, possible, (), ties, record, certain=False)


def _open(
    turn: DebateTurn,
    possible: Sequence[str | None],
    winners: Sequence[str],
    ties: int,
    record: DebateRecord,
    *,
    certain: bool,
) -> Outcome:
    """One of several answers; exact if the ballots leave one winner and left no other before."""
    if certain and len(winners) == 1:
        return _delivered(record, turn, winners[0], ties, decided=True)
    return Outcome("open", None, None, tuple(dict.fromkeys(possible)), None, ties)


def _crossed(turn: DebateTurn, rule: Protocol, budget: int) -> tuple[tuple[str, ...], bool] | None:
    """Possible winners under a rule that did not ask these ballots, and whether it may tie."""
    if not turn.cast:
        return None
    return possible_outcomes(turn.cast, turn.candidates, rule, budget=budget)


# --- One candidate for equal answers -------------------------------------------------------


def _summed(mass: Mapping[str, int], groups: Mapping[str, str]) -> dict[str, int]:
    total = dict.fromkeys(groups.values(), 0)
    for agent, points in mass.items():
        total[groups[agent]] += points
    return total if mass else {}


def _any_approved(mass: Mapping[str, int], groups: Mapping[str, str]) -> dict[str, int]:
    return {name: min(1, points) for name, points in _summed(mass, groups).items()}


def _best_place(mass: Mapping[str, int], groups: Mapping[str, str]) -> dict[str, int]:
    """A ranking of the groups by the best place of each; Borda points anew."""
    best = list(dict.fromkeys(groups[agent] for agent in sorted(mass, key=lambda a: -mass[a])))
    return {name: len(best) - 1 - place for place, name in enumerate(best)}


_MERGED: Final[Mapping[Protocol, Callable[..., dict[str, int]]]] = {
    "simple": _summed,
    "ranked": _best_place,
    "cumulative": _summed,
    "approval": _any_approved,
}
"""A ballot's masses once equal answers are one candidate."""


# --- Solution counting ----------------------------------------------------------------------


def _solution_count(record: DebateRecord, in_force: _InForce) -> Outcome:
    """The letter that most agents answer; of tied letters the one that stands first."""
    for turn in record.turns:
        if turn.turn < in_force.vote_from or not turn.answers:
            continue
        letters = {agent: answer.letter for agent, answer in turn.answers.items()}
        counts: dict[str, int] = {}
        for letter in letters.values():
            if letter is not None:
                counts[letter] = counts.get(letter, 0) + 1
        if not counts:
            return NOT_APPLICABLE
        best = leaders(counts)[0]  # counted in the order of the agents
        author = next(agent for agent, letter in letters.items() if letter == best)
        outcome = _delivered(record, turn, author, 0, decided=True)
        return outcome._replace(answers=(best,))
    return NOT_APPLICABLE if record.answer_kind != "choice" else BEYOND
