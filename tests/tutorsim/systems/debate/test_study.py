"""Study files of debates: grid, draws, wordings, plans and refusals."""

import json

import pytest
import tomli_w

from tests.reference.debates import Draws
from tutorsim.catalog import BaseCatalog
from tutorsim.errors import StudyError, TaskFileError
from tutorsim.kernel.flow import drive, scripted
from tutorsim.kernel.load import load_recorded_study, load_study, write_study
from tutorsim.model import CallKey
from tutorsim.systems.debate import DEBATE
from tutorsim.systems.debate.settings import CONDITIONS

STUDY = {
    "name": "small",
    "system": "debate",
    "seed": 3,
    "conditions": ["simple"],
    "benchmarks": {"mmlu": {"tasks": "builtin", "limit": 1}},
}


@pytest.fixture
def make(tmp_path):
    def make(**settings):
        path = tmp_path / "study.toml"
        path.write_text(tomli_w.dumps(STUDY | settings), encoding="utf-8")
        return load_study(path)

    return make


def test_variants_take_the_place_of_personas_in_episode_ids(make):
    variants = {
        "aad": {"drafting": "first"},
        "ci": {"paradigm": "collective", "conditions": ["simple"]},
    }
    loaded = make(conditions=["simple", "majority"], repeats=2, debate={"variants": variants})
    assert [spec.episode_id for spec in loaded.grid()] == [
        "mmlu.astronomy-0001.aad.simple.r01",
        "mmlu.astronomy-0001.aad.simple.r02",
        "mmlu.astronomy-0001.aad.majority.r01",
        "mmlu.astronomy-0001.aad.majority.r02",
        "mmlu.astronomy-0001.ci.simple.r01",
        "mmlu.astronomy-0001.ci.simple.r02",
    ]


def test_labels_do_not_depend_on_the_condition_but_on_the_repeat(make):
    loaded = make(conditions=["simple", "full"], repeats=2)
    drawn = [
        tuple(context.labels(context.agents, turn=3, reader="agent_1"))
        + tuple(context.labels(context.agents, turn=3, reader="agent_1").values())
        for context in map(loaded.context, loaded.grid())
    ]
    assert drawn[0] == drawn[2]
    assert drawn[1] == drawn[3]


def test_a_sample_is_drawn_once_and_recorded_as_drawn(make, tmp_path):
    loaded = make(benchmarks={"mmlu": {"sample": 3}, "strategyqa": {"sample": "formula"}})
    assert len(loaded.tasks["mmlu"]) == 3
    folder = tmp_path / "recording"
    folder.mkdir()
    write_study(loaded, folder)
    again = load_recorded_study(folder)
    assert again.tasks == loaded.tasks
    assert again.digest() == loaded.digest()
    larger = make(benchmarks={"mmlu": {"sample": 6}})
    assert set(loaded.tasks["mmlu"]) < set(larger.tasks["mmlu"])


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_recording_covers_every_template_that_its_calls_contain(make, condition):
    """Fill templates through a spy: what is filled is stored, and no condition stores all."""
    filled = set()

    class Spy(BaseCatalog):
        def fill(self, template, **values):
            filled.add(template)
            return super().fill(template, **values)

        def part(self, template, **values):
            filled.add(template)
            return super().part(template, **values)

    settings = {"challenge": ["solution", "history", "wrong", "irrelevant"], "confidence": True}
    variants = {
        "a": {"generator": "free"},
        "b": {"generator": "reasoning", "drafting": "first", "chain_of_thought": False},
        "c": {"generator": "critical", "paradigm": "debate", "personas": "none"},
    }
    loaded = make(conditions=[condition], debate={**settings, "variants": variants})
    used = loaded.used()["prompts"]
    object.__setattr__(loaded, "catalog", Spy(prompts=loaded.catalog.prompts))
    for spec in loaded.grid():
        drive(loaded.episode(spec), scripted(Draws("used").of(condition)))
    assert filled <= used
    unlikely = {"counter", "solo_system", "wrong_answer", "current_none", "said_nothing", "no_text"}
    other_tasks = {"instruction_names", "instruction_passage", "task_open"}
    assert {name for name in used - filled if "reminder" not in name} <= unlikely | other_tasks
    assert used < set(DEBATE.catalog().prompts)


VARIANTS = [
    {},
    {"agents": 1},
    {"agents": 5, "paradigm": "report", "majority": "at_least_half"},
    {"agents": 4, "paradigm": "debate", "debate_rounds": 1},
    {"paradigm": "debate"},
    {"drafting": "first", "generator": "reasoning"},
    {"drafting": "every", "merge_identical": True},
    {"challenge": ["wrong", "solution"], "personas": "none"},
]


@pytest.mark.costly
@pytest.mark.parametrize("settings", VARIANTS)
def test_the_range_of_calls_holds_every_debate(make, settings):
    """Ends are reached on the shortest and longest path, and no scripted debate leaves them."""
    loaded = make(conditions=list(CONDITIONS), debate=settings)
    for spec in loaded.grid():
        calls = loaded.call_range(spec)
        for number in range(6):
            replies = Draws(number, agreeable=(0.2, 0.6, 0.95)[number % 3])
            record = drive(loaded.episode(spec), scripted(replies.of(spec.condition)))
            first = sum(CallKey.parse(call.key).attempt == 1 for call in record.calls)
            assert calls.least <= first <= calls.most, (spec.condition, settings)
            assert len(record.calls) <= calls.ceiling


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"debate": {"agents": 0}}, "debate.agents"),
        ({"debate": {"agents": 11}}, "debate.agents"),
        ({"debate": {"debate_rounds": 2}}, "debate_rounds = 2 needs paradigm"),
        ({"debate": {"colour": 1}}, "no setting 'colour'"),
        (
            {"conditions": ["unanimity"], "debate": {"paradigm": "collective"}},
            "condition 'unanimity' needs agreement",
        ),
        (
            {"debate": {"variants": {"x": {"conditions": ["majority"]}}}},
            "x.conditions = .* leaves none",
        ),
        ({"debate": {"variants": {"x": {"agents": 0}}}}, "variants.x: agents = 0"),
        ({"debate": {"challenge": ["facts"]}}, "facts"),
        ({"conditions": ["most"]}, "conditions"),
        ({"conditions": []}, "conditions is empty"),
        ({"benchmarks": {"sciq": {}}}, "sciq"),
        ({"benchmarks": {"mmlu": {"sample": 0}}}, "sample"),
    ],
)
def test_a_study_that_cannot_be_run_is_refused_by_key_and_value(make, settings, words):
    with pytest.raises(StudyError, match=words):
        make(**settings)


@pytest.mark.parametrize("benchmark_name", ["mmlu_pro", "gpqa"])
def test_a_benchmark_without_a_builtin_set_says_so(make, benchmark_name):
    with pytest.raises(TaskFileError, match="built-in"):
        make(benchmarks={benchmark_name: {"tasks": "builtin"}})


def test_settings_of_the_run_log_are_those_that_differ(make):
    head = make(debate={"variants": {"x": {"agents": 4}}}).settings()
    settings = json.loads(head.model_dump_json())["settings"]
    assert settings["debate"] == {"variants": {"x": {"agents": 4}}}
    assert "models" not in settings


def test_ballots_of_a_variant_are_read_with_its_own_budget(make):
    variants = {"few": {"cumulative_budget": 10}, "many": {"cumulative_budget": 30}}
    loaded = make(conditions=["cumulative"], debate={"variants": variants})
    found = {spec.variant: loaded.ballot_reading(spec).budget for spec in loaded.grid()}
    assert found == {"few": 10, "many": 30}
