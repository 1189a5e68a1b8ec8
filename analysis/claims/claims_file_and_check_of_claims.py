"""The file of claims, and its claims beside the same numbers, computed again."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isclose
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tutorsim.errors import CheckFailed, ClaimsError
from tutorsim.regular_files_and_digests import read_named

# --- Claims file ---------------------------------------------------------------------------------

CLAIMS_VERSION: Final = 2
_READ: Final = (1, CLAIMS_VERSION)
"""Version 1 names no page."""

PageName = Literal["report", "summary", "recount", "compare", "diverge"]
"""What prints the numbers; the first part of every id."""
SourceName = Literal["recording", "log", "ballots"]
"""What the digest is of: a recording, else the log of a run without one, else files of ballots."""

_TARGETS: Final[dict[SourceName, str]] = {
    "recording": "RECORDING",
    "log": "RUN",
    "ballots": "BALLOTS",
}
_SCHEME: Final = "tutorsim:"
_SHORTEST: Final = 8
"""Fewest characters of a digest in a citation."""


class _Frozen(BaseModel):
    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid", strict=True)


_LISTED: Final = Field(strict=False)
"""Field with a tuple that JSON has as a list; what is in it stays strict."""


class Claim(_Frozen):
    """One number that is printed."""

    id: str
    """Names it in this recording's pages for good."""
    question: str
    """What it answers, in words."""
    printed: str
    """Text as it is printed, with sign, unit and what qualifies it."""
    value: float | int | None
    """`None` where a span is printed, which has an interval alone."""
    interval: Annotated[tuple[float | int, float | int], _LISTED] | None = None
    """Ends of the interval, lower and upper; absent where none is printed."""
    provenance: str
    """What answered the calls of the run, or that the figure is printed elsewhere."""


class DrawnFile(_Frozen):
    """The page that was written with the claims."""

    name: str
    """Name of the file, which stands beside the claims."""
    sha256: str


class ClaimsFile(_Frozen):
    """Every number of one page, and what it was computed from."""

    claims_version: int
    page: PageName
    digest: str
    """SHA-256, in hexadecimal digits."""
    digest_of: SourceName
    name: str
    """Name of the study, or of the file of ballots."""
    provenance: dict[str, Any]
    """What answered the calls, as the run states it."""
    made_by: str
    """Package and version that printed the page; never compared."""
    options: dict[str, Any]
    """What the page was asked for with, besides the run: options that change its numbers."""
    drawn: DrawnFile | None = None
    """`None` where no page was written to a file."""
    excerpt: bool
    """Whether numbers of the page may be absent here: a file that was cut to some claims."""
    claims: Annotated[tuple[Claim, ...], _LISTED]

    def command(self, claim: Claim) -> str:
        """The command that computes a claim again."""
        file = " --claims FILE" if self.options else ""
        return f"tutorsim verify {_TARGETS[self.digest_of]}{file} --claim {claim.id}"


class Citation(NamedTuple):
    """What a sentence cites."""

    digest: str
    """The beginning of a digest, of at least 8 characters; "" where only an id is given."""
    id: str


def citation(digest: str, id_: str) -> str:
    """How a sentence cites a number: `tutorsim:DIGEST#ID`."""
    return f"{_SCHEME}{digest}#{id_}"


def cited(text: str) -> Citation:
    """An id, or a whole citation, taken apart; what begins as a citation and is none is refused."""
    if not text.startswith(_SCHEME):
        return Citation("", text)
    digest, sign, id_ = text.removeprefix(_SCHEME).partition("#")
    if not sign or not id_ or len(digest) < _SHORTEST:
        raise ClaimsError(
            f"{text} is no citation of a number.",
            why="It is `tutorsim:DIGEST#ID`, with at least 8 characters of the digest.",
            hint="The page's section “Cite a number” shows it; so does its file of claims.",
        )
    return Citation(digest.lower(), id_)


def to_text(file: ClaimsFile) -> str:
    """The file as JSON, a claim a line. The same claims give the same text."""
    head = file.model_dump(mode="json", exclude={"claims"})
    lines = [f"  {_json(name)}: {_json(value)}," for name, value in head.items()]
    claims = [c.model_dump(mode="json") | {"command": file.command(c)} for c in file.claims]
    for claim in claims:
        if claim["interval"] is None:
            del claim["interval"]
    body = ",\n".join(f"    {_json(claim)}" for claim in claims)
    return "\n".join(["{", *lines, '  "claims": [', *([body] if body else []), "  ]", "}"]) + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def read_claims(path: Path) -> ClaimsFile:
    """Read a file of claims.

    Raises:
        ClaimsError: If it cannot be read, is no JSON, is of another version, or holds something
            else than claims; naming the first fault.
    """
    try:
        found = json.loads(read_named(path).decode(), parse_constant=_no_number)
    except (OSError, ValueError, RecursionError) as error:
        raise ClaimsError(
            f"{path} cannot be read as claims.", why=_why(error), hint=_AGAIN
        ) from error
    version = found.get("claims_version") if isinstance(found, dict) else None
    if version is None:
        raise ClaimsError(
            f"{path} holds no claims.", why="It is JSON, and has no `claims_version`.", hint=_AGAIN
        )
    if version not in _READ or isinstance(version, bool):
        raise ClaimsError(
            f"{path} holds claims of version {version!r}.",
            why=f"This tutorsim reads versions 1 to {CLAIMS_VERSION}.",
            hint="Read it with the tutorsim of its `made_by`, or write the claims again.",
        )
    claims = found.get("claims")
    for claim in claims if isinstance(claims, list) else ():
        if isinstance(claim, dict):
            claim.pop("command", None)  # it follows from the id, and is there for people
    try:
        file = ClaimsFile.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ClaimsError(
            f"{path} holds claims that cannot be read: {place}.",
            why=f"{first['msg']}.",
            hint=_AGAIN,
        ) from error
    twice = [id_ for id_, n in Counter(claim.id for claim in file.claims).items() if n > 1]
    if twice:
        raise ClaimsError(
            f"{path} claims {twice[0]} more than once.",
            why="An id names one number.",
            hint="Keep one of them, or write the claims again.",
        )
    return file


_AGAIN: Final = "Write the claims again with `tutorsim report` or `summary --full --claims FILE`."


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number that JSON has.")


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"Line {error.lineno}, column {error.colno}: {error.msg}."
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


# --- Recomputation -------------------------------------------------------------------------------


class Difference(NamedTuple):
    """A claim, or a part of the file's head, that is not what the recording gives."""

    id: str
    """Id of the claim; in brackets, the name of a part of the head."""
    question: str
    claimed: str
    recomputed: str


@dataclass(frozen=True)
class Checked:
    """What came of checking claims."""

    same: int
    """Claims that hold."""
    differing: tuple[Difference, ...]
    missing: tuple[Claim, ...]
    """Numbers that the page prints and the file does not claim; empty for an excerpt."""
    unknown: tuple[Claim, ...]
    """Claims with an id that no number of the page has."""

    @property
    def holds(self) -> bool:
        """Whether every claim is what the recording gives, and none is missing."""
        return not (self.differing or self.missing or self.unknown)


def check_claims(claimed: ClaimsFile, recomputed: ClaimsFile) -> Checked:
    """Compare claims with every number of the same page as the recording gives it now.

    Questions, numbers, intervals, what is printed and provenance are compared, by id.
    """
    now = {claim.id: claim for claim in recomputed.claims}
    before = {claim.id for claim in claimed.claims}
    known = [(claim, now[claim.id]) for claim in claimed.claims if claim.id in now]
    heads = {"name": "Which study?", "provenance": "What answered the calls?"}
    if claimed.digest_of == "ballots":  # a file may be renamed, and stays the same by its digest
        del heads["name"]
        asked = [old.question.replace(claimed.name, recomputed.name) for old, _ in known]
        known = [
            (old.model_copy(update={"question": question}), new)
            for (old, new), question in zip(known, asked, strict=True)
        ]
    stated = [(name, getattr(claimed, name), getattr(recomputed, name)) for name in heads]
    head = [Difference(f"({n})", heads[n], str(a), str(b)) for n, a, b in stated if a != b]
    apart = [(old, new) for old, new in known if not _alike(old, new)]
    told = [Difference(a.id, b.question, _told(a, b), _told(b, a)) for a, b in apart]
    left = () if claimed.excerpt else recomputed.claims
    return Checked(
        same=len(known) - len(apart),
        differing=(*head, *told),
        missing=tuple(claim for claim in left if claim.id not in before),
        unknown=tuple(claim for claim in claimed.claims if claim.id not in now),
    )


def chosen(file: ClaimsFile, ids: Sequence[str]) -> tuple[Claim, ...]:
    """The claims of some ids, in the order asked for; an unknown id is refused with the nearest."""
    by_id = {claim.id: claim for claim in file.claims}
    for id_ in ids:
        if id_ not in by_id:
            near = get_close_matches(id_, by_id, n=3, cutoff=0.5)
            raise CheckFailed(
                f"No number has the id {id_}.",
                why=f"The {file.page} of {file.name} has {len(by_id):,} numbers.",
                hint=f"Most alike: {', '.join(near)}." if near else "The file of claims lists all.",
            )
    return tuple(by_id[id_] for id_ in ids)


def _alike(old: Claim, new: Claim) -> bool:
    """Whether two claims say the same, to the twelve digits that all machines compute alike."""
    said = all(getattr(old, n) == getattr(new, n) for n in ("question", "printed", "provenance"))
    return said and all(
        a == b or (a is not None and b is not None and isclose(a, b, rel_tol=1e-12, abs_tol=1e-15))
        for a, b in zip(_numbers(old), _numbers(new), strict=True)
    )


def _numbers(claim: Claim) -> tuple[float | None, ...]:
    return claim.value, *(claim.interval or (None, None))


def _told(claim: Claim, other: Claim) -> str:
    """What is printed, and each other part in which two claims are apart."""
    words = {
        "value": f"value {claim.value}",
        "interval": f"interval {'none' if claim.interval is None else list(claim.interval)}",
        "provenance": f"from {claim.provenance}",
        "question": f"asked as “{claim.question}”",
    }
    apart = (words[part] for part in words if getattr(claim, part) != getattr(other, part))
    return "; ".join((claim.printed, *apart))
