"""Does a voter who sees the same proposals choose the same in two ballot formats?"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import Final, Literal, NamedTuple

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.ballots.vote_arrays_and_profiles import Masses
from tutorsim.analysis.counting.turns_winner_step_and_first_to_final_shift import Cluster
from tutorsim.analysis.identify.ballots_voters_may_cast_and_best_per_candidate import domain_of
from tutorsim.analysis.pages.cells_and_tables import estimate, present
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, table
from tutorsim.analysis.pages.document import Section
from tutorsim.analysis.runs.branch_counts_turns_siblings_share import without_shared_turns
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    share_over_tasks,
)
from tutorsim.analysis.statistics.noise_floor_of_retests import asked_votes, leader_of, said, top_of
from tutorsim.ballot_reading_and_decisions import masses_of
from tutorsim.records import BallotRecord
from tutorsim.vocabularies import BALLOT_FORMATS, PROTOCOLS, BallotFormat, Protocol

# --- Result --------------------------------------------------------------------------------------

UNTESTED: Final = NotEstimable(
    "nobody cast ballots in two formats on the same proposals, so that the assumption is untested"
)


@dataclass(frozen=True)
class FormatInvariance:
    """Pairs of formats, and two askings of one."""

    pairs: list[Row]
    """Ballots of one voter on the same proposals, a row for each two formats."""
    from_vote: Estimate | NotEstimable
    """Consistent pairs over all formats, each from the format that the turn voted in."""
    askings: list[Row]
    """Two askings of one prompt, a row for each format; empty without a retest."""
    again: Estimate | NotEstimable
    """Two askings of one format that gave the same ballot, over all formats."""
    again_consistent: Estimate | NotEstimable
    """Two askings of one format that some ranking agrees with."""


# --- Invariance captions -------------------------------------------------------------------------


def invariance_words(found: FormatInvariance | NotEstimable) -> str:
    """How far the ballots themselves bear out that preferences are the same in every format."""
    if isinstance(found, NotEstimable):
        return f"Recounts assume that preferences are the same in every format; {found.reason}."
    pairs = [f"{p['given']} to {p['other']} {_of(p['consistent'])}" for p in found.pairs]
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
    domain = domain_of(ballot, protocol=protocol, target=form)
    if domain.kind == "exact":
        return other == ballot
    if form == "approval":
        apart = any(len({other[c] for c in level}) > 1 for level in domain.levels)
        if not any(other) or (domain.kind == "order" and apart):
            return False
    return share_a_ranking(ballot, other)


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


# --- Format pairs --------------------------------------------------------------------------------


class _Ballot(NamedTuple):
    """One voter's ballot, as far as pairs look at it."""

    under: Mapping[Protocol, Masses]
    """Masses under its own protocol, of a rich one under each; none of an abstention."""
    top: frozenset[str]
    """Whom it puts first."""


class _Side(NamedTuple):
    """What one turn holds on its final proposals."""

    ballots: Mapping[BallotFormat, Mapping[str, _Ballot]]
    """Format → voter → ballot; the format that the turn voted in comes first."""
    cluster: Cluster


class _Pair(NamedTuple):
    """Two ballots of one voter on the same proposals, or two askings of one."""

    cast: bool
    """Neither is an abstention; only then the next two are told."""
    consistent: bool
    same: bool
    """Some same candidate is first in both; of two askings, they are the same ballot."""
    cluster: Cluster


class _Turn(NamedTuple):
    """One panel's ballots on one set of proposals, in two formats."""

    forms: tuple[BallotFormat, BallotFormat]
    pairs: list[_Pair]
    same_winner: bool | None
    """Whether both elect the same; `None` without votes, or if neither tells the other."""
    cluster: Cluster
    voted: bool
    """Whether the first is the format that the turn voted in; with a rich one, either."""


def format_invariance(source: Source) -> FormatInvariance | NotEstimable:
    """Pairs of formats within one run in which some voter was asked; not estimable without any."""
    if not any(turn.ballots_as for episode in source.episodes for turn in episode.turns):
        return UNTESTED
    sides = _sides(source, source.fallback_order or ())
    return _result([turn for _, side in sides for turn in _compared(side, side)], source)


def format_invariance_across(first: Source, second: Source) -> FormatInvariance | NotEstimable:
    """Ballots in different formats of two runs whose voters saw the same proposals.

    Turns are matched on benchmark, task, persona, repeat and turn, and on the text of every
    final proposal; ballots on the voter. Two askings of one format stand with each run. Ties go
    to the first run's order.
    """
    order = first.fallback_order or ()
    seen = by_key(_sides(first, order))
    turns = [
        turn
        for place, side in _sides(second, order)
        for match in seen.get(place, [])
        for turn in (*_compared(match, side), *_compared(side, match))
    ]
    return _result(turns, None)


def format_invariance_of_two(
    first: Source, second: Source
) -> dict[str, FormatInvariance | NotEstimable]:
    """`first` and `second`: within each run; `across`: voters of both on the same proposals."""
    return {
        "first": format_invariance(first),
        "second": format_invariance(second),
        "across": format_invariance_across(first, second),
    }


def _sides(source: Source, order: Sequence[str]) -> Iterator[tuple[Hashable, _Side]]:
    """Voting turns of complete episodes, by what turns share whose voters saw the same."""
    for e in without_shared_turns(e for e in source.episodes if e.status == "complete"):
        for turn in e.turns:
            if turn.decision is None:
                continue
            standing = [c for c in order if c in turn.decision.tallies]
            candidates = (*standing, *(c for c in turn.decision.tallies if c not in order))
            ballots: dict[BallotFormat, dict[str, _Ballot]] = {}
            for cast in (turn.ballots_final, *turn.ballots_as.values()):
                if cast and cast[0].protocol not in ballots:
                    ballots[cast[0].protocol] = {b.voter: _ballot(b, candidates) for b in cast}
            if ballots:
                texts = tuple(sorted((role, p.text) for role, p in turn.proposals_final.items()))
                place = (e.benchmark, e.task_id, e.persona, e.repeat, turn.turn, texts)
                yield place, _Side(ballots, (e.benchmark, e.task_id))


def _ballot(ballot: BallotRecord, candidates: Sequence[str]) -> _Ballot:
    under = {}
    if ballot.parsed is not None:
        protocols = PROTOCOLS if ballot.protocol == "rich" else (ballot.protocol,)
        under = {protocol: _masses(ballot, candidates, protocol) for protocol in protocols}
    return _Ballot(under, top_of(ballot, candidates))


def _masses(ballot: BallotRecord, candidates: Sequence[str], protocol: Protocol) -> Masses:
    given = masses_of(ballot.parsed, candidates, protocol=protocol)
    return tuple(given.get(c, 0) for c in candidates)


def _compared(one: _Side, two: _Side) -> Iterator[_Turn]:
    """Each format of one side with each other format of the other; a rich one is the given one."""
    for (given, ballots), (other, others) in product(one.ballots.items(), two.ballots.items()):
        if given == other or other == "rich":
            continue
        pairs, same_winner = [], None
        for voter in (voter for voter in ballots if voter in others):
            a, b = ballots[voter], others[voter]
            cast = bool(a.under and b.under)
            consistent = cast and (
                a.under[other] == b.under[other]
                if given == "rich"
                else may_have_cast(a.under[given], given, b.under[other], other)
            )
            pairs.append(_Pair(cast, consistent, bool(a.top & b.top), one.cluster))
        if given == "rich":
            votes = [[b.under[other] for b in s.values() if b.under] for s in (ballots, others)]
            same_winner = leader_of(votes[0]) == leader_of(votes[1]) if all(votes) else None
        voted = given == next(iter(one.ballots)) or (
            given == "rich" and other == next(iter(two.ballots))
        )
        yield _Turn((given, other), pairs, same_winner, one.cluster, voted)


def _result(turns: Sequence[_Turn], source: Source | None) -> FormatInvariance | NotEstimable:
    """`source`: the run whose repeated askings stand beside, if there is one."""
    if not turns:
        return UNTESTED
    of_forms = by_key((turn.forms, turn) for turn in turns)
    askings = [] if source is None else list(_askings(source))
    again = by_key(askings)
    return FormatInvariance(
        pairs=[
            _format_pair(*forms, of_forms[forms])
            for forms in product(BALLOT_FORMATS, repeat=2)
            if forms in of_forms
        ],
        from_vote=_share(
            "consistent",
            [pair for of in of_forms.values() for t in of if t.voted for pair in t.pairs],
        ),
        askings=[
            {
                "form": form,
                "pairs": len(again[form]),
                "abstained": sum(not pair.cast for pair in again[form]),  # in no share
                "same": _share("same", again[form]),  # that are the same ballot
                "consistent": _share("consistent", again[form]),  # that some ranking agrees with
            }
            for form in BALLOT_FORMATS
            if form in again
        ],
        again=_share("same", [pair for _, pair in askings]),
        again_consistent=_share("consistent", [pair for _, pair in askings]),
    )


def _format_pair(given: BallotFormat, other: BallotFormat, turns: Sequence[_Turn]) -> Row:
    pairs = [pair for turn in turns for pair in turn.pairs]
    told = [turn for turn in turns if turn.same_winner is not None]
    same = share_over_tasks([bool(t.same_winner) for t in told], [t.cluster for t in told])
    return {
        "given": given,
        "other": other,
        "pairs": len(pairs),  # of ballots
        "abstained": sum(not pair.cast for pair in pairs),  # pairs with an abstention, in no share
        "consistent": _share("consistent", pairs),  # in which `given` leaves `other` possible
        "same_top": _share("same", pairs),  # that put some same candidate first
        "turns": len(turns),
        # Share of turns with one winner, ties to the order, turns of which nobody voted left out;
        # `None` where neither format is rich, which alone determines the other.
        "same_winner": same if given == "rich" else None,
    }


def _share(what: Literal["consistent", "same"], pairs: Sequence[_Pair]) -> Estimate | NotEstimable:
    """The share of the pairs, both of them cast, that are consistent or the same."""
    cast = [pair for pair in pairs if pair.cast]
    return share_over_tasks([getattr(pair, what) for pair in cast], [pair.cluster for pair in cast])


def _askings(source: Source) -> Iterator[tuple[BallotFormat, _Pair]]:
    """Two askings of one voter's prompt, with their format."""
    for vote in asked_votes(source):
        rule: Protocol = "ranked" if vote.form == "rich" else vote.form
        for one, other in (pair for asked in vote.askings for pair in combinations(asked, 2)):
            cast = one.parsed is not None and other.parsed is not None
            masses = (_masses(ballot, vote.candidates, rule) for ballot in (one, other))
            agree, same = share_a_ranking(*masses), said(one) == said(other)
            yield vote.form, _Pair(cast, agree, same, vote.cluster)


# --- Tables and section --------------------------------------------------------------------------

Places = Mapping[str, FormatInvariance | NotEstimable]
"""Where two formats met → what was found there; "" for a single run."""


@table("invariance", "One voter, the same drafts, two formats", secondary=("with an abstention",))
def invariance_table(found: Places) -> Iterator[Row]:
    """Ballots as cast, none recounted: what the assumption behind the sets comes to where it can be
    tested. Consistent: the first ballot leaves the second possible; a rich ballot determines it.
    Pairs with an abstention are in no share. Same first: some draft is first in both. Same winner:
    share of turns, rich ballots counted as the other format's, ties to the order. 95 % intervals in
    brackets: over tasks."""
    for where, of in _tested(found):
        for pair in of.pairs:
            yield {
                **where,
                "ballot": pair["given"],
                "and ballot": pair["other"],
                "pairs": pair["pairs"],
                "with an abstention": pair["abstained"],
                "consistent": estimate(pair["consistent"]),
                "same first": estimate(pair["same_top"]),
                "same winner": "" if (same := pair["same_winner"]) is None else estimate(same),
            }


@table("one-format", "Beside it: one voter, one prompt, one format twice")
def askings_by_format_table(found: Places) -> Iterator[Row]:
    """Logged and re-asked answers, in pairs; those with an abstention are in no share. Consistent:
    some ranking agrees with both. How far one format agrees with itself is what to read the
    agreement of two by."""
    for where, of in _tested(found):
        for own in of.askings:
            yield {
                **where,
                "format": own["form"],
                "pairs": own["pairs"],
                "with an abstention": own["abstained"],
                "same ballot": estimate(own["same"]),
                "consistent": estimate(own["consistent"]),
            }


def _tested(found: Places) -> Iterator[tuple[dict[str, str], FormatInvariance]]:
    """What was found, with a cell for the place if there are several."""
    for where, of in found.items():
        if isinstance(of, FormatInvariance):
            yield {"of": where} if where else {}, of


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
