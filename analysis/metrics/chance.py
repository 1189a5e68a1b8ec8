"""How much flip and shift chance alone would give, and agreement beyond it.

Chance: the final votes of a protocol's turns are permuted among those turns, so initial and
final votes are drawn independently, each from what was cast. The expectation over all
permutations is the mean over all pairs of one turn's first vote and another's (or its own)
final vote, and is computed exactly. Only turns with the same candidates are permuted.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from analysis.metrics.diagnostics import vote_shift
from analysis.metrics.turns import DecidedTurn, by_protocol, decided_turns
from analysis.profiles import TurnBallots
from analysis.sources import Source
from analysis.statistics import NotEstimable, to_json
from tutorsim.types import BallotFormat
from tutorsim.voting import tally

__all__ = ["ChanceBaseline", "chance_baselines"]

Shares = Counter[tuple[Fraction, ...]]
"""Vote shares by candidate → how many votes had them."""


@dataclass(frozen=True)
class ChanceBaseline:
    """One protocol: what was observed, and what independent votes would give."""

    protocol: BallotFormat
    turns: int
    """Turns with a first vote."""
    flip: float | NotEstimable
    """Observed share; a tied first vote is led by the role-priority order's pick."""
    flip_expected: float | NotEstimable
    flip_set: float | NotEstimable
    """Observed share of winners outside the set of first leaders."""
    flip_set_expected: float | NotEstimable
    shift: float | NotEstimable
    """Observed mean, over turns where it is defined."""
    shift_expected: float | NotEstimable
    kappa: float | NotEstimable
    """Cohen's κ between first leader and winner: 1 - flip / expected flip."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


def chance_baselines(source: Source) -> list[ChanceBaseline]:
    """The chance baseline of each protocol that has voting turns."""
    return [_of(protocol, turns) for protocol, turns in by_protocol(decided_turns(source)).items()]


def _of(protocol: BallotFormat, turns: Sequence[DecidedTurn]) -> ChanceBaseline:
    voted = [t for t in turns if t.initial is not None]
    if len(voted) < 2:
        few = NotEstimable(f"{len(voted)} turns with a first vote; permuting takes two")
        return ChanceBaseline(protocol, len(voted), few, few, few, few, few, few, few)
    groups = _same_candidates(voted)
    flip = _mean([(t.decision.winner != t.initial_leader) for t in voted])
    expected = _weighted([(_expected_flip(g), len(g)) for g in groups])
    outside = _mean([t.decision.winner not in (t.initial_leaders or ()) for t in voted])
    kappa: float | NotEstimable = NotEstimable("every first leader and every winner is the same")
    if expected:
        kappa = float(1 - flip / expected)
    return ChanceBaseline(
        protocol=protocol,
        turns=len(voted),
        flip=float(flip),
        flip_expected=float(expected),
        flip_set=float(outside),
        flip_set_expected=float(_weighted([(_expected_outside(g), len(g)) for g in groups])),
        shift=_observed_shift(voted),
        shift_expected=_expected_shift(groups),
        kappa=kappa,
    )


def _same_candidates(turns: Sequence[DecidedTurn]) -> list[list[DecidedTurn]]:
    groups: dict[tuple[str, ...], list[DecidedTurn]] = {}
    for turn in turns:
        groups.setdefault(turn.final.candidates, []).append(turn)
    return list(groups.values())


def _mean(values: Sequence[bool]) -> Fraction:
    return Fraction(sum(values), len(values))


def _weighted(means: Sequence[tuple[Fraction, int]]) -> Fraction:
    return sum((mean * n for mean, n in means), Fraction(0)) / sum(n for _, n in means)


def _expected_flip(turns: Sequence[DecidedTurn]) -> Fraction:
    led = Counter(t.initial_leader for t in turns)
    won = Counter(t.decision.winner for t in turns)
    return 1 - Fraction(sum(led[c] * won[c] for c in won), len(turns) ** 2)


def _expected_outside(turns: Sequence[DecidedTurn]) -> Fraction:
    led = Counter(c for t in turns for c in t.initial_leaders or ())
    won = Counter(t.decision.winner for t in turns)
    return 1 - Fraction(sum(led[c] * won[c] for c in won), len(turns) ** 2)


def _observed_shift(turns: Sequence[DecidedTurn]) -> float | NotEstimable:
    shifts = [vote_shift(t.initial, t.final) for t in turns if t.initial is not None]
    defined = [s for s in shifts if s is not None]
    if not defined:
        return NotEstimable("no turn has mass in both votes")
    return float(sum(defined, Fraction(0)) / len(defined))


def _expected_shift(groups: Sequence[Sequence[DecidedTurn]]) -> float | NotEstimable:
    means = []
    for turns in groups:
        before = _shares([t.initial for t in turns if t.initial is not None])
        after = _shares([t.final for t in turns])
        if before and after:
            means.append((_mean_distance(before, after), len(turns)))
    if not means:
        return NotEstimable("no turn has mass in both votes")
    return sum(mean * n for mean, n in means) / sum(n for _, n in means)


def _mean_distance(before: Shares, after: Shares) -> float:
    """Mean of half the absolute differences over all pairs; equal vectors are met once."""
    later = np.array([[float(x) for x in q] for q in after])
    weights = np.array(list(after.values()))
    total = sum(
        n * float(np.abs(later - np.array([float(x) for x in p])).sum(axis=1) @ weights)
        for p, n in before.items()
    )
    return total / (2 * sum(before.values()) * sum(after.values()))


def _shares(votes: Sequence[TurnBallots]) -> Shares:
    """How often each vector of vote shares occurs; a vote without mass has none."""
    found: Shares = Counter()
    for vote in votes:
        totals = tally(vote.cast(), vote.candidates)
        mass = sum(totals.values())
        if mass:
            found[tuple(Fraction(totals[c], mass) for c in vote.candidates)] += 1
    return found
