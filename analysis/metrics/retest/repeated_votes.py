"""Votes that were asked again: what each voter said to one prompt, the logged answer first."""

from collections.abc import Hashable, Iterator, Sequence
from math import isnan
from typing import NamedTuple

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.ballots.turn_profiles import TURN, Place, TurnKey
from tutorsim.analysis.counting.turn_winners import first_of, leaders_of
from tutorsim.analysis.metrics.fallback_order_of_each_turn import Cluster
from tutorsim.analysis.metrics.turn_table import places_of, turn_table
from tutorsim.errors import LogError
from tutorsim.records import BallotRecord, EpisodeLine, RetestVote, VotingTurn
from tutorsim.vocabularies import BallotFormat
from tutorsim.voting import RichBallot, masses_of

__all__ = ["AskedTurn", "AskedVote", "asked_votes", "said", "top_of"]


class AskedTurn(NamedTuple):
    """A turn of which some vote was asked again, as it was logged."""

    key: TurnKey
    place: Place
    candidates: tuple[str, ...]
    """Everybody who stands, in the fallback order that the turn was decided under."""
    winner: str
    final_leader: str
    """Of the final vote alone, a tie going to the order."""
    initial_leader: str | None
    """Of the first vote, likewise; `None` where none was held."""
    outside: bool
    """The winner is not among the leaders of the first vote."""
    shift: float | None
    """Of the vote shares; `None` where it is undefined."""

    @property
    def cluster(self) -> Cluster:
        """The turn's task; its episode where ballots from elsewhere do not name tasks."""
        return self.place.benchmark, self.place.task or self.key.episode_id


class AskedVote(NamedTuple):
    """One vote of one turn, with every answer of its voters."""

    turn: AskedTurn
    stage: str
    """`vote_initial` or `vote_final`."""
    form: BallotFormat
    askings: tuple[tuple[BallotRecord, ...], ...]
    """Per voter, in the log's order: the logged ballot, then the re-asked ones."""

    def masses(self) -> list[list[tuple[int, ...]]]:
        """Per voter, the masses of each answer by candidate; zeros for an abstention."""
        candidates = self.turn.candidates
        return [
            [tuple(ballot.mass.get(c, 0) for c in candidates) for ballot in asked]
            for asked in self.askings
        ]


def asked_votes(source: Source, episodes: Sequence[EpisodeLine] | None = None) -> list[AskedVote]:
    """The votes of complete episodes that were asked again, in the order of the retest.

    Args:
        source: The run; `source.retest` holds what was asked again.
        episodes: Its log; the source's own where it is left out, which is a panel's.

    Raises:
        LogError: If the retest is of votes that the log does not hold.
    """
    if source.retest is None:
        return []
    turns = {(t.key.episode_id, t.key.turn): t for t in _turns(source)}
    records: Sequence[EpisodeLine] = source.episodes if episodes is None else episodes
    logged = {e.episode_id: e for e in records}
    found = []
    for record in source.retest.episodes:
        episode = logged.get(record.episode_id)
        if episode is None:
            raise _not_logged(source, record.episode_id)
        if episode.status == "complete":
            found += [
                _asked(source, episode, vote, turns[episode.episode_id, vote.turn])
                for vote in record.votes
                if isinstance(vote, RetestVote)
                and vote.repeats
                and (episode.episode_id, vote.turn) in turns
            ]
    return found


def _turns(source: Source) -> Iterator[AskedTurn]:
    """Every turn as it was logged."""
    table = turn_table(source)
    keys = list(table.votes.turns.select(TURN).iter_rows())
    places = list(places_of(table.votes).select(Place._fields).iter_rows())
    for panel in table.panels:
        led = first_of(leaders_of(panel.final)).tolist()
        standing = panel.final.candidates.tolist()
        for turn, own, first in zip(panel.final.turn.tolist(), standing, led, strict=True):
            leader, shift = int(table.leader[turn]), float(table.shift[turn])
            yield AskedTurn(
                key=TurnKey(*keys[turn]),
                place=Place(*places[turn]),
                candidates=tuple(table.order[c] for c in own),
                winner=table.order[table.winner[turn]],
                final_leader=table.order[own[first]],
                initial_leader=None if leader < 0 else table.order[leader],
                outside=bool(table.outside[turn]),
                shift=None if isnan(shift) else shift,
            )


def _asked(source: Source, episode: EpisodeLine, vote: RetestVote, turn: AskedTurn) -> AskedVote:
    [record] = [t for t in episode.turns if t.turn == vote.turn]
    first = _logged_ballots(record, vote.stage)
    again = [{ballot.voter: ballot for ballot in repeat} for repeat in vote.repeats]
    if any(len(r) != len(first) for r in again) or not all(
        b.voter in r for r in again for b in first
    ):
        raise _not_logged(source, f"{episode.episode_id}, turn {vote.turn}, {vote.stage}")
    askings = tuple((ballot, *(repeat[ballot.voter] for repeat in again)) for ballot in first)
    return AskedVote(turn, vote.stage, first[0].protocol, askings)


def _logged_ballots(turn: VotingTurn, stage: str) -> tuple[BallotRecord, ...]:
    return turn.ballots_initial if stage == "vote_initial" else turn.ballots_final


def _not_logged(source: Source, what: str) -> LogError:
    return LogError(
        f"{source.name}: the retest and the log do not belong together.",
        why=f"The retest has other voters than the log, or none, for {what}.",
        hint="Write both again from their recording with `tutorsim replay`.",
    )


def said(ballot: BallotRecord) -> Hashable | None:
    """What a ballot says; equal for ballots that say the same, `None` for an abstention."""
    choice = ballot.parsed
    if isinstance(choice, RichBallot):
        return (*sorted(choice.points.items()), choice.order, choice.approved)
    if isinstance(choice, dict):
        return tuple(sorted(choice.items()))
    if isinstance(choice, tuple) and ballot.protocol == "approval":
        return frozenset(choice)
    return choice


def top_of(ballot: BallotRecord, candidates: Sequence[str]) -> frozenset[str]:
    """Whom a ballot puts first: several where it gives them equal mass, nobody where it gives none.

    A rich ballot says by its order who is first.
    """
    if isinstance(ballot.parsed, RichBallot):
        return frozenset(ballot.parsed.order[:1])
    if ballot.parsed is None or ballot.protocol == "rich":
        return frozenset()
    mass = masses_of(ballot.parsed, candidates, protocol=ballot.protocol)
    most = max(mass.values(), default=0)
    return frozenset(c for c, own in mass.items() if own == most > 0)
