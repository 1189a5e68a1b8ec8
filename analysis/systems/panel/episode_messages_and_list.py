"""Episodes of a panel: message by message, and all in a line each."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.pages.cells_and_tables import number
from tutorsim.analysis.pages.shown_episodes import (
    Episode,
    EpisodePart,
    Grid,
    Group,
    Message,
    Telling,
    usual_marks,
)
from tutorsim.analysis.pages.words_and_safe_text import counted, odd_replies, spoken, step_sentence
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.systems.panel.shifts_flips_and_ties_beside_chance import turn_diagnostics
from tutorsim.records import (
    Attempt,
    BallotRecord,
    EpisodeRecord,
    Proposal,
    ReviewRecord,
    Turn,
    stop_counts,
)

# --- Episode of a page ---------------------------------------------------------------------------


def telling(flipped: Collection[str]) -> Telling:
    """Why an episode is worth a look → whether it is one.

    `flipped`: ids of episodes where deliberation changed a winner.
    """
    return {
        "the fallback order decided a turn": lambda one: "fallback" in _steps(one),
        "a tie round broke a tie": lambda one: "tie_round" in _steps(one),
        "a voter abstained": lambda one: any(map(_abstained, one.turns)),
        "deliberation changed a winner": lambda one: one.episode_id in flipped,
    }


def _steps(record: EpisodeRecord) -> tuple[str, ...]:
    """The steps that decided some turn, each once."""
    by = (turn.decision.decided_by for turn in record.turns if turn.decision)
    return tuple(dict.fromkeys(by))


def _abstained(turn: Turn) -> bool:
    tie = turn.tie_round.ballots if turn.tie_round else ()
    ballots = (*turn.ballots_initial, *turn.ballots_final, *tie)
    return any(ballot.ballot_status == "abstained" for ballot in ballots)


def trace(run: object, record: EpisodeRecord) -> Episode:
    """An episode, message by message; ballots name roles beside the labels that voters saw."""
    won = tuple(dict.fromkeys(turn.decision.winner for turn in record.turns if turn.decision))
    steps = tuple(spoken(step) for step in _steps(record))
    return Episode(
        id=record.episode_id,
        parts=tuple(_parts(record)),
        outcome=_came_of(record),
        line=_line(record, won),
        facts=tuple(_facts(record)),
        marks={
            **usual_marks(record, "Persona"),
            "Condition": (record.arm,),
            "What came of it": (_came_of(record),),
            "Won a turn": won,
            "Decided by": steps,
        },
    )


def _came_of(record: EpisodeRecord) -> str:
    if record.status != "complete":
        return "failed to finish"
    return "success" if record.success else "no success"


def _line(record: EpisodeRecord, won: Sequence[str]) -> str:
    winners = f"; {', '.join(won)} won" if won else ""
    ends = (record.initial_correctness, record.final_correctness)
    scores = " → ".join(number(score, digits=2) for score in ends)
    return f"{counted(record.turns_taken, 'tutoring turn')}, judge score {scores}{winners}"


def _facts(record: EpisodeRecord) -> Iterator[tuple[str, str]]:
    if record.failure is not None:
        yield "Failed", f"call {record.failure.key}: {record.failure.error}"
    point = record.branch
    if point is not None:
        yield (
            "Re-simulated",
            f"Draw {point.continuation} of {point.parent_episode}; turn {point.turn} is the first "
            "that the branch decides.",
        )


def _parts(record: EpisodeRecord) -> Iterator[EpisodePart]:
    if record.question:
        yield Message("What the student was asked", record.question)
    if record.reference:
        reference = Message("Reference", record.reference, quiet=True)
        yield Group("What the judge compared with", (reference,), folded=True)
    for attempt in record.attempts:
        yield from _attempt(attempt)
        for turn in record.turns:
            if turn.turn == attempt.turn + 1:
                yield from _turn(turn)


def _attempt(attempt: Attempt) -> Iterator[Message]:
    when = f"after turn {attempt.turn}" if attempt.turn else "before any tutoring"
    code = f", code: {attempt.verdict.outcome}" if attempt.verdict else ""
    score = "unscored" if attempt.score is None else number(attempt.score, digits=2)
    yield Message("Student", attempt.text, f"{when}, judge: {score}{code}")
    if attempt.score_rationale:
        yield Message("Judge", attempt.score_rationale, quiet=True)


def _turn(turn: Turn) -> Iterator[EpisodePart]:
    candidates, decision = tuple(turn.proposals_initial), turn.decision
    if decision is None:
        yield Group(f"Turn {turn.turn}", _drafts(turn.proposals_initial, *candidates))
        return
    yield Group(f"Turn {turn.turn}")
    yield Group("First drafts", _drafts(turn.proposals_initial), folded=True)
    yield _reviews("Reviews of the first drafts", turn.reviews)
    yield ballots_grid("First vote, on the drafts (diagnostic)", turn.ballots_initial, candidates)
    yield Group("Revised drafts", _drafts(turn.proposals_final, decision.winner))
    yield ballots_grid("Final vote, on the revised drafts", turn.ballots_final, candidates)
    if turn.tie_round is not None:
        yield _reviews("Reviews of the tied drafts", turn.tie_round.reviews)
        yield ballots_grid("Tie round", turn.tie_round.ballots, turn.tie_round.candidates)
    steps = "\n".join(map(step_sentence, decision.steps))
    by = f"by {spoken(decision.decided_by)}"
    yield Group("Decision", (Message(decision.winner, steps, by, quiet=True, chosen=True),))


def _drafts(drafts: Mapping[str, Proposal], *won: str) -> tuple[Message, ...]:
    """Drafts by role; those of the roles named were delivered."""
    return tuple(
        Message(role, draft.text, ", ".join(_draft_notes(draft, role in won)), chosen=role in won)
        for role, draft in drafts.items()
    )


def _draft_notes(draft: Proposal, delivered: bool) -> Iterator[str]:
    if delivered:
        yield "delivered"
    if draft.confidence is not None:
        yield f"confidence {draft.confidence}"
    if draft.status != "valid":
        yield draft.status


def _reviews(title: str, reviews: Iterable[ReviewRecord]) -> Group:
    return Group(title, tuple(_review(one) for one in reviews), folded=True)


def _review(review: ReviewRecord) -> Message:
    lines = [
        f"{role}: + {note.strength or '–'} − {note.weakness or '–'}"
        for role, note in review.notes.items()
    ]
    status = "" if review.status == "valid" else f", {review.status}"
    text = "\n".join(lines) or review.raw
    return Message(review.reviewer, text, f"on the others{status}", quiet=True)


def ballots_grid(title: str, ballots: Iterable[BallotRecord], candidates: Sequence[str]) -> Grid:
    """A vote, a row a voter: the mass of each candidate beside the label that the voter saw."""
    columns = ("voter", *candidates, "ballot", "as written")
    return Grid(title, columns, tuple(_ballot_row(ballot, candidates) for ballot in ballots))


def _ballot_row(ballot: BallotRecord, candidates: Sequence[str]) -> tuple[str, ...]:
    label = {role: name for name, role in ballot.labels.items()}
    cells = (f"{ballot.mass.get(role, '–')} {label.get(role, '')}".strip() for role in candidates)
    asked = f", asked {ballot.attempts} times" if ballot.attempts > 1 else ""
    return (ballot.voter, *cells, f"{ballot.ballot_status}{asked}", ballot.raw)


# --- Episode list --------------------------------------------------------------------------------


def episode_rows(source: Source) -> list[dict[str, Any]]:
    """Every episode of a run, in the log's order: see `View.listing`.

    `winners` and `decided_by` are of the voting turns, in order.
    """
    rows = turn_diagnostics(source).iter_rows(named=True)
    turns = by_key((row["episode_id"], row) for row in rows)
    return [
        {
            "episode_id": episode.episode_id,
            "benchmark": episode.benchmark,
            "task": episode.task_id,
            "persona": episode.persona,
            "condition": episode.condition,
            "status": episode.status,
            "turns": episode.turns_taken,
            "success": episode.success,
            "first_score": episode.initial_correctness,
            "last_score": episode.final_correctness,
            "winners": tuple(str(turn["winner"]) for turn in own),
            "decided_by": tuple(str(turn["decided_by"]) for turn in own),
            "special": tuple(_special(episode, own)),
        }
        for episode in source.episodes
        for own in [turns.get(episode.episode_id, [])]
    ]


def _special(episode: EpisodeRecord, turns: list[dict[str, Any]]) -> Iterator[str]:
    if episode.failure is not None:
        yield f"failed at {episode.failure.key}"
        return
    if not episode.turns_taken:
        yield "solved at once"
    first, last = episode.initial_correctness, episode.final_correctness
    if first is not None and last is not None and last < first:
        yield "the score fell"
    for said, of in _SPECIAL.items():
        found = [str(turn["turn"]) for turn in turns if of(turn)]
        if found:
            yield f"{said} {', '.join(found)}"
    silent = sum(turn["abstained"] for turn in turns)
    if silent:
        yield f"{silent} abstained"
    yield from odd_replies(stop_counts([episode]))


_SPECIAL: Final[dict[str, Callable[[dict[str, Any]], bool]]] = {
    "the order decided turn": lambda turn: turn["fallback"],
    "a tie round decided turn": lambda turn: turn["decided_by"] == "tie_round",
    "deliberation changed the winner of turn": lambda turn: turn["flip_set"],
}
"""What is said of turns → whether it is so of one."""
