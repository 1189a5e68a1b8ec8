"""`tutorsim show`: one episode, from the first attempt to the last."""

import difflib
import heapq
from collections.abc import Iterable
from pathlib import Path

import click

from tutorsim.cli.options import report_options
from tutorsim.cli.render import publish
from tutorsim.cli.trace import trace
from tutorsim.errors import UsageError
from tutorsim.records import EpisodeRecord, read_episodes, read_run

__all__ = ["show"]

LISTED = 8
"""Names listed when the right one is in doubt."""


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("episode", nargs=-1, required=True)
@click.option("--turn", type=click.IntRange(min=1), help="Only this tutoring turn.")
@report_options
def show(
    run: Path, episode: tuple[str, ...], turn: int | None, as_json: bool, output: Path | None
) -> None:
    """Show one EPISODE of a RUN folder: every message, ballot and decision.

    EPISODE is an episode id, or one or more parts that only one id has together, such as
    `sciq novice ranked`. Reviews and ballots name roles where the models saw labels; the labels
    stand beside them.

    \b
    --json gives the episode's log record, a line of episodes.jsonl:
      episode_id benchmark task_id persona condition repeat status failure
      attempts: [{turn text score score_rationale code code_passed verdict}]
      turns: [{turn proposals_initial reviews ballots_initial proposals_final
               ballots_final tie_round decision delivered}]
      turns_taken initial_correctness final_correctness success calls
    With --turn N: only turn N, and the attempts before and after it.
    """
    head = read_run(run)
    record = _find(read_episodes(run), " ".join(episode))
    part = record if turn is None else _only(record, turn)
    value = part.model_dump(mode="json")
    publish(trace(head, record, part), value, as_json=as_json, output=output)


def _find(episodes: Iterable[EpisodeRecord], wanted: str) -> EpisodeRecord:
    """The episode with this id, or the only one whose id has all these parts."""
    parts = wanted.lower().split()
    ids: list[str] = []
    found: list[EpisodeRecord] = []
    for record in episodes:
        if record.episode_id == wanted:
            return record
        ids.append(record.episode_id)
        if all(part in record.episode_id.lower() for part in parts):
            found.append(record)
    if len(found) == 1:
        return found[0]
    if found:
        raise _ambiguous(wanted, [record.episode_id for record in found])
    raise _unknown(wanted, ids)


def _ambiguous(wanted: str, ids: list[str]) -> UsageError:
    more = f"\n  and {len(ids) - LISTED} more" if len(ids) > LISTED else ""
    return UsageError(
        f"{len(ids)} episodes match {wanted!r}.",
        why="\n".join(f"  {name}" for name in ids[:LISTED]) + more,
        hint="Give a whole id, or more parts: `tutorsim show RUN sciq novice ranked`.",
    )


def _unknown(wanted: str, ids: list[str]) -> UsageError:
    if not ids:
        return UsageError(f"No episode matches {wanted!r}.", why="The run has no episode.")
    close = heapq.nlargest(3, ids, key=lambda name: _likeness(wanted, name))
    return UsageError(
        f"No episode matches {wanted!r}.",
        why=f"The run has {len(ids)}. The nearest:\n" + "\n".join(f"  {name}" for name in close),
        hint="Give a whole id, or parts of one: `tutorsim show RUN sciq novice ranked`.",
    )


def _likeness(wanted: str, name: str) -> float:
    """How many parts the id has, then how alike the two texts are."""
    parts = sum(part in name.lower() for part in wanted.lower().split())
    return parts + difflib.SequenceMatcher(None, name, wanted).ratio()


def _only(record: EpisodeRecord, turn: int) -> EpisodeRecord:
    turns = tuple(t for t in record.turns if t.turn == turn)
    if not turns:
        there = ", ".join(str(t.turn) for t in record.turns) or "none"
        raise UsageError(
            f"{record.episode_id} has no turn {turn}.", why=f"Its tutoring turns: {there}."
        )
    around = tuple(a for a in record.attempts if a.turn in (turn - 1, turn))
    return record.model_copy(update={"turns": turns, "attempts": around})
