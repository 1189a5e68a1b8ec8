"""Two futures of one episode: what was logged, beside what a branch re-simulated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from tutorsim.analysis.runs.branch_continuations import branch_changes
from tutorsim.analysis.runs.run_panels import taught_by
from tutorsim.cli.branch_notes import draw_name
from tutorsim.cli.console import safe
from tutorsim.cli.episode_trace import REASONS
from tutorsim.cli.output_elements import Prose, heading, number, provenance, styled, table
from tutorsim.records import Attempt, EpisodeRecord, RunRecord, Turn

__all__ = ["futures"]

Shown = Iterator[RenderableType]

NARROWEST = 38
"""Columns that a future needs to stand beside another."""


@dataclass(frozen=True)
class _Future:
    """One way on from the cursor."""

    name: str
    style: str
    episode: EpisodeRecord
    logged: EpisodeRecord

    def turn(self, number: int) -> Text | None:
        """A turn and the attempt that followed it; `None` where the episode had ended."""
        found = [turn for turn in self.episode.turns if turn.turn == number]
        if not found:
            return None
        attempts = [a for a in self.episode.attempts if a.turn == number]
        parts = [_decided(found[0]), *self._against_log(found[0]), *_delivered(found[0])]
        return Text("\n").join([*parts, *(line for a in attempts for line in _attempt(a))])

    def end(self) -> Text:
        """How it ended."""
        e = self.episode
        if e.failure is not None:
            return styled(f"failed at call {e.failure.key}", "bold red")
        word, style = ("success", "bold green") if e.success else ("no success", "bold")
        turns = "1 turn" if e.turns_taken == 1 else f"{e.turns_taken} turns"
        return styled(word, style) + safe(f" after {turns}, score {number(e.final_correctness)}")

    def _against_log(self, turn: Turn) -> Iterator[Text]:
        point = self.episode.branch
        if point is None or point.left != turn.turn:
            return
        same = [t.decision for t in self.logged.turns if t.turn == turn.turn]
        instead = f", logged {same[0].winner}" if same and same[0] else ""
        yield styled(f"leaves the logged path{instead}", "bold yellow")


def futures(run: RunRecord, logged: EpisodeRecord, draws: Sequence[EpisodeRecord]) -> Shown:
    """What an episode and its continuations share, once, and then each of its futures.

    Args:
        run: The branch's head.
        logged: The parent's episode.
        draws: Its continuations; none of an episode that the branch covers.
    """
    branch = run.branch
    point = draws[0].branch if draws else None
    yield heading(logged.episode_id, "logged beside re-simulated")
    yield provenance(run.provenance)
    if branch is not None:
        yield Prose(f"Branch of {branch.parent} under {branch_changes(branch)}.")
    yield Prose(
        f"Task {logged.task_id} of {logged.benchmark}, student {logged.persona}, "
        f"condition {logged.condition}{taught_by(logged, run)}."
    )
    if point is None:
        yield Prose("Covered: the branch cannot change it, and keeps it as it was logged.")
        yield from _common(logged, len(logged.attempts))
        return
    ways = [_Future("logged", "bold cyan", logged, logged)]
    for draw in draws:
        name = draw_name(draw.branch, branch) if draw.branch else draw.episode_id
        ways.append(_Future(name, "bold magenta", draw, logged))
    yield Text()
    yield _overview(ways)
    yield from _common(logged, point.turn)
    yield Text()
    changes = f" under {branch_changes(branch)}" if branch else ""
    yield Prose(styled(f"━━ From here: turn {point.turn} on, re-simulated{changes}", "bold yellow"))
    yield _Ways(tuple(ways), point.turn)
    yield Prose(styled("A draw is what might have followed, not what would have happened.", "dim"))


def _overview(ways: Sequence[_Future]) -> RenderableType:
    return table(
        ("future", "left the path", "scores", "ended"),
        [
            (
                styled(way.name, way.style),
                _left(way.episode),
                " → ".join(number(attempt.score) for attempt in way.episode.attempts),
                way.end(),
            )
            for way in ways
        ],
        left=4,
    )


def _left(episode: EpisodeRecord) -> str:
    if episode.branch is None:
        return "–"
    return "never" if episode.branch.left is None else f"turn {episode.branch.left}"


def _common(logged: EpisodeRecord, cursor: int) -> Shown:
    """Everything before the cursor, which all futures have from the log."""
    turns = {turn.turn: turn for turn in logged.turns}
    yield Text()
    yield heading("━━ As logged", "the same in parent and branch")
    for attempt in logged.attempts:
        if attempt.turn >= cursor:
            break
        if attempt.turn in turns:
            turn = turns[attempt.turn]
            for line in (_decided(turn), *_delivered(turn)):
                yield Prose(line, indent=2)
        for line in _attempt(attempt):
            yield Prose(line, indent=2)


@dataclass(frozen=True)
class _Ways:
    """The futures side by side on a terminal with room for them, else one after the other."""

    ways: tuple[_Future, ...]
    cursor: int

    @property
    def _turns(self) -> range:
        last = max((t.turn for way in self.ways for t in way.episode.turns), default=self.cursor)
        return range(self.cursor, last + 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width // len(self.ways)
        if console.is_terminal and room >= NARROWEST:
            yield self._beside()
        else:
            yield from self._stacked()

    def _beside(self) -> Table:
        shown = Table(box=box.SIMPLE_HEAD, show_lines=True, pad_edge=False, expand=True)
        for way in self.ways:
            shown.add_column(styled(way.name, way.style), ratio=1, overflow="fold")
        for turn in self._turns:
            shown.add_row(*(way.turn(turn) or safe("(ended)") for way in self.ways))
        shown.add_row(*(way.end() for way in self.ways))
        return shown

    def _stacked(self) -> Shown:
        for way in self.ways:
            yield Text()
            yield Prose(styled(way.name, way.style) + safe(f"  {way.episode.episode_id}"))
            for turn in self._turns:
                told = way.turn(turn)
                if told is not None:
                    yield Prose(told, indent=2)
            yield Prose(way.end(), indent=2)


def _decided(turn: Turn) -> Text:
    decision = turn.decision
    if decision is None:
        return styled(f"Turn {turn.turn}: a single tutor", "bold")
    vote = turn.ballots_final[0].rule if turn.ballots_final else "no"
    return styled(f"Turn {turn.turn}: {decision.winner} wins", "bold") + safe(
        f", {vote} vote, decided by {REASONS[decision.decided_by]}"
    )


def _delivered(turn: Turn) -> Iterator[Text]:
    yield styled("tutor: ", "dim") + safe(turn.delivered or "(no text)")


def _attempt(attempt: Attempt) -> Iterator[Text]:
    yield styled("student: ", "dim") + safe(attempt.text or "(empty)")
    tests = {True: ", tests pass", False: ", tests fail", None: ""}[attempt.code_passed]
    yield styled(f"score {number(attempt.score)}{tests}", "bold")
