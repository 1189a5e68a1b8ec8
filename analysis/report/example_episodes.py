"""Chosen episodes, message by message, with every label resolved to its role."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tutorsim.errors import UsageError
from tutorsim.records import BallotRecord, EpisodeRecord, Turn
from tutorsim.voting import Step

__all__ = [
    "MOST_EPISODES",
    "BallotRow",
    "Chosen",
    "ballot_rows",
    "candidates_of",
    "choose",
    "step_sentence",
]


MOST_EPISODES: Final = 150
"""Episodes of a run that a report holds whole; of larger runs it holds telling ones."""


@dataclass(frozen=True)
class Chosen:
    """An episode of the trace, and why it is there."""

    episode: EpisodeRecord
    why: tuple[str, ...]
    """Empty when the reader named it, and when it is there as all are."""

    @property
    def winners(self) -> tuple[str, ...]:
        """Whose draft won some turn, each once."""
        won = (turn.decision.winner for turn in self.episode.turns if turn.decision)
        return tuple(dict.fromkeys(won))

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps that decided some turn, each once."""
        by = (turn.decision.decided_by for turn in self.episode.turns if turn.decision)
        return tuple(dict.fromkeys(by))

    @property
    def draw(self) -> str:
        """From where on a branch's draw is re-simulated; empty for an episode as logged."""
        point = self.episode.branch
        if point is None:
            return ""
        return (
            f"Draw {point.continuation} of {point.parent_episode}; turn {point.turn} is the first "
            "that the branch decides."
        )


@dataclass(frozen=True)
class BallotRow:
    """One voter's ballot as a table row."""

    voter: str
    cells: tuple[tuple[str, str], ...]
    """Per candidate: the mass (`–` where there is none), and the label that it was shown under."""
    status: str
    attempts: int
    raw: str


def choose(
    episodes: Sequence[EpisodeRecord],
    wanted: Iterable[str] = (),
    *,
    flipped: Iterable[str] = (),
) -> tuple[Chosen, ...]:
    """The episodes to show.

    Args:
        episodes: All episodes of the run, in grid order.
        wanted: Ids that the reader named; they come in the order named.
        flipped: Ids of episodes where deliberation changed a winner.

    Returns:
        The named ones; without names, the first episode for each thing worth seeing: a turn
        that the fallback order decided, a winner that changed, a tie that the tie round
        broke, an abstention. An episode already there for one thing serves the others too. All
        the others follow, up to `MOST_EPISODES` together.

    Raises:
        UsageError: If the run holds no episode of a name.
    """
    known = {episode.episode_id: episode for episode in episodes}
    named = tuple(wanted)
    for name in named:
        if name not in known:
            raise UsageError(
                f"The run holds no episode {name!r}.",
                why=f"It holds {len(known)}, for example {next(iter(known), 'none')!r}.",
                hint="`tutorsim show RUN PART` finds an episode by parts of its id.",
            )
    if named:
        return tuple(Chosen(known[name], ()) for name in dict.fromkeys(named))
    telling = _examples(episodes, _features(episodes, set(flipped)))
    if len(episodes) > MOST_EPISODES:
        return telling
    there = {chosen.episode.episode_id for chosen in telling}
    return (*telling, *(Chosen(e, ()) for e in episodes if e.episode_id not in there))


def _features(
    episodes: Sequence[EpisodeRecord], flipped: set[str]
) -> dict[str, list[EpisodeRecord]]:
    """Each thing worth seeing → the episodes that show it, rarest kind of ending first."""
    panels = [e for e in episodes if e.status == "complete" and any(t.decision for t in e.turns)]
    return {
        "the fallback order decided a turn": _with(panels, "fallback"),
        "a tie round broke a tie": _with(panels, "tie_round"),
        "a voter abstained": [e for e in panels if any(map(_abstained, e.turns))],
        "deliberation changed a winner": [e for e in panels if e.episode_id in flipped],
    }


def _examples(
    episodes: Sequence[EpisodeRecord], features: Mapping[str, list[EpisodeRecord]]
) -> tuple[Chosen, ...]:
    chosen: list[EpisodeRecord] = []
    for holders in features.values():
        if holders and not any(e in chosen for e in holders):
            chosen.append(holders[0])
    if not chosen:
        whole = [e for e in episodes if e.turns and e.status == "complete"]
        chosen = whole[:1] or list(episodes[:1])
    return tuple(
        Chosen(e, tuple(what for what, holders in features.items() if e in holders) or _PLAIN)
        for e in chosen
    )


_PLAIN = ("no turn with a tie, an abstention or a changed winner was logged",)


def _with(episodes: Iterable[EpisodeRecord], step: str) -> list[EpisodeRecord]:
    return [
        e for e in episodes if any(t.decision and t.decision.decided_by == step for t in e.turns)
    ]


def _abstained(turn: Turn) -> bool:
    tie = turn.tie_round.ballots if turn.tie_round else ()
    ballots = (*turn.ballots_initial, *turn.ballots_final, *tie)
    return any(ballot.ballot_status == "abstained" for ballot in ballots)


def candidates_of(turn: Turn) -> tuple[str, ...]:
    """The roles whose drafts stood, in role order."""
    return tuple(turn.proposals_initial)


def ballot_rows(
    ballots: Iterable[BallotRecord], candidates: Sequence[str]
) -> tuple[BallotRow, ...]:
    """Ballots as rows over candidates, whatever labels each voter saw."""
    return tuple(_ballot_row(ballot, candidates) for ballot in ballots)


def _ballot_row(ballot: BallotRecord, candidates: Sequence[str]) -> BallotRow:
    label = {role: name for name, role in ballot.labels.items()}
    return BallotRow(
        voter=ballot.voter,
        cells=tuple((str(ballot.mass.get(role, "–")), label.get(role, "")) for role in candidates),
        status=ballot.ballot_status,
        attempts=ballot.attempts,
        raw=ballot.raw,
    )


def step_sentence(step: Step, order: Sequence[str] = ()) -> str:
    """What one step of a decision did.

    Args:
        step: The step.
        order: The fallback order, to be named where it decided.
    """
    left = ", ".join(step.remaining)
    if step.tallies is None:
        named = f" ({' > '.join(order)})" if order else ""
        return f"Fallback order{named}: the first of the tied candidates is {left}."
    count = "Final vote" if step.step == "vote_final" else "Tie round"
    totals = ", ".join(f"{name} {total}" for name, total in step.tallies.items())
    end = f"{left} leads" if len(step.remaining) == 1 else f"tied: {left}"
    return f"{count}: {totals} — {end}."
