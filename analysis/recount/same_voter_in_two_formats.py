"""Does a voter who sees the same proposals choose the same in two ballot formats?"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import Final, NamedTuple

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.ballots.vote_arrays import Masses
from tutorsim.analysis.counting.winners_and_vote_shift_by_turn import Cluster
from tutorsim.analysis.identify.ballots_consistent_with_logged import Domain, domain_of
from tutorsim.analysis.pages.cells_and_tables import Table, estimate, present, table
from tutorsim.analysis.pages.document import Section
from tutorsim.analysis.runs.branch_origins_and_shared_turns import without_shared_turns
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    share_over_tasks,
)
from tutorsim.analysis.statistics.noise_floor_of_retests import (
    AskedVote,
    asked_votes,
    leader_of,
    said,
    top_of,
)
from tutorsim.ballots_and_decisions import masses_of
from tutorsim.records import BallotRecord, Turn
from tutorsim.vocabularies import BALLOT_FORMATS, PROTOCOLS, BallotFormat, Protocol

# --- Result --------------------------------------------------------------------------------------

UNTESTED: Final = (
    "nobody cast ballots in two formats on the same proposals, so that the assumption is untested"
)


@dataclass(frozen=True)
class FormatPair:
    """Ballots of one voter on the same proposals, in two formats."""

    given: BallotFormat
    other: BallotFormat
    pairs: int
    """Pairs of ballots."""
    abstained: int
    """Pairs with an abstention; in no share."""
    consistent: Estimate | NotEstimable
    """Share of the other pairs in which `given` leaves `other` possible."""
    same_top: Estimate | NotEstimable
    """Share of the other pairs that put some same candidate first."""
    turns: int
    """Turns that the pairs are of."""
    same_winner: Estimate | NotEstimable | None
    """Share of turns with one winner, the rich ballots counted as the other format's, ties to the
    fallback order, turns of which nobody voted left out; `None` where neither format is
    rich, which alone determines the other."""


@dataclass(frozen=True)
class OneFormat:
    """Two askings of one prompt in one format."""

    form: BallotFormat
    pairs: int
    abstained: int
    same: Estimate | NotEstimable
    """Share of the other pairs that are the same ballot."""
    consistent: Estimate | NotEstimable
    """Share of the other pairs that some ranking agrees with."""


@dataclass(frozen=True)
class FormatInvariance:
    """Pairs of formats, and two askings of one."""

    pairs: list[FormatPair]
    from_vote: Estimate | NotEstimable
    """Consistent pairs over all formats, each from the format that the turn voted in."""
    askings: list[OneFormat]
    """Empty without a retest."""
    again: Estimate | NotEstimable
    """Two askings of one format that gave the same ballot, over all formats."""
    again_consistent: Estimate | NotEstimable
    """Two askings of one format that some ranking agrees with."""


# --- Invariance captions -------------------------------------------------------------------------


def invariance_words(found: FormatInvariance | NotEstimable) -> str:
    """How far the ballots themselves bear out that preferences are the same in every format."""
    if isinstance(found, NotEstimable):
        return f"Recounts assume that preferences are the same in every format; {found.reason}."
    pairs = [f"{p.given} to {p.other} {_of(p.consistent)}" for p in found.pairs]
    said = (
        f"Voters' ballots in two formats were consistent in {_of(found.from_vote)} pairs from the "
        f"format voted in to another (over all ballots: {', '.join(pairs)})"
    )
    again = "how often two askings of one format agree is unknown, as none was asked again"
    if isinstance(found.again, Estimate):
        again = (
            f"two askings of one format were the same ballot in {_of(found.again)}, and "
            f"consistent in {_of(found.again_consistent)}"
        )
    return f"{said}; {again}."


def _of(found: Estimate | NotEstimable) -> str:
    if isinstance(found, NotEstimable):
        return "0 of 0"
    return f"{round(found.value * found.n):,} of {found.n:,}"


# --- Compatible ballot pairs ---------------------------------------------------------------------


@lru_cache(maxsize=1 << 16)
def may_have_cast(ballot: Masses, protocol: Protocol, other: Masses, form: Protocol) -> bool:
    """Whether a sincere voter that cast `ballot` may have cast `other` in another format.

    `form`: the format of `other`; where it is the ballot's own, only the same ballot will do.
    """
    return _holds(domain_of(ballot, protocol=protocol, target=form), other, form)


def share_a_ranking(one: Masses, other: Masses) -> bool:
    """Whether some ranking agrees with both ballots, whatever their formats.

    It is built from the top: the next place goes to somebody above whom neither ballot puts
    anyone that is left. Where there is nobody, the ballots contradict each other.
    """
    left = set(range(len(one)))
    while left:
        most, most_other = max(one[c] for c in left), max(other[c] for c in left)
        free = {c for c in left if one[c] == most and other[c] == most_other}
        if not free:
            return False
        left -= free
    return True


def _holds(domain: Domain, ballot: Masses, form: Protocol) -> bool:
    if domain.kind == "exact":
        return ballot == domain.data
    levels = domain.levels
    if form == "simple":
        return any(ballot[c] for c in levels[0])
    if form == "approval":
        cut = domain.kind == "order" and _cut(ballot, levels)
        return any(ballot) and _never_rises(ballot, levels) and not cut
    return _never_rises(ballot, levels)


def _never_rises(ballot: Masses, levels: Sequence[Sequence[int]]) -> bool:
    """Nobody has more than anybody in a better level."""
    least = [min(ballot[c] for c in level) for level in levels]
    most = [max(ballot[c] for c in level) for level in levels]
    return all(above >= below for above, below in zip(least, most[1:], strict=False))


def _cut(ballot: Masses, levels: Sequence[Sequence[int]]) -> bool:
    """Candidates of one level are told apart."""
    return any(len({ballot[c] for c in level}) > 1 for level in levels)


# --- Format pairs --------------------------------------------------------------------------------

Order = Sequence[str]


class _Ballot(NamedTuple):
    """One voter's ballot, as far as pairs look at it."""

    form: BallotFormat
    under: Mapping[Protocol, Masses]
    """Masses under its own protocol, of a rich one under each; none of an abstention."""
    top: frozenset[str]
    """Whom it puts first."""


Ballots = Mapping[str, _Ballot]
"""Voter → ballot, all in one format."""


class _Panels(NamedTuple):
    """One panel's ballots on one set of proposals, in two formats."""

    given: Ballots
    other: Ballots
    cluster: Cluster
    voted: bool
    """Whether the first is the format that the turn voted in; with a rich one, either."""

    @property
    def forms(self) -> tuple[BallotFormat, BallotFormat]:
        return _form(self.given), _form(self.other)


class _Side(NamedTuple):
    """What one turn holds on its final proposals."""

    ballots: Mapping[BallotFormat, Ballots]
    """Format → voter → ballot."""
    voted: BallotFormat
    cluster: Cluster


def format_invariance(source: Source) -> FormatInvariance | NotEstimable:
    """Pairs of formats within one run in which some voter was asked; not estimable without any."""
    if not any(turn.ballots_as for episode in source.episodes for turn in episode.turns):
        return NotEstimable(UNTESTED)
    sides = _sides(source, source.fallback_order or ())
    panels = [panel for _, side in sides for panel in _pairs_of(side, side)]
    return _result(panels, source) if panels else NotEstimable(UNTESTED)


def format_invariance_across(first: Source, second: Source) -> FormatInvariance | NotEstimable:
    """Ballots in different formats of two runs whose voters saw the same proposals.

    Turns are matched on benchmark, task, persona, repeat and turn, and on the text of every
    final proposal; ballots on the voter. Two askings of one format stand with each run. Ties go
    to the first run's order.
    """
    order = first.fallback_order or ()
    seen: dict[Hashable, list[_Side]] = {}
    for place, side in _sides(first, order):
        seen.setdefault(place, []).append(side)
    panels = [
        panel
        for place, side in _sides(second, order)
        for match in seen.get(place, [])
        for panel in (*_pairs_of(match, side), *_pairs_of(side, match))
    ]
    return _result(panels, None) if panels else NotEstimable(UNTESTED)


def format_invariance_of_two(
    first: Source, second: Source
) -> dict[str, FormatInvariance | NotEstimable]:
    """`first` and `second`: within each run; `across`: voters of both on the same proposals."""
    return {
        "first": format_invariance(first),
        "second": format_invariance(second),
        "across": format_invariance_across(first, second),
    }


def _sides(source: Source, order: Order) -> Iterator[tuple[Hashable, _Side]]:
    """Voting turns of complete episodes, by what turns share whose voters saw the same."""
    for e in without_shared_turns(e for e in source.episodes if e.status == "complete"):
        for turn in e.turns:
            ballots = _formats(turn, order)
            if ballots:
                texts = tuple(sorted((role, p.text) for role, p in turn.proposals_final.items()))
                place = (e.benchmark, e.task_id, e.persona, e.repeat, turn.turn, texts)
                yield place, _Side(ballots, next(iter(ballots)), (e.benchmark, e.task_id))


def _formats(turn: Turn, order: Order) -> dict[BallotFormat, Ballots]:
    """Format → ballots on the final proposals, those of the vote first; none without a vote."""
    if turn.decision is None:
        return {}
    standing = [c for c in order if c in turn.decision.tallies]
    candidates = (*standing, *(c for c in turn.decision.tallies if c not in order))
    found: dict[BallotFormat, Ballots] = {}
    for cast in (turn.ballots_final, *turn.ballots_as.values()):
        if cast and cast[0].protocol not in found:
            found[cast[0].protocol] = {b.voter: _ballot(b, candidates) for b in cast}
    return found


def _ballot(ballot: BallotRecord, candidates: Sequence[str]) -> _Ballot:
    under = {}
    if ballot.parsed is not None:
        protocols = PROTOCOLS if ballot.protocol == "rich" else (ballot.protocol,)
        under = {protocol: _masses(ballot, candidates, protocol) for protocol in protocols}
    return _Ballot(ballot.protocol, under, top_of(ballot, candidates))


def _masses(ballot: BallotRecord, candidates: Sequence[str], protocol: Protocol) -> Masses:
    given = masses_of(ballot.parsed, candidates, protocol=protocol)
    return tuple(given.get(c, 0) for c in candidates)


def _pairs_of(one: _Side, two: _Side) -> Iterator[_Panels]:
    """Each format of one side with each other format of the other; a rich one is the given one."""
    for given, other in product(one.ballots, two.ballots):
        if given != other != "rich":
            voted = given == one.voted or (given == "rich" and other == two.voted)
            yield _Panels(one.ballots[given], two.ballots[other], one.cluster, voted)


def _form(ballots: Ballots) -> BallotFormat:
    return next(iter(ballots.values())).form


def _result(panels: Sequence[_Panels], source: Source | None) -> FormatInvariance:
    cells: dict[tuple[BallotFormat, BallotFormat], list[_Panels]] = {}
    for panel in panels:
        cells.setdefault(panel.forms, []).append(panel)
    places = {form: i for i, form in enumerate(BALLOT_FORMATS)}
    ordered = sorted(cells, key=lambda forms: (places[forms[0]], places[forms[1]]))
    askings = [] if source is None else _askings(source)
    found = {forms: [(p, list(_cast(p))) for p in own] for forms, own in cells.items()}
    voted = [pair for own in found.values() for p, cast in own if p.voted for pair in cast]
    return FormatInvariance(
        pairs=[_format_pair(*forms, found[forms]) for forms in ordered],
        from_vote=_mean([(pair.consistent, pair.cluster) for pair in voted]),
        askings=[
            _one_format(form, [a for a in askings if a.form == form])
            for form in BALLOT_FORMATS
            if any(a.form == form for a in askings)
        ],
        again=_mean([(a.same, a.cluster) for a in askings if a.cast]),
        again_consistent=_mean([(a.consistent, a.cluster) for a in askings if a.cast]),
    )


class _Pair(NamedTuple):
    """Two ballots that were both cast."""

    consistent: bool
    same_top: bool
    cluster: Cluster


def _format_pair(
    given: BallotFormat, other: BallotFormat, panels: Sequence[tuple[_Panels, list[_Pair]]]
) -> FormatPair:
    cast = [pair for _, pairs in panels for pair in pairs]
    pairs = sum(len(panel.given.keys() & panel.other.keys()) for panel, _ in panels)
    same = [alike for panel, _ in panels if (alike := _same_winner(panel)) is not None]
    return FormatPair(
        given=given,
        other=other,
        pairs=pairs,
        abstained=pairs - len(cast),
        consistent=_mean([(pair.consistent, pair.cluster) for pair in cast]),
        same_top=_mean([(pair.same_top, pair.cluster) for pair in cast]),
        turns=len(panels),
        same_winner=_mean(same) if given == "rich" else None,
    )


def _cast(panel: _Panels) -> Iterator[_Pair]:
    """Ballots of one voter in both formats, abstentions left out."""
    for voter, one in panel.given.items():
        two = panel.other.get(voter)
        if two is not None and one.under and two.under:
            yield _Pair(_consistent(one, two), bool(one.top & two.top), panel.cluster)


def _consistent(one: _Ballot, two: _Ballot) -> bool:
    """Whether the first ballot leaves the second possible; the second is not rich."""
    [(form, cast)] = two.under.items()
    if one.form == "rich":
        return one.under[form] == cast
    return may_have_cast(one.under[one.form], one.form, cast, form)


def _same_winner(panel: _Panels) -> tuple[bool, Cluster] | None:
    """Whether both elect the same; `None` without votes, or if neither tells the other."""
    given, rule = panel.forms
    if given != "rich" or rule == "rich":
        return None
    one, two = (
        [ballot.under[rule] for ballot in side.values() if ballot.under]
        for side in (panel.given, panel.other)
    )
    return (leader_of(one) == leader_of(two), panel.cluster) if one and two else None


class _Asked(NamedTuple):
    """Two askings of one voter's prompt."""

    form: BallotFormat
    cast: bool
    """Neither is an abstention."""
    same: bool
    consistent: bool
    cluster: Cluster


def _askings(source: Source) -> list[_Asked]:
    return [
        _asked(one, other, vote)
        for vote in asked_votes(source)
        for asked in vote.askings
        for one, other in combinations(asked, 2)
    ]


def _asked(one: BallotRecord, other: BallotRecord, vote: AskedVote) -> _Asked:
    candidates = vote.turn.candidates
    rule: Protocol = "ranked" if vote.form == "rich" else vote.form
    agree = share_a_ranking(*(_masses(b, candidates, rule) for b in (one, other)))
    cast = one.parsed is not None and other.parsed is not None
    return _Asked(vote.form, cast, said(one) == said(other), agree, vote.turn.cluster)


def _one_format(form: BallotFormat, askings: Sequence[_Asked]) -> OneFormat:
    cast = [asked for asked in askings if asked.cast]
    return OneFormat(
        form=form,
        pairs=len(askings),
        abstained=len(askings) - len(cast),
        same=_mean([(asked.same, asked.cluster) for asked in cast]),
        consistent=_mean([(asked.consistent, asked.cluster) for asked in cast]),
    )


def _mean(found: Sequence[tuple[bool, Cluster]]) -> Estimate | NotEstimable:
    values = [value for value, _ in found]
    return share_over_tasks(values, [cluster for _, cluster in found])


# --- Tables and section --------------------------------------------------------------------------

Places = Mapping[str, FormatInvariance | NotEstimable]
"""Where two formats met → what was found there; "" for a single run."""


def invariance_table(found: Places) -> Table | None:
    """Pairs of formats; `None` where nobody was asked for two."""
    return table(
        "invariance",
        "One voter, the same drafts, two formats",
        "Ballots as cast, none recounted: what the assumption behind the sets comes to where it "
        "can be tested. Consistent: the first ballot leaves the second possible; a rich ballot "
        "determines it. Pairs with an abstention are in no share. Same first: some draft is first "
        "in both. Same winner: share of turns, rich ballots counted as the other format's, ties "
        "to the order. 95 % intervals in brackets: over tasks.",
        [
            *_shown_of(found),
            *("ballot", "and ballot", "pairs", "with an abstention"),
            *("consistent", "same first", "same winner"),
        ],
        [
            (
                *where,
                *(pair.given, pair.other, pair.pairs, pair.abstained),
                *(estimate(pair.consistent), estimate(pair.same_top)),
                "" if pair.same_winner is None else estimate(pair.same_winner),
            )
            for where, of in _seen(found)
            for pair in of.pairs
        ],
        secondary=("with an abstention",),
    )


def askings_by_format_table(found: Places) -> Table | None:
    """Two askings of one format; `None` without a retest or where nobody was asked for two."""
    return table(
        "one-format",
        "Beside it: one voter, one prompt, one format twice",
        "Logged and re-asked answers, in pairs; those with an abstention are in no share. "
        "Consistent: some ranking agrees with both. How far one format agrees with itself is what "
        "to read the agreement of two by.",
        [*_shown_of(found), "format", "pairs", "with an abstention", "same ballot", "consistent"],
        [
            (
                *where,
                *(own.form, own.pairs, own.abstained),
                *(estimate(own.same), estimate(own.consistent)),
            )
            for where, of in _seen(found)
            for own in of.askings
        ],
    )


def _shown_of(found: Places) -> tuple[str, ...]:
    """A column for the place, where there are several."""
    return ("of",) if any(found) else ()


def _seen(found: Places) -> list[tuple[tuple[str, ...], FormatInvariance]]:
    return [
        ((where,) if where else (), of)
        for where, of in found.items()
        if isinstance(of, FormatInvariance)
    ]


_WHERE: Final = {"first": "first run", "second": "second run", "across": "both runs"}


def formats_section(found: Places) -> Section:
    """Ballots of one voter in two formats, in each of two runs and across both."""
    places = {_WHERE[where]: of for where, of in found.items()}
    untested = [f"{w}: {of.reason}." for w, of in places.items() if isinstance(of, NotEstimable)]
    again = askings_by_format_table(places)
    if again is None and len(untested) < len(places):
        untested.append(
            "No prompt was re-asked, so how far one format agrees with itself is unknown."
        )
    tables = present(invariance_table(places), again)
    lead = " ".join(untested)
    return Section("formats", "One voter in two formats", lead[:1].upper() + lead[1:], (), tables)
