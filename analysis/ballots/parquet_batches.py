"""Parquet files of ballots read in batches: some rows of whole turns at a time, as arrays.

Files whose columns have the ballots table's types, and whose rows lie turn by turn, are never held
as rows: `batched` says whether they can be read so, and `ParquetBatches.parts` gives their votes
part by part. Rows that need a look (rich ballots, abstentions without a mark, mistakes) wait until
their file is read, and are checked as those of a whole file; they are its last part.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count as counted_from
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.malformed_rows import (
    FileRows,
    approving_nobody,
    budget_of,
    check_ballots,
    one_budget,
    unreadable,
)
from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import WITH_BUDGET
from tutorsim.analysis.ballots.reading_options_and_column_words import NO_HINTS, Hints, spellings
from tutorsim.analysis.ballots.table_to_arrays import (
    Piece,
    VoteReader,
    changes,
    read_votes,
    sound_turns,
    turn_starts,
    without_empty,
)
from tutorsim.analysis.ballots.vote_arrays_and_profiles import (
    RICH,
    STAGES,
    TURN,
    Place,
    Votes,
    joined,
)
from tutorsim.analysis.statistics import by_key
from tutorsim.regular_files_and_digests import open_named
from tutorsim.vocabularies import CUMULATIVE_BUDGET, PROTOCOLS

Runner = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Applies a function to every piece and gives the results, in any order: `map` is one."""

BATCH: Final = 2**18
"""Rows of a batch: some megabytes a column, so that memory is used again and not asked for anew."""
TOGETHER: Final = 100_000
"""Turns of a part."""
_AHEAD: Final = 2
"""Batches read while another is used."""
_TAIL: Final = 1_000
"""Rows at the end of a batch that most often hold the last turn."""
_LOOKED_AT: Final = 200_000
"""First rows that say what names there are and what a cumulative ballot sums to."""

_CAST: Final = (*TURN, "stage", "voter", "candidate", "mass", "ballot_status", *RICH)
"""What makes ballots."""
_SHOWN: Final = ("label", *Place._fields)
"""What else metrics ask of them."""
_NUMBERS: Final = ("turn", "mass", "points", "rank")
_WORDS: Final = {"stage": (*STAGES, *STAGES.values()), "protocol": (*PROTOCOLS, "rich")}
"""Columns whose words have to be known."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some whole turns of a source, as arrays."""

    votes: Votes
    rich: pl.DataFrame | None = field(default=None, repr=False)
    """Rows of the turns, if there are rich ballots among them."""
    notes: tuple[str, ...] = ()
    """What reading them took."""
    looked_at: bool = False
    """Whether their rows had to be checked one by one."""


@dataclass(frozen=True)
class ParquetBatches:
    """Parquet files of whole turns, and what has to be known of all before any is read."""

    files: tuple[Path, ...]
    order: tuple[str, ...]
    """Every candidate: those of the fallback order first, then by name."""
    voters: tuple[str, ...]
    """Voters by name."""
    points: int
    """What a cumulative or rich ballot sums to; the study's default without any."""
    turns: tuple[int, ...]
    """Number of turns of each file."""
    rich: bool
    """Whether there are rich ballots."""
    stated: tuple[str, ...]
    """What the files say answered the calls."""

    def by_file(self) -> list["ParquetBatches"]:
        """Batches of one file each, to be read in different places."""
        return [
            replace(self, files=(file.resolve(),), turns=(turns,))
            for file, turns in zip(self.files, self.turns, strict=True)
        ]

    def parts(self, *, together: int = TOGETHER, shown: bool = False) -> Iterator[Part]:
        """The votes, whole turns at a time; each file's turns that need a look come after it.

        `together`: turns of a part. `shown`: also labels, and what says where an episode stands in
        the grid. Raises `BallotFileError` with file, row and reason, if rows make no ballot.
        """
        reader, waiting = VoteReader(self.order, self.voters), list[Votes]()
        for file in self.files:
            rest = list[pl.DataFrame]()
            with scanned(file) as rows:
                present = rows.collect_schema()
                asked = [c for c in (*_CAST, *(_SHOWN if shown else ())) if c in present]
                for frame, piece in _read_ahead(rows.select(asked), reader):
                    sound = sound_turns(frame, piece, self.points)
                    odd = np.append(~sound, True)[piece.turn]  # so is a row of no turn, -1
                    if odd.any():
                        rest.append(frame.filter(odd))
                    votes = without_empty(piece.votes)
                    waiting.append(votes if sound.all() else votes.of_turns(np.flatnonzero(sound)))
                    if sum(votes.turns.height for votes in waiting) >= together:
                        yield _sound_part(waiting)
                        waiting.clear()
            if rest:
                yield self._looked_at(FileRows(pl.concat(rest), file))
        if waiting:
            yield _sound_part(waiting)

    def _looked_at(self, rows: FileRows) -> Part:
        from tutorsim.analysis.ballots.read_ballot_files_into_typed_columns import typed_columns

        rows, _ = check_ballots(typed_columns(rows), budget=self.points)
        rich = rows.frame if (rows.frame["protocol"] == "rich").any() else None
        votes = read_votes(rows.frame, fallback_order=self.order)
        return Part(votes, rich, rows.assumed, looked_at=True)


def _sound_part(pieces: Sequence[Votes]) -> Part:
    votes = joined(pieces)
    return Part(votes, None, approving_nobody(votes))


def _read_ahead(rows: pl.LazyFrame, reader: VoteReader) -> Iterator[tuple[pl.DataFrame, Piece]]:
    """Batches of whole turns as rows, numbered from 1 in `row`, and as arrays; the next ones are
    read meanwhile.

    A batch with new names is read when its turn comes, so that threads make no difference to
    their numbers.
    """
    waiting: deque[tuple[pl.DataFrame, Future[Piece | None]]] = deque()
    with ThreadPoolExecutor(_AHEAD) as pool:
        for frame in whole_turns(rows, BATCH):
            if not waiting:
                reader.learn(frame)
            waiting.append((frame, pool.submit(reader.read_known, frame)))
            if len(waiting) > _AHEAD:
                done, piece = waiting.popleft()
                yield done, piece.result() or reader.read(done)
        for done, piece in waiting:
            yield done, piece.result() or reader.read(done)


def whole_turns(rows: pl.LazyFrame, size: int) -> Iterator[pl.DataFrame]:
    """Batches of about so many rows that end where a turn ends, numbered from 1 in `row`.

    A batch is collected when it is asked for: polars' own batches are read ahead of a slow reader,
    and a file's worth of them would be held.
    """
    rest = rows.head(0).with_row_index("row", 1).collect()
    for start in counted_from(0, size):
        batch = rows.slice(start, size).with_row_index("row", start + 1).collect()
        frame = pl.concat([rest, batch])
        last = _last_start(frame) if batch.height == size else frame.height
        whole, rest = frame.head(last), frame.slice(last).rechunk()
        if whole.height:
            yield whole
        if batch.height < size:
            return


def _last_start(frame: pl.DataFrame) -> int:
    """The row where the last turn begins, looked for from the end."""
    size = _TAIL
    while True:
        starts = np.flatnonzero(turn_starts(frame.tail(size)))
        if len(starts) > 1 or size >= frame.height:
            return max(frame.height - size, 0) + int(starts[-1]) if len(starts) else 0
        size *= _TAIL


# --- What is known of files before they are read -------------------------------------------------


class Outline(NamedTuple):
    """What has to be known of one file; `None` for a file that cannot be read in batches."""

    candidates: list[str]
    voters: list[str]
    budget: int | None
    turns: pl.Series
    """A hash of each run of rows of one turn."""
    rich: bool
    stated: list[str]


def batched(
    files: Sequence[Path],
    hints: Hints,
    run: Runner = map,
) -> ParquetBatches | None:
    """The files as they are read in batches; `None` where their rows have to be looked at.

    That is where a column has another type or a word that is not known, a name is blank, or the
    rows of a turn lie apart. Files in folders of their own are of other runs, whose episodes may
    have the same names.

    `hints`: only those that say nothing of the shape are for files read so. `run`: looks at the
    files, here or elsewhere. Raises `BallotFileError` if a file cannot be read, or cumulative
    ballots of two sum differently; `UsageError` if the fallback order is none of the candidates.
    """
    plain = replace(hints, budget=None, fallback_order=None, namesakes=False) == NO_HINTS
    if not plain:
        return None
    asked = [file.resolve() for file in files]
    if not all(map(_is_regular, asked)):
        return None
    found = dict(run(partial(_outline, budget=hints.budget), enumerate(asked)))
    outlines = [one for _, one in sorted(found.items()) if one is not None]
    if len(outlines) < len(files):
        return None
    folders = by_key((file.parent, one.turns) for file, one in zip(files, outlines, strict=True))
    if any(pl.concat(turns).is_duplicated().any() for turns in folders.values()):
        return None
    candidates, voters, stated = (
        sorted({name for one in outlines for name in one[i]}) for i in (0, 1, 5)
    )
    spellings(candidates, "candidates", None)
    spellings(voters, "voters", None)
    return ParquetBatches(
        files=tuple(files),
        order=hints.order_of(candidates) or tuple(candidates),
        voters=tuple(voters),
        points=one_budget(one.budget for one in outlines) or CUMULATIVE_BUDGET,
        turns=tuple(len(one.turns) for one in outlines),
        rich=any(one.rich for one in outlines),
        stated=tuple(stated),
    )


def _outline(file: tuple[int, Path], *, budget: int | None) -> tuple[int, Outline | None]:
    place, path = file
    with scanned(path) as rows:
        return place, _outlined(rows, path, budget)


def _is_regular(file: Path) -> bool:
    """Whether the columns have the ballots table's types."""
    with scanned(file) as rows:
        schema = rows.collect_schema()
    from tutorsim.analysis.ballots.read_ballot_files_into_typed_columns import (
        REQUIRED,  # a run needs no reader
    )

    return set(REQUIRED) <= set(schema) and all(
        kind.is_signed_integer()
        if name in _NUMBERS
        else isinstance(kind, pl.String | pl.Categorical | pl.Enum)
        for name, kind in schema.items()
        if name in (*_CAST, *_SHOWN) and name != "approved" and kind != pl.Null
    )


def _outlined(rows: pl.LazyFrame, file: Path, budget: int | None) -> Outline | None:
    schema = rows.collect_schema()
    names = ["candidate", "voter", "stage", "protocol", *["provenance"] * ("provenance" in schema)]
    read = [name for name in (*_CAST, *_SHOWN) if name in schema]
    new = pl.any_horizontal(map(changes, TURN))
    episode = pl.col("episode_id").cast(pl.String)
    key = pl.struct(episode, "turn").hash()
    first_rows = rows.select(names).head(_LOOKED_AT).collect(engine="streaming")
    words: dict[str, list[Any]] = {  # a file is soon asked for others: it lists those it has
        column.name: column.drop_nulls().unique().cast(pl.String).to_list() for column in first_rows
    }
    starts, _, *others = pl.collect_all(
        [
            rows.select(TURN)
            .filter(new)
            .select(
                key.alias("turn"),
                blank=(episode.str.strip_chars() == "") | pl.any_horizontal(pl.col(TURN).is_null()),
            ),
            rows.select(pl.col(read).null_count()),  # so that damage is told before any is counted
            *(
                rows.filter(~pl.col(name).is_in(first) | pl.col(name).is_null()).select(
                    pl.col(name).cast(pl.String).unique()
                )
                for name, first in words.items()
            ),
        ],
        engine="streaming",
    )
    for name, other in zip(names, others, strict=True):
        words[name] += other.to_series().to_list()
    blank = any(word is None or not word.strip() for name in names[:4] for word in words[name])
    known = all(set(words[name]) <= set(those) for name, those in _WORDS.items())
    if blank or not known or not starts.height or starts["blank"].any():
        return None
    return Outline(
        words["candidate"],
        words["voter"],
        budget or budget_of(FileRows(_first_points(rows), file)),
        starts["turn"],
        "rich" in words["protocol"],
        [text for text in words.get("provenance", []) if text is not None],
    )


def _first_points(rows: pl.LazyFrame) -> pl.DataFrame:
    """Points given in the first ballots, as `given`; of a long file not all, to read little."""
    form, mass = pl.col("protocol").cast(pl.String), pl.col("mass")
    rich = pl.col("points") if "points" in rows.collect_schema() else pl.lit(None, pl.Int64)
    own = form.is_in(WITH_BUDGET)
    given = (own & (mass > 0)) | ((form == "rich") & (rich > 0))
    points = pl.when(own).then(mass).otherwise(rich)
    first = rows.filter(given).select(*TURN[:2], "stage", "voter", given=points).head(_LOOKED_AT)
    return first.collect(engine="streaming")


@contextmanager
def scanned(file: Path) -> Iterator[pl.LazyFrame]:
    """The rows of a Parquet file, to be asked; `BallotFileError` if the file cannot be read."""
    try:
        open_named(file).close()
        yield pl.scan_parquet(file.absolute(), glob=False, hive_partitioning=False)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        hint = "Write it again, in the shape of `tutorsim export`'s ballots table."
        raise unreadable(file, str(error).splitlines()[0], hint) from error
