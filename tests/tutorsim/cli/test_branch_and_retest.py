"""Branches of a recording: what they take over, what they pay for, and what stops them."""

import hashlib
import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.tutorsim.conftest import edit, files, on_disk
from tutorsim.kernel.load_and_check_study_file import load_study
from tutorsim.records import read_episodes, read_run
from tutorsim.replay import read_manifest

pytestmark = pytest.mark.loopback

USAGE, INVALID, BUDGET = 2, 4, 5
"""Exit codes."""
ROLES = ("scaffolding", "misconception", "motivation", "metacognitive")
S, M, V, C = ROLES
ORDER = ("--fallback-order", ",".join((M, S, V, C)))
TIED = {
    f"{stage}/{role}": (S, M)[i % 2]
    for stage in ("vote_final", "tie_vote")
    for i, role in enumerate(ROLES)
}
"""Every vote ties between s and m, twice, so that the order decides every turn."""
EPISODES = [f"sciq.{task}.help_avoidant.simple" for task in ("ice", "moon")]
FUTURE = ("1/student/student/1", "1/judge/judge/1")
"""All that comes after a last turn."""


class Made(NamedTuple):
    cassettes: Path
    log: Path


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    """Where the parent with the usual settings is kept, once it has been recorded."""
    return tmp_path_factory.mktemp("parent") / "one"


@pytest.fixture
def parent(endpoint, write_grid, record, tmp_path, kept):
    """Record the grid of one turn, in which every vote ties; keywords replace settings."""
    folder = tmp_path / "one"
    made = Made(folder / "cassettes", folder / "log")

    def copy(old, new):
        """A run folder names its recording."""
        shutil.copytree(old, new)
        timings = new / "log" / "timings.jsonl"
        timings.write_text(timings.read_text().replace(str(old), str(new)))

    def make(votes=None, **settings):
        endpoint.votes = {**TIED, **(votes or {})}
        study = write_grid(**settings)
        usual = not (votes or settings or endpoint.fault("", 0))
        if usual and kept.exists():
            copy(kept, folder)
            return made
        assert record(study).code in (0, 1)
        endpoint.sent.clear()
        if usual:
            copy(folder, kept)
        return made

    return make


@pytest.fixture
def made(parent):
    """The parent with the usual settings."""
    return parent()


@pytest.fixture
def new(tmp_path):
    return tmp_path / "new"


@pytest.fixture
def child(made, shell, new):
    """A branch of it in which another order decides."""
    assert shell("branch", made.log, *ORDER, "-o", new).code == 0
    return new


def plan_of(shell, *args):
    return shell("branch", *args, "--plan", "--json").json()


def calls(*keys, episodes=EPISODES, draws=1):
    """Each call of these continuations, once."""
    return Counter(
        f"{one}.c{n:02d}/{k}" for one in episodes for n in range(1, draws + 1) for k in keys
    )


# --- What is paid for --------------------------------------------------------------------------


@pytest.mark.costly
def test_a_branch_pays_what_its_plan_says_and_nothing_before_the_cursor(made, shell, endpoint, new):
    before = files(made.cassettes, made.log)
    planned = plan_of(shell, made.log, *ORDER)
    assert planned["calls"] == {"least": 4, "most": 4, "ceiling": 8}
    assert (planned["covered"], planned["open"], len(planned["episodes"])) == (2, 0, 2)
    logged = sum(len(one.calls) for one in read_episodes(made.log))
    assert planned["reused"] == logged - 4  # all but two futures of the parent's own
    assert endpoint.sent == []
    said = shell("branch", made.log, *ORDER, "-o", new)
    assert said.code == 0
    assert "Calls to pay: 4;" in said.err
    assert endpoint.counts() == calls(*FUTURE)
    assert files(made.cassettes, made.log) == before


def test_the_same_command_again_costs_nothing_and_changes_nothing(made, shell, endpoint, child):
    first = files(child)
    endpoint.sent.clear()
    assert shell("branch", made.log, *ORDER, "-o", child).code == 0
    assert endpoint.sent == []
    assert files(child) == first


def test_the_child_is_complete_in_itself_and_names_its_parent(made, shell, new):
    digest = read_manifest(made.cassettes).recording_digest()
    study = read_manifest(made.cassettes).study_digest
    assert shell("branch", made.log, *ORDER, "-o", new).code == 0
    shutil.rmtree(made.cassettes.parent)
    shell("verify", new).tells("4 of 4 episodes")
    branch = read_run(new).study.branch
    assert (branch.parent, branch.parent_recording, branch.parent_study) == ("grid", digest, study)
    assert branch.fallback_order == (M, S, V, C)
    assert {name: one.turn for name, one in branch.episodes.items()} == dict.fromkeys(EPISODES, 1)
    assert load_study(new / "study.toml").study.branch == branch
    assert shell("replay", new, "--log-dir", new.parent / "again").code == 0
    for name in ("run.json", "episodes.jsonl"):
        assert (new.parent / "again" / name).read_bytes() == (new / name).read_bytes()


def test_the_files_of_a_child_are_those_that_its_manifest_names(shell, child):
    """Its log stands beside them."""
    said = shell("cassette", "verify", child)
    assert (said.code, "is what the manifest names" in said.out + said.err) == (0, True)
    [one] = shell("cassette", "list", child, "--json").json()
    assert (one["study"], one["episodes"]) == ("grid-branch", 4)


def test_a_recording_without_a_log_of_its_own_is_branched_as_well(made, shell, endpoint, new):
    shutil.rmtree(made.log)
    assert shell("branch", made.cassettes, *ORDER, "-o", new).code == 0
    assert endpoint.counts() == calls(*FUTURE)
    assert shell("verify", new).code == 0


def test_covered_episodes_are_the_parent_s_own_files(made, child):
    covered = sorted(path.name for path in child.glob("*.baseline.json"))
    assert len(covered) == 2
    for name in covered:
        assert (child / name).samefile(made.cassettes / name)
    logged = {one.episode_id: one for one in read_episodes(made.log)}
    for one in read_episodes(child):
        assert (one == logged.get(one.episode_id)) is (one.condition == "baseline")


def test_cassettes_are_copied_where_there_are_no_hard_links(parent, shell, new, monkeypatch):
    def refuse(*_):
        raise OSError(18, "Invalid cross-device link")

    made = parent()
    monkeypatch.setattr(os, "link", refuse)
    assert shell("branch", made.log, *ORDER, "-o", new).code == 0
    [one, _] = sorted(new.glob("*.baseline.json"))
    assert not one.samefile(made.cassettes / one.name)
    assert shell("verify", new).code == 0
    assert shell("branch", made.log, *ORDER, "-o", new).code == 0


def test_a_compressed_parent_is_branched_as_its_text_is(made, shell, endpoint, new):
    packed = new.parent / "packed"
    assert shell("cassette", "convert", made.cassettes, "--to", "compressed", "-o", packed)[0] == 0
    assert shell("branch", made.log, *ORDER, "-o", new).code == 0
    other = new.parent / "other" / "new"
    args = ("--cassette-dir", packed, *ORDER, "-o", other)
    assert shell("branch", made.log, *args).code == 0
    assert files(other) == files(new)
    assert len(endpoint.sent) == 8


@pytest.mark.costly
def test_every_continuation_is_one_draw_of_its_own(made, shell, endpoint, new):
    planned = plan_of(shell, made.log, *ORDER, "--continuations", 3)
    assert planned["calls"]["least"] == planned["calls"]["most"] == 12
    assert shell("branch", made.log, *ORDER, "--continuations", 3, "-o", new).code == 0
    assert endpoint.counts() == calls(*FUTURE, draws=3)
    assert shell("verify", new).code == 0
    drawn = [one for one in read_episodes(new) if one.branch is not None]
    assert [one.branch.continuation for one in drawn] == [1, 2, 3] * 2
    assert len({one.attempts[-1].text for one in drawn}) == 6
    assert drawn[0].turns == drawn[1].turns == drawn[2].turns


def test_a_limit_takes_up_the_first_of_the_plan_and_leaves_others_open(made, shell, endpoint, new):
    best = plan_of(shell, made.log, *ORDER)["episodes"][0]["episode_id"]
    planned = plan_of(shell, made.log, *ORDER, "--limit", 1)
    assert (planned["open"], planned["calls"]["most"]) == (1, 2)
    assert [one["episode_id"] for one in planned["episodes"]] == [best]
    assert shell("branch", made.log, *ORDER, "--limit", 1, "-o", new).code == 0
    assert endpoint.counts() == calls(*FUTURE, episodes=[best])
    assert len(list(read_episodes(new))) == 3
    assert shell("verify", new).code == 0


@pytest.mark.costly
def test_a_branch_grows_by_continuations_and_episodes_at_their_cost(made, shell, endpoint, new):
    args = ("branch", made.log, *ORDER, "-o")
    assert shell(*args, new, "--limit", 1).code == 0
    [first] = [one.branch.parent_episode for one in read_episodes(new) if one.branch]
    endpoint.sent.clear()
    said = shell(*args, new, "--continuations", 2, "--limit", 1)
    assert said.code == 0
    assert set(endpoint.sent) == {f"{first}.c02/{key}" for key in FUTURE}
    assert shell("verify", new).code == 0
    endpoint.sent.clear()
    assert shell(*args, new).code == 0
    assert endpoint.counts() == calls(*FUTURE, draws=2) - calls(*FUTURE, episodes=[first], draws=2)
    assert shell("verify", new).code == 0
    at_once = new.parent / "other" / "new"
    assert shell(*args, at_once, "--continuations", 2).code == 0
    assert files(new) == files(at_once)
    endpoint.sent.clear()
    assert shell(*args, new, "--limit", 1).code == 0
    assert endpoint.sent == []
    assert files(new) == files(at_once)


@pytest.mark.costly
def test_stopped_growth_leaves_the_branch_as_it_was_until_it_goes_on(made, shell, endpoint, new):
    args = ("branch", made.log, *ORDER, "-o", new)
    prices = ("--prices", new.parent / "study" / "prices.toml", "--max-connections", 1)
    assert shell(*args).code == 0
    said = shell(*args, "--continuations", 2, *prices, "--max-usd", "0.0124")
    assert said.code == BUDGET, said.err
    assert 4 < len(endpoint.sent) < 8
    assert shell("verify", new).code == 0
    assert shell(*args, "--continuations", 2).code == 0
    assert endpoint.counts() == calls(*FUTURE, draws=2)
    assert shell("verify", new).code == 0


@pytest.mark.costly
def test_a_branch_that_the_cap_stopped_can_end_with_what_was_begun(parent, shell, endpoint, new):
    made = parent(repeats=2)
    prices = ("--prices", new.parent / "study" / "prices.toml", "--max-connections", 1)
    args = ("branch", made.log, *ORDER, "-o", new)
    assert shell(*args, *prices, "--max-usd", "0.0116").code == BUDGET
    assert len(endpoint.sent) == 2
    assert shell(*args, "--limit", 1).code == 0
    ice = [f"{EPISODES[0]}.r{n:02d}" for n in (1, 2)]
    assert endpoint.counts() == calls(*FUTURE, episodes=ice)
    assert shell("verify", new).code == 0


AS_RANKED = {"vote_as_ranked": f"{C},{V},{M},{S}"}


@pytest.mark.costly
def test_a_rule_left_open_is_asked_for_on_the_same_proposals(parent, shell, endpoint, new):
    made = parent(votes=AS_RANKED)
    planned = plan_of(shell, made.log, "--rule", "ranked")
    # A ballot of each of four voters; then at most a tie round of eight calls and one future.
    assert planned["calls"] == {"least": 8, "most": 28, "ceiling": 56}
    assert planned["episodes"][0]["first_paid"] == "1/vote_as_ranked/scaffolding/1"
    assert shell("branch", made.log, "--rule", "ranked", "-o", new).code == 0
    asked = [f"1/vote_as_ranked/{role}/1" for role in ROLES]
    assert endpoint.counts() == calls(*asked, *FUTURE)
    winners = {one.turns[0].decision.winner for one in read_episodes(new) if one.branch}
    assert winners == {C}


@pytest.mark.costly
def test_a_parent_with_the_rule_s_ballots_pays_for_the_future_alone(parent, shell, endpoint, new):
    made = parent(votes=AS_RANKED, vote_formats=["ranked", "rich"])
    planned = plan_of(shell, made.log, "--rule", "ranked")
    assert planned["calls"] == {"least": 4, "most": 4, "ceiling": 8}
    assert shell("branch", made.log, "--rule", "ranked", "-o", new).code == 0
    assert endpoint.counts() == calls(*FUTURE)
    assert shell("verify", new).code == 0


@pytest.mark.costly
def test_another_panel_model_and_blinding_go_on(parent, shell, new):
    roles = [S, M, V]
    votes = {f"tie_vote/{V}": "?", f"vote_final/{V}": "?"}
    made = parent(votes=votes, roles=roles, blinding="shared", max_turns=2)
    order = ("--fallback-order", M)
    args = (
        made.log, *order, "--roles", f"{C},{V},{S}", "--model", "judge-model", "--continuations", 4,
    )  # fmt: skip
    assert shell("branch", *args, "-o", new).code == 0
    assert shell("verify", new).code == 0
    second = [one.turns[1] for one in read_episodes(new) if one.branch and len(one.turns) == 2]
    assert second
    assert {tuple(turn.proposals_final) for turn in second} == {(C, V, S)}
    models = {
        call.model for one in read_episodes(new) for call in one.calls if call.stage == "propose"
    }
    assert models == {"tutor-model", "judge-model"}


@pytest.mark.costly
def test_prefix_verdicts_are_kept_and_only_new_programs_judged(parent, shell, new, monkeypatch):
    made = parent(benchmarks={"humaneval": {"limit": 1}}, max_turns=2, conditions=["simple"])
    judged: list[str] = []
    from tutorsim.sandbox import Sandbox

    judge = Sandbox.judge

    def watch(self, run):
        judged.append(run.message)
        return judge(self, run)

    monkeypatch.setattr(Sandbox, "judge", watch)
    assert shell("branch", made.log, *ORDER, "-o", new).code == 0
    [one] = read_episodes(new)
    logged = next(iter(read_episodes(made.log)))
    assert one.attempts[0] == logged.attempts[0]
    assert sorted(judged) == sorted(attempt.text for attempt in one.attempts[1:])
    old = (made.cassettes / "verdicts.jsonl").read_text().splitlines()
    now = (new / "verdicts.jsonl").read_text().splitlines()
    assert len(set(old) & set(now)) == 1
    assert shell("verify", new).code == 0


@pytest.mark.parametrize(
    ("votes", "conditions"), [(dict.fromkeys(TIED, S), ["baseline", "simple"]), ({}, ["baseline"])]
)
def test_where_nothing_can_change_the_child_is_the_parent_at_no_cost(
    parent, shell, endpoint, new, votes, conditions
):
    made = parent(votes, conditions=conditions, seed=6)
    assert plan_of(shell, made.log, *ORDER)["calls"] == {"least": 0, "most": 0, "ceiling": 0}
    assert shell("branch", made.log, *ORDER, "-o", new).code == 0
    assert endpoint.sent == []
    assert (new / "episodes.jsonl").read_bytes() == (made.log / "episodes.jsonl").read_bytes()
    assert shell("verify", new).code == 0


# --- What stops a branch, and how it goes on --------------------------------------------------


def test_the_cap_stops_a_branch_which_goes_on_and_counts_no_prefix(made, shell, endpoint, new):
    prices = ("--prices", new.parent / "study" / "prices.toml", "--max-connections", 1)
    args = ("branch", made.log, *ORDER, "-o", new, *prices)
    # A reply costs 0.0003 dollars, 66 of the parent's 0.0198; a call may cost 0.0102 and more.
    said = shell(*args, "--max-usd", "0.001")
    assert said.code == BUDGET
    assert endpoint.sent == []
    said = shell(*args, "--max-usd", "0.0125")
    assert said.code == 0, said.err
    assert endpoint.counts() == calls(*FUTURE)
    assert shell("verify", new).code == 0


def test_a_cap_needs_the_price_of_the_model_that_goes_on(made, shell, new):
    prices = ("--prices", new.parent / "study" / "prices.toml", "--max-usd", 1)
    said = shell("branch", made.log, *ORDER, "--model", "another", "-o", new, *prices)
    said.fails(USAGE, "'another'")


@pytest.mark.parametrize(
    "kind", ["429", "drop", *(pytest.param(k, marks=pytest.mark.slow) for k in ("500", "cut"))]
)
def test_faults_are_asked_again_and_leave_no_trace(made, shell, endpoint, new, kind):
    assert shell("branch", made.log, *ORDER, "-o", new.parent / "plain" / "new").code == 0
    endpoint.sent.clear()
    endpoint.fault = lambda call, attempt: kind if attempt == 0 else None
    assert shell("branch", made.log, *ORDER, "-o", new).code == 0
    assert endpoint.counts() == dict.fromkeys(calls(*FUTURE), 2)
    assert files(new) == files(new.parent / "plain" / "new")


@pytest.mark.costly
def test_a_failed_episode_is_taken_up_again_on_demand(made, shell, endpoint, new):
    bad = f"{EPISODES[0]}.c01/1/judge/judge/1"
    endpoint.fault = lambda call, attempt: "400" if call == bad else None
    shell("branch", made.log, *ORDER, "-o", new).fails(1, "--retry-errors")
    assert shell("verify", new).code == 0
    endpoint.sent.clear()
    endpoint.fault = lambda call, attempt: None
    assert shell("branch", made.log, *ORDER, "-o", new).code == 1
    assert endpoint.sent == []
    assert shell("branch", made.log, *ORDER, "-o", new, "--retry-errors").code == 0
    assert endpoint.sent == [bad]
    assert shell("verify", new).code == 0


@pytest.mark.costly
@pytest.mark.parametrize(
    "answered", [12, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 5, 20, 33))]
)
def test_a_killed_branch_goes_on_and_pays_once(parent, shell, endpoint, new, launch, answered):
    made = parent(max_turns=2)
    endpoint.delay = 0.02
    child = launch("branch", made.log, *ORDER, "-o", new, "--max-connections", 2)
    endpoint.wait_for(answered)
    child.kill()
    child.wait()
    endpoint.delay = 0
    held, sent = on_disk(new), set(endpoint.sent)
    endpoint.sent.clear()
    assert shell("branch", made.log, *ORDER, "-o", new).code == 0
    assert not set(endpoint.sent) & held
    assert all(count == 1 for count in endpoint.counts().values())
    assert sent | set(endpoint.sent) <= on_disk(new)
    assert shell("branch", made.log, *ORDER, "-o", new.parent / "whole" / "new").code == 0
    assert files(new) == files(new.parent / "whole" / "new")


@pytest.mark.costly
def test_failed_episodes_of_the_parent_are_left_out(parent, shell, endpoint, new):
    bad = f"{EPISODES[0]}/1/judge/judge/1"
    endpoint.fault = lambda call, attempt: "400" if call in ("", bad) else None
    made = parent()
    planned = plan_of(shell, made.log, *ORDER)
    assert [one["episode_id"] for one in planned["episodes"]] == [EPISODES[1]]
    assert (planned["covered"], planned["open"]) == (2, 0)
    assert shell("branch", made.log, *ORDER, "-o", new).code == 0
    assert [one.condition for one in read_episodes(new)] == ["baseline", "baseline", "simple"]


# --- What is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["baseline", "simple"])
def test_an_edited_parent_is_refused_before_anything_is_paid_for(made, shell, endpoint, new, which):
    path = made.cassettes / f"sciq.ice.help_avoidant.{which}.json"
    path.write_bytes(path.read_bytes().replace(b"I think", b"I know!"))
    said = shell("branch", made.log, *ORDER, "-o", new)
    said.fails(INVALID, f"{path.name} of the parent was edited")
    assert endpoint.sent == []


def test_a_parent_that_is_gone_is_named_as_missing(made, shell, new):
    shutil.rmtree(made.cassettes)
    shell("branch", made.log, *ORDER, "-o", new).fails(USAGE, "--cassette-dir")
    assert not new.exists()


def test_other_prompts_than_the_parent_s_are_refused(made, shell, endpoint, new, monkeypatch):
    (made.cassettes / "wordings.toml").unlink()
    monkeypatch.setattr(
        "tutorsim.kernel.system_and_loaded_study.LoadedStudy.prompt_digest", lambda self: "0" * 64
    )
    said = shell("branch", made.log, *ORDER, "-o", new)
    said.fails(INVALID, "prompts of this tutorsim are not the recorded ones")
    assert endpoint.sent == []


def test_a_branch_is_never_written_over_its_parent(made, shell, endpoint):
    before = files(made.cassettes, made.log)
    for target in (made.cassettes, made.log, made.log / ".." / "cassettes"):
        said = shell("branch", made.log, *ORDER, "-o", target)
        said.fails(USAGE, "A branch leaves its parent as it is.")
    assert files(made.cassettes, made.log) == before
    assert endpoint.sent == []


def test_another_branch_into_the_same_folder_is_refused_with_what_differs(made, shell, child):
    before = files(child)
    said = shell("branch", made.log, "--tie-policy", "no_tie_round", "-o", child)
    said.fails(USAGE, "They differ in fallback_order, tie_policy")
    assert files(child) == before


def test_a_folder_with_another_recording_stays_as_it_is(made, shell, record, write_grid, new):
    assert record(write_grid(seed=6), name="other").code == 0
    other = new.parent / "other" / "cassettes"
    before = files(other)
    shell("branch", made.log, *ORDER, "-o", other).fails(USAGE, "holds another recording")
    assert files(other) == before


def test_without_credentials_no_folder_is_begun(made, shell, new, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    assert shell("branch", made.log, *ORDER, "-o", new).code == USAGE
    assert not new.exists()


def test_a_branch_is_not_branched_and_its_study_not_run(shell, endpoint, child):
    endpoint.sent.clear()
    shell("branch", child, *ORDER, "-o", child.parent / "next").fails(USAGE, "is a branch itself")
    folders = ("--log-dir", child.parent / "l", "--cassette-dir", child.parent / "c")
    for args in (folders, ("--dry-run",)):
        shell("run", child / "study.toml", *args).fails(USAGE, "cannot be run on its own")
    assert endpoint.sent == []


def test_a_panel_that_cannot_go_on_is_refused(made, shell, new):
    roles = f"{S},{M},nobody"
    shell("branch", made.log, *ORDER, "--roles", roles, "-o", new).fails(USAGE, "no role 'nobody'")
    assert not new.exists()


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("--plan",),
        ("--rule", "simple"),
        ("--rule", "simple", "--plan", *ORDER),
        (*ORDER, "--json"),
    ],
)
def test_what_is_asked_for_has_to_be_said(made, shell, args):
    assert shell("branch", made.log, *args).code == USAGE


def test_recording_a_branch_is_refused_in_ci(made, shell, new, monkeypatch):
    monkeypatch.setenv("CI", "1")
    assert shell("branch", made.log, *ORDER, "-o", new).code == USAGE
    assert plan_of(shell, made.log, *ORDER)["covered"] == 2


HOSTILE = "\x1b[31m\u202e[bold]<script>\x07"


@pytest.mark.costly
def test_hostile_text_of_the_parent_reaches_no_terminal(parent, shell, endpoint, new, monkeypatch):
    text = type(endpoint)._text

    def hostile(self, call, user):
        return text(self, call, user) + (HOSTILE if "/student/" in call else "")

    monkeypatch.setattr(type(endpoint), "_text", hostile)
    made = parent(seed=6)
    planned = shell("branch", made.log, *ORDER, "--plan")
    said = shell("branch", made.log, *ORDER, "-o", new)
    for shown in (planned.out, planned.err, said.out, said.err):
        assert not set(shown) & {"\x1b", "\u202e", "\x07"}
    assert (planned.code, said.code, shell("verify", new).code) == (0, 0, 0)


@pytest.mark.parametrize("head", [False, True], ids=["lines", "lines and head"])
def test_a_log_edited_by_hand_is_refused_by_name(made, shell, endpoint, new, head):
    path = made.log / "episodes.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    edited = json.loads(lines[1])["episode_id"]
    lines[1] = lines[1].replace('"success":', '"success" :', 1)
    path.write_text("".join(lines), encoding="utf-8")
    if head:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        edit(made.log / "run.json", lambda run: run.update(episodes_sha256=digest))
    sent = len(endpoint.sent)
    for command in (("--plan",), ("-o", new)):
        said = shell("branch", made.log, *ORDER, *command)
        assert said.code == 4
        named = f"what its recording gives: {edited}" if head else "the log that run.json names"
        assert f"episodes.jsonl is not {named}" in said.err
    assert len(endpoint.sent) == sent
    assert not new.exists()


def test_a_plan_says_what_to_expect_beside_the_range(made, shell, new):
    prices = ("--prices", new.parent / "study" / "prices.toml")
    value = shell("branch", made.cassettes, *ORDER, "--plan", "--json", *prices).json()
    assert value["least_cost"] <= value["expected_cost"] <= value["cost"]
    way = value["least_cost"] + value["share"] * (value["cost"] - value["least_cost"])
    assert value["expected_cost"] == pytest.approx(way)
    said = shell("branch", made.log, *ORDER, "--plan", *prices)
    told = f"{value['expected_cost']:,.3f} US dollars, {100 * value['share']:.0f} % of the way"
    assert f"\n  Expected: {told} from the shortest" in said.out


# --- `tutorsim retest`: its plan, what it refuses, and the retest where recordings are shown ------

EPISODE = "sciq.ice.help_avoidant.simple"
REPEAT = "1/vote_final/scaffolding/1/r02"


def test_a_plan_says_what_it_takes_and_sends_nothing(recorded, shell, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    prices = ("--prices", recorded.study.with_name("prices.toml"))
    shell("retest", recorded.log, "--repeats", 3, "--plan", *prices).tells(
        "Prompts: 16, in 2 turns of 2 episodes",
        "Calls to pay: 48; at most 96 if every reply had to be asked for twice",
    )
    args = ("--repeats", 3, "--sample", 1, "--stages", "vote_final")
    value = shell("retest", recorded.log, *args, *prices, "--plan", "--json").json()
    assert value == {
        "study": "grid", "episodes": 1, "turns": 1, "prompts": 4, "repeats": 3, "recorded": 0,
        "calls": 12, "most_calls": 24,
        "tokens": {"tutor-model": [1200, 240]},
        "prices_as_of": "2026-01-01", "cost": pytest.approx((1200 * 1.0 + 240 * 10.0) / 1e6),
        "expected_cost": pytest.approx((1200 * 1.0 + 240 * 10.0) / 1e6),
        "most_cost": pytest.approx(2 * (1200 * 1.0 + 240 * 10.0) / 1e6),
        "unknown_prices": [],
    }  # fmt: skip


def test_the_price_of_an_unknown_model_is_said_to_be_unknown(recorded, shell):
    said = shell("retest", recorded.log, "--repeats", 1, "--dry-run")
    assert "unknown: no price for tutor-model" in said.out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--repeats", 0), "0 is not in the range"),
        ((), "Missing option '--repeats'"),
        (("--repeats", 1, "--stages", "tie_vote"), "'tie_vote' is no stage"),
        (("--repeats", 1, "--stages", ""), "names nothing"),
        (("--repeats", 1, "--sample", 0), "0 is not in the range"),
    ],
)
def test_what_cannot_be_asked_is_refused(args, words, recorded, shell):
    shell("retest", recorded.log, *args, "--plan").fails(2, words)


def test_a_log_without_its_recording_names_the_option_to_give(recorded, shell, tmp_path):
    shutil.move(recorded.cassettes, tmp_path / "moved")
    shell("retest", recorded.log, "--repeats", 1, "--plan").fails(2, "--cassette-dir")
    args = ("--repeats", 1, "--plan", "--cassette-dir", tmp_path / "moved")
    assert shell("retest", recorded.log, *args).code == 0


# --- A retest where recordings are shown ------------------------------------------------------


def test_a_retest_is_listed_with_its_recording_and_is_no_orphan(retested, shell):
    said = shell("cassette", "list", retested.parent)
    assert "2 ×, 35 calls" in said.out
    [value] = shell("cassette", "list", retested.parent, "--json").json()
    assert (value["retest"]["repeats"], value["retest"]["failed_calls"]) == (2, 1)
    assert shell("cassette", "list", retested.parent, "--orphans").code == 0
    (retested / "retest" / "retest.manifest.json").unlink()
    assert "(unfinished)" in shell("cassette", "list", retested).out
    (retested / "retest" / "retest.manifest.json").write_bytes(b"{")
    assert "(damaged)" in shell("cassette", "list", retested).out


def test_calls_of_a_retest_are_shown_behind_the_others(retested, shell):
    calls = shell("cassette", "show", retested, EPISODE, "--json").json()
    keys = [call["key"] for call in calls]
    assert len(set(keys)) == len(keys)
    assert keys.index(REPEAT) > keys.index("1/judge/judge/1")
    shown = shell("cassette", "show", retested, EPISODE, "--call", REPEAT, "--json").json()
    original = REPEAT.rpartition("/")[0]
    first = shell("cassette", "show", retested, EPISODE, "--call", original, "--json").json()
    assert shown["request"] == first["request"]


def test_the_files_of_a_retest_are_held_against_their_manifest(retested, shell):
    assert shell("cassette", "verify", retested).code == 0
    folder = retested / "retest"
    path = folder / f"{EPISODE}.json"
    path.write_bytes(path.read_bytes().replace(b"end_turn", b"odd_turn", 1))
    (folder / "sciq.stray.help_avoidant.simple.json").write_bytes(b"{}")
    (folder / f"{EPISODE}.journal.jsonl").write_bytes(b"")
    shell("cassette", "verify", retested).fails(
        1,
        f"retest/{EPISODE}.json: its replies were edited",
        "retest/sciq.stray.help_avoidant.simple.json: the manifest does not name it",
        f"retest/{EPISODE}.journal.jsonl: the retest is half recorded",
    )
    (folder / "retest.manifest.json").write_bytes(b"{}")
    assert "retest/retest.manifest.json" in shell("cassette", "verify", retested).err


def test_a_retest_is_converted_with_its_recording(retested, shell, tmp_path):
    packed, back = tmp_path / "packed" / "cassettes", tmp_path / "back" / "cassettes"
    assert shell("cassette", "convert", retested, "--to", "compressed", "-o", packed).code == 0
    assert shell("verify", packed).code == 0
    shell("retest", packed, "--repeats", 3, "--plan").fails(4, "cassette convert")
    assert shell("cassette", "convert", packed, "--to", "text", "-o", back).code == 0
    assert files(back) == files(retested)
