"""Logs of MALLM: real ones if they are at hand, and small ones in their shape."""

import json
import os
from pathlib import Path

import pytest

from tutorsim.analysis.systems.debate.outcomes_under_every_protocol import Changes, Debate
from tutorsim.errors import FolderError, LogError
from tutorsim.kernel.system_and_loaded_study import LogReading
from tutorsim.records import RUN_FILE, read_run
from tutorsim.runner.import_logs_of_other_programs import import_logs, log_files
from tutorsim.systems.debate import DEBATE
from tutorsim.systems.debate.mallm_logs import read_mallm

REAL = Path(os.environ.get("TUTORSIM_PUBLISHED_DATA", "nowhere")) / "mallm_logs"
NAMES = ("Cook", "Chemist", "Chef")


def said(number, turn, speaker, *, agrees, solution="A) Yes", text=None):
    return {
        "message_id": number, "turn": turn, "agent_id": f"id{speaker}", "persona": NAMES[speaker],
        "contribution": "improve", "agreement": agrees,
        "message": text or ("[AGREE]" if agrees else "[DISAGREE]"), "solution": solution,
        "memory_ids": list(range(number)),
    }  # fmt: skip


def log(names=NAMES, votes=None, **changes):
    return {
        "dataset": "exp1/strategyqa.json",
        "exampleId": "x-1",
        "personas": [
            {"agentId": f"id{i}", "model": "m", "persona": name, "personaDescription": "d"}
            for i, name in enumerate(names)
        ],
        "paradigm": "memory",
        "input": ["Is it?\n\nA) Yes\nB) No"],
        "references": ["B) No"],
        "finalAnswer": "A) Yes",
        "decisionSuccess": True,
        "turns": 1,
        "votesEachTurn": votes or {},
        "globalMemory": [said(i, 1, i, agrees=i > 0) for i in range(3)],
    } | changes


def voted(kind, answers, process, votes, *, agreed=True):
    told = {"votes": votes, "final_answer": "", "most_voted": 0, "agreed": agreed}
    return {
        "1": {"type": kind, "answers": answers, "voting_process_string": process,
              "alterations": {"anonymous": told}},
    }  # fmt: skip


def read(tmp_path, value, name="log.json"):
    path = tmp_path / name
    path.write_text(json.dumps(value), encoding="utf-8")
    return list(read_mallm(path, LogReading(lambda name: 1, set())))


def test_flags_are_as_logged_and_read_anew_from_the_text(tmp_path):
    messages = [
        said(0, 1, 0, agrees=False),
        said(1, 1, 1, agrees=True, text="[DISAGREE] it does not agree"),
        said(2, 1, 2, agrees=True),
    ]
    [one] = read(tmp_path, log(globalMemory=messages, decisionSuccess=False))
    said_and_seen = [(one.number, one.shown) for one in one.record.turns[0].messages]
    assert said_and_seen == [(1, ()), (2, (1,)), (3, (1, 2))]
    assert Debate(one.record).recounted("unanimity").answers == ("A) Yes",)
    again = Changes(agreement_reading="tag")
    assert Debate(one.record).recounted("unanimity", again).certainty == "beyond"
    assert "consensus never decided, though all agents agreed" in one.notes


def test_the_logged_end_is_no_limit(tmp_path):
    messages = [said(i, 1, i, agrees=False) for i in range(3)]
    [one] = read(tmp_path, log(globalMemory=messages))
    assert Debate(one.record).recounted("majority").certainty == "beyond"


def test_simple_choices_come_from_indices_because_names_lie(tmp_path):
    """Answers J, J, H: two are listed, and index 1 is H, which the third agent gave."""
    process = (
        "Cook final answer: A) Yes\nChemist final answer: A) Yes\nChef final answer: B) No\n"
        "Cook voted for answer from Cook\nChemist voted for answer from Chemist\n"
        "Chef voted for answer from Chemist\n"
    )
    votes = voted("simple_voting", ["A) Yes", "B) No"], process, [0, 1, 1])
    [one] = read(tmp_path, log(votes=votes, finalAnswer="B) No"))
    [turn] = one.record.turns
    assert turn.candidates == ("agent_1", "agent_3")
    assert [ballot.parsed for ballot in turn.ballots_final] == ["agent_1", "agent_3", "agent_3"]
    assert (turn.decision.winner, one.record.score) == ("agent_3", 1.0)


def test_a_vote_whose_winner_was_not_delivered_is_no_deciding_vote(tmp_path):
    answers = ["A) Yes", "B) No", "B) No"]
    votes = voted("simple_voting", answers, "", [0, 0, 1])
    [one] = read(tmp_path, log(votes=votes, finalAnswer="B) No"))
    assert one.record.turns[0].ballots_final == ()
    assert len(one.record.turns[0].ballots_as["simple"]) == 3
    [tied] = read(tmp_path, log(votes=voted("simple_voting", answers, "", [0, 1, 2])))
    assert tied.record.turns[0].held.tied == ("agent_1", "agent_2", "agent_3")


APPROVALS = (
    "Cook approved answers from ['Cook', 'Chef']\nChemist approved answers from []\n"
    "Chef approved answers from ['Chef']\n"
)


def test_approvals_come_from_the_process_text(tmp_path):
    votes = voted("approval_voting", ["A) Yes", "B) No", "?"], APPROVALS, [0, 2, 2], agreed=True)
    [one] = read(tmp_path, log(votes=votes, finalAnswer="?"))
    [turn] = one.record.turns
    assert [b.parsed for b in turn.cast] == [("agent_1", "agent_3"), (), ("agent_3",)]
    assert "approval ballots were flattened into one list" in one.notes


def test_approvals_of_repeated_persona_names_are_not_guessed(tmp_path):
    names = ("Cook", "Cook", "Chef")
    text = APPROVALS.replace("Chemist", "Cook")
    votes = voted("approval_voting", ["A) Yes", "B) No", "?"], text, [0, 2, 2])
    [one] = read(tmp_path, log(names=names, votes=votes))
    [turn] = one.record.turns
    assert (turn.cast, turn.ballots_as, turn.other_votes) == ((), {}, {})
    assert len(turn.answers) == 3
    assert "ballots of 1 vote left out, as the log does not say whose is whose" in one.notes


@pytest.mark.parametrize(
    ("names", "left"),
    [(NAMES, []), (("Cook", "Cook", "Chef"), ["ballots of 1 vote left out, as the log does not"])],
)
def test_a_missing_ballot_is_that_of_whom_the_text_does_not_name(tmp_path, names, left):
    """Two of three ballots could be read, and the text names their voters."""
    process = f"{names[0]} voted for answer from Chef\n{names[2]} voted for answer from Cook\n"
    votes = voted("simple_voting", ["A) Yes", "B) No", "?"], process, [1, 1])
    [one] = read(tmp_path, log(names=names, votes=votes, finalAnswer="B) No"))
    [turn] = one.record.turns
    found = [(b.voter, b.parsed, b.ballot_status) for b in turn.cast]
    assert found == [
        ("agent_1", "agent_2", "valid"),
        ("agent_2", None, "abstained"),
        ("agent_3", "agent_2", "valid"),
    ] * (not left)
    assert [note[:46] for note in one.notes if "left out" in note] == [said[:46] for said in left]


@pytest.mark.parametrize(
    ("name", "condition", "ended"),
    [
        ("x_debate_simple_voting_1.json", "simple_voting", "vote"),
        ("x_ranked_voting.json", "ranked_voting", "vote"),
        ("x_supermajority_consensus.json", "supermajority_consensus", "consensus"),
        ("object_1.json", "consensus", "consensus"),
    ],
)
def test_a_discussion_without_votes_has_the_rule_of_its_file_name(tmp_path, name, condition, ended):
    [one] = read(tmp_path, log(), name)
    assert (one.record.condition, one.record.ended_by) == (condition, ended)
    assert one.record.answer_of == "agent_1"  # the others only agree
    silent = f"no vote was held, though the rule is {condition}"
    assert (silent in one.notes) == (ended == "vote")


def test_a_list_in_the_text_is_read_and_never_run(tmp_path):
    text = APPROVALS.replace("['Chef']", "[__import__('os').getcwd()]")
    votes = voted("approval_voting", ["A) Yes", "B) No", "?"], text, [0])
    with pytest.raises(LogError, match="no log of MALLM"):
        read(tmp_path, log(votes=votes))


@pytest.mark.parametrize("content", ["{", "[]", "[1]", '{"a": 1}', '{"personas": []}', ""])
def test_a_truncated_or_foreign_file_is_named(tmp_path, content):
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(LogError, match=r"bad\.json is no log of MALLM"):
        list(read_mallm(path, LogReading(lambda name: 1, set())))


def test_an_import_takes_files_whole_and_names_what_it_leaves_out(tmp_path):
    good, bad = tmp_path / "a.json", tmp_path / "b.json"
    good.write_text(json.dumps([log(), log()]))
    bad.write_text(json.dumps([log(), {"exampleId": 1}]))
    folder = tmp_path / "run"
    found = import_logs(DEBATE, DEBATE.logs["mallm"], log_files([tmp_path]), folder)
    assert (found.episodes, len(found.skipped)) == (2, 1)
    head = read_run(folder)
    assert (head.provenance.kind, head.episodes, head.system) == ("imported", 2, "debate")
    assert (head.voting.label_order, head.voting.cumulative_budget) == (None, None)
    with pytest.raises(FolderError):
        import_logs(DEBATE, DEBATE.logs["mallm"], [bad, good, good], folder)


@pytest.mark.parametrize("votes", [(), (0, 1, 1)])
def test_ties_go_to_those_who_voted_in_the_order_of_the_discussion(tmp_path, votes, shell):
    """Nobody is in the order of a log without votes, and a recount of it says so."""
    process = "".join(
        f"{name} final answer: {'A) Yes' if i < 2 else 'B) No'}\n" for i, name in enumerate(NAMES)
    )
    held = voted("simple_voting", ["A) Yes", "B) No"], process, [*votes]) if votes else None
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log(votes=held)))
    import_logs(DEBATE, DEBATE.logs["mallm"], [path], tmp_path / "run")
    order = read_run(tmp_path / "run").voting.fallback_order
    assert order == (("agent_1", "agent_2", "agent_3") if votes else ())
    assert shell("recount", tmp_path / "run").code == 0


def test_an_import_of_nothing_usable_writes_nothing(tmp_path):
    bad = tmp_path / "b.json"
    bad.write_text("{")
    with pytest.raises(LogError):
        import_logs(DEBATE, DEBATE.logs["mallm"], [bad], tmp_path / "run")
    assert not (tmp_path / "run" / RUN_FILE).exists()


@pytest.mark.skipif(not REAL.is_dir(), reason="the published logs are not at hand")
def test_five_published_logs_are_read_as_they_are():
    files = sorted(REAL.glob("*.json"))  # a licence lies beside them
    found = [one for path in files for one in read_mallm(path, LogReading(lambda name: 1, set()))]
    assert len(found) == 5
    votes = {
        one.record.condition: sum(bool(turn.cast or turn.ballots_as) for turn in one.record.turns)
        for one in found
    }
    assert votes == {
        "consensus_voting": 7,
        "majority_consensus": 0,
        "simple_voting": 5,
        "approval_voting": 5,
        "unanimity_consensus": 0,
    }
    silent = [one.record for one in found if "consensus" in one.record.condition][1:]
    assert all(Debate(one).recounted("unanimity").decided for one in silent)
    assert not any(one.decided for one in silent)
