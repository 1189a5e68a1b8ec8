"""Drawings of another process are those of this one."""

import signal
import sys

import pytest

from tutorsim.analysis.charts import svg_worker_and_its_fonts as svg_worker
from tutorsim.analysis.charts.svg_and_png_for_phone_and_dark_mode import (
    VEGA_LITE,
    drawn,
    to_page_svg,
)
from tutorsim.analysis.charts.svg_worker_and_its_fonts import drawers

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


@pytest.fixture
def started(monkeypatch):
    """The processes that were started to draw."""
    processes = []
    start = svg_worker.Popen
    monkeypatch.setattr(
        svg_worker, "Popen", lambda *a, **k: processes.append(start(*a, **k)) or processes[-1]
    )
    return processes


def drawn_here(monkeypatch):
    """What this process draws, from now on."""
    here = []
    monkeypatch.setattr(svg_worker, "svg", lambda spec, *, version: here.append(spec) or spec["x"])
    return here


@pytest.mark.costly
def test_a_process_draws_what_this_one_draws_and_in_order(monkeypatch):
    expected = on_a_page(drawn(SPECS))
    here = drawn_here(monkeypatch)
    with drawers(version=VEGA_LITE) as run:
        assert on_a_page(drawn(iter(SPECS), run=run)) == expected
    assert not here


def test_letters_that_the_renderers_own_fonts_lack_are_drawn_by_this_process(monkeypatch):
    here = drawn_here(monkeypatch)
    with drawers(version=VEGA_LITE) as run:
        assert run([{"x": "東京"}]) == ["東京"]
    assert here


def test_a_page_is_drawn_here_where_its_process_was_killed(monkeypatch, started):
    drawn_here(monkeypatch)
    with drawers(version=VEGA_LITE) as run:
        started[0].kill()
        started[0].wait()
        assert run({"x": letter} for letter in "abc") == ["a", "b", "c"]


def test_a_page_is_drawn_here_where_no_process_starts(monkeypatch, tmp_path):
    drawn_here(monkeypatch)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    with drawers(version=VEGA_LITE) as run:
        assert run([{"x": "a"}]) == ["a"]


def test_no_process_is_left_of_a_page_that_fails(started):
    with pytest.raises(ZeroDivisionError), drawers(version=VEGA_LITE):
        _ = 1 / 0
    assert started[0].returncode == -signal.SIGTERM  # not waited for
