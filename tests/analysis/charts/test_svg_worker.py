"""Drawings of another process are those of this one."""

from multiprocessing import active_children

import pytest

from tutorsim.analysis.charts.svg_and_png_for_phone_and_dark_mode import (
    VEGA_LITE,
    drawn,
    to_page_svg,
)
from tutorsim.analysis.charts.svg_worker import drawers

SPECS = [
    {
        "data": {"values": [{"n": n, "name": "a"}]},
        "mark": {"type": "bar", "clip": True},
        "encoding": {
            "x": {"field": "n", "type": "quantitative"},
            "y": {"field": "name", "type": "nominal"},
        },
    }
    for n in (1, 2, 3)
]


def on_a_page(drawings):
    return [to_page_svg(drawing, name="bars", label="Bars") for drawing in drawings]


@pytest.mark.costly
def test_a_process_draws_what_this_one_draws_and_in_order():
    with drawers(version=VEGA_LITE) as run:
        elsewhere = drawn(SPECS, run=run)
    assert run is not map
    assert on_a_page(elsewhere) == on_a_page(drawn(SPECS))


def test_letters_that_the_renderers_own_fonts_lack_are_drawn_by_this_process():
    with drawers(version=VEGA_LITE) as run:
        here = run(lambda thing: thing["name"], [{"name": "東京"}])  # a lambda cannot be sent
    assert list(here) == ["東京"]


def test_a_page_is_drawn_here_where_its_process_was_killed():
    with drawers(version=VEGA_LITE) as run:
        children = active_children()
        for child in children:
            child.kill()
            child.join()
        assert list(run(str.upper, iter("abc"))) == ["A", "B", "C"]
    assert children
