"""The scripted mind behind every agent of this system.

It reads what a prompt shows, as a model would: the tutor's reply has a latent quality, taken
from its words (a question, a named error, a given answer) with noise. The permissive critic sees
more in it, the strict one less; judge, stress tester and lead come nearer to it, with noise. Its
figures say nothing about any language model.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tutorsim.kernel.system_and_loaded_study import Asking, Chance
from tutorsim.records.oversight import Labels

_UNMET: Final = 0.1
_MALFORMED: Final = 0.06
_NO_FORM: Final = 0.02
_STUBBORN: Final = 0.25
"""How often the second asking does not help either."""

_BLOCK: Final = r"^{head}:\n((?:  .*\n?|\n(?=  ))*)"
_PRAISE: Final = re.compile(r"\b(great|exactly|well done|perfect|correct|right|good work)\b", re.I)
_DOUBT: Final = re.compile(
    r"\b(not|but|though|wrong|mistake|check|again|off|remember|yet|instead|careful|compare|would)\b",
    re.I,
)
_GIVEN: Final = re.compile(
    r"(the answer is|so it is|that is|equals|= ?-?[0-9]|because|is the reason)", re.I
)
_ASKS: Final = re.compile(r"\?")
_CONCRETE: Final = re.compile(
    r"[0-9]|\b(first|each|step|half|whole|count|write|imagine|try)\b", re.I
)


@dataclass(frozen=True)
class _Prompt:
    """What one agent sees, and how it is disposed."""

    asking: Asking
    chance: Chance

    @property
    def user(self) -> str:
        return self.asking.user

    @property
    def system(self) -> str:
        return self.asking.system

    @cached_property
    def reply(self) -> str:
        return _under(self.user, "The tutor's reply under assessment")

    @cached_property
    def message(self) -> str:
        return _under(self.user, "The student's last message")

    def fails(self, name: str, rate: float) -> bool:
        return self.chance.happens(name, _STUBBORN if self.asking.again else rate)

    def view(self, *, shift: float, noise: float) -> Labels:
        """The labels as this agent sees them; noise is its own."""
        mistake, guidance = _quality(self.reply, self.message)
        mistake += shift / 2 + noise * self.chance.bell("mistake")
        guidance += shift + noise * self.chance.bell("guidance")
        return Labels.model_validate(
            {"mistake": int(mistake > 0), "guidance": 2 if guidance > 1.5 else int(guidance > 0.5)}
        )


def _under(user: str, head: str) -> str:
    found = re.search(_BLOCK.format(head=re.escape(head)), user, re.MULTILINE)
    return found[1].replace("\n  ", "\n").strip() if found else ""


def _quality(reply: str, message: str) -> tuple[float, float]:
    """How far a reply points at a mistake (above 0: it does), and how well it guides (0 to 2)."""
    luck = Chance("oversight", reply, message)
    doubts, praise = len(_DOUBT.findall(reply)), len(_PRAISE.findall(reply))
    mistake = 0.5 * min(doubts, 2) + 0.3 * bool(_ASKS.search(reply)) - 0.5 * min(praise, 2) - 0.15
    guidance = 0.4 + 0.8 * bool(_ASKS.search(reply)) + 0.5 * bool(_CONCRETE.search(reply))
    guidance -= 0.9 * bool(_GIVEN.search(reply)) + 0.2 * praise
    return mistake + 0.15 * luck.bell("mistake"), guidance + 0.25 * luck.bell("guidance")


def recognise(asking: Asking, chance: Chance, steady: Chance | None) -> str | None:
    """A reply to a prompt of this system; `None` for any other prompt."""
    if "The tutor's reply under assessment:" not in asking.user:
        return None
    prompt = _Prompt(asking, chance)
    return next(write(prompt) for mark, write in _WRITERS.items() if mark.search(asking.user))


# --- Briefing ----------------------------------------------------------------------------------


def _conceptual(prompt: _Prompt) -> str:
    numbers = len(re.findall(r"[0-9]+", prompt.message))
    concept = prompt.chance.pick(
        "concept", ("the operation that fits the story", "units", "parts of a whole")
    )
    error = f"the student holds that {_quote(prompt.message)}, which does not follow"
    kind = "calculation" if numbers > 2 else prompt.chance.pick("kind", ("conceptual", "unclear"))
    return f"CONCEPT: {concept}\nERROR: {error}\nKIND: {kind}"


def _behavioural(prompt: _Prompt) -> str:
    unsure = re.search(r"\b(not sure|maybe|guess|don't)\b", prompt.message, re.I)
    tone = "warm" if _PRAISE.search(prompt.reply) else "matter-of-fact"
    engagement = "guessing" if unsure else prompt.chance.pick("mood", ("over-confident", "engaged"))
    return f"ENGAGEMENT: {engagement}, as in {_quote(prompt.message)}\nTONE: {tone}"


def _trajectory(prompt: _Prompt) -> str:
    before = prompt.user.partition("oldest first:\n")[2].partition("\n\nThe student's last")[0]
    corrected = before.count("Tutor:") > 1
    where = prompt.chance.pick("where", ("stuck", "unclear")) if corrected else "unclear"
    return (
        f"TRAJECTORY: {where}\nCORRECTED BEFORE: {'yes' if corrected else 'no'}\n"
        f"EVIDENCE: {_quote(before or prompt.message)}"
    )


# --- The debate --------------------------------------------------------------------------------


def _thesis(prompt: _Prompt) -> str:
    shift = (
        0.5
        if "permissive critic" in prompt.system
        else -0.5
        if "strict critic" in prompt.system
        else 0.0
    )
    if re.search(r"^(Act I, opening|Your opening|Your assessment)", prompt.user, re.MULTILINE):
        shift /= 2
    if re.search(r"has one last demand", prompt.user):
        shift /= 3
    labels = prompt.view(shift=shift, noise=0.3)
    if prompt.fails("form", _NO_FORM):
        return f"I think that the reply {_verb(labels)}."
    why = prompt.chance.pick(
        "why",
        (
            "it turns the student back to the place where the work went wrong",
            "what the student has to do next can be read off it",
            "it depends on what the student already sees",
        ),
    )
    against = "" if shift > 0 else " Nothing shows that the student will take the hint."
    return (
        f"THESIS: The reply {_verb(labels)}, because {why}.{against}\n"
        f"EVIDENCE: {_quote(prompt.reply)}\n{_line(labels)}"
    )


def _challenges(prompt: _Prompt) -> str:
    claims = (
        "You say what the student thinks; which words of the student support it?",
        f"You rest the case on {_quote(prompt.reply)}, which can be read the other way.",
        "You do not say what the student would do next.",
    )
    parts = []
    for critic in ("PERMISSIVE", "STRICT"):
        count = 1 + int(2 * prompt.chance.unit(f"count {critic}"))
        lines = [f"{i}. {claim}" for i, claim in enumerate(claims[:count], start=1)]
        parts.append("\n".join([f"TO {critic}:", *lines]))
    return "\n".join(parts)


def _press(prompt: _Prompt) -> str:
    unmet = [c for c in ("PERMISSIVE", "STRICT") if prompt.chance.happens(f"unmet {c}", _UNMET)]
    lines = [f"{c}: {'unmet' if c in unmet else 'met'}" for c in ("PERMISSIVE", "STRICT")]
    lines += [f"PRESS {c}: Name the words of the student that your case rests on." for c in unmet]
    return "\n".join(lines)


# --- Judgment ----------------------------------------------------------------------------------


def _judge(prompt: _Prompt) -> str:
    labels = prompt.view(shift=0, noise=0.2)
    if prompt.fails("form", _NO_FORM):
        return "Both sides have a point."
    sides = re.search(r"better evidence, (\w+) or (\w+)\?", prompt.user)
    first, second = (sides[1], sides[2]) if sides else ("permissive", "strict")
    favourable = first if first in ("permissive", "a") else second
    other = second if favourable == first else first
    generous = labels.guidance + labels.mistake + 0.6 * prompt.chance.bell("winner")
    generous += 0.2 if favourable == first else -0.2
    winner = favourable if generous > 1.6 else other
    sure = 50 + int(45 * prompt.chance.unit("sure"))
    return (
        f"WINNER: {winner}\nWHY: the dialogue has {_quote(prompt.reply)}\n{_line(labels)}\n"
        f"CONFIDENCE: {sure}"
    )


def _stress(prompt: _Prompt) -> str:
    labels = prompt.view(shift=-0.3, noise=0.3)
    severity = min(3, int(4 * prompt.chance.unit("severity") ** 2))
    if prompt.fails("form", _NO_FORM):
        return "There is little left to say."
    return (
        "WEAKNESS: it is open whether the student can act on the reply\n"
        f"SEVERITY: {severity}\n{_line(labels)}"
    )


def _answer(prompt: _Prompt) -> str:
    debated = "The judge's verdict:" in prompt.user
    labels = prompt.view(shift=0, noise=0.2 if debated else 0.45)
    sure = round(0.5 + 0.5 * prompt.chance.unit("sure") ** (0.6 if debated else 1), 2)
    fields = {
        "mistake_identified": bool(labels.mistake),
        "guidance_quality": labels.guidance,
        "confidence": sure,
        "reasoning": f"The reply {_verb(labels)}.",
    }
    if prompt.fails("json", _MALFORMED):
        return _malformed(fields, prompt.chance)
    text = json.dumps(fields)
    return f"```json\n{text}\n```" if prompt.chance.happens("fence", 0.2) else text


def _malformed(fields: Mapping[str, object], chance: Chance) -> str:
    """An answer that is out of form in one of the ways that models know."""
    short = {name: value for name, value in fields.items() if name != "confidence"}
    worded = {**fields, "guidance_quality": "high"}
    quoted = {**fields, "mistake_identified": str(fields["mistake_identified"]).lower()}
    texts = (
        json.dumps(fields)[:-12],
        json.dumps(short),
        json.dumps(worded),
        json.dumps(quoted),
        f"The reply is fine; I would say {fields['guidance_quality']}.",
    )
    return chance.pick("malformed", texts)


def _line(labels: Labels) -> str:
    return f"LABELS: mistake={labels.mistake} guidance={labels.guidance}"


def _verb(labels: Labels) -> str:
    prompt = "sees the mistake" if labels.mistake else "passes over the mistake"
    help_ = ("does not guide", "guides in part", "guides to a next step")[labels.guidance]
    return f"{prompt} and {help_}"


def _quote(text: str) -> str:
    words = re.sub(r"\s+", " ", text).replace('"', "'").split(" ")
    return '"' + " ".join(words[:9]) + '"'


_WRITERS: Final[Mapping[re.Pattern[str], Callable[[_Prompt], str]]] = {
    re.compile(mark, re.MULTILINE): write
    for mark, write in (
        (r"^CONCEPT: <", _conceptual),
        (r"^ENGAGEMENT: <", _behavioural),
        (r"^TRAJECTORY: <", _trajectory),
        (r"^TO PERMISSIVE:$", _challenges),
        (r"^PRESS PERMISSIVE: <", _press),
        (r"^WINNER: <", _judge),
        (r"^SEVERITY: <", _stress),
        (r'^\{"mistake_identified"', _answer),
        (r"^THESIS: <", _thesis),
    )
}
"""What a prompt's instructions have at a line's start → the agent that answers."""
