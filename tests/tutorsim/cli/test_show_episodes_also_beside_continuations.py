"""`tutorsim show` tells a whole deliberation, and does what hostile text wants nowhere."""

import json
from dataclasses import replace

import pytest

from tutorsim.analysis.pages.shown_episodes import Episode
from tutorsim.cli.show_episodes_also_beside_continuations import _alone
from tutorsim.records import EpisodeRecord


def turns_of(built, **wanted):
    found = [
        (record, turn)
        for record in built.episodes
        for turn in record.turns
        if turn.decision and turn.decision.decided_by == wanted.get("decided_by")
    ]
    assert found, "the built run lacks such a turn"
    return found


@pytest.mark.costly
def test_every_text_of_every_episode_is_shown(shell, built):
    for record in built.episodes:
        shown = shell("show", built.folder, record.episode_id)
        assert shown.code == 0
        asked = [*record.question.splitlines(), *record.reference.splitlines()]
        assert asked
        texts = [attempt.text for attempt in record.attempts] + [line.strip() for line in asked]
        for turn in record.turns:
            proposals = [*turn.proposals_initial.values(), *turn.proposals_final.values()]
            texts += [turn.delivered, *(p.text for p in proposals)]
            ballots = [*turn.ballots_initial, *turn.ballots_final]
            texts += [b.raw for b in ballots] + [b.raw_first or "" for b in ballots]
            notes = [note for review in turn.reviews for note in review.notes.values()]
            texts += [note.strength for note in notes] + [note.weakness for note in notes]
        assert [text for text in texts if text not in shown.out] == []


def test_ballots_are_resolved_to_roles(shell, built):
    record, turn = next(
        (r, t) for r in built.episodes for t in r.turns if r.condition == "ranked" and t.decision
    )
    shown = shell("show", built.folder, record.episode_id, "--turn", turn.turn)
    for ballot in turn.ballots_final:
        if ballot.parsed:
            assert " > ".join(ballot.parsed) in shown.out


@pytest.mark.parametrize("decided_by", ["vote", "tie_round", "fallback"])
def test_the_winner_and_the_deciding_step_are_named(shell, built, decided_by):
    words = {"vote": "the vote", "tie_round": "the tie round", "fallback": "the fallback"}
    for record, turn in turns_of(built, decided_by=decided_by):
        shown = shell("show", built.folder, record.episode_id, "--turn", turn.turn)
        assert f"\n{turn.decision.winner} wins  (decided by {words[decided_by]})\n" in shown.out


STEPS = ("Final vote: ", "Tie round: ", "Fallback order (scaffolding > ")


def test_a_tie_that_holds_is_told_step_by_step(shell, built):
    record, turn = turns_of(built, decided_by="fallback")[0]
    shown = shell("show", built.folder, record.episode_id, "--turn", turn.turn).out
    places = [shown.index(f"{n}. {step}") for n, step in enumerate(STEPS, 1)]
    assert places == sorted(places)


def test_provenance_comes_before_the_first_attempt(shell, built):
    shown = shell("show", built.folder, built.episodes[0].episode_id).out
    assert "Answered by: stand-in" in shown
    assert "say nothing about any language model" in shown
    assert shown.index("Answered by") < shown.index("before any tutoring")


def test_json_is_the_log_record(shell, built):
    record = built.episodes[1]
    shown = shell("show", built.folder, record.episode_id, "--json")
    assert EpisodeRecord.model_validate(json.loads(shown.out)) == record


def test_one_turn_keeps_the_attempts_around_it(shell, built):
    record = next(r for r in built.episodes if r.turns_taken >= 2)
    shown = shell("show", built.folder, record.episode_id, "--turn", "2", "--json")
    value = json.loads(shown.out)
    assert [turn["turn"] for turn in value["turns"]] == [2]
    assert [attempt["turn"] for attempt in value["attempts"]] == [1, 2]


def test_parts_of_an_id_name_the_only_episode_that_has_them(shell, built):
    shown = shell("show", built.folder, "sciq", "NOVICE", "ranked")
    assert shown.out.startswith("sciq.seasons.low_confidence_novice.ranked  ")


def test_an_ambiguous_part_lists_what_it_could_mean(shell, built):
    shown = shell("show", built.folder, "novice")
    shown.fails(2, "10 episodes match 'novice'", "sciq.seasons.low_confidence_novice.simple")
    assert shown.out == ""


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["sciq.seasons.help_avoidant.rankd"], "sciq.seasons.help_avoidant.ranked"),  # the nearest
        (["sciq.seasons.help_avoidant.ranked", "--turn", "9"], "no turn 9"),
    ],
)
def test_what_is_not_in_the_run_is_a_usage_error(shell, built, args, words):
    shell("show", built.folder, *args).fails(2, words)


def test_a_failed_episode_says_where_and_why(shell, with_failures):
    record = next(r for r in with_failures.episodes if r.status == "failed")
    shell("show", with_failures.folder, record.episode_id).tells("Failed: call 0/judge/judge/1")


def test_a_call_whose_reply_was_cut_off_is_named(built):
    record = built.episodes[0]
    cut = replace(record.calls[1], stop_reason="max_tokens")
    ended = record.model_copy(update={"calls": (record.calls[0], cut)})
    *_, told = _alone(built.run, ended, Episode("x", ()))
    assert told.plain.endswith(f": {cut.key}")


def test_an_empty_run_has_no_episode_to_show(shell, empty_run):
    shell("show", empty_run.folder, "x").fails(2, "no episode")


def test_a_folder_without_a_log_is_an_invalid_log(shell, tmp_path):
    assert shell("show", tmp_path, "x").code == 4


def test_hostile_text_reaches_the_terminal_only_escaped(shell, hostile):
    for record in hostile.episodes:
        for options in ((), ("--json",)):
            shown = shell("show", hostile.folder, record.episode_id, *options).out
            assert not set("\x1b\x07\x9b\u202e\u2028") & set(shown)
            assert "[bold]markup[/bold]" in shown
            assert "<script>alert(1)</script>" in shown
            assert "w" * 400 in shown


def test_a_log_of_another_program_shows_what_it_holds(shell, tmp_path):
    ballot = {
        "voter": "x",
        "protocol": "simple",
        "labels": {},
        "parsed": "y",
        "mass": {"x": 0, "y": 1},
    }
    decision = {
        "tallies": {"x": 0, "y": 1},
        "tied_set": [],
        "steps": [{"step": "vote_final", "tallies": {"x": 0, "y": 1}, "remaining": ["y"]}],
        "decided_by": "vote",
        "winner": "y",
    }
    unread = {"reviewer": "z", "labels": {}, "raw": "No [idea].", "notes": {}, "status": "missing"}
    round_ = {"candidates": ["x", "y"], "reviews": [unread], "ballots": [ballot]}
    record = {
        "schema_version": 1, "episode_id": "humaneval.t.p.simple", "benchmark": "humaneval",
        "task_id": "t", "persona": "p", "condition": "simple", "repeat": 2, "status": "complete",
        "attempts": [{"turn": 0, "text": "hm", "score": None, "code_passed": False}],
        "turns": [
            {"turn": 1, "ballots_final": [ballot], "tie_round": round_, "decision": decision},
        ],
        "turns_taken": 1, "success": False,
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps({"schema_version": 1}))
    (tmp_path / "episodes.jsonl").write_text(json.dumps(record) + "\n")
    shell("show", tmp_path, "humaneval").tells(
        "y wins  (decided by the vote)",
        "tests: fail",
        "z  (never came)\n    whole reply: No [idea].\n",
        "Condition: simple",
        "Repeat: 2",
        "Reviews of the first drafts\n  (none)\n    not in this log",
    )


def test_an_episode_goes_to_a_file_by_its_ending(shell, built, tmp_path):
    record = built.episodes[1]
    for name in ("a.txt", "a.json"):
        done = shell("show", built.folder, record.episode_id, "-o", tmp_path / name)
        assert (done.code, done.out) == (0, "")
    assert (tmp_path / "a.txt").read_text().startswith(record.episode_id)
    assert json.loads((tmp_path / "a.json").read_text())["episode_id"] == record.episode_id


def test_a_turn_and_futures_are_of_one_episode(shell, built):
    for option in (("--turn", "1"), ("--beside", built.folder)):
        shell("show", built.folder, *option).fails(2, f"{option[0]} is for one EPISODE")
