"""Books that processes share: one cap, one verdict on a program, one end."""

import threading
from pathlib import Path
from typing import Any

import pytest

from tutorsim.cost_plan import Price, PriceTable
from tutorsim.errors import BudgetReached, FolderError, Interrupted
from tutorsim.mechanisms.flow import CodeResult, CodeRun
from tutorsim.model import Call, CallKey, Reply, Request
from tutorsim.records import VerdictRecord
from tutorsim.replay import VerdictStore
from tutorsim.runner.shared_ledger import (
    Ledger,
    SharedBudget,
    SharedVerdicts,
    at_work,
    check_nobody_at_work,
)

PRICES = PriceTable(as_of="2026-01-01", models={"m": Price(input=0.0, output=1.0)})
CALL = Call(CallKey(1, "propose", "tutor", 1), Request("m", "s", "u", max_tokens=1_000_000))
"""Costs one dollar at most."""


def reply(dollars: float) -> Reply:
    return Reply("t", "m", "end_turn", 5, int(dollars * 1_000_000))


@pytest.fixture
def budgets(tmp_path: Path) -> Any:
    """Budgets of two processes, with a cap of two dollars and a half."""
    ledger = Ledger(tmp_path)
    ledger.begin(committed=0.25)
    return [SharedBudget(PRICES, 2.5, ledger) for _ in range(2)]


def test_what_one_process_sets_aside_counts_for_the_other(budgets: Any) -> None:
    one, other = budgets
    assert one.reserve(CALL) == 1.0
    assert other.reserve(CALL) == 1.0
    for budget in budgets:
        with pytest.raises(BudgetReached, match=r"cap of 2\.50"):
            budget.reserve(CALL)


def test_a_reply_takes_the_place_of_what_was_set_aside_in_one_entry(budgets: Any) -> None:
    one, other = budgets
    one.release(one.reserve(CALL))
    assert other.reserve(CALL) == 1.0
    with pytest.raises(BudgetReached):
        other.reserve(CALL)  # the reply of the first may cost all of its dollar
    one.count("m", reply(0.1), new=True)
    assert other.reserve(CALL) == 1.0
    assert (one.calls, one.spent) == (1, pytest.approx(0.1))


def test_a_call_that_failed_gives_its_dollar_back(budgets: Any) -> None:
    one, other = budgets
    one.release(one.reserve(CALL))
    one.close()
    assert [other.reserve(CALL) for _ in range(2)] == [1.0, 1.0]


def test_a_process_with_nothing_under_way_waits_for_the_others(budgets: Any) -> None:
    one, other = budgets
    held = [one.reserve(CALL) for _ in range(2)]

    def settle() -> None:
        for reservation in held:
            one.release(reservation)
            one.count("m", reply(0.1), new=True)

    timer = threading.Timer(0.2, settle)
    timer.start()
    assert other.reserve(CALL) == 1.0
    timer.join()


def test_it_does_not_wait_for_ever_for_a_process_that_died(
    budgets: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tutorsim.runner.shared_ledger.PATIENCE", 0.1)
    one, other = budgets
    for _ in range(2):
        one.reserve(CALL)
    with pytest.raises(BudgetReached):
        other.reserve(CALL)


def test_the_end_is_for_all_with_and_without_a_cap(tmp_path: Path, budgets: Any) -> None:
    ledger = Ledger(tmp_path)
    ledger.stop()
    for budget in (*budgets, SharedBudget(PRICES, None, ledger)):
        with pytest.raises(Interrupted):
            budget.reserve(CALL)
    ledger.begin(0.0)
    assert budgets[0].reserve(CALL) == 1.0


def test_without_books_nothing_is_sent(tmp_path: Path, budgets: Any) -> None:
    Ledger(tmp_path).end()
    with pytest.raises(FolderError):
        budgets[0].reserve(CALL)


RUN = CodeRun(turn=0, message="code", prompt="p", entry_point="f", test="t")


def verdict(outcome: str) -> CodeResult:
    return CodeResult(None, VerdictRecord(outcome=outcome, reason="judged"))


def test_the_first_verdict_on_a_program_counts_for_all(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.begin(0.0)
    one, other = (SharedVerdicts(tmp_path, fingerprint="f", ledger=ledger) for _ in range(2))
    one.add(RUN, verdict("pass"), fingerprint="f")
    other.add(RUN, verdict("timeout"), fingerprint="f")
    for store in (one, other, VerdictStore(tmp_path)):
        found = store.find(RUN)
        assert found is not None
        assert found.verdict.outcome == "pass"
    assert len((tmp_path / "verdicts.jsonl").read_bytes().splitlines()) == 1


def test_a_folder_where_workers_are_at_work_is_refused(tmp_path: Path) -> None:
    check_nobody_at_work(tmp_path)
    with at_work(tmp_path), at_work(tmp_path), pytest.raises(FolderError, match="still at work"):
        check_nobody_at_work(tmp_path)
    check_nobody_at_work(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_books_that_a_killed_command_left_go_when_nobody_is_at_work(tmp_path):
    Ledger(tmp_path).begin(1.0)
    assert [path.name for path in tmp_path.iterdir()] == [".ledger.json"]
    check_nobody_at_work(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_s_under_the_name_of_the_books_stays(tmp_path):
    (tmp_path / ".ledger.json").write_text("mine")
    check_nobody_at_work(tmp_path)
    assert (tmp_path / ".ledger.json").read_text() == "mine"
