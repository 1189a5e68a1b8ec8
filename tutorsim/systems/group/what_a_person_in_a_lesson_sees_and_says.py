"""One lesson with a person: what the page shows, and what the person said.

The recorder's flow and the page's requests run in one event loop, so nothing here is locked.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from tutorsim.errors import TutorsimError
from tutorsim.kernel.flow_drivers_and_call_log import Listen, PersonInput
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.kernel.system_and_loaded_study import Chat, LoadedStudy
from tutorsim.model import Call
from tutorsim.records.group import CycleRecord, LessonRecord
from tutorsim.replay.program_verdicts_and_person_inputs import InputStore
from tutorsim.runner.pieces_of_work_person_heard_event_loop import RefusedMessage
from tutorsim.systems.group.lesson_events_stage_progress_and_prompts import (
    LEARNER,
    Event,
    Group,
    GroupScene,
)
from tutorsim.systems.group.lesson_flow import Board
from tutorsim.systems.group.lesson_problem_and_duel_scenario_files import Lesson
from tutorsim.systems.group.speaker_selection_and_its_reasons import reason

Phase = Literal["waiting", "running", "ended", "stopped"]

MAX_CHARACTERS: Final = 2000
MIN_INTERVAL_S: Final = 0.3
_BY_ONE: Final = ("think", "speak", "speak_predicted")
"""Stages in which somebody is asked whom the person may know of."""
MAX_WAITING: Final = 20
"""Messages that may wait to be heard."""


class LessonPage:
    """A person at the page of a lesson, and what the server asks.

    The person is a `tutorsim.runner.pieces_of_work_person_heard_event_loop.Person`.

    `shows_thoughts`: whether thoughts may be read `after` the end, `during` it or `never`. `taken`:
    names of messages that an earlier command heard.
    """

    def __init__(
        self,
        group: Group,
        about: Mapping[str, Any],
        *,
        shows_thoughts: str,
        taken: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.group = group
        self.about = dict(about)
        self.phase: Phase = "waiting"
        self.notice = ""
        self.entries: list[dict[str, Any]] = []
        """Events as the page shows them, the first one at place 0."""
        self.begun = asyncio.Event()
        self.closed = False
        """The server ends, and its streams with it."""
        self._clock = clock
        self._shows_thoughts = shows_thoughts
        self._board: Board | None = None
        self._thoughts: dict[int, dict[str, Any]] = {}
        self._said: deque[tuple[str, str]] = deque()
        self._taken = set(taken)
        self._heard_ids: list[str] = []
        """Names of heard messages, in order: the n-th message of the learner has the n-th."""
        self._leaving = False
        self._over = False
        """Nothing more is said, whatever else may happen to the recording."""
        self._spoke = asyncio.Event()
        self._changed = asyncio.Event()
        self._asked: dict[str, list[str]] = {"thinking": [], "writing": []}
        self._last_said = -MIN_INTERVAL_S
        self._last_entry = self._clock()

    # --- from the page ----------------------------------------------------------------------

    def begin(self) -> None:
        """The person has read what is recorded, and starts."""
        if self.phase == "waiting":
            self.phase = "running"
            self.begun.set()
            self._publish()

    def say(self, message_id: str, text: str) -> None:
        """Take a message; one that was taken before is not taken again.

        Raises `RefusedMessage` if it is empty, too long, too early, or no lesson goes on.
        """
        if message_id in self._taken:
            return
        if self.phase != "running":
            raise RefusedMessage("The lesson does not go on, so nothing is heard.", status=409)
        if not text.strip():
            raise RefusedMessage("The message is empty.")
        if len(text) > MAX_CHARACTERS:
            raise RefusedMessage(f"The message has {len(text)} characters; {MAX_CHARACTERS} fit.")
        now = self._clock()
        if now - self._last_said < MIN_INTERVAL_S or len(self._said) >= MAX_WAITING:
            raise RefusedMessage("Too many messages at once; it is sent in a moment.", status=429)
        self._last_said = now
        self._taken.add(message_id)
        self._said.append((message_id, text))
        self._spoke.set()

    def leave(self) -> None:
        """The person ends the lesson."""
        if self.phase == "running":
            self._leaving = True
            self._spoke.set()

    def why(self, number: int) -> dict[str, Any] | None:
        """Rule, thoughts and scores behind message `number`; `None` while they may not be shown."""
        during = self._shows_thoughts == "during"
        after = self._shows_thoughts == "after" and self._over
        nothing = {"rule": "", "thoughts": []}
        return self._thoughts.get(number, nothing) if during or after else None

    # --- from the recorder ------------------------------------------------------------------

    async def hear(self, listen: Listen) -> PersonInput:
        """Wait for a message or the end, at most as long as the flow listens."""
        self._show(listen.shown)
        started = self._clock()
        if not self._said and not self._leaving and listen.wait_s != 0:
            self._spoke.clear()
            try:
                async with asyncio.timeout(listen.wait_s):
                    await self._spoke.wait()
            except TimeoutError:
                pass
        waited_ms = round(1000 * (self._clock() - started))
        if self._said:
            message_id, text = self._said.popleft()
            return PersonInput(text, waited_ms, message_id=message_id)
        return PersonInput(None, waited_ms, ended=self._leaving)

    def kept(self, listen: Listen, heard: PersonInput) -> None:
        """What was heard is on disk."""
        self._show(listen.shown)
        if heard.text is not None:
            self._heard_ids.append(heard.message_id)

    def asking(self, calls: Sequence[Call], shown: object = None) -> None:
        """Show who is thinking and who is writing, or that the lesson has ended.

        What is asked about the group, such as who is to speak, is the whole group's thinking.
        """
        self._show(shown)
        names: dict[str, list[str]] = {"thinking": [], "writing": []}
        for call in calls if self.phase == "running" else ():
            stage, who = call.key.stage, self.group.shown(call.key.agent)
            names["writing" if stage.startswith("speak") else "thinking"].append(
                who if stage in _BY_ONE else "The group"
            )
        if names != self._asked:
            self._asked = names
            self._publish()

    def finish(self, line: str) -> None:
        """Show the whole lesson; it is recorded as this line of the log."""
        record = LessonRecord.model_validate_json(line)
        for event in record.events:
            self._add(
                Event(event.number, event.kind, event.at_s, event.stage, event.who, event.text)
            )
        for event in record.events:
            if event.cycle is not None:
                self._note_thoughts(event.number, event.cycle)
        self._over = True
        self.phase = "ended"
        self.notice = "The lesson has ended. Everything is recorded."
        if record.failure is not None:
            self.notice = f"The lesson broke off: {record.failure.error}"
        self._publish()

    def stop(self, error: TutorsimError) -> None:
        """Show why nothing more comes; what there is stays readable."""
        self.phase = "stopped"
        self.notice = " ".join(filter(None, (error.what, error.why)))
        self._publish()

    def close(self) -> None:
        """Let every stream end before the server does."""
        self.closed = True
        self._publish()

    # --- to the page ------------------------------------------------------------------------

    def next_change(self) -> asyncio.Event:
        """Set as soon as there is something newer to show than now."""
        return self._changed

    def state(self) -> dict[str, Any]:
        """All that the page shows beside the messages."""
        board = self._board
        progress = board.progress if board else None
        return {
            "phase": self.phase,
            "notice": self.notice,
            "stage": progress.stage if progress else 1,
            "done": list(progress.done_ids()) if progress else [],
            "progress": float(progress.share) if progress else 0.0,
            "quiet_ms": round(1000 * (self._clock() - self._last_entry)),
            "thoughts": self.why(0) is not None,
            **self._asked,
        }

    def transcript(self) -> str:
        """The messages as plain text."""
        lines = [
            f"{one['name']}: {one['text']}" for one in self.entries if one["kind"] == "message"
        ]
        return "\n\n".join([self.about["problem"], *lines]) + "\n"

    def _show(self, board: object) -> None:
        if not isinstance(board, Board) or board is self._board:
            return
        self._board = board
        for event in board.events:
            self._add(event)
        for number, cycle in board.cycles.items():
            self._note_thoughts(number, cycle)
        if board.ended:
            self._over = True
            self.phase = "ended"
            self.notice = "The lesson has ended. Its messages are being coded; you may close this."
        self._publish()

    def _add(self, event: Event) -> None:
        """Show an event, unless it is shown already."""
        if event.number <= len(self.entries):
            return
        mine = event.who == LEARNER
        before = sum(entry["mine"] for entry in self.entries)
        named = mine and before < len(self._heard_ids)
        self.entries.append(
            {
                "number": event.number,
                "kind": event.kind,
                "stage": event.stage,
                "name": self.group.shown(event.who) if event.who else "",
                "mine": mine,
                "text": event.text,
                "message_id": self._heard_ids[before] if named else "",
            }
        )
        self._last_entry = self._clock()

    def _note_thoughts(self, number: int, cycle: CycleRecord) -> None:
        """Keep what was thought in the cycle that brought about the message after it, and why."""
        following = next(
            (e["number"] for e in self.entries if e["number"] > number and e["kind"] != "stage"),
            number + 1,
        )
        thoughts = [
            {
                "name": self.group.shown(one.agent),
                "thought": one.thought,
                "action": one.action,
                "adjusted": one.adjusted,
                "chosen": one.agent == cycle.chosen,
            }
            for one in cycle.thoughts
        ]
        rule = reason(cycle, self.group.shown)
        self._thoughts[following] = {"rule": rule, "thoughts": thoughts}

    def _publish(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _page(loaded: LoadedStudy, spec: EpisodeSpec, folder: Path) -> LessonPage:
    """The page of a lesson, as far as an earlier command has come."""
    scene = GroupScene(loaded, spec)
    task, settings, group = scene.task, scene.settings, scene.group
    assert isinstance(task, Lesson)
    store = InputStore(folder)
    taken = sorted(store.message_ids(spec.episode_id))
    people = [
        {"name": group.shown(who), "role": scene.catalog.roles[who].title} for who in group.agents
    ]
    about = {
        "task": task.id,
        "problem": task.problem,
        "me": settings.person_name,
        "folder": str(folder.resolve()),
        "people": [*people, {"name": settings.person_name, "role": "you"}],
        "stages": [
            {"name": stage.name, "tasks": [one.model_dump() for one in stage.tasks]}
            for stage in task.stages
        ],
    }
    page = LessonPage(group, about, shows_thoughts=settings.show_thoughts, taken=taken)
    if store.heard(spec.episode_id):
        page.begin()  # the person began it before the server was cut off
    return page


CHAT: Final = Chat(page=_page, name=("group", "person_name"))
