"""Model calls: what is asked, what comes back, and the one-method seam between them."""

from tutorsim.model.call import (
    CALL_HEADER,
    CUT_OFF,
    Answer,
    Call,
    CallKey,
    Model,
    Question,
    Reply,
    Request,
    json_value,
)

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
