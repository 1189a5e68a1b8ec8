"""A small system of another package: three greeters greet a guest, then vote on one greeting."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import altair as alt
import polars as pl
from pydantic import Field

from tutorsim.analysis.charts.figures_forms_and_colours import ACCENT, Drawing, inline
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import (
    Row,
    figure,
    section,
    sections_of,
    table,
)
from tutorsim.analysis.pages.document import Answer, Document
from tutorsim.analysis.pages.shown_episodes import Episode, Message, Run
from tutorsim.analysis.runs.exported_tables import SHARED_TABLES, table_of, text, whole
from tutorsim.analysis.systems.system_view_opened_run_and_cost import (
    SystemRun,
    View,
    episodes_of,
    framed,
)
from tutorsim.ballot_reading_and_decisions import Choice, decide
from tutorsim.catalog import BaseCatalog
from tutorsim.kernel.flow_drivers_and_call_log import CallLog, Flow, run_to_failure
from tutorsim.kernel.retest_flow_and_drawn_turns import BallotReading
from tutorsim.kernel.scene_asks_votes_and_blind_labels import Scene, ask, draw_labels, vote
from tutorsim.kernel.study_file_and_episode_spec import BaseModels, BaseStudy, EpisodeSpec, Settings
from tutorsim.kernel.system_and_loaded_study import Asking, Chance, LoadedStudy, System
from tutorsim.model import Call, Question
from tutorsim.records import BaseRecord, VotedTurn, VotingSettings
from tutorsim.tasks import TaskFormat
from tutorsim.vocabularies import BallotFormat

GREETERS = ("anna", "ben", "cleo")


class GreetingSettings(Settings):
    language: str = "English"


class GreetingModels(BaseModels):
    greeter: str = "claude-haiku-4-5"


class GreetingStudy(BaseStudy):
    system: str = "greeting"
    conditions: tuple[str, ...] = ("simple",)
    models: GreetingModels = GreetingModels()
    greeting: GreetingSettings = GreetingSettings()


class GreetingRecord(BaseRecord):
    greetings: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True)
class Guest:
    task_id: str
    benchmark: ClassVar = "guests"

    def published(self) -> dict[str, Any]:
        return {"task_id": self.task_id, "guest": self.task_id}


def read_guests(path: Path) -> tuple[Guest, ...]:
    return tuple(Guest(json.loads(line)["task_id"]) for line in path.read_text().splitlines())


CATALOG = BaseCatalog(
    prompts={
        "system": "You greet guests in $language.",
        "greet": "Greet $guest in one line.",
        "text_reminder": "Your last reply was empty. Reply with a greeting.",
        "vote": "Greetings:\n\n$greetings\n\n$ballot",
        "ballot_simple": "Name the label of the friendliest greeting, for example: $example",
        "vote_reminder": "Your last reply had no label. Reply with one label.",
        "no_text": "(says nothing)",
    }
)


@dataclass(frozen=True)
class GreetingLoaded(LoadedStudy):
    """What a study of greetings does."""

    study: GreetingStudy

    def episode(self, spec: EpisodeSpec) -> Flow[GreetingRecord]:
        calls, done = CallLog(), dict[str, Any]()
        failure = yield from run_to_failure(self._greet(spec, done), calls)
        return self.record(GreetingRecord, spec, calls, failure, **done)

    def _greet(self, spec: EpisodeSpec, done: dict[str, Any]) -> Flow[None]:
        scene = Scene(self.catalog, self.call)
        system = scene.fill("system", language=self.study.greeting.language)
        wanted = scene.fill("greet", guest=spec.task.task_id)
        said = yield from ask(
            [
                scene.asking(1, "greet", name, str.strip, system=system, user=wanted)
                for name in GREETERS
            ]
        )
        done["greetings"] = {name: one.value for name, one in zip(GREETERS, said, strict=True)}
        drawn = {"seed": self.study.seed, "episode_id": spec.parent_id, "turn": 1}
        drawn |= {"stage": "vote_final", "blinding": "per_reader", "alphabet": "PQR"}
        labels = {name: draw_labels(GREETERS, reader=name, **drawn) for name in GREETERS}

        def ballot(form: BallotFormat, name: str) -> Question[Choice]:
            shown = scene.labelled(done["greetings"], labels[name])
            asked = {"form": form, "budget": 25, "system": system, "greetings": shown}
            return scene.ballot(1, "vote_final", name, labels[name], **asked)

        cast = yield from vote(GREETERS, GREETERS, labels, {"simple": "simple"}, ballot)
        masses = [ballot.mass for ballot in cast["simple"]]
        decision = decide(masses, GREETERS, order=GREETERS)
        done["turns"] = (VotedTurn(turn=1, ballots_final=cast["simple"], decision=decision),)

    def usual_reply(self, spec: EpisodeSpec, call: Call, *, longest: bool) -> str:
        return "Hello there!" if call.key.stage == "greet" else "P"

    def model_of(self, agent: str, stage: str) -> str:
        return self.study.models.greeter

    def model_names(self) -> tuple[str, ...]:
        return (self.study.models.greeter,)

    def ballot_reading(self, spec: EpisodeSpec) -> BallotReading:
        return BallotReading(self.catalog.fill("vote_reminder"), 25)

    def voting(self) -> VotingSettings:
        return VotingSettings(fallback_order=GREETERS)


def outcome(record: GreetingRecord) -> dict[str, Any]:
    return {"winner": record.turns[0].decision.winner if record.turns else None}


def recognise(asking: Asking, chance: Chance, steady: Chance | None) -> str | None:
    if "You greet guests" not in asking.system:
        return None
    return chance.pick("label", "PQR") if "Greetings:" in asking.user else "Hello, dear guest!"


EPISODES = table_of(status=text(), greetings=whole(lambda record: len(record.greetings)))


@table("winners", "Whose greeting was chosen", guests=lambda run: len(run.episodes))
def winners(run: SystemRun) -> Iterator[Row]:
    "Greetings that were found the friendliest, of {guests} guests."
    won = Counter(r.turns[0].decision.winner for r in run.episodes if r.turns)
    for name in GREETERS:
        yield {"greeter": name, "chosen": won[name]}


def bars(rows: pl.DataFrame, run: SystemRun) -> Drawing:
    base = alt.Chart(inline(rows), width=400, height=alt.Step(30)).encode(
        x=alt.X("chosen:Q", title="Guests"), y=alt.Y("greeter:N", title=None)
    )
    return alt.layer(base.mark_bar(color=ACCENT))


@figure(
    "chosen",
    draw=bars,
    finding=lambda rows, run: f"{rows.sort('chosen')['greeter'][-1]} was chosen most often.",
    alternative="{greeter}: {chosen}",
)
def chosen(run: SystemRun) -> Iterator[Row]:
    "Guests for whom a greeting was found the friendliest, by who greeted."
    yield from winners.rows(run)


GUESTS = section("guests", "Guests", "Whose greeting was the friendliest?", winners, chosen)


def document(run: SystemRun, brief: bool) -> Document:
    return framed(
        run,
        summary="Greetings, and which was found the friendliest.",
        answers=(Answer("How many guests?", str(len(run.episodes)), "", "guests"),),
        sections=sections_of(run, (GUESTS,)),
        episodes=episodes_of(run, {}),
    )


def trace(run: Run, record: GreetingRecord) -> Episode:
    said = (Message(name, text) for name, text in record.greetings.items())
    return Episode(record.episode_id, tuple(said))


VIEW = View(
    tables={"episodes": EPISODES, **SHARED_TABLES},
    document=document,
    outcomes={"greetings": lambda record: float(len(record.greetings))},
)

GREETING = System(
    name="greeting",
    stages=("greet", "vote_final"),
    study=GreetingStudy,
    loaded=GreetingLoaded,
    record=GreetingRecord,
    tasks={"guests": TaskFormat(read_guests, lambda: (Guest("Otto"), Guest("Mira")))},
    catalog=lambda: CATALOG,
    outcome=outcome,
    view=f"{__name__}:VIEW",
    trace=f"{__name__}:trace",
    standin=(recognise,),
    commands=frozenset({"compare", "retest"}),
)
