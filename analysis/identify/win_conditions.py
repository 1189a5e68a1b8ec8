"""When a candidate can win, as questions about sums of votes or of pairwise margins."""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np

from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import FORMATS
from tutorsim.analysis.ballots.vote_arrays_and_profiles import LEFT_OUT
from tutorsim.analysis.counting.names_and_parameters_of_rules import (
    ANY_NUMBER,
    Approvals,
    Rule,
    approvals_of,
    ballot_format,
    rank_scores,
)
from tutorsim.analysis.counting.rules_in_arrays import CountedPanels, whole
from tutorsim.analysis.identify import ballots_voters_may_cast_under_another_rule as dom
from tutorsim.analysis.identify.ballots_voters_may_cast_under_another_rule import Domain, Options
from tutorsim.analysis.identify.search_for_votes_that_meet_a_win_condition import (
    SUBSETS,
    OptionSums,
    VoterOptions,
    WinCondition,
    WorkBudget,
    linear_condition,
    with_subsets,
)
from tutorsim.analysis.statistics.array_types import Bools, Ints

# --- Possible pairwise winners -------------------------------------------------------------------


_NARROW: Final = 1 << 13
"""Margins below this leave room in 16 bits for differences of two of them."""


def _by_pair(margins: Ints, reversed_: Ints) -> Ints:
    """Margins both ways, shape (2 · pairs, rows): of each pair's first, then of its second.

    `margins`: those of each pair's first over its second, pairs as in `combinations`; `reversed_`:
    those of its second over its first.
    """
    largest = max(np.abs(one).max(initial=0) for one in (margins, reversed_))
    bits = np.int16 if largest < _NARROW else np.int32
    rows, columns = margins.shape
    found = np.empty((2 * columns, rows), dtype=bits)
    found[:columns], found[columns:] = margins.T, reversed_.T
    return found


@cache
def _cells(m: int) -> Ints:
    """For each two candidates where the margin of the first over the second is, shape (m, m).

    The diagonal stands for no margin, and nothing depends on it.
    """
    listed = list(combinations(range(m), 2))
    cells = np.zeros((m, m), dtype=np.int64)
    for column, (a, b) in enumerate(listed):
        cells[a, b], cells[b, a] = column, len(listed) + column
    return cells


@cache
def _over(m: int) -> Ints:
    """Where the margins of each candidate over the others are, shape (m, m - 1)."""
    return np.array([np.delete(row, c) for c, row in enumerate(_cells(m))])


@cache
def _under(m: int) -> Ints:
    """Where the margins of the others over each candidate are, shape (m, m - 1)."""
    return np.array([np.delete(row, c) for c, row in enumerate(_cells(m).T)])


def _condition(lacks: Callable[[Ints, Ints, int], Ints], cost: int) -> WinCondition:
    """A condition that holds if no candidate lacks anything.

    `lacks`: from the highest and the lowest margins by pair, and what a lead of one is in them, to
    what each candidate lacks, shape (m, rows), none of it below 0.
    """

    def open_(low: Ints, high: Ints) -> Bools:
        return np.asarray((lacks(_by_pair(high, -low), _by_pair(low, -high), 1) == 0).all(axis=0))

    def distance(doubled: Ints) -> Ints:
        margins = _by_pair(doubled, -doubled)
        return np.asarray(lacks(margins, margins, 2).sum(axis=0, dtype=np.int32))

    return WinCondition(open_, distance, cost=cost)


def _defeats(margins: Ints, m: int, of: int | slice = slice(None)) -> Ints:
    """Shape (rows,) or (m, rows): the largest defeat of one or of each; below 0 if it has none."""
    return np.asarray(margins[_under(m)[of]].max(axis=-2))


def _strictly(ahead: Sequence[int], m: int) -> Ints:
    """1 for a candidate that must not tie with the winner, shape (m, 1)."""
    need = np.zeros((m, 1), dtype=np.int32)
    need[list(ahead)] = 1
    return need


def copeland_condition(c: int, ahead: Sequence[int], m: int) -> WinCondition:
    """Most wins less losses: `c` at best against each rival at its worst, and in total."""
    strict = _strictly(ahead, m)
    rivals = [d for d in range(m) if d != c]

    def scores(margins: Ints) -> Ints:
        won = (margins > 0).view(np.int8) - (margins < 0).view(np.int8)
        return np.asarray(won.sum(axis=-2, dtype=np.int32))

    def open_(low: Ints, high: Ints) -> Bools:
        best = scores(_by_pair(high, -low)[_over(m)[c]])
        worst = scores(_by_pair(low, -high)[_over(m)[rivals]])
        room = best - strict[rivals]
        return np.asarray((worst <= room).all(axis=0) & (room.sum(axis=0) + best >= 0))

    def distance(doubled: Ints) -> Ints:
        found = scores(_by_pair(doubled, -doubled)[_over(m)])
        over = found + strict - found[c]
        return np.asarray(np.maximum(over, 0).sum(axis=0, dtype=np.int32))

    return WinCondition(open_, distance, cost=m * m)


def minimax_condition(c: int, ahead: Sequence[int], m: int) -> WinCondition:
    """Smallest worst defeat: `c` at best against each rival's highest possible defeat."""
    strict = _strictly(ahead, m)

    def lacks(highest: Ints, lowest: Ints, unit: int) -> Ints:
        missing = _defeats(lowest, m, c) + unit * strict - _defeats(highest, m)
        return np.asarray(np.maximum(missing, 0))

    return _condition(lacks, cost=2 * m * m // 3)


def schulze_condition(c: int, ahead: Sequence[int], m: int) -> WinCondition:
    """No stronger path to `c` than back; each candidate ahead loses to somebody's path."""

    def lacks(highest: Ints, lowest: Ints, unit: int) -> Ints:
        strong = _paths(highest, m)
        weak = strong if lowest is highest else _paths(lowest, m)
        missing = np.maximum(weak[:, c] - strong[c], 0)
        for d in ahead:
            lead = np.delete(strong[:, d] - weak[d], d, axis=0)
            missing[d] += np.maximum(unit - lead.max(axis=0), 0)
        return np.asarray(missing)

    return _condition(lacks, cost=3 * m * m // 2 + m**3 // 4)


def nobody_condition(m: int) -> WinCondition:
    """No Condorcet winner: everybody is beaten or tied by somebody."""

    def lacks(highest: Ints, _: Ints, __: int) -> Ints:
        return np.maximum(-_defeats(highest, m), 0)

    return _condition(lacks, cost=2 * m * m // 3)


def _paths(margins: Ints, m: int) -> Ints:
    """Shape (m, m, rows): strength of the strongest path between any two; `margins`: by pair."""
    paths = margins[_cells(m)]
    for via in range(m):
        np.maximum(paths, np.minimum(paths[:, via, None], paths[via]), out=paths)
    return paths


PAIRWISE_CONDITIONS: Final[dict[Rule, Callable[[int, Sequence[int], int], WinCondition]]] = {
    "copeland": copeland_condition,
    "minimax": minimax_condition,
    "schulze": schulze_condition,
}
"""Rules that margins decide, by name."""


# --- Win conditions ------------------------------------------------------------------------------

NOBODY: Final = -1
"""The outcome "no Condorcet winner", beside candidate numbers."""

_SOME: Final = 16
"""Options that each voter may always have, however many voters there are."""
_LARGEST: Final = {bits: int(np.iinfo(bits).max) for bits in (np.int32, np.int64)}

Domains = tuple[Domain | None, ...]
Sets = frozenset[frozenset[int]]
"""Different sets of tied winners."""
Scores = tuple[int, ...]
"""Scores by rank, best first."""


class Query(NamedTuple):
    """A target and the voters' domains, sorted: equal questions have equal answers."""

    target: Rule
    m: int
    budget: int
    domains: Domains
    """`None` for an abstention."""


def counted(q: Query) -> frozenset[int] | None:
    """The tied winners where every voter's ballot under the target is known, else `None`.

    Known are ballots in the target's format, rankings where they are strict, and a vote where
    one candidate stands alone on top.
    """
    if not all(d is None or _known(q.target, d) for d in q.domains):
        return None
    voters = _voters(q.domains, q.m)
    if _by_numbers(q.target):
        cast = whole([d.data if d else (0,) * q.m for d in q.domains], q.m)  # type: ignore[misc]
    else:
        cast = _marks(q.target, voters.level)
    [found] = _tied(q.target, cast[None], voters.cast[None])
    return found


def _marks(target: Rule, place: Ints) -> Ints:
    """What rankings give under a rule of no numbers; as `place`, shape (…, m), 0 the first."""
    m = place.shape[-1]
    scores = rank_scores(target, m)
    if scores is not None:
        return np.asarray(whole([scores], m)[0][place])
    return np.asarray(1 * (place == 0) if target == "simple" else -place)


def _tied(target: Rule, cast: Ints, votes: Bools) -> Sets:
    """Sets of tied winners. `cast`: shape (panels, voters, m). `votes`: shape (panels, voters)."""
    led = CountedPanels.of_elections(cast, votes).leaders(target)
    rows = {tuple(row) for row in led.tolist()}
    return frozenset(frozenset(c for c, leads in enumerate(row) if leads) for row in rows)


def _by_numbers(target: Rule) -> bool:
    """Whether a rule counts the numbers of ballots."""
    return FORMATS[ballot_format(target)].numbers


def _known(target: Rule, domain: Domain) -> bool:
    if domain.kind == "open" or _by_numbers(target):
        return domain.kind == "exact" and LEFT_OUT not in domain.data
    return all(len(level) == 1 for level in domain.levels[: 1 if target == "simple" else None])


class Feasibility(NamedTuple):
    """Is there a choice of options whose sums pass the test?"""

    sums: OptionSums
    condition: WinCondition


Sums = Callable[[str, int | None, Any, bool], OptionSums]
"""What voters add, by the kind of options, the candidate, what else the options are of, and whether
a few options of each voter are enough."""


def sums_of(q: Query) -> Sums:
    """The sums of a query, held as long as somebody asks about it: together they may be large."""
    return lru_cache(maxsize=1 << 8)(partial(_sums, q))


def feasible(
    q: Query, outcome: int, ahead: Sequence[int], sums: Sums, *, few: bool = False
) -> list[Feasibility]:
    """Problems of which one must have a solution for an outcome to be possible.

    `sums`: those of the query. `few`: whether to list a few options of each voter, with bounds on
    all.
    """
    if outcome == NOBODY:
        return [Feasibility(sums("pairs", None, 0, few), nobody_condition(q.m))]
    if q.target in PAIRWISE_CONDITIONS:
        test = PAIRWISE_CONDITIONS[q.target](outcome, ahead, q.m)
        return [Feasibility(sums("pairs", outcome, 0, few), test)]
    return [
        Feasibility(sums(kind, outcome, extra, few), linear_condition(need))
        for kind, extra, need in linear_ways(q, outcome, ahead)
    ]


def too_large(q: Query) -> bool:
    """Whether scores by rank may add up to more than numbers of the search hold."""
    scores = rank_scores(q.target, q.m)
    return scores is not None and _most(scores, q.m, len(q.domains)) > _LARGEST[np.int64]


def _most(scores: Scores, m: int, voters: int) -> int:
    """What no number of a search exceeds: leads and their bounds, over all sets of rivals."""
    return 4 * scores[0] * m * voters * (1 << m if m - 1 <= SUBSETS else 4)


def _sums(q: Query, kind: str, c: int | None, extra: Any, few: bool) -> OptionSums:
    """What voters add: one kind of options for all; an abstention adds nothing unless exempt."""
    m, domains = q.m, q.domains
    kinds = _depths(m) if kind == "bucklin" else 1
    several = 1 + len({d for d in domains if d is not None and not _single(d, c)})
    many = _SOME if few else min(dom.MANY, max(_SOME, dom.ALL_OPTIONS // (m * several * kinds)))
    options = partial(OPTIONS[kind], many=many)
    free = options(exempt_domain(kind, c, m, extra), c, m, extra)
    nothing = Options.of(0 * free.rows[:1])
    regular = [nothing if d is None else options(d, c, m, extra) for d in domains]
    return OptionSums([VoterOptions(one, free) for one in regular])


def _single(domain: Domain, c: int | None) -> bool:
    """Whether a ballot leaves one order, with `c` first in its level."""
    return domain.kind != "open" and all(len(level) - (c in level) < 2 for level in domain.levels)


def exempt_domain(kind: str, c: int | None, m: int, extra: Any) -> Domain:
    """What serves `c` best if any ballot may be cast: all for `c`, or any order with it first; of
    approvals, as many as there must be."""
    if kind in ("simple", "cumulative") and c is not None:
        return dom.single_minded(c, m, extra)
    return dom.any_set(m) if kind == "approval" else dom.free(m)


@lru_cache(maxsize=1 << 10)
def _scored_options(
    bits: type[np.signedinteger[Any]], domain: Domain, c: int, m: int, scores: Scores, many: int
) -> Options:
    options = dom.rank_options(domain, c, m, scores, many)
    rows = with_subsets(options.rows.astype(bits))
    if options.whole:
        return Options.of(rows)
    low, high = (with_subsets(b[None].astype(bits))[0] for b in (options.low, options.high))
    if domain.kind != "open":  # all orders with `c` in one place have one total
        low[-1] = high[-1] = rows[0, -1]
    return Options(rows, low, high, whole=False)


OPTIONS: Final[dict[str, Callable[..., Options]]] = {
    "simple": lambda d, c, m, _, many=0: dom.simple_options(d, c, m),
    "approval": dom.approval_options,
    "score": lambda d, c, m, top, many=0: dom.score_options(d, c, m, top),
    "median_score": dom.median_options,
    "cumulative": dom.cumulative_options,
    "scores": partial(_scored_options, np.int32),
    "large scores": partial(_scored_options, np.int64),
    "condorcet": lambda d, c, m, _, many=0: dom.condorcet_options(d, c, m),
    "pairs": lambda d, c, m, _, many: dom.pair_options(d, c, m, many),
    "bucklin": dom.bucklin_options,
}
"""Kind → options of a domain, a candidate, the number of candidates, and the ballot's mass
(for `cumulative`, the budget), its scores by rank, or the depth of the count."""


def linear_ways(q: Query, c: int, ahead: Sequence[int]) -> list[tuple[str, Any, list[int]]]:
    """Ways to win of which one is enough: what `OPTIONS` add up to is at least a need.

    Of each way the kind of options, what they are of beside a candidate, and the need.
    """
    m = q.m
    lead = [int(d in ahead) for d in range(m) if d != c]  # 1 over those ahead, 0 over the others
    scores, approvals = rank_scores(q.target, m), approvals_of(q.target)
    if scores is not None:
        fits = _most(scores, m, len(q.domains)) <= _LARGEST[np.int32]
        need = with_subsets(np.array([lead], dtype=np.int32))[0].tolist()
        return [("scores" if fits else "large scores", scores, need)]
    if approvals is not None:
        return [("approval", (q.budget, approvals), lead)]
    if q.target == "condorcet":
        return [("condorcet", 0, [1] * (m - 1))]
    if q.target == "median_score":  # a score that was cast, or the most that an exempt voter gives
        exact = [domain.data for domain in q.domains if domain and domain.kind == "exact"]
        cast = {score for data in exact for score in data if score != LEFT_OUT}
        medians = sorted({q.budget, *cast}) if exact else [q.budget]
        need = [1] + [0] * (m - 1)
        return [("median_score", (q.budget, t, frozenset(ahead)), need) for t in medians]
    if q.target == "bucklin":  # `c` wins the count at some depth that nobody decides earlier
        need = [0] * (m - 1) + [1] + lead
        return [("bucklin", depth, need) for depth in range(1, _depths(m) + 1)]
    return [(str(q.target), q.budget, lead)]


def _depths(m: int) -> int:
    """How deep Bucklin's count goes.

    At depth d the m candidates share d places on each ballot. Where d is more than m / 2, one of
    them is on more than half of the ballots.
    """
    return m // 2 + 1


# --- Elections that favour a candidate -----------------------------------------------------------

_VOTER_COST: Final = 4_000
"""Units of work that one voter's rankings take, in however few elections."""


def elected(
    q: Query, candidates: Sequence[int], exempt: int, *, each: bool, budget: WorkBudget
) -> Sets:
    """The sets of tied winners of elections that agree with the ballots cast.

    Each favours one of some candidates, and the exempt voters are those from whom it gains most.
    Where rankings do not tell ballots under the target, or are more work than one search may
    take, there are none.

    `each`: for each candidate one without each different voter and, of the others, those.
    """
    voters = _voters(q.domains, q.m)
    work = len(q.domains) * _VOTER_COST
    work += len(q.domains) * len(candidates) * (len(voters.different) if each else 1) * q.m * q.m
    if not (candidates and q.domains and _tell(q)) or work > budget.share:
        return frozenset()
    budget.spend(work)
    of, freed = list[int](), list[tuple[int, ...]]()
    for c in candidates:
        most = voters.gain[c][:exempt]
        for first in voters.different if each else most[:1] or [0]:
            of.append(c)
            freed.append((first, *(v for v in most if v != first))[:exempt])
    place, votes = _favouring(q.domains, q.m, tuple(of), tuple(freed))
    number = approvals_of(q.target)
    if number is None:
        return _tied(q.target, _marks(q.target, place), votes)
    approved = _approved(q, np.array(of), np.array(freed), number)
    return _tied(q.target, 1 * (place < approved[:, :, None]), votes)


def _tell(q: Query) -> bool:
    """Whether rankings tell ballots under the target."""
    form = ballot_format(q.target)
    if too_large(q):
        return False
    if form == "approval" and any(d is not None and d.kind == "open" for d in q.domains):
        return False
    return form in ("simple", "ranked", "approval")


@lru_cache(maxsize=1 << 7)
def _favouring(
    domains: Domains, m: int, candidates: tuple[int, ...], exempt: tuple[tuple[int, ...], ...]
) -> tuple[Ints, Bools]:
    """Rankings that agree with the ballots cast, with a candidate first in its level.

    The place of each candidate, shape (elections, voters, m), 0 the first; and who votes.

    Voter by voter, whoever has most points of Borda's from all ballots stands last in its level,
    so that nobody gets far ahead; a ballot that is to come counts with the mean of its rankings.

    `candidates`, `exempt`: of each election.
    """
    own, freed = np.array(candidates), np.array(exempt, dtype=np.int64)
    every, voters = np.arange(len(own)), _voters(domains, m)
    votes = np.repeat(voters.cast[None], len(own), axis=0)
    level, above, equal = (
        np.repeat(one[None], len(own), axis=0) for one in (voters.level, voters.above, voters.equal)
    )
    votes[every[:, None], freed], equal[every[:, None], freed] = True, m
    level[every[:, None], freed], above[every[:, None], freed] = 0, 0
    beside_own = level == level[every, :, own][:, :, None]
    mean = 2 * above + equal - 1 + beside_own  # twice the mean place
    mean[every, :, own] = 2 * above[every, :, own]
    level = 2 * level
    level[every, :, own] -= 1
    points = -(mean * votes[:, :, None]).sum(axis=1)
    apart = 2 * m * (len(domains) + 1)
    place, line = np.empty_like(level), np.arange(m, dtype=level.dtype)[None]
    for v in range(len(domains)):
        order = np.argsort(level[:, v].astype(np.int64) * apart + points, axis=1, kind="stable")
        np.put_along_axis(place[:, v], order, line, axis=1)
        points += (mean[:, v] - 2 * place[:, v]) * votes[:, v, None]
    return place, votes


def _approved(q: Query, own: Ints, freed: Ints, number: Approvals) -> Ints:
    """Number of approvals of each voter, shape (elections, voters): few, and its favourite.

    `own`: the candidate of each election. `freed`: its exempt voters.
    """
    voters, (least, most) = _voters(q.domains, q.m), number.of(q.m)
    with_own = voters.above + 1
    few = np.where(with_own > most, least, np.maximum(with_own, least))
    for v, domain in enumerate(q.domains):
        if domain is not None and domain.kind == "exact":
            few[v] = sum(map(bool, domain.data))
        elif domain is not None and domain.kind == "order" and number == ANY_NUMBER:
            few[v] = voters.above[v] + voters.equal[v]
    found = few.T[own]
    if freed.size:
        found[np.arange(len(own))[:, None], freed] = least
    return found


class _Voters(NamedTuple):
    """What the ballots of some voters tell; the arrays have shape (voters, candidates).

    An open ballot has those without a score on its last level; an abstention has all on one.
    """

    cast: Bools
    """Shape (voters,): false for an abstention."""
    level: Ints
    """The level of each candidate, 0 the best."""
    above: Ints
    """How many stand above it."""
    equal: Ints
    """How many stand on its level."""
    gain: list[list[int]]
    """Candidate → voters, first those whose exemption adds most to its margins."""
    different: list[int]
    """One voter of each different ballot."""


@lru_cache(maxsize=1 << 7)
def _voters(domains: Domains, m: int) -> _Voters:
    cast = np.array([domain is not None for domain in domains])
    level = np.zeros((len(domains), m), dtype=np.int16)
    for row, domain in zip(level, domains, strict=True):
        if domain is not None:
            row[:] = max(len(domain.levels) - 1, 0)
            for i, names in enumerate(domain.levels):
                row[list(names)] = i
    voter = np.arange(len(domains))[:, None]
    sizes = np.bincount((level + m * voter).ravel(), minlength=level.size).reshape(level.shape)
    equal = sizes[voter, level].astype(np.int16)
    above = (sizes.cumsum(axis=1) - sizes)[voter, level].astype(np.int16)
    gain = np.where(cast[:, None], 2 * above, m - 1)
    most = np.argsort(-gain, axis=0, kind="stable").T.tolist()
    different = sorted({domain: v for v, domain in enumerate(domains)}.values())
    return _Voters(cast, level, above, equal, most, different)
