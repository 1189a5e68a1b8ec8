import json

import pytest
import tomli_w

from tutorsim.errors import StudyError
from tutorsim.kernel.cost_plan import load_prices, plan
from tutorsim.kernel.load import load_study, write_study
from tutorsim.kernel.system import CallRange
from tutorsim.systems.oversight.acts_by_condition import CONDITIONS

CALLS = dict(zip(CONDITIONS, (14, 1, 10, 12, 11, 12, 8, 5, 3), strict=True))


@pytest.fixture
def write(tmp_path):
    def path(**settings):
        table = {
            "name": "small",
            "system": "oversight",
            "benchmarks": {"mrbench": {"tasks": "builtin"}},
            **settings,
        }
        file = tmp_path / "study.toml"
        file.write_text(tomli_w.dumps(table), encoding="utf-8")
        return file

    return path


@pytest.mark.parametrize(("condition", "calls"), CALLS.items())
def test_the_range_of_calls_is_exact(write, condition, calls):
    loaded = load_study(write(conditions=[condition]))
    spec = next(loaded.grid())
    assert spec.episode_id == f"mrbench.cookies-1-Lantern.none.{condition}"
    assert loaded.call_range(spec) == CallRange.of(calls)


@pytest.mark.parametrize(
    ("settings", "least", "most"),
    [
        ({"adaptive": "log"}, 15, 15),
        ({"adaptive": "skip"}, 4, 15),
        ({"judge_orders": 2}, 15, 15),
    ],
)
def test_settings_that_ask_more_are_in_the_range(write, settings, least, most):
    loaded = load_study(write(conditions=["hpo"], oversight=settings))
    calls = loaded.call_range(next(loaded.grid()))
    assert (calls.least, calls.most) == (least, most)


def test_the_plan_counts_calls_of_the_grid_and_prices_tokens(write):
    loaded = load_study(write(conditions=["hpo", "single"]))
    planned = plan(loaded, load_prices())
    assert planned.calls == CallRange.of(16 * 15)
    assert planned.cost is not None
    assert planned.cost > 0


def test_a_sample_is_of_whole_dialogues_and_of_itself_the_same(write, tmp_path):
    loaded = load_study(write(benchmarks={"mrbench": {"sample": 3}}, conditions=["single"]))
    names = {task.conversation for task in loaded.tasks["mrbench"]}
    assert len(names) == 3
    assert len(loaded.tasks["mrbench"]) == 6
    other = load_study(write(benchmarks={"mrbench": {"sample": 2}}, conditions=["single"]))
    assert {task.conversation for task in other.tasks["mrbench"]} < names


def test_a_study_of_a_file_travels_with_its_sample(write, tmp_path, make_row):
    rows = [make_row(f"c{i}") for i in range(9)] + [make_row("c0")]
    (tmp_path / "bench.json").write_text(json.dumps(rows), encoding="utf-8")
    loaded = load_study(write(benchmarks={"mrbench": {"tasks": "bench.json", "sample": 4}}))
    folder = tmp_path / "recording"
    folder.mkdir()
    write_study(loaded, folder)
    again = load_study(folder / "study.toml")
    assert again.digest() == loaded.digest()
    assert again.tasks == loaded.tasks
    assert [s.episode_id for s in again.grid()] == [s.episode_id for s in loaded.grid()]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"conditions": ["hpo", "hpo"]}, "names 'hpo' twice"),
        ({"conditions": ["panel"]}, "'panel'"),
        ({"conditions": []}, "conditions is empty"),
        ({"models": {"temperature": 0}}, "temperature is 0"),
        ({"models": {"tutor": "x"}}, "there is no setting 'tutor'"),
        ({"oversight": {"sample": 3}}, "Did you mean 'samples'?"),
        ({"oversight": {"judge_orders": 3}}, "judge_orders"),
        ({"benchmarks": {"sciq": {}}}, "sciq"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(write, settings, named):
    with pytest.raises(StudyError) as error:
        load_study(write(**settings))
    assert named in str(error.value)


def test_temperature_zero_is_refused_for_samples_only(write):
    load_study(write(conditions=["single"], models={"temperature": 0}))


def test_revealed_is_zero_is_refused_for_data_that_do_not_say_what_is_revealed(
    write, tmp_path, make_row
):
    narrow = make_row()
    narrow["tutor_responses"] = narrow.pop("anno_llm_responses")
    del narrow["tutor_responses"]["Expert"]["annotation"]["Revealing_of_the_Answer"]
    (tmp_path / "v3.json").write_text(json.dumps([narrow]), encoding="utf-8")
    maps = {"guidance_map": "revealed_is_zero"}
    with pytest.raises(StudyError, match="revealed_is_zero") as error:
        load_study(write(benchmarks={"mrbench": {"tasks": "v3.json"}}, oversight=maps))
    assert error.value.why
    assert error.value.hint
    load_study(write(oversight=maps))


def test_the_lead_s_model_answers_labels_and_the_agents_model_everything_else(write):
    loaded = load_study(write(models={"lead": "large", "agent": "small"}))
    asked = {stage: loaded.model_of("lead", stage) for stage in loaded.system.stages}
    assert {s for s, model in asked.items() if model == "large"} == {"lead", "quick", "sample"}
    assert set(loaded.model_names()) == {"large", "small"}
