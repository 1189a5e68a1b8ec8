"""Calls are counted exactly; tokens and cost are estimated."""

import pytest

from tutorsim.errors import CatalogError
from tutorsim.kernel.cost_plan import (
    Price,
    PriceTable,
    estimate_tokens,
    load_prices,
    plan,
    total_tokens,
)
from tutorsim.kernel.system_and_loaded_study import CallRange
from tutorsim.vocabularies import CONDITIONS

BOTH = {"sciq": {"tasks": "science.jsonl"}, "humaneval": {"tasks": "programs.jsonl", "limit": 1}}


def settings_for(count):
    roles = [f"role_{n}" for n in range(count)]
    entry = {"title": "tutor", "objective": "help", "means": "Say more."}
    return {"roles": roles, "catalog": {"roles": dict.fromkeys(roles, entry)}}


@pytest.mark.parametrize("count", [3, 4, 5, 8])
@pytest.mark.parametrize("max_turns", [0, 1, 3])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_range_is_what_the_flow_really_asks(make_scene, script, condition, max_turns, count):
    scene = make_scene(conditions=[condition], max_turns=max_turns, **settings_for(count))
    expected = scene.loaded.call_range(scene.spec)

    least = script({"judge": "SCORE: 1"})
    least.play(scene)
    ceiling = script(dict.fromkeys(("student", "judge", "propose", "revise"), ""))
    ceiling.replies |= dict.fromkeys(("critique", "tie_critique"), "")
    ceiling.replies |= dict.fromkeys(("vote_initial", "vote_final", "tie_vote"), "?")
    ceiling.play(scene)
    most = [key for key in ceiling.keys if key.endswith("/1")]
    assert CallRange(len(least.keys), len(most), len(ceiling.keys)) == expected


def test_a_published_episode_takes_2_to_92_calls(make_study):
    loaded = make_study(conditions=["ranked", "baseline"])
    ranges = {spec.condition: loaded.call_range(spec) for spec in loaded.grid()}
    # Around the turns 2, then 3 turns of 4 x 7 stages, a student and a judge call.
    assert ranges["ranked"] == CallRange(2, 2 + 3 * (28 + 2), 184)
    assert ranges["baseline"] == CallRange(2, 2 + 3 * 3, 22)


def test_a_plan_adds_up_the_grid(make_study):
    loaded = make_study(
        conditions=["baseline", "simple"],
        personas=["help_avoidant", "hint_seeking_dependent"],
        benchmarks=BOTH,
        repeats=2,
    )
    result = plan(loaded, load_prices())
    # 3 tasks x 2 personas x 2 repeats = 12 episodes of each condition.
    assert result.episodes == 24 == len(list(loaded.grid()))
    assert result.calls == CallRange(48, 12 * (11 + 92), 24 * (11 + 92))
    assert set(result.tokens) == {"claude-sonnet-4-5", "claude-haiku-4-5"}
    assert 0 < result.least_cost < result.cost
    assert result.unknown_prices == ()


def test_a_plan_says_each_condition_by_itself_in_the_study_s_order(make_study):
    loaded = make_study(conditions=["simple", "baseline"], benchmarks=BOTH, repeats=2)
    result = plan(loaded, load_prices())
    # 3 tasks x 2 repeats; a panel takes 2 to 92 calls, a single tutor 2 to 11
    assert [(one.condition, one.episodes, one.calls) for one in result.conditions] == [
        ("simple", 6, CallRange(12, 6 * 92, 12 * 92)),
        ("baseline", 6, CallRange(12, 6 * 11, 12 * 11)),
    ]
    assert sum(one.cost for one in result.conditions) == pytest.approx(result.cost)
    assert sum(one.least_cost for one in result.conditions) == pytest.approx(result.least_cost)
    unknown = plan(make_study(models={"student": "of-my-own"}), load_prices())
    assert {(one.cost, one.least_cost) for one in unknown.conditions} == {(None, None)}


def test_cost_is_tokens_times_price(make_study):
    prices = PriceTable(
        as_of="2026-01-01", models={"t": Price(input=1, output=10), "s": Price(input=2, output=20)}
    )
    result = plan(make_study(models={"tutor": "t", "judge": "t", "student": "s"}), prices)
    (t_in, t_out), (s_in, s_out) = result.tokens["t"], result.tokens["s"]
    expected = (t_in + 10 * t_out + 2 * s_in + 20 * s_out) / 1e6
    assert result.cost == pytest.approx(expected)
    assert result.prices_as_of == "2026-01-01"


def test_an_unknown_model_s_price_is_unknown_and_not_zero(make_study):
    result = plan(make_study(models={"student": "of-my-own"}), load_prices())
    assert (result.cost, result.least_cost) == (None, None)
    assert result.unknown_prices == ("of-my-own",)


def test_a_dated_model_has_the_price_of_its_name():
    prices = load_prices()
    assert prices.price("claude-haiku-4-5-20251001") == prices.price("claude-haiku-4-5")
    assert prices.price("claude-haiku-4-5-preview") is None
    assert prices.cost("nobody", 1, 1) is None
    assert prices.cost("claude-sonnet-4-5", 1_000_000, 1_000_000) == 18


def test_a_price_table_can_be_replaced(tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text('as_of = "2030-01-01"\n[models.x]\ninput = 1\noutput = 2.5\n')
    assert load_prices(path).price("x") == Price(input=1, output=2.5)


@pytest.mark.parametrize(
    "text",
    ["", "as_of = 3", 'as_of = "d"\n[models.x]\ninput = -1\noutput = 1', "not toml", "\udcff"],
)
def test_a_file_that_is_no_price_table_is_an_error_that_names_it(tmp_path, text):
    path = tmp_path / "prices.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(CatalogError, match=r"prices\.toml is no price table") as caught:
        load_prices(path)
    assert caught.value.hint
    assert caught.value.exit_code == 2


def test_a_missing_price_table_is_an_error(tmp_path):
    with pytest.raises(CatalogError, match="no price table"):
        load_prices(tmp_path / "none.toml")


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("tasks", BOTH)
def test_estimated_calls_are_those_of_the_longest_and_shortest_path(make_study, condition, tasks):
    """An estimate's tokens are bounded by the calls that it stands for."""
    loaded = make_study(
        conditions=[condition],
        benchmarks={tasks: {**BOTH[tasks], "limit": 1}},
        models={"tutor": "m", "judge": "m", "student": "m"},
        success_threshold=0,
    )
    result = plan(loaded, PriceTable(as_of="d", models={"m": Price(input=1, output=1)}))
    asked, answered = result.tokens["m"]
    calls = result.calls.most
    assert 60 * calls < asked < 4000 * calls
    assert 4 * calls < answered < 600 * calls
    assert result.least_cost < result.cost / 2


# --- Token estimates from the real prompts --------------------------------------------------------

MODELS = {"tutor": "t", "judge": "j", "student": "s"}


@pytest.fixture
def tokens(make_study):
    def estimate(*, longest=True, **settings):
        found = estimate_tokens(make_study(models=MODELS, **settings), longest=longest)
        return total_tokens(found.values())

    return estimate


def test_one_episode_stands_for_all_of_its_benchmark_and_condition(tokens):
    one = tokens()
    six = tokens(personas=["help_avoidant", "hint_seeking_dependent"], repeats=3)
    assert six == {model: (6 * asked, 6 * answered) for model, (asked, answered) in one.items()}


def test_conditions_and_benchmarks_add_up(tokens):
    both = {"sciq": {"tasks": "science.jsonl", "limit": 1}}
    code = {"humaneval": {"tasks": "programs.jsonl", "limit": 1}}
    parts = [
        tokens(benchmarks=part, conditions=[condition])
        for part in (both, code)
        for condition in ("baseline", "approval")
    ]
    whole = tokens(benchmarks={**both, **code}, conditions=["baseline", "approval"])
    assert whole == {
        model: tuple(sum(part[model][side] for part in parts) for side in (0, 1))
        for model in ("j", "s", "t")
    }


def test_no_tutor_is_asked_when_every_first_attempt_succeeds(tokens):
    assert set(tokens(longest=False)) == {"j", "s"}


def test_the_longest_path_is_taken_whatever_the_threshold(tokens):
    assert tokens(success_threshold=0) == tokens(success_threshold=1)


def test_an_estimate_counts_first_askings_only(tokens, make_scene, script):
    """With no turn the student's prompt is known: it is counted once, though no score is read."""
    played = script()
    record = played.play(make_scene(models=MODELS, max_turns=0))
    student, judge = record.calls
    estimate = tokens(max_turns=0)
    assert estimate["s"][0] == student.input_tokens
    assert judge.input_tokens < estimate["j"][0] < judge.input_tokens + 200


def test_longer_wordings_cost_more(tokens):
    longer = tokens(vote_criterion="Which reply is best? " * 50)
    assert longer["t"][0] > tokens()["t"][0]
    assert longer["s"] == tokens()["s"]
