"""Retesting over real HTTP: what is sent, what it costs, stopped, and taken up again."""

import random
import shutil
import signal
import time

import orjson
import pytest

from tests.tutorsim.conftest import ended, files, on_disk
from tutorsim.kernel.cost_plan import load_prices
from tutorsim.kernel.retest_flow_and_drawn_turns import Design
from tutorsim.records import read_episodes, read_retest
from tutorsim.replay import FolderLock, read_cassette
from tutorsim.replay.manifests_of_recordings_and_retests_provenance import read_retest_manifest
from tutorsim.runner.retest_plan_cost_and_recording import plan_retest, survey

pytestmark = pytest.mark.loopback

EPISODES = ("sciq.ice.help_avoidant.simple", "sciq.moon.help_avoidant.simple")
PROMPTS = 2 * 2 * 4
"""Two episodes of one turn, two votes, four voters."""
FAILING = f"{EPISODES[0]}/1/vote_final/motivation/1/r02"


def keys_of(repeats, *stages):
    roles = ("scaffolding", "misconception", "motivation", "metacognitive")
    return {
        f"{episode}/1/{stage}/{role}/1/r{repeat:02d}"
        for episode in EPISODES
        for stage in stages or ("vote_initial", "vote_final")
        for role in roles
        for repeat in range(1, repeats + 1)
    }


def announced(shell, *args):
    return shell("retest", *args, "--plan", "--json").json()


def test_exactly_the_announced_calls_are_sent_with_the_recorded_bytes(endpoint, recorded, shell):
    before = files(recorded.cassettes)
    planned = announced(shell, recorded.log, "--repeats", 2)
    assert (planned["prompts"], planned["calls"], planned["recorded"]) == (PROMPTS, 32, 0)
    assert planned["tokens"] == {"tutor-model": [3200, 640]}
    assert endpoint.sent == []
    assert not (recorded.cassettes / "retest").exists()

    said = shell("retest", recorded.log, "--repeats", 2)
    assert (said.code, f"Retest: {recorded.cassettes}" in said.err) == (0, True)

    assert set(endpoint.sent) == keys_of(2)
    assert len(endpoint.sent) == planned["calls"]
    for call, body in endpoint.bodies.items():
        episode, _, key = call.partition("/")
        original = read_cassette(recorded.cassettes, episode).interactions[key.rpartition("/")[0]]
        assert body == original.request.encode()
        assert orjson.loads(body) == orjson.loads(original.request)
    after = files(recorded.cassettes)
    manifest, told = "cassettes/manifest.json", b' "retested": true,\n'
    assert told in after[manifest]
    after[manifest] = after[manifest].replace(told, b"")
    assert {name: data for name, data in after.items() if "/retest/" not in name} == before


def test_as_json_it_is_said_what_was_asked_paid_for_and_failed(endpoint, recorded, shell):
    endpoint.fault = lambda call, attempt: "400" if call == FAILING else None
    told = shell("retest", recorded.log, "--repeats", 2, "--json").json(1)
    assert (told["episodes"], told["turns"], told["prompts"]) == (2, 2, PROMPTS)
    assert (told["repeats"], told["stages"]) == (2, ["vote_initial", "vote_final"])
    assert (told["paid"], told["calls"]) == (2 * PROMPTS - 1, 2 * PROMPTS - 1)
    [failure] = told["failures"]
    assert f"{failure['episode_id']}/{failure['key']}" == FAILING
    [listed] = shell("cassette", "list", recorded.cassettes, "--json").json()
    assert (listed["retest"]["failed_calls"], listed["retest"]["calls"]) == (1, told["calls"])


def test_a_retest_that_is_gone_is_missed(endpoint, recorded, shell):
    assert shell("verify", recorded.cassettes).code == 0
    assert shell("retest", recorded.log, "--repeats", 1).code == 0
    assert shell("verify", recorded.cassettes).code == 0
    shutil.rmtree(recorded.cassettes / "retest")
    for command in (("verify",), ("cassette", "verify")):
        said = shell(*command, recorded.cassettes)
        assert said.code != 0
        assert "retest" in said.err
        assert "is not there" in said.err
    assert shell("retest", recorded.log, "--repeats", 1).code == 0
    assert shell("verify", recorded.cassettes).code == 0


def test_every_answer_is_a_ballot_beside_the_logged_one(endpoint, recorded, shell):
    assert shell("retest", recorded.log, "--repeats", 2).code == 0
    found = read_retest(recorded.log)
    assert (found.head.repeats, found.head.provenance.kind) == (2, "relay")
    logged = {one.episode_id: one for one in read_episodes(recorded.log)}
    assert [one.episode_id for one in found.episodes] == list(EPISODES)
    for record in found.episodes:
        turn = logged[record.episode_id].turns[0]
        first, final = record.votes
        for vote, ballots in ((first, turn.ballots_initial), (final, turn.ballots_final)):
            assert len(vote.repeats) == 2
            for again in vote.repeats:
                assert [(b.voter, b.labels) for b in again] == [
                    (b.voter, b.labels) for b in ballots
                ]
                assert {b.ballot_status for b in again} == {"valid"}
    cassette = read_cassette(recorded.cassettes / "retest", EPISODES[0])
    values = list(cassette.interactions)[3:5]
    assert values == ["1/vote_initial/metacognitive/1/r01", "1/vote_initial/scaffolding/1/r02"]


@pytest.mark.costly
def test_later_repeats_pay_the_rest_and_give_the_same_bytes(endpoint, recorded, shell, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(recorded.cassettes, copy / "cassettes")
    for args in (
        ("--repeats", 1, "--stages", "vote_final", "--sample", 1),
        ("--repeats", 1, "--stages", "vote_final", "--max-connections", 2),
        ("--repeats", 2, "--max-connections", 7),
    ):
        planned = announced(shell, recorded.log, *args)
        before = len(endpoint.sent)
        assert shell("retest", recorded.log, *args).code == 0
        assert len(endpoint.sent) - before == planned["calls"]
    assert set(endpoint.counts().values()) == {1}
    assert set(endpoint.sent) == keys_of(2)
    args = ("--repeats", 2, "--max-connections", 1)
    assert shell("retest", copy / "cassettes", *args).code == 0
    assert files(copy / "cassettes") == files(recorded.cassettes)
    assert announced(shell, copy / "cassettes", *args)["calls"] == 0


def test_less_than_was_paid_for_is_refused(endpoint, recorded, shell):
    assert shell("retest", recorded.log, "--repeats", 2).code == 0
    paid = len(endpoint.sent)
    for args in (
        ("--repeats", 1),
        ("--repeats", 2, "--stages", "vote_final"),
        ("--repeats", 2, "--sample", 1),
    ):
        for more in ((), ("--plan",)):
            said = shell("retest", recorded.log, *args, *more)
            said.fails(2, "holds more than this command asks")
    assert len(endpoint.sent) == paid


def test_what_cannot_be_read_is_asked_once_more_with_the_reminder(endpoint, recorded, shell):
    endpoint.votes = {"1/vote_initial/motivation": "no idea"}
    planned = announced(shell, recorded.log, "--repeats", 1)
    assert (planned["calls"], planned["most_calls"]) == (16, 32)
    assert shell("retest", recorded.log, "--repeats", 1).code == 0
    again = {f"{episode}/1/vote_initial/motivation/2/r01" for episode in EPISODES}
    assert set(endpoint.sent) == keys_of(1) | again
    first, second = (
        orjson.loads(endpoint.bodies[f"{EPISODES[0]}/1/vote_initial/motivation/{attempt}/r01"])
        for attempt in (1, 2)
    )
    more = second["messages"][0]["content"].removeprefix(first["messages"][0]["content"])
    assert more.startswith("\n\nYour last reply")
    found = read_retest(recorded.log)
    assert found is not None
    for record in found.episodes:
        [panel] = record.votes[0].repeats
        assert [b.ballot_status for b in panel] == ["valid", "valid", "abstained", "valid"]


@pytest.mark.costly
def test_a_failed_call_is_marked_and_asked_again_on_request(endpoint, recorded, shell, tmp_path):
    endpoint.fault = lambda call, attempt: "400" if call == FAILING else None
    said = shell("retest", recorded.log, "--repeats", 2, "--max-retries", 0)
    said.fails(1, "1/vote_final/motivation/1/r02: HTTP 400")
    assert len(endpoint.sent) == 32
    found = read_retest(recorded.log)
    vote = found.episodes[0].votes[1]
    assert [len(panel) for panel in vote.repeats] == [4]
    assert [failure.key for failure in vote.failures] == ["1/vote_final/motivation/1/r02"]
    assert len(found.episodes[1].votes[1].repeats) == 2
    assert shell("replay", recorded.cassettes, "--log-dir", tmp_path / "replayed" / "log").code == 0
    assert files(tmp_path / "replayed" / "log") == files(recorded.log)
    assert shell("verify", recorded.cassettes).code == 0

    assert shell("retest", recorded.log, "--repeats", 2).code == 1
    assert len(endpoint.sent) == 32
    assert announced(shell, recorded.log, "--repeats", 2)["calls"] == 0
    endpoint.fault = lambda call, attempt: None
    retry = ("--repeats", 2, "--retry-errors")
    assert announced(shell, recorded.log, *retry)["calls"] == 1
    assert shell("retest", recorded.log, *retry).code == 0
    assert endpoint.sent[32:] == [FAILING]
    assert read_retest_manifest(recorded.cassettes / "retest").episodes[0].failures == ()  # type: ignore[union-attr]


@pytest.mark.costly
def test_a_log_that_is_of_another_recording_now_loses_its_retest_until_it_is_asked_again(
    endpoint, write_grid, record, shell, tmp_path
):
    study, log = write_grid(), tmp_path / "one" / "log"
    failing = f"{EPISODES[0]}/1/judge/judge/1"
    endpoint.fault = lambda call, attempt: "400" if call == failing else None
    assert record(study, "--max-retries", 0).code == 1
    assert shell("retest", log, "--repeats", 1).code == 0
    asked = keys_of(1)
    assert asked & set(endpoint.sent) == {key for key in asked if EPISODES[1] in key}
    endpoint.fault = lambda call, attempt: None
    assert record(study).code == 1
    assert read_retest(log) is not None
    assert record(study, "--retry-errors").code == 0
    assert read_retest(log) is None
    said = shell("replay", log.with_name("cassettes"), "--log-dir", log)
    said.fails(4, "is the retest of another recording")
    before = len(endpoint.sent)
    assert shell("retest", log, "--repeats", 1).code == 0
    assert set(endpoint.sent[before:]) == {key for key in asked if EPISODES[0] in key}
    assert shell("verify", log.with_name("cassettes")).code == 0


def test_faults_that_pass_are_retried_and_leave_no_trace(endpoint, recorded, shell):
    kinds = ("429", "529", "500", "overloaded", "drop", "cut", "garbage")

    def fault(call, attempt):
        return random.Random(call).choice(kinds) if attempt == 0 else None

    endpoint.fault = fault
    value = shell("retest", recorded.log, "--repeats", 1, "--json").json()
    assert (value["paid"], value["calls"], value["failures"]) == (16, 16, [])
    assert set(endpoint.counts().values()) == {2}


@pytest.mark.costly
def test_the_cap_is_kept_over_all_commands_and_what_was_paid_for_stays(endpoint, recorded, shell):
    prices = ("--prices", recorded.study.with_name("prices.toml"))
    each = (100 * 1.0 + 20 * 10.0) / 1e6
    sent = []
    for cap in (0.014, 0.018):
        said = shell("retest", recorded.log, "--repeats", 4, *prices, "--max-usd", cap)
        said.fails(5, "could pass the cap")
        sent.append(len(endpoint.sent))
        assert 0 < len(endpoint.sent) * each <= cap
        assert announced(shell, recorded.log, "--repeats", 4)["calls"] == 64 - sent[-1]
        assert shell("retest", recorded.log, "--repeats", 3, "--plan").code == 2
    assert sent[0] < sent[1]
    assert read_retest(recorded.log) is None
    assert shell("verify", recorded.cassettes).code == 0
    assert shell("retest", recorded.log, "--repeats", 4, *prices, "--max-usd", 10).code == 0
    assert set(endpoint.sent) == keys_of(4)
    assert set(endpoint.counts().values()) == {1}
    assert shell("retest", recorded.log, "--repeats", 5, "--max-usd", 1).code == 2


def test_an_unfinished_extension_leaves_the_finished_retest_as_it_is(endpoint, recorded, shell):
    prices = ("--prices", recorded.study.with_name("prices.toml"))
    assert shell("retest", recorded.log, "--repeats", 1).code == 0
    before = files(recorded.log)
    said = shell("retest", recorded.log, "--repeats", 9, *prices, "--max-usd", 0.02)
    assert said.code == 5
    assert len(endpoint.sent) > PROMPTS
    assert shell("replay", recorded.cassettes, "--log-dir", recorded.log).code == 0
    assert files(recorded.log) == before


def kill_and_ask_again(seed, kills, endpoint, recorded, tools):
    """Kill a retest of four repeats at random moments, then finish it."""
    launch, shell, on_disk = tools
    chance, folder = random.Random(seed), recorded.cassettes / "retest"
    for _ in range(kills):
        held, before = on_disk(folder), len(endpoint.sent)
        child = launch("retest", recorded.log, "--repeats", 4)
        endpoint.wait_for(before + chance.randint(1, max(1, (64 - len(held)) // 2)))
        time.sleep(chance.uniform(0, 0.02))
        child.kill()
        assert child.wait() == -signal.SIGKILL
        assert held.isdisjoint(endpoint.sent[before:])
    held = on_disk(folder)
    assert len(held) < 64
    assert announced(shell, recorded.log, "--repeats", 4)["calls"] == 64 - len(held)
    before = len(endpoint.sent)  # what was under way at the kill has arrived meanwhile
    assert shell("retest", recorded.log, "--repeats", 4).code == 0
    assert set(endpoint.sent[before:]) == keys_of(4) - held
    assert len(endpoint.sent[before:]) == 64 - len(held)


@pytest.mark.costly
@pytest.mark.parametrize(
    ("seed", "kills"), [(1, 1), *(pytest.param(s, 3, marks=pytest.mark.slow) for s in range(2, 10))]
)
def test_after_kills_the_same_command_asks_what_no_tape_holds(
    seed, kills, endpoint, recorded, launch, shell, tmp_path
):
    copy = recorded._replace(cassettes=tmp_path / "copy" / "cassettes")
    shutil.copytree(recorded.cassettes, copy.cassettes)
    endpoint.delay = 0.02  # all 64 calls take longer than the wait before a kill
    kill_and_ask_again(seed, kills, endpoint, recorded, (launch, shell, on_disk))
    endpoint.delay = 0
    assert shell("retest", copy.cassettes, "--repeats", 4).code == 0
    assert files(copy.cassettes) == files(recorded.cassettes)


@pytest.mark.slow
def test_ctrl_c_keeps_replies_under_way(endpoint, recorded, launch, shell):
    endpoint.delay = 0.2
    child = launch("retest", recorded.log, "--repeats", 2, "--max-connections", 3)
    endpoint.wait_for(4)
    child.send_signal(signal.SIGINT)
    ended(child).fails(130, "The same command goes on from here.")
    assert on_disk(recorded.cassettes / "retest") == set(endpoint.sent)
    endpoint.delay = 0
    before = set(endpoint.sent)
    assert shell("retest", recorded.log, "--repeats", 2).code == 0
    assert before.isdisjoint(endpoint.sent[len(before) :])


def test_nothing_is_sent_in_ci_without_a_key_or_into_folders_in_use(
    endpoint, recorded, shell, monkeypatch
):
    for folder in (recorded.cassettes, recorded.log):
        with FolderLock(folder):
            said = shell("retest", recorded.log, "--repeats", 1)
        said.fails(2, "Another run is using")
    with monkeypatch.context() as patch:
        patch.setenv("CI", "true")
        shell("retest", recorded.log, "--repeats", 1).fails(2, "CI is set")
        assert announced(shell, recorded.log, "--repeats", 1)["calls"] == 16
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    shell("retest", recorded.log, "--repeats", 1).fails(2, "No credentials")
    assert endpoint.sent == []
    assert not (recorded.cassettes / "retest").exists()


def test_a_prompt_that_contains_the_credential_is_not_sent(endpoint, recorded, shell, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "MARK-motivation-")
    shell("retest", recorded.log, "--repeats", 1).fails(2, "contains the credential")
    assert endpoint.sent == []


def test_a_recording_that_does_not_replay_is_not_paid_for(endpoint, recorded, shell):
    path = recorded.cassettes / f"{EPISODES[0]}.json"
    path.write_bytes(path.read_bytes().replace(b"because of turn", b"because of burn", 1))
    assert shell("retest", recorded.log, "--repeats", 1).code == 4
    assert endpoint.sent == []


def test_a_survey_and_a_plan_count_the_episodes(recorded):
    told = []

    def count(*done):
        told.append(done)

    found = survey(recorded.cassettes, Design(repeats=1, stages=()), on_progress=count)
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    told.clear()
    plan_retest(found, load_prices(), retry_errors=False, on_progress=count)
    assert told == [(0, 2), (1, 2)]


def test_a_recording_without_a_vote_is_not_retested(endpoint, write_grid, record, shell, tmp_path):
    assert record(write_grid(conditions=["baseline"])).code == 0
    said = shell("retest", tmp_path / "one" / "log", "--repeats", 1, "--plan")
    said.fails(2, "nothing that could be asked again")


def edited(path, old, new):
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: edited(f / f"{EPISODES[0]}.json", b"input_tokens", b"inPut_tokens"), "edited"),
        (lambda f: edited(f / "retest.manifest.json", b'"schema_version": 1', b'"x": 1'), "whole"),
        (lambda f: (f / ".retest.json").write_bytes(b"{"), "cannot be read"),
    ],
)
def test_a_damaged_retest_is_never_written_over(damage, message, endpoint, recorded, shell):
    assert shell("retest", recorded.log, "--repeats", 1).code == 0
    damage(recorded.cassettes / "retest")
    before, sent = files(recorded.cassettes), len(endpoint.sent)
    shell("retest", recorded.log, "--repeats", 2).fails(4, message)
    assert len(endpoint.sent) == sent
    assert files(recorded.cassettes) == before


# --- Against the stand-in, with ballots of every format --------------------------------------

FORMATS = ["simple", "ranked", "cumulative", "approval", "rich"]


def ballots_of(log):
    """Every logged ballot with its further askings."""
    found = read_retest(log)
    assert found is not None
    logged = {one.episode_id: one for one in read_episodes(log)}
    for record in found.episodes:
        for vote in record.votes:
            turn = logged[record.episode_id].turns[vote.turn - 1]
            first = turn.ballots_initial if vote.stage == "vote_initial" else turn.ballots_final
            for place, ballot in enumerate(first):
                yield ballot, [panel[place] for panel in vote.repeats]


@pytest.mark.costly
@pytest.mark.parametrize("steady", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_voters_of_every_format_answer_alike_exactly_where_they_are_steady(
    steady, stand_ins, write_grid, record, shell, tmp_path
):
    server = stand_ins(seed=4, steady=steady)
    study = write_grid(conditions=FORMATS, benchmarks={"sciq": {"limit": 1}}, success_threshold=1.0)
    assert record(study).code == 0
    log = tmp_path / "one" / "log"
    planned, before = announced(shell, log, "--repeats", 2), server.requests
    assert shell("retest", log, "--repeats", 2).code == 0
    sent = server.requests - before
    assert planned["calls"] <= sent <= planned["most_calls"]
    pairs = list(ballots_of(log))
    assert {ballot.protocol for ballot, _ in pairs} == set(FORMATS)
    again = [(ballot.parsed, one.parsed) for ballot, repeats in pairs for one in repeats]
    assert len(again) == planned["calls"]
    assert all(one == other for one, other in again) == steady


def test_a_retest_in_waves_gives_the_bytes_of_single_calls(stand_ins, recorded, shell, tmp_path):
    stand_ins(seed=4)
    waves = tmp_path / "waves" / "cassettes"
    shutil.copytree(recorded.cassettes, waves)
    assert shell("retest", recorded.cassettes, "--repeats", 2).code == 0
    assert shell("retest", waves, "--repeats", 2, "--batch").code == 0
    assert files(waves) == files(recorded.cassettes)
