"""The file of claims."""

import json

import pytest

from tutorsim.analysis.claims.claims_file_and_check_of_claims import (
    Claim,
    ClaimsFile,
    check_claims,
    chosen,
    cited,
    read_claims,
    to_text,
)
from tutorsim.errors import CheckFailed, ClaimsError

CLAIM = Claim(
    id="report.a.1",
    question="How many?",
    printed="0.5 [0.1, 0.9]",
    value=0.5,
    interval=(0.1, 0.9),
    provenance="stand-in",
)
FILE = ClaimsFile(
    claims_version=1, page="report", digest="ab" * 32, digest_of="recording", name="demo",
    provenance={"kind": "stand-in"}, made_by="tutorsim 0", options={}, excerpt=False,
    claims=(CLAIM, CLAIM.model_copy(update={"id": "report.a.2", "interval": None})),
)  # fmt: skip


def test_a_file_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(to_text(FILE), encoding="utf-8")
    assert read_claims(path) == FILE
    assert sum('"id": ' in line for line in to_text(FILE).splitlines()) == len(FILE.claims)


def test_each_claim_says_how_to_compute_it_again():
    first, second = json.loads(to_text(FILE))["claims"]
    assert first["command"] == "tutorsim verify RECORDING --claim report.a.1"
    assert "interval" not in second
    with_options = FILE.model_copy(update={"options": {"prices": {}}, "digest_of": "ballots"})
    assert with_options.command(CLAIM) == "tutorsim verify BALLOTS --claims FILE --claim report.a.1"


def changed(**values):
    return json.dumps(json.loads(to_text(FILE)) | values)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Line 1, column 2"),
        ("[" * 100_000, "cannot be read as claims"),
        (changed(claims=float("nan")), "NaN is no number"),
        ("[]", "holds no claims"),
        ("{}", "holds no claims"),
        (changed(claims_version=3), "version 3"),
        (changed(claims_version=True), "version True"),
        (changed(claims=[{"id": "x"}]), "claims.0.question"),
        (changed(claims=[CLAIM.model_dump() | {"value": "0.5"}]), "claims.0.value"),
        (changed(claims=[CLAIM.model_dump() | {"interval": [1]}]), "claims.0.interval"),
        (changed(claims=[CLAIM.model_dump(), CLAIM.model_dump()]), "more than once"),
        (changed(page="poster"), "page"),
        (changed(more=1), "more"),
    ],
)
def test_a_file_that_is_none_is_refused_in_three_parts(tmp_path, text, said):
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ClaimsError) as refused:
        read_claims(path)
    assert said in str(refused.value)
    assert len(str(refused.value).splitlines()) == 3


def test_an_absent_file_is_refused(tmp_path):
    with pytest.raises(ClaimsError, match="No such file"):
        read_claims(tmp_path / "none.json")


def test_a_citation_is_taken_apart():
    assert cited("tutorsim:ABCDEF012345#report.a.1") == ("abcdef012345", "report.a.1")
    assert cited("report.a.1") == ("", "report.a.1")
    for text in ("tutorsim:abc#report.a.1", "tutorsim:abcdef012345", "tutorsim:abcdef012345#"):
        with pytest.raises(ClaimsError) as refused:
            cited(text)
        assert len(str(refused.value).splitlines()) == 3


# --- Claims beside the same numbers, computed again ----------------------------------------------


NUMBERED = tuple(
    CLAIM.model_copy(update={"id": f"report.a.{n}", "question": f"How many {n}?", "value": n / 10,
                             "printed": f"0.{n} [0.1, 0.9]"})
    for n in range(1, 5)
)  # fmt: skip
STATED = {"kind": "stand-in", "name": "scripted"}
NOW = FILE.model_copy(update={"claims": NUMBERED, "provenance": STATED})


def claiming(*, drop=(), **values):
    """The file with the first claim changed, and claims of some ids dropped."""
    first = NOW.claims[0].model_copy(update=values)
    kept = (c for c in (first, *NOW.claims[1:]) if c.id not in drop)
    return NOW.model_copy(update={"claims": tuple(kept)})


def test_what_is_recomputed_holds():
    found = check_claims(NOW, NOW)
    assert found.holds
    assert found.same == 4


@pytest.mark.parametrize(
    ("values", "claimed", "recomputed"),
    [
        ({"value": 0.2}, "0.1 [0.1, 0.9]; value 0.2", "0.1 [0.1, 0.9]; value 0.1"),
        ({"printed": "0.7"}, "0.7", "0.1 [0.1, 0.9]"),
        ({"interval": (0.1, 0.8)}, "0.1 [0.1, 0.9]; interval [0.1, 0.8]",
         "0.1 [0.1, 0.9]; interval [0.1, 0.9]"),
        ({"interval": None}, "0.1 [0.1, 0.9]; interval none",
         "0.1 [0.1, 0.9]; interval [0.1, 0.9]"),
        ({"question": "How many 2?"}, "0.1 [0.1, 0.9]; asked as “How many 2?”",
         "0.1 [0.1, 0.9]; asked as “How many 1?”"),
        ({"provenance": "api"}, "0.1 [0.1, 0.9]; from api", "0.1 [0.1, 0.9]; from stand-in"),
    ],
)  # fmt: skip
def test_whatever_was_altered_is_named(values, claimed, recomputed):
    found = check_claims(claiming(**values), NOW)
    assert found.differing == (("report.a.1", "How many 1?", claimed, recomputed),)
    assert (found.same, found.holds) == (3, False)


def test_missing_and_unknown_claims_are_told_apart():
    found = check_claims(claiming(id="report.b.1", drop=["report.a.4"]), NOW)
    assert [c.id for c in found.unknown] == ["report.b.1"]
    assert [c.id for c in found.missing] == ["report.a.1", "report.a.4"]
    assert (found.differing, found.same, found.holds) == ((), 2, False)


def test_an_excerpt_may_leave_claims_out():
    cut = claiming(drop=["report.a.4"])
    assert not check_claims(cut, NOW).holds
    assert check_claims(cut.model_copy(update={"excerpt": True}), NOW).holds


def test_another_provenance_or_name_in_the_head_is_named():
    other = NOW.model_copy(update={"provenance": {"kind": "api", "name": "scripted"}, "name": "x"})
    found = check_claims(other, NOW)
    assert [one.id for one in found.differing] == ["(name)", "(provenance)"]
    assert not found.holds


def test_ids_are_chosen_and_the_nearest_named():
    assert chosen(NOW, ["report.a.3"])[0].value == 0.3
    with pytest.raises(CheckFailed, match=r"Most alike: report\.a\.4"):
        chosen(NOW, ["report.a.44"])
    many = tuple(CLAIM.model_copy(update={"id": f"report.a.{n}"}) for n in range(1, 6))
    with pytest.raises(CheckFailed, match=r"Most alike: (report\.a\.\d(, )?){3}\."):
        chosen(NOW.model_copy(update={"claims": many}), ["report.a.44"])
    with pytest.raises(CheckFailed, match="lists all"):
        chosen(NOW, ["zzzz"])
