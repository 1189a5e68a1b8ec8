"""The tables of a run, exported and counted from: their columns, as polars frames with schemas.

A table is its columns, a line each: name, type, and how a cell is read. Its rows come of one
episode at a time, so that a log of any size can be written piece by piece. A failed episode is in
`episodes` and `calls`, with its status, and in no other table.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, Final, NamedTuple

import polars as pl

from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import MAY_LEAVE_OUT
from tutorsim.ballot_reading_and_decisions import RichBallot
from tutorsim.errors import UsageError
from tutorsim.records import BallotRecord, EpisodeLine, EpisodeRecord, RunRecord, Turn, VotingTurn

PLACE: Final = {
    "run_id": pl.String(),  # study and recording; the same on every machine
    "episode_id": pl.String(),
    "benchmark": pl.String(),
    "task": pl.String(),
    "persona": pl.String(),
    "condition": pl.String(),
}
"""The first columns of every table; `persona` is what stands between task and condition."""

BALLOTS_SCHEMA: Final = pl.Schema(
    {
        **PLACE,
        "turn": pl.Int64(),  # from 1
        "stage": pl.String(),  # vote_initial, vote_final or tie_vote
        "voter": pl.String(),
        "candidate": pl.String(),
        "label": pl.String(),  # as shown to this voter; null for ballots from elsewhere
        "mass": pl.Int64(),  # null in every row of an abstained ballot
        "ballot_status": pl.String(),  # valid, repaired or abstained
        "protocol": pl.String(),
        "position": pl.Int64(),  # place of the label as shown, from 1
        "attempts": pl.Int64(),  # times the ballot was asked for
        "points": pl.Int64(),  # of a rich ballot, as are the next two; null for other formats
        "rank": pl.Int64(),  # from 1, the best
        "approved": pl.Boolean(),
    }
)
"""One row per ballot and candidate; in a tie round only the tied candidates have rows."""

Row = tuple[Any, ...]
Round = tuple[str, Iterable[str], tuple[BallotRecord, ...]]
"""Stage, candidates and ballots of one vote."""


_TOGETHER: Final = 200
"""Episodes whose rows are counted together."""


class Table(NamedTuple):
    """One table: its schema, and the rows that episodes add to it."""

    schema: pl.Schema
    rows: Callable[[Sequence[Any], RunRecord], Iterable[Row]]
    """Rows of episodes' records and the run's head, each in the order of the schema."""

    def frame(self, episodes: Iterable[EpisodeLine], run: RunRecord) -> pl.DataFrame:
        """The table over episodes, in their order; an empty table keeps its columns.

        Behind `condition` a run that compares panels has `panel`, null for the single tutor.
        """
        gathered, passing = Gathered(self, run), iter(episodes)
        for piece in iter(lambda: tuple(islice(passing, _TOGETHER)), ()):
            gathered.take(*piece)
        return gathered.frame()


Read = Callable[..., Any] | str | None
"""From the parts that a row is of to its cell: a function of all of them, or a path such as
`turn.winner`, from a part by its name or from an attribute of the last part. `None`: the last
part's attribute of the column's name. What a part lacks is null."""


class Column(NamedTuple):
    """A column: its type, and how a cell is read."""

    kind: pl.DataType
    read: Read = None


text: Final = partial(Column, pl.String())
"""A column of texts; called with how a cell is read, as the next three."""
whole: Final = partial(Column, pl.Int64())
real: Final = partial(Column, pl.Float64())
yes: Final = partial(Column, pl.Boolean())


def several(of: Column) -> Column:
    """A column of lists."""
    return Column(pl.List(of.kind), of.read)


Parts = tuple[Any, ...]
"""What a row is of, the episode first, such as episode, turn and message."""


def table_of(
    parts: Callable[[Any], Iterable[Parts]] = lambda e: [(e,)],
    names: Sequence[str] = (),
    /,
    **columns: Column,
) -> Table:
    """A table whose rows begin with the episode's place: one row for each tuple of parts.

        table_of(status=text(), failure=text("failure.error"))

    `parts`: from an episode to the parts of each of its rows; one row of itself, when left out.
    `names`: of the parts, for the paths of columns.
    """
    each = partial(map, parts)
    return counted_of(lambda episodes, run: chain.from_iterable(each(episodes)), names, **columns)


def counted_of(
    parts: Callable[[Sequence[Any], RunRecord], Iterable[Parts]],
    names: Sequence[str],
    /,
    **columns: Column,
) -> Table:
    """A table as `table_of` makes it, of episodes that are counted together.

    `parts`: from episodes and the run's head to the parts of each row.
    """
    read = reader_of(columns, names)

    def rows(episodes: Sequence[Any], run: RunRecord) -> Iterator[Row]:
        episode, place = None, ()
        for one in parts(episodes, run):
            if one[0] is not episode:
                episode, place = one[0], place_of(one[0], run)
            yield (*place, *read(*one))

    kinds = {name: column.kind for name, column in columns.items()}
    return Table(pl.Schema({**PLACE, **kinds}), rows)


def reader_of(columns: Mapping[str, Column], names: Sequence[str]) -> Callable[..., Row]:
    """From the parts of these names to the cells of a row."""
    reads = [
        column.read if callable(column.read) else _along(column.read, name, names)
        for name, column in columns.items()
    ]
    return lambda *parts: tuple(read(*parts) for read in reads)


def _along(path: str | None, name: str, names: Sequence[str]) -> Callable[..., Any]:
    """From the parts to what stands at the end of a path."""
    first, *steps = (path or name).split(".")
    place = names.index(first) if path and first in names else -1
    if place < 0:
        steps = [first, *steps]

    def read(*parts: Any) -> Any:
        found = parts[place]
        for step in steps:
            found = None if found is None else getattr(found, step)
        return found

    return read


class Gathered:
    """The rows of a table, taken of episodes as somebody goes through them."""

    def __init__(self, table: Table, run: RunRecord) -> None:
        self._table, self._run = table, run
        self._rows: list[Row] = []
        self._panel_of: dict[str, str | None] = {}

    def take(self, *episodes: EpisodeLine) -> None:
        """Add the rows of the next episodes."""
        self._rows += self._table.rows(episodes, self._run)
        if self._run.panels:
            self._panel_of |= {one.episode_id: one.panel for one in episodes}

    def frame(self) -> pl.DataFrame:
        """The table over the episodes taken."""
        schema = self._table.schema
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(schema)
        cells = zip(schema.items(), columns, strict=True)
        found = pl.DataFrame([_series(name, kind, column) for (name, kind), column in cells])
        if not self._run.panels:
            return found
        panel = found["episode_id"].replace_strict(self._panel_of, return_dtype=pl.String)
        return found.insert_column(found.get_column_index("condition") + 1, panel.alias("panel"))


def _series(name: str, kind: pl.DataType, cells: Sequence[object]) -> pl.Series:
    try:
        return pl.Series(name, cells, kind)
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise UsageError(
            f"A cell of the column {name!r} is no {kind}.",
            why=str(error).partition("\n")[0],
            hint="Declare the column by what its cells are: text(), whole(), real(), yes(), "
            "or several() of one of them.",
        ) from error


def run_id(run: RunRecord) -> str:
    """The name of a run in every table: its study and its recording, never a folder."""
    return f"{run.study.name}-{run.recording_digest[:12]}"


def ballots_table(episodes: Iterable[EpisodeLine], *, run: RunRecord) -> pl.DataFrame:
    """Every ballot of every complete episode, long: see `BALLOTS_SCHEMA`."""
    return TABLES["ballots"].frame(episodes, run)


def place_of(episode: EpisodeLine, run: RunRecord) -> Row:
    """The first cells of every row: `PLACE`."""
    e = episode
    return (run_id(run), e.episode_id, e.benchmark, e.task_id, e.variant, e.condition)


def _turns(episode: EpisodeRecord) -> tuple[Turn, ...]:
    return episode.turns if episode.status == "complete" else ()


def _ballot_rows(
    episodes: Iterable[EpisodeLine], run: RunRecord, rounds: Callable[[VotingTurn], Iterator[Round]]
) -> Iterator[Row]:
    order = run.voting.fallback_order if run.voting is not None else ()
    place_in = {role: place for place, role in enumerate(order)}
    for episode in episodes:
        place = place_of(episode, run)
        for turn in episode.turns if episode.status == "complete" else ():
            for stage, candidates, ballots in rounds(turn):
                standing = sorted(candidates, key=lambda role: place_in.get(role, len(order)))
                for ballot in ballots:
                    for cells in _candidate_cells(ballot, standing):
                        yield (*place, turn.turn, stage, *cells)


def _rounds(turn: VotingTurn) -> Iterator[Round]:
    if turn.decision is not None:
        yield "vote_initial", turn.decision.tallies, turn.ballots_initial
    yield "vote_final", _candidates(turn, turn.ballots_final), turn.ballots_final
    if turn.tie_round is not None:
        yield "tie_vote", turn.tie_round.candidates, turn.tie_round.ballots


def _further_rounds(turn: VotingTurn) -> Iterator[Round]:
    for form, ballots in turn.ballots_as.items():
        yield f"vote_as_{form}", _candidates(turn, ballots), ballots
    for stage, ballots in turn.other_votes.items():
        yield stage, _on_ballots(ballots), ballots


def _candidates(turn: VotingTurn, ballots: Iterable[BallotRecord]) -> Iterable[str]:
    """Candidates that the turn's vote counted; those on the ballots where it held none, or where
    they are of another program's log, which names no winner."""
    return turn.decision.tallies if turn.decision is not None else _on_ballots(ballots)


def _on_ballots(ballots: Iterable[BallotRecord]) -> Iterable[str]:
    """Everybody whom a voter was shown or gave mass to, in order of first appearance."""
    named = (name for ballot in ballots for name in (*ballot.labels.values(), *ballot.mass))
    return dict.fromkeys(named)


def _candidate_cells(ballot: BallotRecord, standing: Sequence[str]) -> Iterator[Row]:
    """voter … attempts, one tuple per candidate, in the fallback order, which exports keep."""
    shown = {role: (label, i) for i, (label, role) in enumerate(ballot.labels.items(), start=1)}
    voter, mass, choice = ballot.voter, ballot.mass, ballot.parsed
    status, protocol, attempts = ballot.ballot_status, _counted(ballot), ballot.attempts
    for role in standing:
        label, position = shown.get(role, (None, None))
        left_out = None if protocol in MAY_LEAVE_OUT else 0
        own = mass.get(role, left_out) if mass else None
        rich: Row = (None, None, None)
        if isinstance(choice, RichBallot):
            rich = (choice.points[role], choice.order.index(role) + 1, role in choice.approved)
        yield (voter, role, label, own, status, protocol, position, attempts, *rich)


def _counted(ballot: BallotRecord) -> str:
    """The protocol of the masses; `rich` for a ballot that holds one of each."""
    return "rich" if ballot.protocol == "rich" else ballot.rule


def _tutoring(episode: EpisodeRecord) -> Iterator[Parts]:
    after = {attempt.turn: attempt for attempt in episode.attempts}
    for turn in _turns(episode):
        yield episode, turn, turn.decision, after.get(turn.turn)


def _proposals(episode: EpisodeRecord) -> Iterator[Parts]:
    for turn in _turns(episode):
        versions = {"initial": turn.proposals_initial, "final": turn.proposals_final}
        for version, proposals in versions.items():
            for role, proposal in proposals.items():
                yield episode, turn, version, role, proposal


def _delivered(_: object, turn: Turn, version: str, role: str, __: object) -> bool:
    return version == "final" and (turn.decision is None or turn.decision.winner == role)


SHARED_TABLES: Final[dict[str, Table]] = {
    "ballots": Table(BALLOTS_SCHEMA, partial(_ballot_rows, rounds=_rounds)),
    "diagnostic_ballots": Table(BALLOTS_SCHEMA, partial(_ballot_rows, rounds=_further_rounds)),
    "calls": table_of(
        lambda episode: ((episode, at, call) for at, call in enumerate(episode.calls, start=1)),
        ("episode", "at", "call"),
        position=whole("at"),  # call order in the episode, from 1
        key=text(),  # turn/stage/agent/attempt
        stage=text(),
        model=text(),
        stop_reason=text(),
        without_text=yes(lambda e, _, call: call.key in (e.without_text or ())),  # but a usual end
        input_tokens=whole(),
        output_tokens=whole(),
    ),
}
"""Tables that every system's run has."""

TABLES: Final[dict[str, Table]] = {
    "episodes": table_of(
        repeat=whole(),
        status=text(),  # complete or failed
        turns_taken=whole(),  # 0 when the first attempt succeeded
        initial_correctness=real(),  # null: unscored, never zero
        final_correctness=real(),
        initial_code_passed=yes(),  # null for science questions
        code_passed=yes(),
        success=yes(),  # null for a failed episode
        scores=several(real(lambda e: [one.score for one in e.attempts])),  # from the first on
        codes_passed=several(yes(lambda e: [one.code_passed for one in e.attempts])),
        failure=text("failure.error"),
        branch_turn=whole("branch.turn"),  # first under the alternative; null as logged
        continuation=whole("branch.continuation"),  # from 1, a draw each; null as logged
        left=whole("branch.left"),  # turn whose winner came to differ; null where none did
    ),
    "turns": table_of(
        _tutoring,
        ("episode", "turn", "decision", "attempt"),
        turn=whole("turn.turn"),
        protocol=text(  # of the final ballots; null for the single tutor, as are the next five
            lambda _, turn, decision, __: (
                _counted(turn.ballots_final[0]) if decision and turn.ballots_final else None
            )
        ),
        winner=text("decision.winner"),
        decided_by=text("decision.decided_by"),  # vote, tie_round or fallback
        tied_set=several(text("decision.tied_set")),  # empty: one led alone
        undecided=several(text("decision.undecided")),  # by counting
        tie_round=yes(  # whether one was held
            lambda _, turn, decision, __: decision and turn.tie_round is not None
        ),
        delivered=text("turn.delivered"),
        score=real(),  # of the attempt that followed
        code_passed=yes(),
    ),
    "ballots": SHARED_TABLES["ballots"],
    "diagnostic_ballots": SHARED_TABLES["diagnostic_ballots"],
    "proposals": table_of(
        _proposals,
        ("episode", "turn", "version", "role", "proposal"),
        turn=whole("turn.turn"),
        version=text("version"),  # initial or final
        role=text("role"),
        text=text(),
        rationale=text(),
        confidence=whole(),  # 0 to 100 as stated; null where none was
        status=text(),  # valid, repaired or missing
        winner=yes(_delivered),  # this role's proposal was delivered
    ),
    "calls": SHARED_TABLES["calls"],
}
"""Every table of a panel's run log by name.

`diagnostic_ballots` has those in further formats on the final proposals, stage `vote_as_…`; they
decided nothing, so that no reader counts them by mistake. A branch under another rule keeps the
ballots of the logged vote there.
"""
