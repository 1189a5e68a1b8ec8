"""What a ballot says, whatever it looked like, and the mass that it gives each candidate."""

from collections.abc import Callable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from tutorsim.vocabularies import BallotFormat, Protocol


class RichBallot(BaseModel):
    """One ballot that holds a ballot of every protocol, each consistent with the others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    points: dict[str, int]
    """Candidate → points; never more than those of a candidate before it in `order`."""
    order: tuple[str, ...]
    """All candidates, best first."""
    approved: tuple[str, ...]
    """The first of `order`, at least one; everybody in it has more points than those outside."""


Choice = str | tuple[str, ...] | RichBallot | dict[str, int]
"""What a ballot says: a candidate (simple), an order (ranked), a set (approval), points, or all
of these (rich)."""


def resolve(choice: Choice, labels: Mapping[str, str]) -> Choice:
    """Replace labels by the roles that they stood for.

    Args:
        choice: A ballot over labels.
        labels: Label → role, as shown to the voter.
    """
    if isinstance(choice, str):
        return labels[choice]
    if isinstance(choice, dict):
        return {labels[label]: points for label, points in choice.items()}
    if isinstance(choice, RichBallot):
        return RichBallot(
            points={labels[label]: points for label, points in choice.points.items()},
            order=tuple(labels[label] for label in choice.order),
            approved=tuple(labels[label] for label in choice.approved),
        )
    return tuple([labels[label] for label in choice])


def cast_as(choice: Choice, *, form: BallotFormat, protocol: Protocol) -> Choice | None:
    """The ballot under a protocol that a ballot in some format determines.

    Args:
        choice: The ballot.
        form: Its format.
        protocol: The protocol wanted.

    Returns:
        The one sincere ballot that fits; `None` where several do. A rich ballot determines
        one under every protocol, a ranking its first, points their order where no two are
        equal and an approval of everybody where all are, an approval of one candidate that
        candidate.
    """
    if form == protocol:
        return choice
    if isinstance(choice, RichBallot):
        return _of_rich(choice, protocol)
    levels = _levels(choice, form)
    if protocol == "simple" and len(levels[0]) == 1:
        return levels[0][0]
    if protocol == "ranked" and form == "cumulative" and all(len(level) == 1 for level in levels):
        return tuple(level[0] for level in levels)
    if protocol == "approval" and form == "cumulative" and len(levels) == 1:
        return tuple(levels[0])
    return None


def _of_rich(choice: RichBallot, protocol: Protocol) -> Choice:
    match protocol:
        case "simple":
            return choice.order[0]
        case "ranked":
            return choice.order
        case "cumulative" | "score":
            return choice.points
        case "approval":
            return choice.approved


def _levels(choice: Choice, form: BallotFormat) -> list[list[str]]:
    """Candidates that a plain ballot names, best level first; one empty level for none."""
    if isinstance(choice, dict):
        found = sorted(set(choice.values()), reverse=True)
        return [[c for c, points in choice.items() if points == level] for level in found]
    if isinstance(choice, str):
        return [[choice]]
    names = list(choice) if isinstance(choice, tuple) else []
    return [[c] for c in names] if form == "ranked" else [names]


def masses_of(
    choice: Choice | None, candidates: Sequence[str], *, protocol: Protocol
) -> dict[str, int]:
    """Mass of every candidate under a ballot; empty for an abstention (`None`).

    simple: 1 for the choice. ranked: m-1, m-2, …, 0. cumulative, score: the numbers.
    approval: 1 for each approved. A rich ballot counts as its ballot under the protocol.
    """
    if choice is None:
        return {}
    if isinstance(choice, RichBallot):
        choice = _of_rich(choice, protocol)
    given = _MASSES[protocol](choice, len(candidates))
    return {candidate: given.get(candidate, 0) for candidate in candidates}


def _mass_simple(choice: Choice, m: int) -> dict[str, int]:
    return {choice: 1} if isinstance(choice, str) else {}


def _mass_ranked(choice: Choice, m: int) -> dict[str, int]:
    order = choice if isinstance(choice, tuple) else ()
    return {candidate: m - 1 - place for place, candidate in enumerate(order)}


def _mass_cumulative(choice: Choice, m: int) -> dict[str, int]:
    return dict(choice) if isinstance(choice, dict) else {}


def _mass_approval(choice: Choice, m: int) -> dict[str, int]:
    return dict.fromkeys(choice, 1) if isinstance(choice, tuple) else {}


_MASSES: Mapping[Protocol, Callable[[Choice, int], dict[str, int]]] = {
    "simple": _mass_simple,
    "ranked": _mass_ranked,
    "cumulative": _mass_cumulative,
    "approval": _mass_approval,
    "score": _mass_cumulative,
}
"""Mass of each candidate that a choice names, given the number of candidates."""
