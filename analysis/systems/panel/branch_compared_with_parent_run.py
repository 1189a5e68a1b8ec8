"""A branch beside the recording that it continues: logged, bounded and re-simulated."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.counting.turns_winner_step_and_first_to_final_shift import turn_table
from tutorsim.analysis.pages.cells_and_tables import Written, absent, bounds, dollars, number, plain
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, section, table
from tutorsim.analysis.pages.document import Answer, Document
from tutorsim.analysis.pages.words_and_safe_text import counted
from tutorsim.analysis.recount.same_voter_in_two_formats import (
    FormatInvariance,
    format_invariance_of_two,
    formats_section,
)
from tutorsim.analysis.runs.branch_counts_turns_siblings_share import branch_changes
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.intervals_and_tests import (
    SEED,
    UNKNOWN,
    Bounds,
    Estimate,
    Interval,
    NotEstimable,
    Unit,
    corrected,
    flips_by_task,
    interval_of_mean,
    known_draw,
    mean_bounds,
    mean_of,
    to_json,
)
from tutorsim.analysis.systems.contrasts_of_any_sides_in_words_and_of_runs import Contrast
from tutorsim.analysis.systems.panel.contrasts_of_conditions_or_two_runs import (
    conditions_document,
    runs_document,
)
from tutorsim.analysis.systems.panel.first_divergent_turns_and_success_bounds import (
    BOUNDED,
    Coverage,
    Divergence,
    diverge,
)
from tutorsim.analysis.systems.panel.student_outcomes import OUTCOME_NAMES, Outcome, outcome_of
from tutorsim.analysis.systems.system_view_opened_run_and_cost import (
    Prices,
    SystemRun,
    framed,
    usage,
)
from tutorsim.records import Branch, CallRecord, EpisodeRecord, Turn

# --- Extra calls ---------------------------------------------------------------------------------

_TIE: Final = ("tie_critique", "tie_vote")
_AFTER_DELIVERY: Final = ("student", "judge")


@dataclass(frozen=True)
class PaidCalls:
    """Calls of continuations: those that the parent's recording answered, and those paid for."""

    reused: int
    new: tuple[CallRecord, ...]
    prices: Prices | None

    @property
    def usage(self) -> dict[str, Any]:
        """What the calls paid for used."""
        return usage(self.new, self.prices)

    def to_json(self) -> dict[str, object]:
        paid = self.usage
        return {
            "reused": self.reused,
            "paid": paid["calls"],
            "input_tokens": paid["input_tokens"],
            "output_tokens": paid["output_tokens"],
            "models": {
                model: {"input": one["input_tokens"], "output": one["output_tokens"]}
                for model, one in paid["models"].items()
            },
        }


def paid_calls(
    pairs: Iterable[tuple[EpisodeRecord, EpisodeRecord]], prices: Prices | None = None
) -> PaidCalls:
    """Counts what continuations of logged episodes paid for: calls that the parent's recording does
    not answer."""
    made, new = 0, list[CallRecord]()
    for parent, draw in pairs:
        answered = {call.key for call in parent.calls}
        new += [call for call in draw.calls if not _taken_over(call, answered, parent, draw)]
        made += len(draw.calls)
    return PaidCalls(made - len(new), tuple(new), prices)


def _taken_over(
    call: CallRecord, answered: set[str], parent: EpisodeRecord, continuation: EpisodeRecord
) -> bool:
    turn = int(call.key.partition("/")[0])
    left = continuation.branch.left if continuation.branch else None
    is_past = left is not None and (turn > left or (turn == left and call.stage in _AFTER_DELIVERY))
    if is_past or call.key not in answered:
        return False
    held = [t and t.tie_round for t in (_turn(parent, turn), _turn(continuation, turn))]
    return call.stage not in _TIE or held[0] == held[1]


def _turn(episode: EpisodeRecord, turn: int) -> Turn | None:
    """A turn; `None` where the episode had ended before."""
    return next((t for t in episode.turns if t.turn == turn), None)


# --- Result --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BranchOutcome:
    """One outcome of one benchmark and condition."""

    outcome: Outcome
    logged: float | NotEstimable
    """Mean in the parent, all episodes."""
    before: Bounds | NotEstimable
    """The parent's worst-case bounds: every uncovered outcome is 0 or 1."""
    after: Bounds | NotEstimable
    """With continued episodes at the mean of their draws, what is still open at 0 or 1."""
    interval: Interval | NotEstimable
    """Interval of `after`, at 95 %, over tasks."""
    estimate: Estimate | NotEstimable
    """The re-simulated mean; only where nothing is open."""
    contrast: Contrast
    """The mean of the draws of each continued episode − logged, paired by episode; corrected over
    all rows of the comparison."""

    def to_json(self) -> dict[str, object]:
        own, of = dict(vars(self)), self.contrast
        del own["contrast"]
        means = {"continued_logged": of.first_mean, "continued_resimulated": of.second_mean}
        return {**to_json(own | means | of.values("difference", "test", "p_holm"))}


@dataclass(frozen=True)
class Move:
    """How often draws of a cell left the path in one way."""

    turn: int
    before: str
    """The parent's winner of that turn."""
    after: str
    draws: int


@dataclass(frozen=True)
class BranchCell:
    """One benchmark and condition."""

    benchmark: str
    condition: str
    episodes: int
    """Episodes with a panel, complete in the parent."""
    covered: int
    """The alternative cannot change them."""
    continued: int
    """Episodes with at least one complete draw."""
    left_out: int
    """Neither covered nor continued: left out of the branch, or every draw failed."""
    draws: int
    """Complete draws."""
    failed: int
    """Draws cut short by a failed call."""
    left: float | NotEstimable
    """Share of continued episodes that left the logged path: mean of the shares of their draws."""
    moves: tuple[Move, ...]
    """Where the draws left it, and for which role; most frequent first."""
    calls: PaidCalls
    outcomes: tuple[BranchOutcome, ...]


@dataclass(frozen=True)
class BranchComparison:
    """A branch and its parent."""

    parent: str
    child: str
    changes: str
    """What the branch changes, in words."""
    continuations: int
    """Draws asked for, of each episode."""
    cells: tuple[BranchCell, ...]
    paths: tuple[dict[str, Any], ...]
    """Each logged episode that the alternative may change, as `path_of` gives it."""
    caption: str
    format_invariance: Mapping[str, FormatInvariance | NotEstimable]
    """Format invariance by place, from `format_invariance_of_two`."""


# --- Episode pairs -------------------------------------------------------------------------------

_SINGLE = NotEstimable("a single draw is not what would have happened")


@dataclass(frozen=True)
class Pair:
    """A parent's episode and its draws."""

    logged: EpisodeRecord
    covered: bool
    draws: tuple[EpisodeRecord, ...]
    """Complete continuations, in order."""
    failed: tuple[EpisodeRecord, ...]
    """Continuations cut short by a failed call."""

    def unit(self, outcome: Outcome, continuations: int) -> Unit:
        """The pair's outcome: logged where it is covered, else its draws, missing ones unknown.

        `continuations`: draws asked for.
        """
        drawn = (self.logged,) if self.covered else self.draws
        draws = [known_draw(outcome_of(one, outcome)) for one in drawn]
        missing = [] if self.covered else [UNKNOWN] * (continuations - len(draws))
        return Unit(self.logged.task_id, (*draws, *missing))

    def gap(self, outcome: Outcome) -> tuple[float, Unit] | None:
        """Logged, and draws − logged; `None` where the branch or the log does not say."""
        logged, known = outcome_of(self.logged, outcome), self.known(outcome)
        if self.covered or logged is None or not known:
            return None
        gaps = tuple(known_draw(value - logged) for value in known)
        return logged, Unit(self.logged.task_id, gaps)

    def known(self, outcome: Outcome) -> list[float]:
        """The outcome of every draw that has one."""
        values = (outcome_of(draw, outcome) for draw in self.draws)
        return [value for value in values if value is not None]

    @property
    def left(self) -> tuple[int | None, ...]:
        """The turn at which each draw left the logged path."""
        return tuple(draw.branch.left if draw.branch else None for draw in self.draws)


def pairs_of(found: Divergence, parent: Source, child: Source) -> list[Pair]:
    """The parent's episodes with a panel, in their order."""
    logged = {e.episode_id: e for e in parent.episodes}
    draws = by_key((e.branch.parent_episode, e) for e in child.episodes if e.branch is not None)
    return [
        Pair(
            logged[name],
            path == "covered",
            tuple(e for e in draws.get(name, []) if e.status == "complete"),
            tuple(e for e in draws.get(name, []) if e.status == "failed"),
        )
        for name, path in found.episodes.select("episode_id", "path").iter_rows()
    ]


def moves(pairs: Sequence[Pair]) -> tuple[Move, ...]:
    """Where the draws left the path and for which role, most frequent first."""
    counts = Counter(
        (left, _winner(pair.logged, left), _winner(draw, left))
        for pair in pairs
        for draw, left in zip(pair.draws, pair.left, strict=True)
        if left is not None
    )
    ordered = sorted(counts.items(), key=lambda found: (-found[1], found[0]))
    return tuple(Move(*move, draws) for move, draws in ordered)


def path_of(pair: Pair, branch: Branch) -> dict[str, Any]:
    """One episode that the alternative may change, draw by draw.

    `turn` is the first that the alternative decides, `None` where the branch left the episode out;
    `continuations` are the complete ones; `left` is the turn at which each left the logged path,
    `None` where it never did. Outcome → value in `logged`, value of each draw in `draws`, and mean
    of the draws, from two on, in `resimulated`.
    """
    e = pair.logged
    taken_up, outcomes = branch.episodes.get(e.episode_id), _names(e.benchmark)
    return {
        "episode_id": e.episode_id,
        "benchmark": e.benchmark,
        "condition": e.condition,
        "turn": taken_up.turn if taken_up else None,
        "continuations": tuple(draw.episode_id for draw in pair.draws),
        "left": pair.left,
        "logged": {name: outcome_of(e, name) for name in outcomes},
        "draws": {name: tuple(outcome_of(d, name) for d in pair.draws) for name in outcomes},
        "resimulated": {
            name: _SINGLE if len(known) == 1 else mean_of(known, "no draw with this outcome")
            for name in outcomes
            for known in [pair.known(name)]
        },
    }


def _winner(episode: EpisodeRecord, turn: int) -> str:
    """Whom a turn delivered; empty where the episode had ended before."""
    found = _turn(episode, turn)
    return found.decision.winner if found and found.decision else ""


# --- Comparison ----------------------------------------------------------------------------------

_NOTHING: Final = NotEstimable("no episode with a logged outcome")
_NONE: Final = "no continued episode"
_IN_BOTH: Final = NotEstimable("no continued episode with this outcome in both")


def compare_branch(parent: Source, child: Source, prices: Prices | None = None) -> BranchComparison:
    """Set a branch beside its parent, outcome by outcome and episode by episode."""
    branch = child.run.branch if child.run else None
    assert branch is not None
    # the logged winner where nothing can change it; elsewhere nothing is settled
    covered = turn_table(parent).winners().filter(pl.col("episode_id").is_in(branch.covered))
    settled = covered.select("episode_id", "turn", winners=pl.concat_list("winner"))
    found = diverge(parent, settled, question="The branch")
    pairs = pairs_of(found, parent, child)
    cells = [_cell(coverage, pairs, branch, prices) for coverage in found.coverage]
    return BranchComparison(
        parent=parent.name,
        child=child.name,
        changes=branch_changes(branch),
        continuations=branch.continuations,
        cells=_corrected(cells),
        paths=tuple(path_of(pair, branch) for pair in pairs if not pair.covered),
        caption=(
            f"Parent: {parent.provenance}. Branch: {child.provenance}. Logged: as the parent has "
            "it. Bounds: every uncovered outcome 0 or 1. Re-simulated: covered outcomes as "
            "logged, and the mean draw of each continued episode."
        ),
        format_invariance=format_invariance_of_two(parent, child),
    )


def _names(benchmark: str) -> tuple[Outcome, ...]:
    return BOUNDED if benchmark == "humaneval" else BOUNDED[:2]


def _cell(
    coverage: Coverage, pairs: Sequence[Pair], branch: Branch, prices: Prices | None
) -> BranchCell:
    benchmark, condition = str(coverage.benchmark), str(coverage.condition)
    mine = [p for p in pairs if (p.logged.benchmark, p.logged.condition) == (benchmark, condition)]
    continued = [p for p in mine if p.draws and not p.covered]
    return BranchCell(
        benchmark=benchmark,
        condition=condition,
        episodes=coverage.episodes,
        covered=coverage.covered,
        continued=len(continued),
        left_out=coverage.episodes - coverage.covered - len(continued),
        draws=sum(len(p.draws) for p in continued),
        failed=sum(len(p.failed) for p in mine),
        left=mean_of(
            [sum(turn is not None for turn in p.left) / len(p.left) for p in continued], _NONE
        ),
        moves=moves(continued),
        calls=paid_calls(
            ((p.logged, draw) for p in mine for draw in (*p.draws, *p.failed)), prices
        ),
        outcomes=tuple(_outcome(o, coverage, mine, branch) for o in _names(benchmark)),
    )


def _outcome(
    name: Outcome, coverage: Coverage, pairs: Sequence[Pair], branch: Branch
) -> BranchOutcome:
    paired = [found for pair in pairs if (found := pair.gap(name)) is not None]
    gaps = [gap for _, gap in paired]
    after: Bounds | NotEstimable = _NOTHING
    interval: Interval | NotEstimable = _NOTHING
    mean: Estimate | NotEstimable = _NOTHING
    if isinstance(coverage.bounds[name], Bounds):
        units = [pair.unit(name, branch.continuations) for pair in pairs]
        after, interval = mean_bounds(units), interval_of_mean(units)
        open_ = sum(unit.is_open for unit in units)
        mean = Estimate(after.low, after.n, interval)
        if open_:
            mean = NotEstimable(f"{open_} of {after.n} episodes are still open")
    difference: Estimate | NotEstimable = _IN_BOTH
    if gaps:
        within = interval_of_mean(gaps, ends=(-1, 1))
        difference = Estimate(mean_bounds(gaps).low, len(gaps), within)
    return BranchOutcome(
        outcome=name,
        logged=coverage.logged[name],
        before=coverage.bounds[name],
        after=after,
        interval=interval,
        estimate=mean,
        contrast=Contrast(
            *("logged", "re-simulated", difference),
            flips_by_task([gap.low for gap in gaps], [gap.task for gap in gaps], seed=SEED),
            measured=f"in {OUTCOME_NAMES[name]} ({coverage.benchmark})",
            repeats=([[one] for one, _ in paired], [[one + gap.low] for one, gap in paired]),
        ),
    )


def _corrected(cells: Sequence[BranchCell]) -> tuple[BranchCell, ...]:
    """Holm's correction over all rows."""
    found = iter(corrected([row.contrast for cell in cells for row in cell.outcomes]))
    return tuple(
        replace(cell, outcomes=tuple(replace(row, contrast=next(found)) for row in cell.outcomes))
        for cell in cells
    )


# --- Tables and document --------------------------------------------------------------------------


def _draws(of: BranchComparison) -> str:
    return counted(of.continuations, "draw")


@table("branch", "What the branch takes up", secondary=("draws failed",), draws=_draws)
def episodes_table(of: BranchComparison) -> Iterator[Row]:
    """{draws} of each episode taken up. Episodes: with a panel, complete in the parent. Taken up:
    re-simulated, with a complete draw. Open: neither covered nor taken up. Left path: share of the
    episodes taken up that another winner led away, by their draws.{absent}"""
    for cell in of.cells:
        yield {
            "benchmark": cell.benchmark,
            "condition": cell.condition,
            "episodes": cell.episodes,
            "covered": cell.covered,
            "taken up": cell.continued,
            "open": cell.left_out,
            "draws": cell.draws,
            "draws failed": cell.failed,
            "left path": plain(cell.left),
        }


@table(
    "branch-outcomes",
    "Outcomes of all episodes with a panel",
    secondary=("width", "width left"),
    spread=lambda of: (
        "a single draw of an episode is not what would have happened"
        if of.continuations == 1
        else "the spread between draws of an episode is part of it"
    ),
)
def outcomes_table(of: BranchComparison) -> Iterator[Row]:
    """Logged: the parent. Bounds: the parent's, every uncovered outcome 0 or 1. Re-simulated:
    covered outcomes as logged, and the mean draw of each episode taken up; what is left open is 0
    or 1. In brackets: a 95 % interval over tasks; {spread}. Width: of the bounds, and of what is
    left."""
    rows = [(cell, row) for cell in of.cells for row in cell.outcomes]
    for outcome in dict.fromkeys(row.outcome for _, row in rows):
        for cell, row in rows:
            if row.outcome == outcome:
                yield {
                    "benchmark": cell.benchmark,
                    "condition": cell.condition,
                    "outcome": OUTCOME_NAMES[row.outcome],
                    "logged": plain(row.logged),
                    "bounds": bounds(row.before),
                    "re-simulated": _resimulated_cell(row),
                    "width": _width(row.before),
                    "width left": _width(row.after),
                }


def _resimulated_cell(row: BranchOutcome) -> Written:
    if isinstance(row.after, NotEstimable) or not isinstance(row.interval, Interval):
        return bounds(row.after)
    told = f"{bounds(row.after)} [{row.interval.low:.2f}, {row.interval.high:.2f}]"
    exact = isinstance(row.estimate, Estimate)
    return Written(told, row.estimate if exact else row.after)


def _width(found: Bounds | NotEstimable) -> Written:
    return plain(found if isinstance(found, NotEstimable) else found.high - found.low)


@table(
    "branch-differences",
    "Re-simulated − logged, over the episodes taken up",
    absent=lambda of: absent(
        row.contrast.difference for cell in of.cells if cell.continued for row in cell.outcomes
    ),
)
def branch_differences_table(of: BranchComparison) -> Iterator[Row]:
    """Paired; mean draw: re-simulated. p: signs flipped by task, exact unless marked ~, with Holm's
    correction over all rows.{absent}"""
    for cell in of.cells:
        for row in cell.outcomes if cell.continued else ():
            yield {
                "benchmark": cell.benchmark,
                "condition": cell.condition,
                "outcome": OUTCOME_NAMES[row.outcome],
                "pairs": row.contrast.pairs,
                "logged": plain(row.contrast.first_mean),
                "mean draw": plain(row.contrast.second_mean),
                **row.contrast.cells("difference", "p"),
            }


@table(
    "branch-moves",
    "Where the draws left the logged path",
    ways=lambda of: sum(len(cell.moves) for cell in of.cells),
)
def moves_table(of: BranchComparison) -> Iterator[Row]:
    """{ways} ways, those of most draws first."""
    rows = [(cell, move) for cell in of.cells for move in cell.moves]
    for cell, move in sorted(rows, key=lambda row: -row[1].draws):
        yield {
            "benchmark": cell.benchmark,
            "condition": cell.condition,
            "logged winner": move.before or "–",
            "re-simulated winner": move.after or "–",
            "turn": move.turn,
            "draws": move.draws,
        }


@table("branch-episodes", "Success of the episodes taken up")
def taken_up_table(of: BranchComparison) -> Iterator[Row]:
    """Logged, and re-simulated: each draw, and their mean, which a single draw does not give. Both
    futures of one: `tutorsim show NEW EPISODE --beside PARENT`."""
    for path in of.paths:
        if path["continuations"]:
            yield {
                "episode": path["episode_id"],
                "from turn": path["turn"],
                "logged": number(path["logged"]["success"], digits=0),
                "draws": ", ".join(number(one, digits=0) for one in path["draws"]["success"]),
                "mean draw": plain(path["resimulated"]["success"]),
            }


@table(
    "branch-calls",
    "Calls of the episodes taken up",
    day=lambda of: of.cells[0].calls.usage["prices_as_of"],
)
def calls_table(of: BranchComparison) -> Iterator[Row]:
    """Taken over: answered by the parent's recording. Paid for: the others; where the logs leave it
    in doubt a call counts as paid for. Tokens and US$, at list prices of {day}: of the calls paid
    for."""
    for cell in of.cells:
        paid = cell.calls.usage
        yield {
            "benchmark": cell.benchmark,
            "condition": cell.condition,
            "taken over": cell.calls.reused,
            "paid for": paid["calls"],
            "tokens in": paid["input_tokens"],
            "tokens out": paid["output_tokens"],
            "US$": dollars(paid["cost_usd"]),
        }


_BESIDE: Final = section(
    "branch",
    "The branch beside its parent",
    lambda of: of.caption,
    episodes_table,
    outcomes_table,
    branch_differences_table,
    moves_table,
    taken_up_table,
    calls_table,
)


def compared(first: SystemRun, second: SystemRun | None) -> Document:
    """Two runs, a branch and its parent, or the conditions of a run."""
    if second is None:
        return conditions_document(first)
    branch = second.head.branch
    if branch is not None and branch.parent_recording == first.head.recording_digest:
        return branch_document(first, second)
    return runs_document(first, second)


def branch_document(parent: SystemRun, child: SystemRun) -> Document:
    """A branch beside its parent: logged, bounded and re-simulated figures."""
    found = compare_branch(parent.source, child.source, child.asked.prices)
    sections = _BESIDE(found), formats_section(found.format_invariance)
    taken_up = sum(cell.continued for cell in found.cells)
    covered = sum(cell.covered for cell in found.cells)
    episodes = sum(cell.episodes for cell in found.cells)
    return framed(
        child,
        summary=f"{child.name}, a branch of {parent.name} under {found.changes}: "
        f"{_draws(found)} of each episode taken up.",
        answers=(
            Answer(
                "What does the branch leave as it was logged?",
                f"{covered:,} of {counted(episodes, 'episode')} with a panel",
                f"Of the others {taken_up:,} were taken up, and {episodes - covered - taken_up:,} "
                "left open.",
                "branch",
            ),
        ),
        sections=sections,
        brief=tuple(table for section in sections for table in section.tables),
        values=lambda: vars(found),
    )
