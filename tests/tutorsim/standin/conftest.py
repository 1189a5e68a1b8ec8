"""Requests to the stand-in."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def body() -> Callable[..., dict[str, Any]]:
    """Build a request body: a simple vote over four replies unless told otherwise."""

    def build(**fields: Any) -> dict[str, Any]:
        drafts = "\n\n".join(f"{label}: Reply number {label}." for label in "ABCD")
        user = f"Question:\nWhy?\n\n{drafts}\n\nVote for the one best reply."
        return {
            "model": "some-model",
            "max_tokens": 100,
            "system": "You assess replies to a student.",
            "messages": [{"role": "user", "content": user}],
            **fields,
        }

    return build
