"""A rating sheet in a real browser, filled in by keyboard by a scripted rater."""

import json
import time
from pathlib import Path

import pytest

from tests.tutorsim.chat.browser import PATIENCE
from tests.tutorsim.cli.test_rate import Folder, rows_of

pytestmark = [pytest.mark.costly, pytest.mark.loopback]

RATED = (("1", "2", "3", "3"), ("1", "2", "3", "2"))
"""What each rater gives the four items, in the order of their ids."""


@pytest.fixture
def folder(tmp_path, built, shell):
    return Folder(tmp_path, built.folder, shell)


@pytest.fixture
def tab(browser, tmp_path):
    found = browser.tab()
    found.command("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path / "down"))
    return found


def opened(tab, path):
    tab.open(path.as_uri())
    tab.until("document.querySelectorAll('#values input').length === 3")


def focused(tab):
    return tab.run("document.activeElement.id || document.activeElement.name")


def tab_to(tab, name):
    for _ in range(12):
        if focused(tab) == name:
            return
        tab.press("Tab")
    raise AssertionError(f"Tab never comes to {name}; it is at {focused(tab)}")


def rate_by_keyboard(tab, values):
    """Choose a value for every item by item id, with Tab, the space bar, arrows and Enter."""
    for number in range(len(values)):
        tab.until(f"document.getElementById('title').textContent.startsWith('Item {number + 1} ')")
        item = tab.run(f"sheet.items[{number}].item")
        tab_to(tab, "score")
        tab.press(" ", text=" ")
        for _ in range(int(values[item]) - 1):
            tab.press("ArrowDown")
        assert tab.run("document.querySelector('input:checked').value") == values[item]
        tab.enter()


def downloaded(tab, folder):
    tab.until("document.activeElement.id === 'download'")
    tab.enter()
    name = tab.run("sheet.file")
    path = folder / "down" / name
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if path.exists():
            return path
        time.sleep(0.05)
    raise AssertionError(f"{name} was never downloaded")


def test_axe_finds_nothing_in_a_sheet(folder, tab):
    [sheet, *_] = folder.export("--items", 4, name="sheet.html").out.splitlines()
    for width in (390, 1280):
        tab.size(width, 900, dark=width == 390)
        opened(tab, Path(sheet))
        assert tab.violations() == []


def test_two_sheets_by_keyboard_give_the_alpha_computed_by_hand(folder, tab):
    """The figures are those of `test_alpha_of_joined_ratings_is_the_one_computed_by_hand`."""
    said = folder.export("--items", 4, name="sheet.html")
    pages = [Path(line) for line in said.out.splitlines()]
    files = []
    for page, given in zip(pages, RATED, strict=True):
        tab.size(360, 740)
        opened(tab, page)
        assert tab.run("document.documentElement.scrollWidth") <= 360
        items = sorted(tab.run("sheet.items.map(item => item.item)"))
        rate_by_keyboard(tab, dict(zip(items, given, strict=True)))
        assert tab.run("document.getElementById('count').textContent") == "4 of 4 rated"
        files.append(downloaded(tab, folder.path))
    assert tab.errors == []
    assert [url for url in tab.requests if not url.startswith(("file:", "blob:", "data:"))] == []
    said = folder.join(*files, options=("--scripted",))
    assert said.code == 0, said.err
    [found] = folder.found()["agreement"]
    assert found["by"] == "script"
    assert found["ordinal"]["value"] == pytest.approx(0.79)
    assert found["interval"]["value"] == pytest.approx(1 - (2 / 8) / (78 / 56))


def test_a_page_keeps_what_was_entered_and_gives_half_a_sheet_too(folder, tab):
    [page] = [Path(folder.export("--items", 4, "--raters", 1, name="one.html").out.strip())]
    opened(tab, page)
    tab_to(tab, "score")
    tab.press(" ", text=" ")
    tab_to(tab, "note")
    tab.type('He said "no", twice\nüber')
    tab_to(tab, "next")
    tab.enter()
    tab.until("document.getElementById('title').textContent.startsWith('Item 2 ')")
    assert focused(tab) == "title"
    tab.reload()
    tab.until("document.getElementById('title').textContent.startsWith('Item 2 ')")
    assert tab.run("document.getElementById('count').textContent") == "1 of 4 rated"
    tab.run("document.getElementById('download').focus()")
    rows = rows_of(downloaded(tab, folder.path))
    assert [row["score"] for row in rows] == ["1", "", "", ""]
    assert rows[0]["note"] == 'He said "no", twice\nüber'
    assert folder.join(folder.path / "down" / tab.run("sheet.file")).code == 0


def test_hostile_texts_are_shown_as_they_are_and_come_back_unaltered(hostile, tmp_path, shell, tab):
    folder = Folder(tmp_path, hostile.folder, shell)
    [page] = [Path(folder.export("--items", 3, "--raters", 1, name="one.html").out.strip())]
    opened(tab, page)
    shown = tab.run("document.getElementById('shown').textContent")
    assert "<script>alert(1)</script>" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert tab.run("document.querySelectorAll('#shown script').length") == 0
    tab_to(tab, "score")
    tab.press(" ", text=" ")
    tab.run("document.getElementById('download').focus()")
    path = downloaded(tab, folder.path)
    assert tab.errors == []
    assert folder.join(path).code == 0
    [line] = (folder.run / "ratings.jsonl").read_text().splitlines()
    assert len(json.loads(line)["ratings"]) == 1


def test_every_control_of_the_page_has_a_name(folder, tab):
    [page] = [Path(folder.export("--items", 2, "--raters", 1, name="one.html").out.strip())]
    opened(tab, page)
    always = {"button", "radio", "textbox", "progressbar"}
    assert always <= tab.controls(*always, "radiogroup", "group")
