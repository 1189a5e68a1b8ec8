"""A debate message by message, with who saw what."""

from collections.abc import Iterator, Mapping, Sequence

from tutorsim.analysis.pages.document import Dialogue
from tutorsim.analysis.pages.document import Message as Said
from tutorsim.analysis.systems.system_view import SystemRun
from tutorsim.records import BallotRecord
from tutorsim.records.debate import DebateRecord, DebateTurn, Message


def trace(run: SystemRun, record: DebateRecord) -> Dialogue:
    """An episode, as `show` prints it."""
    return dialogue(record, "")


def chosen(records: Sequence[DebateRecord]) -> list[tuple[DebateRecord, str]]:
    """The episodes of a report, each with the reason why it is there."""
    wanted = (
        ("a vote tied and another turn followed", lambda r: any(t.held for t in r.turns[:-1])),
        ("it ended undecided", lambda r: r.decided is False),
        ("consensus decided it", lambda r: r.ended_by == "consensus"),
    )
    found: dict[str, tuple[DebateRecord, str]] = {}
    for why, fits in wanted:
        first = next((r for r in records if fits(r) and r.episode_id not in found), None)
        if first is not None:
            found[first.episode_id] = (first, f"Shown because {why}.")
    return list(found.values())


def dialogue(record: DebateRecord, why: str) -> Dialogue:
    """An episode, message by message."""
    return Dialogue(
        id=record.episode_id,
        why=why,
        messages=tuple(_messages(record)),
        facts=tuple(_facts(record)),
    )


def _facts(record: DebateRecord) -> Iterator[tuple[str, str]]:
    yield "Question", record.question
    if record.options:
        yield "Options", " · ".join(record.options)
    yield "Right", ", ".join(record.gold) or "no answer"
    if record.failure is not None:
        yield "Failed", f"{record.failure.key}: {record.failure.error}"
        return
    if record.ended_by is not None:
        decided = {True: "decided", False: "undecided", None: "nothing to decide"}
        yield (
            "Ended by",
            f"{record.ended_by} in turn {record.turns_taken}, {decided[record.decided]}",
        )
    if record.answer is not None:
        unread = "" if record.readable else ", could not be read as an option"
        yield "Answer", f"{record.answer} (of {record.answer_of}{unread})"
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
        for message in turn.messages:
            yield _said(turn.turn, message)
        yield from _end_of(turn, record)
    for one in record.challenges:
        judged = {True: "DISAGREE", False: "AGREE", None: "(neither)"}[one.challenged]
        counter = "" if one.counter is None else f"; own answer: {one.counter}"
        text = f"{judged} on {one.shown_answer!r}{counter}"
        yield Said(one.agent, text, f"challenge {one.setting}", quiet=True)


def _said(turn: int, message: Message) -> Said:
    shown = ", ".join(f"#{number}" for number in message.shown) or "nothing"
    round_ = f", round {message.round}" if message.round else ""
    proposed = "" if message.solution is None else f", proposes {message.solution!r}"
    agreement = "" if message.agreement == "none" else f", {message.agreement}"
    note = f"#{message.number}, turn {turn}{round_}, saw {shown}{agreement}{proposed}"
    status = "" if message.status == "valid" else f" [{message.status}]"
    return Said(message.agent, message.text or "(no text)", note + status)


def _end_of(turn: DebateTurn, record: DebateRecord) -> Iterator[Said]:
    for agent, answer in turn.answers.items():
        sure = "" if answer.confidence is None else f", confidence {answer.confidence}"
        yield Said(agent, answer.text, f"final answer, turn {turn.turn}{sure}", quiet=True)
    if turn.ballots_final:
        yield from _ballots(turn.ballots_final, f"ballot, turn {turn.turn}")
    if turn.held is not None:
        yield from _ballots(turn.held_ballots, f"ballot, turn {turn.turn}")
        yield Said("vote", f"tied: {_tally(turn.held.tallies)}", f"turn {turn.turn}", quiet=True)
    for form, ballots in turn.ballots_as.items():
        yield from _ballots(ballots, f"{form} ballot, turn {turn.turn}")
    if turn.decision is not None:
        told = f"{turn.decision.winner}: {_tally(turn.decision.tallies)}"
        yield Said("vote", told, f"turn {turn.turn}, by {turn.decision.decided_by}", quiet=True)


def _ballots(ballots: Sequence[BallotRecord], note: str) -> Iterator[Said]:
    for ballot in ballots:
        mass = _tally(ballot.mass) if ballot.mass else "abstained"
        yield Said(ballot.voter, mass, f"{note}, {ballot.ballot_status}", quiet=True)


def _tally(tallies: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {points}" for name, points in tallies.items())
