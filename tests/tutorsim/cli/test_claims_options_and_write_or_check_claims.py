"""Claims on the command line: written by `report` and `summary`, computed again by `verify`."""

import json
import re
from collections import Counter
from io import StringIO
from pathlib import Path

import pytest

from tutorsim.analysis.claims.claims_file_and_check_of_claims import Claim
from tutorsim.analysis.claims.claims_of_printed_numbers_and_page_recomputed import (
    NAMES,
    claims_in,
    numbers_in,
)
from tutorsim.analysis.pages.document_as_json_and_as_claims import document_parts
from tutorsim.analysis.systems.any_summary_or_report_reply_endings_noise_floor import document_of
from tutorsim.analysis.systems.system_view_opened_run_and_cost import Asked, opened
from tutorsim.cli.claims_options_and_write_or_check_claims import Options, _beside, page_claims
from tutorsim.cli.console_progress_and_safe_text import console_for
from tutorsim.cli.printed_prose_and_tables_and_published_files import print_all
from tutorsim.cli.terminal_documents import document_shown
from tutorsim.kernel.cost_plan import load_prices
from tutorsim.runner.find_and_check_recording import bundled_recording

ROOT = Path(__file__).parents[3]
FLIP = "summary.table-diagnostics.simple.turns"


@pytest.fixture(scope="session")
def claims_once(recorded_once, tmp_path_factory):
    """The claims of the summary of the small recording."""
    from tutorsim.analysis.claims.claims_file_and_check_of_claims import to_text

    return to_text(page_claims(recorded_once.log, "summary", Options()))


@pytest.fixture
def claims(claims_once, tmp_path):
    """A file of them, to be changed."""
    path = tmp_path / "page.claims.json"
    path.write_text(claims_once, encoding="utf-8")
    return path


def change(path, id_=FLIP, **values):
    """Alter a claim, or the head of the file if no claim is named."""
    found = json.loads(path.read_text(encoding="utf-8"))
    [what] = [one for one in found["claims"] if one["id"] == id_] if id_ else [found]
    what.update(values)
    path.write_text(json.dumps(found), encoding="utf-8")


def printed_in(*texts):
    """How often each number is printed; digits of names are none."""
    names = re.compile("|".join(NAMES.values()))
    return Counter(
        number for text in texts for number in re.findall(r"\d+(?:[.,]\d+)*", names.sub("", text))
    )


def test_a_full_summary_prints_no_number_that_is_no_claim(built):
    """Compared by how often each is printed."""
    found = document_of(opened(built.folder, asked=Asked(load_prices())), brief=True)
    written = StringIO()
    print_all(console_for(written), document_shown(found, full=True))
    text = written.getvalue()
    claims = claims_in(document_parts(found, "summary"), "stand-in")
    assert len(claims) > 200
    assert printed_in(text) - printed_in(*(claim.printed for claim in claims)) == Counter()
    assert len({claim.id for claim in claims}) == len(claims)
    assert all(any(numbers_in(claim.printed)) for claim in claims)


@pytest.mark.parametrize(
    ("printed", "interval", "beside"),
    [("0.4", (0.1, 0.9), " [0.1, 0.9]"), ("0.4 [0.1, 0.9]", (0.1, 0.9), ""), ("0.4", None, "")],
)  # fmt: skip
def test_an_interval_in_columns_of_its_own_is_told_beside_its_number(printed, interval, beside):
    told = {"id": "a", "question": "", "value": 0.4, "provenance": "", "printed": printed}
    assert _beside(Claim(**told, interval=interval)) == beside


@pytest.mark.costly
@pytest.mark.parametrize("page", ["report", "summary"])
@pytest.mark.parametrize("run", ["branched", "with_failures", "empty_run", "several_formats"])
def test_ids_are_unique_whatever_the_run(page, run, request):
    built = request.getfixturevalue(run)
    folder = built.child.folder if run == "branched" else built.folder
    claims = page_claims(folder, page, Options()).claims
    assert len({claim.id for claim in claims}) == len(claims)
    assert all(claim.id.startswith(f"{page}.") for claim in claims)


@pytest.mark.costly
def test_the_report_writes_claims_beside_itself_and_nowhere_else(shell, built, tmp_path):
    before = sorted(built.folder.iterdir())
    told = shell("report", built.folder, "-o", tmp_path / "a.md", "--json")
    value = json.loads(told.out)
    assert value["claims"] == str(tmp_path / "a.claims.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.claims.json", "a.md"]
    assert sorted(built.folder.iterdir()) == before
    none = shell("report", built.folder, "-o", tmp_path / "b.md", "--no-claims", "--json")
    assert json.loads(none.out)["claims"] is None
    assert not (tmp_path / "b.claims.json").exists()
    elsewhere = tmp_path / "new" / "c.json"
    shell("report", built.folder, "-o", tmp_path / "b.md", "--claims", elsewhere)
    lines = [path.read_text().splitlines() for path in (elsewhere, tmp_path / "a.claims.json")]
    [apart] = [a for a, b in zip(*lines, strict=True) if a != b]
    assert apart.startswith('  "drawn": {"name": "b.md"')


def test_options_that_cannot_be_met_are_refused_before_anything_is_written(shell, built, tmp_path):
    page, claims = tmp_path / "a.html", tmp_path / "c.json"
    refused = [
        ("report", built.folder, "-o", page, "--claims", claims, "--no-claims"),
        ("report", built.folder, "-o", tmp_path / "a.svg", "--chart", "wins", "--claims", claims),
        ("summary", built.folder, "--claims", claims),
        ("verify", built.folder, "--claim", "poster.a.1"),
        ("verify", built.folder, "--claim", "tutorsim:abc#report.a.1"),
        ("verify", built.folder, "--claims", claims),
        ("verify", built.folder, "--page", page),
        ("verify", tmp_path / "nothing", "--claim", FLIP),
        ("verify", built.folder, "--claim", FLIP, "--junit", tmp_path / "j.xml"),
        ("verify", built.folder, "--claim", FLIP, "--against", built.folder),
        ("verify", built.folder, "--claim", FLIP, "--wordings", "current"),
    ]
    for words in refused:
        told = shell(*words)
        assert told.code == 2, words
        assert told.err.startswith("Error: "), words
        assert len(told.err.strip().splitlines()) >= 2, words
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "name", "more"),
    [
        ("report", "a.html", ()),
        ("summary", "a.json", ("--full",)),
        ("recount", "a.txt", ()),
        ("diverge", "a.txt", ("--rule", "ranked")),
        ("compare", "a.txt", ()),
    ],
)
def test_a_command_and_its_claims_never_go_to_one_file(command, name, more, shell, built, tmp_path):
    one = tmp_path / name
    runs = [built.folder] * (2 if command == "compare" else 1)
    said = shell(command, *runs, *more, "-o", one, "--claims", one)
    said.fails(2, "'s file and that of its claims. Name two files.")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.costly
def test_claims_of_a_recording_hold(recorded_once, claims, shell):
    told = shell("verify", recorded_once.cassettes, "--claims", claims)
    assert told.code == 0
    number = len(json.loads(claims.read_text())["claims"])
    assert f"{number} of {number} claims hold. Answered by relay: " in told.out
    assert "4 of 4 episodes" in told.out


@pytest.mark.costly
@pytest.mark.parametrize(
    ("id_", "values", "said"),
    [
        (FLIP, {"value": 99}, "value 99"),
        (FLIP, {"printed": "99"}, "claimed     99"),
        (FLIP, {"interval": [1, 2]}, "interval [1, 2]"),
        (FLIP, {"provenance": "api"}, "from api"),
        (FLIP, {"question": "How many spins?"}, "asked as “How many spins?”"),
        (FLIP, {"id": "summary.table-diagnostics.simple.spins"}, "is no number of the page"),
        ("", {"provenance": {"kind": "api", "name": "real"}}, "What answered the calls?"),
        ("", {"digest": "0" * 64}, "claims numbers of another recording"),
    ],
)
def test_an_altered_claim_is_named(recorded_once, claims, shell, id_, values, said):
    change(claims, id_, **values)
    told = shell("verify", recorded_once.cassettes, "--claims", claims)
    assert told.code == 1
    assert said in told.out + told.err
    if id_:
        assert values.get("id", FLIP) in told.out


def test_what_differs_is_listed_as_json(recorded_once, claims, shell):
    change(claims, value=99)
    told = shell("verify", recorded_once.cassettes, "--claims", claims, "--json")
    value = json.loads(told.out)["claims"]
    [one] = value["differing"]
    assert (one["id"], one["claimed"].split("; ")[1]) == (FLIP, "value 99")
    assert one["question"] == "How the panels decided: turns (protocol: simple)"
    assert (value["missing"], value["unknown"]) == ([], [])


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("recount", ("--targets", "schulze,copeland", "--exempt", "0,1", "--full")),
        pytest.param(
            "recount",
            ("--score", "veto=1,1,1,0", "--threshold", "0.5", "--section", "rules"),
            marks=pytest.mark.costly,
        ),
        ("compare", ("--full",)),
        ("compare", ("second",)),
        ("diverge", ("--rule", "approval", "--ties", "set")),
    ],
)
def test_claims_of_commands_hold_and_a_wrong_one_is_named(shell, built, tmp_path, command, options):
    """Under the options that it was asked with; of two runs, beside the second."""
    two, claims = options == ("second",), tmp_path / "c.json"
    asked = (built.folder,) if two else options
    told = shell(command, built.folder, *asked, "--claims", claims, columns=1000)
    assert told.code == 0, told.err
    found = json.loads(claims.read_text(encoding="utf-8"))["claims"]
    assert found
    assert printed_in(told.out) - printed_in(*(one["printed"] for one in found)) == Counter()
    check = ("verify", built.folder, "--claims", claims)
    beside = ("--beside", built.folder) if two else ()
    shell(*check, *beside).tells(f"{len(found):,} of {len(found):,} claims hold")
    if two:
        assert "--beside RUN" in shell(*check).err
    change(claims, found[-1]["id"], value=-99)
    altered = shell(*check, *beside)
    assert (altered.code, f"{found[-1]['id']} differs" in altered.out) == (1, True)


@pytest.mark.costly
def test_a_removed_claim_is_missing_unless_the_file_is_an_excerpt(recorded_once, claims, shell):
    found = json.loads(claims.read_text(encoding="utf-8"))
    found["claims"] = [one for one in found["claims"] if one["id"] != FLIP]
    claims.write_text(json.dumps(found), encoding="utf-8")
    told = shell("verify", recorded_once.cassettes, "--claims", claims)
    assert told.code == 1
    assert f"{FLIP} is printed, and not claimed" in told.out
    change(claims, "", excerpt=True)
    assert shell("verify", recorded_once.cassettes, "--claims", claims).code == 0


def test_one_number_is_asked_for_by_its_citation(recorded_once, claims, shell):
    digest = json.loads(claims.read_text(encoding="utf-8"))["digest"]
    said = shell("verify", recorded_once.cassettes, "--claim", f"tutorsim:{digest[:12]}#{FLIP}")
    said.tells("How the panels decided: turns (protocol: simple)", f"tutorsim:{digest[:12]}#{FLIP}")
    said = shell("verify", recorded_once.cassettes, "--claim", f"tutorsim:{'0' * 12}#{FLIP}")
    said.fails(1, "cites another recording")
    asked = ("verify", recorded_once.cassettes, "--claims", claims, "--claim")
    said = shell(*asked, f"tutorsim:{'0' * 12}#{FLIP}")
    said.fails(1, "The digest of the claims of")
    shell("verify", recorded_once.cassettes, "--claim", f"{FLIP}s").fails(1, f"Most alike: {FLIP}")


@pytest.mark.costly
def test_one_claim_of_a_file_is_checked_alone(recorded_once, claims, shell):
    change(claims, value=99)
    other = "summary.table-diagnostics.simple.final-vote-tied"
    asked = ("verify", recorded_once.cassettes, "--claims", claims, "--claim")
    assert shell(*asked, other).code == 0
    told = shell(*asked, FLIP)
    assert (told.code, "0 of 1 claims hold; 1 differs." in told.out) == (1, True)


@pytest.mark.costly
def test_a_damaged_recording_computes_no_claim(recorded, claims, shell):
    (recorded.cassettes / "sciq.ice.help_avoidant.simple.json").unlink()
    told = shell("verify", recorded.cassettes, "--claims", claims)
    told.fails(3, "No claim was computed again")
    assert "claims hold" not in told.out


def test_ballots_from_elsewhere_are_their_own_recording(shell, tmp_path):
    ballots, claims = tmp_path / "b.csv", tmp_path / "c.json"
    head = "episode_id,turn,stage,wer,candidate,mass\n"
    ballots.write_text(head + "e,1,vote_final,a,x,1\ne,1,vote_final,b,y,1\n", encoding="utf-8")
    how = ("--map", "voter=wer", "--protocol", "simple")
    assert shell("summary", ballots, "--full", "--claims", claims, *how).code == 0
    shell("verify", ballots, "--claims", claims).tells("claims hold. Answered by elsewhere")
    renamed = ballots.rename(tmp_path / "d.csv")
    assert shell("verify", renamed, "--claims", claims).code == 0
    change(claims, "", options={"hints": {"protocol": 1}})
    shell("verify", renamed, "--claims", claims).fails(2, "its options cannot be read")
    with renamed.open("a", encoding="utf-8") as file:
        file.write("e,2,vote_final,a,x,1\n")
    change(claims, "", options={})
    other = shell("verify", renamed, "--claims", claims)
    assert "claims numbers of other ballots" in other.err


@pytest.mark.parametrize("option", ["output", "colour"])
def test_claims_are_asked_again_with_options_that_change_numbers_alone(shell, tmp_path, option):
    ballots, claims = tmp_path / "b.csv", tmp_path / "c.json"
    ballots.write_text("voter,choice\nv,a\nw,b\nx,a\n", encoding="utf-8")
    assert shell("recount", ballots, "--claims", claims).code == 0
    change(claims, "", options={"asked": {option: "x"}})
    shell("verify", ballots, "--claims", claims).fails(2, f"It has no option '{option}'")


@pytest.mark.costly
@pytest.mark.parametrize("name", ["claude", "debate", "group", "oversight", "oversight-audit"])
def test_a_summary_of_any_system_prints_no_number_that_is_no_claim(shell, tmp_path, name):
    claims = tmp_path / "c.json"
    wide = 1000  # a table in parts would print the names of its rows in each
    told = shell("summary", bundled_recording(name), "--full", "--claims", claims, columns=wide)
    lines = told.out.splitlines()
    text = "\n".join(line for line in lines if not line.startswith("Answered by: "))
    found = json.loads(claims.read_text(encoding="utf-8"))["claims"]
    assert printed_in(text) - printed_in(*(claim["printed"] for claim in found)) == Counter()


@pytest.mark.costly
def test_the_bundled_report_s_claims_hold_and_an_altered_one_is_named(shell, tmp_path):
    recording, bundled = bundled_recording(), ROOT / "reports" / "demo.claims.json"
    assert recording is not None
    shell("verify", recording, "--claims", bundled).tells("so does what demo.html prints")
    altered = tmp_path / "altered.json"
    altered.write_bytes(bundled.read_bytes())
    turns = "report.table-diagnostics.simple.turns"
    change(altered, turns, value=54)
    told = shell("verify", recording, "--claims", altered)
    assert (told.code, f"{turns} differs" in told.out) == (1, True)
    number = len(json.loads(bundled.read_text(encoding="utf-8"))["claims"])
    assert f"{number - 1:,} of {number:,} claims hold; 1 differs." in told.out


@pytest.mark.costly
@pytest.mark.parametrize("form", ["html", "md"])
@pytest.mark.parametrize("bound", [True, False])
def test_a_number_that_is_altered_in_the_page_is_named(shell, tmp_path, form, bound):
    """Also where nothing in the claims says what the page's bytes were."""
    run, page = bundled_recording("group"), tmp_path / f"p.{form}"
    claims = tmp_path / "p.claims.json"
    assert shell("report", run, "-o", page).code == 0
    shell("verify", run, "--claims", claims).tells(f"so does what p.{form} prints")
    text = page.read_text(encoding="utf-8")
    number = r'(value="3">)3(</data>)' if form == "html" else r"(^\| [^\n]*\| )3( \|)"
    altered, n = re.subn(number, r"\g<1>99\2", text, count=1, flags=re.MULTILINE)
    assert n == 1
    page.write_text(altered, encoding="utf-8", newline="\n")
    if not bound:
        change(claims, "", drawn=None)
    told = shell("verify", run, "--claims", claims)
    assert (told.code, "99" in told.out) == (1, True)
    assert ("SHA-256" in told.out) == bound
    moved = page.rename(tmp_path / f"moved.{form}")
    if bound:
        shell("verify", run, "--claims", claims).tells(f"p.{form} is not beside")
    assert shell("verify", run, "--claims", claims, "--page", moved).code == 1
