"""The scripted group: managers, thoughts, scores, messages, learners, judges, raters, coders.

It reads a prompt as a model would, by its words, and answers from `standin.toml`. It stands in
for a model where none can be had; figures of its lessons say nothing about models.
"""

from collections.abc import Callable, Mapping
from typing import Final

from tutorsim.scripted_mind import Asking, Chance
from tutorsim.systems.group.standin_learner import learner_line
from tutorsim.systems.group.standin_peers import scores_of_thoughts, spoken, thought_of
from tutorsim.systems.group.standin_prompt import SELF, Prompt
from tutorsim.systems.group.standin_watchers import category, prediction, rating, ruling, verdict

__all__ = ["group_reply"]


def group_reply(asking: Asking, chance: Chance, steady: Chance | None = None) -> str | None:
    """The scripted reply to a prompt of a group; `None` for a prompt of something else."""
    system, user = asking
    reply = next((reply for mark, reply in _REPLIES.items() if mark in system), None)
    if reply is None and SELF.search(system):
        reply = spoken if "message to the group" in user else thought_of
    if reply is None:
        return None
    if not asking.again and chance.happens("malformed", 0.015):
        return "I would rather say it in words."
    return reply(Prompt(system, user), chance)


_REPLIES: Final[Mapping[str, Callable[[Prompt, Chance], str]]] = {
    "You watch over the stages of a group lesson": ruling,
    "how much each member of a study group should say aloud": scores_of_thoughts,
    "You predict who speaks next in the chat": prediction,
    "You play a learner named": learner_line,
    "You compare two ways in which a study group": verdict,
    "You rate one message in the chat of a study group": rating,
    "You code messages of a group's chat": category,
}
