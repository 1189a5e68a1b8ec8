"""Scripted debates: small tasks, the shipped wordings, and replies drawn from a hash."""

import hashlib
import re

from tutorsim.ballot_reading_and_decisions import RULES
from tutorsim.kernel.flow_drivers_and_call_log import drive, scripted
from tutorsim.model import Call, CallKey, Request
from tutorsim.systems.debate import DEBATE
from tutorsim.systems.debate.discussion_challenges_and_reply_reading import DebateContext
from tutorsim.systems.debate.episode_flow_and_study import debate_episode
from tutorsim.systems.debate.published_question_sets import DebateTask
from tutorsim.systems.debate.settings import DebateSettings

TASK = DebateTask("t1", "mmlu", "Which one?", ("red", "green", "blue", "grey"), ("C",))


def make_context(condition="simple", *, task=TASK, seed=5, **settings):
    return DebateContext(
        wordings=DEBATE.catalog(), settings=DebateSettings(**settings), task=task,
        condition=condition, seed=seed, discussion=f"{task.benchmark}.{task.task_id}.default",
        call=make_call,
    )  # fmt: skip


def make_call(turn, stage, agent, *, system, user):
    return Call(CallKey(turn, stage, agent, 1), Request("m", system, user, 100))


def play(context, reply):
    """Run one episode with canned replies."""
    name = f"{context.discussion}.{context.condition}"
    return drive(debate_episode(context, name, "default"), scripted(reply))


class Draws:
    """Replies that depend on the call alone, and are the same under every protocol.

    Args:
        name: Which debate.
        agreeable: Share of messages that agree.
        answers: How many different answers there are.
        sincere: Every ballot can be read, and all ballots of a voter in a turn rank alike.
    """

    def __init__(self, name, *, agreeable=0.6, answers=3, sincere=False):
        self.name, self.agreeable, self.answers = name, agreeable, answers
        self.sincere = sincere

    def number(self, *parts):
        text = "\x1f".join(map(str, (self.name, *parts)))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6]) / 2**48

    def of(self, condition):
        """The replies for one condition."""
        return lambda call: self.reply(call, condition)

    def reply(self, call, condition):
        key, stage = call.key, call.key.stage
        if stage.startswith("vote"):
            form = condition if stage == "vote_final" else stage.removeprefix("vote_as_")
            return self.ballot(call, form)
        place = (key.turn, stage, key.agent, key.attempt)
        draw = self.number(*place)
        if stage == "persona":
            return f'{{"role": "R {key.agent}", "description": "d"}}' if draw < 0.9 else "no"
        if stage == "answer":
            return "" if draw < 0.05 else f"answer {int(self.number(*place, 'a') * self.answers)}"
        if stage.startswith("extract"):
            return f"solution {draw}" if draw > 0.1 else ""
        if stage == "message" or stage.startswith("debate_"):
            return self.message(draw, place)
        return f"text {draw}"

    def message(self, draw, place):
        if draw < self.agreeable:
            return f"[AGREE] yes {place}"
        return f"[disagree] no {place}" if draw < 0.95 else ("" if draw > 0.98 else f"hm {place}")

    def ballot(self, call, form):
        """A ballot over the labels that the prompt shows: any of few, or none that can be read."""
        labels = re.findall(r"^([P-Y]): ", call.request.user, re.MULTILINE)
        key = call.key
        if self.sincere:
            order = sorted(labels, key=lambda label: self.number(key.turn, key.agent, label))
            return _written(form, order, int(self.number(key.turn, key.agent) * 3))
        draw = self.number(key.turn, form, key.agent, key.attempt)
        if draw < 0.1:
            return "?"
        order = sorted(labels, key=lambda label: self.number(key.turn, form, key.agent, label))
        if draw < 0.2 and form not in ("simple", "ranked", "approval"):
            return ",".join(f"{label}=1" for label in labels)  # repaired, or level
        return _written(form, order, int(draw * 3))


def _written(form, order, approved):
    if form == "simple":
        return order[0]
    if form == "ranked":
        return ",".join(order)
    if form == "approval":
        return ",".join(order[:approved]) or "none"
    return RULES[form].example(order, 25)
