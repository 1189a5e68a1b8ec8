"""What the judge makes of a worker that says anything at all, and of tests of every kind."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutorsim.sandbox import Limits, Sandbox

REPLIES = """
import os
def solve(n):
    sent = memoryview(bytes.fromhex("{sent}"))
    while sent:
        sent = sent[os.write(3, sent):]
    os._exit(0)
"""
REPLY = st.one_of(
    st.binary(max_size=64),
    st.builds(
        lambda body, length: length.to_bytes(4, "big") + body,
        st.binary(max_size=64),
        st.integers(0, 100) | st.just(2**32 - 1),
    ),
    st.builds(
        lambda text: len(text.encode()).to_bytes(4, "big") + text.encode(),
        st.sampled_from(
            [
                "null", "[]", "{}", '"x"', "1e999", "NaN", '{"value":{}}', '{"value":{"int":1}}',
                '{"value":{"opaque":[]}}', '{"value":{"opaque":["x",true]}}', '{"raised":null}',
                '{"raised":"print","name":"x","text":"y"}', '{"raised":"SystemExit","name":"x"}',
                '{"raised":"UnicodeDecodeError","name":"x","text":"y"}', '{"raised":"_Stopped"}',
                '{"raised":"BaseExceptionGroup","name":"x","text":"y"}', '{"verdict":"pass"}',
                '{"value":{"decimal":"1e9999999999999999999"}}', '{"value":{"fraction":[1,0]}}',
                '{"value":{"range":[1,2,0]}}', '{"value":{"dict":[[[],1]]}}', '{"large":1}',
                '{"value":{"int":"0x"}}', '{"value":{"set":1}}', '{"value":{"bytes":"g"}}',
                '{"value":{"complex":["x",1]}}', '{"value":{"tuple":{"tuple":[]}}}',
                '{"value":{"iterator":[1]}}', '{"loaded":true}', '{"found":{"code":null}}',
                '{"value":"\\ud800"}', '{"value":1}{"value":2}', '{"value":true,"raised":"X"}',
            ]
        ),
    ),
)  # fmt: skip


@pytest.mark.costly
@settings(max_examples=40)
@given(st.lists(REPLY, min_size=1, max_size=3))
def test_no_reply_is_a_pass_or_a_failure_of_the_sandbox(best: Any, replies: list[bytes]) -> None:
    result, _ = best(REPLIES.replace("{sent}", b"".join(replies).hex()))
    assert result.verdict.outcome in ("fail", "error")


def _test(body: str) -> str:
    return f"def check(candidate):\n    {body}\n"


UNFIT = "answer unfit for the tests: TypeError (call 1)"


@pytest.mark.parametrize(
    ("program", "body", "reason"),
    [
        ("return n", "assert candidate(1) is 1 or candidate(1) == 1", "all tests passed"),
        ("return 1 / 0", "assert candidate(1) == 1", "exception ZeroDivisionError (call 1)"),
        ("return 'x'", "assert candidate(1) + 1", UNFIT),
        ("return None", "assert len(candidate(1))", UNFIT),
        ("return (x for x in [1])", "assert list(candidate(1)) == [1]", "all tests passed"),
        ("return n", "assert candidate({1: [(2,)]}) == {1: [(2,)]}", "all tests passed"),
        ("n.append(1)", "x = []; candidate(x); assert x == []", "all tests passed"),
        ("return True", "assert candidate(1) is True", "all tests passed"),
        ("return 1", "assert candidate(1) is True", "wrong answer (call 1)"),
        ("return object()", "assert candidate(1) == candidate(1)", "wrong answer (call 2)"),
    ],
)  # fmt: skip
def test_answers_are_compared_as_plain_values(
    best: Any, program: str, body: str, reason: str
) -> None:
    result, _ = best(f"def solve(n):\n    {program}\n", test=_test(body))
    assert result.verdict.reason == reason


RAISING = "def solve(n):\n    raise ValueError('no')\n"


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("try:\n        candidate(1)\n    except ValueError as e:\n        assert e.args", "pass"),
        ("try:\n        candidate(1)\n    except KeyError:\n        pass", "error"),
        ("try:\n        candidate(1)\n    except Exception:\n        pass", "pass"),
    ],
)  # fmt: skip
def test_the_tests_may_expect_an_exception(best: Any, body: str, outcome: str) -> None:
    result, _ = best(RAISING, test=_test(body))
    assert result.verdict.outcome == outcome


SWALLOWING = _test("try:\n        candidate(1)\n    except BaseException:\n        pass")


@pytest.mark.parametrize(
    "body", ["import os; os._exit(0)", "raise SystemExit", "raise KeyboardInterrupt"]
)
def test_a_program_that_breaks_off_has_lost_whatever_the_tests_catch(best: Any, body: str) -> None:
    result, _ = best(f"def solve(n):\n    {body}\n", test=SWALLOWING)
    assert result.verdict.outcome == "error"


def test_an_exception_cannot_end_a_loop_of_the_tests(best: Any) -> None:
    body = "assert all(map(lambda c: candidate(c) == c, [1, 2]))"
    for name in ("StopIteration", "StopAsyncIteration", "GeneratorExit"):
        result, _ = best(f"def solve(n):\n    raise {name}\n", test=_test(body))
        assert result.verdict.outcome == "error"


def test_a_prompt_that_ends_after_its_signature_is_completed(best: Any) -> None:
    result, _ = best(
        "def solve(n):\n    return helper(n)\n",
        prompt="def helper(n):\n    return n\n\ndef solve(n):\n",
        test=_test("assert candidate(2) == helper(2)"),
    )
    assert result.verdict.outcome == "pass"


def test_the_prompts_own_stub_is_no_answer(best: Any) -> None:
    result, _ = best("x = 1\n")
    assert result.verdict.reason == "missing function"


def test_what_a_program_used_and_wrote_is_told_beside_the_verdict(best: Any) -> None:
    result, usage = best('def solve(n):\n    print("é", n)\n    raise ValueError("why")\n')
    assert result.verdict.reason == "exception ValueError (call 1)"
    assert (usage.calls, usage.output, usage.written, usage.detail) == (1, "é 3\n", 5, "why")
    assert 0 < usage.cpu < 0.3
    assert usage.memory > 1 << 20


@pytest.mark.slow
def test_the_tests_may_take_longer_than_a_program() -> None:
    limits = Limits(cpu=0.2, tests_cpu=4)
    busy = _test("import time\n    while time.process_time() < 3.5: pass\n    assert candidate(1)")
    with Sandbox(limits=limits, workers=1) as sandbox:
        result, _ = sandbox.judge_program(
            "def solve(n):\n    return n\n", prompt="", entry_point="solve", test=busy
        )
    assert result.verdict.outcome == "pass"
