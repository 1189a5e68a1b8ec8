"""The page: safe, complete, the same each time."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import polars as pl
import pytest

from tests.analysis.made import report_of
from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.pages import document_as_html_with_packed_episodes as html
from tutorsim.analysis.pages.document_as_html_with_packed_episodes import to_html
from tutorsim.analysis.pages.words_and_safe_text import shown

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> {{ 7*7 }} {% raw %} ]]> </style>"
    "</pre></details><!-- \u202eback\x00 \ud800 " + "w" * 400
)


class Page(HTMLParser):
    """Tags with their attributes, and the text between them."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.words = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)

    def named(self, name):
        return [attrs for tag, attrs in self.tags if tag == name]

    @property
    def text(self):
        return " ".join("".join(self.words).split())


CHARTS = [
    *("orders", "wins", "kept", "agreement", "identification", "contrasts", "scores", "personas"),
    *("decided-by", "movement", "noise", "margins", "pivotal", "labels"),
]
"""Every chart of a panel's report, in its order."""

FOREIGN = re.compile(
    r"\b(students?|tutors?|turns?|episodes?|panels?|tie rounds?|roles?|priority|lots?)\b", re.I
)


def foreign_words(text):
    """Words of a tutors' panel that a reader of a page meets, commands left out."""
    shown = re.sub(r"<(script|style|code)\b.*?</\1>", "", text, flags=re.DOTALL)
    page = Page(shown)
    labels = [attrs.get("aria-label", "") for _, attrs in page.tags]
    return FOREIGN.findall(" ".join((page.text, *labels)))


def with_hostile_text(source):
    """The source with hostile text wherever a model or a stranger wrote."""
    episodes = []
    for episode in source.episodes:
        turns = []
        for turn in episode.turns:
            drafts = {
                role: draft.model_copy(update={"text": HOSTILE, "rationale": HOSTILE})
                for role, draft in turn.proposals_final.items()
            }
            ballots = tuple(replace(b, raw=HOSTILE) for b in turn.ballots_final)
            turns.append(
                turn.model_copy(update={"proposals_initial": drafts, "proposals_final": drafts,
                                        "ballots_final": ballots, "delivered": HOSTILE}),
            )  # fmt: skip
        attempts = tuple(
            a.model_copy(update={"text": HOSTILE, "score_rationale": HOSTILE})
            for a in episode.attempts
        )
        changed = {"turns": tuple(turns), "attempts": attempts}
        asked = {"question": HOSTILE, "reference": HOSTILE}
        episodes.append(episode.model_copy(update=changed | asked))
    return replace(source, episodes=tuple(episodes))


def test_the_policy_lets_nothing_in_or_out_but_the_pages_own_style_and_script(rich_page):
    page = Page(rich_page)
    [policy] = [a["content"] for a in page.named("meta") if "http-equiv" in a]
    style = re.search(r"<style>(.*?)</style>", rich_page, re.DOTALL)[1]
    script = re.search(r"<script>(.*?)</script>", rich_page, re.DOTALL)[1]
    style_digest, script_digest = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    )
    assert policy.startswith(
        f"default-src 'none'; style-src 'sha256-{style_digest}'; "
        f"script-src 'sha256-{script_digest}'; img-src data:;"
    )
    head = rich_page.index("Content-Security-Policy")
    assert head < rich_page.index("<style>")


def test_nothing_on_the_page_loads_and_one_script_of_its_own_runs(rich_page):
    page = Page(rich_page)
    assert [one for one in page.named("script") if "type" not in one] == [{}]
    assert {one.get("type") for one in page.named("script")} == {None, "application/octet-stream"}
    assert not {tag for tag, _ in page.tags} & {"iframe", "object", "embed", "img", "form"}
    for tag, attrs in page.tags:
        assert not [name for name in attrs if name.startswith("on") or name == "style"], tag
        for name in ("href", "src", "xlink:href"):
            assert attrs.get(name, "#").startswith(("#", "data:,")), (tag, attrs)


def test_every_link_has_a_target_and_every_id_is_there_once(rich_page):
    page = Page(rich_page)
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = {a["href"][1:] for a in page.named("a")}
    assert links <= set(ids)
    labels = {a["aria-labelledby"] for _, a in page.tags if "aria-labelledby" in a}
    assert labels <= set(ids)


def test_every_chart_has_alternative_text_caption_data_and_specification(rich_page, rich_document):
    drawn = [f for f in rich_document.figures() if f.chart is not None]
    assert [f.name for f in rich_document.figures()] == CHARTS
    assert len(drawn) == len(CHARTS)
    parts = re.findall(r"<figure.*?</figure>", rich_page, re.DOTALL)
    assert len(parts) == len(drawn)
    drawn.sort(key=lambda figure: figure.name != rich_document.lead)  # it stands first
    for figure, part in zip(drawn, parts, strict=True):
        page = Page(part)
        wide, narrow = page.named("svg")  # the style shows one of them
        assert wide["role"] == narrow["role"] == "img"
        assert wide["aria-label"] == narrow["aria-label"]
        assert wide["aria-label"]
        assert page.named("figcaption")
        assert page.named("table")
        assert figure.data.height == sum(tag == "tr" for tag, _ in page.tags) - 1


def test_captions_of_counterfactuals_say_what_is_held_fixed(rich_document):
    for figure in rich_document.figures():
        if figure.name in ("orders", "wins", "kept", "agreement", "identification"):
            assert "with all that came before them held fixed" in figure.caption, figure.name
        else:
            assert "As logged" in figure.caption, figure.name


def test_the_first_screen_answers_six_questions(rich_document):
    assert [a.question for a in rich_document.answers] == [
        "What was run?",
        "What answered the calls?",
        "Do the conditions differ?",
        "What do the rules agree on?",
        "What did the fallback order decide?",
        "What is not identified?",
    ]
    assert all(a.headline and a.detail for a in rich_document.answers)


def test_every_section_says_once_what_answered(rich_page, rich_document):
    sections = re.findall(r"<section.*?</section>", rich_page, re.DOTALL)
    said = [part.count(f"Answered by: <bdi>{rich_document.provenance}.") for part in sections]
    assert said == [1] * len(rich_document.sections) + [0, 0, 0]


def packed(page):
    """What the page's script unpacks: episodes in order."""
    found = re.findall(r'<script type="application/octet-stream" data-count="(\d+)">(.*?)<', page)
    packs = [json.loads(zlib.decompress(base64.b64decode(data), -15)) for _, data in found]
    assert [len(pack) for pack in packs] == [int(count) for count, _ in found]
    return [episode for pack in packs for episode in pack]


def test_every_episode_is_on_the_page_and_can_be_found(rich_page, rich_source):
    page = Page(rich_page)
    found = [a for a in page.named("details") if a.get("class") == "episode"]
    assert [a["id"] for a in found] == [f"e-{e.episode_id}" for e in rich_source.episodes]
    labels = re.findall(r"<label>([^<]*) <select>", rich_page)
    assert labels == ["Condition", "Task", "What came of it", "Won a turn", "Decided by"]
    values = {a["value"] for a in page.named("option")} - {""}
    assert values <= {place for a in found for place in a["data-is"].split()}
    assert len(packed(rich_page)) == len(rich_source.episodes)


def test_the_specification_of_each_chart_is_in_the_page(rich_page, rich_document):
    [data] = re.findall(r'id="specifications">(.*?)<', rich_page)
    specifications = json.loads(zlib.decompress(base64.b64decode(data), -15))
    drawn = [figure.name for figure in rich_document.figures() if figure.chart is not None]
    assert list(specifications) == drawn
    assert all("$schema" in json.loads(text) for text in specifications.values())


@pytest.mark.costly
def test_hostile_text_is_text(rich_source):
    text = to_html(report_of(with_hostile_text(rich_source)))
    text.encode()
    page = Page(text)
    assert "img" not in {tag for tag, _ in page.tags}
    assert len([one for one in page.named("script") if "type" not in one]) == 1
    told = json.dumps(packed(text), ensure_ascii=False)
    assert "{{ 7*7 }}" in told
    assert "<script>alert(1)</script>" in told
    assert "<script>alert(1)" not in text
    assert "\u202e" not in text + told
    assert "\x00" not in text


@pytest.mark.parametrize(
    "said",
    [
        "plain", "two\nlines\t“é”", "a\\rb", "over\rwritten", "a\r\nb", "\x00", "\x0c\b", "\u202e",
        "\ud800",
    ],
)  # fmt: skip
def test_what_nobody_can_see_in_an_episode_is_visible_in_its_data(said):
    [(number, data)] = html._packs([[["message", said, "plain", True]]])
    [[[_, told, *rest]]] = json.loads(zlib.decompress(base64.b64decode(data), -15))
    assert (number, told, rest) == (1, shown(said), ["plain", True])


@pytest.mark.costly
def test_hostile_names_of_candidates_are_text(tmp_path):
    names = [HOSTILE.replace("\ud800", ""), "a,b", "</title>"]
    rows = [
        {
            "episode_id": f"<e{e}>", "turn": 1, "stage": "final", "voter": v, "candidate": c,
            "mass": mass, "protocol": "ranked",
        }
        for e in range(2)
        for v in ("<v1>", "v2")
        for c, mass in zip(names, (2, 1, 0), strict=True)
    ]  # fmt: skip
    pl.DataFrame(rows).write_parquet(tmp_path / "votes.parquet")
    text = to_html(report_of(open_source(tmp_path / "votes.parquet")))
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"img", "v1"}
    assert len([one for one in page.named("script") if "type" not in one]) == 1
    assert "\u202e" not in text


@pytest.mark.costly
def test_the_same_run_gives_the_same_bytes_whatever_its_folder_is_called(rich_source, rich_page):
    renamed = replace(rich_source, name="elsewhere")
    assert to_html(report_of(renamed)) == rich_page


@pytest.mark.costly
def test_ballots_from_elsewhere_have_no_part_of_what_they_cannot_hold(tmp_path):
    pl.DataFrame(
        [("e1", 1, "final", v, c, m, "simple") for v in "xyz" for c, m in (("a", 1), ("b", 0))],
        schema=["episode_id", "turn", "stage", "voter", "candidate", "mass", "protocol"],
        orient="row",
    ).write_csv(tmp_path / "votes.csv")
    document = report_of(open_source(tmp_path / "votes.csv"))
    page = Page(to_html(document))
    assert all(figure.chart is not None for figure in document.figures())
    assert not {"movement", "labels", "orders"} & {f.name for f in document.figures()}
    assert "What became of the students" not in page.text


def of_stages(*stages):
    """A file of two votes, the second tied, in each of the stages."""
    cast = [("e1", v, "a") for v in "wxyz"] + [
        ("e2", v, c) for v, c in zip("wxyz", "abab", strict=True)
    ]
    return pl.DataFrame(
        [
            (vote, 1, stage, voter, name, int(name == choice), "simple")
            for vote, voter, choice in cast
            for stage in stages
            for name in "abc"
        ],
        schema=["episode_id", "turn", "stage", "voter", "candidate", "mass", "protocol"],
        orient="row",
    )


FILES = {
    "choices": "motion,delegate,choice\nroof,ann,yes\nroof,ben,no\npool,ann,yes\npool,ben,yes\n",
    "ranks": "ann,ben,cem\n1,2,3\n2,1,3\n1,3,2\n",
    "one vote": of_stages("final").write_csv(),
    "two votes": of_stages("initial", "final").write_csv(),
}


@pytest.mark.costly
@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_a_page_of_ballots_from_elsewhere_has_no_word_of_tutors(tmp_path, file):
    (tmp_path / "votes.csv").write_text(file, encoding="utf-8")
    assert foreign_words(to_html(report_of(open_source(tmp_path / "votes.csv")))) == []


def test_a_run_without_episodes_is_not_estimable_and_says_so():
    document = report_of(panel_source())
    assert all(figure.chart is None for figure in document.figures())
    page = Page(to_html(document))
    assert page.text.count("Not estimable") == 3
    assert "The run holds no episode." in page.text


@pytest.mark.costly
@pytest.mark.parametrize("count", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_panels_of_other_sizes_are_drawn(count):
    roles = tuple(f"tutor {'x' * 40 if i == 2 else i}" for i in range(count))
    votes = {role: roles[i % 2] for i, role in enumerate(roles)}
    turn = panel_turn("simple", votes, tie=votes, roles=roles)
    source = panel_source(panel_episode(turn), roles=roles, fallback_order=roles)
    document = report_of(source)
    drawn = {f.name for f in document.figures() if f.chart is not None}
    assert drawn == set(CHARTS) - {"noise", "contrasts"}  # one condition, asked once
    to_html(document)


@pytest.mark.costly
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium on this machine")
def test_a_browser_has_nothing_to_complain_about(rich_page, tmp_path):
    """Every chart is drawn, and the console stays empty, also about the content policy."""
    path = tmp_path / "page.html"
    path.write_text(rich_page, encoding="utf-8")
    found = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
         "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr",
         "--v=0", "--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in found.stderr
    assert found.stdout.count('class="drawing"') == 2 * len(CHARTS)


def test_commands_in_sentences_are_set_as_code(rich_document):
    made = to_html(replace(rich_document, summary="See `tutorsim guide <x>` for 3 more."))
    assert "See <code>tutorsim guide &lt;x&gt;</code> for" in made
