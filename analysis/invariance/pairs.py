"""Pairs of ballots on the same proposals: found within a run or across two, and counted."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

from analysis.continuations import without_shared_turns
from analysis.identify.membership import may_have_cast, share_a_ranking
from analysis.invariance.result import UNTESTED, FormatInvariance, FormatPair, OneFormat
from analysis.metrics.askings import AskedVote, asked_votes, said, top_of
from analysis.metrics.redrawn import leader_of
from analysis.metrics.turns import Cluster
from analysis.profiles import Masses
from analysis.sources import Source
from analysis.statistics import Estimate, NotEstimable, cluster_bootstrap
from tutorsim.records import BallotRecord, Turn
from tutorsim.types import BALLOT_FORMATS, BallotFormat, Protocol
from tutorsim.voting import masses_of

__all__ = ["format_invariance", "format_invariance_across", "format_invariance_of_two"]

Ballots = Mapping[str, BallotRecord]
"""Voter → ballot, all in one format."""


class _Panels(NamedTuple):
    """One panel's ballots on one set of proposals, in two formats."""

    given: Ballots
    other: Ballots
    candidates: tuple[str, ...]
    """In the role-priority order."""
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
    candidates: tuple[str, ...]
    """In the role-priority order."""
    cluster: Cluster


def format_invariance(source: Source, *, seed: int = 0) -> FormatInvariance | NotEstimable:
    """Ballots in several formats within one run.

    Args:
        source: The run.
        seed: Of the intervals, which resample tasks.

    Returns:
        Pairs of formats in which some voter was asked; not estimable where there are none.

    Raises:
        LogError: If the run's retest does not belong to its log.
    """
    panels = [panel for _, side in _sides(source) for panel in _pairs_of(side, side)]
    return _result(panels, source, seed) if panels else NotEstimable(UNTESTED)


def format_invariance_across(
    first: Source, second: Source, *, seed: int = 0
) -> FormatInvariance | NotEstimable:
    """Ballots in different formats of two runs whose voters saw the same proposals.

    Turns are matched on benchmark, task, persona, repeat and turn, and on the text of every
    final proposal; ballots on the voter. Two askings of one format stand with each run.
    """
    seen: dict[Hashable, list[_Side]] = {}
    for place, side in _sides(first):
        seen.setdefault(place, []).append(side)
    panels = [
        panel
        for place, side in _sides(second)
        for match in seen.get(place, [])
        for panel in (*_pairs_of(match, side), *_pairs_of(side, match))
    ]
    return _result(panels, None, seed) if panels else NotEstimable(UNTESTED)


def format_invariance_of_two(
    first: Source, second: Source, *, seed: int = 0
) -> dict[str, FormatInvariance | NotEstimable]:
    """`first` and `second`: within each run; `across`: voters of both on the same proposals."""
    return {
        "first": format_invariance(first, seed=seed),
        "second": format_invariance(second, seed=seed),
        "across": format_invariance_across(first, second, seed=seed),
    }


def _sides(source: Source) -> Iterator[tuple[Hashable, _Side]]:
    """Voting turns of complete episodes, by what turns share whose voters saw the same."""
    order = source.fallback_order or ()
    for e in without_shared_turns(e for e in source.episodes if e.status == "complete"):
        for turn in e.turns:
            ballots = _formats(turn)
            if turn.decision is None or not ballots:
                continue
            standing = [c for c in order if c in turn.decision.tallies]
            candidates = (*standing, *(c for c in turn.decision.tallies if c not in order))
            texts = tuple(sorted((role, p.text) for role, p in turn.proposals_final.items()))
            place = (e.benchmark, e.task_id, e.persona, e.repeat, turn.turn, texts)
            yield place, _Side(ballots, next(iter(ballots)), candidates, (e.benchmark, e.task_id))


def _formats(turn: Turn) -> dict[BallotFormat, Ballots]:
    """Format → ballots on the final proposals, those of the vote first."""
    found: dict[BallotFormat, Ballots] = {}
    for ballots in (turn.ballots_final, *turn.ballots_as.values()):
        if ballots:
            found.setdefault(ballots[0].protocol, {ballot.voter: ballot for ballot in ballots})
    return found


def _pairs_of(one: _Side, two: _Side) -> Iterator[_Panels]:
    """Each format of one side with each other format of the other; a rich one is the given one."""
    for given, other in product(one.ballots, two.ballots):
        if given != other != "rich":
            voted = given == one.voted or (given == "rich" and other == two.voted)
            yield _Panels(
                one.ballots[given], two.ballots[other], one.candidates, one.cluster, voted
            )


def _form(ballots: Ballots) -> BallotFormat:
    return next(iter(ballots.values())).protocol


def _result(panels: Sequence[_Panels], source: Source | None, seed: int) -> FormatInvariance:
    cells: dict[tuple[BallotFormat, BallotFormat], list[_Panels]] = {}
    for panel in panels:
        cells.setdefault(panel.forms, []).append(panel)
    places = {form: i for i, form in enumerate(BALLOT_FORMATS)}
    ordered = sorted(cells, key=lambda forms: (places[forms[0]], places[forms[1]]))
    askings = [] if source is None else _askings(source)
    voted = [pair for panel in panels if panel.voted for pair in _cast(panel)]
    return FormatInvariance(
        pairs=[_format_pair(cells[forms], seed) for forms in ordered],
        from_vote=_mean([(pair.consistent, pair.cluster) for pair in voted], seed),
        askings=[
            _one_format(form, [a for a in askings if a.form == form], seed)
            for form in BALLOT_FORMATS
            if any(a.form == form for a in askings)
        ],
        again=_mean([(a.same, a.cluster) for a in askings if a.cast], seed),
        again_consistent=_mean([(a.consistent, a.cluster) for a in askings if a.cast], seed),
    )


class _Pair(NamedTuple):
    """Two ballots that were both cast."""

    consistent: bool
    same_top: bool
    cluster: Cluster


def _format_pair(panels: Sequence[_Panels], seed: int) -> FormatPair:
    given, other = panels[0].forms
    cast = [pair for panel in panels for pair in _cast(panel)]
    pairs = sum(len(panel.given.keys() & panel.other.keys()) for panel in panels)
    same = [
        (_winner(p.given, p) == _winner(p.other, p), p.cluster)
        for p in panels
        if all(any(b.parsed is not None for b in side.values()) for side in (p.given, p.other))
    ]
    return FormatPair(
        given=given,
        other=other,
        pairs=pairs,
        abstained=pairs - len(cast),
        consistent=_mean([(pair.consistent, pair.cluster) for pair in cast], seed),
        same_top=_mean([(pair.same_top, pair.cluster) for pair in cast], seed),
        turns=len(panels),
        same_winner=_mean(same, seed) if given == "rich" else None,
    )


def _cast(panel: _Panels) -> Iterator[_Pair]:
    """Ballots of one voter in both formats, abstentions left out."""
    for voter, one in panel.given.items():
        two = panel.other.get(voter)
        if two is not None and one.parsed is not None and two.parsed is not None:
            tops = [top_of(ballot, panel.candidates) for ballot in (one, two)]
            consistent = _consistent(one, two, panel.candidates)
            yield _Pair(consistent, bool(tops[0] & tops[1]), panel.cluster)


def _consistent(one: BallotRecord, two: BallotRecord, candidates: Sequence[str]) -> bool:
    """Whether the first ballot leaves the second possible; the second is not rich."""
    assert two.protocol != "rich"
    cast = _masses(two, candidates, two.protocol)
    if one.protocol == "rich":
        return _masses(one, candidates, two.protocol) == cast
    own = _masses(one, candidates, one.protocol)
    return may_have_cast(own, one.protocol, cast, two.protocol)


def _masses(ballot: BallotRecord, candidates: Sequence[str], protocol: Protocol) -> Masses:
    given = masses_of(ballot.parsed, candidates, protocol=protocol)
    return tuple(given.get(c, 0) for c in candidates)


def _winner(ballots: Ballots, panel: _Panels) -> int:
    """Who leads, ties to the order; rich ballots counted as the other format's."""
    rule = panel.forms[1]
    assert rule != "rich"
    return leader_of([_masses(b, panel.candidates, rule) for b in ballots.values()])


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
    candidates = vote.turn.final.candidates
    rule: Protocol = "ranked" if vote.form == "rich" else vote.form
    agree = share_a_ranking(*(_masses(b, candidates, rule) for b in (one, other)))
    cast = one.parsed is not None and other.parsed is not None
    return _Asked(vote.form, cast, said(one) == said(other), agree, vote.turn.cluster)


def _one_format(form: BallotFormat, askings: Sequence[_Asked], seed: int) -> OneFormat:
    cast = [asked for asked in askings if asked.cast]
    return OneFormat(
        form=form,
        pairs=len(askings),
        abstained=len(askings) - len(cast),
        same=_mean([(asked.same, asked.cluster) for asked in cast], seed),
        consistent=_mean([(asked.consistent, asked.cluster) for asked in cast], seed),
    )


def _mean(found: Sequence[tuple[bool, Cluster]], seed: int) -> Estimate | NotEstimable:
    values = [value for value, _ in found]
    return cluster_bootstrap(values, [cluster for _, cluster in found], seed=seed)
