"""Plans of branches: what is taken over for certain, and the range of what is paid for."""

import json

import pytest

from tutorsim.kernel.system import CallRange
from tutorsim.model import CallKey
from tutorsim.records import Branch, read_episodes
from tutorsim.runner.branching import BranchPlan, EpisodePlan
from tutorsim.standin import StandIn
from tutorsim.systems.panel.branch import calls_to_pay
from tutorsim.systems.panel.scene import Scene
from tutorsim.vocabularies import DEFAULT_ROLES


@pytest.fixture
def serve(monkeypatch):
    """Start a stand-in; the SDK's environment points at the last one started."""
    running: list[StandIn] = []
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789-credential")
    monkeypatch.setattr("tutorsim.runner.batches.FIRST_POLL", 0.01)

    def start(**options):
        server = StandIn(**options)
        server.__enter__()
        running.append(server)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        return server

    yield start
    for server in running:
        server.__exit__(None, None, None)


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
def test_what_is_paid_is_in_the_range_announced_and_the_same_in_batches(
    serve, record, write_grid, shell, files, tmp_path
):
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
        episode_id=name,
        benchmark="sciq",
        condition="simple",
        turn=1,
        first_paid="1/student/student/1",
        reused=reused,
        calls=CallRange(calls, calls, 2 * calls),
        tokens=(10 * calls, calls),
        least_cost=cost,
        cost=cost,
        shrinks=shrinks,
    )


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
