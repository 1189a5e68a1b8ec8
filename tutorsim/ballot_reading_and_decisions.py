"""Ballots, tallies, ties and decisions. Pure: no input, no output, no clock, no chance.

Six formats, one entry each in `RULES`: each protocol's own, and *rich*, which is points, an
order and a set of approved candidates at once and so a ballot under every published protocol.

Readings:

* `strict`: the reply is the ballot in the exact form that the prompt asks for, nothing else
  but surrounding white space.
* `standard`: as strict, but letter case, spaces around separators, wrapping quotes, back-ticks
  or asterisks and one closing full stop are forgiven. Runs use this one.
* `lenient`: the last line that holds a ballot counts, after a lead-in such as `Vote:`, and with
  the separators that people use.

A winner comes from sums of masses, which are integers, so that ties are exact, with every step
kept.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from tutorsim.vocabularies import (
    CUMULATIVE_BUDGET,
    TOP_SCORE,
    BallotFormat,
    DecidedBy,
    Protocol,
    Reading,
)

# --- Ballots and their masses --------------------------------------------------------------------


class RichBallot(BaseModel):
    """One ballot that holds a ballot of every protocol, each consistent with the others."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

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

    `labels`: label → role, as shown to the voter.
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

    Returns the one sincere ballot that fits; `None` where several do. A rich ballot determines one
    under every protocol, a ranking its first, points their order where no two are equal and an
    approval of everybody where all are, an approval of one candidate that candidate.
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
    held: dict[Protocol, Choice] = {
        "simple": choice.order[0],
        "ranked": choice.order,
        "approval": choice.approved,
    }
    return held.get(protocol, choice.points)


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
    given = _MASSES[protocol](choice, candidates)
    return {candidate: given.get(candidate, 0) for candidate in candidates}


def _mass_simple(choice: Choice, candidates: Sequence[str]) -> dict[str, int]:
    return {choice: 1} if isinstance(choice, str) else {}


def _mass_ranked(choice: Choice, candidates: Sequence[str]) -> dict[str, int]:
    order = choice if isinstance(choice, tuple) else ()
    return {candidate: len(candidates) - 1 - place for place, candidate in enumerate(order)}


def _mass_cumulative(choice: Choice, candidates: Sequence[str]) -> dict[str, int]:
    return dict(choice) if isinstance(choice, dict) else {}


def _mass_approval(choice: Choice, candidates: Sequence[str]) -> dict[str, int]:
    return dict.fromkeys(choice, 1) if isinstance(choice, tuple) else {}


_MASSES: Mapping[Protocol, Callable[[Choice, Sequence[str]], dict[str, int]]] = {
    "simple": _mass_simple,
    "ranked": _mass_ranked,
    "cumulative": _mass_cumulative,
    "approval": _mass_approval,
    "score": _mass_cumulative,
}
"""Mass of each candidate that a choice names, given all candidates."""


# --- Ballots read from replies -------------------------------------------------------------------

_POINTS = re.compile(r"([A-Z])=([0-9]{1,9})")
_SCORE = re.compile(r"[A-Z]: [0-9]{1,9}")
_BLANKS = re.compile(r"[ \t]+")
_AROUND_SEPARATORS = re.compile(r" ?([,=|]) ?")


class FormatRule(NamedTuple):
    """One format: how its ballots look, read, and are put right."""

    name: BallotFormat
    example: Callable[[Sequence[str], int], str]
    """A well-formed ballot over the labels shown, for the prompt."""
    read: Callable[[str, Sequence[str], int], Choice | None]
    """A ballot over labels from one canonical line, or `None`."""
    repair: Callable[[str, Sequence[str], int], Choice | None] = lambda line, labels, budget: None
    """A ballot from a canonical line that `read` refused, where it can be put right."""


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
        match = _POINTS.fullmatch(part)
        if match is None or match[1] not in labels or match[1] in points:
            return None
        points[match[1]] = int(match[2])
    return points


def _read_score(line: str, labels: Sequence[str], budget: int) -> Choice | None:
    """A score for every label; on one line, as a reader of its kind writes the lines of a reply."""
    scores = _read_points(line, labels)
    if scores is None or len(scores) != len(labels) or max(scores.values()) > TOP_SCORE:
        return None
    return scores


def _example_score(labels: Sequence[str], budget: int) -> str:
    order = _example_order(labels)
    step = TOP_SCORE // len(order)
    scores = {label: TOP_SCORE - step * (place + 1) for place, label in enumerate(order)}
    return "\n".join(f"{label}: {scores[label]}" for label in labels)


def _score_line(reply: str) -> str:
    """Lines such as `A: 7` as one line of points; nothing that is a ballot if they are none."""
    lines = reply.split("\n")
    if not all(_SCORE.fullmatch(line) for line in lines):
        return ""
    return ",".join(line.replace(": ", "=") for line in lines)


def _read_cumulative(line: str, labels: Sequence[str], budget: int) -> Choice | None:
    points = _read_points(line, labels)
    if points is None or len(points) != len(labels) or sum(points.values()) != budget:
        return None
    return points


def _read_rich(line: str, labels: Sequence[str], budget: int) -> Choice | None:
    parts = _rich_parts(line, labels)
    if parts is None or sum(parts[0].values()) != budget:
        return None
    return _rich(*parts)


def _rich_parts(line: str, labels: Sequence[str]) -> tuple[dict[str, int], int] | None:
    """Points in the order written, and how many labels stand before the bar."""
    head, bar, tail = line.partition("|")
    points = _read_points(f"{head},{tail}" if tail else head, labels)
    if points is None or len(points) != len(labels) or not bar or not head:
        return None
    return points, head.count(",") + 1


def _rich(points: dict[str, int], approved: int) -> RichBallot | None:
    """The ballot, unless its parts contradict each other: there is no telling which is meant."""
    order, given = tuple(points), list(points.values())
    rises = any(before < after for before, after in pairwise(given))
    cuts_a_level = approved < len(given) and given[approved - 1] == given[approved]
    if rises or cuts_a_level:
        return None
    return RichBallot(points=points, order=order, approved=order[:approved])


def _repair_rich(line: str, labels: Sequence[str], budget: int) -> Choice | None:
    """The ballot with its points rescaled; `None` where that levels what the bar tells apart."""
    parts = _rich_parts(line, labels)
    if parts is None or _rich(*parts) is None or not any(parts[0].values()):
        return None
    return _rich(_rescaled(parts[0], tuple(parts[0]), budget), parts[1])


def _repair_cumulative(line: str, labels: Sequence[str], budget: int) -> Choice | None:
    points = _read_points(line, labels)
    if not points or not any(points.values()):
        return None
    return _rescaled(points, labels, budget)


def _rescaled(points: Mapping[str, int], labels: Sequence[str], budget: int) -> dict[str, int]:
    """Points that sum to the budget, by largest remainder, of equal ones to the first label."""
    total = sum(points.values())
    shares = {label: Fraction(points.get(label, 0) * budget, total) for label in labels}
    repaired = {label: int(share) for label, share in shares.items()}
    left = budget - sum(repaired.values())
    by_remainder = sorted(labels, key=lambda label: repaired[label] - shares[label])
    for label in by_remainder[:left]:
        repaired[label] += 1
    return repaired


def _example_points(labels: Sequence[str], budget: int) -> str:
    """Twice a share to the first label, one to each other, so that the sum is the budget."""
    share = budget // (len(labels) + 1)
    first = budget - share * (len(labels) - 1)
    return ",".join(f"{label}={share if i else first}" for i, label in enumerate(labels))


def _example_order(labels: Sequence[str]) -> tuple[str, ...]:
    """The second label first, then the last, the first, and what is left."""
    head = (labels[1], labels[0]) if len(labels) < 3 else (labels[1], labels[0], labels[-1])
    return head + tuple(label for label in reversed(labels) if label not in head)


def _example_rich(labels: Sequence[str], budget: int) -> str:
    """The example order with falling points, and a bar where they fall, after two if they do."""
    order = _example_order(labels)
    weights = {label: len(order) - place for place, label in enumerate(order)}
    points = _rescaled(weights, order, budget)
    given = [*(points[label] for label in order), -1]
    bar = next(k for k in (2, *range(1, len(order) + 1)) if given[k - 1] > given[k])
    written = [f"{label}={points[label]}" for label in order]
    return f"{','.join(written[:bar])}|{','.join(written[bar:])}"


RULES: Mapping[BallotFormat, FormatRule] = {
    "simple": FormatRule("simple", lambda labels, _: labels[1], _read_simple),
    "ranked": FormatRule(
        "ranked", lambda labels, _: ",".join(_example_order(labels)), _read_ranked
    ),
    "cumulative": FormatRule(
        "cumulative", _example_points, _read_cumulative, repair=_repair_cumulative
    ),
    "approval": FormatRule(
        "approval",
        lambda labels, _: ",".join((labels[0], labels[min(2, len(labels) - 1)])),
        _read_approval,
    ),
    "rich": FormatRule("rich", _example_rich, _read_rich, repair=_repair_rich),
    "score": FormatRule("score", _example_score, _read_score),
}


def read_ballot(
    reply: str,
    labels: Sequence[str],
    *,
    form: BallotFormat,
    budget: int = CUMULATIVE_BUDGET,
    reading: Reading = "standard",
) -> Choice | None:
    """Read a ballot over the labels shown.

    Args:
        reply: The raw reply.
        labels: The labels shown to this voter, for example `("A", "B", "C", "D")`.
        form: The format that was asked for.
        budget: Points that a cumulative or rich ballot must sum to.
        reading: How much is forgiven; see the module's text.

    Returns:
        A label, a tuple of labels, a mapping label → points or a `RichBallot`; `None` where the
        reply is no ballot, or a rich one whose parts contradict each other. An approval of
        nobody is the empty tuple, which is a ballot.
    """
    read = RULES[form].read
    for line in _READINGS[reading](reply, form):
        choice = read(line, labels, budget)
        if choice is not None:
            return choice
    return None


def repair_ballot(
    reply: str, labels: Sequence[str], *, form: BallotFormat, budget: int = CUMULATIVE_BUDGET
) -> Choice | None:
    """Put right what can be put right without guessing: points with another positive sum.

    They are rescaled to the budget by largest remainder; equal remainders go to the label that
    stands first. Labels that a cumulative ballot leaves out have no points; a rich one must
    name every label.

    Returns the repaired ballot; `None` where the reply holds nothing to repair.
    """
    [line] = _standard_lines(reply, form)
    return RULES[form].repair(line, labels, budget)


def _strict_lines(reply: str, form: BallotFormat) -> list[str]:
    return [_score_line(reply.strip()) if form == "score" else reply.strip()]


def _standard_lines(reply: str, form: BallotFormat) -> list[str]:
    if form == "score" and "=" not in reply:
        bare = (line.strip().strip("`'\"*").strip() for line in reply.strip().splitlines())
        said = [re.sub(r"\s*:\s*", ": ", line.removesuffix(".").upper()) for line in bare if line]
        return [_score_line("\n".join(said))]
    return [_canonical(reply.strip().strip("`'\"*").strip().removesuffix("."))]


def _canonical(line: str) -> str:
    """Letters in upper case, no spaces around separators, `none` as written in the prompt."""
    said = line.strip().upper()
    if " " in said or "\t" in said:
        said = _AROUND_SEPARATORS.sub(r"\1", _BLANKS.sub(" ", said))
    return "none" if said == "NONE" else said


def _lenient_lines(reply: str, form: BallotFormat) -> Iterator[str]:
    """Candidate lines from the last to the first, bare and after a lead-in, then all joined."""
    lines = [line for line in reply.splitlines() if line.strip()]
    joined = ",".join(line.strip().rstrip(",;") for line in lines)
    for line in [*reversed(lines), joined]:
        for text in dict.fromkeys((line, line.rpartition(":")[2], line.partition(":")[2])):
            yield from _standard_lines(_people_separators(text, form), form)


def _people_separators(text: str, form: BallotFormat) -> str:
    """`B > A > D`, `A: 10; B: 5`, `A and C`, `1. B 2. A` in the separators of the format.

    A bar separates as a comma does, except in a rich ballot, where it is the line of approval.
    """
    text = re.sub(r"[\[\](){}*`_\s]+", " ", text)
    text = re.sub(r",? ?\| ?,?", "|" if form == "rich" else ",", text)
    text = re.sub(
        r"\b(?:proposal|reply|label|option|candidate)s?\b", " ", text, flags=re.IGNORECASE
    )
    text = re.sub(r"(?<=[A-Za-z])\s*[:=]\s*(?=[0-9])", "=", text)
    text = re.sub(r"\s*(?:>|;|/|,?\s+and\s+|\s&\s)\s*", ",", text.strip())
    text = re.sub(r"(?:^|(?<=[\s,|]))[1-9][.)]\s*", " ", text)
    return re.sub(r"(?<=[A-Za-z0-9])\s+(?=[A-Za-z]\b)", ",", text.strip())


_READINGS: Mapping[Reading, Callable[[str, BallotFormat], Iterable[str]]] = {
    "strict": _strict_lines,
    "standard": _standard_lines,
    "lenient": _lenient_lines,
}


# --- Tally ---------------------------------------------------------------------------------------


def tally(masses: Iterable[Mapping[str, int]], candidates: Sequence[str]) -> dict[str, int]:
    """Sum the mass of each candidate over ballots.

    `masses`: one mapping candidate → mass per ballot; absent candidates have no mass. An abstention
    is an empty mapping. `candidates`: who stands, in the order that the result keeps. Returns
    candidate → total mass, every candidate present.
    """
    total = dict.fromkeys(candidates, 0)
    for mass in masses:
        for candidate in candidates:
            total[candidate] += mass.get(candidate, 0)
    return total


def leaders(tallies: Mapping[str, int]) -> tuple[str, ...]:
    """Candidates with the largest total, in the mapping's order.

    All candidates lead when every total is zero: nobody voted, everybody is tied.
    """
    top = max(tallies.values())
    return tuple(candidate for candidate, total in tallies.items() if total == top)


def first_in_order(tied: Iterable[str], order: Sequence[str]) -> str:
    """The candidate of `tied` that stands first in the fallback `order`.

    Raises `ValueError` if no tied candidate is in `order`.
    """
    members = set(tied)
    for candidate in order:
        if candidate in members:
            return candidate
    raise ValueError(f"no candidate of {sorted(members)} is in the order {list(order)}")


# --- Decision -------------------------------------------------------------------------------------


class Step(BaseModel):
    """One step towards a winner."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="ignore")

    step: Literal["vote_final", "tie_vote", "fallback"]
    """Which count, or the fallback order."""
    tallies: dict[str, int] | None
    """Mass per candidate in this count; `None` for the fallback, which counts nothing."""
    remaining: tuple[str, ...]
    """Candidates still standing after the step; one when it decided."""


class Decision(BaseModel):
    """How the reply of one turn was chosen."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="ignore")

    tallies: dict[str, int]
    """Mass per candidate in the final vote, before any tie round."""
    tied_set: tuple[str, ...]
    """The last set of candidates found level: what the fallback chose among, or what the tie
    round resolved. Empty when one candidate led the final vote alone."""
    steps: tuple[Step, ...] = ()
    """Every step taken, in order; the last one left a single candidate."""
    decided_by: DecidedBy
    winner: str

    @property
    def tied_in_vote(self) -> tuple[str, ...]:
        """Candidates tied in the final vote, before any tie round; empty when one led alone."""
        first = leaders(self.tallies)
        return first if len(first) > 1 else ()

    @property
    def undecided(self) -> tuple[str, ...]:
        """The candidates that the counting left: more than one only where the order decided.

        The winner under another fallback order is the first of these in that order.
        """
        return self.tied_set if self.decided_by == "fallback" else (self.winner,)


def decide(
    final: Iterable[Mapping[str, int]],
    candidates: Sequence[str],
    *,
    order: Sequence[str],
    tie_round: Iterable[Mapping[str, int]] | None = None,
) -> Decision:
    """Choose the winner of a turn.

    The largest sum wins. A tie goes to the tie round where one was held (the same
    protocol among the tied candidates), and what is still tied then to the
    fallback order, which picks among *those* candidates only.

    `final`: masses of the final ballots, an empty mapping for an abstention. `order`: the fallback
    order; every candidate is in it. `tie_round`: masses of the tie-round ballots, or `None` when no
    tie round was held.
    """
    tallies = tally(final, candidates)
    standing = leaders(tallies)
    tied: tuple[str, ...] = ()
    steps = [Step(step="vote_final", tallies=tallies, remaining=standing)]
    decided_by: DecidedBy = "vote"
    if len(standing) > 1 and tie_round is not None:
        tied = standing
        again = tally(tie_round, standing)
        standing = leaders(again)
        steps.append(Step(step="tie_vote", tallies=again, remaining=standing))
        decided_by = "tie_round"
    if len(standing) > 1:
        tied = standing
        standing = (first_in_order(standing, order),)
        steps.append(Step(step="fallback", tallies=None, remaining=standing))
        decided_by = "fallback"
    return Decision(
        tallies=tallies,
        tied_set=tied,
        steps=tuple(steps),
        decided_by=decided_by,
        winner=standing[0],
    )
