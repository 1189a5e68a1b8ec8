"""`tutorsim show`: one episode, from the first attempt to the last."""

import difflib
import heapq
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from analysis.continuations import origin_of
from tutorsim.cli.futures import futures
from tutorsim.cli.options import report_options
from tutorsim.cli.render import publish
from tutorsim.cli.trace import trace
from tutorsim.errors import UsageError
from tutorsim.records import EpisodeRecord, RunRecord, read_episodes, read_run

__all__ = ["show"]

LISTED = 8
"""Names listed when the right one is in doubt."""


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("episode", nargs=-1, required=True)
@click.option("--turn", type=click.IntRange(min=1), help="Only this tutoring turn.")
@click.option(
    "--beside",
    type=click.Path(path_type=Path),
    metavar="PARENT",
    help="RUN is a branch: show the logged future of PARENT beside the re-simulated ones.",
)
@report_options
def show(
    run: Path,
    episode: tuple[str, ...],
    turn: int | None,
    beside: Path | None,
    as_json: bool,
    output: Path | None,
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
    With --beside PARENT, EPISODE is one draw, or the parent's episode for all its draws:
      logged, draws: log records
    """
    if beside is not None:
        if turn is not None:
            raise UsageError("--turn and --beside do not go together.", hint="Leave one out.")
        _show_beside(run, beside, " ".join(episode), as_json=as_json, output=output)
        return
    head = read_run(run)
    record = _find(read_episodes(run), " ".join(episode))
    part = record if turn is None else _only(record, turn)
    value = part.model_dump(mode="json")
    publish(trace(head, record, part), value, as_json=as_json, output=output)


def _show_beside(
    run: Path, parent: Path, wanted: str, *, as_json: bool, output: Path | None
) -> None:
    head = read_run(run)
    _check_parent(head, read_run(parent), (run, parent))
    found = _draws(list(read_episodes(run)), wanted)
    logged = _find(read_episodes(parent), origin_of(found[0]))
    draws = [episode for episode in found if episode.branch is not None]
    value = {
        "logged": logged.model_dump(mode="json"),
        "draws": [draw.model_dump(mode="json") for draw in draws],
    }
    publish(futures(head, logged, draws), value, as_json=as_json, output=output)


def _check_parent(head: RunRecord, parent: RunRecord, paths: tuple[Path, Path]) -> None:
    branch = head.study.branch
    if branch is None:
        raise UsageError(
            f"{paths[0]} is no branch.",
            why="Its log names no recording that it continues.",
            hint="Leave --beside out.",
        )
    if branch.parent_recording != parent.recording_digest:
        raise UsageError(
            f"{paths[0]} is no branch of {paths[1]}.",
            why=f"It continues {branch.parent}, recording {branch.parent_recording[:12]}; "
            f"{paths[1]} is recording {parent.recording_digest[:12] or 'unknown'}.",
            hint="Give the run of the recording that was continued to --beside.",
        )


def _draws(episodes: Sequence[EpisodeRecord], wanted: str) -> list[EpisodeRecord]:
    """One episode, or all continuations of the episode that the words name."""
    exact = [e for e in episodes if wanted in (e.episode_id, origin_of(e))]
    alone = [e for e in exact if e.episode_id == wanted]
    if exact:
        return alone or exact
    parts = wanted.lower().split()
    found = [e for e in episodes if all(part in e.episode_id.lower() for part in parts)]
    if len({origin_of(e) for e in found}) == 1:
        return found
    if found:
        raise _ambiguous(wanted, [e.episode_id for e in found])
    raise _unknown(wanted, [e.episode_id for e in episodes])


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
