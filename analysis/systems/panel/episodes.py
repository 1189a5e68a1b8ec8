"""Episodes of a panel: chosen ones message by message, and all in a line each."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.pages.words import counted
from tutorsim.analysis.systems.panel.diagnostics import turn_diagnostics
from tutorsim.errors import UsageError
from tutorsim.records import BallotRecord, EpisodeRecord, Turn, odd_stops, stop_counts
from tutorsim.voting import Step

# --- Example episodes ----------------------------------------------------------------------------

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


# --- Episode list --------------------------------------------------------------------------------


class EpisodeRow(NamedTuple):
    """One episode."""

    episode_id: str
    benchmark: str
    task: str
    persona: str
    condition: str
    status: str
    turns: int
    success: bool | None
    first_score: float | None
    last_score: float | None
    winners: tuple[str, ...]
    """Of the voting turns, in order."""
    decided_by: tuple[str, ...]
    """The step that decided each voting turn."""
    special: tuple[str, ...]
    """What few other episodes have, a few words each."""

    @property
    def scores(self) -> str:
        """First and last score."""
        first, last = (_score(score) for score in (self.first_score, self.last_score))
        return f"{first} → {last}"


def _score(score: float | None) -> str:
    return "–" if score is None else f"{score:.2f}"


def episode_rows(source: Source) -> list[EpisodeRow]:
    """Every episode of a run, in the log's order."""
    turns: dict[str, list[dict[str, object]]] = {}
    for row in turn_diagnostics(source).iter_rows(named=True):
        turns.setdefault(row["episode_id"], []).append(row)
    return [_row(episode, turns.get(episode.episode_id, [])) for episode in source.episodes]


def _row(episode: EpisodeRecord, turns: list[dict[str, object]]) -> EpisodeRow:
    return EpisodeRow(
        episode_id=episode.episode_id,
        benchmark=episode.benchmark,
        task=episode.task_id,
        persona=episode.persona,
        condition=episode.condition,
        status=episode.status,
        turns=episode.turns_taken,
        success=episode.success,
        first_score=episode.initial_correctness,
        last_score=episode.final_correctness,
        winners=tuple(str(turn["winner"]) for turn in turns),
        decided_by=tuple(str(turn["decided_by"]) for turn in turns),
        special=tuple(_special(episode, turns)),
    )


def _special(episode: EpisodeRecord, turns: list[dict[str, object]]) -> Iterator[str]:
    if episode.failure is not None:
        yield f"failed at {episode.failure.key}"
        return
    if not episode.turns_taken:
        yield "solved at once"
    first, last = episode.initial_correctness, episode.final_correctness
    if first is not None and last is not None and last < first:
        yield "the score fell"
    by_order = [turn["turn"] for turn in turns if turn["fallback"]]
    if by_order:
        yield f"the order decided turn {_listed(by_order)}"
    rounds = [turn["turn"] for turn in turns if turn["decided_by"] == "tie_round"]
    if rounds:
        yield f"a tie round decided turn {_listed(rounds)}"
    outside = [turn["turn"] for turn in turns if turn["flip_set"]]
    if outside:
        yield f"deliberation changed the winner of turn {_listed(outside)}"
    silent = sum(int(str(turn["abstained"])) for turn in turns)
    if silent:
        yield f"{silent} abstained"
    ends = Counter[str]()
    for count in odd_stops(stop_counts([episode])):
        ends[count.words] += count.calls
    for words, replies in ends.items():
        yield f"{counted(replies, 'reply', plural='replies')} {words}"


def _listed(turns: list[object]) -> str:
    return ", ".join(map(str, turns))
