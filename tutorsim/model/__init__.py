"""Model calls: what is asked, what comes back, and the one-method seam between them."""

from tutorsim.model.call import CALL_HEADER, CUT_OFF, Call, CallKey, Model, Reply, Request
from tutorsim.model.json_bodies import json_value
from tutorsim.model.question_and_reader import Answer, Question

__all__ = [
    "CALL_HEADER",
    "CUT_OFF",
    "Answer",
    "Call",
    "CallKey",
    "Model",
    "Question",
    "Reply",
    "Request",
    "json_value",
]
