"""`tutorsim show`: one of a run's episodes, or all of them by name."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import RenderableType
from rich.text import Text

from tutorsim.analysis.runs.branch_origins_and_shared_turns import origin_of
from tutorsim.cli.one_episode_alone_or_beside_its_branch import odd_ends, trace
from tutorsim.cli.open_run_or_recording_and_head_of_page import RunPath, check_logs
from tutorsim.cli.options import check_episode_named, report_options
from tutorsim.cli.output_elements import caption, heading, number, provenance, publish, table
from tutorsim.errors import UsageError
from tutorsim.records import EpisodeLine, EpisodeRecord, RunRecord, read_episodes, read_run
from tutorsim.system_registry import DEFAULT_SYSTEM

if TYPE_CHECKING:
    from tutorsim.analysis.systems.system_view_and_opened_run import SystemRun


E = TypeVar("E", bound=EpisodeLine)

LISTED = 8
"""Names listed when the right one is in doubt."""


@click.command()
@click.argument("run", type=RunPath())
@click.argument("episode", nargs=-1)
@click.option("--turn", type=click.IntRange(min=1), help="Only this tutoring turn.")
@click.option(
    "--beside",
    type=RunPath(),
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
    stand beside them. Without an EPISODE the episodes are listed, with what is special about
    each.

    \b
    --json gives without an EPISODE:
      source
      episodes: [{episode_id benchmark task persona condition status turns success
                  first_score last_score winners decided_by special}],
                of another system episode_id and special alone
    Otherwise it gives the episode's log record, a line of episodes.jsonl:
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
        check_episode_named(episode, "--beside")
        _show_beside(run, beside, " ".join(episode), as_json=as_json, output=output)
        return
    if turn is not None:
        check_episode_named(episode, "--turn")
    check_logs(run)
    head = read_run(run)
    if not episode or head.system != DEFAULT_SYSTEM:
        from tutorsim.analysis.systems.system_view_and_opened_run import open_run

        system = open_run(run, head)
        if not episode:
            _list(system, as_json=as_json, output=output)
            return
        _show_of(system, " ".join(episode), turn, as_json=as_json, output=output)
        return
    record = _find(read_episodes(run), " ".join(episode))
    part = record if turn is None else _only(record, turn)
    shown = trace(head, record, part)
    publish(shown, lambda: part.model_dump(mode="json"), as_json=as_json, output=output)


def _list(run: "SystemRun", *, as_json: bool, output: Path | None) -> None:
    """The episodes of a run, and what is special about each."""
    from tutorsim.analysis.systems.system_view_and_opened_run import view_for

    rows = view_for(run).listing(run)
    value = {"source": run.name, "episodes": rows}
    publish(_listed(run, rows), lambda: value, as_json=as_json, output=output)


def _listed(run: "SystemRun", rows: Sequence[dict[str, Any]]) -> Iterator[RenderableType]:
    yield heading(run.name)
    yield provenance(run.head.provenance)
    yield Text()
    scored = any("turns" in row for row in rows)
    yield table(
        ("episode", "what is special", *(("turns", "score") if scored else ())),
        [
            (
                row["episode_id"],
                "; ".join(row["special"]) or "–",
                *(_turns_and_score(row) if scored else ()),
            )
            for row in rows
        ],
        left=2,
    )
    first = next((row["episode_id"] for row in rows if row["special"]), None)
    if first is not None:
        yield caption(f"Next: `tutorsim show RUN {first}`; parts of an id will do.")


def _turns_and_score(row: dict[str, Any]) -> tuple[str, str]:
    score = f"{number(row['first_score'])} → {number(row['last_score'])}"
    return str(row["turns"]), score


def _show_of(
    run: "SystemRun", wanted: str, turn: int | None, *, as_json: bool, output: Path | None
) -> None:
    """Show an episode of a system other than the panel."""
    from tutorsim.analysis.systems.system_view_and_opened_run import view_of
    from tutorsim.cli.terminal_documents import episode_shown
    from tutorsim.kernel.load_study_file import system_named

    trace = view_of(run.head.system).trace
    if trace is None or turn is not None:
        raise system_named(run.head.system).refusal("show" if trace is None else "show --turn")
    record = _find(run.episodes, wanted)
    told = trace(replace(run, with_messages=True), record)  # whoever has the folder has the words
    shown = chain(odd_ends(record), episode_shown(told))
    publish(shown, lambda: record.model_dump(mode="json"), as_json=as_json, output=output)


def _show_beside(
    run: Path, parent: Path, wanted: str, *, as_json: bool, output: Path | None
) -> None:
    from tutorsim.cli.one_episode_alone_or_beside_its_branch import futures

    check_logs(run, parent)
    head = read_run(run)
    _check_parent(head, read_run(parent), (run, parent))
    found = _named(read_episodes(run), wanted, origin_of)
    logged = _find(read_episodes(parent), origin_of(found[0]))
    draws = [episode for episode in found if episode.branch is not None]

    def value() -> dict[str, Any]:
        return {
            "logged": logged.model_dump(mode="json"),
            "draws": [draw.model_dump(mode="json") for draw in draws],
        }

    publish(futures(head, logged, draws), value, as_json=as_json, output=output)


def _check_parent(head: RunRecord, parent: RunRecord, paths: tuple[Path, Path]) -> None:
    branch = head.branch
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


def _named(episodes: Iterable[E], wanted: str, of: Callable[[E], str]) -> list[E]:
    """The episode with this id, else those of this name, else those of the only name that has an
    id with all these parts.

    `of`: the name that episodes share.
    """
    parts, ids = wanted.lower().split(), list[str]()
    same, alike = list[E](), list[E]()
    for one in episodes:
        if one.episode_id == wanted:
            return [one]
        ids.append(one.episode_id)
        if of(one) == wanted:
            same.append(one)
        if all(part in one.episode_id.lower() for part in parts):
            alike.append(one)
    if same or len({of(one) for one in alike}) == 1:
        return same or alike
    if alike:
        raise _ambiguous(wanted, [one.episode_id for one in alike])
    raise _unknown(wanted, ids)


def _find(episodes: Iterable[E], wanted: str) -> E:
    """The episode with this id, or the only one whose id has all these parts."""
    return _named(episodes, wanted, lambda one: one.episode_id)[0]


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
    close = sorted(ids, key=lambda name: _likeness(wanted, name), reverse=True)[:3]
    return UsageError(
        f"No episode matches {wanted!r}.",
        why=f"The run has {len(ids)}. The nearest:\n" + "\n".join(f"  {name}" for name in close),
        hint="Give a whole id, or parts of one: `tutorsim show RUN sciq novice ranked`.",
    )


def _likeness(wanted: str, name: str) -> float:
    """How many parts the id has, then how alike the two texts are."""
    import difflib  # of refusals alone

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
