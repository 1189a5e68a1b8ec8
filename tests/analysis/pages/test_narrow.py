"""Every bundled report in a real browser, as wide as a telephone and as a desk's screen."""

import pytest

import tutorsim
from tutorsim.runner.find_and_check_recording import bundled_recordings

pytestmark = [pytest.mark.costly, pytest.mark.loopback]

OPENED = "document.querySelectorAll('details').forEach(d => d.open = true)"
OUTSIDE = """
[...document.querySelectorAll('body *:not(.skip)')].filter(e => {
    const box = e.getBoundingClientRect();
    return box.width && box.right > WIDTH + 1 && !e.parentElement.closest('.scroll');
}).map(e => `${e.tagName} ${e.className}: ${e.textContent}`.slice(0, 90))
"""
"""What reaches over the page's edge and is not in a box that scrolls by itself."""
NARROWEST = """
Math.min(...[...document.querySelectorAll('.answers li')].map(e => e.getBoundingClientRect().width))
"""
"""Pixels of the narrowest card."""
SMALLEST = """
Math.min(...[...document.querySelectorAll('figure svg')].filter(e => e.clientWidth).flatMap(e => {
    const shrunk = e.getBoundingClientRect().width / e.viewBox.baseVal.width;
    const texts = [...e.querySelectorAll('text')];
    return texts.map(t => parseFloat(getComputedStyle(t).fontSize) * shrunk);
}))
"""
"""Pixels of the smallest type in a chart."""
SCROLLED = """
[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1)
    .every(e => (e.scrollLeft = 1e6, e.scrollLeft > 0))
"""


@pytest.fixture(params=[*sorted(bundled_recordings()), "ballots"])
def page(request, tmp_path):
    """The report of every bundled recording, and of ballots from elsewhere."""
    if request.param == "ballots":
        votes = "poll,voter,first,second\nlake,ann,a,b\nlake,ben,b,a\nhill,ann,a,b\nhill,ben,a,b\n"
        (tmp_path / "votes.csv").write_text(votes, encoding="utf-8")
        return tutorsim.open(tmp_path / "votes.csv").report(tmp_path / "page.html")
    run = tutorsim.open(bundled_recordings()[request.param])
    shown = run.episodes["episode_id"][:2] if run.system == "panel" else ()  # of panels all stand
    return run.report(tmp_path / "page.html", episodes=tuple(shown))


def test_axe_finds_nothing_in_a_report(tab, page):
    """Among much else, whoever uses a keyboard can scroll what scrolls."""
    for width in (390, 1280):
        tab.size(width, 900, dark=width == 390)
        tab.open(page.as_uri())
        assert tab.violations() == []


def test_nothing_reaches_over_the_edge_of_a_page(tab, page):
    """Wide tables scroll in their own box, and the page never does so sideways."""
    for width in (390, 1280):
        tab.size(width, 900)
        tab.open(page.as_uri())
        tab.run(OPENED)
        assert tab.run(OUTSIDE.replace("WIDTH", str(width))) == []
        assert tab.run("document.documentElement.scrollWidth") <= width
        assert tab.run(NARROWEST) > 250
        assert tab.run(SMALLEST) >= 10
        assert tab.run(SCROLLED)
    assert tab.errors == []
