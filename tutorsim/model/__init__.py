"""Model calls: what is asked, what comes back, and the one-method seam between them."""

from tutorsim.model.call import CALL_HEADER, Call, CallKey, Model, Reply, Request
from tutorsim.model.question import Answer, Question

__all__ = ["CALL_HEADER", "Answer", "Call", "CallKey", "Model", "Question", "Reply", "Request"]
