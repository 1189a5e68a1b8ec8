"""Requests to the stand-in."""


def body(**fields):
    """Build a request body: a simple vote over four replies unless told otherwise."""
    drafts = "\n\n".join(f"{label}: Reply number {label}." for label in "ABCD")
    user = f"Question:\nWhy?\n\n{drafts}\n\nVote for the one best reply."
    return {
        "model": "some-model",
        "max_tokens": 100,
        "system": "You assess replies to a student.",
        "messages": [{"role": "user", "content": user}],
        **fields,
    }
