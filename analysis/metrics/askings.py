"""Votes that were asked again: what each voter said to one prompt, the logged answer first."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from analysis.metrics.turns import DecidedTurn, decided_turns
from analysis.sources import Source
from tutorsim.errors import LogError
from tutorsim.records import BallotRecord, EpisodeRecord, RetestVote
from tutorsim.records import Turn as TurnRecord
from tutorsim.types import BallotFormat, Stage
from tutorsim.voting import RichBallot, masses_of

__all__ = ["AskedVote", "asked_votes", "said", "top_of"]


class AskedVote(NamedTuple):
    """One vote of one turn, with every answer of its voters."""

    turn: DecidedTurn
    stage: Stage
    """`vote_initial` or `vote_final`."""
    form: BallotFormat
    askings: tuple[tuple[BallotRecord, ...], ...]
    """Per voter, in the log's order: the logged ballot, then the re-asked ones."""

    @property
    def candidates(self) -> tuple[str, ...]:
        """Everybody who stands, in the role-priority order that the turn was decided under."""
        standing = set(self.turn.final.candidates)
        return tuple(c for c in self.turn.order if c in standing)

    def masses(self) -> list[list[tuple[int, ...]]]:
        """Per voter, the masses of each answer by `candidates`; zeros for an abstention."""
        candidates = self.candidates
        return [
            [tuple(ballot.mass.get(c, 0) for c in candidates) for ballot in asked]
            for asked in self.askings
        ]


def asked_votes(source: Source) -> list[AskedVote]:
    """The votes of complete episodes that were asked again, in the order of the retest.

    Raises:
        LogError: If the retest is of votes that the log does not hold.
    """
    if source.retest is None:
        return []
    turns = {(t.key.episode_id, t.key.turn): t for t in decided_turns(source)}
    logged = {e.episode_id: e for e in source.episodes}
    found = []
    for record in source.retest.episodes:
        episode = logged.get(record.episode_id)
        if episode is None:
            raise _not_logged(source, record.episode_id)
        if episode.status == "complete":
            found += [
                _asked(source, episode, vote, turns[episode.episode_id, vote.turn])
                for vote in record.votes
                if vote.repeats and (episode.episode_id, vote.turn) in turns
            ]
    return found


def _asked(
    source: Source, episode: EpisodeRecord, vote: RetestVote, turn: DecidedTurn
) -> AskedVote:
    [record] = [t for t in episode.turns if t.turn == vote.turn]
    first = _logged_ballots(record, vote.stage)
    again = [{ballot.voter: ballot for ballot in repeat} for repeat in vote.repeats]
    if any(len(r) != len(first) for r in again) or not all(
        b.voter in r for r in again for b in first
    ):
        raise _not_logged(source, f"{episode.episode_id}, turn {vote.turn}, {vote.stage}")
    askings = tuple((ballot, *(repeat[ballot.voter] for repeat in again)) for ballot in first)
    return AskedVote(turn, vote.stage, first[0].protocol, askings)


def _logged_ballots(turn: TurnRecord, stage: Stage) -> tuple[BallotRecord, ...]:
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
