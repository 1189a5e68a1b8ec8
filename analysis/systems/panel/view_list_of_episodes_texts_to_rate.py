"""A panel's tables, what people can rate of its runs, its episodes in a line each, and its view.

Its summary, report and traces have modules of their own.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.pages.words_and_safe_text import odd_replies
from tutorsim.analysis.ratings.texts_to_rate_as_raters_see import Block, Passage, Place, delivered
from tutorsim.analysis.runs.branch_counts_turns_siblings_share import shared_turns
from tutorsim.analysis.runs.exported_tables import TABLES
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.systems.panel.winning_roles_ties_ballots_shift_flip_chance import (
    turn_diagnostics,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun, View
from tutorsim.records import EpisodeRecord, stop_counts
from tutorsim.system_registry import later


def _proposals(run: SystemRun) -> Iterator[Passage]:
    """Every role's final proposal; where nobody voted, the delivered reply.

    They are of complete episodes; a turn that continuations share is in it once.
    """
    shared = shared_turns(run.episodes)
    for record in run.episodes:
        for turn in record.turns if record.status == "complete" else ():
            if (record.episode_id, turn.turn) in shared:
                continue
            winner = record.condition if turn.decision is None else turn.decision.winner
            texts = {winner: turn.delivered}
            if turn.decision is not None:
                texts = {role: said.text for role, said in turn.proposals_final.items()} | texts
            scores = {attempt.turn: attempt.score for attempt in record.attempts}
            before = (*_task(record), *_dialogue(record, turn.turn))
            for role, text in texts.items():
                judged = scores.get(turn.turn) if role == winner else None
                place = _place(record, turn.turn, role, judged, delivered=role == winner)
                yield Passage((*before, Block("The tutor's reply to rate", text)), place)


def _answers(run: SystemRun) -> Iterator[Passage]:
    """Every message of the student, with what the model judge saw of it."""
    for record in run.episodes:
        if record.status == "complete":
            for attempt in record.attempts:
                said = (*_task(record), Block("The student's answer to rate", attempt.text))
                yield Passage(said, _place(record, attempt.turn, "student", attempt.score))


def _place(
    record: EpisodeRecord, turn: int, role: str, judged: float | None, *, delivered: bool = True
) -> Place:
    task = f"{record.benchmark}.{record.task_id}"
    return Place(record.episode_id, turn, role, record.condition, task, delivered, judged)


def _task(record: EpisodeRecord) -> Iterator[Block]:
    for heading, text in (("Task", record.question), ("Reference answer", record.reference)):
        if text:
            yield Block(heading, text)


def _dialogue(record: EpisodeRecord, turn: int) -> Iterator[Block]:
    """All that was said before a turn's reply."""
    delivered = {one.turn: one.delivered for one in record.turns}
    for attempt in record.attempts:
        if attempt.turn >= turn:
            return
        if attempt.turn > 0:
            yield Block("Tutor", delivered[attempt.turn])
        yield Block("Student", attempt.text)


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


# --- View ----------------------------------------------------------------------------------------

_PARTS: Final = "tutorsim.analysis.systems.panel"
_document = later(f"{_PARTS}.page_sections_cost_and_divergence:document")  # a table needs no page
_diverge = later(f"{_PARTS}.page_sections_cost_and_divergence:diverged")

VIEW: Final = View(
    tables=TABLES,
    document=_document,
    listing=lambda run: episode_rows(run.source),
    diverge=_diverge,
    contrasts=later(f"{_PARTS}.contrasts_of_conditions_or_two_runs:contrasts_frame"),
    compare=later(f"{_PARTS}.branch_compared_with_parent_run:compared"),
    passages={"replies": delivered(_proposals), "proposals": _proposals, "answers": _answers},
    rubric="judge_system",
)

BALLOTS: Final = View(tables={"ballots": TABLES["ballots"]}, document=_document, diverge=_diverge)
"""What is shown of ballots from elsewhere."""
