"""The noise floor of a run's votes, as tables and in words."""

from typing import Final

from tutorsim.analysis.metrics.retest.noise_floor import BesideFloor, NoiseFloor
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable
from tutorsim.analysis.views.cells import Table, estimate, plain, table

__all__ = ["askings_table", "beside_floor_table", "noise_told"]

_QUANTITIES: Final = {
    "flip": "flip",
    "flip_set": "flip outside the leaders",
    "leader": "leader changed, no tie round",
    "shift": "vote shift",
}
_VOTES: Final = {"vote_initial": "first", "vote_final": "final"}


def noise_told(found: NoiseFloor | NotEstimable) -> str:
    """What is known of the floor, for the caption of what it stands beside."""
    if isinstance(found, NotEstimable):
        return (
            "How much of it re-asking alone would give, the noise floor, is unknown: each vote "
            "was asked for once."
        )
    return "How much of it re-asking alone gives stands in a table of its own."


def beside_floor_table(found: NoiseFloor | NotEstimable) -> Table | None:
    """Each quantity as logged, re-asked, and what is left; `None` without a retest."""
    if isinstance(found, NotEstimable):
        return None
    return table(
        "noise",
        "Beside the noise floor",
        "Re-asked: two panels that answer one and the same prompt, each voter with two different "
        "askings of its own, ties to the fallback order. Left: logged less re-asked, turn by "
        "turn. A flip as logged may come from a tie round, which nobody was asked again; “no tie "
        "round” compares the leaders of both votes. 95 % intervals in brackets: over "
        f"tasks. {_how(found)}",
        ["protocol", "what", "turns asked again", "logged", "re-asked", "left"],
        [
            (
                *(row.form, _QUANTITIES[row.quantity], row.turns),
                *map(estimate, (row.logged, row.floor)),
                estimate(row.left, signed=True),
            )
            for row in found.beside
        ],
    )


def _how(found: NoiseFloor) -> str:
    turns = "" if found.sample is None else f", in {found.sample} turns drawn for it"
    said = f"Asked again {found.repeats} × by {found.answered_by}{turns}."
    finals = dict.fromkeys(row.form for row in found.beside if row.stage == "vote_final")
    if finals:
        said += (
            f" Of {', '.join(finals)} the first vote was not asked again: the floor is that of the "
            "final vote."
        )
    if found.failed:
        said += f" {found.failed} calls failed; panels that lack an answer are left out."
    return said + _drawn(found.beside)


def _drawn(rows: list[BesideFloor]) -> str:
    drawn = max(row.sampled for row in rows)
    return f" Panels of {drawn} turns were drawn by a seed, all others enumerated." * bool(drawn)


def askings_table(found: NoiseFloor | NotEstimable) -> Table | None:
    """Agreement of single ballots and stability of winners; `None` without a retest."""
    if isinstance(found, NotEstimable):
        return None
    return table(
        "askings",
        "One prompt, asked several times",
        "Pairs: two askings of one voter's prompt, logged or re-asked; same: share of them with "
        "one ballot, or with the same candidates first; by chance: two ballots of one voter in "
        "different turns. Pairs with one abstention + with two are in no share. Panels: one "
        "answer of each voter, logged or re-asked; how often their leader is that of the logged "
        "ballots, and how often two of them agree. A tie goes to the fallback order.",
        [
            *("protocol", "vote", "pairs", "same ballot", "same first", "same by chance"),
            *("pairs with abstentions", "panels with the logged leader", "two panels agree"),
        ],
        [
            (
                *(own.form, _VOTES.get(own.stage, own.stage), own.pairs),
                *(estimate(own.same), estimate(own.same_top), plain(own.chance)),
                f"{own.one_abstained} + {own.both_abstained}",
                *(estimate(panels.elects_logged), estimate(panels.agree)),
            )
            for own, panels in zip(found.ballots, found.winners, strict=True)
        ],
        secondary=("same by chance", "pairs with abstentions"),
    )
