"""Reading a ballot from a model's reply, and the mass it gives each candidate.

Four protocols, one entry each in `RULES`: how a reply is read under three readings,
and how many points a choice is worth. Nothing else in the package branches on the
name of a protocol to count votes.

Readings:

* `strict`: the reply is the ballot in the exact form that the prompt asks for, nothing else
  but surrounding white space.
* `standard`: as strict, but letter case, spaces around separators, wrapping quotes, back-ticks
  or asterisks and one closing full stop are forgiven. Runs use this one.
* `lenient`: the last line that holds a ballot counts, after a lead-in such as `Vote:`, and with
  the separators that people use.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tutorsim.types import CUMULATIVE_BUDGET, Protocol, Reading

__all__ = [
    "RULES",
    "Choice",
    "ProtocolRule",
    "masses_of",
    "read_ballot",
    "repair_points",
    "resolve",
]

Choice = str | tuple[str, ...] | dict[str, int]
"""What a ballot says: a candidate (simple), an order (ranked), a set (approval) or points."""


@dataclass(frozen=True)
class ProtocolRule:
    """One protocol: how its ballots look, read and count."""

    name: Protocol
    example: Callable[[Sequence[str], int], str]
    """A well-formed ballot over the labels shown, for the prompt."""
    read: Callable[[str, Sequence[str], int], Choice | None]
    """A ballot over labels from one canonical line, or `None`."""
    masses: Callable[[Choice, int], dict[str, int]]
    """Mass of each candidate that the choice names, given the number of candidates."""


def _read_simple(line: str, labels: Sequence[str], budget: int) -> Choice | None:
    return line if line in labels else None


def _read_ranked(line: str, labels: Sequence[str], budget: int) -> Choice | None:
    order = tuple(line.split(","))
    return order if sorted(order) == sorted(labels) else None


def _read_approval(line: str, labels: Sequence[str], budget: int) -> Choice | None:
    if line == "none":
        return ()
    named = tuple(line.split(","))
    if len(set(named)) != len(named) or not set(named) <= set(labels):
        return None
    return named


def _read_points(line: str, labels: Sequence[str]) -> dict[str, int] | None:
    """Points as written, whatever they sum to; labels may be missing."""
    points: dict[str, int] = {}
    for part in line.split(","):
        match = re.fullmatch(r"([A-Z])=([0-9]{1,9})", part)
        if match is None or match[1] not in labels or match[1] in points:
            return None
        points[match[1]] = int(match[2])
    return points


def _read_cumulative(line: str, labels: Sequence[str], budget: int) -> Choice | None:
    points = _read_points(line, labels)
    if points is None or len(points) != len(labels) or sum(points.values()) != budget:
        return None
    return points


def _mass_simple(choice: Choice, m: int) -> dict[str, int]:
    return {choice: 1} if isinstance(choice, str) else {}


def _mass_ranked(choice: Choice, m: int) -> dict[str, int]:
    return {candidate: m - 1 - place for place, candidate in enumerate(choice)}


def _mass_cumulative(choice: Choice, m: int) -> dict[str, int]:
    return dict(choice) if isinstance(choice, dict) else {}


def _mass_approval(choice: Choice, m: int) -> dict[str, int]:
    return dict.fromkeys(choice, 1)


def _example_points(labels: Sequence[str], budget: int) -> str:
    """Twice a share to the first label, one to each other, so that the sum is the budget."""
    share = budget // (len(labels) + 1)
    first = budget - share * (len(labels) - 1)
    return ",".join(f"{label}={share if i else first}" for i, label in enumerate(labels))


def _example_order(labels: Sequence[str]) -> tuple[str, ...]:
    """The second label first, then the last, the first, and what is left."""
    head = (labels[1], labels[0]) if len(labels) < 3 else (labels[1], labels[0], labels[-1])
    return head + tuple(label for label in reversed(labels) if label not in head)


RULES: Mapping[Protocol, ProtocolRule] = {
    "simple": ProtocolRule("simple", lambda labels, _: labels[1], _read_simple, _mass_simple),
    "ranked": ProtocolRule(
        "ranked", lambda labels, _: ",".join(_example_order(labels)), _read_ranked, _mass_ranked
    ),
    "cumulative": ProtocolRule("cumulative", _example_points, _read_cumulative, _mass_cumulative),
    "approval": ProtocolRule(
        "approval",
        lambda labels, _: ",".join((labels[0], labels[min(2, len(labels) - 1)])),
        _read_approval,
        _mass_approval,
    ),
}


def read_ballot(
    reply: str,
    labels: Sequence[str],
    *,
    protocol: Protocol,
    budget: int = CUMULATIVE_BUDGET,
    reading: Reading = "standard",
) -> Choice | None:
    """Read a ballot over the labels shown.

    Args:
        reply: The raw reply.
        labels: The labels shown to this voter, for example `("A", "B", "C", "D")`.
        protocol: The format that was asked for.
        budget: Points that a cumulative ballot must sum to.
        reading: How much is forgiven; see the module's text.

    Returns:
        A label, a tuple of labels or a mapping label → points; `None` where the reply is no
        ballot. An approval of nobody is the empty tuple, which is a ballot.
    """
    read = RULES[protocol].read
    for line in _READINGS[reading](reply):
        choice = read(line, labels, budget)
        if choice is not None:
            return choice
    return None


def repair_points(
    reply: str, labels: Sequence[str], *, budget: int = CUMULATIVE_BUDGET
) -> dict[str, int] | None:
    """Rescale readable points with another positive sum to the budget by largest remainder.

    Equal remainders go to the label that stands first. Labels that the reply leaves out have
    no points.

    Returns:
        Label → points, summing to `budget`; `None` where the reply holds no points.
    """
    [line] = _standard_lines(reply)
    points = _read_points(line, labels)
    total = sum(points.values()) if points else 0
    if not points or total == 0:
        return None
    shares = {label: Fraction(points.get(label, 0) * budget, total) for label in labels}
    repaired = {label: int(share) for label, share in shares.items()}
    left = budget - sum(repaired.values())
    by_remainder = sorted(labels, key=lambda label: repaired[label] - shares[label])
    for label in by_remainder[:left]:
        repaired[label] += 1
    return repaired


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
    return tuple(labels[label] for label in choice)


def masses_of(
    choice: Choice | None, candidates: Sequence[str], *, protocol: Protocol
) -> dict[str, int]:
    """Mass of every candidate under a ballot; empty for an abstention (`None`).

    simple: 1 for the choice. ranked: m-1, m-2, …, 0. cumulative: the points.
    approval: 1 for each approved.
    """
    if choice is None:
        return {}
    given = RULES[protocol].masses(choice, len(candidates))
    return {candidate: given.get(candidate, 0) for candidate in candidates}


def _strict_lines(reply: str) -> list[str]:
    return [reply.strip()]


def _standard_lines(reply: str) -> list[str]:
    return [_canonical(reply.strip().strip("`'\"*").strip().removesuffix("."))]


def _canonical(line: str) -> str:
    """Letters in upper case, no spaces around separators, `none` as written in the prompt."""
    spaced = re.sub(r"[ \t]+", " ", line.strip())
    tight = re.sub(r" ?([,=]) ?", r"\1", spaced).upper()
    return "none" if tight == "NONE" else tight


def _lenient_lines(reply: str) -> list[str]:
    """Candidate lines from the last to the first, bare and after a lead-in, then all joined."""
    lines = [line for line in reply.splitlines() if line.strip()]
    joined = ",".join(line.strip().rstrip(",;") for line in lines)
    found: list[str] = []
    for line in [*reversed(lines), joined]:
        _, _, tail = line.rpartition(":")
        for text in (line, tail):
            found += _standard_lines(_people_separators(text))
    return found


def _people_separators(text: str) -> str:
    """`B > A > D`, `A: 10; B: 5`, `A and C`, `1. B 2. A` in the separators of the format."""
    text = re.sub(r"[\[\](){}*`_\s]+", " ", text)
    text = re.sub(
        r"\b(?:proposal|reply|label|option|candidate)s?\b", " ", text, flags=re.IGNORECASE
    )
    text = re.sub(r"(?<=[A-Za-z])\s*[:=]\s*(?=[0-9])", "=", text)
    text = re.sub(r"\s*(?:>|;|\||/|,?\s+and\s+|\s&\s)\s*", ",", text.strip())
    text = re.sub(r"(?:^|(?<=[\s,]))[1-9][.)]\s*", " ", text)
    return re.sub(r"(?<=[A-Za-z0-9])\s+(?=[A-Za-z]\b)", ",", text.strip())


_READINGS: Mapping[Reading, Callable[[str], list[str]]] = {
    "strict": _strict_lines,
    "standard": _standard_lines,
    "lenient": _lenient_lines,
}
