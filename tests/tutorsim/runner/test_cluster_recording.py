"""Episodes spread over two workers give the bytes of a direct recording, within one budget."""

import signal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")
pytestmark = pytest.mark.loopback

ENGINE = ("--engine", "dask://local?workers=2")
FAILING = "sciq.ice.help_avoidant.simple/1/critique/motivation/1"


def folders(tmp_path: Path, name: str = "one") -> tuple[Path, Path]:
    return tmp_path / name / "cassettes", tmp_path / name / "log"


@pytest.mark.costly
def test_two_workers_give_the_bytes_of_one_process_and_share_its_calls_in_flight(
    endpoint: Any,
    write_grid: Any,
    recorded_once: Any,
    record: Any,
    files: Any,
    tmp_path: Path,
) -> None:
    endpoint.delay = 0.01
    said = record(write_grid(), *ENGINE, "--max-connections", 3)
    assert said.code == 0, said.err
    assert files(*folders(tmp_path)) == files(recorded_once.cassettes, recorded_once.log)
    assert set(endpoint.counts().values()) == {1}
    assert endpoint.most_open <= 3


@pytest.mark.slow
def test_workers_judge_programs_once_and_alike(
    endpoint: Any, write_grid: Any, record: Any, files: Any, tmp_path: Path
) -> None:
    study = write_grid(benchmarks={"humaneval": {"limit": 2}}, repeats=2)
    assert record(study, name="direct").code == 0
    said = record(study, *ENGINE, name="spread")
    assert said.code == 0, said.err
    assert files(*folders(tmp_path, "spread")) == files(*folders(tmp_path, "direct"))


@pytest.mark.slow
def test_the_cap_is_never_passed_by_the_workers_together_and_a_higher_one_goes_on(
    endpoint: Any,
    write_grid: Any,
    recorded_once: Any,
    record: Any,
    files: Any,
    tmp_path: Path,
) -> None:
    study = write_grid()
    prices = ("--prices", study.with_name("prices.toml"))
    each = (100 * 1.0 + 20 * 10.0) / 1e6
    sent: list[int] = []
    for cap in (0.02, 0.024):
        said = record(study, *ENGINE, *prices, "--max-usd", cap)
        assert said.code == 5
        assert "could pass the cap" in said.err
        sent.append(len(endpoint.sent))
        assert cap - 0.019 < len(endpoint.sent) * each <= cap
    assert 0 < sent[0] < sent[1] < recorded_once.calls
    assert record(study, *ENGINE, *prices, "--max-usd", 10).code == 0
    assert set(endpoint.counts().values()) == {1}
    assert files(*folders(tmp_path)) == files(recorded_once.cassettes, recorded_once.log)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_replies_under_way_on_the_workers(
    number: int,
    endpoint: Any,
    write_grid: Any,
    launch: Any,
    record: Any,
    on_disk: Any,
    files: Any,
    recorded_once: Any,
    tmp_path: Path,
) -> None:
    endpoint.delay = 0.2
    cassettes, log = folders(tmp_path)
    study = write_grid()
    command = ("--cassette-dir", cassettes, "--log-dir", log, *ENGINE)
    child = launch("run", study, *command)
    endpoint.wait_for(6)
    child.send_signal(number)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert b"Interrupted." in err
    assert on_disk(cassettes) == set(endpoint.sent)
    before = set(endpoint.sent)
    endpoint.delay = 0
    assert record(study, *ENGINE).code == 0
    assert before.isdisjoint(endpoint.sent[len(before) :])
    assert files(cassettes, log) == files(recorded_once.cassettes, recorded_once.log)


@pytest.mark.slow
def test_an_episode_that_fails_on_a_worker_is_left_failed_as_in_one_process(
    endpoint: Any, write_grid: Any, record: Any, files: Any, tmp_path: Path
) -> None:
    study = write_grid()
    endpoint.fault = lambda call, attempt: "400" if call == FAILING else None
    assert record(study, "--max-retries", 0, name="direct").code == 1
    assert record(study, "--max-retries", 0, *ENGINE, name="spread").code == 1
    assert files(*folders(tmp_path, "spread")) == files(*folders(tmp_path, "direct"))
    endpoint.fault = lambda call, attempt: None
    before = len(endpoint.sent)
    assert record(study, "--retry-errors", *ENGINE, name="spread").code == 0
    assert endpoint.sent[before] == FAILING
    assert record(study, "--retry-errors", name="direct").code == 0
    assert files(*folders(tmp_path, "spread")) == files(*folders(tmp_path, "direct"))


def test_waves_and_a_cluster_exclude_each_other(
    endpoint: Any, write_grid: Any, record: Any, tmp_path: Path
) -> None:
    said = record(write_grid(), *ENGINE, "--batch")
    assert said.code == 2
    assert "--batch and --engine cannot go together." in said.err
    assert not (tmp_path / "one").exists()
