"""What of a file's rows and columns may be read in two ways: it is asked about, not guessed.

Each refusal says what was seen, why it is doubtful, and the option or the change that settles it;
where nothing fits, `proposal` says what the file's own columns may be called.
"""

import re
from collections.abc import Collection, Sequence
from typing import Final

import polars as pl

from tutorsim.analysis.ballots.reading_options_and_column_words import (
    ABSTAINS,
    COLUMN_WORDS,
    MOTION,
    MOTIONS,
    WORDS,
    bare,
    plain,
    says_nobody,
)
from tutorsim.analysis.ballots.wide_rows_list_cells_raw_replies import (
    Rows,
    as_numbers,
    nearly_numbers,
    refuse_strange,
)
from tutorsim.analysis.runs.exported_tables import BALLOTS_SCHEMA
from tutorsim.errors import BallotFileError

# --- Names of columns ----------------------------------------------------------------------------

ONE_CELL: Final = ("ranking", "approvals", "choice", "candidate", "list")
"""Columns that hold whole ballots, the one that is read first."""
ALSO: Final = ("choice", "approvals", "ranking", "reply", "candidates", "weight")
"""Our names of columns that the ballots table has not."""


def other_columns(rows: Rows) -> list[str]:
    """Columns of the file that have none of our names."""
    ours = {"row", "provenance", rows.hints.own, *BALLOTS_SCHEMA, *ALSO}
    return [name for name in rows.frame.columns if name not in ours]


def counts_or_names(name: str) -> bool:
    """Whether a column has no name, or one of words alone for what counts, sums or names rows."""
    words = set(re.findall(r"\w+", name.casefold().replace("_", " ")))
    none = WORDS["no candidate"] | WORDS["total"]
    return not name.strip() or bool(words & none and words <= none | WORDS["beside"])


def _bare_words(name: str) -> set[str]:
    return set(re.findall(r"\w+", bare(name).replace("_", " ")))


def names_rows(frame: pl.DataFrame, names: Sequence[str]) -> str | None:
    """The first column that names or numbers who filled in its row; `None` without one.

    No two of its cells are equal, and its heading says so: in a word that no other has, or by “#”;
    or it stands first, and has no heading and words, or numbers its rows from 1.
    """
    words = {name: _bare_words(name) & WORDS["row"] for name in names}
    for name in names:
        once = not any(words[name] & words[other] for other in names if other != name)
        said = name.strip() == "#" or (words[name] and once and not re.search(r"\d", name))
        first = name == frame.columns[1]
        if not said and not first:
            continue
        cells = frame.get_column(name).cast(pl.String).drop_nulls()
        numbered = pl.int_range(1, len(cells) + 1, eager=True).cast(pl.String)
        counted = len(cells) > 3 and cells[0] == "1" and (cells == numbered).all()
        named = said or counted or (not name.strip() and cells.str.contains(r"\p{L}").any())
        if named and len(cells) > 1 and cells.is_unique().all():
            return name
    return None


def alike_columns(rows: Rows) -> list[str]:
    """Columns that have a cell in common with another, and do not count or name rows."""
    names = [name for name in other_columns(rows) if not counts_or_names(name)]
    cells = {name: set(rows.texts(name).drop_nulls()) for name in names}
    return [n for n, one in cells.items() if any(one & cells[m] for m in names if m != n)]


# --- Rows that are no ballots --------------------------------------------------------------------


def refuse_headings(rows: Rows) -> None:
    """The heading once more among the rows, as where files were put behind one another; or a first
    line that is a ballot like the others, and no heading."""
    names = [name for name in rows.frame.columns if name != "row"]
    first = rows.called(names[0])
    cells = {n: rows.frame[n].drop_nulls() for n in names if rows.frame.schema[n] == pl.String}
    alike = ("^.+>", r"^[^:]+: \S") if len(names) == len(cells) == 1 else ()
    lines = any(re.match(p, first) and cells[names[0]].str.contains(p).all() for p in alike)
    again = set().union(*(cells[n].unique() for n in cells if n.startswith(" ")))
    if lines or again.intersection(names):
        raise BallotFileError(
            f"{rows.file}: the first line may be a ballot, and no heading: "
            f"{','.join(map(rows.called, names))}",
            why="The heading is the first line, with a name for each column.",
            hint="Put one on top: ranking, if a line is an order such as a > b; voter,choice for "
            "“Ann, red”; weight;ranking for “12; a > b”, cast 12 times.",
        )
    if len(names) > 1 and all(rows.frame.schema[name] == pl.String for name in names):
        rows.refuse(
            "the row repeats the heading",
            pl.all_horizontal(pl.col(n).str.strip_chars() == rows.called(n) for n in names),
            hint="Take it out; if files were put behind one another, read each by itself.",
        )


def refuse_early_totals(rows: Rows) -> None:
    """A note or a row of sums in the first column of words, before a shape is looked for."""
    name = rows.frame.columns[1] if rows.frame.width > 1 else "row"
    ours = rows.columns.get(name) is not None and name != "voter"
    if rows.frame.schema[name] == pl.String and not ours and rows.frame.height > 1:
        _refuse_words(rows, name, WORDS["note"], "a note below the ballots")
        last = rows.frame.tail(1 if rows.frame.get_column(name).is_unique()[-1] else 0)
        _refuse_words(rows.with_frame(last), name, WORDS["total"] | {"count", "anzahl"})


def refuse_totals(laid: Rows, file: Rows) -> None:
    """A row that sums the others up, which is no voter's.

    Its voter says so; or, among columns that nothing is read from, one of names, each once, that
    ends in such a word.
    """
    if laid.has("voter"):
        _refuse_words(laid, "voter", WORDS["total"] | {"all", "overall"})
        _refuse_words(laid, "voter", WORDS["note"], "a note below the ballots")
    if laid.shape == "one cell" and laid.has("weight"):
        given = laid.frame.filter(pl.col("mass") > 0)  # every row has every candidate
        _refuse_words(laid.with_frame(given), "candidate", WORDS["total"])
    for name in file.frame.columns if laid.shape == "wide" else ():
        cells = file.frame.get_column(name)
        if cells.dtype == pl.String and name not in laid.used and not cells.is_duplicated().any():
            _refuse_words(file.with_frame(file.frame.tail(1)), name, WORDS["total"])


def _refuse_words(
    rows: Rows, name: str, known: Collection[str], else_be: str = "what all others add up to"
) -> None:
    who = "candidate" if name == "candidate" else "voter"
    cells = rows.texts(name).drop_nulls().unique()
    found = [cell for cell in cells if plain(cell.partition(":")[0]) in known]
    rows.with_columns(_cell=name).refuse(
        f"{{_cell!r}} may be a {who}, or {else_be}",
        pl.col(name).cast(pl.String).is_in(found),
        hint=f"Take the row out; if it is a {who}, give it another name.",
    )


def refuse_words_for_nobody(rows: Rows) -> None:
    """A column or row of numbers for “abstain”, who may be a candidate."""
    names = rows.texts("candidate").drop_nulls().unique()
    words = [n for n in names if says_nobody(n) and n not in rows.hints.candidates]
    rows.refuse(
        "{candidate!r} has numbers, and may be a candidate or nobody",
        pl.col("candidate").is_in(words),
        hint="If it is a candidate, name all: --candidates NAME,NAME,…; else take it out: a ballot "
        "without a number is an abstention.",
    )


def refuse_other_ballots(rows: Rows, name: str) -> None:
    """A row whose ballot stands in another column than those of the other rows."""
    for other in ONE_CELL:
        if other != name and rows.has(other):
            rows.refuse(
                "“{empty}” is empty and “{filled}” is not",
                pl.col(name).is_null() & pl.col(other).is_not_null(),
                empty=rows.called(name),
                filled=rows.called(other),
                hint="Give ballots of one format each a file of its own, or take a column out.",
            )


# --- Columns of one vote each --------------------------------------------------------------------


def motion_columns(rows: Rows) -> list[str]:
    """Columns of for and against, or of yes and no with abstentions said in words: a vote each."""
    if rows.hints.candidates or rows.hints.protocol:
        return []
    found: dict[str, set[str]] = {}
    for name in other_columns(rows):
        cells = rows.texts(name).drop_nulls().str.strip_chars().unique()
        words = {cell for cell in cells if not says_nobody(cell)}
        if words and all(plain(cell) in _TALLIED for cell in words):
            found[name] = {plain(cell) for cell in cells}
        elif any(plain(cell) in WORDS["for or against"] for cell in words) and len(words) < 6:
            strange = next(cell for cell in sorted(words) if plain(cell) not in _TALLIED)
            rows.refuse(
                "{cell!r} in “{column}” is neither for nor against, nor a known abstention",
                pl.col(name).cast(pl.String).str.strip_chars() == strange,
                cell=strange,
                column=name,
                hint="Write abstain, or nothing, if it is an abstention.",
            )
    said = set().union(*found.values())
    motions = bool(found) and all(re.search(MOTION, name, re.IGNORECASE) for name in found)
    clear = motions or said & WORDS["for or against"] or any(ABSTAINS.match(bare(w)) for w in said)
    return [*found] if clear else []


_TALLIED: Final = WORDS["for or against"] | WORDS["yes or no"]


def refuse_motions_or_voters(rows: Rows, columns: Sequence[str]) -> None:
    """Columns of for and against where nothing says whether they are votes or voters."""
    called = [re.search(MOTIONS, name, re.IGNORECASE) for name in columns]
    if rows.has("voter") or len(columns) == 1 or all(called):
        return
    votes = " ".join(f"--map 'choice={name}'" for name in columns)
    raise BallotFileError(
        f"{rows.file}: {', '.join(columns)} hold votes for and against.",
        why="A column may be a vote, and a row a voter, or the other way round.",
        hint=f"If columns are votes: {votes}; if they are voters, name the column of the vote: "
        "--map episode_id=NAME, or call it motion.",
    )


# --- Columns of numbers and marks ----------------------------------------------------------------


def refuse_other_columns(rows: Rows, candidates: Sequence[str]) -> None:
    """Columns of numbers and marks that may be no candidates', where nobody names those; and one
    beside them that a few cells keep from being one, or that holds words of a scale."""
    for name in other_columns(rows):
        if name not in candidates and nearly_numbers(rows.frame.get_column(name)):
            refuse_strange(rows, name)
    if len(candidates) < 2:
        _refuse_grades(rows, alike_columns(rows))
        return
    if not rows.has("voter"):
        _refuse_tallies(rows, candidates)
        _refuse_judges(rows, candidates)
    _refuse_summed_rows(rows, candidates)
    _refuse_answers_beside_numbers(rows, candidates)


def _refuse_answers_beside_numbers(rows: Rows, candidates: Sequence[str]) -> None:
    """Columns of yes and no beside columns of numbers, which are not both candidates'."""
    texts = {name: rows.texts(name) for name in candidates}
    marks = {n: cells.str.contains(r"\p{L}|[✓✔]").any() for n, cells in texts.items()}
    words = [n for n, some in marks.items() if some and not texts[n].str.contains(r"\d").any()]
    if words and len(words) < len(candidates):
        numbers = [name for name in candidates if name not in words]
        raise BallotFileError(
            f"{rows.file}: yes and no stand in {', '.join(words)}, and numbers in "
            f"{', '.join(numbers)}.",
            why="Candidates get one kind of ballot.",
            hint=f"If “{words[0]}” is each voter's choice: --map 'choice={words[0]}', and "
            f"--map 'weight={numbers[0]}' if that counts votes; else name who stands: "
            "--candidates NAME,NAME,…",
        )


def _refuse_tallies(rows: Rows, candidates: Sequence[str]) -> None:
    """Columns of votes for and against, which count voters."""
    numbers = [rows.numbers(name) for name in candidates]
    counts = any((column > 1).any() for column in numbers if column is not None)
    if counts and all(plain(name) in _TALLIED or says_nobody(name) for name in candidates):
        raise BallotFileError(
            f"{rows.file}: {', '.join(candidates)} count voters, and are no ballots.",
            why="A recount asks what each voter wanted.",
            hint="Give one row a voter with columns voter and choice; or one row for each choice "
            "with columns choice and count.",
        )


def _refuse_judges(rows: Rows, candidates: Sequence[str]) -> None:
    """Columns that are called voters, in a file whose rows may be candidates."""
    stems = {re.sub(r"[_.\W]*\d+$|_[a-z]$", "", plain(name)) for name in candidates}
    called = len(stems) == 1 and stems <= {"voter", *COLUMN_WORDS["voter"]}
    if called and rows.has("episode_id"):
        said = rows.called("episode_id")
        raise BallotFileError(
            f"{rows.file}: {', '.join(candidates)} may be voters or candidates.",
            why=f"They are called voters, and “{said}” may hold candidates or votes.",
            hint=f"If rows are candidates: --map candidate={said}; if columns are candidates: "
            f"--candidates '{','.join(candidates)}'.",
        )


def _refuse_summed_rows(rows: Rows, candidates: Sequence[str]) -> None:
    """A column of each row's mean or sum, which is made for candidates: rows may be those."""
    heading = plain(rows.columns.get("voter", "name"))
    if heading not in ("name", "model", "llm", "agent"):
        return
    numbers = {name: rows.numbers(name) for name in other_columns(rows)}
    named = [name for name, column in numbers.items() if column is None]
    who = rows.columns.get("voter") or next(iter(named), None)
    for name, said in numbers.items() if who else ():
        if plain(name) not in WORDS["total"] or said is None or said.n_unique() == 1:
            continue  # equal sums are what each voter had to give away
        others = {n: numbers[n] for n in candidates if n != name}
        given = pl.DataFrame([column for column in others.values() if column is not None])
        sums = (given.mean_horizontal(), given.sum_horizontal())
        if any(((said - exact).abs() < 0.06).all() for exact in sums):  # or that to one decimal
            raise BallotFileError(
                f"{rows.file}: rows may be voters or candidates.",
                why=f"“{name}” sums up what stands in each row, as one does for candidates.",
                hint=f"If rows are candidates: --map 'candidate={who}'; if columns are candidates: "
                f"--candidates '{','.join(others)}'.",
            )


def refuse_shared_places(rows: Rows, ballot: Sequence[str]) -> None:
    """Numbers that may be ranks, 1 the best, with several candidates in one place, or points."""
    given, mass = rows.frame.filter(pl.col("mass").is_not_null()), pl.col("mass")
    fits = (
        given.select((mass.rank(way).over(*ballot) == mass).all()).item()
        for way in ("min", "dense", "max", "average")
    )
    if given.get_column("mass").max() not in (None, 1) and any(fits):
        raise BallotFileError(
            f"{rows.file} has ranks with several candidates in one place, or points.",
            why="The numbers of every ballot are places from 1, and some are equal.",
            hint="If the highest is the best, say --protocol score or cumulative. A ranked ballot "
            "is a strict order: give ranks with equal places as a PrefLib file (.toc), or turned "
            "round, so that the highest is the best.",
        )


_DIRECTION: Final = re.compile(r"best|worst|high|low|prefer|beste|schlecht|höch|niedrig", re.I)


def refuse_comments(rows: Rows) -> None:
    """A comment that may say which end of the ranks is the best."""
    said = next((line for line in rows.comments if _DIRECTION.search(line)), None)
    if said is not None:
        raise BallotFileError(
            f"{rows.file} has ranks from 1, or points, and its comment may say which: {said}",
            why="Nothing is read from a comment.",
            hint="If 1 is the best, say --protocol ranked; if the highest is, --protocol borda.",
        )


_LOW_IS_BEST: Final = re.compile(
    r"\b1\s*(=|:|is|ist|für)\s*(the |das )?(sehr gut|best|very good|excellent|sehr|highest|first)|"
    r"schulnoten?\b|\bnoten\b|zensur|german grade|^(note|grade)s?$|"
    r"(low|klein|niedrig)\w* .*(best|better|beste|besser)|\bnoten? 1 ?(-|–|bis) ?6\b",
    re.IGNORECASE,
)
"""What says, or makes it likely, that the lowest number is the best."""


def refuse_ranks_with_gaps(rows: Rows, ballot: Sequence[str]) -> None:
    """Blanks beside whole numbers of which most ballots have each of 1, 2, … once."""
    mass = pl.col("mass")
    given = rows.frame.filter(mass.is_not_null())
    m = rows.frame.get_column("candidate").n_unique()
    once = (mass.n_unique() == pl.len()) & (mass.min() == 1)
    each = given.group_by(*ballot).agg(once=once, whole=once & (mass.max() == pl.len()))
    fits = each.height and (2 * each["whole"].sum() > each.height) and each["once"].all()
    if fits and given.height < rows.frame.height and given["mass"].max() == m:
        raise BallotFileError(
            f"{rows.file} has ranks from 1 with gaps, or scores.",
            why="Most ballots have each of 1, 2, … once, and in some a number is left out.",
            hint="If 1 is the best, close the gaps and say --protocol ranked; if the highest is: "
            "--protocol score.",
        )


_CODES: Final = (99.0, 999.0, 9999.0, 98.0, 88.0, 77.0, -9.0, -99.0, -999.0, 9.0)
"""Numbers that surveys write for no answer; the last is a score, too."""
_LARGEST_SCORE: Final = 100


def refuse_other_numbers(rows: Rows, numbers: pl.Series) -> None:
    """Numbers of no protocol and scale that may be no scores, or scores of which 1 is the best.

    One stands for no answer, far from all others; or they are too large for a usual scale: they
    may count or measure; or a heading, a comment, a voter or the file's name says that 1 is best.
    """
    given = [float(one) for one in numbers.drop_nulls()]
    for code in _CODES if rows.shape == "wide" else ():
        others = [one for one in given if one != code]
        most = max(others, default=0.0)
        far = most <= 5 and given.count(9) > 1 if code == 9 else abs(code) >= 2 * max(most, 1)
        if others and far and len(others) < len(given):
            raise BallotFileError(
                f"{rows.file}: {code:g} may be a score, or stand for no answer.",
                why=f"All other numbers are at most {most:g}.",
                hint=f"If it stands for none, empty those cells; else give the scale, such as "
                f"--scale {min(*given, 0.0):g},{max(given):g}.",
            )
    if any(abs(one) > _LARGEST_SCORE for one in given):
        raise BallotFileError(
            f"{rows.file}: numbers up to {max(given):,.9g} may be scores, or count votes or money.",
            why=f"No usual scale of scores passes {_LARGEST_SCORE}.",
            hint="If they are what voters think, give the scale, such as --scale "
            f"{min(0.0, *given):.9g},{max(given):.9g}; of counted votes, give one row for each "
            "choice with columns choice and count.",
        )
    headings = (*rows.comments, *rows.columns.values(), rows.file.stem.replace("_", " "))
    names = (name for column in ("voter", "candidate") for name in rows.texts(column).drop_nulls())
    said = next((text for text in (*headings, *names) if _LOW_IS_BEST.search(text)), None)
    if said is not None:
        raise BallotFileError(
            f"{rows.file} has scores of which the lowest may be the best: {said}",
            why="Nothing else says which end of the scale is the best.",
            hint=f"If the lowest is: --scale {max(*given, 6.0):g},{min(*given, 1.0):g} (worst, "
            "then best); if the highest is: --protocol score.",
        )


def refuse_weights(rows: Rows, name: str, beside: Sequence[str] = ()) -> None:
    """A column of numbers beside a choice that may say how often a ballot counts.

    `beside`: the columns that hold the choice, where they are several.
    """
    if rows.has("weight") or name in rows.hints.columns:
        return
    for other in other_columns(rows):
        if other in beside:
            continue
        if re.search(_WEIGHTS, other, re.IGNORECASE) and rows.numbers(other) is not None:
            said = beside[0] if beside else rows.called(name)
            raise BallotFileError(
                f"{rows.file}: “{other}” may say how often a ballot counts.",
                why=f"It has a number beside each choice in “{said}”.",
                hint=f"If it does: --map 'weight={other}' (add 1 to each before, if a voter's own "
                "vote is not in it); if each ballot counts once: "
                + (f"take “{other}” out." if beside else f"--map '{name}={said}'."),
            )


def refuse_unseen_names(rows: Rows) -> None:
    """A column of people, several times some of them, beside ballots that name no voter."""
    if rows.has("voter") or rows.hints.namesakes:
        return
    for other in filter(_names_people, other_columns(rows)):
        cells = rows.texts(other).drop_nulls()
        if as_numbers(cells) is None and len(cells) / 2 < cells.n_unique() < len(cells):
            twice = cells.filter(cells.is_duplicated())[0]
            raise BallotFileError(
                f"{rows.file}: “{other}” has {twice!r} in several rows.",
                why="If it names the voters, some have several ballots.",
                hint=f"If it does: --map 'voter={other}'; if each row is a voter's own: "
                "--namesakes.",
            )


def _names_people(column: str) -> bool:
    return not _PEOPLE.isdisjoint(_bare_words(column))


_PEOPLE: Final = WORDS["row"] | WORDS["person"] | set(map(bare, COLUMN_WORDS["voter"]))
_WEIGHTS: Final = (
    "prox|weight|gewicht|stimmen|shares|aktien|anteile|vollmacht|procuration|pouvoir|poids|"
    "acciones|peso|deleg|units|votes held|voting (right|power)|^(ballots|voters|cast|anzahl|times)$"
)


# --- Columns of names and words ------------------------------------------------------------------


def refuse_comparisons(rows: Rows) -> None:
    """A column that names others of its row, as the winner of a pair does, or what stands in them;
    where several name columns, voters choose among themselves."""
    others = [n for n in other_columns(rows) if rows.numbers(n) is None]
    names = {*other_columns(rows), *rows.columns.values()}
    found: dict[str, set[str]] = {}
    texts = rows.frame.select(pl.col(others).cast(pl.String))
    for name in others:
        cells = set(texts[name].drop_nulls())
        if cells & names and all(cell in names or cell in WORDS["no winner"] for cell in cells):
            found[name] = cells & names
        elif re.search("winner|preferred|better|gewinner|sieger|gagnant", name, re.IGNORECASE):
            pairs = texts.drop(name).rows()
            beside = [cell in pair for cell, pair in zip(texts[name], pairs, strict=True) if cell]
            if beside and sum(beside) + texts[name].is_in(WORDS["no winner"]).sum() >= len(beside):
                raise BallotFileError(
                    f"{rows.file}: “{name}” names what stands in another column of its row.",
                    why="Each row compares some, and says nothing of the others.",
                    hint=f"To count a row as a ballot for its winner: --map 'choice={name}'.",
                )
    if len(found) == 1:
        [(name, named)] = found.items()
        raise BallotFileError(
            f"{rows.file}: “{name}” names the columns {', '.join(sorted(named))}.",
            why="A row may compare those who stand in these columns.",
            hint="Write the winner's own name in a column choice, and all that are compared in "
            "a column candidates.",
        )


def refuse_numbered(rows: Rows, columns: Sequence[str]) -> None:
    """Columns of names called alike but for the numbers 1, 2, …: places, or voters."""
    parts = [re.fullmatch(r"(.*?)[\W_]*(\d+)\W*", name) for name in columns]
    stems = {plain(part[1]) for part in parts if part}
    numbers = sorted(int(part[2]) for part in parts if part)
    called = stems & {"", "voter", *COLUMN_WORDS["voter"]}
    in_turn = numbers == list(range(1, len(columns) + 1)) and len(columns) > 1
    if in_turn and len(stems) == 1 and not called and not rows.hints.candidates:
        raise BallotFileError(
            f"{rows.file}: {', '.join(columns)} may be places or voters.",
            why="They hold names, and are numbered from 1.",
            hint="If they are places, call them rank1, rank2, …; if voters, voter1, voter2, …",
        )


_GRADES: Final = re.compile(
    r"\d+\s*[-–:=)]\s*\D.*|(strongly|somewhat|slightly|completely|very|rather|sehr|eher|voll|tout|"
    r"très|plutôt|muy)\b.*|neutral|neither.*|undecided|excellent|poor|fair|stimme .*|trifft .*|"
    r"weder.*|often|rarely|sometimes|always|never",
    re.IGNORECASE,
)
"""Words of a scale, such as of agreement, and numbers that are said in words."""


def _refuse_grades(rows: Rows, columns: Sequence[str]) -> None:
    """Columns in which some cells are words of a scale: options that rows grade, or voters."""
    cells = (cell for name in columns for cell in rows.texts(name).drop_nulls())
    graded = [cell for cell in cells if _GRADES.fullmatch(cell.strip())]
    if graded:
        raise BallotFileError(
            f"{rows.file} has words of a scale, such as {graded[0]!r}.",
            why=f"{', '.join(columns)} may be candidates that each row grades, or voters who "
            "choose a word.",
            hint="If they are candidates, write numbers for the words and say --protocol score; if "
            f"they are voters, name who stands: --candidates '{graded[0]},…'",
        )


def proposal(rows: Rows) -> str:
    """How the file's own columns may be named, from what their cells hold."""
    texts: list[str] = []
    numbers: list[str] = []
    votes: list[str] = []
    found = {name: rows.columns[name] for name in ("voter", "candidate") if rows.has(name)}
    for name in other_columns(rows):
        cells = rows.texts(name).drop_nulls()
        if cells.n_unique() < 2 or counts_or_names(name) or _BESIDE_VOTES.search(name):
            continue
        parted = cells.unique().str.split(next((sign for sign in ">;|," if sign in cells[0]), ">"))
        parts = parted.explode().str.strip_chars()
        listed = parts.len() > cells.n_unique() and 2 * parts.is_duplicated().sum() > parts.len()
        numeric = as_numbers(cells)
        if numeric is not None and cells.str.contains(r"\d").any():
            counts = re.search(f"{_WEIGHTS}|{_POINTS}", name, re.IGNORECASE)
            small = numeric.is_duplicated().any() and numeric.is_between(-100, 100).all()
            numbers += [name] if counts or small else []  # they may be points, ranks or weights
        elif listed:
            ordered = ">" in cells[0] or re.search("rank|rang|order|prefer", name, re.IGNORECASE)
            found["ranking" if ordered else "approvals"] = name
        else:
            texts.append(name)
    alike = [name for name in texts if not rows.frame.get_column(name).is_unique().all()]
    given = numbers or rows.has("mass") or rows.has("rank")
    if numbers and len(alike) > 1:
        places = as_numbers(rows.texts(numbers[0]))
        ranks = places is not None and set(places) == set(range(1, 1 + places.n_unique()))
        kind = "rank" if ranks else "mass"
        found = {"voter": alike[0], "candidate": alike[1], **found, kind: numbers[0]}
    elif texts and given and "voter" in found and not rows.frame["voter"].is_unique().all():
        found["candidate"] = texts[0]
    elif texts and not found.keys() & {"ranking", "approvals"}:
        alike = [name for name in alike if not _names_people(name)]
        called = [name for name in texts if _CHOSEN.search(name)]
        found["choice"] = next(iter(called), (alike or texts)[-1])
        votes = [f"--map 'choice={name}'" for name in (called or alike)]
    people = [name for name in texts if _names_people(name)]
    alone = [n for n in (*people, *texts) if n not in (*alike, *found.values())]
    if "voter" not in found and alone:
        found["voter"] = alone[0]
    if numbers and not (found.keys() & {"mass", "rank"} or rows.has("mass") or rows.has("rank")):
        found["mass" if "candidate" in found else "weight"] = numbers[0]
    said = [f"--map '{o}={t}'" for o, t in found.items() if rows.columns.get(o) != t]
    several = f"; where each is a vote: {' '.join(votes)}" if len(votes) > 1 else ""
    if said:
        return f"Say what the columns hold, perhaps: {' '.join(said)}{several}"
    for name in ("mass", "rank"):
        if rows.has(name) and rows.frame[name].count() and rows.numbers(name) is None:
            cell = rows.frame[name].drop_nulls()[0]
            return f"“{rows.columns[name]}” holds {cell!r}, which is no number."
    return ""


_BESIDE_VOTES: Final = re.compile(
    r"last|worst|least|(\b|_)(id|ts)$|remark|comment|note|reason|why|write.?in|specify|address|"
    r"bemerk|komment|begründ|comentario|remarque|observa|url|link|hear about|stamp|zeitstempel|"
    r"submitted|タイムスタンプ|日時|"
    r"(start|completion|end|submit\w*)[ _]?(time|date)|^(date|time)$",
    re.IGNORECASE,
)
"""Names of columns beside those of votes."""


_POINTS: Final = (
    "point|score|rating|rank|mark|vote|count|punkt|note|stars|grade|place|platz|mass|zahl|nombre|"
    "número|cantidad"
)
_CHOSEN: Final = re.compile(
    "vote|voto|choice|chos|pick|prefer|favo|winner|wahl|stimme|opci|keuze|scelta|choix|elecci|"
    r"(which|who|what|where|when|welche|quel|qué|cuál|quale)\b.*\?$",
    re.IGNORECASE,
)
