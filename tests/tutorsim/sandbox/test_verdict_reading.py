"""From ends to verdicts, also from ends that no program here can bring about."""

import pytest

from tutorsim.sandbox import Limits
from tutorsim.sandbox.sandbox import read_aftermath
from tutorsim.sandbox.zygote_process import Aftermath, Broken

MIB = 1 << 20
FOUND = {"found": {"code": "x", "reason": ""}}
ENDS = {"killed": "", "worker": 0, "judge": 3, "cpu": 0.1, "wall": 0.1, "rss": 40 * MIB,
        "judge_rss": 40 * MIB}  # fmt: skip


def _verdict(frames=(), **ends):
    aftermath = Aftermath(frames=[FOUND, *frames], ends={**ENDS, **ends})
    result, _ = read_aftermath(
        aftermath, limits=Limits(), baseline=30 * MIB, unsafe=False, may_kill_itself=False
    )
    return result.verdict.outcome, result.verdict.reason


GONE = {"verdict": {"outcome": "gone", "reason": "", "detail": ""}}


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ({"worker": -9, "rss": 300 * MIB}, ("error", "memory limit")),
        ({"worker": -9, "rss": 300 * MIB, "cpu": 3.0}, ("timeout", "cpu limit")),
        ({"judge": -9, "judge_rss": 300 * MIB}, ("error", "memory limit in the tests")),
        ({"judge": -9, "judge_rss": 300 * MIB, "killed": "tests"},
         ("timeout", "cpu limit in the tests")),
        ({"worker": -9, "killed": "wall"}, ("timeout", "wall limit")),
        ({"worker": -11}, ("error", "killed by SIGSEGV")),
        ({"worker": 0}, ("error", "early exit")),
    ],
)  # fmt: skip
def test_the_end_of_a_program_tells_its_verdict(ends, expected):
    assert _verdict((GONE,), **ends) == expected


@pytest.mark.parametrize(
    "ends", [{"worker": -9}, {"judge": -9}, {"judge": -11}, {"judge": 1}, {"killed": "owner"}]
)
def test_what_no_program_did_is_no_verdict(ends):
    with pytest.raises(Broken):
        _verdict((), **ends)


@pytest.mark.parametrize("word", ["infra_error", "passed", "", None])
def test_no_other_word_of_the_judge_is_an_outcome(word):
    said = {"verdict": {"outcome": word, "reason": "x", "detail": ""}}
    assert _verdict((said,)) == ("error", "early exit")
