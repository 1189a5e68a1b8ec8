import json
import re
import xml.etree.ElementTree as ET

import altair as alt
import polars as pl
import pytest

from tutorsim.analysis.charts.figures_forms_and_colours import ACCENT, INK, Figure, inline, spec
from tutorsim.analysis.charts.svg_and_png_for_phone_and_dark_mode import (
    drawn,
    narrowed,
    to_json,
    to_page_svg,
    to_png,
    to_svg,
)
from tutorsim.analysis.pages.words_and_safe_text import shown

HOSTILE = '<script>alert("1")</script> {{ 7*7 }} ]]> </style> "quoted" & \u202eback'


def made_figure(names=("a", "b"), *, clip=False):
    frame = pl.DataFrame({"name": names, "n": range(1, len(names) + 1)})
    chart = (
        alt.Chart(inline(frame))
        .mark_bar(color=ACCENT, clip=clip)
        .encode(x="n:Q", y="name:N", tooltip=["name:N", "n:Q"])
    )
    return Figure("bars", "b is larger than a", "n = 2.", "Counted.", frame, chart)


def page_svg(figure, name="bars"):
    made = spec(figure, provenance="stand-in: test", titled=False)
    return to_page_svg(drawn([made])[0], name=name, label=figure.finding)


@pytest.mark.costly
def test_drawings_have_the_same_bytes_each_time():
    made = spec(made_figure(clip=True), provenance="stand-in: test")
    assert to_svg(made) == to_svg(made)
    assert to_png(made) == to_png(made)
    assert page_svg(made_figure(clip=True)) == page_svg(made_figure(clip=True))


def test_a_chart_that_stands_alone_says_its_finding_what_is_fixed_and_what_answered():
    drawn = to_svg(spec(made_figure(), provenance="stand-in: test"))
    text = " ".join(ET.fromstring(drawn).itertext())
    assert "b is larger than a" in text
    assert "n = 2. Answered by: stand-in: test." in text


def test_a_page_drawing_leaves_the_title_to_the_page_and_names_itself():
    root = ET.fromstring(page_svg(made_figure()))
    assert root.get("role") == "img"
    assert root.get("aria-label") == "b is larger than a"
    assert "Answered by" not in " ".join(root.itertext())


def test_a_page_drawing_takes_its_colours_from_the_page():
    drawn = page_svg(made_figure())
    assert 'fill="var(--accent)"' in drawn
    assert 'fill="var(--ink)"' in drawn
    assert ACCENT not in drawn
    assert INK not in drawn


def test_a_page_drawing_has_no_inline_style_that_a_content_policy_would_block():
    drawn = page_svg(made_figure())
    assert " style=" not in drawn
    assert "<style" not in drawn


def test_marks_show_their_values_on_hovering():
    assert "<title>n: 2; name: b</title>" in page_svg(made_figure())


def test_ids_belong_to_the_chart_so_that_two_drawings_share_a_page():
    first, second = (
        set(re.findall(r'id="([^"]+)"', page_svg(made_figure(clip=True), n))) for n in "ab"
    )
    assert first
    assert not first & second
    drawn = page_svg(made_figure(clip=True), "a")
    assert set(re.findall(r"url\(#([^)]+)\)", drawn)) <= set(re.findall(r'id="([^"]+)"', drawn))


def test_hostile_names_stay_text():
    drawn = page_svg(made_figure(("a", HOSTILE)))
    root = ET.fromstring(drawn)
    assert not [e for e in root.iter() if e.tag.endswith(("script", "style", "foreignObject"))]
    assert any(shown(HOSTILE) in text for text in root.itertext())


@pytest.mark.parametrize("name", ["\x00\x01", "", " ", "𝔘nicode", "مرحبا", "w" * 500])
def test_names_of_any_kind_can_be_drawn(name):
    ET.fromstring(page_svg(made_figure(("a", name))))


def test_a_png_is_a_png_and_a_json_is_vega_lite():
    made = spec(made_figure(), provenance="stand-in: test")
    assert to_png(made).startswith(b"\x89PNG")
    read = json.loads(to_json(made))
    assert read["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    assert "b is larger than a" in " ".join(read["title"]["text"])


def test_a_page_drawing_says_only_what_a_browser_would_not_take_anyway():
    drawn = page_svg(made_figure())
    for idle in (' opacity="1"', ' font-size="12px"><text', "<g></g>", "<g>", ' class="mark'):
        assert idle not in drawn
    assert drawn.count("<g") == drawn.count("</g>")
    assert not re.search(r"\d\.\d{3}", drawn)


def test_marks_stay_in_their_panel_where_another_layer_has_nothing_to_draw():
    """A layer of bars without ends is an empty group in each panel."""
    rows = pl.DataFrame({"name": ["a", "b"], "n": [1, 2], "low": [None, None]})
    base = alt.Chart().encode(y="name:N")
    layers = alt.layer(
        base.mark_bar().encode(x="low:Q", x2="n:Q"), base.mark_point().encode(x="n:Q")
    )
    chart = layers.properties(data=inline(rows)).facet("name:N", columns=1)
    made = spec(Figure("f", "", "", "", rows, chart), provenance="", titled=False)
    raw = drawn([made])[0]
    assert "/>" in re.findall(r"<g[^<>]*rect[^<>]*>", raw)[0]
    assert places(to_page_svg(raw, name="f", label="")) == places(raw)


def places(drawing):
    """Where each point is drawn: the moves of all groups around it."""
    around, found = [], []
    for node in re.finditer(r"<(/?)(\w+)([^<>]*?)(/?)>", drawing):
        moved = re.search(r"translate\(([^)]*)\)", node[3])
        move = [round(float(one), 1) for one in moved[1].split(",")] if moved else [0, 0]
        if node[2] == "path" and node[3].count("A") > 2 and "translate" in node[3]:
            found.append([sum(one) for one in zip(move, *around, strict=True)])
        if node[2] == "g" and node[1]:
            around.pop()
        elif node[2] == "g" and not node[4]:
            around.append(move)
    return found


# --- Charts for a narrow screen ------------------------------------------------------------------


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
    assert made["spec"]["width"] == 205
    assert made["spec"]["encoding"]["y"]["axis"]["labelLimit"] == 155
    assert made["config"]["legend"]["orient"] == "bottom"


def test_what_fits_stays_and_the_wide_one_is_not_changed():
    wide = {"width": {"step": 60}, "layer": [{"encoding": {"x": {"value": 520}}}], "height": 400}
    made = narrowed(wide)
    assert (made["width"], made["height"]) == (205, 400)
    assert made["layer"][0]["encoding"]["x"]["value"] == 213
    assert wide["width"] == {"step": 60}
