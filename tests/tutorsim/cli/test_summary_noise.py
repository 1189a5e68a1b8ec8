"""The summary sets what was logged beside what re-asking changes, and says which is which."""

import json
import shutil

import pytest

from tutorsim.records import (
    RETEST_FILE,
    RETEST_HEAD_FILE,
    Provenance,
    RetestHead,
    RetestRecord,
    RetestVote,
    to_line,
)


@pytest.fixture
def retested(built, tmp_path):
    """A run of which every first vote was asked again, with the same answers in another order.

    Each voter's answers are those of the next voter, so that some change.
    """
    folder = tmp_path / "retested"
    shutil.copytree(built.folder, folder)
    records = []
    for episode in built.episodes:
        votes = []
        for turn in episode.turns:
            first = turn.ballots_initial
            if first:
                moved = [
                    a.model_copy(update={name: getattr(b, name) for name in ("parsed", "mass")})
                    for a, b in zip(first, (*first[1:], first[0]), strict=True)
                ]
                votes.append(
                    RetestVote(turn=turn.turn, stage="vote_initial", repeats=(tuple(moved),))
                )
        records.append(RetestRecord(episode_id=episode.episode_id, votes=tuple(votes)))
    head = RetestHead(
        recording_digest="0" * 64,
        repeats=1,
        stages=("vote_initial",),
        provenance=Provenance(kind="stand-in", name="asked again", models=("model-c",)),
    )
    lines = "".join(to_line(record) + "\n" for record in records)
    (folder / RETEST_FILE).write_text(lines, encoding="utf-8")
    (folder / RETEST_HEAD_FILE).write_text(to_line(head) + "\n", encoding="utf-8")
    return folder


def test_without_a_retest_the_floor_is_said_to_be_unknown(tutorsim, built):
    assert (
        "the noise floor, is unknown: each vote was asked for once."
        in tutorsim("summary", built.folder, "--full").stdout
    )
    value = json.loads(tutorsim("summary", built.folder, "--json").stdout)["values"]
    assert "not_estimable" in value["noise_floor"]


def test_logged_and_re_asked_figures_have_columns_of_their_own(tutorsim, retested):
    text = tutorsim("summary", retested, "--full").stdout
    assert "is unknown" not in text
    [heads] = [line for line in text.splitlines() if "re-asked" in line and "left" in line]
    assert heads.split() == [
        "protocol",
        "what",
        "turns",
        "asked",
        "again",
        "logged",
        "re-asked",
        "left",
    ]
    assert "Asked again 1 × by stand-in: asked again, model-c." in text


def test_the_floor_is_in_the_summarys_json(tutorsim, retested):
    floor = json.loads(tutorsim("summary", retested, "--json").stdout)["values"]["noise_floor"]
    assert (floor["repeats"], floor["stages"]) == (1, ["vote_initial"])
    assert {row["quantity"] for row in floor["beside"]} == {"flip", "flip_set", "leader", "shift"}
    for row in floor["beside"]:
        if row["turns"]:
            left = row["logged"]["value"] - row["floor"]["value"]
            assert row["left"]["value"] == pytest.approx(left)
