"""The study of a branch: its cursors, its grid, and what is refused."""

import json
from dataclasses import dataclass, field, replace

import pytest

from tests.tutorsim.conftest import files
from tutorsim.errors import RecordingError, UsageError
from tutorsim.kernel.cost_plan import load_prices
from tutorsim.kernel.flow_drivers_and_call_log import Round, drive, scripted
from tutorsim.kernel.load_and_check_study_file import load_study, write_study
from tutorsim.kernel.system_and_loaded_study import CallRange
from tutorsim.model import CallKey
from tutorsim.records import Branch, BranchedEpisode, EpisodeRecord, Failure, read_episodes
from tutorsim.runner.branch_plan_and_answers_from_parent import (
    Alternative,
    BranchPlan,
    EpisodePlan,
    Parent,
)
from tutorsim.runner.find_and_check_recording import open_recording
from tutorsim.systems.panel.branch_study_and_plan_of_calls_to_pay import (
    branch_study,
    calls_to_pay,
    plan_branch,
)
from tutorsim.systems.panel.episode_flow_and_study import episode
from tutorsim.systems.panel.scene_and_reading_proposals_reviews_judge_scores import Scene
from tutorsim.vocabularies import DEFAULT_ROLES

ICE, MOON = (f"sciq.{task}.help_avoidant.simple" for task in ("ice", "moon"))
BASELINES = tuple(f"sciq.{task}.help_avoidant.baseline" for task in ("ice", "moon"))
ORDER = Alternative(fallback_order=("motivation", "misconception", "scaffolding", "metacognitive"))


@pytest.fixture(scope="module")
def recording(recorded_once):
    return open_recording(recorded_once.cassettes)


@pytest.fixture(scope="module")
def episodes(recorded_once):
    return tuple(read_episodes(recorded_once.log))


def ids(loaded):
    return [spec.episode_id for spec in loaded.grid()]


def test_a_branch_has_covered_episodes_and_continuations_in_the_parent_s_order(recording, episodes):
    loaded = branch_study(recording, episodes, ORDER, {MOON: 1}, continuations=2)
    assert ids(loaded) == [BASELINES[0], ICE, BASELINES[1], f"{MOON}.c01", f"{MOON}.c02"]
    parents = [spec.parent_id for spec in loaded.grid()]
    assert parents == [BASELINES[0], ICE, BASELINES[1], MOON, MOON]
    branch = loaded.study.branch
    assert branch.covered == (BASELINES[0], ICE, BASELINES[1])
    [logged] = [one for one in episodes if one.episode_id == MOON]
    assert branch.episodes[MOON].turn == 1
    assert branch.episodes[MOON].winners == tuple(t.decision.winner for t in logged.turns)
    assert branch.parent_recording == recording.manifest.recording_digest()
    assert branch.parent_study == recording.manifest.study_digest
    assert (branch.parent, loaded.study.name) == ("grid", "grid-branch")


def test_episodes_that_are_not_wanted_are_neither_covered_nor_taken_up(recording, episodes):
    loaded = branch_study(recording, episodes, ORDER, {ICE: 1, MOON: 1}, only={ICE})
    assert ids(loaded) == [BASELINES[0], f"{ICE}.c01", BASELINES[1]]


def test_failed_episodes_are_left_out(recording, episodes):
    failed = {"status": "failed", "failure": Failure(key="1/judge/judge/1", error="HTTP 400")}
    log = [
        one.model_copy(update=failed) if one.episode_id in (ICE, BASELINES[1]) else one
        for one in episodes
    ]
    loaded = branch_study(recording, log, ORDER, {ICE: 1, MOON: 1})
    assert ids(loaded) == [BASELINES[0], f"{MOON}.c01"]
    plan, told = planned(recording, loaded, log)
    assert (told, [one.shrinks for one in plan.episodes]) == ([(1, 1)], [1.0])


def planned(recording, loaded, log):
    told = []
    parent = Parent(recording, loaded.study.branch)
    plan = plan_branch(
        loaded, parent, log, load_prices(), on_progress=lambda *done: told.append(done)
    )
    return plan, told


def test_a_plan_counts_its_episodes_and_each_is_its_share_of_a_cell(recording, episodes):
    loaded = branch_study(recording, episodes, ORDER, {ICE: 1, MOON: 1}, continuations=2)
    plan, told = planned(recording, loaded, episodes)
    assert told == [(1, 2), (2, 2)]
    assert [one.shrinks for one in plan.episodes] == [0.5, 0.5]
    # Ties are broken in another order, and none was: all 24 calls of each are taken over, twice.
    assert [(one.reused, one.first_paid) for one in plan.episodes] == [(48, ""), (48, "")]


def test_the_study_file_of_a_branch_gives_the_branch_back(recording, episodes, tmp_path):
    """Episode ids have dots in them, which a table of the file must not take for tables."""
    panel = ("motivation", "scaffolding", "misconception")
    changed = Alternative("ranked", ORDER.fallback_order, "no_tie_round", panel, "m")
    for alternative in (ORDER, changed):
        loaded = branch_study(recording, episodes, alternative, {MOON: 1}, continuations=3)
        write_study(loaded, tmp_path)
        read = load_study(tmp_path / "study.toml")
        assert read.study.branch == loaded.study.branch
        assert (read.digest(), ids(read)) == (loaded.digest(), ids(loaded))


def test_a_branch_that_grows_keeps_its_digest_and_other_changes_give_another(recording, episodes):
    one = branch_study(recording, episodes, ORDER, {MOON: 1, ICE: 1}, only={MOON})
    more = branch_study(recording, episodes, ORDER, {MOON: 1, ICE: 1}, continuations=5)
    assert one.digest() == more.digest() != recording.loaded.digest()
    others = [
        branch_study(recording, episodes, replace(ORDER, model="m"), {MOON: 1, ICE: 1}),
        branch_study(recording, episodes, Alternative(rule="ranked"), {MOON: 1, ICE: 1}),
        branch_study(recording, episodes, ORDER, {MOON: 1}),
    ]
    assert len({one.digest(), *(other.digest() for other in others)}) == 4


def test_a_long_name_stays_a_name(recording, episodes, tmp_path):
    study = recording.loaded.study.model_copy(update={"name": "n" * 80})
    long = replace(recording, loaded=replace(recording.loaded, study=study))
    write_study(branch_study(long, episodes, ORDER, {MOON: 1}), tmp_path)
    assert load_study(tmp_path / "study.toml").study.name == "n" * 73 + "-branch"


def test_a_branch_of_a_branch_is_refused(recording, episodes):
    loaded = branch_study(recording, episodes, ORDER, {MOON: 1})
    with pytest.raises(UsageError, match="is a branch itself"):
        branch_study(replace(recording, loaded=loaded), episodes, ORDER, {MOON: 1})


def test_other_prompts_are_refused(recording, episodes):
    with pytest.raises(RecordingError, match="prompts of this tutorsim are not the recorded"):
        branch_study(replace(recording, drifted=True), episodes, ORDER, {MOON: 1})


@pytest.mark.parametrize(
    ("roles", "why"),
    [
        (("scaffolding", "motivation", "x"), "no role 'x'"),
        (("scaffolding", "motivation", "baseline"), "no role 'baseline' for a panel"),
        (("scaffolding",) * 3, "3 to 8 different roles"),
        (("scaffolding", "motivation"), "3 to 8 different roles"),
        ((), "3 to 8 different roles"),
    ],
)
def test_a_panel_that_cannot_go_on_is_refused(recording, episodes, roles, why):
    with pytest.raises(UsageError, match=why):
        branch_study(recording, episodes, replace(ORDER, roles=roles), {MOON: 1})


# --- Plans of branches: what is taken over for certain, and the range of what is paid for ---------


@pytest.fixture
def serve(monkeypatch, stand_ins):
    monkeypatch.setattr("tutorsim.runner.submit_and_poll_batches_in_waves.FIRST_POLL", 0.01)
    return stand_ins


def planned_and_paid(shell, server, log, new, *args):
    said = shell("branch", log, *args, "--plan", "--json")
    assert said.code == 0, said.err
    before = server.requests
    done = shell("branch", log, *args, "-o", new)
    assert done.code == 0, done.err
    paid = server.requests - before
    assert shell("branch", log, *args, "-o", new).code == 0
    assert server.requests - before == paid
    assert shell("verify", new).code == 0
    return json.loads(said.out)["calls"], paid


PANELS = ["simple", "ranked", "cumulative", "approval", "rich"]


def record_parent(serve, record, write_grid, **settings):
    steady, seed = settings.pop("steady", True), settings.pop("seed", 3)
    server = serve(seed=seed, steady=steady)
    models = {"models": {"tutor": "claude-sonnet-4-5"}}
    assert record(write_grid(conditions=PANELS, max_turns=3, **models, **settings)).code == 0
    return server


@pytest.mark.costly
@pytest.mark.loopback
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_cost_is_in_the_range_and_equal_in_batches(serve, record, write_grid, shell, tmp_path):
    limit = {"sciq": {"tasks": "questions.jsonl", "limit": 1}}
    server = record_parent(serve, record, write_grid, benchmarks=limit)
    log, new, other = (tmp_path / "one" / "log", tmp_path / "new", tmp_path / "other" / "new")
    calls, paid = planned_and_paid(shell, server, log, new, "--rule", "simple")
    assert 0 < calls["least"] <= paid <= calls["most"]
    assert shell("branch", log, "--rule", "simple", "--batch", "-o", other).code == 0
    assert files(other) == files(new)


@pytest.mark.slow
@pytest.mark.loopback
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("steady", [True, False])
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    "settings", [{}, {"vote_formats": ["rich", "simple"]}, {"roles": list(DEFAULT_ROLES[:3])}]
)
def test_what_is_paid_is_always_in_the_range(
    steady, seed, settings, serve, record, write_grid,
    shell, tmp_path
):  # fmt: skip
    server = record_parent(serve, record, write_grid, steady=steady, seed=seed, **settings)
    roles = settings.get("roles", DEFAULT_ROLES)
    order = ("--fallback-order", ",".join(reversed(roles)))
    alternatives = [("--rule", rule) for rule in PANELS[:4]]
    for n, args in enumerate([*alternatives, order, ("--tie-policy", "no_tie_round")]):
        calls, paid = planned_and_paid(
            shell, server, tmp_path / "one" / "log", tmp_path / str(n), *args
        )
        assert calls["least"] <= paid <= calls["most" if steady else "ceiling"]
        for one in read_episodes(tmp_path / str(n)):
            assert one.branch is None or one.turns[one.branch.turn - 1 :]


TURNS = 3


def priced(make_scene, first, turn, *, n=4, settings=None, **changed):
    scene: Scene = make_scene(max_turns=TURNS, **(settings or {}))
    branch = Branch(parent="p", parent_study="", parent_recording="", **changed)
    agents = ("student",) if first == "student" else scene.study.roles[:n]
    missing = [CallKey(turn, first, agent, 1) for agent in agents]  # type: ignore[arg-type]
    least, most = calls_to_pay(scene, branch, missing)
    return CallRange(least.total(), most.total(), 0)


FULL = 4 * 7 + 2
"""A turn with a tie round, and the future behind it."""


@pytest.mark.parametrize(
    ("first", "turn", "changed", "expected"),
    [
        # Another winner is certain: one attempt, and a whole turn for every further one.
        ("student", 3, {"fallback_order": DEFAULT_ROLES}, (2, 2)),
        ("student", 2, {"fallback_order": DEFAULT_ROLES}, (2, 2 + FULL)),
        ("student", 1, {"fallback_order": DEFAULT_ROLES}, (2, 2 + 2 * FULL)),
        # Without a tie round a turn has five stages.
        ("student", 1, {"tie_policy": "no_tie_round"}, (2, 2 + 2 * (4 * 5 + 2))),
        # A tie round may confirm the logged winner.
        ("tie_critique", 3, {"rule": "simple"}, (8, 8 + 2)),
        ("tie_vote", 3, {"rule": "simple"}, (4, 4 + 2)),
        # So may ballots that are asked for, which may tie as well.
        ("vote_as_ranked", 3, {"rule": "ranked"}, (4, 4 + 8 + 2)),
        ("vote_as_ranked", 2, {"rule": "ranked"}, (4, 4 + 8 + 2 + FULL)),
        # A panel of three goes on: 3 x 7 + 2 for each turn behind the cursor.
        ("student", 1, {"roles": DEFAULT_ROLES[:3]}, (2, 2 + 2 * 23)),
    ],
)
def test_the_range_from_the_first_call_that_is_paid_for(make_scene, first, turn, changed, expected):
    found = priced(make_scene, first, turn, **changed)
    assert (found.least, found.most) == expected


def test_staying_on_the_path_can_take_more_calls_than_a_small_panel_that_goes_on(make_scene):
    roles = [f"tutor_{n}" for n in "abcdefgh"]
    entry = {"title": "tutor", "objective": "help", "means": "Say more."}
    settings = {"roles": roles, "catalog": {"roles": dict.fromkeys(roles, entry)}}
    found = priced(
        make_scene, "vote_as_ranked", 1, n=8, settings=settings, rule="ranked",
        roles=tuple(roles[:3]),
    )  # fmt: skip
    # Eight ballots and sixteen calls of a tie round in each turn, then one attempt; leaving at
    # once would take 24 + 2 + 2 x (3 x 7 + 2) = 72.
    assert (found.least, found.most) == (8, 3 * 24 + 2)


@pytest.mark.parametrize(
    ("formats", "most"),
    [
        (["simple"], 2 + 2 * (FULL + 4)),  # asked beside the ranking, once that is the vote
        (["ranked"], 2 + 2 * FULL),  # the vote itself from then on
        (["simple", "approval"], 2 + 2 * (FULL + 8)),
    ],
)
def test_further_formats_are_asked_beside_the_rule_s(make_scene, formats, most):
    found = priced(make_scene, "student", 1, settings={"vote_formats": formats}, rule="ranked")
    assert (found.least, found.most) == (2, most)


def plan_of(name, *, shrinks, calls, cost, reused):
    return EpisodePlan(
        episode_id=name, benchmark="sciq", condition="simple", turn=1,
        first_paid="1/student/student/1", reused=reused, calls=CallRange(calls, calls, 2 * calls),
        tokens=(10 * calls, calls),
        least_cost=cost, cost=cost, shrinks=shrinks,
    )  # fmt: skip


def test_an_episode_is_worth_the_width_that_a_dollar_or_else_a_call_buys():
    assert plan_of("a", shrinks=0.5, calls=2, cost=0.25, reused=0).worth == 2.0
    assert plan_of("a", shrinks=0.5, calls=2, cost=None, reused=0).worth == 0.25
    assert plan_of("a", shrinks=0.5, calls=0, cost=0.0, reused=0).worth == 0.5


def test_a_limited_plan_sums_what_is_left_and_keeps_what_was_begun():
    plans = tuple(
        plan_of(name, shrinks=0.5, calls=n, cost=0.1 * n, reused=10 * n)
        for n, name in enumerate("abc", start=1)
    )
    whole = BranchPlan(plans, 7, 160, CallRange(6, 6, 12), (60, 6), 0.6, 0.6, "2026-01-01")
    found = whole.limited(1, also={"c"})
    assert [one.episode_id for one in found.episodes] == ["a", "c"]
    assert (found.covered, found.reused) == (7, 100 + 10 + 30)
    assert (found.calls, found.tokens) == (CallRange(4, 4, 8), (40, 4))
    assert found.cost == pytest.approx(0.4)
    assert whole.limited(9, also=frozenset()) == whole.limited(3, also=frozenset())


# --- One episode of a branch: the parent up to the cursor, and what the alternative makes of it ---

S, M, V, C = DEFAULT_ROLES
SWAPPED = (M, S, V, C)


@dataclass
class Continued:
    """A parent, one future of it, and the calls that the parent could not answer."""

    parent: EpisodeRecord
    record: EpisodeRecord
    paid: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)
    """Keys of calls marked as past a left path."""
    played: object = None
    """The script that answered what was paid for."""

    @property
    def stages(self):
        """Turn and stage of what was paid for, each once, in order."""
        return list(dict.fromkeys(tuple(key.split("/")[:2]) for key in self.paid))


@pytest.fixture
def branch(make_scene, script):
    """Play an episode, then a branch of it that may ask it for calls with the same request."""

    def play(replies, *, later=None, turn=1, changed=None, covered=False, **settings):
        scene = make_scene(**{"max_turns": 2, **settings})
        first = script(replies)
        recorded = {}

        def answer(call):
            recorded[call.key] = (call.request, first(call))
            return recorded[call.key][1]

        parent = drive(episode(scene), scripted(answer))
        name = scene.spec.episode_id
        winners = tuple(one.decision.winner for one in parent.turns if one.decision)
        value = Branch(
            parent="p",
            parent_study="0",
            parent_recording="0",
            covered=(name,) if covered else (),
            episodes={} if covered else {name: BranchedEpisode(turn=turn, winners=winners)},
            **changed or {},
        )
        study = scene.study.model_copy(update={"branch": value})
        loaded = replace(scene.loaded, study=study)
        found = Continued(parent, parent, played=script({**replies, **(later or {})}))

        def world(effect):
            if isinstance(effect, Round) and effect.fresh:
                found.fresh += [str(call.key) for call in effect.calls]
            return scripted(lambda call: reply(call, effect.fresh))(effect)

        def reply(call, fresh):
            request, text = recorded.get(call.key, (None, None))
            if not fresh and request == call.request:
                return text
            found.paid.append(str(call.key))
            return found.played(call)

        found.record = drive(episode(Scene(loaded, next(loaded.grid()))), world)
        return found

    return play


def votes(stage, *ballots):
    return {f"{stage}/{role}": one for role, one in zip(DEFAULT_ROLES, ballots, strict=True)}


def all_cast(stage, ballot):
    return votes(stage, *[ballot] * 4)


FALLBACK = {**votes("vote_final", S, M, S, M), **votes("tie_vote", S, M, S, M)}
"""s and m tie twice; the order decides."""


def test_an_order_decides_from_the_cursor_on_and_nothing_before_it_is_asked(branch):
    found = branch(FALLBACK, changed={"fallback_order": SWAPPED})
    assert found.parent.turns[0].decision.winner == S
    turn, second = found.record.turns
    assert (turn.decision.winner, turn.decision.decided_by) == (M, "fallback")
    assert turn.delivered == found.parent.turns[0].proposals_final[M].text
    logged = found.parent.turns[0]
    for part in ("proposals_final", "ballots_final", "tie_round", "ballots_as"):
        assert getattr(turn, part) == getattr(logged, part)
    assert found.paid[:2] == ["1/student/student/1", "1/judge/judge/1"]
    assert found.paid == found.fresh
    assert second.decision.winner == M
    parent = found.parent.episode_id
    branched = {"parent_episode": parent, "turn": 1, "continuation": 1, "left": 1}
    assert found.record.branch.model_dump() == branched
    assert found.record.episode_id == f"{parent}.c01"


def test_before_the_cursor_the_logged_decisions_stand(branch):
    found = branch(FALLBACK, turn=2, changed={"fallback_order": SWAPPED})
    assert found.record.turns[0] == found.parent.turns[0]
    assert found.record.turns[1].decision.winner == M
    assert found.paid == ["2/student/student/1", "2/judge/judge/1"]
    assert found.record.branch.left == 2


def test_a_covered_episode_is_played_as_it_was_logged(branch):
    found = branch(FALLBACK, covered=True, changed={"fallback_order": SWAPPED})
    assert (found.record, found.paid, found.fresh) == (found.parent, [], [])


def test_without_a_tie_round_the_order_decides_at_once(branch):
    resolved = FALLBACK | votes("tie_vote", M, M, M, S)
    found = branch(resolved, changed={"tie_policy": "no_tie_round"})
    assert found.parent.turns[0].decision.winner == M
    turn, second = found.record.turns
    assert (turn.decision.winner, turn.decision.decided_by, turn.tie_round) == (S, "fallback", None)
    assert turn.decision.tied_in_vote == (S, M)
    assert found.paid[0] == "1/student/student/1"
    assert second.tie_round is None
    assert not any("tie" in key for key in found.paid)


RANKED = votes(
    # First: s s m v. By points: s 3+3+0+0 = 6, m 2+2+3+2 = 9, v 1+0+2+3 = 6, c 0+1+1+1 = 3.
    "vote_final",
    f"{S},{M},{V},{C}",
    f"{S},{M},{C},{V}",
    f"{M},{V},{C},{S}",
    f"{V},{M},{C},{S}",
)


def test_ballots_that_determine_the_rule_s_are_mapped_and_nobody_is_asked(branch):
    found = branch(RANKED, later=all_cast("2/vote_final", V), conditions=["ranked"], changed=SIMPLE)
    assert found.parent.turns[0].decision.winner == M
    turn, second = found.record.turns
    assert turn.decision.tallies == {S: 2, M: 1, V: 1, C: 0}
    assert (turn.decision.winner, found.record.branch.left) == (S, 1)
    assert found.paid[0] == "1/student/student/1"
    assert [(b.protocol, b.counted_as) for b in turn.ballots_final] == [("ranked", "simple")] * 4
    assert turn.ballots_as == {"ranked": found.parent.turns[0].ballots_final}
    assert {ballot.protocol for ballot in second.ballots_final} == {"simple"}
    assert second.decision.tallies == {S: 0, M: 0, V: 4, C: 0}
    assert found.record.condition == "ranked"


SIMPLE = {"rule": "simple"}
AS_RANKED = {"vote_as_ranked": f"{C},{V},{M},{S}", f"vote_as_ranked/{S}": f"{S},{C},{V},{M}"}
"""c 2+3+3+3 = 11, v 1+2+2+2 = 7, s 3, m 0+1+1+1 = 3."""


def test_ballots_that_leave_the_rule_s_open_are_asked_for_on_the_same_proposals(branch):
    plain = votes("vote_final", S, S, M, V)
    later = AS_RANKED | all_cast("2/vote_final", f"{V},{M},{S},{C}")
    found = branch(plain, later=later, changed={"rule": "ranked"})
    turn, second = found.record.turns
    assert found.paid[:4] == [f"1/vote_as_ranked/{role}/1" for role in DEFAULT_ROLES]
    assert found.fresh == found.paid[4:]
    assert turn.decision.tallies == {S: 3, M: 3, V: 7, C: 11}
    assert (turn.decision.winner, found.record.branch.left) == (C, 1)
    logged = found.parent.turns[0].ballots_final
    assert turn.ballots_as == {"simple": logged}
    assert [b.labels for b in turn.ballots_final] == [b.labels for b in logged]
    assert second.ballots_as == {}
    assert second.decision.winner == V


def test_with_the_logged_winner_the_path_stays_the_parent_s(branch):
    plain = votes("vote_final", S, S, M, V)
    later = {"1/vote_as_ranked": f"{S},{C},{V},{M}", "2/vote_as_ranked": f"{V},{C},{S},{M}"}
    found = branch(plain, later=later, changed={"rule": "ranked"})
    assert [turn.decision.winner for turn in found.record.turns] == [S, V]
    asked = [("1", "vote_as_ranked"), ("2", "vote_as_ranked"), ("2", "student"), ("2", "judge")]
    assert found.stages == asked
    assert found.record.branch.left == 2
    assert found.fresh == ["2/student/student/1", "2/judge/judge/1"]
    assert found.record.attempts[1] == found.parent.attempts[1]
    assert found.record.turns[1].proposals_final == found.parent.turns[1].proposals_final


def test_a_path_that_was_never_left_ends_as_the_parent_did(branch):
    later = {"vote_as_ranked": f"{S},{C},{V},{M}"}
    found = branch(votes("vote_final", S, S, M, V), later=later, changed={"rule": "ranked"})
    assert found.record.branch.left is None
    assert found.record.attempts == found.parent.attempts
    assert found.stages == [("1", "vote_as_ranked"), ("2", "vote_as_ranked")]
    assert found.fresh == []


POINTS = votes(
    # s 13+0+13+0 = 26, m 12+13+0+13 = 38, v 0+12+12+12 = 36: m wins; first: s m s m.
    "vote_final",
    f"{S}=13,{M}=12,{V}=0,{C}=0",
    f"{M}=13,{V}=12,{S}=0,{C}=0",
    f"{S}=13,{V}=12,{M}=0,{C}=0",
    f"{M}=13,{V}=12,{S}=0,{C}=0",
)


def test_only_a_missing_tie_round_is_paid_for_and_held_in_the_rule_s_format(branch):
    tie = votes("1/tie_vote", S, S, S, M)
    later = tie | all_cast("2/vote_final", V)
    found = branch(POINTS, later=later, conditions=["cumulative"], changed=SIMPLE)
    turn = found.record.turns[0]
    assert found.stages[:3] == [("1", "tie_critique"), ("1", "tie_vote"), ("1", "student")]
    assert turn.decision.steps[1].tallies == {S: 3, M: 1}
    assert (turn.decision.winner, turn.decision.decided_by) == (S, "tie_round")
    assert {ballot.protocol for ballot in turn.tie_round.ballots} == {"simple"}
    assert "Vote for the one best reply" in found.played.prompt(f"1/tie_vote/{S}/1")


def test_reviews_of_the_same_tied_proposals_are_the_parent_s(branch):
    # By points s and m tie as well: 13+0+13+12 and 12+13+0+13.
    level = POINTS | {f"vote_final/{C}": f"{M}=13,{S}=12,{V}=0,{C}=0"}
    points = {"tie_vote": f"{M}=25,{S}=0"}
    later = {"1/tie_vote": S} | all_cast("2/vote_final", V)
    found = branch(level | points, later=later, conditions=["cumulative"], changed=SIMPLE)
    assert found.parent.turns[0].tie_round.candidates == (S, M)
    assert found.stages[:2] == [("1", "tie_vote"), ("1", "student")]
    assert found.record.turns[0].tie_round.reviews == found.parent.turns[0].tie_round.reviews
    assert found.record.turns[0].decision.winner == S


def test_equal_texts_of_different_winners_do_not_lend_each_other_their_futures(branch):
    same = {
        "propose": "PROPOSAL: The same.",
        "revise": "PROPOSAL: The same.",
        **votes("vote_final", "A", "B", "A", "B"),
        **votes("tie_vote", "A", "B", "A", "B"),
    }
    order = tuple(reversed(DEFAULT_ROLES))
    found = branch(same, blinding="shared", changed={"fallback_order": order})
    logged, turn = found.parent.turns[0], found.record.turns[0]
    assert turn.delivered == logged.delivered == "The same."
    assert turn.decision.winner != logged.decision.winner
    assert found.paid[:2] == ["1/student/student/1", "1/judge/judge/1"]
    assert found.paid == found.fresh


def test_a_parent_with_ballots_in_the_rule_s_format_answers_for_free(branch):
    replies = votes("vote_final", S, S, M, V) | AS_RANKED
    later = all_cast("2/vote_final", f"{V},{M},{S},{C}")
    found = branch(
        replies, later=later, changed={"rule": "ranked"}, vote_formats=["ranked", "approval"]
    )
    logged, turn = found.parent.turns[0], found.record.turns[0]
    assert found.paid[0] == "1/student/student/1"
    assert turn.decision.winner == C
    assert turn.ballots_final == logged.ballots_as["ranked"]
    values = turn.ballots_as
    assert values == {"approval": logged.ballots_as["approval"], "simple": logged.ballots_final}
    assert list(found.record.turns[1].ballots_as) == ["approval"]


def test_after_leaving_another_panel_and_model_go_on(branch):
    plain = votes("vote_final", S, S, M, V)
    later = AS_RANKED | all_cast("2/vote_final", f"{V},{C},{M}")
    changed = {"rule": "ranked", "roles": (V, C, M), "model": "other-model"}
    found = branch(plain, later=later, changed=changed)
    turn, second = found.record.turns
    assert list(turn.proposals_final) == list(DEFAULT_ROLES)
    assert list(second.proposals_final) == [V, C, M]
    asked = {str(call.key): call.request.model for call in found.played.calls}
    logged = found.parent.calls[0].model, found.parent.calls[2].model
    assert asked[f"1/vote_as_ranked/{S}/1"] == logged[1]
    assert asked["1/student/student/1"] == asked["2/student/student/1"] == logged[0]
    assert asked[f"2/propose/{V}/1"] == asked[f"2/vote_final/{V}/1"] == "other-model"
    assert asked["2/judge/judge/1"] == found.parent.calls[1].model


def test_the_order_of_another_panel_keeps_the_logged_priorities(branch):
    """Also at the cursor, where the logged panel votes and a role that leaves may win."""
    later = all_cast("2/vote_final", "?") | all_cast("2/tie_vote", "?")
    changed = {"fallback_order": SWAPPED, "roles": (C, V, S)}
    found = branch(FALLBACK, later=later, changed=changed)
    assert found.record.turns[0].decision.winner == M
    assert found.record.turns[1].decision.undecided == (C, V, S)
    assert found.record.turns[1].decision.winner == S


def test_rich_ballots_stay_rich_under_another_rule(branch):
    rich = {
        "vote_final": f"{S}=9,{M}=8|{V}=7,{C}=1",
        f"vote_final/{S}": f"{M}=25|{S}=0,{V}=0,{C}=0",
    }
    found = branch(rich, conditions=["rich"], changed=SIMPLE)
    turn, second = found.record.turns
    assert found.parent.turns[0].decision.tallies == {S: 27, M: 49, V: 21, C: 3}
    assert turn.decision.tallies == second.decision.tallies == {S: 3, M: 1, V: 0, C: 0}
    assert found.paid[0] == "1/student/student/1"
    for ballot in (*turn.ballots_final, *second.ballots_final):
        assert (ballot.protocol, ballot.counted_as) == ("rich", "simple")


def test_an_abstention_stays_one_under_another_rule(branch):
    silent = RANKED | {f"vote_final/{M}": "?"}
    found = branch(silent, later=all_cast("2/vote_final", V), conditions=["ranked"], changed=SIMPLE)
    turn = found.record.turns[0]
    assert turn.decision.tallies == {S: 1, M: 1, V: 1, C: 0}
    assert turn.ballots_final[1].mass == {}
    assert turn.ballots_final[1].ballot_status == "abstained"


def test_continuations_see_the_same_labels_up_to_the_cursor(branch, make_scene, script):
    found = branch(FALLBACK, changed={"fallback_order": SWAPPED, "continuations": 3})
    assert found.record.branch.continuation == 1
    scene = make_scene(max_turns=2)
    value = Branch(
        parent="p", parent_study="0", parent_recording="0", fallback_order=SWAPPED, continuations=3,
        episodes={scene.spec.episode_id: BranchedEpisode(turn=1, winners=(S, S))},
    )  # fmt: skip
    loaded = replace(scene.loaded, study=scene.study.model_copy(update={"branch": value}))
    drawn = [script(FALLBACK).play(Scene(loaded, spec)) for spec in loaded.grid()]
    assert [one.episode_id.rpartition(".")[2] for one in drawn] == ["c01", "c02", "c03"]
    assert [one.branch.continuation for one in drawn] == [1, 2, 3]
    assert drawn[0].turns == drawn[1].turns == drawn[2].turns == found.record.turns
