"""Tables of a run log, as polars frames with stated schemas.

Each `*_rows` function gives the rows of one episode, so that a log of any size can be
written piece by piece; each `*_table` function collects them into one frame. A failed
episode is in `episodes` and `calls`, with its status, and in no other table.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

import polars as pl

from tutorsim.analysis.runs.branch_continuations import deciding_order
from tutorsim.records import (
    BallotRecord,
    EpisodeLine,
    EpisodeRecord,
    PanelMakeup,
    RunRecord,
    StudySettings,
    Turn,
    VotingTurn,
)
from tutorsim.voting import RichBallot

# --- Exported tables -----------------------------------------------------------------------------

PLACE: Final = {
    "run_id": pl.String(),  # study and recording; the same on every machine
    "episode_id": pl.String(),
    "benchmark": pl.String(),
    "task": pl.String(),
    "persona": pl.String(),
    "condition": pl.String(),
}
"""The first columns of every table; `persona` is what stands between task and condition."""

BALLOTS_SCHEMA: Final = pl.Schema(
    {
        **PLACE,
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
        **PLACE,
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
        **PLACE,
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
        **PLACE,
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
        **PLACE,
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

E = TypeVar("E", bound=EpisodeLine)
Row = tuple[Any, ...]
Round = tuple[str, Iterable[str], tuple[BallotRecord, ...]]
"""Stage, candidates and ballots of one vote."""


class Table(NamedTuple):
    """One table: its schema, and the rows that one episode adds to it."""

    schema: pl.Schema
    rows: Callable[[Any, RunRecord], Iterator[Row]]
    """Of an episode's record and the run's head; each row in the order of the schema."""

    def frame(self, episodes: Iterable[EpisodeLine], run: RunRecord) -> pl.DataFrame:
        """The table over episodes, in their order; an empty table keeps its columns.

        Behind `condition` a run that compares panels has `panel`, null for the single tutor.
        """
        gathered = Gathered(self, run)
        deque(gathered.passing(episodes), maxlen=0)
        return gathered.frame()


_TOGETHER: Final = 200
"""Episodes that are counted together."""


class CountedTable(NamedTuple):
    """A table whose rows are counted of many episodes together, not of one at a time."""

    schema: pl.Schema
    rows: Callable[[Sequence[Any], RunRecord], Iterable[Row]]
    """Of episodes and the run's head; each row in the order of the schema."""

    def frame(self, episodes: Iterable[EpisodeLine], run: RunRecord) -> pl.DataFrame:
        """The table over episodes, in their order; an empty table keeps its columns."""
        passing = iter(episodes)
        pieces = iter(lambda: tuple(islice(passing, _TOGETHER)), ())
        rows = [row for piece in pieces for row in self.rows(piece, run)]
        return pl.DataFrame(rows, schema=self.schema, orient="row")


def table_of(
    columns: Mapping[str, pl.DataType], rows: Callable[[Any], Iterator[Mapping[str, Any]]]
) -> Table:
    """A table whose rows begin with the episode's place; a cell that a row leaves out is null."""

    def placed(episode: EpisodeLine, run: RunRecord) -> Iterator[Row]:
        place = place_of(episode, run)
        for row in rows(episode):
            yield (*place, *map(row.get, columns))

    return Table(pl.Schema({**PLACE, **columns}), placed)


class Gathered:
    """The rows of a table, taken of episodes that pass on their way to whoever asks for them.

    Args:
        table: The table.
        run: The run's head.
    """

    def __init__(self, table: Table, run: RunRecord) -> None:
        self._table, self._run = table, run
        self._rows: list[Row] = []
        self._panel_of: dict[str, str | None] = {}

    def passing(self, episodes: Iterable[E]) -> Iterator[E]:
        """The episodes as they are; the rows of those that have passed are gathered."""
        for episode in episodes:
            self._rows += self._table.rows(episode, self._run)
            if self._run.panels and isinstance(episode, EpisodeRecord):
                self._panel_of[episode.episode_id] = episode.panel
            yield episode

    def frame(self) -> pl.DataFrame:
        """The table over the episodes that have passed."""
        schema = self._table.schema
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(schema)
        cells = zip(schema.items(), columns, strict=True)
        found = pl.DataFrame([pl.Series(name, column, kind) for (name, kind), column in cells])
        return _with_panels(found, self._panel_of) if self._run.panels else found


def _with_panels(frame: pl.DataFrame, panel_of: Mapping[str, str | None]) -> pl.DataFrame:
    panel = frame.get_column("episode_id").replace_strict(panel_of, return_dtype=pl.String)
    return frame.insert_column(frame.get_column_index("condition") + 1, panel.alias("panel"))


def run_id(run: RunRecord) -> str:
    """The name of a run in every table: its study and its recording, never a folder."""
    return f"{run.study.name}-{run.recording_digest[:12]}"


def no_ballots() -> pl.DataFrame:
    """A ballots table without rows."""
    return pl.DataFrame(schema=BALLOTS_SCHEMA)


def ballots_table(episodes: Iterable[EpisodeLine], *, run: RunRecord) -> pl.DataFrame:
    """Every ballot of every complete episode, long: see `BALLOTS_SCHEMA`."""
    return TABLES["ballots"].frame(episodes, run)


def place_of(episode: EpisodeLine, run: RunRecord) -> Row:
    """The first cells of every row: `PLACE`."""
    e = episode
    return (run_id(run), e.episode_id, e.benchmark, e.task_id, e.variant, e.condition)


def _turns(episode: EpisodeRecord) -> tuple[Turn, ...]:
    return episode.turns if episode.status == "complete" else ()


def _ballot_rows(episode: EpisodeLine, run: RunRecord) -> Iterator[Row]:
    return _rows_of(episode, run, _rounds)


def _diagnostic_rows(episode: EpisodeLine, run: RunRecord) -> Iterator[Row]:
    return _rows_of(episode, run, _further_rounds)


def _rows_of(
    episode: EpisodeLine, run: RunRecord, rounds: Callable[[VotingTurn], Iterator[Round]]
) -> Iterator[Row]:
    place, order = place_of(episode, run), _order(run)
    for turn in episode.turns if episode.status == "complete" else ():
        for stage, candidates, ballots in rounds(turn):
            standing = sorted(candidates, key=partial(_place_in, order))
            for ballot in ballots:
                for cells in _candidate_cells(ballot, standing):
                    yield (*place, turn.turn, stage, *cells)


def _order(run: RunRecord) -> tuple[str, ...]:
    """The order that decides among the tied; empty for a run without votes."""
    if isinstance(run.study, StudySettings):
        return deciding_order(run.study)
    return run.voting.fallback_order if run.voting is not None else ()


def _rounds(turn: VotingTurn) -> Iterator[Round]:
    if turn.decision is not None:
        yield "vote_initial", turn.decision.tallies, turn.ballots_initial
        yield "vote_final", turn.decision.tallies, turn.ballots_final
    elif turn.ballots_final:  # of another program's log, which names no winner
        yield "vote_final", _on_ballots(turn.ballots_final), turn.ballots_final
    if turn.tie_round is not None:
        yield "tie_vote", turn.tie_round.candidates, turn.tie_round.ballots


def _further_rounds(turn: VotingTurn) -> Iterator[Round]:
    for form, ballots in turn.ballots_as.items():
        yield f"vote_as_{form}", _candidates(turn, ballots), ballots
    for stage, ballots in turn.other_votes.items():
        yield stage, _on_ballots(ballots), ballots


def _candidates(turn: VotingTurn, ballots: Iterable[BallotRecord]) -> Iterable[str]:
    """Those that the turn's vote counted; where it held none, those on the ballots."""
    return turn.decision.tallies if turn.decision is not None else _on_ballots(ballots)


def _on_ballots(ballots: Iterable[BallotRecord]) -> Iterable[str]:
    """Everybody whom a voter was shown or gave mass to, in order of first appearance."""
    named = (name for ballot in ballots for name in (*ballot.labels.values(), *ballot.mass))
    return dict.fromkeys(named)


def _place_in(order: Sequence[str], role: str) -> int:
    return order.index(role) if role in order else len(order)


def _candidate_cells(ballot: BallotRecord, standing: Sequence[str]) -> Iterator[Row]:
    """voter … attempts, one tuple per candidate, in the fallback order.

    So the order survives an export: candidates first appear in it.
    """
    shown = {role: (label, i) for i, (label, role) in enumerate(ballot.labels.items(), start=1)}
    voter, mass, choice = ballot.voter, ballot.mass, ballot.parsed
    status, protocol, attempts = ballot.ballot_status, _counted(ballot), ballot.attempts
    for role in standing:
        label, position = shown.get(role, (None, None))
        left_out = None if protocol == "ranked" else 0
        own = mass.get(role, left_out) if mass else None
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
        *place_of(e, run),
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
    place = place_of(episode, run)
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
    place = place_of(episode, run)
    for turn in _turns(episode):
        for version, proposals in (
            ("initial", turn.proposals_initial),
            ("final", turn.proposals_final),
        ):
            for role, p in proposals.items():
                won = turn.decision is None or turn.decision.winner == role
                told = (p.text, p.rationale, p.confidence, p.status, won and version == "final")
                yield (*place, turn.turn, version, role, *told)


def _call_rows(episode: EpisodeLine, run: RunRecord) -> Iterator[Row]:
    place = place_of(episode, run)
    for i, c in enumerate(episode.calls, start=1):
        tokens = (c.input_tokens, c.output_tokens)
        yield (*place, i, c.key, c.stage, c.model, c.stop_reason, *tokens)


SHARED_TABLES: Final[dict[str, Table]] = {
    "ballots": Table(BALLOTS_SCHEMA, _ballot_rows),
    "diagnostic_ballots": Table(BALLOTS_SCHEMA, _diagnostic_rows),
    "calls": Table(CALLS_SCHEMA, _call_rows),
}
"""Tables that every system's run has."""

TABLES: Final[dict[str, Table]] = {
    "episodes": Table(EPISODES_SCHEMA, _episode_rows),
    "turns": Table(TURNS_SCHEMA, _turn_rows),
    "ballots": SHARED_TABLES["ballots"],
    "diagnostic_ballots": SHARED_TABLES["diagnostic_ballots"],
    "proposals": Table(PROPOSALS_SCHEMA, _proposal_rows),
    "calls": SHARED_TABLES["calls"],
}
"""Every table of a panel's run log by name.

`diagnostic_ballots` has those in further formats on the final proposals, stage `vote_as_…`; they
decided nothing, so that no reader counts them by mistake. A branch under another rule keeps the
ballots of the logged vote there.
"""


# --- Run panels ----------------------------------------------------------------------------------


def panels_of(run: RunRecord | None) -> Mapping[str, PanelMakeup]:
    """The panels that a run compares, by name; empty where it has one panel or is no run."""
    return {} if run is None else run.panels


def sizes_of(run: RunRecord) -> tuple[int, ...]:
    """How many tutors a panel of a run has; every size where it compares panels."""
    sizes = {len(made.roles) for made in run.panels.values()} or {len(run.panel.roles)}
    return tuple(sorted(sizes))


def makeup_words(makeup: PanelMakeup) -> str:
    """Who sits on a panel, in its order, for a table."""
    if makeup.placebo == "copied":
        return f"{makeup.copied}, {len(makeup.roles)} times"
    drawn = " (drawn by lot)" if makeup.placebo == "random" else ""
    return " › ".join(makeup.fallback_order) + drawn


def taught_by(episode: EpisodeRecord, run: RunRecord) -> str:
    """Which panel taught in an episode, behind its condition; empty where the run has one."""
    if episode.panel is None:
        return ""
    return f", panel {episode.panel} ({makeup_words(run.panels[episode.panel])})"


def of_one_panel(run: RunRecord, name: str) -> RunRecord:
    """The head of a run as if its study had one of its panels alone."""
    study, makeup = run.study, run.panels[name]
    assert isinstance(study, StudySettings)
    branch = study.branch
    if branch is not None and branch.fallback_order is not None:
        seated = {*makeup.roles, *(branch.roles or ())}
        order = tuple(role for role in branch.fallback_order if role in seated)
        branch = branch.model_copy(update={"fallback_order": order})
    changed: dict[str, object] = {
        "roles": makeup.roles,
        "fallback_order": makeup.fallback_order,
        "panels": {},
        "branch": branch,
    }
    return run.model_copy(update={"study": study.model_copy(update=changed)})
