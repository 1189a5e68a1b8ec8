"""`tutorsim show`: one of a run's episodes, alone or beside its continuations, or all by name."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.console import Group as Lines
from rich.text import Text

from tutorsim.analysis.pages.shown_episodes import Episode, EpisodePart, Grid, Group, Message, Run
from tutorsim.analysis.runs.branch_counts_turns_siblings_share import (
    branch_changes,
    draw_name,
    origin_of,
)
from tutorsim.cli.console_progress_and_safe_text import safe
from tutorsim.cli.open_run_or_recording_and_head_of_page import RunPath, check_logs, provenance
from tutorsim.cli.options_that_commands_share import check_episode_named, report_options
from tutorsim.cli.printed_prose_and_tables_and_published_files import (
    Prose,
    caption,
    heading,
    number,
    publish,
    styled,
    table,
)
from tutorsim.errors import UsageError
from tutorsim.records import EpisodeLine, RunRecord, odd_stops, read_lines, read_run, stop_counts
from tutorsim.records.how_replies_of_a_run_ended_and_odd_endings import WITHOUT_TEXT
from tutorsim.system_registry import load

if TYPE_CHECKING:
    from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun

# --- Command -------------------------------------------------------------------------------------

E = TypeVar("E", bound=EpisodeLine)

LISTED = 8
"""Names listed when the right one is in doubt."""


@click.command()
@click.argument("run", type=RunPath())
@click.argument("episode", nargs=-1)
@click.option("--turn", type=click.IntRange(min=1), help="Only this turn.")
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
    Otherwise it gives the episode's log record, a line of episodes.jsonl; of a panel:
      episode_id benchmark task_id persona condition repeat status failure
      attempts: [{turn text score score_rationale code code_passed verdict}]
      turns: [{turn proposals_initial reviews ballots_initial proposals_final
               ballots_final tie_round decision delivered}]
      turns_taken initial_correctness final_correctness success calls
    With --turn N: only turn N, and the attempts before and after it.
    With --beside PARENT, EPISODE is one draw, or the parent's episode for all its draws:
      logged, draws: log records
    """
    wanted = " ".join(episode)
    if beside is not None:
        if turn is not None:
            raise UsageError("--turn and --beside do not go together.", hint="Leave one out.")
        check_episode_named(episode, "--beside")
        _show_beside(run, beside, wanted, as_json=as_json, output=output)
        return
    if turn is not None:
        check_episode_named(episode, "--turn")
    check_logs(run)
    head = read_run(run)
    if not episode:
        _list(run, head, as_json=as_json, output=output)
        return
    trace = _trace(head)
    if turn is not None:
        _check_command(head, "show --turn")
    record = _find(_records(run, head), wanted)
    part = record if turn is None else _only(record, turn)
    told = replace(trace(record), parts=trace(part).parts)
    shown = _alone(head, record, told)
    publish(shown, lambda: part.model_dump(mode="json"), as_json=as_json, output=output)


def _trace(head: RunRecord) -> Callable[[Any], Episode]:
    """What tells an episode of a run; whoever has the run's folder has a person's words."""
    trace = load(head.system, "trace")
    if not trace:
        _check_command(head, "show")
    return partial(trace, Run(head, with_messages=True))


def _check_command(head: RunRecord, command: str) -> None:
    # To tell an episode needs no system.
    from tutorsim.kernel.load_and_check_study_file import system_named

    system_named(head.system).check_command(command)


def _records(folder: Path, head: RunRecord) -> Iterator[Any]:
    return read_lines(folder, load(head.system, "record"))


def _list(folder: Path, head: RunRecord, *, as_json: bool, output: Path | None) -> None:
    """The episodes of a run, and what is special about each."""
    from tutorsim.analysis.systems.system_view_opened_run_and_cost import open_run, view_for

    run = open_run(folder, head)
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


def _show_beside(
    run: Path, parent: Path, wanted: str, *, as_json: bool, output: Path | None
) -> None:
    check_logs(run, parent)
    head, of_parent = read_run(run), read_run(parent)
    _check_parent(head, of_parent, (run, parent))
    found = _named(_records(run, head), wanted, origin_of)
    logged = _find(_records(parent, of_parent), origin_of(found[0]))
    draws = [episode for episode in found if episode.branch is not None]

    def value() -> dict[str, Any]:
        return {
            "logged": logged.model_dump(mode="json"),
            "draws": [draw.model_dump(mode="json") for draw in draws],
        }

    publish(beside_shown(head, logged, draws), value, as_json=as_json, output=output)


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


def _only(record: Any, turn: int) -> Any:
    if turn not in [one.turn for one in record.turns]:
        there = ", ".join(str(one.turn) for one in record.turns) or "none"
        raise UsageError(f"{record.episode_id} has no turn {turn}.", why=f"Its turns: {there}.")
    return record.of_turn(turn)


# --- One episode ---------------------------------------------------------------------------------

Shown = Iterator[RenderableType]


def _alone(head: RunRecord, record: EpisodeLine, told: Episode) -> Shown:
    yield from _head(head, told)
    yield from _odd_ends(record)
    for part in told.parts:
        yield Text()
        yield from _part(part)


def _head(head: RunRecord, told: Episode) -> Shown:
    yield heading(told.id, told.outcome)
    yield provenance(head.provenance)
    if told.line not in ("", *dict(told.facts).values()):
        yield Prose(told.line)
    marks = (f"{name}: {', '.join(values)}" for name, values in told.marks.items() if values)
    yield caption(" · ".join(marks))
    yield from _facts(told.facts)


def _facts(facts: Iterable[tuple[str, str]]) -> Shown:
    for name, value in facts:
        yield Prose(styled(f"{name}: ", "bold") + safe(value), indent=2)


def _odd_ends(record: EpisodeLine) -> Shown:
    """The calls whose replies had no text or no end of their own."""
    silent = record.without_text or ()
    for odd in odd_stops(stop_counts([record])):
        keys = [
            call.key
            for call in record.calls
            if call.stage == odd.stage
            and odd.stop_reason == (WITHOUT_TEXT if call.key in silent else call.stop_reason)
        ]
        yield Prose(styled(f"{odd.words}: ", "bold yellow") + safe(", ".join(keys)))


def _part(part: EpisodePart) -> Shown:
    if isinstance(part, Message):
        yield from _message(part)
    elif isinstance(part, Grid):
        yield heading(part.title)
        if part.rows:
            yield table(part.columns, part.rows, left=len(part.columns))
        for note in part.notes:
            yield Prose(styled(note, "dim"), indent=2)
    else:
        yield heading(part.title if part.messages else f"━━ {part.title}", part.note)
        for message in part.messages:
            yield from _message(message, indent=2)


def _message(message: Message, indent: int = 0) -> Shown:
    note = f"  ({message.note})" if message.note else ""
    speaker = styled(message.speaker, "bold green" if message.chosen else "bold")
    yield Prose(speaker + styled(note, "dim"), indent=indent)
    text = message.text or "(no text)"
    yield Prose(styled(text, "dim") if message.quiet else text, indent=indent + 2)
    if message.aside:
        yield Prose(styled(message.aside, "dim"), indent=indent + 2)


# --- An episode beside its continuations ----------------------------------------------------------

NARROWEST = 38
"""Columns that a way on needs to stand beside another."""

Told = tuple[EpisodePart, ...]
"""A heading with what follows it, or what comes before the first heading."""


def beside_shown(head: RunRecord, record: Any, draws: Sequence[Any]) -> Shown:
    """What an episode and its continuations have in common, once, and then each way on.

    `head`: the branch's. `draws`: the continuations; none of an episode that the branch covers.
    """
    trace = _trace(head)
    named = {draw_name(draw.branch, head.branch): draw for draw in draws}
    ways = {name: trace(one) for name, one in {"logged": record, **named}.items()}
    logged = ways["logged"]
    changes = branch_changes(head.branch) if head.branch else ""
    yield from _head(head, logged)
    if not draws:
        yield Prose("Covered: the branch cannot change it, and keeps it as it was logged.")
    for name, told in [*ways.items()][1:]:
        yield Text()
        yield heading(name, f"{told.outcome}; {told.line}")
        yield from _facts(fact for fact in told.facts if fact not in logged.facts)
    rows = [*zip_longest(*(_by_heading(told) for told in ways.values()))]
    same = next((at for at, row in enumerate(rows) if len(set(row)) > 1), len(rows))
    yield Text()
    yield heading("━━ As logged", "the same in parent and branch")
    for row in rows[:same]:
        yield from _spoken(row[0], indent=2)
    if draws:
        yield Text()
        yield Prose(styled(f"━━ From here: re-simulated under {changes}", "bold yellow"))
        yield _Ways(tuple(ways), tuple(rows[same:]))
        yield caption("A draw is what might have followed, not what would have happened.")


def _by_heading(told: Episode) -> Iterator[Told]:
    parts: list[EpisodePart] = []
    for part in told.parts:
        if isinstance(part, Group) and not part.messages:
            yield tuple(parts)
            parts = []
        parts.append(part)
    yield tuple(parts)


def _spoken(told: Told, indent: int = 0) -> Shown:
    """What was said aloud, and what won, without drafts, reviews and ballots."""
    for part in told:
        if isinstance(part, Group) and not part.messages:
            yield Prose(heading(part.title, part.note).text, indent)
        elif isinstance(part, Message) and (part.chosen or not part.quiet):
            yield from _message(part, indent)


_ENDED = (Group("(ended)"),)


@dataclass(frozen=True)
class _Ways:
    """Ways on, side by side on a terminal with room for them, else one after the other."""

    names: tuple[str, ...]
    rows: tuple[tuple[Told | None, ...], ...]
    """What each way has from a heading to the next one; `None` where it had ended."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if console.is_terminal and options.max_width // len(self.names) >= NARROWEST:
            from rich.box import SIMPLE_HEAD
            from rich.table import Table

            shown = Table(box=SIMPLE_HEAD, show_lines=True, pad_edge=False, expand=True)
            for name in self.names:
                shown.add_column(styled(name, "bold"), ratio=1, overflow="fold")
            for row in self.rows:
                shown.add_row(*(Lines(*_spoken(told or _ENDED)) for told in row))
            yield shown
            return
        for name, column in zip(self.names, zip(*self.rows, strict=True), strict=True):
            yield Text()
            yield heading(name)
            for told in column:
                yield from _spoken(told or (), indent=2)
