"""What the judge makes of a worker that says anything at all, and of tests of every kind."""

import json
import sys
from textwrap import indent
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tutorsim.sandbox.conftest import TERMS
from tutorsim.sandbox import Limits, Sandbox
from tutorsim.sandbox.inner import judge
from tutorsim.sandbox.inner import load_program_and_answer_calls as worker
from tutorsim.sandbox.inner.encode_and_decode_plain_values import MAKERS, MUTABLE

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
                '{"value":[0],"nodes":[["list",[0]]],"changed":[]}', '{"items":[1],"end":false}',
            ]
        ),
    ),
)  # fmt: skip


@pytest.mark.costly
@settings(max_examples=40)
@given(st.lists(REPLY, min_size=1, max_size=3))
def test_no_reply_is_a_pass_or_a_failure_of_the_sandbox(best, replies):
    result, _ = best(REPLIES.replace("{sent}", b"".join(replies).hex()))
    assert result.verdict.outcome in ("fail", "error")


def _test(body):
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
        ("return True", "assert candidate(1) is True", "all tests passed"),
        ("return 1", "assert candidate(1) is True", "wrong answer (call 1)"),
        ("return object()", "assert candidate(1) == candidate(1)", "wrong answer (call 2)"),
    ],
)  # fmt: skip
def test_answers_are_compared_as_plain_values(best, program, body, reason):
    result, _ = best(f"def solve(n):\n    {program}\n", test=_test(body))
    assert result.verdict.reason == reason


ITEMS = "(x for x in range(n))"


@pytest.mark.parametrize(
    ("program", "body"),
    [
        ("return {1: 2}.keys()", "assert candidate(1) == {1}"),
        ("return {1: 2}.values()", "assert sorted(candidate(1)) == [2]"),
        ("return {1: [2]}.items()", "assert list(candidate(1)) == [(1, [2])]"),
        ("import array; return array.array('i', [n])", "assert candidate(1).tolist() == [1]"),
        ("return memoryview(b'ab')", "assert candidate(1) == b'ab'"),
        ("import collections as c; return c.UserList([n])", "assert candidate(1) == [1]"),
        ("import collections as c; return c.Counter([n])", "assert candidate(1).most_common()"),
        ("import datetime as d; return d.date(2024, 2, n)",
         "import datetime\n    assert candidate(3) == datetime.date(2024, 2, 3)"),
        ("from collections import namedtuple as t; return t('P', 'x y')(n, 2)",
         "assert candidate(1).y == 2"),
        (f"return {ITEMS}", "assert sum(1 for _ in candidate(30_000)) == 30_000"),
        (f"return [{ITEMS}, {ITEMS}]", "a, b = candidate(2); assert [*b, *a] == [0, 1, 0, 1]"),
        ("import itertools; return itertools.count(n)",
         "x = candidate(5); assert [next(x), *zip('ab', x)] == [5, ('a', 6), ('b', 7)]"),
        ("yield n; raise ValueError('late')", "x = candidate(1); assert next(x) == 1\n"
         "    try:\n        next(x)\n        assert False\n    except ValueError as e:\n"
         "        assert str(e) == 'late'"),
        ("r = []\n    for _ in range(5000): r = [r]\n    return r",
         "x = candidate(1)\n    while x: (x,) = x"),
        ("r = ()\n    for _ in range(900): r = (r,)\n    return r",
         "x = ()\n    for _ in range(900): x = (x,)\n    assert candidate(1) == x"),
        ("r = [n]; r.append(r); return r", "x = candidate(1); assert x[1] is x"),
        ("n.append(1)", "x = []; candidate(x); assert x == [1]"),
        ("n.sort()", "x = [3, 1, 2]; assert candidate(x) is None; assert x == [1, 2, 3]"),
        ("n[0]['a'] |= {2}; n[1][0] = True", "x = ({'a': {1}}, [1]); candidate(x)\n"
         "    assert x[0] == {'a': {1, 2}} and x[1][0] is True"),
        ("n.clear(); raise ValueError", "x = {1: 2}\n    try:\n        candidate(x)\n"
         "    except ValueError:\n        pass\n    assert x == {}"),
        ("return n", "x = []; assert candidate(x) is x"),
        ("return n[::-1]", "f = len; assert candidate([1, f])[0] is f"),
        ("return n", "x = {1: 2}\n    for k in x: candidate(x)"),
        ("raise KeyError('x', n)", "try:\n        candidate([1])\n    except KeyError as e:\n"
         "        assert e.args == ('x', [1])"),
        ("raise FileNotFoundError(2, 'no', n)", "try:\n        candidate('x')\n"
         "    except OSError as e:\n        assert (e.errno, e.filename) == (2, 'x')"),
        ("raise ValueError('x' * 2000)", "try:\n        candidate(1)\n    except ValueError as e:\n"
         "        assert len(str(e)) == 2000"),
    ],
)  # fmt: skip
def test_what_plain_python_accepts_is_accepted(best, program, body):
    indented = f"def solve(n):\n    {program}\n"
    # The case holds where nothing is sent from one process to another.
    names: dict[str, Any] = {}
    exec(indented + _test(body), names)
    names["check"](names["solve"])

    result, usage = best(indented, test=_test(body), prompt="")
    assert result.verdict.reason == "all tests passed", usage


@pytest.mark.parametrize(
    ("program", "body"),
    [
        ("return {1: 2}.keys()", "assert candidate(1) == {2}"),
        ("n.append(1)", "x = []; candidate(x); assert x == []"),
        ("n.append(1)", "x = [1]; candidate(x); assert x == [1.0, 2]"),
        (f"return {ITEMS}", "assert list(candidate(20_000))[-1] == 20_000"),
        ("return n", "assert candidate([]) is []"),
        ("from collections import OrderedDict as d; return d(b=1, a=2)",
         "from collections import OrderedDict\n    assert candidate(1) == OrderedDict(a=2, b=1)"),
    ],
)  # fmt: skip
def test_what_plain_python_fails_fails(best, program, body):
    result, _ = best(f"def solve(n):\n    {program}\n", test=_test(body), prompt="")
    assert result.verdict.reason == "wrong answer (call 1)"


@pytest.mark.parametrize(
    "program",
    [
        "import asyncio\nasync def one(k):\n    await asyncio.sleep(0.001)\n    return k\n"
        "async def both(n):\n    return sum(await asyncio.gather(one(37 * n), one(11)))\n"
        "def solve(n):\n    return asyncio.run(both(n))\n",
        "from concurrent.futures import Future, ThreadPoolExecutor\ndef solve(n):\n"
        "    f = Future(); f.set_result(n * 37 + 11); return f.result()\n",
        "import xml.etree.ElementTree as E\nimport xml.dom.minidom as M\ndef solve(n):\n"
        "    M.parseString('<a/>')\n"
        "    return int(E.fromstring(f'<a b=\"{n * 37 + 11}\"/>').get('b'))\n",
        "from zoneinfo import ZoneInfo\nfrom datetime import datetime, timedelta\ndef solve(n):\n"
        "    summer = datetime(2024, 7, 1, tzinfo=ZoneInfo('Europe/Berlin')).utcoffset()\n"
        "    return n * 37 + 9 + summer // timedelta(hours=1)\n",
    ],
    ids=["asyncio", "concurrent.futures", "xml", "zoneinfo"],
)
def test_more_of_the_library_can_be_imported_and_works(best, program):
    result, usage = best(program)
    assert result.verdict.reason == "all tests passed", usage


ENDLESS = """
import json, os, sys
def solve(n):
    scope = sys._getframe(1).f_locals
    while True:
        ticket = scope["call"]["ticket"]
        reply = {"value": [0], "nodes": [["handle", 0]], "changed": [], "items": [], "end": False}
        body = json.dumps(reply | {"ticket": ticket}).encode()
        os.write(3, len(body).to_bytes(4, "big") + body)
        length = int.from_bytes(os.read(3, 4), "big")
        scope = {"call": json.loads(os.read(3, length))}
"""


@pytest.mark.costly
@pytest.mark.parametrize(
    "program",
    [ENDLESS, "import itertools\ndef solve(n):\n    return itertools.repeat(1)\n"],
    ids=["forged", "honest"],
)
def test_an_iterator_without_end_uses_up_a_limit(best, program):
    result, _ = best(program, test=_test("list(candidate(1))"))
    assert result.verdict.outcome == "timeout"


FORGED = """
import json, os, sys
def solve(n):
    ticket = sys._getframe(1).f_locals["call"]["ticket"]
    reply = {reply} | {{"ticket": ticket}}
    body = json.dumps(reply).encode()
    os.write(3, len(body).to_bytes(4, "big") + body)
    os._exit(0)
"""


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"value": 1},
        {"value": 1, "nodes": []},
        {"value": 1, "nodes": [], "changed": [[0, ["list"]]]},
        {"value": 1, "nodes": [], "changed": [["0", ["list"]]]},
        {"value": 1, "nodes": [], "changed": 1},
        {"value": [5], "nodes": [], "changed": []},
        {"value": {}, "nodes": [], "changed": []},
        {"value": [0], "nodes": [["decimal", "1e9999999999999999999"]], "changed": []},
        {"value": [0], "nodes": [["named", "P", "__eq__", 1]], "changed": []},
        {"value": [0], "nodes": [["named", "x y", "a", 1]], "changed": []},
        {"value": [0], "nodes": [["zone", "../../../etc/passwd"]], "changed": []},
        {"value": [0], "nodes": [["handle", []]], "changed": []},
        {"raised": "print", "name": "x", "text": "y", "nodes": [], "changed": []},
        {"raised": "ValueError", "args": [[1]], "nodes": [], "changed": []},
        {"raised": "BaseExceptionGroup", "args": ["x", [0]], "nodes": [["list"]], "changed": []},
        {"raised": "_Stopped", "nodes": [], "changed": []},
    ],
)
def test_a_forged_answer_is_an_error_of_the_student(best, reply):
    program = FORGED.format(reply=repr(reply))
    result, _ = best(program, test=_test("candidate('no list')"))
    assert result.verdict.outcome == "error", result


def test_another_word_than_that_it_is_loaded_is_an_error_of_the_student(best):
    program = 'import os\nos.write(3, b"\\0\\0\\0\\2{}")\ndef solve(n):\n    return n\n'
    result, _ = best(program, test=_test("pass"))
    assert result.verdict.outcome == "error"
    assert result.verdict.reason == "protocol: unexpected answer"


ITEM = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 2**54), st.floats(), st.text(max_size=3),
    st.lists(st.integers(-1, 9), max_size=2), st.dictionaries(st.text(max_size=1), st.none()),
)  # fmt: skip
NODE = st.builds(
    lambda tag, items: [tag, *items],
    st.sampled_from([*sorted(MUTABLE), *sorted(MAKERS), "handle", "x"]),
    st.lists(ITEM, max_size=3),
)
ANSWER = st.fixed_dictionaries(
    {
        "value": ITEM,
        "nodes": st.lists(NODE, max_size=5) | ITEM,
        "changed": st.lists(st.tuples(st.integers(-1, 5), NODE), max_size=2) | ITEM,
    },
    optional={
        "items": st.lists(ITEM, max_size=2),
        "raised": st.sampled_from(["OSError", "UnicodeDecodeError", "ExceptionGroup", "x"]) | ITEM,
        "args": st.lists(ITEM, max_size=5) | ITEM,
        "name": ITEM,
        "text": ITEM,
    },
)
USING = """
def check(candidate):
    given = [1, {2}, {"a": [b"x"]}, (3,)]
    value = candidate(given, key=bytearray(b"y"))
    for use in (repr, hash, len, sorted, str, bool, next, dict, lambda v: v == v):
        try:
            use(value), use(given)
        except Exception:
            pass
    assert False
"""


@pytest.mark.costly
@settings(max_examples=60)
@given(ANSWER)
def test_no_forged_answer_is_a_pass_or_a_failure_of_the_sandbox(best, answer):
    result, _ = best(FORGED.format(reply=f"json.loads({json.dumps(answer)!r})"), test=USING)
    assert result.verdict.outcome in ("fail", "error"), result


def test_of_what_a_program_says_so_much_is_kept():
    """Of its output 64 KiB, of an exception 60 characters of its name and 500 of its text."""
    said = "print('x' * 70_000, flush=True)\n"
    error = f"{said}class {'E' * 61}(Exception): pass\nraise {'E' * 61}('y' * 501)\n"
    leaves = f"{said}raise SystemExit('y' * 501)\n"
    name, head = f"exception {'E' * 60}", "def solve(n):\n"
    with Sandbox(workers=1) as sandbox:
        for code, reason in (
            (error, f"{name} (loading)"),
            (head + indent(error, "    "), f"{name} (call 1)"),
            (head + indent(leaves, "    "), "early exit"),
        ):
            result, usage = sandbox.judge_program(code, **TERMS)
            assert (result.verdict.reason, usage.detail) == (reason, "y" * 500)
            assert (usage.output, usage.written) == ("x" * 65_536, 70_001)


ASKED_FOR = """
def solve(n):
    for i in range(10 ** 6):
        print(end=".")
        yield i
"""


@pytest.mark.parametrize(
    ("taken", "made"), [(1, 1), (15, 15), (16, 17), (1000, 1044), (20_000, 20_678)]
)
def test_an_iterator_is_asked_ahead_for_a_part_of_what_was_taken(best, taken, made):
    body = f"x = candidate(0)\n    for _ in range({taken}): next(x)"
    assert best(ASKED_FOR, test=_test(body))[1].written == made


def _catching(error):
    return f"try:\n        candidate(1)\n    except {error}:\n        pass"


EVERY = "assert all(map(lambda c: candidate(c) == c, [1, 2]))"


@pytest.mark.parametrize(
    ("program", "body", "outcome"),
    [
        ("raise ValueError('no')", _catching("ValueError as e").replace("pass", "assert e.args"),
         "pass"),
        ("raise ValueError('no')", _catching("Exception"), "pass"),
        ("raise ValueError('no')", _catching("KeyError"), "error"),
        # What breaks off has lost, whatever the tests catch.
        *((body, _catching("BaseException"), "error")
          for body in ("import os; os._exit(0)", "raise SystemExit", "raise KeyboardInterrupt")),
        # What ends a loop elsewhere ends none of the tests.
        *((f"raise {name}", EVERY, "error")
          for name in ("StopIteration", "StopAsyncIteration", "GeneratorExit")),
    ],
)  # fmt: skip
def test_the_tests_may_expect_an_exception_and_no_other_end(best, program, body, outcome):
    result, _ = best(f"def solve(n):\n    {program}\n", test=_test(body))
    assert result.verdict.outcome == outcome


def test_a_prompt_that_ends_after_its_signature_is_completed(best):
    result, _ = best(
        "def solve(n):\n    return helper(n)\n",
        prompt="def helper(n):\n    return n\n\ndef solve(n):\n",
        test=_test("assert candidate(2) == helper(2)"),
    )
    assert result.verdict.outcome == "pass"


def test_the_prompts_own_stub_is_no_answer(best):
    result, _ = best("x = 1\n")
    assert result.verdict.reason == "missing function"


def test_what_a_program_used_and_wrote_is_told_beside_the_verdict(best):
    result, usage = best('def solve(n):\n    print("é", n)\n    raise ValueError("why")\n')
    assert result.verdict.reason == "exception ValueError (call 1)"
    assert (usage.calls, usage.output, usage.written, usage.detail) == (1, "é 3\n", 5, "why")
    assert 0 < usage.cpu < 0.3
    assert usage.memory > 1 << 20


@pytest.mark.slow
def test_the_tests_may_take_longer_than_a_program():
    limits = Limits(cpu=0.2, tests_cpu=4)
    busy = _test("import time\n    while time.process_time() < 3.5: pass\n    assert candidate(1)")
    with Sandbox(limits=limits, workers=1) as sandbox:
        result, _ = sandbox.judge_program(
            "def solve(n):\n    return n\n", prompt="", entry_point="solve", test=busy
        )
    assert result.verdict.outcome == "pass"


NAMES = """
import sys

def solve(n):
    return [name for name in vars(sys.modules["solution"]) if not name.startswith("__")]
"""


def test_nothing_is_left_of_what_a_process_runs_before_a_program(best):
    body = "import sys; assert candidate(1) == ['math', 'times', 'sys', 'solve']"
    left = "assert {*vars(sys.modules['tests'])} >= {'times', 'solve'}"
    none = "assert 'same' not in vars(sys.modules['tests'])"
    result, _ = best(NAMES, test=_test(f"{body}; {left}; {none}"))
    assert result.verdict.reason == "all tests passed"


@pytest.mark.parametrize(
    ("module", "run", "small", "first", "needs"),
    [
        (worker, worker.run_worker, "_run_a_small_program", "write_frame", {"same", "item_of"}),
        (judge, judge.run_judge, "_run_a_small_test", "read_frame", {"check", "feed"}),
    ],
)
def test_a_process_waits_with_its_lock_and_memory(monkeypatch, module, run, small, first, needs):
    done: list[str] = []

    limits = {"cpu": 1.0, "tests_cpu": 1.0}
    jail = SimpleNamespace(limits=limits, lock=lambda *, cpu: done.append("lock"))

    class Waits(Exception):
        pass

    def wait(*_):
        done.append("wait")
        raise Waits

    own = getattr(module, small)
    called = set()
    monkeypatch.setattr(module, small, lambda: done.append("run") or own())
    monkeypatch.setattr(module, first, wait)
    monkeypatch.setattr("sys.setrecursionlimit", lambda _: None)
    sys.setprofile(lambda frame, event, _: called.add(frame.f_code.co_name))
    with pytest.raises(Waits):
        run(jail)
    sys.setprofile(None)
    assert done == ["lock", "run", "wait"]
    assert called >= {"compile_head", "frame_bytes", "item", "decode"} | needs
