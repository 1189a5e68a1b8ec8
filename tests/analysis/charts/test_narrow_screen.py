"""Charts for a narrow screen."""

from tutorsim.analysis.charts.svg_and_png_for_phone_and_dark_mode import narrowed


def test_panels_stand_in_one_column_and_the_legend_below():
    made = narrowed(
        {
            "facet": {"field": "panel"},
            "columns": 2,
            "spec": {"width": 270, "encoding": {"y": {"axis": {"labelLimit": 300}}}},
            "config": {"legend": {"orient": "right"}},
        }
    )
    assert made["columns"] == 1
    assert made["spec"]["width"] == 220
    assert made["spec"]["encoding"]["y"]["axis"]["labelLimit"] == 155
    assert made["config"]["legend"]["orient"] == "bottom"


def test_what_fits_stays_and_the_wide_one_is_not_changed():
    wide = {"width": {"step": 60}, "layer": [{"encoding": {"x": {"value": 520}}}], "height": 400}
    made = narrowed(wide)
    assert (made["width"], made["height"]) == (220, 400)
    assert made["layer"][0]["encoding"]["x"]["value"] == 228
    assert wide["width"] == {"step": 60}
