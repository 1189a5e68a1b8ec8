"""Tables of a run log, as polars frames with stated schemas.

Each `*_rows` function gives the rows of one episode, so that a log of any size can be
written piece by piece; each `*_table` function collects them into one frame. A failed
episode is in `episodes` and `calls`, with its status, and in no other table.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import polars as pl

from analysis.continuations import deciding_order
from tutorsim.records import BallotRecord, EpisodeRecord, RunRecord, Turn
from tutorsim.voting import RichBallot

__all__ = [
    "BALLOTS_SCHEMA",
    "CALLS_SCHEMA",
    "EPISODES_SCHEMA",
    "PROPOSALS_SCHEMA",
    "TABLES",
    "TURNS_SCHEMA",
    "Table",
    "ballots_table",
    "calls_table",
    "episodes_table",
    "no_ballots",
    "proposals_table",
    "run_id",
    "turns_table",
]

_PLACE: Final = {
    "run_id": pl.String(),  # study and recording; the same on every machine
    "episode_id": pl.String(),
    "benchmark": pl.String(),
    "task": pl.String(),
    "persona": pl.String(),
    "condition": pl.String(),
}

BALLOTS_SCHEMA: Final = pl.Schema(
    {
        **_PLACE,
        "turn": pl.Int64(),  # from 1
        "stage": pl.String(),  # vote_initial, vote_final or tie_vote
        "voter": pl.String(),
        "candidate": pl.String(),
        "label": pl.String(),  # as shown to this voter; null for ballots from elsewhere
        "mass": pl.Int64(),  # null in every row of an abstained ballot
        "ballot_status": pl.String(),  # valid, repaired or abstained
        "protocol": pl.String(),
        "position": pl.Int64(),  # place of the label as shown, from 1
        "attempts": pl.Int64(),  # times the ballot was asked for
        "points": pl.Int64(),  # of a rich ballot, as are the next two; null for other formats
        "rank": pl.Int64(),  # from 1, the best
        "approved": pl.Boolean(),
    }
)
"""One row per ballot and candidate; in a tie round only the tied candidates have rows."""

EPISODES_SCHEMA: Final = pl.Schema(
    {
        **_PLACE,
        "repeat": pl.Int64(),
        "status": pl.String(),  # complete or failed
        "turns_taken": pl.Int64(),  # 0 when the first attempt succeeded
        "initial_correctness": pl.Float64(),  # null: unscored, never zero
        "final_correctness": pl.Float64(),
        "initial_code_passed": pl.Boolean(),  # null for science questions
        "code_passed": pl.Boolean(),
        "success": pl.Boolean(),  # null for a failed episode
        "scores": pl.List(pl.Float64()),  # one per attempt, from the first
        "codes_passed": pl.List(pl.Boolean()),
        "failure": pl.String(),  # null unless failed
        "branch_turn": pl.Int64(),  # first under the alternative; null for an episode as logged
        "continuation": pl.Int64(),  # from 1, one draw each; null for an episode as logged
        "left": pl.Int64(),  # turn whose winner came to differ; null where none did
    }
)
"""One row per episode."""

TURNS_SCHEMA: Final = pl.Schema(
    {
        **_PLACE,
        "turn": pl.Int64(),
        "protocol": pl.String(),  # null for the single tutor, and so are the next five
        "winner": pl.String(),
        "decided_by": pl.String(),  # vote, tie_round or fallback
        "tied_set": pl.List(pl.String()),  # the last tie; empty when one led the final vote alone
        "undecided": pl.List(pl.String()),  # left by counting; more than one: the order decided
        "tie_round": pl.Boolean(),  # whether one was held
        "delivered": pl.String(),
        "score": pl.Float64(),  # of the attempt that followed
        "code_passed": pl.Boolean(),
    }
)
"""One row per tutoring turn."""

PROPOSALS_SCHEMA: Final = pl.Schema(
    {
        **_PLACE,
        "turn": pl.Int64(),
        "version": pl.String(),  # initial or final
        "role": pl.String(),
        "text": pl.String(),
        "rationale": pl.String(),
        "confidence": pl.Int64(),  # 0 to 100 as stated; null where none was
        "status": pl.String(),  # valid, repaired or missing
        "winner": pl.Boolean(),  # this role's proposal was delivered
    }
)
"""One row per turn, version and role."""

CALLS_SCHEMA: Final = pl.Schema(
    {
        **_PLACE,
        "position": pl.Int64(),  # call order in the episode, from 1
        "key": pl.String(),  # turn/stage/agent/attempt
        "stage": pl.String(),
        "model": pl.String(),
        "stop_reason": pl.String(),
        "input_tokens": pl.Int64(),
        "output_tokens": pl.Int64(),
    }
)
"""One row per model call."""

Row = tuple[Any, ...]
Round = tuple[str, Iterable[str], tuple[BallotRecord, ...]]
"""Stage, candidates and ballots of one vote."""


class Table(NamedTuple):
    """One table: its schema, and the rows that one episode adds to it."""

    schema: pl.Schema
    rows: Callable[[EpisodeRecord, RunRecord], Iterator[Row]]

    def frame(self, episodes: Iterable[EpisodeRecord], run: RunRecord) -> pl.DataFrame:
        """The table over episodes, in their order; an empty table keeps its columns."""
        rows = [row for episode in episodes for row in self.rows(episode, run)]
        columns = zip(*rows, strict=True) if rows else [()] * len(self.schema)
        cells = zip(self.schema.items(), columns, strict=True)
        return pl.DataFrame([pl.Series(name, column, kind) for (name, kind), column in cells])


def run_id(run: RunRecord) -> str:
    """The name of a run in every table: its study and its recording, never a folder."""
    return f"{run.study.name}-{run.recording_digest[:12]}"


def no_ballots() -> pl.DataFrame:
    """A ballots table without rows."""
    return pl.DataFrame(schema=BALLOTS_SCHEMA)


def ballots_table(episodes: Iterable[EpisodeRecord], *, run: RunRecord) -> pl.DataFrame:
    """Every ballot of every complete episode, long: see `BALLOTS_SCHEMA`."""
    return TABLES["ballots"].frame(episodes, run)


def episodes_table(episodes: Iterable[EpisodeRecord], *, run: RunRecord) -> pl.DataFrame:
    """One row per episode, failed ones among them: see `EPISODES_SCHEMA`."""
    return TABLES["episodes"].frame(episodes, run)


def turns_table(episodes: Iterable[EpisodeRecord], *, run: RunRecord) -> pl.DataFrame:
    """One row per tutoring turn of complete episodes: see `TURNS_SCHEMA`."""
    return TABLES["turns"].frame(episodes, run)


def proposals_table(episodes: Iterable[EpisodeRecord], *, run: RunRecord) -> pl.DataFrame:
    """Drafts and revisions of complete episodes: see `PROPOSALS_SCHEMA`."""
    return TABLES["proposals"].frame(episodes, run)


def calls_table(episodes: Iterable[EpisodeRecord], *, run: RunRecord) -> pl.DataFrame:
    """One row per model call, those of failed episodes among them: see `CALLS_SCHEMA`."""
    return TABLES["calls"].frame(episodes, run)


def _place(episode: EpisodeRecord, run: RunRecord) -> Row:
    e = episode
    return (run_id(run), e.episode_id, e.benchmark, e.task_id, e.persona, e.condition)


def _turns(episode: EpisodeRecord) -> tuple[Turn, ...]:
    return episode.turns if episode.status == "complete" else ()


def _ballot_rows(episode: EpisodeRecord, run: RunRecord) -> Iterator[Row]:
    return _rows_of(episode, run, _rounds)


def _diagnostic_rows(episode: EpisodeRecord, run: RunRecord) -> Iterator[Row]:
    return _rows_of(episode, run, _further_rounds)


def _rows_of(
    episode: EpisodeRecord, run: RunRecord, rounds: Callable[[Turn], Iterator[Round]]
) -> Iterator[Row]:
    place, order = _place(episode, run), deciding_order(run.study)
    for turn in _turns(episode):
        for stage, candidates, ballots in rounds(turn):
            standing = sorted(candidates, key=partial(_place_in, order))
            for ballot in ballots:
                for cells in _candidate_cells(ballot, standing):
                    yield (*place, turn.turn, stage, *cells)


def _rounds(turn: Turn) -> Iterator[Round]:
    if turn.decision is not None:
        yield "vote_initial", turn.decision.tallies, turn.ballots_initial
        yield "vote_final", turn.decision.tallies, turn.ballots_final
    if turn.tie_round is not None:
        yield "tie_vote", turn.tie_round.candidates, turn.tie_round.ballots


def _further_rounds(turn: Turn) -> Iterator[Round]:
    if turn.decision is not None:
        for form, ballots in turn.ballots_as.items():
            yield f"vote_as_{form}", turn.decision.tallies, ballots


def _place_in(order: Sequence[str], role: str) -> int:
    return order.index(role) if role in order else len(order)


def _candidate_cells(ballot: BallotRecord, standing: Sequence[str]) -> Iterator[Row]:
    """voter … attempts, one tuple per candidate, in the role-priority order.

    So the order survives an export: candidates first appear in it.
    """
    shown = {role: (label, i) for i, (label, role) in enumerate(ballot.labels.items(), start=1)}
    voter, mass, choice = ballot.voter, ballot.mass, ballot.parsed
    status, protocol, attempts = ballot.ballot_status, _counted(ballot), ballot.attempts
    for role in standing:
        label, position = shown.get(role, (None, None))
        own = mass.get(role, 0) if mass else None
        rich = _rich_cells(choice, role) if isinstance(choice, RichBallot) else (None, None, None)
        yield (voter, role, label, own, status, protocol, position, attempts, *rich)


def _rich_cells(choice: RichBallot, role: str) -> Row:
    """Points, rank and approval of a candidate."""
    return (choice.points[role], choice.order.index(role) + 1, role in choice.approved)


def _counted(ballot: BallotRecord) -> str:
    """The protocol of the masses; `rich` for a ballot that holds one of each."""
    return "rich" if ballot.protocol == "rich" else ballot.rule


def _episode_rows(episode: EpisodeRecord, run: RunRecord) -> Iterator[Row]:
    e = episode
    yield (
        *_place(e, run),
        e.repeat,
        e.status,
        e.turns_taken,
        e.initial_correctness,
        e.final_correctness,
        e.initial_code_passed,
        e.code_passed,
        e.success,
        [attempt.score for attempt in e.attempts],
        [attempt.code_passed for attempt in e.attempts],
        e.failure.error if e.failure else None,
        *((e.branch.turn, e.branch.continuation, e.branch.left) if e.branch else (None,) * 3),
    )


def _turn_rows(episode: EpisodeRecord, run: RunRecord) -> Iterator[Row]:
    place = _place(episode, run)
    after = {attempt.turn: attempt for attempt in episode.attempts}
    for turn in _turns(episode):
        attempt = after.get(turn.turn)
        outcome = (attempt.score, attempt.code_passed) if attempt else (None, None)
        yield (*place, turn.turn, *_decision_cells(turn), turn.delivered, *outcome)


def _decision_cells(turn: Turn) -> Row:
    decision = turn.decision
    if decision is None:
        return (None,) * 6
    return (
        _counted(turn.ballots_final[0]) if turn.ballots_final else None,
        decision.winner,
        decision.decided_by,
        list(decision.tied_set),
        list(decision.undecided),
        turn.tie_round is not None,
    )


def _proposal_rows(episode: EpisodeRecord, run: RunRecord) -> Iterator[Row]:
    place = _place(episode, run)
    for turn in _turns(episode):
        for version, proposals in (
            ("initial", turn.proposals_initial),
            ("final", turn.proposals_final),
        ):
            for role, p in proposals.items():
                won = turn.decision is None or turn.decision.winner == role
                told = (p.text, p.rationale, p.confidence, p.status, won and version == "final")
                yield (*place, turn.turn, version, role, *told)


def _call_rows(episode: EpisodeRecord, run: RunRecord) -> Iterator[Row]:
    place = _place(episode, run)
    for i, c in enumerate(episode.calls, start=1):
        tokens = (c.input_tokens, c.output_tokens)
        yield (*place, i, c.key, c.stage, c.model, c.stop_reason, *tokens)


TABLES: Final[dict[str, Table]] = {
    "episodes": Table(EPISODES_SCHEMA, _episode_rows),
    "turns": Table(TURNS_SCHEMA, _turn_rows),
    "ballots": Table(BALLOTS_SCHEMA, _ballot_rows),
    "diagnostic_ballots": Table(BALLOTS_SCHEMA, _diagnostic_rows),
    "proposals": Table(PROPOSALS_SCHEMA, _proposal_rows),
    "calls": Table(CALLS_SCHEMA, _call_rows),
}
"""Every table of a run log by name.

`diagnostic_ballots` has those in further formats on the final proposals, stage `vote_as_…`; they
decided nothing, so that no reader counts them by mistake. A branch under another rule keeps the
ballots of the logged vote there.
"""
