"""Model calls: what is asked, what comes back, and the one-method seam between them."""

from tutorsim.model.call import Call, CallKey, Model, Reply, Request

__all__ = ["Call", "CallKey", "Model", "Reply", "Request"]
