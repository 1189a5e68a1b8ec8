"""Claims of a file beside the same numbers, computed again."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isclose
from typing import NamedTuple

from tutorsim.analysis.claims.claims_file import Claim, ClaimsFile
from tutorsim.errors import CheckFailed

__all__ = ["Checked", "Difference", "check_claims", "chosen"]


class Difference(NamedTuple):
    """A claim, or a part of the file's head, that is not what the recording gives."""

    id: str
    """Of the claim; in brackets, the name of a part of the head."""
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
    """Compare claims with the numbers of the page that the recording gives now.

    Questions, numbers, intervals, what is printed and provenance are compared, by id.

    Args:
        claimed: The file.
        recomputed: Every number of the same page, from the recording.
    """
    now = {claim.id: claim for claim in recomputed.claims}
    before = {claim.id for claim in claimed.claims}
    known = [(claim, now[claim.id]) for claim in claimed.claims if claim.id in now]
    if claimed.digest_of == "ballots":  # a file may be renamed, and stays the same by its digest
        known = [(_renamed(old, claimed.name, recomputed.name), new) for old, new in known]
    apart = [(old, new) for old, new in known if not _alike(old, new)]
    head = _head_differences(claimed, recomputed)
    left = () if claimed.excerpt else recomputed.claims
    return Checked(
        same=len(known) - len(apart),
        differing=(*head, *(_difference(old, new) for old, new in apart)),
        missing=tuple(claim for claim in left if claim.id not in before),
        unknown=tuple(claim for claim in claimed.claims if claim.id not in now),
    )


def chosen(file: ClaimsFile, ids: Sequence[str]) -> tuple[Claim, ...]:
    """The claims of some ids, in the order asked for.

    Raises:
        CheckFailed: If there is none of an id, naming those that are most alike.
    """
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


def _head_differences(claimed: ClaimsFile, recomputed: ClaimsFile) -> list[Difference]:
    parts = [("provenance", "What answered the calls?")]
    if claimed.digest_of != "ballots":
        parts.insert(0, ("name", "Which study?"))
    return [
        Difference(
            f"({name})", question, str(getattr(claimed, name)), str(getattr(recomputed, name))
        )
        for name, question in parts
        if getattr(claimed, name) != getattr(recomputed, name)
    ]


def _renamed(claim: Claim, before: str, now: str) -> Claim:
    """A claim about a file as it is asked about the same file under another name."""
    return claim.model_copy(update={"question": claim.question.replace(before, now)})


def _alike(old: Claim, new: Claim) -> bool:
    """Whether two claims say the same, to the twelve digits that all machines compute alike."""
    return _said(old) == _said(new) and all(
        a == b or (a is not None and b is not None and isclose(a, b, rel_tol=1e-12, abs_tol=1e-15))
        for a, b in zip(_numbers(old), _numbers(new), strict=True)
    )


def _numbers(claim: Claim) -> tuple[float | None, ...]:
    return claim.value, *(claim.interval or (None, None))


def _said(claim: Claim) -> tuple[object, ...]:
    return claim.question, claim.printed, claim.provenance


def _difference(old: Claim, new: Claim) -> Difference:
    told = [_told(claim, other) for claim, other in ((old, new), (new, old))]
    return Difference(old.id, new.question, *told)


def _told(claim: Claim, other: Claim) -> str:
    """What is printed, and each other part in which two claims are apart."""
    parts = [claim.printed]
    if claim.value != other.value:
        parts.append(f"value {claim.value}")
    if claim.interval != other.interval:
        parts.append(f"interval {_interval(claim)}")
    if claim.provenance != other.provenance:
        parts.append(f"from {claim.provenance}")
    if claim.question != other.question:
        parts.append(f"asked as “{claim.question}”")
    return "; ".join(parts)


def _interval(claim: Claim) -> str:
    return "none" if claim.interval is None else f"[{claim.interval[0]}, {claim.interval[1]}]"
