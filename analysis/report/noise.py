"""The noise floor in the report: one chart, and the tables behind it."""

import polars as pl

from analysis.charts import Figure
from analysis.charts.noise import noise_figure
from analysis.metrics import BesideFloor, NoiseFloor
from analysis.report.cells import estimate, plain, table
from analysis.report.document import Table
from analysis.report.evidence import Evidence
from analysis.statistics import Estimate, NotEstimable

__all__ = ["askings_table", "beside_floor_table", "noise_chart", "noise_told"]

_SCHEMA = pl.Schema(
    {
        "protocol": pl.String(),
        "quantity": pl.String(),
        "source": pl.String(),
        "turns": pl.Int64(),
        "value": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
    }
)
_QUANTITIES = {
    "flip": "flip",
    "flip_set": "flip outside the leaders",
    "leader": "leader changed, no tie round",
    "shift": "vote shift",
}
_VOTES = {"vote_initial": "first", "vote_final": "final"}


def noise_told(evidence: Evidence) -> str:
    """What is known of the floor, for the caption of what it stands beside."""
    if isinstance(evidence.noise, NotEstimable):
        return (
            "How much of it re-asking alone would give, the noise floor, is unknown: each vote "
            "was asked for once."
        )
    return "How much of it re-asking alone gives stands in a table of its own."


def noise_chart(evidence: Evidence) -> Figure:
    """Flip and shift as logged beside the re-asked ones."""
    found = evidence.noise
    if isinstance(found, NotEstimable):
        return noise_figure(pl.DataFrame(), without="each vote was asked for once")
    rows = [
        (row.form, row.quantity, source, row.turns, figure.value, figure.low, figure.high)
        for row in found.beside
        if row.quantity != "flip_set"
        for source, figure in (("logged", row.logged), ("re-asked", row.floor))
        if isinstance(figure, Estimate)
    ]
    return noise_figure(pl.DataFrame(rows, schema=_SCHEMA, orient="row"))


def beside_floor_table(evidence: Evidence) -> Table | None:
    """Each quantity as logged, re-asked, and what is left; `None` without a retest."""
    found = evidence.noise
    if isinstance(found, NotEstimable):
        return None
    rows = [
        (
            row.form,
            _QUANTITIES[row.quantity],
            row.turns,
            *(estimate(figure) for figure in (row.logged, row.floor)),
            estimate(row.left, signed=True),
        )
        for row in found.beside
    ]
    return table(
        "noise",
        "Beside the noise floor",
        "Re-asked: two panels that answer one and the same prompt, each voter with two different "
        "askings of its own, ties to the role-priority order. Left: logged less re-asked, turn by "
        "turn. A flip as logged may come from a tie round, which nobody was asked again; “no tie "
        "round” compares the leaders of both votes. 95 % intervals in brackets: bootstrap over "
        f"tasks. {_how(found)}",
        ["protocol", "what", "turns asked again", "logged", "re-asked", "left"],
        rows,
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


def askings_table(evidence: Evidence) -> Table | None:
    """Agreement of single ballots and stability of winners; `None` without a retest."""
    found = evidence.noise
    if isinstance(found, NotEstimable):
        return None
    rows = [
        (
            own.form,
            _VOTES.get(own.stage, own.stage),
            own.pairs,
            estimate(own.same),
            estimate(own.same_top),
            plain(own.chance),
            f"{own.one_abstained} + {own.both_abstained}",
            estimate(panels.elects_logged),
            estimate(panels.agree),
        )
        for own, panels in zip(found.ballots, found.winners, strict=True)
    ]
    return table(
        "askings",
        "One prompt, asked several times",
        "Pairs: two askings of one voter's prompt, logged or re-asked; same: share of them with "
        "one ballot, or with the same candidates first; by chance: two ballots of one voter in "
        "different turns. Pairs with one abstention + with two are in no share. Panels: one "
        "answer of each voter, logged or re-asked; how often their leader is that of the logged "
        "ballots, and how often two of them agree. A tie goes to the role-priority order.",
        [
            "protocol",
            "vote",
            "pairs",
            "same ballot",
            "same first",
            "same by chance",
            "pairs with abstentions",
            "panels with the logged leader",
            "two panels agree",
        ],
        rows,
    )
