"""Baselines: one model alone, with and without thinking step by step, or refining its solution."""

from tutorsim.mechanisms.flow import Flow, ask
from tutorsim.model import Question
from tutorsim.systems.debate.agent_prompts import extract_question
from tutorsim.systems.debate.prompt_context import DebateContext
from tutorsim.systems.debate.reply_reading import read_text

__all__ = ["SOLO", "refinements", "solve_alone"]

SOLO = "baseline"
"""The agent of a model alone."""


def refinements(context: DebateContext) -> int:
    """How often a model alone improves its solution under `self_refine`."""
    if context.condition != "self_refine":
        return 0
    return context.settings.agents * context.settings.vote_from


def solve_alone(context: DebateContext, replies: list[str]) -> Flow[str]:
    """Solve the task alone.

    Args:
        context: The episode.
        replies: Takes every reply as it comes.

    Returns:
        The bare solution; the whole last reply if extraction gives nothing.
    """
    thinks = context.condition == "baseline_cot" or (
        context.condition == "self_refine" and context.settings.chain_of_thought
    )
    think = f" {context.wordings.fill('think')}" if thinks else ""
    replies.append((yield from _said(context, 1, "solve", think=think)))
    for number in range(1, refinements(context) + 1):
        own = replies[-1]
        replies.append((yield from _said(context, number + 1, "refine", think=think, own=own)))
    last = replies[-1]
    if not last:
        return ""
    turn = len(replies)
    [solution] = yield from ask(
        [extract_question(context, turn=turn, stage="extract", agent=SOLO, text=last)]
    )
    return solution.value or last


def _said(
    context: DebateContext, turn: int, stage: str, *, think: str, own: str | None = None
) -> Flow[str]:
    """A reply of the model; an empty one leaves the solution as it was."""
    given = {} if own is None else {"own": own.replace("\n", "\n  ") or context.blank}
    call = context.call(
        turn,
        stage,
        SOLO,
        system=context.wordings.fill("solo_system"),
        user=context.fill(stage, think=think, **given),
    )
    reminder = context.wordings.fill("text_reminder")
    [reply] = yield from ask([Question(call, read_text, reminder)])
    return reply.value or own or ""
