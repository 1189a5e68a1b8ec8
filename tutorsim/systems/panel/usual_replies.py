"""Replies of usual length, for estimates before anything is sent."""

from tutorsim.model import Call
from tutorsim.vocabularies import LABELS

__all__ = ["usual_reply"]

SENTENCE = (
    "This stands for about eighteen words of the kind that tutors and students write to others. "
)


def usual_reply(call: Call, count: int, *, longest: bool) -> str:
    """A reply of usual length.

    Ballots, and scores on the longest path, are of no readable form: every vote then ties and
    no attempt succeeds, whatever the protocol and the threshold.
    """
    match call.key.stage:
        case "student":
            return SENTENCE * 6
        case "judge":
            return f"SCORE: {'-' if longest else 1}\n{SENTENCE}"
        case "propose" | "revise":
            return f"PROPOSAL: {SENTENCE * 3}\nRATIONALE: {SENTENCE}\nCONFIDENCE: 70"
        case "critique" | "tie_critique":
            blocks = (f"{label}:\nSTRENGTH: {SENTENCE}\nWEAKNESS: {SENTENCE}" for label in LABELS)
            return "\n".join(list(blocks)[:count])
        case _:
            return "?" * 4 * count
