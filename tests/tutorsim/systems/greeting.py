"""A small system of another package: three greeters greet a guest, then vote on one greeting.

Only the tests register it.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
from pydantic import Field

from tutorsim.analysis.pages.cells import Table
from tutorsim.analysis.pages.document import Answer, Dialogue, Document, Message, Section
from tutorsim.analysis.runs.exported_tables import PLACE, SHARED_TABLES, place_of
from tutorsim.analysis.runs.exported_tables import Table as RunTable
from tutorsim.analysis.systems.system_view import SystemRun, View, framed
from tutorsim.catalog import BaseCatalog
from tutorsim.kernel.flow import CallLog, Flow, ask, run_to_failure
from tutorsim.kernel.retest import BallotReading
from tutorsim.kernel.scene import ballot_from, ballot_question, draw_labels, labelled
from tutorsim.kernel.scripted_mind import Asking, Chance
from tutorsim.kernel.study import BaseModels, BaseStudy, EpisodeSpec, Settings
from tutorsim.kernel.system import CallRange, LoadedStudy, System
from tutorsim.model import Call, Question
from tutorsim.records import BaseRecord, VotedTurn, VotingSettings
from tutorsim.tasks import TaskFormat
from tutorsim.voting import decide

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
        "vote": "Greetings:\n\n$greetings\n\nName the label of the friendliest greeting.",
        "reminder": "Your last reply had no label. Reply with one label.",
        "silent": "(says nothing)",
    }
)


@dataclass(frozen=True)
class GreetingLoaded(LoadedStudy):
    """What a study of greetings does."""

    study: GreetingStudy

    def _question(self, stage: str, agent: str, user: str) -> Question[str]:
        system = self.catalog.fill("system", language=self.study.greeting.language)
        call = self.call(1, stage, agent, system=system, user=user)
        return Question(call, str.strip, self.catalog.fill("reminder"))

    def episode(self, spec: EpisodeSpec) -> Flow[GreetingRecord]:
        calls, done = CallLog(), dict[str, Any]()
        failure = yield from run_to_failure(self._greet(spec, done), calls)
        return GreetingRecord(**self.record_head(spec, calls, failure), **done)

    def _greet(self, spec: EpisodeSpec, done: dict[str, Any]) -> Flow[None]:
        wanted = self.catalog.fill("greet", guest=spec.task.task_id)
        asked = [self._question("greet", name, wanted) for name in GREETERS]
        said = yield from ask(asked)
        greetings = {name: one.value or "" for name, one in zip(GREETERS, said, strict=True)}
        done["greetings"] = greetings
        shown, questions = {}, []
        for name in GREETERS:
            shown[name] = draw_labels(
                GREETERS,
                seed=self.study.seed,
                episode_id=spec.parent_id,
                turn=1,
                stage="vote_final",
                reader=name,
                blinding="per_reader",
                alphabet="PQR",
            )
            texts = labelled(greetings, shown[name], blank=self.catalog.part("silent"))
            user = self.catalog.fill("vote", greetings=texts)
            call = self._question("vote_final", name, user).call
            reading = self.ballot_reading(spec)
            questions.append(
                ballot_question(call, tuple(shown[name]), form="simple", **reading._asdict())
            )
        answers = yield from ask(questions)
        ballots = [
            ballot_from(name, shown[name], GREETERS, answer, form="simple", rule="simple")
            for name, answer in zip(GREETERS, answers, strict=True)
        ]
        masses = [ballot.mass for ballot in ballots]
        decision = decide(masses, GREETERS, order=GREETERS)
        turn = VotedTurn(turn=1, ballots_final=tuple(ballots), decision=decision)
        done["turns"] = (turn,)

    def call_range(self, spec: EpisodeSpec) -> CallRange:
        return CallRange.of(6)

    def usual_reply(self, call: Call, *, longest: bool) -> str:
        return "Hello there!" if call.key.stage == "greet" else "P"

    def model_of(self, agent: str, stage: str) -> str:
        return self.study.models.greeter

    def model_names(self) -> tuple[str, ...]:
        return (self.study.models.greeter,)

    def ballot_reading(self, spec: EpisodeSpec) -> BallotReading:
        return BallotReading(self.catalog.fill("reminder"), 25)

    def voting(self) -> VotingSettings:
        return VotingSettings(fallback_order=GREETERS)


def outcome(record: GreetingRecord) -> dict[str, Any]:
    return {"winner": record.turns[0].decision.winner if record.turns else None}


def recognise(asking: Asking, chance: Chance, steady: Chance | None) -> str | None:
    if "You greet guests" not in asking.system:
        return None
    return chance.pick("label", "PQR") if "Greetings:" in asking.user else "Hello, dear guest!"


SCHEMA = pl.Schema({**PLACE, "status": pl.String(), "greetings": pl.Int64()})
EPISODES = RunTable(SCHEMA, lambda r, run: [(*place_of(r, run), r.status, len(r.greetings))])


def document(run: SystemRun, brief: bool) -> Document:
    frame = EPISODES.frame(run.episodes, run.head)
    return framed(
        run,
        summary="Greetings, and which was found the friendliest.",
        answers=(Answer("How many guests?", str(frame.height), "", "guests"),),
        sections=(Section("guests", "Guests", "", tables=(Table("guests", "All", "", frame),)),),
        dialogues=() if brief else tuple(trace(run, record) for record in run.episodes),
    )


def trace(run: SystemRun, record: GreetingRecord) -> Dialogue:
    said = (Message(name, text) for name, text in record.greetings.items())
    return Dialogue(record.episode_id, "", tuple(said))


VIEW = View(
    tables={"episodes": EPISODES, **SHARED_TABLES},
    document=document,
    trace=trace,
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
    standin=(recognise,),
    commands=frozenset({"compare", "retest"}),
)
