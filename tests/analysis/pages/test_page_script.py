"""What the page's script does, in a real browser without a network, from a file."""

import csv
import time

import pytest

from tests.analysis.made import report_of
from tests.analysis.pages.test_document_as_html_with_packed_episodes import (
    HOSTILE,
    with_hostile_text,
)
from tutorsim.analysis.pages.document_as_html_with_packed_episodes import to_html
from tutorsim.analysis.pages.words_and_safe_text import shown

pytestmark = [pytest.mark.costly, pytest.mark.loopback]

SHOWN = "document.querySelectorAll('.episode:not([hidden])').length"
SEARCH = """(() => {
    const field = document.querySelector('.filters input');
    field.value = 'WORDS';
    field.dispatchEvent(new Event('input', { bubbles: true }));
})()"""


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(rich_page, tmp_path):
    return written(tmp_path / "page.html", rich_page)


def test_an_episode_is_drawn_when_it_is_opened(tab, page):
    tab.open(page)
    assert tab.run("document.querySelectorAll('.said').length") == 0
    tab.run("document.querySelector('.episode').open = true")
    tab.until("document.querySelectorAll('.episode .said').length > 10")
    text = tab.run("document.querySelector('.episode').innerText")
    assert "): the first of the tied candidates is scaffolding." in text
    assert "simple count: scaffolding 2, " in text  # below the rows of a vote
    assert tab.errors == []
    assert [one for one in tab.requests if not one.startswith(("file:", "data:"))] == []


def test_the_address_of_an_episode_unfolds_it(tab, page, rich_source):
    name = f"e-{rich_source.episodes[2].episode_id}"
    tab.open(f"{page}#{name}")
    tab.until("document.querySelectorAll('.said').length > 10")
    assert tab.run("[...document.querySelectorAll('.episode')].filter(e => e.open).length") == 1
    assert tab.run("document.querySelector('.episode[open]').id") == name
    tab.run(f"location.hash = 'e-{rich_source.episodes[0].episode_id}'")
    tab.until("[...document.querySelectorAll('.episode')].filter(e => e.open).length === 2")


def test_an_address_of_no_episode_is_told_and_breaks_nothing(tab, page):
    for name in ("no-such", "%", "%E4%BD%A0"):
        tab.open("about:blank")
        tab.open(f"{page}#e-{name}")
        told = tab.until("document.querySelector('.filters output').value.startsWith('no episode')")
        assert told
        tab.run("document.querySelector('.episode').open = true")
        tab.until("document.querySelectorAll('.episode .said').length > 10")
    assert tab.errors == []


def test_episodes_are_found_by_what_they_are_and_by_words_that_were_said(tab, page, rich_source):
    tab.open(page)
    assert tab.run(SHOWN) == len(rich_source.episodes)
    tab.run(SEARCH.replace("WORDS", "abstained"))  # only the third has an abstention
    tab.until(f"{SHOWN} === 1")
    assert tab.run("document.querySelector('.filters output').value") == "1 of 4 episodes"
    tab.run(SEARCH.replace("WORDS", "no such word"))
    tab.until(f"{SHOWN} === 0")
    tab.run(SEARCH.replace("WORDS", ""))
    tab.until(f"{SHOWN} === 4")
    tab.run("""(() => {
        const field = document.querySelector('.filters select');
        field.selectedIndex = 1;
        field.dispatchEvent(new Event('input', { bubbles: true }));
    })()""")
    tab.until(f"{SHOWN} === 2")  # two of the four voted by one ballot each


def test_hostile_text_is_text_when_it_is_drawn(tab, rich_source, tmp_path):
    text = to_html(report_of(with_hostile_text(rich_source)), run=undrawn)
    tab.open(written(tmp_path / "page.html", text))
    tab.run("document.querySelectorAll('.episode').forEach((one) => { one.open = true; })")
    tab.until("document.querySelectorAll('.episode .said').length > 40")
    assert tab.run("document.querySelector('.episode').textContent").count(shown(HOSTILE)) > 3
    assert tab.run("document.querySelectorAll('.episodes img, .episodes script').length") == 0
    assert tab.errors == []


def test_the_rows_of_a_chart_are_saved_as_csv(tab, page, tmp_path, rich_document):
    tab.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    tab.open(page)
    tab.run("document.querySelector('#chart-orders .evidence').open = true")
    tab.run("document.querySelector('#chart-orders .save').click()")
    file, deadline = tmp_path / "orders.csv", time.monotonic() + 30
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    [figure] = [one for one in rich_document.figures() if one.name == "orders"]
    with file.open(encoding="utf-8", newline="") as lines:
        head, *rows = csv.reader(lines)
    assert len(head) == figure.data.width
    assert len(rows) == figure.data.height
    numeric = next(at for at, kind in enumerate(figure.data.dtypes) if kind.is_float())
    assert [float(row[numeric]) for row in rows] == figure.data.to_series(numeric).to_list()
    assert tab.errors == []


def test_a_page_of_1200_episodes_is_there_within_two_seconds(tab, rich_source, tmp_path):
    """Opened, and then an episode unfolded and a word looked for."""
    from dataclasses import replace

    episodes = tuple(
        rich_source.episodes[at % 3].model_copy(update={"episode_id": f"sciq.t{at}.novice.simple"})
        for at in range(1200)
    )
    document = report_of(rich_source)
    many = replace(document, episodes=report_of(replace(rich_source, episodes=episodes)).episodes)
    address = written(tmp_path / "page.html", to_html(many, run=undrawn))
    began = time.monotonic()
    tab.open(f"{address}#e-sciq.t700.novice.simple")
    tab.until("document.querySelectorAll('.said').length > 10")
    took = time.monotonic() - began
    assert tab.run("document.querySelectorAll('.episode').length") == 1200
    tab.run(SEARCH.replace("WORDS", "abstained"))
    tab.until(f"{SHOWN} === 400")
    assert took < 2, took


def undrawn(specs):
    """No drawing."""
    return ['<svg width="1" height="1" viewBox="0 0 1 1"></svg>' for _ in specs]
