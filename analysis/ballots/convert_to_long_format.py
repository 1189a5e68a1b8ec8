"""From the shape that a file has to one row a ballot and candidate, and what that assumed.

Shapes, in the order in which they are looked for:

* *long*: a row is one ballot and candidate, with a mass, or a rank from 1, the best;
* *raw replies*: a row is one voter's reply, read as the study's ballots are;
* *places*: columns rank1, rank2, … (or 1st, first choice, …) hold candidates;
* *one cell*: a column holds one choice, all approved, or the whole order;
* *votes*: columns of for and against, or those that the user names, are a vote each;
* *wide*: every column that is none of ours is a candidate.

A file that does not name its episode, turn, stage or protocol has one of each. What may be read in
two ways is asked about, and what was assumed is said in one sentence; a file in the ballots table's
own shape assumes nothing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl

from tutorsim.analysis.ballots import ambiguous_columns_and_cells_with_proposed_options as doubtful
from tutorsim.analysis.ballots.ambiguous_columns_and_cells_with_proposed_options import (
    ALSO,
    ONE_CELL,
    other_columns,
)
from tutorsim.analysis.ballots.malformed_rows import (
    EXAMPLE,
    FileRows,
    columns_doubled,
    columns_missed,
)
from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import (
    CHOICES,
    MAY_LEAVE_OUT,
    ON_A_SCALE,
    WITH_BUDGET,
    leaving_out,
    protocol_named,
)
from tutorsim.analysis.ballots.raw_tables import read_cells
from tutorsim.analysis.ballots.reading_options_and_column_words import (
    EVERY_VOTE,
    NO_HINTS,
    OPTION_WORDS,
    WHO_CHOSE,
    WORDS,
    Hints,
    bare,
    column_named,
    plain,
    spellings,
)
from tutorsim.analysis.ballots.vote_arrays_and_profiles import BALLOT
from tutorsim.analysis.ballots.wide_rows_list_cells_raw_replies import (
    KEYS,
    Guess,
    Rows,
    as_numbers,
    guess_protocol,
    lists_in,
    nearly_numbers,
    of_one_cell,
    of_places,
    of_replies,
    of_wide,
    place_columns,
    refuse_strange,
    whole_points,
)
from tutorsim.analysis.runs.exported_tables import BALLOTS_SCHEMA
from tutorsim.errors import BallotFileError, UsageError


def lay_out(file: Path, hints: Hints = NO_HINTS, frame: pl.DataFrame | None = None) -> Rows:
    """The rows of a file, or of a frame, in the long shape, with what that assumed.

    Types are as they come. Raises `BallotFileError` if the file cannot be read, its columns fit no
    shape, or it does not tell enough; `UsageError` if a hint names a column that it has not.
    """
    cells = read_cells(file, frame)
    rows = _named(cells, file, hints)
    texts = [name for name in ("mass", "points") if rows.frame.schema.get(name) == pl.String]
    decimals = pl.col(texts).str.replace(r"^\s*(-?\d+),(\d+)\s*$", "$1.$2")
    rows = _each_who_chose(rows.with_columns(decimals))
    doubtful.refuse_headings(rows)
    shape, laid = _shaped(rows)
    laid = replace(laid, shape=shape)
    doubtful.refuse_totals(laid, rows)
    laid = _with_stages(_with_keys(laid))
    if shape in ("long", "wide", "voters") and not rows.has("episode_id", "stage", "protocol"):
        doubtful.refuse_words_for_nobody(laid)
    laid = _blanks_give_nothing(_with_protocol(laid))
    laid = _with_stated_candidates(_spelled(laid), rows)
    laid = _with_weights(_on_scale(_with_whole_points(laid)))
    laid = _with_unused(_with_abstentions(laid), rows)
    answered = cells.frame.select(pl.col("^provenance$").drop_nulls().unique().cast(pl.String))
    return replace(
        laid,
        frame=laid.frame.select(n for n in ("row", *BALLOTS_SCHEMA) if laid.has(n)),
        columns={o: t for o, t in rows.columns.items() if o in (*BALLOTS_SCHEMA, *ALSO)},
        provenance=tuple(sorted(text for column in answered for text in column)),
        own=_own(rows),
    )


def _on_scale(rows: Rows) -> Rows:
    """Scores as whole numbers from 0, and `top`, the end of their scale."""
    scored, numbers = rows.frame.get_column("protocol").is_in(ON_A_SCALE), rows.numbers("mass")
    if numbers is None or not scored.any():
        return rows
    given = numbers.filter(scored).drop_nulls()
    if given.is_empty():
        return rows
    seen = pl.Series([given.min(), given.max()], dtype=pl.Float64).to_list()
    exported = all(rows.columns.get(name) == name for name in ("episode_id", "stage", "protocol"))
    worst, best = rows.hints.scale or ((min(seen[0], 0.0), seen[1]) if exported else seen)
    low, high = sorted((worst, best))
    rows = rows.with_columns(mass=numbers)
    rows.refuse(
        f"the score {{mass:g}} is not on the scale from {low:g} to {high:g}",
        scored & ((pl.col("mass") < low) | (pl.col("mass") > high)),
    )
    times = whole_points(pl.concat([given, pl.Series([low, high], dtype=pl.Float64)]))
    if times is None:
        raise BallotFileError(
            f"{rows.file}: scores have more than four digits behind the point.",
            why="Means are compared exactly, as whole numbers.",
            hint="Round them.",
        )
    sign = 1 if worst <= best else -1
    counted = ((pl.col("mass") - worst) * sign * times).round()
    found = "" if rows.hints.scale else ", the smallest and the largest seen"
    finer = f", in steps of 1/{times}" if times != 1 else ""
    end = ", the best" if best < worst else ""
    note = f"a scale from {worst:g} to {best:g}{end}{found}, counted from 0{finer}"
    rows = rows.with_columns(mass=pl.when(scored).then(counted).otherwise("mass"), text=note)
    return replace(rows, top=round((high - low) * times))


def _with_abstentions(rows: Rows) -> Rows:
    """How many ballots of a file that does not say it are abstentions."""
    if not rows.assumed or rows.shape == "raw replies" or rows.has("ballot_status"):
        return rows
    silent = rows.frame.group_by(BALLOT).agg(pl.col("mass").is_null().all())
    n = int(silent.get_column("mass").sum())
    return rows.note(f"{n} of the ballots had no mark and count as abstentions") if n else rows


def _spelled(rows: Rows) -> Rows:
    """Voters and candidates under one spelling each."""
    for name, what in (("voter", "voters"), ("candidate", "candidates")):
        column = rows.texts(name)
        said = spellings(column.drop_nulls().unique(), what, rows.hints.spelling)
        if said:
            rows = rows.with_columns(column.replace(said), text=f"one spelling of {what}")
    return rows


_MOST_ROWS: Final = 20_000_000
"""Rows that ballots of some weight may become."""


def _with_weights(rows: Rows) -> Rows:
    """A ballot of weight w as those of w voters."""
    if not rows.has("weight"):
        return rows
    said, weight = rows.columns["weight"], rows.numbers("weight")
    if rows.frame.schema["weight"] == pl.String:
        rows.refuse(
            "the weight {weight!r} may have a sign that parts thousands, or decimals",
            pl.col("weight").str.contains(r"^\s*[1-9]\d{0,2}([.,]\d{3})+\s*$"),
            hint="Write 1200 for a thousand and two hundred, 1.2 for one and a fifth; no other row "
            "was used.",
        )
    if weight is None:
        weight = pl.Series("weight", [None] * rows.frame.height, dtype=pl.Float64)
    if rows.file.suffix.lower() in (".json", ".jsonl") and weight.count():
        weight = weight.fill_null(1.0)
    several = pl.col("weight").n_unique().over(BALLOT) > 1
    rows.with_columns(weight=weight, _said="weight").refuse(
        "{_said!r} in “{column}” is no weight of a ballot: a number from 0, one a ballot",
        ~(pl.col("weight").is_finite() & (pl.col("weight") >= 0)).fill_null(False) | several,
        column=said,
    )
    scale = whole_points(weight)
    times = (weight * (scale or 1)).round().cast(pl.Int64)
    if scale is None or times.sum() > _MOST_ROWS:
        raise BallotFileError(
            f"{rows.file}: the weights in “{said}” cannot be counted.",
            why="A ballot of weight 3 is counted as those of 3 voters, and this makes too many.",
            hint="Divide all weights by one number, so that they are small and whole.",
        )
    several = pl.format("{} ({} of {})", "voter", "_copy", "_times")
    every = rows.frame.with_columns(_times=times).filter(pl.col("_times") > 0)
    ballots = every.select(BALLOT).unique().height
    every = every.with_columns(_copy=pl.int_ranges(1, pl.col("_times") + 1)).explode("_copy")
    every = every.with_columns(voter=pl.when(pl.col("_times") > 1).then(several).otherwise("voter"))
    count = every.select(BALLOT).unique().height
    by = f", times {scale}" if scale != 1 else ""
    left = rows.frame.select(BALLOT).unique().height - ballots
    by += f"; {left} of weight 0 count for nobody" if left else ""
    return rows.with_frame(
        every, f"weights in “{said}”: {ballots} ballots count as those of {count} voters{by}"
    )


def _with_unused(laid: Rows, file: Rows) -> Rows:
    """The columns that nothing was read from, in one line."""
    whole = [name for name in ONE_CELL if file.has(name)]
    read = {"one cell": whole[:1], "long": ["candidate", "mass", "rank"], "voters": ["candidate"]}
    spare = {"mass", "rank", *whole}.difference(read.get(laid.shape, ()), laid.used)
    used = {*file.columns.values(), *file.columns} - {*spare, *map(file.called, spare)}
    used |= {*laid.used, *filter(None, [file.hints.own]), "row", "provenance", "candidates"}
    unused = [file.called(n) or "one without a name" for n in file.frame.columns if n not in used]
    return laid.note(f"not used: {', '.join(unused)}") if unused else laid


def _own(rows: Rows) -> Mapping[str, Mapping[str, str]]:
    """Whose candidate is whose, as a column says that the user names."""
    hints = rows.hints
    if hints.own is None:
        return {}
    if not rows.has(hints.own):
        raise UsageError(
            f"{rows.file} has no column {hints.own!r}, which --own names.",
            why="It is no file either.",
            hint="Name a column of the ballots' file, or a file with the columns voter and "
            "candidate.",
        )
    vote = pl.col("episode_id") if rows.has("episode_id") else pl.lit(rows.file.stem)
    own = pl.col(hints.own).cast(pl.String).str.strip_chars()
    return by_vote(rows.frame, vote, "voter" if rows.has("voter") else "row", own)


def by_vote(
    frame: pl.DataFrame, vote: pl.Expr, voter: str, candidate: pl.Expr
) -> dict[str, dict[str, str]]:
    """Vote → voter → candidate, of the rows that name one."""
    found: dict[str, dict[str, str]] = {}
    named = frame.select(_of=vote, _who=voter, _what=candidate).drop_nulls("_what")
    for of, who, what in named.cast(pl.String).iter_rows():
        found.setdefault(of, {})[who] = what
    return found


def _named(cells: FileRows, file: Path, hints: Hints) -> Rows:
    """The file's columns under our names: by hint, by name, then by another word for it."""
    theirs = [name for name in cells.frame.columns if name != "row"]
    absent = [name for name in (*hints.columns.values(), *hints.votes) if name not in theirs]
    if absent:
        raise UsageError(
            f"{file} has no column {absent[0]!r}, which --map names.",
            why=f"Its columns are {', '.join(theirs)}.",
            hint="Write --map OURS=THEIRS, for example --map voter=Wähler.",
        )
    found = dict(hints.columns)
    if len(hints.candidates) == 1 and hints.candidates[0] in theirs:
        found["candidates"], hints = hints.candidates[0], replace(hints, candidates=())
    theirs = [name for name in theirs if name not in hints.votes]
    exact = [name for name in (*BALLOTS_SCHEMA, *ALSO) if name in theirs]
    exact = [n for n in exact if n not in _ONLY_BESIDE or not _ONLY_BESIDE[n].isdisjoint(exact)]
    others = [name for name in theirs if name != "task"]
    if "task" in exact and "episode_id" not in found and not column_named("episode_id", others):
        exact.remove("task")  # where nothing else names the vote, that is the task
    found |= _options_with_voters(cells.frame, found)
    unnamed = [name for name in theirs if _names_nobody(cells.frame.get_column(name))]
    found |= {name: name for name in exact if name not in found and name not in found.values()}
    shape = () if {"candidate", "mass"} <= set(found) else ("candidate", "mass", "rank", *ALSO)
    for name in (*KEYS, *shape):
        taken = [*found.values(), *(unnamed if name == "voter" else ())]
        free = [column for column in theirs if column not in taken]
        column = column_named(name, free)
        if name in found or column is None:
            continue
        if name == "reply" and _holds_choices(cells.frame.get_column(column)):
            continue
        if name == "rank" and ("candidate" not in found or "mass" in found):
            continue  # a rank is a candidate's
        if name not in ("mass", "rank", "weight") or not _lists(cells.frame, found.get("voter")):
            found[name] = column
    free = [name for name in theirs if name not in found.values()]
    rows_named = doubtful.names_rows(cells.frame, free)
    if "voter" not in found and rows_named is not None:
        found["voter"] = rows_named
    if "candidate" not in found and plain(found.get("mass", "")) == "votes":
        found.setdefault("weight", found.pop("mass"))  # how many voters gave a ballot
    for ours, name in found.items():
        if ours != name and ours in cells.frame.columns and ours not in found.values():
            raise columns_doubled(file, ours, [name, ours])
    renamed = cells.frame.rename({theirs: ours for ours, theirs in found.items()})
    rows = Rows(renamed, file, cells.assumed, cells.comments, hints, found)
    other = [f"{o} in “{t}”" for o, t in found.items() if o not in (t, "candidates")]
    return rows.note(", ".join(other)) if other else rows


_ONLY_BESIDE: Final = {
    "approved": {"mass", "candidate"},  # else a list of those approved, not true or false
    "points": {"mass", "rank"},  # else the masses of a file without rich ballots
    "position": {"mass", "rank"},  # else where a candidate came in, not where it was shown
}
"""Our column → columns without which one of that name is another."""


def _lists(frame: pl.DataFrame, name: str | None) -> bool:
    """Whether the cells of a column, if there is one, are JSON's lists."""
    if name is None or frame.schema[name] != pl.String:
        return False
    cells = frame.get_column(name).drop_nulls()
    return len(cells) > 0 and cells.str.contains(r"^\[.*\]$").all()


def _options_with_voters(frame: pl.DataFrame, found: Mapping[str, str]) -> dict[str, str]:
    """The columns of options, and of the lists of voters who chose each, where there are such."""
    by_word = {plain(name): name for name in frame.columns if name not in found.values()}
    who = next((by_word[w] for w in WHO_CHOSE if _lists(frame, by_word.get(w))), None)
    option = next((by_word[word] for word in OPTION_WORDS if word in by_word), None)
    return {} if who is None or option is None else {"candidate": option, "voter": who, **found}


def _each_who_chose(rows: Rows) -> Rows:
    """One row for each voter of an option, where a cell lists them; an option of none stands."""
    if not rows.has("candidate", "voter") or not _lists(rows.frame, "voter"):
        return rows
    options = pl.col("candidate").unique(maintain_order=True).implode()
    vote = [name for name in ("episode_id",) if rows.has(name)]
    standing = options.over(vote) if vote else options.first()
    every = rows.frame.with_columns(
        candidates=standing, voter=pl.col("voter").str.json_decode(pl.List(pl.String))
    )
    listed = every.explode("voter").filter(pl.col("voter").is_not_null())
    return rows.with_frame(listed, "a list of voters for each option")


def _holds_choices(column: pl.Series) -> bool:
    """Whether a column, as of answers, has few short texts again and again, and no raw replies."""
    texts = column.cast(pl.String).drop_nulls()
    return (
        len(texts) > 3 and 2 * texts.n_unique() <= len(texts) and texts.str.len_chars().le(40).all()
    )


def _names_nobody(column: pl.Series) -> bool:
    """Whether a column, as of voters, is empty, or says of all that they have no name."""
    one = column.dtype == pl.String and column.n_unique() == 1
    return one and bare(column[0] or "") in {"", *WORDS["unnamed"]}


def _shaped(rows: Rows) -> tuple[str, Rows]:
    doubtful.refuse_early_totals(rows)
    if rows.hints.votes:
        return "votes", _of_votes(rows, rows.hints.votes)
    if rows.has("candidate") and (rows.has("mass") or rows.has("rank")):
        return "long", rows if rows.has("mass") else rows.note("ranks, 1 the best")
    if rows.has("reply"):
        return "raw replies", of_replies(rows, _single_protocol(rows))
    places = place_columns(rows)
    if places:
        doubtful.refuse_weights(rows, "ranking", [*places.values()])
        doubtful.refuse_unseen_names(rows)
        return "places", of_places(rows, places)
    voters = _number_columns(rows) if rows.has("candidate") and not rows.has("voter") else []
    if len(voters) > 1:
        numbers = (rows.numbers(name) for name in voters)
        cast = rows.with_columns(column for column in numbers if column is not None)
        return "voters", _each_voter(cast, voters, "mass")
    for name in ONE_CELL:
        if rows.has(name):
            doubtful.refuse_other_ballots(rows, name)
            doubtful.refuse_weights(rows, name)
            doubtful.refuse_unseen_names(rows)
            rows = _with_write_ins(rows, name)
            return "one cell", of_one_cell(rows, name, _single_protocol(rows))
    doubtful.refuse_comparisons(rows)
    motions = doubtful.motion_columns(rows)
    if motions and (rows.has("voter") or not rows.has("episode_id")):
        doubtful.refuse_motions_or_voters(rows, motions)
        return "votes", _of_votes(rows, motions)
    wide = _number_columns(rows)
    if not rows.hints.candidates:
        doubtful.refuse_other_columns(rows, wide)
    if len(wide) > 1:
        return "wide", of_wide(rows, wide)
    voters = _voter_columns(rows)
    if voters:
        doubtful.refuse_numbered(rows, voters)
        ordered = any(rows.texts(name).str.contains(">", literal=True).any() for name in voters)
        column = "ranking" if ordered else "choice"
        every = _each_voter(rows, voters, column)
        return "voters", of_one_cell(every, column, _single_protocol(rows))
    missed = [name for name in ("voter", "candidate", "mass", "protocol") if not rows.has(name)]
    theirs = [rows.called(name) for name in rows.frame.columns if name != "row"]
    raise columns_missed(rows.file, missed, theirs, doubtful.proposal(rows))


def _with_write_ins(rows: Rows, name: str) -> Rows:
    """A choice of “Other” as the name that the row's column of write-ins gives."""
    cells = rows.texts(name)
    other = cells.map_elements(bare, pl.String).is_in(WORDS["other"]).fill_null(False)
    for column in other_columns(rows) if other.any() else ():
        written = rows.texts(column)
        filled = written.is_not_null()
        if re.search("write|other|specif|sonst|ander|autre|otr", column, re.I) and (
            filled.any() and not (filled & ~other).any()
        ):
            told = f"{filled.sum()} of the choices name others, in “{column}”"
            named = rows.with_columns(cells.zip_with(~filled, written), text=told)
            return replace(named, used=(*rows.used, column))
    return rows


def _of_votes(rows: Rows, votes: Sequence[str]) -> Rows:
    """One choice for each row and column, each column a vote; in rows of a vote, beside it."""
    if not rows.has("voter"):
        rows = rows.with_columns(voter=pl.col("row").cast(pl.String))
    told = f"one column a vote ({', '.join(votes)})" if len(votes) > 1 else f"votes in “{votes[0]}”"
    vote = pl.format("{} {}", "episode_id", "_vote") if rows.has("episode_id") else pl.col("_vote")
    every = rows.by_column(votes, "_vote", "choice").with_columns(episode_id=vote, text=told)
    return of_one_cell(every, "choice", _protocol_hint(rows))


def _number_columns(rows: Rows) -> list[str]:
    """Columns that hold numbers or marks; where some cells are X and others Y, those are names."""
    stated, names = rows.hints.candidates, other_columns(rows)
    if stated:
        names = [name for name in names if name in stated]
    else:
        likely = (name for name in names if not doubtful.counts_or_names(name))
        names = [name for name in likely if rows.numbers(name) is not None]
    words = {
        name: set(rows.frame.get_column(name).drop_nulls().str.strip_chars().str.to_lowercase())
        for name in names
        if rows.frame.schema[name] == pl.String
    }
    if not {"x", "y"} <= set().union(*words.values()):
        return names
    return [name for name in names if not words.get(name, set()) & {"x", "y"}]


def _voter_columns(rows: Rows) -> list[str]:
    """Columns that hold a voter's choices each: two or more, in which some cells are alike."""
    if rows.has("voter"):
        return []
    names = doubtful.alike_columns(rows)
    place = next((n for n in rows.frame.columns if plain(n) in _PLACES), None)
    if place is not None and names:
        raise BallotFileError(
            f"{rows.file} has a column “{place}” beside columns of names.",
            why="A row may hold who stands in one place for each voter, or be a vote of its own.",
            hint="Give one row a voter, with the columns rank1, rank2, …; if the rows are votes, "
            "call that column question.",
        )
    return names


_PLACES: Final = ("rank", "place", "position", "preference")


def _each_voter(rows: Rows, voters: Sequence[str], column: str) -> Rows:
    text = f"one column a voter ({', '.join(voters)})"
    every = rows.by_column(voters, "voter", column)
    if rows.has("episode_id") or column == "mass" or rows.frame.height == 1:
        return every.note(text)
    vote = pl.format("row {}", "row")
    return every.with_columns(episode_id=vote, text=f"{text}, one row a vote")


def _with_keys(rows: Rows) -> Rows:
    """Episode, turn, stage and voter of files that do not name them."""
    if not rows.has("voter"):
        if rows.shape == "long":
            counts = (
                "A count of votes for each candidate is no ballot. If each voter chose one: "
                f"--map 'choice={rows.columns['candidate']}' "
                f"--map 'weight={rows.columns.get('mass', 'COUNT')}'"
            )
            raise columns_missed(rows.file, ["voter"], list(rows.columns.values()), counts)
        rows = rows.with_columns(voter=pl.col("row").cast(pl.String), text="every row a voter")
    stem = rows.file.stem
    lacking: Mapping[str, tuple[pl.Expr, str]] = {
        "episode_id": (pl.lit(stem), f"all of one vote, {stem}"),
        "turn": (pl.lit(1, pl.Int64), "one vote each"),
        "stage": (pl.lit("vote_final"), "all final votes"),
    }
    for name, (value, text) in lacking.items():
        if not rows.has(name):
            rows = rows.with_columns(value.alias(name), text=text)
    return rows


def _with_stages(rows: Rows) -> Rows:
    """Stages by our names, where the file has others."""
    rows = rows.with_columns(rows.texts("stage"))
    words = rows.frame["stage"].drop_nulls().unique().to_list()
    named = {word: rows.stage_of(word) for word in words}
    unknown = [word for word, stage in named.items() if stage is None]
    if unknown and len(words) == 1:
        named[words[0]] = "vote_final"
        rows = rows.note(f"the stage {words[0]!r} is the final vote")
    elif unknown:
        rows.refuse(
            "unknown stage {stage!r} (known: initial, final, tie)",
            pl.col("stage").is_in(unknown),
            hint="Say which it is: --stage final=NAME, --stage initial=NAME or --stage tie=NAME.",
        )
    return rows.with_columns(pl.col("stage").replace(named))


def _protocol_hint(rows: Rows) -> str | None:
    if rows.hints.protocol is None:
        return None
    protocol = protocol_named(rows.hints.protocol)
    if protocol is None:
        raise UsageError(f"{rows.hints.protocol!r} is no protocol.", hint=f"Use {CHOICES}.")
    return protocol


def _single_protocol(rows: Rows) -> str | None:
    """The protocol that the user says, or a column of the file, one for all rows."""
    if rows.hints.protocol is not None or not rows.has("protocol"):
        return _protocol_hint(rows)
    named = {protocol_named(word) for word in rows.texts("protocol").drop_nulls().unique()}
    return named.pop() if len(named) == 1 else None


def _with_protocol(rows: Rows) -> Rows:
    """Protocols by our names; found from the numbers where nothing says one."""
    hint = _protocol_hint(rows)
    if hint is not None:
        rows = rows.with_columns(protocol=pl.lit(hint))
    if not rows.has("protocol"):
        return _ranks_as_masses(_guessed(rows))
    words = rows.texts("protocol").drop_nulls().unique(maintain_order=True).to_list()
    named = {word: protocol_named(word) or word for word in words}
    rows = rows.with_columns(rows.texts("protocol").replace(named))
    borda = plain(rows.hints.protocol or next(iter(words), "")) == "borda"
    if borda and rows.has("mass") and _least(rows.frame) == 1:
        return rows.with_columns(pl.col("mass").cast(pl.Float64) - 1, text="Borda points from 1")
    return _ranks_as_masses(rows, ranks=rows.shape == "wide" and not borda)


def _guessed(rows: Rows) -> Rows:
    """The protocol that the numbers of all ballots fit."""
    if not rows.has("mass"):
        return rows.with_columns(protocol=pl.lit("ranked"))
    numbers = rows.numbers("mass")
    if numbers is None:
        if nearly_numbers(rows.frame.get_column("mass")):
            refuse_strange(rows, "mass")
        raise BallotFileError(
            f"{rows.file} does not say which ballots these are.",
            why="There is no column protocol, and some masses are no numbers.",
            hint=f"Add --protocol {CHOICES}.\n{EXAMPLE}",
        )
    ballot = ("row",) if rows.shape == "wide" else BALLOT
    counted = rows.with_columns(mass=numbers)
    found = guess_protocol(counted.frame, ballot)
    if rows.shape != "long" and (found is None or not found.ranks):
        doubtful.refuse_shared_places(counted, ballot)
    if rows.shape != "long" and found is not None and found.from_zero:
        raise BallotFileError(
            f"{rows.file} has Borda points, or ranks from 0.",
            why="Every ballot has each of 0, 1, … once, and nothing says which is the best.",
            hint="If the highest is the best, say --protocol borda; else let ranks begin at 1, "
            "and leave out who has none.",
        )
    if found is None:
        if rows.shape == "wide":
            doubtful.refuse_ranks_with_gaps(counted, ballot)
        if rows.hints.scale is None:
            doubtful.refuse_other_numbers(rows, numbers)
        because = "the numbers are neither 0 and 1, nor an order, nor of one sum"
        found = Guess(ON_A_SCALE[0], because)
    note = f"{found.protocol} ballots, since {found.because}"
    rows = rows.with_columns(protocol=pl.lit(found.protocol))
    if not found.ranks:
        return rows.note(note)
    doubtful.refuse_comments(rows)
    if rows.shape == "long":  # a column of points, of which more is better
        from_zero = pl.col("mass").cast(pl.Float64) - 1
        return rows.with_columns(from_zero, text=f"{note}, the highest the best")
    return rows.with_frame(rows.frame.rename({"mass": "rank"}), f"{note}, 1 the best")


def _ranks_as_masses(rows: Rows, *, ranks: bool = False) -> Rows:
    """Masses from m - 1 to 0 for the ranks 1 to m of ranked ballots."""
    if rows.has("mass") and ranks:
        ranked = rows.frame.filter(pl.col("protocol").is_in(leaving_out("last")))
        if ranked.height and _least(ranked) == 1:
            as_ranks = rows.frame.with_columns(rank="mass").drop("mass")
            rows = rows.with_frame(as_ranks, "ranks, 1 the best")
    if rows.has("mass"):
        return rows
    number = rows.numbers("rank")
    if number is None:
        raise columns_missed(rows.file, ["mass"], list(rows.columns.values()))
    m = pl.col("candidate").n_unique().over(BALLOT[:3]).cast(pl.Int64)
    rows = rows.with_columns(_rank=number, _m=m)
    outside = (pl.col("_rank") < 1) | (pl.col("_rank") > pl.col("_m"))
    rows.refuse("the rank {rank} is none of 1 to {_m}", outside)
    mass = pl.col("_m") - pl.col("_rank")
    return rows.with_frame(rows.frame.with_columns(mass=mass).drop("rank"))


def _blanks_give_nothing(rows: Rows) -> Rows:
    """A wide ballot's empty cells as 0, where a ballot cannot leave a candidate out."""
    if rows.shape != "wide":
        return rows
    silent = pl.col("mass").is_null().all().over(BALLOT)
    gives = ~silent & ~pl.col("protocol").is_in(MAY_LEAVE_OUT)
    return rows.with_columns(
        mass=pl.when(gives).then(pl.col("mass").fill_null(0)).otherwise("mass")
    )


def _with_stated_candidates(laid: Rows, file: Rows) -> Rows:
    """A row without mass for each candidate that the user or the file says stands in a vote."""
    stated = _stated_candidates(file)
    if not stated or laid.shape == "raw replies":
        return laid
    names = pl.DataFrame(
        [(episode, name) for episode, several in stated.items() for name in several],
        schema={"_of": pl.String, "candidate": pl.String},
        orient="row",
    )
    of = pl.lit(EVERY_VOTE) if EVERY_VOTE in stated else pl.col("episode_id").cast(pl.String)
    ballots = laid.frame.filter(pl.col("stage") != "tie_vote").with_columns(_of=of)
    strangers = ballots.filter(pl.col("_of").is_in(list(stated))).join(
        names, on=["_of", "candidate"], how="anti"
    )
    laid.with_frame(strangers).refuse(
        "{candidate!r} is none of the candidates that are said to stand",
        pl.col("mass").is_not_null() & (pl.col("mass").cast(pl.String) != "0"),
        hint="Add it to them, or correct the name.",
    )
    gives = pl.col("mass").is_not_null() & ~pl.col("protocol").is_in(MAY_LEAVE_OUT)
    said = ballots.with_columns(_gives=gives.any().over(BALLOT))
    first = said.unique(BALLOT, keep="first", maintain_order=True)
    every = first.drop("candidate").join(names, on="_of", how="inner")
    added = every.join(laid.frame, on=[*BALLOT, "candidate"], how="anti")
    empty = pl.when("_gives").then(pl.lit(0)).cast(laid.frame.schema["mass"])
    frame = pl.concat([laid.frame, added.with_columns(mass=empty).select(laid.frame.columns)])
    return laid.with_frame(frame.sort("row", maintain_order=True))


def standing_of_lists(
    lists: pl.Series, votes: pl.Series | None, every: str = EVERY_VOTE
) -> dict[str, tuple[str, ...]]:
    """Vote → who stands, of cells that list them; without votes all stand in one of some name."""
    found: dict[str, dict[str, None]] = {}
    of = [every] * len(lists) if votes is None else votes
    for vote, names in zip(of, lists_in(lists)[0].to_list(), strict=True):
        found.setdefault(str(vote), {}).update(dict.fromkeys(names or ()))
    return {vote: tuple(names) for vote, names in found.items()}


def _stated_candidates(rows: Rows) -> Mapping[str, tuple[str, ...]]:
    """Vote, or all votes → who stands, as the user or a column of the file says."""
    hints = rows.hints
    if hints.candidates_of:
        return hints.candidates_of
    if not rows.has("candidates"):
        return {EVERY_VOTE: hints.candidates} if hints.candidates else {}
    votes = rows.frame.get_column("episode_id") if rows.has("episode_id") else None
    found = standing_of_lists(rows.frame.get_column("candidates"), votes, rows.file.stem)
    return {vote: names for vote, names in found.items() if names}


def _with_whole_points(rows: Rows) -> Rows:
    """Points with decimals, and a stated budget, times the power of ten that makes them whole."""
    column = rows.frame.get_column("mass")
    if column.dtype == pl.String:
        bare = not column.str.contains(".", literal=True).any()
    else:
        bare = not column.dtype.is_float() or bool((column == column.floor()).all())
    numbers = None if bare else as_numbers(column)
    if numbers is None:
        return rows
    points = rows.frame.get_column("protocol").is_in(WITH_BUDGET).fill_null(False)
    scale = whole_points(numbers.filter(points).drop_nulls())
    if scale in (None, 1):
        return rows
    scaled = pl.when(points).then((numbers * scale).round()).otherwise(numbers)
    rows = rows.with_columns(mass=scaled, text=f"points times {scale}")
    return replace(rows, budget=rows.hints.budget and rows.hints.budget * scale)


def _least(frame: pl.DataFrame) -> float | None:
    numbers = as_numbers(frame.get_column("mass"))
    return None if numbers is None else numbers.min()  # type: ignore[return-value]
