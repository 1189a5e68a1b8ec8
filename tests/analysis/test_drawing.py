"""Drawings of other processes are those of this one."""

import os

import pytest

from analysis.charts import VEGA_LITE, drawn, to_page_svg
from analysis.drawing import drawers

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


def on_a_page(drawings: list[str]) -> list[str]:
    return [to_page_svg(drawing, name="bars", label="Bars") for drawing in drawings]


@pytest.mark.costly
def test_processes_draw_what_this_one_draws_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with drawers(version=VEGA_LITE) as run:
        elsewhere = drawn(SPECS, run=run)
    assert run is not map
    assert on_a_page(elsewhere) == on_a_page(drawn(SPECS))


def test_a_single_core_draws_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    with drawers(version=VEGA_LITE) as run:
        assert run is map
