"""Self-support and label positions, tested against the shuffles that could have been drawn.

Which label stood for which role is known for each voter and was drawn uniformly: for each
reader (`per_reader`), or once a turn for everybody (`shared`). A *unit* is what one draw
covers: a ballot, or a turn's ballots together.

* Self-support asks whether voters find their own proposal. Had they voted for labels without
  regard to what stands behind them, redrawing the labels would leave each ballot over labels
  as it is and give the voter's own proposal any label with equal chance.
* Label position asks whether labels attract votes. Had voters looked at the proposals alone,
  redrawing would leave each ballot over roles as it is and show every role under any label
  with equal chance.

The distribution of one sum over units is exact, by convolution. The joint distribution over
labels is enumerated where it is small, and otherwise drawn, with a seed.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from analysis.sources import Source
from analysis.statistics import NotEstimable, holm, to_json
from tutorsim.types import BALLOT_FORMATS, BallotFormat, Blinding

__all__ = ["LabelPosition", "SelfSupport", "label_positions", "self_support"]

DRAWS: Final = 1999
"""Shuffles drawn where there are too many to enumerate."""
_ENUMERATED: Final = 50_000
_LARGEST_PANEL: Final = 8

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SelfSupport:
    """Mass that voters gave their own proposals, in one stage under one protocol."""

    protocol: BallotFormat
    stage: str
    ballots: int
    """Ballots with mass, of voters that are candidates."""
    own: int
    """Mass for the voters' own proposals."""
    total: int
    share: float
    """`own` of `total`."""
    expected: float
    """Share that labels alone would give: 1/m."""
    p_value: float
    """Two-sided, exact."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class LabelPosition:
    """Mass by the label shown, in one stage under one protocol."""

    protocol: BallotFormat
    stage: str
    ballots: int
    mass: dict[str, int]
    """Label → mass."""
    share: dict[str, float]
    expected: float
    """Share of each label without a bias."""
    p_values: dict[str, float]
    """Label → exact two-sided p-value, Holm over the labels."""
    p_value: float
    """Of the sum of squared deviations over all labels."""
    draws: int | None
    """Shuffles drawn for `p_value`; `None` where it is enumerated."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


class _Ballot(NamedTuple):
    turn: tuple[str, int]
    voter: str
    labels: dict[str, str]
    """Label → candidate, as shown."""
    mass: dict[str, int]


def self_support(source: Source, *, stage: str = "vote_final") -> list[SelfSupport | NotEstimable]:
    """Self-support of each protocol that has ballots in a stage."""
    return [
        _self_support(protocol, stage, [b for b in ballots if b.voter in b.mass], _blinding(source))
        for protocol, ballots in _ballots(source, stage).items()
    ]


def label_positions(
    source: Source, *, stage: str = "vote_final", seed: int = 0
) -> list[LabelPosition | NotEstimable]:
    """Mass by label of each protocol that has ballots in a stage."""
    return [
        _label_position(protocol, stage, ballots, _blinding(source), seed)
        for protocol, ballots in _ballots(source, stage).items()
    ]


def _blinding(source: Source) -> Blinding:
    return "per_reader" if source.run is None else source.run.study.blinding


def _ballots(source: Source, stage: str) -> dict[BallotFormat, list[_Ballot]]:
    """Ballots with mass by protocol; labels are empty where the voter's are not known."""
    cast = source.ballots.filter(pl.col("stage") == stage)
    found: dict[BallotFormat, list[_Ballot]] = {
        p: [] for p in BALLOT_FORMATS if p in set(cast["protocol"])
    }
    keys = ["protocol", "episode_id", "turn", "voter"]
    rows = cast.group_by(keys, maintain_order=True).agg("label", "candidate", "mass")
    for protocol, episode, turn, voter, labels, candidates, masses in rows.iter_rows():
        if None in masses or sum(masses) == 0:
            continue
        shown = {} if None in labels else dict(zip(labels, candidates, strict=True))
        mass = dict(zip(candidates, masses, strict=True))
        found[protocol].append(_Ballot((episode, turn), voter, shown, mass))
    return found


def _unusable(protocol: BallotFormat, ballots: Sequence[_Ballot], who: str) -> NotEstimable | None:
    if not ballots:
        return NotEstimable(f"{protocol}: no ballots with mass{who}")
    if not all(ballot.labels for ballot in ballots):
        return NotEstimable(f"{protocol}: the labels shown to the voters are not known")
    sizes = sorted({len(ballot.labels) for ballot in ballots})
    if len(sizes) > 1 or sizes[0] > _LARGEST_PANEL:
        return NotEstimable(f"{protocol}: panels of {', '.join(map(str, sizes))} candidates")
    return None


def _self_support(
    protocol: BallotFormat, stage: str, ballots: Sequence[_Ballot], blinding: Blinding
) -> SelfSupport | NotEstimable:
    unusable = _unusable(protocol, ballots, " by voters that are candidates")
    if unusable:
        return unusable
    own = sum(ballot.mass[ballot.voter] for ballot in ballots)
    total = sum(sum(ballot.mass.values()) for ballot in ballots)
    outcomes = [_own_masses(unit) for unit in _units(ballots, blinding)]
    return SelfSupport(
        protocol=protocol,
        stage=stage,
        ballots=len(ballots),
        own=own,
        total=total,
        share=own / total,
        expected=1 / len(ballots[0].labels),
        p_value=_two_sided(_sum_of(outcomes), own),
    )


def _units(ballots: Sequence[_Ballot], blinding: Blinding) -> list[list[_Ballot]]:
    if blinding == "per_reader":
        return [[ballot] for ballot in ballots]
    turns: dict[tuple[str, int], list[_Ballot]] = {}
    for ballot in ballots:
        turns.setdefault(ballot.turn, []).append(ballot)
    return list(turns.values())


def _own_masses(unit: Sequence[_Ballot]) -> Counter[int]:
    """Own mass of a unit's voters together, over all draws of its labels."""
    if len(unit) == 1:
        return Counter(unit[0].mass.values())
    labels = list(unit[0].labels)
    by_label = [[ballot.mass[ballot.labels[label]] for label in labels] for ballot in unit]
    roles = sorted(unit[0].mass)
    seat = [roles.index(ballot.voter) for ballot in unit]
    return Counter(
        sum(mass[drawn[role]] for mass, role in zip(by_label, seat, strict=True))
        for drawn in permutations(range(len(labels)))
    )


def _sum_of(outcomes: Iterable[Counter[int]]) -> Floats:
    """Probability of each sum of independent outcomes: their convolution, by Fourier transform."""
    alike = Counter(tuple(sorted(counts.items())) for counts in outcomes)
    size = 1 + sum(times * counts[-1][0] for counts, times in alike.items())
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    for counts, times in sorted(alike.items()):
        one = np.zeros(size)
        for value, count in counts:
            one[value] = count
        spectrum *= np.fft.rfft(one / one.sum()) ** times
    return np.asarray(np.clip(np.fft.irfft(spectrum, size), 0, None), dtype=np.float64)


def _two_sided(distribution: Floats, observed: int) -> float:
    """Probability of a sum at least as far from the mean as the observed one.

    Given to twelve decimals, which the transform keeps, and never as zero.
    """
    sums = np.arange(len(distribution))
    mean = float((sums * distribution).sum())
    far = np.abs(sums - mean) >= abs(observed - mean) - 1e-9
    return max(round(min(1.0, float(distribution[far].sum())), 12), 1e-12)


def _label_position(
    protocol: BallotFormat, stage: str, ballots: Sequence[_Ballot], blinding: Blinding, seed: int
) -> LabelPosition | NotEstimable:
    unusable = _unusable(protocol, ballots, "")
    if unusable:
        return unusable
    labels = sorted(ballots[0].labels)
    units = [
        [sum(b.mass[b.labels[label]] for b in unit) for label in labels]
        for unit in _units(ballots, blinding)
    ]
    mass = [sum(column) for column in zip(*units, strict=True)]
    total, m = sum(mass), len(labels)
    distribution = _sum_of(Counter(unit) for unit in units)
    single = {label: _two_sided(distribution, own) for label, own in zip(labels, mass, strict=True)}
    p_value, draws = _joint_test(units, seed)
    return LabelPosition(
        protocol=protocol,
        stage=stage,
        ballots=len(ballots),
        mass=dict(zip(labels, mass, strict=True)),
        share={label: own / total for label, own in zip(labels, mass, strict=True)},
        expected=1 / m,
        p_values=holm(single),
        p_value=p_value,
        draws=draws,
    )


def _joint_test(units: Sequence[Sequence[int]], seed: int) -> tuple[float, int | None]:
    """p-value of the squared deviations over labels, and the draws (`None`: enumerated)."""
    array = np.array(units, dtype=np.int64)
    n, m = array.shape
    observed = _deviation(array.sum(axis=0, keepdims=True))[0]
    if factorial(m) ** min(n, 20) <= _ENUMERATED:
        reached = [_deviation(np.array([sums]))[0] >= observed for sums in _all_sums(array)]
        return sum(reached) / len(reached), None
    rng = np.random.default_rng(seed)
    sums = np.zeros((DRAWS, m), dtype=np.int64)
    for unit, times in sorted(Counter(tuple(sorted(unit)) for unit in units).items()):
        for _ in range(times):
            sums += rng.permuted(np.tile(np.array(unit), (DRAWS, 1)), axis=1)
    reached_draws = int((_deviation(sums) >= observed).sum())
    return (reached_draws + 1) / (DRAWS + 1), DRAWS


def _all_sums(array: npt.NDArray[np.int64]) -> Iterable[Any]:
    every = [list(permutations(unit)) for unit in array.tolist()]
    for shuffled in product(*every):
        yield np.sum(shuffled, axis=0)


def _deviation(sums: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Sum of squared deviations from equal sums, times the number of labels squared: whole."""
    off = sums.shape[1] * sums - sums.sum(axis=1, keepdims=True)
    return np.asarray((off**2).sum(axis=1), dtype=np.int64)
