"""The noise floor of a run's votes, for readers."""

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from analysis.metrics import BallotAgreement, BesideFloor, NoiseFloor, WinnerStability
from analysis.statistics import NotEstimable
from tutorsim.cli.figures import estimate, plain_figure
from tutorsim.cli.render import Cell, caption, heading, number, percent, table

__all__ = ["noise_shown"]

Shown = Iterator[RenderableType]

QUANTITIES: Final = {
    "flip": "flip %",
    "flip_set": "flip %, set",
    "leader": "leader %",
    "shift": "shift",
}
VOTES: Final = {"vote_initial": "first", "vote_final": "final"}


def noise_shown(found: NoiseFloor | NotEstimable) -> Shown:
    """What was logged beside what re-asking alone changes; without a retest, that it is unknown."""
    if isinstance(found, NotEstimable):
        yield caption(f"Noise floor of the votes: unknown. {found.reason}.")
        return
    yield Text()
    yield heading("Beside the noise floor", "turns whose votes were re-asked")
    yield table(
        ("protocol", "what", "turns", "logged", "re-asked", "left"),
        [_beside(row) for row in found.beside],
        left=2,
    )
    yield caption(_beside_told(found))
    yield Text()
    yield heading("The same prompt asked again", "pairs of askings, logged or re-asked")
    yield table(
        ("protocol", "vote", "pairs", "same %", "same top %", "chance %", "abstained"),
        [_agreement(row) for row in found.ballots],
        left=2,
    )
    yield caption(
        "Same: the same ballot; same top: the same candidates first; chance: two ballots "
        "of one voter in different turns are the same. Abstained: pairs with one abstention + with "
        "two, which are in no share."
    )
    yield Text()
    yield heading("Panels put together anew", "from logged and re-asked answers")
    yield table(
        ("protocol", "vote", "turns", "logged leader %", "two agree %"),
        [_stability(row) for row in found.winners],
        left=2,
    )
    yield caption(
        "How often a panel elects the leader of the logged ballots, and two panels the same. The "
        "logged answers are among those drawn from. A tie goes to the role-priority order."
    )


def _beside(row: BesideFloor) -> tuple[Cell, ...]:
    unit = number if row.quantity == "shift" else percent
    return (
        row.form,
        QUANTITIES[row.quantity],
        str(row.turns),
        *(estimate(found, unit=unit) for found in (row.logged, row.floor, row.left)),
    )


def _beside_told(found: NoiseFloor) -> str:
    said = (
        "Re-asked: two panels that answer one prompt, each voter with two different askings, and "
        "no tie round. Left: logged less re-asked. Leader: of the first and of the final vote, "
        "so without tie rounds. “a to b”: 95 % intervals that resample tasks. "
        f"Asked again {found.repeats} × by {found.answered_by}"
    )
    said += "." if found.sample is None else f", in {found.sample} turns drawn for it."
    finals = dict.fromkeys(row.form for row in found.beside if row.stage == "vote_final")
    if finals:
        said += f" The first vote was not asked again ({', '.join(finals)}): of the final one."
    if found.failed:
        said += f" {found.failed} calls failed; panels that lack an answer are left out."
    drawn = max(row.sampled for row in found.beside)
    return f"{said} Panels of {drawn} turns were drawn, not enumerated." if drawn else said


def _agreement(row: BallotAgreement) -> tuple[Cell, ...]:
    return (
        row.form,
        VOTES.get(row.stage, row.stage),
        str(row.pairs),
        estimate(row.same, unit=percent),
        estimate(row.same_top, unit=percent),
        plain_figure(row.chance, unit=percent),
        f"{row.one_abstained}+{row.both_abstained}",
    )


def _stability(row: WinnerStability) -> tuple[Cell, ...]:
    return (
        row.form,
        VOTES.get(row.stage, row.stage),
        str(row.turns),
        estimate(row.elects_logged, unit=percent),
        estimate(row.agree, unit=percent),
    )
