"""Logs: what is written is read back, and what is no log is refused."""

import hashlib
import json
from dataclasses import FrozenInstanceError, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tutorsim import records
from tutorsim.errors import LogError
from tutorsim.records.gold_labels_of_one_annotation import gold_labels
from tutorsim.records.oversight import Labels
from tutorsim.vocabularies import DEFAULT_ROLES

S, M, V, C = DEFAULT_ROLES


@pytest.fixture
def played(make_scene, script):
    """An episode with a tie round, an abstention and a repaired ballot."""
    replies = {
        f"1/vote_final/{S}": "?",
        f"1/vote_final/{M}": f"{S}=1,{M}=1,{V}=1,{C}=0",
        "2/vote_final": f"{S}=13,{M}=12,{V}=0,{C}=0",
        f"2/vote_final/{S}": f"{S}=12,{M}=13,{V}=0,{C}=0",
        f"2/vote_final/{M}": f"{S}=12,{M}=13,{V}=0,{C}=0",
        "student": "Grüße\x0b\x85\u2028\u2029«\x00»\x1b[31m",
    }
    return script(replies).play(make_scene(conditions=["cumulative"], max_turns=2))


@pytest.fixture
def folder(tmp_path, make_study, played):
    """A run folder with two episodes."""
    run = records.RunRecord(
        study=make_study().settings(), study_digest="d", recording_digest="r",
        provenance=records.Provenance(kind="stand-in", name="n", models=("m",)),
        packages={"vcrpy": "9.4"}, episodes=2,
    )  # fmt: skip
    (tmp_path / records.RUN_FILE).write_text(records.to_line(run) + "\n", encoding="utf-8")
    line = records.to_line(played) + "\n"
    (tmp_path / records.EPISODES_FILE).write_text(2 * line, encoding="utf-8", newline="\n")
    return tmp_path


def test_what_is_written_is_read_back(folder, played):
    assert list(records.read_episodes(folder)) == [played, played]
    statuses = [ballot.ballot_status for ballot in played.turns[0].ballots_final]
    assert statuses == ["abstained", "repaired", "valid", "valid"]
    assert played.turns[1].tie_round is not None
    assert records.read_run(folder).study.name == "small"


def test_a_line_that_leaves_nothing_out_is_parsed_once(folder, played, monkeypatch):
    monkeypatch.setattr(json, "loads", None)
    assert list(records.read_episodes(folder)) == [played, played]


def test_fields_that_nobody_looks_at_are_not_read(folder, played):
    [found, *_] = records.read_lines(folder, records.EpisodeRecord, without=frozenset({"calls"}))
    assert isinstance(found, records.EpisodeRecord)
    assert found.calls == ()
    assert played.calls
    assert found.turns == played.turns


def test_a_ballot_has_no_room_for_what_is_not_read_of_it(folder, played):
    """Of a field without a default nothing is there, so that looking at it fails."""
    unread = frozenset({"turns.ballots_final.labels", "turns.ballots_final.raw"})
    [found, *_] = records.read_lines(folder, records.EpisodeRecord, without=unread)
    [ballot, *_], [whole, *_] = found.turns[0].ballots_final, played.turns[0].ballots_final
    assert not hasattr(ballot, "labels")
    assert (whole.raw != "", ballot.raw) == (True, "")
    assert (ballot.mass, ballot.rule) == (whole.mass, whole.rule)
    assert found.turns[1].tie_round == played.turns[1].tie_round
    names = {field.name for field in fields(whole)} - {field.name for field in fields(ballot)}
    assert names == {"labels", "raw"}


def test_a_line_is_one_line_of_plain_json(played):
    line = records.to_line(played)
    assert line.splitlines() == [line]
    assert "Grüße" in line
    assert json.loads(line)["schema_version"] == records.SCHEMA_VERSION
    assert records.to_line(records.EpisodeRecord.model_validate_json(line)) == line


def test_what_a_log_has_most_of_is_small_and_frozen(folder):
    """Ballots and calls hold no dictionary each: many thousand records fit into memory."""
    [record, *_] = records.read_episodes(folder)
    for part in (record.calls[0], record.turns[0].ballots_final[0]):
        assert not hasattr(part, "__dict__")
        with pytest.raises(FrozenInstanceError):
            setattr(part, fields(part)[0].name, "other")


@given(st.text(), st.sampled_from([None, (), ("a", "b"), "a", {"a": 3, "b": 22}]))
def test_any_reply_and_any_choice_survive_the_log(raw, parsed):
    ballot = records.BallotRecord(
        voter="a", protocol="simple", labels={"A": "a"}, raw=raw, parsed=parsed, mass={"a": 1}
    )
    assert TypeAdapter(records.BallotRecord).validate_json(records.to_line(ballot)) == ballot


def test_the_skeleton_of_the_contract_is_there(played):
    data = json.loads(records.to_line(played))
    assert set(data) >= {
        *("schema_version", "episode_id", "benchmark", "task_id", "persona", "condition"),
        *("repeat", "attempts", "turns", "turns_taken", "initial_correctness"),
        *("final_correctness", "initial_code_passed", "code_passed", "success", "status"),
    }
    assert set(data["attempts"][0]) >= {
        *("turn", "text", "score", "score_rationale", "code", "code_passed")
    }
    turn = data["turns"][1]
    assert set(turn) >= {
        *("turn", "proposals_initial", "reviews", "ballots_initial", "proposals_final"),
        *("ballots_final", "tie_round", "decision", "delivered"),
    }
    assert set(turn["proposals_final"]) == set(DEFAULT_ROLES)
    assert set(turn["proposals_final"][S]) >= {"text", "rationale", "confidence"}
    assert set(turn["tie_round"]) == {"candidates", "reviews", "ballots"}
    assert set(turn["decision"]) == {"tallies", "tied_set", "steps", "decided_by", "winner"}
    assert set(turn["ballots_final"][0]) >= {"voter", "labels", "raw", "parsed", "ballot_status"}


def rewrite(folder, change, *, name=records.EPISODES_FILE, line=1):
    """Change one line of a log, as data or as text."""
    lines = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
    text = lines[line - 1]
    if isinstance(change, dict):
        text = json.dumps({**json.loads(text), **change}) + "\n"
    else:
        text = change(text)
    lines[line - 1] = text
    (folder / name).write_text("".join(lines), encoding="utf-8", newline="\n")


BROKEN = {
    "truncated": lambda text: text[: len(text) // 2],
    "empty line": lambda text: "\n",
    "a list": lambda text: "[1]\n",
    "a number": lambda text: "7\n",
    "no JSON": lambda text: "hello\n",
    "too deep": lambda text: "[" * 100_000 + "\n",
    "lone surrogate": lambda text: text.replace("Mostly", r"\ud800"),
    "not a number": lambda text: text.replace('"score":0.1', '"score":NaN'),
    "endless": lambda text: text.replace('"score":0.1', '"score":1e999'),
    "no version": lambda text: text.replace("schema_version", "version"),
    "another version": {"schema_version": 2},
    "version as text": {"schema_version": "1"},
    "no version's value": {"schema_version": None},
    "unknown status": {"status": "fine"},
    "no turns": {"turns": None},
    "turns of another kind": {"turns": [3]},
    "a turn as text": {"turns": ["x"]},
    "turns as a number": {"turns": 3},
    "ballots as text": {"turns": [{"turn": 1, "ballots_final": ["x"]}]},
    "ballots as a number": {"turns": [{"turn": 1, "ballots_final": 4}]},
    "a tie round as text": {"turns": [{"turn": 1, "tie_round": "x"}]},
    "labels as a list": {
        "turns": [{"turn": 1, "ballots_final": [{"voter": "a", "labels": ["x"], "parsed": "x"}]}]
    },
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_broken_line_is_an_error_that_names_file_and_line(folder, change):
    rewrite(folder, change, line=2)
    episodes = records.read_episodes(folder)
    next(episodes)
    with pytest.raises(LogError, match=f"{records.EPISODES_FILE}, line 2") as caught:
        next(episodes)
    assert caught.value.exit_code == 4
    assert caught.value.hint


def test_the_offending_field_is_named(folder):
    rewrite(folder, {"turns_taken": "many"})
    with pytest.raises(LogError, match="field turns_taken"):
        list(records.read_episodes(folder))


def test_further_fields_of_other_programs_are_left_out(folder, played):
    rewrite(folder, {"mood": "good"})
    assert list(records.read_episodes(folder)) == [played, played]


@pytest.mark.parametrize(
    "change", [BROKEN["truncated"], {"schema_version": 7}, {"episodes": "two"}, {"study": 3}]
)
def test_a_broken_run_file_is_an_error_that_names_it(folder, change):
    rewrite(folder, change, name=records.RUN_FILE)
    with pytest.raises(LogError, match=records.RUN_FILE) as caught:
        records.read_run(folder)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("name", [records.RUN_FILE, records.EPISODES_FILE])
def test_a_missing_file_is_an_error(folder, name):
    (folder / name).unlink()
    with pytest.raises(LogError, match="cannot be read") as caught:
        records.read_run(folder), list(records.read_episodes(folder))
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("text", ["[]", "{}", '"x"', "3"])
def test_json_that_is_no_record_says_what_it_lacks(folder, text):
    (folder / records.RUN_FILE).write_text(text)
    with pytest.raises(LogError, match="not a complete record") as caught:
        records.read_run(folder)
    assert caught.value.why == "It has no schema_version."


def test_a_file_in_a_run_s_place_is_called_a_file(tmp_path):
    (tmp_path / "ballots.csv").write_text("voter,choice\n")
    with pytest.raises(LogError, match="cannot be read") as caught:
        records.read_run(tmp_path / "ballots.csv")
    assert caught.value.why == "It is a file, and a run is a folder."


def test_bytes_that_are_no_text_are_an_error(folder):
    (folder / records.EPISODES_FILE).write_bytes(b"\xff\xfe")
    with pytest.raises(LogError, match="cannot be read"):
        list(records.read_episodes(folder))


def test_a_log_that_is_not_the_named_one_is_an_error(folder):
    rewrite(folder, {"episodes_sha256": "0" * 64}, name=records.RUN_FILE)
    with pytest.raises(LogError, match=r"is not the log that run\.json names"):
        records.read_run(folder)


def test_a_log_cut_between_two_lines_is_noticed(folder):
    text = (folder / records.EPISODES_FILE).read_bytes()
    rewrite(folder, {"episodes_sha256": hashlib.sha256(text).hexdigest()}, name=records.RUN_FILE)
    assert records.read_run(folder).episodes == 2
    (folder / records.EPISODES_FILE).write_bytes(text[: len(text) // 2])
    with pytest.raises(LogError, match="is not the log"):
        records.read_run(folder)


def test_masses_are_counted_where_another_program_left_them_out(folder, played):
    data = json.loads(records.to_line(played))
    logged = data["turns"][1]["ballots_final"]
    for ballot in logged:
        del ballot["mass"], ballot["protocol"]
    rewrite(folder, {"turns": data["turns"]})
    read = next(records.read_episodes(folder))
    assert [ballot.mass for ballot in read.turns[1].ballots_final] == [
        ballot.mass for ballot in played.turns[1].ballots_final
    ]


def test_records_do_not_change(played):
    with pytest.raises(ValueError, match="frozen"):
        played.turns_taken = 9


@given(
    st.floats(allow_nan=False, allow_infinity=False) | st.floats(0, 1e-3),
    st.text(st.characters(exclude_categories=["Cs"])),
)
def test_a_line_spells_numbers_and_texts_as_the_standard_library_does(number, text):
    line = records.to_line(records.Attempt(turn=0, text=text, score=number))
    value = {"turn": 0, "text": text, "score": number, "score_rationale": None}
    value |= {"code": None, "code_passed": None, "verdict": None}
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for end in "\x85\u2028\u2029":
        plain = plain.replace(end, f"\\u{ord(end):04x}")
    assert line == plain


def test_limits_of_a_recording_are_written_only_where_there_are_some():
    plain = records.Provenance(kind="relay", name="x")
    assert "limits" not in plain.model_dump(mode="json")
    limited = plain.model_copy(update={"limits": "One voter."})
    assert records.Provenance.model_validate(limited.model_dump(mode="json")) == limited


# --- Labels ---------------------------------------------------------------------------------------


def gold(mistake="Yes", guidance="Yes", revealing="No", **maps):
    annotation = {
        "Mistake_Identification": mistake,
        "Providing_Guidance": guidance,
        "Revealing_of_the_Answer": revealing,
    }
    maps = {"mistake_map": "lenient", "guidance_map": "plain", **maps}
    return gold_labels(annotation, **maps)


def test_to_some_extent_is_a_seen_mistake_under_the_lenient_map_only():
    assert gold("To some extent").mistake == 1
    assert gold("To some extent", mistake_map="strict").mistake == 0
    assert gold("No").mistake == 0


def test_guidance_has_three_degrees():
    assert [gold(guidance=g).guidance for g in ("No", "To some extent", "Yes")] == [0, 1, 2]


def test_any_revealed_answer_leaves_no_guidance_under_that_map():
    for text in ("Yes (and the answer is correct)", "Yes (but the answer is incorrect)"):
        assert gold(revealing=text).guidance == 2
        assert gold(revealing=text, guidance_map="revealed_is_zero") == Labels(
            mistake=1, guidance=0
        )
    assert gold(guidance_map="revealed_is_zero").guidance == 2
