"""Charts say what their rows say, and are valid Vega-Lite; what cannot be drawn is left out."""

from types import SimpleNamespace

import altair as alt
import pytest

from tutorsim.analysis.charts.figures_forms_and_colours import spec
from tutorsim.analysis.systems.oversight import charts_of_scores_confidence_audits as charts
from tutorsim.analysis.systems.oversight.guidance_of_audited_replies_also_under_other_rules import (
    DELIVERED,
    Predicted,
)
from tutorsim.analysis.systems.oversight.page_data_and_strict_or_lenient_rereading import Evidence
from tutorsim.analysis.systems.oversight.page_tables_and_first_sentence import document

SHARES = {"guides": (0.25, 0.25), "no_guidance": (0.0, 0.5), "hints": (0, 0)}
PREDICTED = [
    Predicted("simple", DELIVERED, 4, None, {**SHARES, "no_guidance": (0.5, 0.5)}),
    *(Predicted("simple", rule, 4, 1, SHARES) for rule in ("ranked", "instant_runoff")),
]


@pytest.fixture(scope="module")
def evidence(played):
    return Evidence(played)


def audited(*by):
    """What other rules would have delivered, as these conditions label it."""
    return SimpleNamespace(predicted=[(who, one) for who in by for one in PREDICTED])


def test_scores_are_those_of_the_table_from_best_to_worst(evidence):
    figure = charts.scores(evidence)
    headlines = figure.data["headline"].to_list()
    assert headlines == sorted(headlines, reverse=True)
    best = figure.data["condition"][0]
    assert headlines[0] == evidence.scores[best].metrics["headline"].value
    assert figure.finding.endswith(f"between {headlines[-1]:.3f} and {headlines[0]:.3f}")


def test_differences_are_those_of_the_table_about_zero(evidence):
    figure = charts.differences(evidence)
    assert figure.finding == "Do the conditions differ? Not known"
    assert "Bars are 95 % intervals." in figure.caption
    for row, one in zip(figure.data.to_dicts(), evidence.differences, strict=True):
        assert row["contrast"] == f"{one.second} − {one.first}"
        told = (one.difference.value, one.difference.low, one.difference.high)
        assert (row["difference"], row["lower"], row["upper"]) == told


def test_accuracies_stand_beside_what_one_label_for_every_reply_would_have(evidence):
    figure = charts.accuracy(evidence)
    trivial = {"mistake": "always yes", "guidance": "always effective"}
    for row in figure.data.iter_rows(named=True):
        found = evidence.scores[row["condition"]].metrics[f"{row['label']}_accuracy"]
        assert (row["accuracy"], row["lower"]) == (found.value, found.low)
        alone = evidence.trivial[trivial[row["label"]]].metrics[f"{row['label']}_accuracy"]
        assert row["trivial"] == alone.value
    below = sum(row["accuracy"] < row["trivial"] for row in figure.data.iter_rows(named=True))
    assert figure.finding.startswith(f"{below} of {figure.data.height} accuracies ")


def test_the_adaptive_curve_is_drawn_from_quick_labels_to_full_debate(evidence):
    figure = charts.adaptive(evidence)
    rows = figure.data.rows_by_key(["series", "threshold"], unique=True)
    curve = evidence.adaptive
    assert rows["headline", 1.0] == (curve.points[0].headline,)
    assert rows["calls saved", 1.0] == rows["tokens saved", 1.0] == (0,)
    assert figure.data["threshold"].is_sorted()
    assert figure.data["threshold"].min() == 0  # below every stated confidence
    quick = curve.points[-1]
    assert f"to {quick.headline:.3f}" in figure.finding


def test_dots_of_confidence_are_every_item_that_states_one(evidence):
    figure = charts.calibration(evidence)
    stated = [
        r
        for records in evidence.conditions.values()
        for r in records
        if r.lead is not None and r.lead.confidence is not None
    ]
    assert figure.data["items"].sum() == len(stated)


def test_ranges_of_rules_stand_below_what_was_delivered():
    figure = charts.rules(audited("single"))
    names = figure.data["rule"].unique(maintain_order=True).to_list()
    assert names == ["(delivered)", "ranked", "instant runoff"]
    delivered = figure.data.row(0, named=True)
    assert delivered["outcome"] == "no guidance"
    assert (delivered["least"], delivered["most"]) == (0.5, 0.5)
    assert "4 turns: 2 of 4 shares known exactly" in figure.finding
    two = charts.rules(audited("single", "hpo"))
    assert set(two.data["format"]) == {"voted simple, by single", "voted simple, by hpo"}
    assert "on 4 turns" in two.finding


def test_without_gold_or_an_audit_nothing_is_drawn(evidence):
    unscored = evidence.adaptive._replace(
        points=tuple(p._replace(headline=float("nan")) for p in evidence.adaptive.points)
    )
    assert charts.adaptive(SimpleNamespace(adaptive=unscored)) is None
    assert charts.adaptive(SimpleNamespace(adaptive=None)) is None
    assert charts.scores(SimpleNamespace(scores={})) is None
    assert charts.calibration(SimpleNamespace(calibrations=[])) is None
    assert charts.rules(audited()) is None


@pytest.mark.costly
def test_a_report_has_its_charts_and_a_summary_none(played):
    names = [figure.name for figure in document(played, False).figures()]
    assert names == ["accuracy", "scores", "differences", "adaptive", "calibration"]
    assert document(played, True).figures() == ()


@pytest.mark.costly
def test_every_chart_is_valid_vega_lite(evidence):
    for figure in (
        charts.scores(evidence),
        charts.adaptive(evidence),
        charts.calibration(evidence),
        charts.rules(audited("single")),
    ):
        made = spec(figure, provenance="stand-in (scripted)")
        kind = alt.FacetChart if "facet" in made else alt.LayerChart
        kind.from_dict(made, validate=True)
