"""Where another winner would have left the logged path, and what that leaves known.

A different winner means a different next message of the student, so an episode's log says
nothing of what follows its first divergent turn. An episode without one is *covered*: its
logged outcome is the alternative's outcome too. For the others an outcome between 0 and 1 may
be anything, which gives worst-case bounds for all.

An alternative may leave several winners open. Then an episode may diverge or not: it is
`possible`, and counts as not covered in every bound.

The single tutor has no votes, so its episodes are not counted. The logged dialogue is held
fixed up to the first divergent turn, and nothing is assumed after it.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from math import fsum
from typing import Final, Literal

import polars as pl

from analysis.continuations import shared_turns
from analysis.metrics.outcomes import outcome_of
from analysis.metrics.turns import DecidedTurn, decided_turns
from analysis.sources import Source
from analysis.statistics import Bounds, NotEstimable, to_json
from tutorsim.records import EpisodeRecord
from tutorsim.voting import first_in_order

__all__ = [
    "DIVERGENCE_SCHEMA",
    "Alternatives",
    "Coverage",
    "Divergence",
    "alternatives_of",
    "diverge",
    "under_order",
    "with_random_ties",
    "without_tie_round",
]

Turn = tuple[str, int]
"""Episode and turn."""

Alternatives = Mapping[Turn, Set[str]]
"""Turn → its possible winners under the alternative; a turn that is not in it is not settled."""

_COVERED: Final = ("success", "final_score", "final_code")

DIVERGENCE_SCHEMA: Final = pl.Schema(
    {
        "episode_id": pl.String(),
        "benchmark": pl.String(),
        "condition": pl.String(),  # protocol, for ballots from elsewhere
        "turns": pl.Int64(),  # logged voting turns
        "path": pl.String(),  # covered, possible or divergent
        "first_possible": pl.Int64(),  # first turn whose winner may differ; null where covered
        "first_certain": pl.Int64(),  # first turn whose winner differs; null unless divergent
        "logged_winner": pl.String(),  # of the first turn that may differ
        "alternatives": pl.List(pl.String()),  # its possible winners, null where not settled
    }
)
"""One row per episode with a panel."""


@dataclass(frozen=True)
class Coverage:
    """One benchmark and condition: how far the log speaks for the alternative."""

    benchmark: str | None
    condition: str | None
    episodes: int
    covered: int
    """No turn can have another winner."""
    divergent: int
    """Some turn has another winner for certain."""
    coverage: Bounds
    """Share of episodes without a divergent turn: lowest if all `possible` ones diverge."""
    on_covered: Mapping[str, float | NotEstimable]
    """Outcome → its mean over covered episodes, which are a selected part of all."""
    bounds: Mapping[str, Bounds | NotEstimable]
    """Outcome → worst-case bounds of its mean over all episodes."""
    logged: Mapping[str, float | NotEstimable]
    """Outcome → its mean as logged, over all episodes."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Divergence:
    """What an alternative would have done to a source's episodes."""

    question: str
    """What was asked, for captions."""
    episodes: pl.DataFrame
    """`DIVERGENCE_SCHEMA`."""
    coverage: tuple[Coverage, ...]
    caption: str

    def to_json(self) -> dict[str, object]:
        return {
            "question": self.question,
            "caption": self.caption,
            "coverage": to_json(self.coverage),
            "episodes": self.episodes.to_dicts(),
        }


def diverge(source: Source, alternatives: Alternatives, *, question: str) -> Divergence:
    """First divergent turns, coverage and outcome bounds under an alternative.

    Args:
        source: A run, or ballots from elsewhere (without outcomes then).
        alternatives: The possible winners of each turn.
        question: Names the alternative, for example `fallback order motivation first`.
    """
    paths = _paths(source)
    records = {e.episode_id: e for e in source.episodes if _has_panel(e)}
    names = list(records) + [name for name in paths if name not in records]
    rows = [_row(name, paths.get(name, []), records.get(name), alternatives) for name in names]
    frame = pl.DataFrame(rows, schema=DIVERGENCE_SCHEMA, orient="row")
    return Divergence(question, frame, _coverage(frame, records), _caption(source, question, frame))


def under_order(source: Source, order: Sequence[str]) -> Alternatives:
    """Winners under another role-priority order; exact.

    Candidates that the order leaves out stand behind it, in the source's own order.
    """
    found: dict[Turn, Set[str]] = {}
    for turn in decided_turns(source):
        whole = (*order, *(c for c in turn.order if c not in order))
        found[_name(turn)] = frozenset({first_in_order(turn.decision.undecided, whole)})
    return found


def without_tie_round(source: Source) -> Alternatives:
    """Winners if a tied final vote had gone straight to the role-priority order; exact."""
    return {
        _name(turn): frozenset(
            {first_in_order(turn.decision.tied_in_vote or (turn.decision.winner,), turn.order)}
        )
        for turn in decided_turns(source)
    }


def with_random_ties(source: Source) -> Alternatives:
    """Winners that a random pick could give where the role-priority order decided."""
    return {_name(turn): frozenset(turn.decision.undecided) for turn in decided_turns(source)}


def alternatives_of(turns: pl.DataFrame) -> Alternatives:
    """Possible winners from a recount's per-turn table.

    Args:
        turns: Rows of one question, with `episode_id`, `turn`, `possible_winners` (a list) and
            `settled`; turns that are not settled are left out.
    """
    settled = turns.filter("settled").select("episode_id", "turn", "possible_winners")
    return {(episode, turn): frozenset(won) for episode, turn, won in settled.iter_rows()}


def _paths(source: Source) -> dict[str, list[DecidedTurn]]:
    """The voting turns of each episode, those that a continuation shares with another too."""
    turns = decided_turns(source)
    paths: dict[str, list[DecidedTurn]] = {}
    for turn in turns:
        paths.setdefault(turn.key.episode_id, []).append(turn)
    by_name = {_name(turn): turn for turn in turns}
    for (episode_id, number), holder in shared_turns(source.episodes).items():
        if (holder, number) in by_name:
            paths.setdefault(episode_id, []).append(by_name[holder, number])
    return paths


def _name(turn: DecidedTurn) -> Turn:
    return turn.key.episode_id, turn.key.turn


def _has_panel(episode: EpisodeRecord) -> bool:
    return episode.status == "complete" and episode.condition != "baseline"


def _row(
    name: str,
    turns: Sequence[DecidedTurn],
    record: EpisodeRecord | None,
    alternatives: Alternatives,
) -> tuple[object, ...]:
    ordered = sorted(turns, key=lambda turn: turn.key.turn)
    open_ = [t for t in ordered if alternatives.get(_name(t)) != {t.decision.winner}]
    certain = [
        t for t in open_ if t.decision.winner not in alternatives.get(_name(t), {t.decision.winner})
    ]
    first = open_[0] if open_ else None
    won = alternatives.get(_name(first)) if first else None
    return (
        name,
        record.benchmark if record else ordered[0].place.benchmark,
        record.condition if record else ordered[0].place.condition or ordered[0].key.protocol,
        len(ordered),
        _path(bool(open_), bool(certain)),
        first.key.turn if first else None,
        certain[0].key.turn if certain else None,
        first.decision.winner if first else None,
        sorted(won) if won is not None else None,
    )


def _path(may: bool, must: bool) -> Literal["covered", "possible", "divergent"]:
    if must:
        return "divergent"
    return "possible" if may else "covered"


def _coverage(frame: pl.DataFrame, records: Mapping[str, EpisodeRecord]) -> tuple[Coverage, ...]:
    cells = frame.group_by("benchmark", "condition", maintain_order=True)
    return tuple(_cell(key, rows, records) for key, rows in cells)


def _cell(
    key: tuple[object, ...], rows: pl.DataFrame, records: Mapping[str, EpisodeRecord]
) -> Coverage:
    paths = rows["path"].to_list()
    n, covered, divergent = len(paths), paths.count("covered"), paths.count("divergent")
    known = [
        (records.get(e), p == "covered") for e, p in zip(rows["episode_id"], paths, strict=True)
    ]
    values = {
        name: [(None if e is None else outcome_of(e, name), kept) for e, kept in known]
        for name in _COVERED
    }
    return Coverage(
        benchmark=None if key[0] is None else str(key[0]),
        condition=None if key[1] is None else str(key[1]),
        episodes=n,
        covered=covered,
        divergent=divergent,
        coverage=Bounds(covered / n, (n - divergent) / n, n),
        on_covered={name: _mean([v for v, kept in vs if kept]) for name, vs in values.items()},
        bounds={name: _worst_case(vs) for name, vs in values.items()},
        logged={name: _mean([v for v, _ in vs]) for name, vs in values.items()},
    )


def _mean(values: Sequence[float | None]) -> float | NotEstimable:
    scored = [value for value in values if value is not None]
    if not scored:
        return NotEstimable("no episode with a logged outcome")
    return fsum(scored) / len(scored)


def _worst_case(values: Sequence[tuple[float | None, bool]]) -> Bounds | NotEstimable:
    """Bounds where every outcome that is not known may be 0 or 1, unscored ones among them."""
    if all(value is None for value, _ in values):
        return NotEstimable("no episode with a logged outcome")
    known = [value for value, kept in values if kept and value is not None]
    n = len(values)
    return Bounds(fsum(known) / n, (fsum(known) + n - len(known)) / n, n)


def _caption(source: Source, question: str, frame: pl.DataFrame) -> str:
    n = frame.height
    return (
        f"{question}: {n} episodes with a panel, {frame['turns'].sum()} voting turns; "
        f"{source.provenance}. The logged dialogue is held fixed up to the first divergent turn; "
        "outcomes after it are not identified, and the bounds let each be 0 or 1."
        + (" Each draw of a branch counts as an episode." if _has_draws(source) else "")
    )


def _has_draws(source: Source) -> bool:
    return any(e.branch is not None for e in source.episodes)
