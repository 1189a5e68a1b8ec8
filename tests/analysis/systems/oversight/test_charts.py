"""Charts say what their rows say, and are valid Vega-Lite; what cannot be drawn is left out."""

import altair as alt
import pytest

from tutorsim.analysis.charts.figure import spec
from tutorsim.analysis.systems.oversight.charts import (
    adaptive_figure,
    calibration_figure,
    rules_figure,
    scores_figure,
)
from tutorsim.analysis.systems.oversight.delivered_guidance import Predicted
from tutorsim.analysis.systems.oversight.summary_and_report import document, evidence_of

SHARES = {"guides": (0.25, 0.25), "gives_away": (0.0, 0.5), "hints": (0, 0)}
PREDICTED = [
    Predicted("simple", rule, "ranked", 4, 1, SHARES, {**SHARES, "gives_away": (0.5, 0.5)})
    for rule in ("ranked", "instant_runoff")
]


@pytest.fixture(scope="module")
def evidence(played):
    return evidence_of(played)


def test_scores_are_those_of_the_table_from_best_to_worst(evidence):
    figure = scores_figure(evidence.evaluations)
    headlines = figure.data["headline"].to_list()
    assert headlines == sorted(headlines, reverse=True)
    best = figure.data["condition"][0]
    assert headlines[0] == evidence.evaluations[best].metrics["headline"].value
    assert f"{headlines[0]:.3f} ({best})" in figure.finding


def test_the_adaptive_curve_is_drawn_from_quick_labels_to_full_debate(evidence):
    figure = adaptive_figure(evidence.adaptive)
    rows = figure.data.rows_by_key(["series", "threshold"], unique=True)
    curve = evidence.adaptive
    assert rows["headline", 1.0] == (curve.points[0].headline,)
    assert rows["calls saved", 1.0] == rows["tokens saved", 1.0] == (0,)
    assert figure.data["threshold"].is_sorted()
    assert figure.data["threshold"].min() == 0  # below every stated confidence
    quick = curve.points[-1]
    assert f"to {quick.headline:.3f}" in figure.finding


def test_dots_of_confidence_are_every_item_that_states_one(evidence):
    figure = calibration_figure(evidence.calibrations)
    stated = [
        r
        for records in evidence.conditions.values()
        for r in records
        if r.lead is not None and r.lead.confidence is not None
    ]
    assert figure.data["items"].sum() == len(stated)


def test_ranges_of_rules_stand_below_what_was_delivered():
    figure = rules_figure([("single", one) for one in PREDICTED])
    assert figure.data["rule"].unique(maintain_order=True).to_list() == [
        "(delivered)",
        "ranked",
        "instant runoff",
    ]
    delivered = figure.data.row(0, named=True)
    assert (delivered["outcome"], delivered["least"], delivered["most"]) == ("gives away", 0.5, 0.5)
    assert "4 turns: 2 of 4 shares known exactly" in figure.finding
    two = rules_figure([(who, one) for who in ("single", "hpo") for one in PREDICTED])
    assert set(two.data["format"]) == {"voted simple, by single", "voted simple, by hpo"}
    assert "on 4 turns" in two.finding


def test_without_gold_or_an_audit_nothing_is_drawn(evidence):
    unscored = evidence.adaptive._replace(
        points=tuple(p._replace(headline=float("nan")) for p in evidence.adaptive.points)
    )
    assert adaptive_figure(unscored) is None
    assert scores_figure({}) is None
    assert calibration_figure({"single": []}) is None
    assert rules_figure([]) is None


@pytest.mark.costly
def test_a_report_has_its_charts_and_a_summary_none(played):
    names = [figure.name for figure in document(played, False).figures()]
    assert names == ["scores", "adaptive", "calibration"]
    assert document(played, True).figures() == ()


@pytest.mark.costly
def test_every_chart_is_valid_vega_lite(evidence):
    for figure in (
        scores_figure(evidence.evaluations),
        adaptive_figure(evidence.adaptive),
        calibration_figure(evidence.calibrations),
        rules_figure([("single", one) for one in PREDICTED]),
    ):
        made = spec(figure, provenance="stand-in (scripted)")
        kind = alt.FacetChart if "facet" in made else alt.LayerChart
        kind.from_dict(made, validate=True)
