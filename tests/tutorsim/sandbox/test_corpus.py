"""Programs with a known verdict, on every level that the machine offers.

None of them may leave a trace: each runs against targets that are watched, and after those that
try to disturb what comes next an honest program is judged.
"""

import os
import socket
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.tutorsim.sandbox.conftest import corpus

KEY = "sk-watched-key-0123456789"


class Targets:
    """A file, listeners and a key that no program may reach."""

    def __init__(self, folder):
        self.folder = folder
        self.file = folder / "watched"
        self.file.write_text("watched", encoding="utf-8")
        # Anybody might read and write them, were it not for the sandbox.
        folder.chmod(0o777)
        self.file.chmod(0o666)
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.name = f"tutorsim-watched-{os.getpid()}"
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind(f"\0{self.name}")
        self.abstract.listen()
        for listener in (self.tcp, self.udp, self.abstract):
            listener.setblocking(False)

    def aimed(self, program):
        """The program with these targets in the place of their names."""
        places = {
            "@FILE@": str(self.file), "@FOLDER@": str(self.folder),
            "@TCP@": str(self.tcp.getsockname()[1]), "@UDP@": str(self.udp.getsockname()[1]),
            "@ABSTRACT@": self.name, "@PID@": str(os.getpid()), "@KEY@": KEY,
        }  # fmt: skip
        for place, target in places.items():
            program = program.replace(place, target)
        return program

    def traces(self):
        """What was done to them."""
        found = []
        if [path.name for path in self.folder.iterdir()] != ["watched"]:
            found.append("the folder's entries changed")
        elif self.file.read_text(encoding="utf-8") != "watched":
            found.append("the file's content changed")
        elif stat.S_IMODE(self.file.stat().st_mode) != 0o666 or self.file.stat().st_mtime == 0:
            found.append("the file's state changed")
        for name, ask in (
            ("TCP", self.tcp.accept),
            ("abstract", self.abstract.accept),
            ("UDP", lambda: self.udp.recv(64)),
        ):
            try:
                ask()
                found.append(f"somebody came by {name}")
            except BlockingIOError:
                pass
        return found


@pytest.fixture(scope="session")
def targets(tmp_path_factory):
    made = Targets(tmp_path_factory.mktemp("targets"))
    # Set before the zygotes start: a key that they inherited would be found.
    os.environ["TUTORSIM_TEST_KEY"] = KEY
    yield made
    del os.environ["TUTORSIM_TEST_KEY"]
    for listener in (made.tcp, made.udp, made.abstract):
        listener.close()


def _agree(bench, targets, name, case):
    result, usage = bench(targets.aimed(case["program"]))
    verdict = result.verdict
    assert verdict.outcome in case["may"], (name, verdict, usage)
    assert verdict.reason == case.get("reason", verdict.reason), (name, usage)
    assert verdict.near_limit >= case.get("near_limit", False), name
    assert not verdict.unsafe
    if case.get("disturbs"):
        assert bench(bench.right)[0].verdict.outcome == "pass", name


def _cases(*, slow):
    every = {**corpus("honest"), **corpus("hostile")}
    return {name: case for name, case in every.items() if case.get("slow", False) is slow}


@pytest.mark.costly
def test_every_quick_program_gets_its_verdict_and_leaves_no_trace(targets, bench):
    for name, case in _cases(slow=False).items():
        _agree(bench, targets, name, case)
        assert targets.traces() == [], name


def _use_up_limits(bench, targets):
    cases = _cases(slow=True)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: _agree(bench, targets, name, cases[name]), cases))
    assert targets.traces() == []


@pytest.mark.costly
def test_programs_that_use_up_a_limit_get_the_same_verdict_at_the_best_level(targets, best):
    _use_up_limits(best, targets)


@pytest.mark.slow
def test_programs_that_use_up_a_limit_get_the_same_verdict_on_every_level(targets, bench):
    _use_up_limits(bench, targets)


@pytest.mark.slow
def test_twenty_runs_give_one_verdict(targets, bench):
    for slow in (False, True):
        for name, case in _cases(slow=slow).items():
            program = targets.aimed(case["program"])
            with ThreadPoolExecutor(2) as pool:
                results = pool.map(lambda _, program=program: bench(program)[0], range(20))
            assert len({(r.verdict.outcome, r.verdict.reason) for r in results}) == 1, name
