"""`tutorsim rate`: what sheets show and hide, what joins, and every refusal."""

import csv
import io
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from tests.tutorsim.cli.conftest import STUDY, usual_reply, write_run
from tutorsim import open as opened
from tutorsim.analysis.ratings.ratings_section_and_success_by_people import ratings_of
from tutorsim.analysis.ratings.texts_to_rate_as_raters_see import digest_of
from tutorsim.analysis.runs.branch_counts_turns_siblings_share import shared_turns
from tutorsim.analysis.statistics.intervals_and_tests import to_json
from tutorsim.analysis.systems.system_view_opened_run_and_cost import open_run, view_of
from tutorsim.records.ratings import RATINGS_FILE

RUBRIC = """
question = "Does the reply help?"
scale = [1, 2, 3]
threshold = 2.5

[anchors]
1 = "no"
3 = "yes"
"""


def blind_reply(spec, call):
    """Replies in which no model writes its role; a draft differs by its role's length alone."""
    said = usual_reply(spec, call)
    return said.replace(f"{call.key.agent} suggests", f"Try {'very ' * len(call.key.agent)}hard:")


@pytest.fixture(scope="module")
def rateable(tmp_path_factory):
    """A run of panels and single tutors whose texts name nobody."""
    return write_run(tmp_path_factory.mktemp("rateable"), study=STUDY, replies=blind_reply)


class Folder:
    """A run of one's own, a rubric, and the command in it."""

    def __init__(self, path, run, shell):
        self.path, self.run, self._tutorsim = path, path / "run", shell
        shutil.copytree(run, self.run)
        (path / "rubric.toml").write_text(RUBRIC)

    def export(self, *options, name="sheet.csv"):
        given = ("--export", self.path / name, "--rubric", self.path / "rubric.toml", *options)
        return self._tutorsim("rate", self.run, *given)

    def join(self, *files, options=()):
        return self._tutorsim("rate", self.run, "--import", *files, *options)

    def sheets(self, *options):
        said = self.export(*options)
        assert said.code == 0, said.err
        return [Path(line) for line in said.out.splitlines()]

    def found(self):
        """What a summary has under `ratings`."""
        run = open_run(self.run)
        return json.loads(json.dumps(to_json(ratings_of(run)))) if run.ratings else None


@pytest.fixture
def folder(tmp_path, rateable, shell, monkeypatch):
    """A folder to rate in; no recording is looked for, for the run was built without one."""
    monkeypatch.setattr("tutorsim.cli.rate.check_logs", lambda run: None)
    return Folder(tmp_path, rateable.folder, shell)


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_rows(path, rows, delimiter=","):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(text.getvalue().encode())
    return path


def fill(path, scores):
    """A copy of a sheet with scores by item; items left out stay empty."""
    rows = [{**row, "score": str(scores.get(row["item"], ""))} for row in rows_of(path)]
    return write_rows(path.with_name(f"{path.stem}-filled.csv"), rows)


def three_parts(said, what):
    assert said.code == 2
    assert len(told(said)) == 3, said.err
    assert what in said.err


def told(said):
    """Lines of an error; a run without a recording is noted before."""
    return [one for one in said.err.strip().splitlines() if not one.startswith("Note:")]


# --- What sheets show, and what they hide ------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "html"])
@pytest.mark.parametrize("subject", ["replies", "proposals", "answers"])
def test_a_sheet_hides_roles_rules_conditions_and_personas(folder, rateable, form, subject):
    said = folder.export("--of", subject, "--items", 60, name=f"sheet.{form}")
    assert said.code == 0
    study = rateable.run.panel
    hidden = {*study.roles, *study.conditions, *study.personas, "fallback", "vote", "delivered"}
    for path in said.out.splitlines():
        text = Path(path).read_text(encoding="utf-8").rpartition("</style>")[2]
        assert {word for word in hidden if word in text} == set()
        assert all(episode.episode_id not in text for episode in rateable.episodes)


def test_a_sheet_for_a_spreadsheet_says_the_scale_beside_every_item(folder):
    for row in rows_of(folder.sheets()[0]):
        assert "One of 1, 2, 3" in row["scale"]
        assert "3: yes" in row["scale"]


def test_raters_get_the_overlap_and_shares_of_the_rest_each_in_an_order_of_its_own(folder):
    sheets = folder.sheets("--items", 10, "--overlap", 4, "--raters", 3)
    items = [[row["item"] for row in rows_of(path)] for path in sheets]
    assert sorted(map(len, items)) == [6, 6, 6]
    counts = Counter(item for one in items for item in one)
    assert sorted(counts.values()) == [1] * 6 + [3] * 4
    shared = [[item for item in one if counts[item] == 3] for one in items]
    assert len({tuple(one) for one in shared}) > 1


def test_the_same_command_writes_the_same_bytes_and_another_seed_others(folder):
    first, _ = folder.sheets("--items", 8)
    before = first.read_bytes()
    assert folder.sheets("--items", 8)[0].read_bytes() == before
    said = folder.export("--items", 8, "--seed", 1)
    three_parts(said, "is there already, and is another file")
    elsewhere = first.with_name("elsewhere.csv")
    first.rename(elsewhere)
    for target in (elsewhere, first.with_name("nowhere.csv")):
        first.symlink_to(target)
        three_parts(folder.export("--items", 8), "is there already, and is another file")
        first.unlink()
    assert not first.with_name("nowhere.csv").exists()
    elsewhere.rename(first)
    assert first.read_bytes() == before


def test_a_larger_draw_of_a_seed_holds_a_smaller_one(folder):
    small = {row["item"] for row in rows_of(folder.sheets("--items", 4, "--raters", 1)[0])}
    said = folder.export("--items", 9, "--raters", 1, name="larger.csv")
    counted = r"9 of \d\d replies, 9 of them for every rater; rubric 'rubric', values 1 to 3\.\n"
    assert re.fullmatch(counted, said.err)
    assert small < {row["item"] for row in rows_of(Path(said.out.strip()))}


def test_a_reply_stands_behind_the_task_and_all_that_was_said_before(folder, rateable):
    shown = {row["shown"] for row in rows_of(folder.sheets("--items", 500)[0])}
    turns = [(e, t) for e in rateable.episodes for t in e.turns if t.turn == 2]
    assert turns
    for episode, turn in turns:
        said = [f"Task:\n{episode.question}", f"Reference answer:\n{episode.reference}"]
        said += [f"Student:\n{episode.attempts[0].text}", f"Tutor:\n{episode.turns[0].delivered}"]
        said += [f"Student:\n{episode.attempts[1].text}"]
        said += [f"The tutor's reply to rate:\n{turn.delivered}"]
        assert "\n\n".join(said) in shown


def test_a_drawn_turn_brings_all_of_its_proposals(folder, rateable):
    shown = {row["shown"] for row in rows_of(folder.sheets("--of", "proposals", "--items", 9)[0])}
    assert 4 <= len(shown) <= 9
    drawn = [
        {p.text for p in turn.proposals_final.values()}
        for episode in rateable.episodes
        for turn in episode.turns
        if turn.decision
    ]
    replies = {text.rpartition("The tutor's reply to rate:\n")[2] for text in shown}
    assert any(proposals <= replies for proposals in drawn)


def test_a_turn_that_continuations_share_is_at_one_place(branched):
    run = open_run(branched.child.folder)
    passages = list(view_of("panel").passages["replies"](run))
    turns = sum(len(e.turns) for e in branched.child.episodes if e.status == "complete")
    shared = shared_turns(branched.child.episodes)
    assert shared
    assert len(passages) == turns - len(shared)


# --- What joins ----------------------------------------------------------------------------------


def hand_made(folder):
    """Two sheets of four replies: rater 1 gives 1, 2, 3, 3 and rater 2 gives 1, 2, 3, 2."""
    first, second = folder.sheets("--items", 4)
    items = sorted(row["item"] for row in rows_of(first))
    given = ((first, (1, 2, 3, 3)), (second, (1, 2, 3, 2)))
    return [fill(path, dict(zip(items, values, strict=True))) for path, values in given]


def test_alpha_of_joined_ratings_is_the_one_computed_by_hand(folder):
    """Of 8 values 2 are 1, 3 are 2 and 3 are 3; only the last item differs, by 2 against 3.

    Interval: observed 2·1²/8; expected 2·(2·3·1² + 2·3·2² + 3·3·1²)/(8·7) = 78/56.
    Ordinal: 1, 2 and 3 lie at 1, 3.5 and 6.5 ratings, so that observed is 2·3²/8 and expected
    2·(2·3·2.5² + 2·3·5.5² + 3·3·3²)/56 = 600/56.
    """
    assert folder.join(*hand_made(folder), options=("--scripted",)).code == 0
    [found] = folder.found()["agreement"]
    assert found["interval"]["value"] == pytest.approx(1 - (2 / 8) / (78 / 56))
    assert found["ordinal"]["value"] == pytest.approx(1 - (18 / 8) / (600 / 56))
    assert found["ordinal"]["value"] == pytest.approx(0.79)
    assert (found["raters"], found["shared"], found["by"]) == (2, 4, "script")
    assert "too few tasks" in found["ordinal"]["over_tasks"]["not_estimable"]


@pytest.mark.costly
def test_a_summary_and_a_report_show_ratings_and_say_who_gave_them(folder, shell):
    folder.join(*hand_made(folder), options=("--scripted",))
    for args in (("summary", folder.run), ("summary", folder.run, "--section", "ratings")):
        said = shell(*args)
        assert "A script filled in sheets in the place of people." in said.out
        assert "0.79" in said.out
    values = shell("summary", folder.run, "--json").json()["values"]
    [found] = values["ratings"]["agreement"]
    assert found["ordinal"]["value"] == pytest.approx(0.79)
    page = folder.path / "report.md"
    assert shell("report", folder.run, "-o", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "## What people say" in text
    assert "| replies | rubric | script | ordinal | 0.79 |" in text


def test_ratings_by_people_are_called_so_and_never_one_figure_with_a_scripts(folder):
    first, second = hand_made(folder)
    folder.join(first)
    folder.join(second, options=("--scripted",))
    found = folder.found()
    assert found["by"] == ["people", "script"]
    values = [(one["by"], one["raters"]) for one in found["agreement"]]
    assert values == [("people", 1), ("script", 1)]


def test_nothing_but_the_ratings_file_changes_and_runs_without_have_no_such_section(folder):
    assert folder.found() is None
    before = {path: path.read_bytes() for path in folder.run.iterdir()}
    folder.join(*hand_made(folder))
    after = {path: path.read_bytes() for path in folder.run.iterdir()}
    assert set(after) - set(before) == {folder.run / RATINGS_FILE}
    assert all(after[path] == data for path, data in before.items())


def test_files_join_one_by_one_as_together_and_half_filled_ones_grow(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")  # no line is cut
    first, second = hand_made(folder)
    folder.join(first, second)
    together = (folder.run / RATINGS_FILE).read_bytes()
    (folder.run / RATINGS_FILE).unlink()
    rows = rows_of(first)
    half = [{**row, "score": row["score"] if row["number"] in "12" else ""} for row in rows]
    folder.join(write_rows(folder.path / "half.csv", half))
    said = folder.join(first, second)
    assert "6 ratings added" in said.err
    assert [line[:8] for line in said.out.splitlines()] == ["Rater 1:", "Rater 2:"]
    assert (folder.run / RATINGS_FILE).read_bytes() == together
    assert folder.join(write_rows(folder.path / "half.csv", half)).code == 0
    assert (folder.run / RATINGS_FILE).read_bytes() == together


def test_what_a_spreadsheet_does_to_a_file_is_read(folder):
    """Rows sorted, semicolons, a byte-order mark, other line ends, a comma for a point."""
    [path] = folder.sheets("--items", 4, "--raters", 1)
    scores = ("1,0", "2", "3,00", "")
    rows = [
        {**row, "score": score, "shown": row["shown"].replace("\n", "\r\n")}
        for row, score in zip(rows_of(path), scores, strict=True)
    ]
    saved = write_rows(folder.path / "saved.csv", rows[::-1], delimiter=";")
    saved.write_bytes(b"\xef\xbb\xbf" + saved.read_bytes())
    assert folder.join(saved).code == 0
    [line] = (folder.run / RATINGS_FILE).read_text().splitlines()
    assert [one["value"] for one in json.loads(line)["ratings"]] == [1.0, 2.0, 3.0]


@pytest.mark.costly
def test_outcomes_by_peoples_scores_hold_the_counted_ones(folder, rateable):
    """Everything rated: the score of a reply is 3 if it is delivered in turn 1, and 1 otherwise."""
    [path] = folder.sheets("--of", "proposals", "--items", 5000, "--raters", 1)
    first = {t.delivered for e in rateable.episodes for t in e.turns if t.turn == 1}
    rows = rows_of(path)
    scores = {r["item"]: 3 if r["shown"].rpartition(":\n")[2] in first else 1 for r in rows}
    assert folder.join(fill(path, scores)).code == 0
    found = folder.found()
    turns = Counter(e.condition for e in rateable.episodes for t in e.turns)
    assert {d["condition"]: d["texts"] for d in found["delivered"]} == turns
    assert all(d["rated"] == d["texts"] for d in found["delivered"])
    logged = [row for row in found["other_rules"] if row["rule"] == row["logged_protocol"]]
    assert {row["logged_protocol"] for row in logged} == set(turns) - {"baseline"}
    for row in found["other_rules"]:
        assert row["turns"] == turns[row["logged_protocol"]]
        assert row["score"]["low"] <= row["score"]["high"]
    for row in logged:
        assert row["score"]["low"] <= row["delivered"] <= row["score"]["high"]


def answer_shown(episode, text):
    head = f"Task:\n{episode.question}\n\nReference answer:\n{episode.reference}"
    return f"{head}\n\nThe student's answer to rate:\n{text}"


def test_success_by_people_is_exact_where_they_rated_every_answer(folder, rateable):
    """People let every second answer pass; success is then counted along the logged path."""
    [path] = folder.sheets("--of", "answers", "--items", 5000, "--raters", 1)
    rows = rows_of(path)
    scores = {row["item"]: 3 if int(row["item"], 16) % 2 else 1 for row in rows}
    folder.join(fill(path, scores))
    passed = {row["shown"]: scores[row["item"]] == 3 for row in rows}
    found = {(row["benchmark"], row["condition"]): row for row in folder.found()["success"]}
    assert set(found) == {(e.benchmark, e.condition) for e in rateable.episodes}
    for (benchmark, condition), row in found.items():
        low = high = 0.0
        group = [
            e for e in rateable.episodes if (e.benchmark, e.condition) == (benchmark, condition)
        ]
        for e in group:
            program = e.benchmark == "humaneval"
            wins = any(
                passed[answer_shown(e, a.text)] and (a.code_passed or not program)
                for a in e.attempts
            )
            open_ = e.success and e.attempts[-1].turn < rateable.run.panel.max_turns
            low += wins
            high += wins or bool(open_)
        values = (row["success"]["low"], row["success"]["high"])
        assert values == (low / len(group), high / len(group))
        assert row["rated"] == row["answers"]


# --- Refusals ----------------------------------------------------------------------------------


def test_either_an_export_or_an_import_is_asked_for(folder, shell):
    three_parts(shell("rate", folder.run), "Give either --export or --import.")
    both = shell("rate", folder.run, "--export", "a.csv", "--import", "b.csv")
    three_parts(both, "Give either --export or --import.")
    three_parts(shell("rate", folder.run, "stray.csv"), "Give either --export or --import.")


def test_no_sheet_is_made_of_what_has_no_replies(folder, shell, tmp_path):
    ballots = tmp_path / "ballots.csv"
    ballots.write_text("voter,candidate\n")
    for source, why in (
        (ballots, "Ballots alone say"),
        (tmp_path / "no", "There is no such folder."),
    ):
        said = shell("rate", source, "--export", "a.csv")
        three_parts(said, "no run folder and no recording")
        assert why in " ".join(said.err.split())


def test_a_run_without_a_recording_needs_a_rubric(folder, shell):
    to = ("--export", folder.path / "a.csv")
    three_parts(shell("rate", folder.run, "--of", "answers", *to), "The recording of")
    assert shell("rate", folder.run, *to).code == 0  # replies have a shipped rubric


def test_the_numbers_must_leave_every_rater_an_item(folder):
    three_parts(folder.export("--items", 3, "--overlap", 4), "--overlap 4 is more than --items 3")
    three_parts(folder.export("--items", 2, "--overlap", 0, "--raters", 3), "some have none")
    few = folder.export("--of", "proposals", "--items", 5, "--raters", 9, "--overlap", 0)
    three_parts(few, "some have none")
    assert "by the turn" in few.err


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("scale = [1, 2]", "question = None says nothing"),
        ('question = "Q?"', "scale = None is no list of numbers"),
        ('question = "Q?"\nscale = [2, 1]', "cannot be used"),
        ('question = "Q?"\nscale = [1]', "cannot be used"),
        ('question = "Q?"\nscale = [1, true]', "is no list of numbers"),
        ('question = "Q?"\nscale = [1, 2]\nthreshold = 1', "parts nothing"),
        ('question = "Q?"\nscale = [1, 2]\nlevels = 3', "levels is no key of a rubric"),
        ('question = "Q?"\nscale = [1, 2]\n[anchors]\n3 = "x"', "'3' is not on the scale"),
        ('question = "Q?"\nscale = [0, 0.5]\n[anchors]\n0.5 = "x"', "says nothing"),
        ('question = "Q?"\nscale = [1, 2]\n[anchors]\ngood = "x"', "'good' is no number"),
        ("question = ", "it cannot be read"),
    ],
)
def test_a_rubric_that_cannot_be_used_is_refused(folder, text, what):
    (folder.path / "rubric.toml").write_text(text)
    three_parts(folder.export(), what)


def changed(path, change):
    rows = rows_of(path)
    change(rows)
    return write_rows(path.with_name("changed.csv"), rows)


def set_(column, value, place=0):
    def change(rows):
        for row in rows if place is None else [rows[place]]:
            row[column] = value

    return change


def another_rubric(rows):
    for row in rows:
        row["survey"] = row["survey"].replace("Does the reply help?", "Is the reply short?")


def another_study(rows):
    for row in rows:
        row["survey"] = row["survey"].replace('"recording_digest": "0', '"recording_digest": "f')


def unknown_item(rows):
    """A text and its digest that fit each other, and that the run does not have."""
    rows[0]["shown"] += " More."
    rows[0]["item"] = digest_of(rows[0]["shown"])


REFUSED = {
    "an altered text": (lambda rows: set_("shown", "Task:\nx")(rows), "was altered"),
    "an unknown item": (unknown_item, "the run has no item"),
    "a missing row": (lambda rows: rows.pop(), "is not the sheet that it was"),
    "a doubled row": (lambda rows: rows.append(dict(rows[0])), "is not the sheet that it was"),
    "another rater": (set_("rater", "2", None), "is not the sheet that it was"),
    "two raters": (set_("rater", "2"), "2 different values of `rater`"),
    "another order": (set_("number", "99"), "is not the sheet that it was"),
    "another rubric": (another_rubric, "is not the sheet that it was"),
    "another study": (another_study, "was made from another recording"),
    "no number": (set_("number", "one"), "is not as it was written"),
    "no survey": (set_("survey", "{}", None), "is not as it was written"),
    "a value beyond the scale": (set_("score", "4"), "the score '4' is not on the scale"),
    "a value between": (set_("score", "1.5"), "the score '1.5' is not on the scale"),
    "a word": (set_("score", "good"), "the score 'good' is not on the scale"),
    "infinity": (set_("score", "inf"), "the score 'inf' is not on the scale"),
    "nothing rated": (set_("score", "", None), "holds no rating"),
    "no column": (lambda rows: [row.pop("survey") for row in rows], "no column 'survey'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_altered_sheet_is_refused_and_nothing_is_lost(folder, name):
    change, what = REFUSED[name]
    first, second = hand_made(folder)
    folder.join(second)
    before = (folder.run / RATINGS_FILE).read_bytes()
    three_parts(folder.join(changed(first, change)), what)
    assert (folder.run / RATINGS_FILE).read_bytes() == before


def test_of_several_files_none_joins_where_one_is_refused(folder):
    first, second = hand_made(folder)
    three_parts(folder.join(first, changed(second, set_("score", "9"))), "not on the scale")
    assert not (folder.run / RATINGS_FILE).exists()


def test_files_that_are_no_sheets_are_refused(folder):
    path = folder.path / "no.csv"
    three_parts(folder.join(path), "cannot be read")
    for content in (b"\xff\xfe\x00", b'a,b\n"1"2,3\n'):
        path.write_bytes(content)
        three_parts(folder.join(path), "cannot be read")
    path.write_text("a,b\n1,2\n")
    three_parts(folder.join(path), "is no rating sheet")
    [sheet] = folder.sheets("--raters", 1, "--items", 3)
    path.write_text(sheet.read_text().splitlines()[0] + "\n")
    three_parts(folder.join(path), "has no row")
    path.write_text(path.read_text() + "1,cut\n")
    three_parts(folder.join(path), "cut short")


def test_a_rater_who_says_something_else_is_refused_and_the_first_word_stays(folder):
    first, second = hand_made(folder)
    folder.join(first, second)
    before = (folder.run / RATINGS_FILE).read_bytes()
    other = set_("score", "1" if rows_of(first)[0]["score"] != "1" else "2")
    three_parts(folder.join(changed(first, other)), "before.")
    three_parts(folder.join(first, options=("--scripted",)), "as filled in by a person")
    assert (folder.run / RATINGS_FILE).read_bytes() == before


def test_a_damaged_or_foreign_ratings_file_is_told(folder, shell):
    folder.join(*hand_made(folder))
    path = folder.run / RATINGS_FILE
    text = path.read_text()
    path.write_text(text.replace('"recording_digest":"0', '"recording_digest":"f'))
    shell("summary", folder.run).fails(4, "holds ratings of another run")
    path.write_text(text[:50])
    said = shell("report", folder.run, "-o", folder.path / "r.md")
    said.fails(4, "cannot be read")
    assert len(told(said)) == 3


def test_each_rating_can_be_taken_out(folder, shell, tmp_path):
    """One row a rating, with where the text stands; without ratings there is no such table."""
    assert "sheet_ratings" not in opened(folder.run).tables
    sheets = folder.sheets("--items", 6, "--raters", 2, "--overlap", 3)
    for path in sheets:
        scores = {row["item"]: 1 + at % 3 for at, row in enumerate(rows_of(path))}
        assert folder.join(fill(path, scores)).code == 0
    assert shell("export", folder.run, "-o", tmp_path / "tables").code == 0
    frame = pl.read_parquet(tmp_path / "tables" / "sheet_ratings.parquet")
    assert frame.drop("provenance").equals(opened(folder.run).table("sheet_ratings"))
    assert Counter(frame["rater"]) == {n: len(rows_of(p)) for n, p in enumerate(sheets, start=1)}
    assert set(frame["value"]) == {1.0, 2.0, 3.0}
    episodes = pl.read_parquet(tmp_path / "tables" / "episodes.parquet")
    assert set(frame["episode_id"]) <= set(episodes["episode_id"])
    assert set(frame["by"]) == {"people"}
    assert frame["places"].min() > 0
