"""The first difference of two JSON values, in one sentence."""

import pytest

from tutorsim.replay.recorded_call import first_difference


@pytest.mark.parametrize(
    ("recorded", "asked", "told"),
    [
        ({"a": [1, 2]}, {"a": [1, 3]}, "a[1]: recorded 2, now 3."),
        ({"a": [1]}, {"a": [1, 2]}, "a has 1 items in the recording and 2 in this call."),
        ({"a": "1"}, {"a": 1}, "a: recorded '1', now 1."),
        ({"a": 1}, {"a": 1.0}, "The values are equal."),
        ("\x1b[31m", "\x1b[32m", "recorded '\\x1b[31m', now '\\x1b[32m'."),
        (
            "x" * 99 + "a" + "y" * 99,
            "x" * 99 + "b" + "y" * 99,
            f"recorded …'{'x' * 30}a{'y' * 29}'…, now …'{'x' * 30}b{'y' * 29}'….",
        ),
        ({"a": ["z" * 500]}, {"a": 1}, "…, now 1."),
    ],
)
def test_the_first_difference_is_described(recorded, asked, told):
    assert first_difference(recorded, asked).endswith(told)
