"""Small runs of every system, played by the scripted minds, and what is done with them."""

import csv
import json
from random import Random
from typing import Any, Final

from tests.tutorsim.cli.conftest import draw, usual_reply, write_records, write_run
from tests.tutorsim.systems.debate import test_mallm_logs as mallm
from tutorsim.kernel.flow_drivers_and_call_log import PersonInput, drive, scripted
from tutorsim.kernel.load_and_check_study_file import load_study
from tutorsim.kernel.retest_flow_and_drawn_turns import askings, retest_flow
from tutorsim.kernel.system_and_loaded_study import Chance
from tutorsim.records import (
    RETEST_FILE,
    RETEST_HEAD_FILE,
    Provenance,
    RetestHead,
    RunRecord,
    to_line,
)
from tutorsim.standin.messages_api_routes_and_replies import think

PANELS: Final = """
name = "panels"
conditions = ["baseline", "simple", "ranked", "cumulative", "approval"]
personas = ["help_avoidant"]
max_turns = 2
benchmarks.sciq = {tasks = "builtin", limit = 6}
panels.four = {roles = ["scaffolding", "misconception", "motivation", "metacognitive"]}
panels.three = {roles = ["scaffolding", "misconception", "motivation"]}
panels.copies = {roles = ["motivation"], size = 3, placebo = "copied"}
models = {tutor = "m", judge = "m", student = "m", max_tokens = 512}
"""
DEBATE: Final = """
name = "debates"
system = "debate"
conditions = ["baseline", "simple", "ranked", "approval", "majority", "full"]
repeats = 2
benchmarks.strategyqa = {tasks = "builtin", limit = 2}
benchmarks.mmlu = {tasks = "builtin", limit = 1}
debate = {max_turns = 3, vote_from = 2, confidence = true}
models = {agent = "m", max_tokens = 512}
"""
GROUP: Final = """
name = "lessons"
system = "group"
conditions = ["self_select", "next_speaker"]
learners = ["tom_average", "person"]
benchmarks.lesson = {tasks = "builtin", limit = 1}
benchmarks.scenario = {tasks = "builtin", limit = 2}
group = {max_events = 14}
models = {agent = "m", learner = "m", judge = "m", raters = ["m", "n"]}
"""
OVERSIGHT: Final = """
name = "labels"
system = "oversight"
conditions = ["hpo", "single", "cooperative", "self_consistency"]
benchmarks.mrbench = {tasks = "builtin", limit = 5}
oversight = {adaptive = "log", judge_orders = 2}
models = {agent = "m", lead = "m", temperature = 1.0}
"""


def played(folder, study, seed=7):
    """The run folder of a study whose calls the scripted minds answer."""
    loaded, episodes, _ = _played(folder, study, seed)
    run = RunRecord(
        study=loaded.settings(),
        study_digest=loaded.digest(),
        recording_digest="0" * 64,
        provenance=Provenance(kind="stand-in", name=f"seed {seed}", models=("m",)),
        packages={"tutorsim": "0"},
        episodes=len(episodes),
    )
    write_records(folder, run, tuple(episodes))
    return folder


def _played(folder, study, seed):
    """The study, and of each of its episodes the record and what was asked."""
    folder.mkdir(parents=True)
    (folder / "study.toml").write_text(f"seed = {seed}{study}", encoding="utf-8")
    loaded = load_study(folder / "study.toml")
    episodes, asked = [], []
    for spec in loaded.grid():
        bodies: dict[str, str] = {}
        reply = _reply(seed, spec.episode_id, bodies)
        world = scripted(reply, listen=_person(spec.episode_id))
        episodes.append(drive(loaded.episode(spec), world))
        asked.append(bodies)
    return loaded, episodes, asked


def _reply(seed, episode, bodies):
    def reply(call):
        body = call.request.body()
        bodies[str(call.key)] = json.dumps(body)
        return think(body, Chance(seed, episode, str(call.key))).text

    return reply


def _person(episode):
    """A person who writes now and then, and leaves late in the lesson."""

    def listen(effect):
        chance = draw(episode, effect.turn, effect.place)
        said = f"What about step {effect.turn}?" if chance % 3 == 0 else None
        return PersonInput(said, 100 * (chance % 9), ended=effect.turn > 9)

    return listen


def asked_again(folder, study):
    """Such a run, and its prompts asked twice more of minds of another seed."""
    run = played(folder / "run", study)
    loaded, episodes, asked = _played(folder / "again", study, 7)
    lines = []
    for spec, record, bodies in zip(loaded.grid(), episodes, asked, strict=True):
        sets = list(loaded.asked_again(spec, record))
        questions = [one.question for one in askings(sets, bodies, 2, if_cut_off=None)]
        world = scripted(_reply(8, spec.episode_id, {}))
        lines.append(to_line(drive(retest_flow(spec.episode_id, sets, 2, questions), world)))
    head = RetestHead(
        recording_digest="0" * 64,
        repeats=2,
        stages=loaded.system.asked_again,
        provenance=Provenance(kind="stand-in", name="seed 8", models=("m",)),
    )
    (run / RETEST_FILE).write_text("\n".join([*lines, ""]), encoding="utf-8")
    (run / RETEST_HEAD_FILE).write_text(to_line(head) + "\n", encoding="utf-8")
    return run


def council_logs(folder, said):
    """Votes of four members, drawn, and the run that they are imported as; some rank few answers,
    or nobody."""
    random, members = Random("council"), ("alpha", "beta", "gamma", "delta")
    trials = [
        {
            "benchmark": f"sums{number % 2}",
            "question_id": f"q{number}",
            "structure": "Independent → Rank → Synthesize",
            "stage1_responses": {
                one: f"FINAL ANSWER: {random.choice('7789')}" + " so" * random.randint(0, 4)
                for one in members
            },
            "stage2_data": {
                "rankings": {
                    one: random.sample("ABCD", random.choice((4, 4, 4, 4, 3, 2, 0)))
                    for one in members
                },
                "label_to_model": dict(zip("ABCD", random.sample(members, 4), strict=True)),
            },
            "stage3_data": {},
            "expected": "7",
            "is_correct": number % 3 == 0,
        }
        for number in range(16)
    ]
    return _imported(folder, said, "council", trials)


def mallm_logs(folder, said):
    """Discussions of three agents over two turns, drawn, a few under each rule, and their run."""
    random = Random("mallm")
    logs = [_discussion(random, number) for number in range(12)]
    return _imported(folder, said, "mallm", logs)


def _discussion(random, number):
    said = [
        mallm.said(n, n // 3 + 1, n % 3, agrees=random.random() < 0.7, solution=random.choice("AB"))
        for n in range(6)
    ]
    answers = [random.choice(("A) Yes", "B) No", "so")) for _ in mallm.NAMES]
    changes = {"exampleId": f"x-{number}", "turns": 2, "globalMemory": said}
    if number % 4 == 0:
        return mallm.log(**changes, decisionSuccess=all(one["agreement"] for one in said[-2:]))
    places = [random.sample(range(3), 3) for _ in mallm.NAMES]
    approved = [[mallm.NAMES[i] for i in order[: 1 + order[0]]] for order in places]
    kind, process, votes = (
        ("simple_voting", "", [order[0] for order in places]),
        ("ranked_voting", "", places),
        (
            "approval_voting",
            "".join(
                f"{name} approved answers from {of}\n"
                for name, of in zip(mallm.NAMES, approved, strict=True)
            ),
            [place for order in places for place in order],
        ),
    )[number % 4 - 1]
    vote = mallm.voted(kind, answers, process, votes)["1"]
    return mallm.log(votes={"2": vote}, finalAnswer=random.choice(answers), **changes)


def _imported(folder, said, program, logs):
    (folder / "logs").mkdir(parents=True)
    for number, one in enumerate((logs[:5], logs[5:])):
        place = folder / "logs" / f"{number}.json"
        place.write_text(json.dumps(one), encoding="utf-8")
    said(f"import {program} {folder / 'logs'} -o {folder / 'run'}")
    return folder


def rated(folder, said):
    """A run of panels of which two raters filled in a sheet each."""
    run = write_run(folder / "rated", replies=_blind).folder
    said(f"rate {run} --export {folder / 'sheet.csv'} --items 12 --seed 2")
    for sheet in sorted(folder.glob("sheet*.csv")):
        with sheet.open(newline="", encoding="utf-8") as file:
            rows: list[dict[str, Any]] = list(csv.DictReader(file))
        for row in rows:
            row["score"] = draw(sheet.name, row["item"]) % 3
        with sheet.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        said(f"rate {run} --import {sheet} --scripted")
    return run


def _blind(spec, call):
    """Replies in which no model writes its role."""
    text = usual_reply(spec, call)
    return text.replace(f"{call.key.agent} suggests", f"Try {'very ' * len(call.key.agent)}hard:")
