"""What makes a ballot of a file from elsewhere, and how rows that make none are refused."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import polars as pl

from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import (
    FORMATS,
    MAY_LEAVE_OUT,
    MUST_GIVE,
    WITH_BUDGET,
    leaving_out,
    names_of,
)
from tutorsim.analysis.ballots.table_to_arrays import plain_budget
from tutorsim.analysis.ballots.vote_arrays_and_profiles import (
    BALLOT,
    LEFT_OUT,
    RICH,
    STAGES,
    Votes,
    rich_mass,
    rich_rule,
    summed,
)
from tutorsim.errors import BallotFileError
from tutorsim.vocabularies import BALLOT_FORMATS, BALLOT_STATUSES, CUMULATIVE_BUDGET, PROTOCOLS

# --- Row refusals --------------------------------------------------------------------------------

EXAMPLE: Final = (
    "Three lines that can be read, one column a candidate:\n"
    "  voter,ann,ben,cid\n"
    "  v1,1,0,0\n"
    "  v2,0,1,0\n"
    "or one row a ballot and candidate:\n"
    "  voter,candidate,mass,protocol\n"
    "  v1,ann,1,simple\n"
    "  v1,ben,0,simple\n"
    "`tutorsim check FILE` says how a file is read. --map voter=NAME names its columns; so do\n"
    "episode_id, candidate, mass, rank, and for whole ballots choice, approvals, ranking, reply."
)
"""Ends the hint of a file whose columns say nothing."""


_HINT: Final = "Correct or remove the ballot; no other row was used."


class Places(NamedTuple):
    """Where rows of several files stand, that were put one after the other."""

    files: tuple[Path, ...]
    starts: tuple[int, ...]
    """Row number before each file's first."""

    def of(self, row: int) -> tuple[Path, int]:
        """The file of a row, and its number there."""
        number = bisect_right(self.starts, row - 1) - 1
        return self.files[number], row - self.starts[number]


@dataclass(frozen=True)
class FileRows:
    """Rows of a file, or of several put one after the other, and what is told of them."""

    frame: pl.DataFrame
    file: Path | Places
    assumed: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()
    """Lines of comment, which nothing is read from."""

    def note(self, text: str) -> Self:
        """The rows with one more thing told of them, if it is any."""
        return replace(self, assumed=(*self.assumed, text)) if text else self

    def with_frame(self, frame: pl.DataFrame, text: str = "") -> Self:
        return replace(self, frame=frame).note(text)

    def with_columns(self, *columns: Any, text: str = "", **named: Any) -> Self:
        return self.with_frame(self.frame.with_columns(*columns, **named), text)

    def texts(self, name: str) -> pl.Series:
        """The cells of a column as texts."""
        return self.frame.get_column(name).cast(pl.String)

    def refuse(
        self, reason: str, bad: pl.Expr | None = None, *, hint: str = _HINT, **said: object
    ) -> None:
        """Refuse the file if a row is bad, naming the first such row and the reason.

        `reason`: what is wrong, with `{column}` for a cell of the row, or for what `said` gives
        under that name. `bad`: true for a row that makes no ballot; by default every row is bad.
        Raises `BallotFileError` if any is.
        """
        found = self.frame if bad is None else self.frame.filter(bad)
        for row in found.sort("row").head(1).iter_rows(named=True):
            file, number = self.file, row["row"]
            place, number = (file, number) if isinstance(file, Path) else file.of(number)
            line = f". In a file that begins with the heading this is line {number + 1}."
            headed = place.suffix.lower() in (".csv", ".tsv")
            raise BallotFileError(
                f"{place}, row {number}: {reason.format_map({**row, **said})}.",
                why="Rows count from 1 at the first one after the heading"
                f"{line if headed else ', if there is one.'}",
                hint=hint,
            )


def columns_missed(
    file: Path, missed: Sequence[str], columns: Sequence[str], advice: str = ""
) -> BallotFileError:
    """Refuses a file that lacks columns, naming those that it has; `advice` begins the hint."""
    several = "s" * (len(missed) > 1)
    return BallotFileError(
        f"{file} lacks the column{several} {', '.join(missed)}.",
        why=f"Its columns are {', '.join(columns)}." if columns else "It has no columns.",
        hint=f"{advice}\n{EXAMPLE}" if advice else EXAMPLE,
    )


def columns_doubled(file: Path, ours: str, theirs: Sequence[str]) -> BallotFileError:
    """Refuses a file in which several columns are read as one of ours."""
    return BallotFileError(
        f"{file}: the columns {', '.join(theirs)} would all be {ours}.",
        why="One column holds it, or one for each candidate or vote.",
        hint=f"Take “{theirs[0]}” out of the file, or give it a name that says what else it is; if "
        "it alone is meant, do so with the others.",
    )


def unreadable(file: Path, why: str, hint: str = EXAMPLE) -> BallotFileError:
    """Refuses a file that is no table of ballots at all."""
    return BallotFileError(f"{file} cannot be read as ballots.", why=why, hint=hint)


def only_one(found: Iterable[int | None], says: str, *, why: str, hint: str) -> int | None:
    """The one number that files state, if any does; `BallotFileError` where they state several."""
    stated = sorted({number for number in found if number is not None})
    if len(stated) > 1:
        raise BallotFileError(f"{says} {stated}.", why=why, hint=hint)
    return next(iter(stated), None)


def one_budget(stated: Iterable[int | None]) -> int | None:
    """The budget that files state, by the user or by the format."""
    return only_one(
        stated,
        "The cumulative ballots of these files sum to",
        why="One recount works with one budget.",
        hint="Open the files one at a time.",
    )


# --- Rich ballot checks --------------------------------------------------------------------------


def check_rich(rows: FileRows, budget: int) -> None:
    """Points, a strict order and an approval line that agree, and the masses of one rule.

    `budget`: what the points must sum to. Raises `BallotFileError` with file, row and reason.
    """
    rich = rows.frame.filter(pl.col("protocol") == "rich")
    cast = rows.with_frame(rich.sort(*BALLOT, "rank", maintain_order=True))
    if not rich.height:
        return
    missing = pl.any_horizontal(pl.col(*RICH).is_null())
    cast.refuse(f"a rich ballot without {', '.join(RICH)}", missing)
    points, rank, approved = (pl.col(name) for name in RICH)
    before, upper = (column.shift(1).over(BALLOT) for column in (points, approved))
    checks = {
        "its ranks are not 1, 2, … each once": rank != pl.int_range(1, pl.len() + 1).over(BALLOT),
        f"its points do not sum to {budget}": points.sum().over(BALLOT) != budget,
        "its points are negative or contradict its order": (points < 0) | (before < points),
        "it approves of nobody, or of somebody below one it does not approve of": (
            (approved & ~upper) | (~approved.any().over(BALLOT))
        ),
        "somebody it approves of has no more points than one it does not": (
            upper & ~approved & (before <= points)
        ),
    }
    for reason, bad in checks.items():
        cast.refuse(f"the ballot of {{voter!r}}: {reason}", bad)
    if rich_rule(cast.frame) is None:
        other = pl.any_horizontal(rich_mass(p).ne(pl.col("mass")) for p in PROTOCOLS)
        cast.refuse("the masses of the rich ballots are not those of one protocol", other)


# --- Ballot checks -------------------------------------------------------------------------------

_TURN: Final = BALLOT[:2]
_ROUND: Final = BALLOT[:3]


def check_ballots(
    rows: FileRows, *, budget: int | None = None, namesakes: bool = False
) -> tuple[FileRows, int]:
    """Check that the rows make ballots, and bring them into the table's shape.

    Returns rows that all belong to a ballot, and what the cumulative ballots sum to; the study's
    default where there are none.

    `rows`: from `typed_columns`. `budget`: what a cumulative ballot must sum to, by default what
    most of them sum to. `namesakes`: whether several whole ballots under one name come from
    several voters. Raises `BallotFileError` with file, row and reason.
    """
    plain = plain_budget(rows.frame, budget)
    if plain is None:
        _check_words(rows)
    rows = rows.with_columns(pl.col("stage").replace(STAGES))
    if plain is not None:
        rows = rows.with_columns(ballot_status=pl.lit("valid"))
        return rows.note(_approving_nobody(rows.frame)), plain
    _check_rounds(rows)
    rows = _from_the_top(_fill_left_out(_number_namesakes(rows, allowed=namesakes)))
    mass, form = pl.col("mass"), pl.col("protocol")
    rows = rows.with_columns(
        sum=mass.sum().over(BALLOT),
        missing=mass.is_null().sum().over(BALLOT),
        has=pl.len().over(BALLOT),
        statuses=pl.col("ballot_status").n_unique().over(BALLOT),
        given=pl.when(form.is_in(WITH_BUDGET)).then("mass").when(form == "rich").then("points"),
    )
    budget = budget or budget_of(rows) or CUMULATIVE_BUDGET
    _check_masses(rows, budget)
    check_rich(rows.with_frame(rows.frame.filter(~_abstains())), budget)
    stated = pl.col("ballot_status").fill_null("valid")
    status = pl.when(_abstains()).then(pl.lit("abstained")).otherwise(stated)
    rows = rows.with_columns(pl.when(~_abstains()).then("mass"), ballot_status=status)
    _check_tie_rounds(rows)
    decided = (pl.col("stage") == "vote_final").any().over(_TURN)
    turns = rows.frame.filter(~decided).select(*_TURN).unique().height
    told = f"{turns} of the turns had no final vote and were not recounted." if turns else ""
    return rows.note(_approving_nobody(rows.frame)).note(told), budget


def _check_words(rows: FileRows) -> None:
    stages = (*STAGES.values(), *STAGES)
    words = {"protocol": BALLOT_FORMATS, "stage": stages, "ballot_status": BALLOT_STATUSES}
    for name, known in words.items():
        unknown = f"unknown {name} {{{name}!r}} (known: {', '.join(known)})"
        rows.refuse(unknown, ~pl.col(name).is_in(known))
    rows.refuse("turn {turn} is negative", pl.col("turn") < 0)
    rows.refuse("the mass {mass} is negative", pl.col("mass") < 0)


def _of_stage(rows: FileRows, stage: str) -> pl.DataFrame:
    return rows.frame.filter(pl.col("stage") == stage)


def _check_rounds(rows: FileRows) -> None:
    """One protocol a turn, and only candidates of the final vote in its tie round."""
    other = pl.col("protocol") != pl.col("protocol").first().over(_TURN)
    rows.refuse("a {protocol} ballot in a turn of another protocol", other)
    final, again = _of_stage(rows, "vote_final"), _of_stage(rows, "tie_vote")
    stray = rows.with_frame(again.join(final, on=[*_TURN, "candidate"], how="anti"))
    stray.refuse("the tie round has {candidate!r}, which the final vote has not")


def _check_tie_rounds(rows: FileRows) -> None:
    """A tie round is among exactly the candidates that the final vote left tied."""
    final, again = _of_stage(rows, "vote_final"), _of_stage(rows, "tie_vote")
    totals = final.group_by(*_TURN, "candidate").agg(pl.col("mass").sum())
    leading = totals.filter(pl.col("mass") == pl.col("mass").max().over(_TURN))
    tied = leading.filter(pl.len().over(_TURN) > 1)
    stray = rows.with_frame(again.join(tied, on=[*_TURN, "candidate"], how="anti"))
    stray.refuse("the tie round has {candidate!r}, which was not tied before it")
    left_out = tied.join(again, on=[*_TURN, "candidate"], how="anti")
    short = again.join(left_out.select(*_TURN, left_out="candidate"), on=_TURN, how="inner")
    rows.with_frame(short).refuse("the tie round leaves out {left_out!r}, which was tied before it")


def _number_namesakes(rows: FileRows, *, allowed: bool) -> FileRows:
    """Tell voters of one name in one round apart, where each has a whole ballot.

    A second ballot under one name is refused unless the user says that such are several voters.
    """
    block, m = pl.col("block"), pl.col("m")
    every = rows.with_columns(
        block=pl.int_range(pl.len()).over(*BALLOT, "candidate"),
        m=pl.col("candidate").n_unique().over(_ROUND),
    )
    if not every.frame.select((block > 0).any()).item():
        return rows
    whole = pl.len().over(*BALLOT, "block") == m
    in_turn = (block.diff().fill_null(0) >= 0).all().over(BALLOT)
    several = block.max().over(BALLOT) > 0
    a_contest = (m > 1) | (pl.col("mass").n_unique().over(BALLOT) == 1)
    twice = (block > 0) & ~(whole & in_turn & a_contest).all().over(BALLOT)
    every.refuse("voter {voter!r} has two entries for {candidate!r}", twice)
    if not allowed:
        every.refuse(
            "voter {voter!r} has a second ballot in one vote",
            block > 0,
            hint="If a column says what was voted on, add --map episode_id=COLUMN; if they are "
            "several voters, add --namesakes; else remove one of them.",
        )
    count = every.frame.filter(several).select(*BALLOT, "block").n_unique()
    number = pl.format("{} #{}", "voter", block + 1)
    every = every.with_columns(voter=pl.when(several).then(number).otherwise("voter"))
    taken = pl.struct(*BALLOT, "candidate").is_duplicated()
    every.refuse("the name {voter!r} is needed to tell namesakes apart", taken)
    told = f"{count} ballots of voters who share a name in their round were numbered."
    return every.with_frame(every.frame.drop("block", "m"), f"{_short(rows.file)}: {told}")


def _fill_left_out(rows: FileRows) -> FileRows:
    """A row of no mass, unknown in a ranking, for each candidate left out; rounds in order."""
    rounds = rows.frame.select(*_ROUND, "candidate").unique(maintain_order=True)
    counted = rows.frame.with_columns(
        m=pl.col("candidate").n_unique().over(_ROUND), has=pl.len().over(BALLOT)
    )
    short = counted.filter(pl.col("has") < pl.col("m"))
    if short.height == 0:
        return rows
    rich = pl.col("protocol") == "rich"
    reason = "the rich ballot of {voter!r} has {has} of {m} candidates"
    rows.with_frame(short).refuse(reason, rich)
    ballots = short.unique(BALLOT, keep="first", maintain_order=True)
    must_name = ~pl.col("protocol").is_in(MAY_LEAVE_OUT)
    empty = ballots.with_columns(
        mass=pl.when(pl.col("mass").is_not_null() & must_name).then(pl.lit(0, pl.Int64)),
        label=pl.lit(None, pl.String),
        position=pl.lit(None, pl.Int64),
    ).drop("candidate", "m", "has")
    added = empty.join(rounds, on=_ROUND, how="inner", maintain_order="left_right")
    added = added.join(short, on=[*BALLOT, "candidate"], how="anti", maintain_order="left")
    places = (pl.col("row").min().over(names) for names in (_TURN, _ROUND, BALLOT))
    filled = pl.concat([rows.frame, added.select(rows.frame.columns)])
    rows = rows.with_frame(filled.sort(*places, maintain_order=True))
    n = ballots.filter(must_name).height
    told = f"{_short(rows.file)}: {n} of the ballots left candidates out; they have no mass there."
    return rows.note(told) if n else rows


def _from_the_top(rows: FileRows) -> FileRows:
    """Rankings that leave candidates out with m - 1 for the first, and what is told of them."""
    mass, protocol = pl.col("mass"), pl.col("protocol")
    left_out = mass.has_nulls().over(BALLOT) & mass.is_not_null().any().over(BALLOT)
    short = rows.frame.filter(left_out & protocol.is_in(MAY_LEAVE_OUT))
    if short.height == 0:
        return rows
    rows.with_frame(short.join(_of_stage(rows, "tie_vote"), on=_TURN, how="semi")).refuse(
        "the ballot of {voter!r} leaves candidates out in a turn with a tie round, and who was "
        "tied depends on them"
    )
    first = pl.len().over(BALLOT).cast(pl.Int64) - 1 - mass.max().over(BALLOT)
    ranked, scored = (protocol.is_in(leaving_out(where)) for where in ("last", "anywhere"))
    told = (
        "of the rankings left candidates out: those stand below the ones named, in an order that "
        "is not known; bounds take every order, and a point shares what is left among them.",
        "of the ballots of scores left candidates out: bounds take every score of the scale, and "
        "a point the scores that are given.",
    )
    for kind, text in zip((ranked, scored), told, strict=True):
        n = short.filter(kind).select(BALLOT).unique().height
        rows = rows.note(f"{n} {text}") if n else rows
    return rows.with_columns(mass=pl.when(left_out & ranked).then(mass + first).otherwise(mass))


def budget_of(rows: FileRows) -> int | None:
    """What most ballots sum to, whatever the sequence of rows; points stand in `given`.

    Returns the sum; `None` where no ballot gives points. Raises `BallotFileError` if two sums are
    equally frequent: then nothing says which is meant.
    """
    sums = (
        rows.frame.group_by(BALLOT)
        .agg(pl.col("given").sum().alias("sum"))
        .filter(pl.col("sum") > 0)
        .group_by("sum")
        .len()
        .sort(["len", "sum"], descending=True)
    )
    if sums.height > 1 and sums["len"][0] == sums["len"][1]:
        files = (rows.file,) if isinstance(rows.file, Path) else rows.file.files
        raise BallotFileError(
            f"{', '.join(map(str, files))}: as many ballots sum to {sums['sum'][0]} points as to "
            f"{sums['sum'][1]}.",
            why="A cumulative ballot sums to one budget, and nothing says which.",
            hint="Add --budget N, and correct the others.",
        )
    return int(sums["sum"][0]) if sums.height else None


def _short(file: Path | Places) -> str:
    return file.name if isinstance(file, Path) else ", ".join(one.name for one in file.files)


_OF_NOBODY: Final = names_of(lambda form: form.may_give_nothing)


def _approving_nobody(frame: pl.DataFrame) -> str:
    """Approvals of nobody are ballots, and easily taken for abstentions."""
    approvals = frame.filter(pl.col("protocol").is_in(_OF_NOBODY))
    given = approvals.group_by(BALLOT).agg(pl.col("mass").sum(), silent=pl.col("mass").has_nulls())
    return _said_of_nobody(given.filter((pl.col("mass") == 0) & ~pl.col("silent")).height)


def approving_nobody(votes: Votes) -> tuple[str, ...]:
    """A note on how many approval ballots, of votes held as arrays, approve of nobody."""
    approval = votes.turns.get_column("protocol").cast(pl.String).is_in(_OF_NOBODY).to_numpy()
    told = _said_of_nobody(
        sum(
            int((part.cast & (summed(part.masses, 2) == 0))[approval[part.turn]].sum())
            for rounds in votes.stages
            for part in rounds
        )
    )
    return (told,) if told else ()


def notes_together(notes: Iterable[str]) -> tuple[str, ...]:
    """Notes on several parts of one source: counts before equal words add up.

    So a note with a count begins with it, in words that fit one and many.
    """
    counts = Counter[str]()
    for note in notes:
        count, space, words = note.partition(" ")
        if count.isdecimal() and space:
            counts[words] += int(count)
        else:
            counts[note] = 0
    return tuple(f"{count} {words}" if count else words for words, count in counts.items())


def _said_of_nobody(count: int) -> str:
    told = (
        f"{count} of the approval ballots had only zeros: such a voter approves of nobody, while "
        "an abstention has empty masses."
    )
    return told if count else ""


def _abstains() -> pl.Expr:
    """Nothing stated, or nothing given where the protocol has to give something."""
    gives = pl.col("protocol").is_in(MUST_GIVE)
    nothing = (pl.col("missing") == pl.col("has")) | (gives & (pl.col("sum") == 0))
    return nothing | (pl.col("ballot_status") == "abstained").fill_null(False)


def _check_masses(rows: FileRows, budget: int) -> None:
    """Ballots are what their format asks for; the first that is not is refused, with the reason."""
    some = pl.col("mass").is_null() & (pl.col("missing") < pl.col("has"))
    partly = some & ~pl.col("protocol").is_in(MAY_LEAVE_OUT)
    rows.refuse("voter {voter!r} has a mass for some candidates and none for others", partly)
    silent = (pl.col("ballot_status") == "abstained") & (pl.col("sum") > 0)
    contradicted = (pl.col("statuses") > 1) | silent
    rows.refuse("the ballot_status of voter {voter!r} contradicts its rows", contradicted)
    cast = rows.frame.filter(~_abstains() & pl.col("protocol").is_in([*FORMATS]))
    ordered = cast.with_columns(
        pl.col("mass").fill_null(LEFT_OUT), first=pl.col("row").min().over(BALLOT)
    )
    ordered = ordered.sort("first", *BALLOT, maintain_order=True)
    unsound: list[pl.DataFrame] = []
    for (protocol, size), alike in ordered.group_by("protocol", "has", maintain_order=True):
        masses = alike.get_column("mass").to_numpy().reshape(-1, int(size))
        bad = ~FORMATS[protocol].valid(masses, budget)
        if bad.any():
            start = int(bad.argmax()) * int(size)
            unsound.append(alike.slice(start, int(size)))
    if not unsound:
        return
    ballot = min(unsound, key=lambda one: int(one["first"][0]))
    protocol = str(ballot["protocol"][0])
    told = FORMATS[protocol].fault
    assert told is not None, "a format that refuses no ballot refused one"
    fault = told(ballot["mass"].to_list(), budget)
    blamed = ballot if fault.place is None else ballot.slice(fault.place, 1)
    more = " --budget N says what a ballot sums to." if FORMATS[protocol].budget else ""
    rows.with_frame(blamed).refuse(fault.reason, hint=_HINT + more)
