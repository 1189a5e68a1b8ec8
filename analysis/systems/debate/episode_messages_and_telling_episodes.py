"""A debate message by message, with who saw what; and which debates are worth a look, and why."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import shorten
from typing import Final

from tutorsim.analysis.pages.shown_episodes import Episode, Run, Telling, usual_marks
from tutorsim.analysis.pages.shown_episodes import Message as Said
from tutorsim.records import BallotRecord
from tutorsim.records.debate import DebateRecord, DebateTurn, Message

TELLING: Final[Telling] = {
    "a vote tied and another turn followed": lambda one: any(t.held for t in one.turns[:-1]),
    "it ended undecided": lambda one: one.decided is False,
    "consensus decided it": lambda one: one.ended_by == "consensus",
}
"""Why an episode is worth a look → whether it is one."""


def trace(run: Run, record: DebateRecord) -> Episode:
    """An episode, message by message."""
    came_of = _came_of(record)
    return Episode(
        id=record.episode_id,
        parts=tuple(_messages(record)),
        outcome=_outcome(record, came_of),
        line=_beginning(record.question),
        facts=tuple(_facts(record)),
        marks={**usual_marks(record), "What came of it": (came_of,)},
    )


def _came_of(record: DebateRecord) -> str:
    """What came of an episode, in a word."""
    if record.failure is not None:
        return "failed"
    if record.ended_by == "full":
        return "full debate"
    if record.answer is None:
        return "nothing delivered"
    if not record.gold or record.score is None:
        return "delivered"
    return {1.0: "right", 0.0: "wrong"}.get(record.score, "partly right")


def _outcome(record: DebateRecord, came_of: str) -> str:
    undecided = ", undecided" if record.decided is False else ""
    if record.answer is None:
        return f"{came_of}{undecided}"
    return f"{_beginning(record.letter or record.answer, 40)}: {came_of}{undecided}"


def _beginning(text: str, most: int = 90) -> str:
    """The first words of a text, on one line."""
    return shorten(text, most, placeholder=" …")


def _facts(record: DebateRecord) -> Iterator[tuple[str, str]]:
    yield "Question", record.question
    if record.options:
        yield "Options", " · ".join(record.options)
    if record.council is None:
        yield "Right", ", ".join(record.gold) or "no answer"
    else:
        yield "File", record.council.file or "not named"
        yield "Right", record.council.expected or "not known"
        for note in record.council.told:
            yield "Told, not guessed", note
    if record.failure is not None:
        yield "Failed", f"{record.failure.key}: {record.failure.error}"
        return
    if record.ended_by is not None:
        decided = {True: ", decided", False: ", undecided", None: ", nothing to decide"}
        how = "" if record.council else decided[record.decided]
        when = "" if record.council else f" in turn {record.turns_taken}"
        yield "Ended by", f"{record.ended_by}{when}{how}"
    if record.answer is not None:
        unread = "" if record.readable or record.council else ", could not be read as an option"
        whose = record.answer_of or "nobody that the log names"
        yield "Answer", f"{record.answer} (of {whose}{unread})"
    elif record.ended_by != "full":
        yield "Answer", "nothing was delivered"
    if record.score is not None:
        yield "Score", f"{record.score:.2f}"


def _messages(record: DebateRecord) -> Iterator[Said]:
    for persona in record.personas:
        note = "" if persona.status == "valid" else persona.status
        yield Said(persona.agent, f"{persona.role}. {persona.description}", note, quiet=True)
    for place, text in enumerate(record.solo):
        yield Said("baseline", text, "solution" if place == 0 else f"refinement {place}")
    for turn in record.turns:
        when = "" if record.council else f", turn {turn.turn}"  # a council votes once
        for message in turn.messages:
            yield _said(when, message)
        yield from _end_of(turn, when)
    for one in record.challenges:
        judged = {True: "DISAGREE", False: "AGREE", None: "(neither)"}[one.challenged]
        counter = "" if one.counter is None else f"; own answer: {one.counter}"
        text = f"{judged} on {one.shown_answer!r}{counter}"
        yield Said(one.agent, text, f"challenge {one.setting}", quiet=True)


def _said(when: str, message: Message) -> Said:
    shown = ", ".join(f"#{number}" for number in message.shown) or "nothing"
    round_ = f", round {message.round}" if message.round else ""
    proposed = "" if message.solution is None else f", proposes {message.solution!r}"
    agreement = "" if message.agreement == "none" else f", {message.agreement}"
    note = f"#{message.number}{when}{round_}, saw {shown}{agreement}{proposed}"
    status = "" if message.status == "valid" else f" [{message.status}]"
    return Said(message.agent, message.text or "(no text)", note + status)


def _end_of(turn: DebateTurn, when: str) -> Iterator[Said]:
    for agent, answer in turn.answers.items():
        sure = "" if answer.confidence is None else f", confidence {answer.confidence}"
        yield Said(agent, answer.text, f"final answer{when}{sure}", quiet=True)
    if turn.ballots_final:
        yield from _ballots(turn.ballots_final, f"ballot{when}")
    if turn.held is not None:
        yield from _ballots(turn.held_ballots, f"ballot{when}")
        yield Said("vote", f"tied: {_tally(turn.held.tallies)}", f"undecided{when}", quiet=True)
    for form, ballots in turn.ballots_as.items():
        yield from _ballots(ballots, f"{form} ballot{when}")
    if turn.decision is not None:
        told = f"{turn.decision.winner}: {_tally(turn.decision.tallies)}"
        yield Said("vote", told, f"by {turn.decision.decided_by}{when}", quiet=True)


def _ballots(ballots: Sequence[BallotRecord], note: str) -> Iterator[Said]:
    for ballot in ballots:
        mass = _tally(ballot.mass) if ballot.mass else "abstained"
        yield Said(ballot.voter, mass, f"{note}, {ballot.ballot_status}", quiet=True)


def _tally(tallies: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {points}" for name, points in tallies.items())
