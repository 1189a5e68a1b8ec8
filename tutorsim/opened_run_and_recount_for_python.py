"""A run opened for questions: its tables as frames, its recount, its contrasts and its report.

`tutorsim.open` takes what the commands take: a run folder, a recording's folder, or ballots from
elsewhere. Nothing is written but by `Run.report`.
"""

import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol

import polars as pl

from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import Source, open_frame
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS, Approvals
from tutorsim.analysis.pages.document import Document
from tutorsim.analysis.pages.document_as_html_with_packed_episodes import to_html
from tutorsim.analysis.pages.document_as_markdown import to_markdown
from tutorsim.analysis.pages.words_and_safe_text import counted
from tutorsim.analysis.ratings.item_scores_and_agreement_of_raters_and_judge import ratings_table
from tutorsim.analysis.recount import recount
from tutorsim.analysis.recount.first_screen_what_was_read_and_verdict import recount_verdict
from tutorsim.analysis.recount.recount_plan_and_own_rules import (
    RankScores,
    ScoreFunction,
    refuse_shadowed,
)
from tutorsim.analysis.recount.result_models import Interval, RecountResult, RuleRow
from tutorsim.analysis.recount.tables import turns_table
from tutorsim.analysis.runs.write_export_and_preflib_files import RATINGS, with_provenance
from tutorsim.analysis.systems.any_summary_or_report_reply_endings_noise_floor import document_of
from tutorsim.analysis.systems.system_view_opened_run_and_cost import (
    Asked,
    Ballots,
    Opened,
    SystemRun,
    opened,
    view_for,
)
from tutorsim.errors import FolderError, UsageError
from tutorsim.kernel.load_and_check_study_file import system_named
from tutorsim.runner.find_and_check_recording import is_recording
from tutorsim.runner.replay_into_run_folder_in_several_processes import replay_into

_PAGES: Final = (".html", ".md")


def open_path(path: "str | Path | pl.DataFrame | _Pandas", **hints: Any) -> "Run":
    """Open a run folder, a recording, or ballots from elsewhere.

    A recording is replayed first, offline, into a temporary folder that goes with the `Run`.

    Args:
        path: A run folder; a recording's folder; a file of ballots, or a folder of such files; or a
            `DataFrame` of ballots, of polars or pandas.
        hints: Fields of `tutorsim.analysis.ballots.reading_options_and_column_words.Hints`, for
            ballots that do not say everything themselves, such as `budget=25` or
            `columns={"voter": "Wähler"}`.

    Raises:
        LogError: If a run folder is damaged.
        RecordingError: If a recording is damaged.
        ReplayError: If it does not hold what its study asks.
        BallotFileError: If a file holds no ballots.
        UsageError: If there is no such path, or a hint is none.
    """
    unknown = sorted(set(hints) - set(Hints.__dataclass_fields__))
    if unknown:
        raise UsageError(
            f"{unknown[0]!r} is not among the hints on how to read ballots.",
            hint=f"Hints are {', '.join(Hints.__dataclass_fields__)}.",
        )
    if not isinstance(path, str | Path):
        source = open_frame(_frame_of(path), hints=Hints(**hints))
        return Run(Path(source.name), Hints(**hints), source)
    path = Path(path)
    if not path.exists():
        raise UsageError(
            f"{path} does not exist.",
            hint="Give a run folder, a recording's folder, or a file of ballots.",
        )
    if not is_recording(path):
        run = Run(path, Hints(**hints))
        _ = run.system  # a file that holds no ballots is refused now
        return run
    folder = tempfile.TemporaryDirectory(prefix="tutorsim-")
    run = Run(replay_into(path, Path(folder.name)), Hints(**hints))
    weakref.finalize(run, folder.cleanup)
    return run


def _as_typed(value: object) -> str:
    """A setting's value as the command line has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Pandas(Protocol):
    """What is asked of a frame of pandas, which need not be installed."""

    columns: Any

    def __getitem__(self, name: Any) -> Any: ...


def _frame_of(given: "pl.DataFrame | _Pandas") -> pl.DataFrame:
    """The rows as polars holds them, a number that is none as missing; else refused."""
    if isinstance(given, pl.DataFrame):
        return given
    if isinstance(given, pl.LazyFrame):
        return given.collect()
    if not hasattr(given, "iloc") or not hasattr(given, "columns"):
        raise UsageError(
            f"A value of the type {type(given).__name__} cannot be opened.",
            why="Neither a run nor ballots are in it.",
            hint="Give a path, or a DataFrame of polars or pandas.",
        )
    columns = {str(name): list(given[name]) for name in given.columns}
    return pl.DataFrame(
        {
            name: [None if cell is None or cell != cell else cell for cell in cells]
            for name, cells in columns.items()
        },
        strict=False,
    )


class Run:
    """A run, or ballots from elsewhere, with the questions that the commands answer.

    Frames are `polars.DataFrame`s with the columns of `tutorsim export`.
    """

    def __init__(self, path: Path, hints: Hints, source: Source | None = None) -> None:
        self._path = path
        self._hints = hints
        if source is not None:
            self._opened = Ballots(source)

    @cached_property
    def _opened(self) -> Opened:
        """The run with its records, or the ballots."""
        return opened(self._path, hints=self._hints)

    @property
    def source(self) -> Source:
        """The ballots and episodes, as the functions of `tutorsim.analysis` take them."""
        return self._opened.source

    @property
    def name(self) -> str:
        """Name of the folder or file."""
        return self._path.resolve().name

    @property
    def system(self) -> str | None:
        """Name of the system that was run; `None` for ballots from elsewhere."""
        return None if isinstance(self._opened, Ballots) else self._opened.head.system

    @property
    def provenance(self) -> str:
        """What answered the calls."""
        return self._opened.provenance

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that `table` gives."""
        run = self._opened
        rated = (RATINGS,) if isinstance(run, SystemRun) and run.ratings else ()
        return (*view_for(run).tables, *rated)

    def table(self, name: str) -> pl.DataFrame:
        """One table, as `tutorsim export` writes it.

        Raises:
            UsageError: If there is no such table.
        """
        if name not in self.tables:
            raise UsageError(
                f"{self.name} has no table {name!r}.", hint=f"It has {', '.join(self.tables)}."
            )
        if isinstance(self._opened, Ballots):
            return self.source.ballots
        run = self._opened
        if name == RATINGS:
            return ratings_table(run)
        return view_for(run).tables[name].frame(run.episodes, run.head)

    @property
    def ballots(self) -> pl.DataFrame:
        """One row per ballot and candidate."""
        return self.table("ballots")

    @property
    def turns(self) -> pl.DataFrame:
        """One row per turn."""
        return self.table("turns")

    @property
    def episodes(self) -> pl.DataFrame:
        """One row per episode."""
        return self.table("episodes")

    @property
    def calls(self) -> pl.DataFrame:
        """One row per call of a model."""
        return self.table("calls")

    @property
    def outcomes(self) -> pl.DataFrame:
        """What would have come of each episode: of debates under each protocol, of lessons at each
        event under each threshold, of labelled replies under each reading and rule.

        Raises:
            UsageError: If the system's episodes cannot be recounted whole; of a panel,
                `recount().turns` has a row for each turn and rule.
        """
        return self.outcomes_under()

    def outcomes_under(self, **settings: Sequence[object]) -> pl.DataFrame:
        """The table `outcomes` under other settings: `run.outcomes_under(vote_from=[1, 2, 3])`.

        Args:
            settings: What `tutorsim recount --set KEY=VALUE,…` takes; every combination is counted.

        Raises:
            UsageError: If a setting is unknown, or the system's episodes cannot be recounted whole.
        """
        run = self._opened
        under = view_for(run).outcomes_under
        if isinstance(run, Ballots) or under is None:
            raise UsageError(
                f"{self.name} has no outcomes under other settings.",
                why=f"It is {self._kind()}, whose turns are counted alone.",
                hint="Ask `recount().turns`: a row for each turn and rule.",
            )
        asked = {key: tuple(map(_as_typed, values)) for key, values in settings.items()}
        return under(asked).frame(run.episodes, run.head)

    def recount(
        self,
        targets: Sequence[str] = TARGETS,
        *,
        rules: Mapping[str, RankScores | ScoreFunction] = MappingProxyType({}),
        exempt: Sequence[int] = (0, 1, 2),
        approves: str | tuple[int, int | None] | None = None,
        fallback_order: Sequence[str] | None = None,
    ) -> "Recount":
        """Ask of every logged turn what other orders and rules would have chosen.

        Own rules are counted beside the targets, which may be none: `recount([], rules=…)`.
        `tutorsim.RankScores` gives scores by rank, and is answered as every target is. A function
        `f(ballots)` gets the `tutorsim.CastBallots` of one vote and returns `{candidate: score}`;
        the largest score wins. Nothing else is known of it, so that it has a point winner and no
        bounds (`answers` is "point only"). It is asked once about each different vote, first votes
        too; equal scores are a tie, so give whole numbers or fractions where that matters.

        Args:
            targets: Rules to count under.
            rules: Own rules, by name.
            exempt: Numbers of voters that may have cast any ballot at all.
            approves: How many candidates each voter approves of under `approval`: `"1..2"`, or
                `(1, 2)`, with `None` for any number. By default any number, and
                `Recount.approvals` has the answer along some.
            fallback_order: Order that decides ties, in place of the logged one.

        Raises:
            UsageError: If a target, an own rule or an order does not fit, an own function fails or
                returns no scores, or nobody voted.
        """
        run = self._opened
        if isinstance(run, SystemRun) and run.head.voting is None:
            raise system_named(run.head.system).refusal("recount")
        if targets is not TARGETS:
            refuse_shadowed(targets)
        asked = recount(
            self.source,
            targets=targets,
            rules=rules,
            exempt=exempt,
            approves=Approvals.read(approves)
            if isinstance(approves, str)
            else approves and Approvals(*approves),
            order=fallback_order,
        )
        return Recount(asked, self.source.answered_by)

    def contrasts(self, outcomes: Sequence[str] = ("success", "final_score")) -> pl.DataFrame:
        """Conditions against one another, paired on task and persona, with Holm's correction.

        Args:
            outcomes: Names of outcomes.

        Returns:
            One row per benchmark, outcome and two conditions: pairs, mean difference (second
            minus first) with its 95 % interval, p as tested and corrected, and the smallest
            difference that these pairs would show. Null is "not estimable".

        Raises:
            UsageError: If it is no run of tutoring panels.
        """
        run, contrasts = self._opened, view_for(self._opened).contrasts
        if isinstance(run, Ballots) or contrasts is None:
            raise UsageError(
                f"{self.name} has no conditions of tutoring panels to compare.",
                why=f"It is {self._kind()}.",
                hint="Compare two of its runs with `tutorsim compare`.",
            )
        return contrasts(run, outcomes)

    def report(self, path: str | Path, *, episodes: Sequence[str] = ()) -> Path:
        """Write the report as one file, `.html` or `.md`.

        Args:
            path: Where to; folders are made.
            episodes: Ids of the episodes to show message by message; else all are.

        Raises:
            UsageError: If the ending is another, or an episode is unknown.
            FolderError: If the file cannot be written.
        """
        path = Path(path)
        if path.suffix not in _PAGES:
            raise UsageError(
                f"{path} has an ending that says no known format.",
                hint=f"Use {' or '.join(_PAGES)}.",
            )
        document = self._document(episodes)
        text = to_html(document) if path.suffix == ".html" else to_markdown(document)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise FolderError(
                f"{path} cannot be written.", why=str(error.strerror or error)
            ) from error
        return path

    def _document(self, episodes: Sequence[str]) -> Document:
        run = replace(self._opened, asked=Asked(episodes=tuple(episodes)))
        made = document_of(run, brief=False)
        if isinstance(run, SystemRun) and (made is None or (episodes and not made.episodes)):
            command = "report" if made is None else "report --episodes"
            raise system_named(run.head.system).refusal(command)
        assert made is not None
        return made

    def __repr__(self) -> str:
        run = self._opened
        episodes = () if isinstance(run, Ballots) else run.episodes
        size = f", {counted(len(episodes), 'episode')}" if episodes else ""
        return f"<{self.name}: {self._kind()}{size}; {self.provenance}>"

    def _kind(self) -> str:
        return "ballots" if self.system is None else f"a run of the system {self.system}"

    def _repr_html_(self) -> str:
        made = document_of(self._opened, brief=True)
        answers = made.answers if made else ()
        said = (f"{one.question} {one.headline}. {one.detail}".strip() for one in answers)
        return _paragraphs([repr(self).strip("<>"), *said])


class Recount:
    """What other orders and rules would have chosen, turn by turn, as frames."""

    def __init__(self, result: RecountResult, answered_by: Sequence[str] = ()) -> None:
        self._answered_by: Final = "; ".join(answered_by)
        self.result: Final = result
        """Everything, as `tutorsim recount --json` writes it."""

    @property
    def turns(self) -> pl.DataFrame:
        """What `tutorsim recount --turns` writes: one row per turn, rule, reading of ties and
        number of exempt voters.

        Among the columns are `possible_winners`, `necessary_winner` and `point_winner`;
        `fallback_order` is null where a tie stays a tie.
        """
        return with_provenance(turns_table(self.result.per_turn), self._answered_by)

    @cached_property
    def rules(self) -> pl.DataFrame:
        """One row per logged rule, target, reading of ties and number of exempt voters.

        `agreement_…` counts turns that keep the logged winner: certain, under the named
        projection, possible. `answers` is "bounds", or "point only" for an own function of ballots:
        then only the projection's column is filled.
        """
        return pl.DataFrame([_rule_row(row) for row in self.result.rules], _RULES, orient="row")

    @cached_property
    def approvals(self) -> pl.DataFrame:
        """Approval voting by how many candidates each voter approves of: the columns of `rules`
        with `least` and `most`, null for any number. Empty where approval is not asked about."""
        rows = [(*_rule_row(row), *(row.approves or ())) for row in self.result.approvals]
        return pl.DataFrame(rows, {**_RULES, "least": pl.Int64, "most": pl.Int64}, orient="row")

    @cached_property
    def wins(self) -> pl.DataFrame:
        """One row as in `rules` and candidate: turns won for certain, under the projection,
        possibly; under an own function of ballots only the middle one is known."""
        return pl.DataFrame(
            [
                (*_question(row), candidate, *_ends(row, interval))
                for row in self.result.rules
                for candidate, interval in row.wins.items()
            ],
            schema=_WINS,
            orient="row",
        )

    @property
    def verdict(self) -> tuple[str, ...]:
        """What the order decided, what other rules surely keep, what the ballots leave open."""
        return recount_verdict(self.result)

    def __repr__(self) -> str:
        rules = len({row.target for row in self.result.rules})
        about = f"{counted(self.result.turns, 'turn')} under {counted(rules, 'rule')}"
        return f"<Recount of {self.result.source}: {about}; {self.result.provenance}>"

    def _repr_html_(self) -> str:
        table = self.rules._repr_html_()
        return _paragraphs([repr(self).strip("<>"), *self.verdict]) + table


_QUESTION: Final = {
    "logged_rule": pl.String,
    "target": pl.String,
    "ties": pl.String,
    "exempt": pl.Int64,
}
_RULES: Final = {
    **_QUESTION,
    "turns": pl.Int64,
    "identified": pl.Int64,
    "not_settled": pl.Int64,
    "agreement_certain": pl.Int64,
    "agreement_point": pl.Int64,
    "agreement_possible": pl.Int64,
    "answers": pl.String,
}
_WINS: Final = {
    **_QUESTION,
    "candidate": pl.String,
    "certain": pl.Int64,
    "point": pl.Int64,
    "possible": pl.Int64,
}


def _question(row: RuleRow) -> tuple[str, str, str, int]:
    return row.logged_protocol, row.target, row.reading, row.exempt


def _rule_row(row: RuleRow) -> tuple[object, ...]:
    agreement = _ends(row, row.agreement)
    if row.point_only:
        return *_question(row), row.turns, None, None, *agreement, "point only"
    return *_question(row), row.turns, row.identified, row.not_settled, *agreement, "bounds"


def _ends(row: RuleRow, interval: Interval) -> tuple[int | None, int | None, int | None]:
    if row.point_only:
        return None, interval.point, None
    return interval.lower, interval.point, interval.upper


def _paragraphs(sentences: Sequence[str]) -> str:
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
