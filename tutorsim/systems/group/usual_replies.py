"""Replies of usual length, for estimates before anything is sent."""

import json
import re
from collections.abc import Sequence

from tutorsim.model import Call
from tutorsim.systems.group.speaker_selection import CRITERIA

__all__ = ["usual_reply"]

SENTENCE = "This stands for about eighteen words of the kind that learners write to one another. "


def usual_reply(call: Call, names: Sequence[str], *, longest: bool) -> str:
    """A reply of usual length.

    On the longest path everybody wants to speak and somebody does; on the shortest nobody.

    Args:
        call: What is asked.
        names: The agents as prompts show them.
        longest: Which path.
    """
    stage = call.key.stage
    if stage.startswith("rate_"):
        asked = re.findall(r'"(\w+)": 1\.0', call.request.user)
        return json.dumps(dict.fromkeys(asked, 7.0))
    match stage:
        case "manager":
            return json.dumps({"reason": SENTENCE, "signal": "continue", "completed": []})
        case "think":
            action = "speak" if longest else "listen"
            return json.dumps(
                {"stimuli": ["M1"], "thought": SENTENCE * 2, "action": action, "corrects": False}
            )
        case "evaluate":
            criteria = ("internal", "external") if '"internal"' in call.request.user else CRITERIA
            return json.dumps([{"agent": name} | dict.fromkeys(criteria, 4.0) for name in names])
        case "speak" | "speak_predicted":
            return json.dumps({"message": SENTENCE * 2, "to": ["all"], "continues": longest})
        case "predict":
            return names[0] if longest else "learner"
        case "learner":
            return json.dumps({"action": "wait", "message": ""})
        case "judge":
            return f"BETTER: same\n{SENTENCE}"
        case _:
            return "CATEGORY: 6"
