"""Items with stated labels, and a run of the built-in items as the scripted mind plays it."""

import pytest

from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun
from tutorsim.kernel.flow_drivers_and_call_log import drive, scripted
from tutorsim.kernel.system_and_loaded_study import Asking, Chance
from tutorsim.records import Provenance, RunRecord, oversight
from tutorsim.systems.oversight import OVERSIGHT
from tutorsim.systems.oversight.conditions_as_acts_and_study_file import CONDITIONS, Study
from tutorsim.systems.oversight.item_flow_and_oversight_study import OversightStudy, builtin_items
from tutorsim.systems.oversight.scripted_replies import recognise


def labels(pair):
    return None if pair is None else oversight.Labels(mistake=pair[0], guidance=pair[1])


def answer(pair, confidence):
    sure = None if pair is None else confidence
    return oversight.LeadLabels(agent="lead", raw="", labels=labels(pair), confidence=sure)


def debated(
    permissive,
    strict,
    judge,
    stress,
    lead,
    *,
    gold=(1, 2),
    quick=None,
    sure=(80, 0.8),
    name="item",
    condition="hpo",
):
    """Build an item after a debate from what each agent says."""
    said = {"permissive": permissive, "strict": strict}
    outcome, actual = labels(lead), labels(gold)
    assert actual is not None
    return oversight.OversightRecord(
        episode_id=f"mrbench.{name}.none.{condition}",
        benchmark="mrbench",
        task_id=name,
        variant="none",
        condition=condition,
        conversation=name,
        gold=actual,
        quick=None if quick is None else answer(*quick),
        messages=tuple(
            oversight.Message(
                agent=agent, raw="", act=act, turn=turn, thesis="", evidence="", labels=labels(pair)
            )
            for turn, act in ((1, "opening"), (5, "closing"))
            for agent, pair in said.items()
        ),
        judge=oversight.Judgment(
            agent="judge", raw="", first_shown="strict", winner="strict", labels=labels(judge),
            confidence=None if judge is None else sure[0],
        ),
        stress=oversight.StressTest(
            agent="stress", raw="", weakness="", severity=1, labels=labels(stress)
        ),
        lead=answer(lead, sure[1]),
        label=outcome,
        unjudged=outcome is None,
        scores={
            "mistake": outcome is not None and outcome.mistake == actual.mistake,
            "guidance": outcome is not None and outcome.guidance == actual.guidance,
        },
    )  # fmt: skip


def play(loaded, spec):
    def reply(call):
        chance = Chance(loaded.study.seed, spec.episode_id, str(call.key))
        text = recognise(Asking(call.request.system, call.request.user), chance, None)
        assert text is not None
        return text

    return drive(loaded.episode(spec), scripted(reply))


def make_run(conditions=CONDITIONS, items=(), **settings):
    """Play a study with the scripted mind, into a run."""
    chosen = tuple(items) or builtin_items()
    benchmark = chosen[0].benchmark
    study = Study(
        name="played",
        seed=7,
        conditions=conditions,
        benchmarks={benchmark: {}},
        oversight={"adaptive": "log", **settings},
    )
    loaded = OversightStudy(study, OVERSIGHT.catalog(), {benchmark: chosen}, OVERSIGHT)
    head = RunRecord(
        study=loaded.settings(), provenance=Provenance(kind="stand-in", name="scripted")
    )
    return SystemRun("played", head, tuple(play(loaded, spec) for spec in loaded.grid()))


@pytest.fixture(scope="session")
def played():
    """Every condition on the built-in items."""
    return make_run(judge_orders=2)
