"""Each layer is seen to hold by itself; one that was made to do nothing is named."""

import pytest

from tutorsim.errors import SandboxUnavailable
from tutorsim.sandbox import LAYERS, LEVELS, Sandbox
from tutorsim.sandbox.inner.probes import PROBES

GUTTED = {
    "seccomp": "from inner.syscalls import Filter; Filter.install = lambda self: None",
    "namespaces": "import inner.jail; inner.jail._leave_namespaces = lambda: None",
    "landlock": "import inner.jail; inner.jail._restrict_files = lambda: None",
    "rlimits": "import inner.jail; inner.jail._set_limit = lambda *limit: None",
    "uid": "import inner.jail; inner.jail._become = lambda uid: None",
}
"""Layer → what makes it do nothing, without an error."""
PARTLY = {
    "namespaces": "import inner.jail; inner.jail._EVERYTHING &= ~0x40000000",
    "landlock": "import inner.jail; inner.jail._empty_root = inner.jail._restrict_files = "
    "lambda: inner.linux.prctl(38, 1)",
    "rlimits": "import inner.jail; inner.jail._limit = lambda space: None",
    "seccomp": "import inner.syscalls as s; s._X86_64['socket'] = 41; s._AARCH64['socket'] = 198; "
    "s._X86_64['connect'] = 42; s._AARCH64['connect'] = 203",
}
"""Layer → what takes a part of it away."""


def _with(monkeypatch, change, **terms):
    from tutorsim.sandbox import zygote_process

    boot = zygote_process._BOOT.replace("main()", f"{change}; main()")
    monkeypatch.setattr(zygote_process, "_BOOT", boot)
    return Sandbox(workers=1, **terms)


@pytest.fixture(scope="module")
def report():
    with Sandbox(workers=1) as sandbox:
        return sandbox.report()


def _skip_unless_on(report, layer):
    if report["layers"][layer] != "ok":
        pytest.skip(f"{layer} is not on here: {report['layers'][layer]}")


def test_every_layer_that_is_on_stopped_something_alone(report):
    for layer, status in report["layers"].items():
        assert (status == "ok") == bool(report["proven"].get(layer))
        assert set(report["proven"].get(layer, ())) <= set(PROBES)


def test_what_each_layer_is_there_for_is_what_it_stops(report):
    expected = {
        "seccomp": {"read a file", "connect over TCP", "fork", "start a thread"},
        "namespaces": {"read a file", "connect over TCP", "send over UDP", "signal a parent"},
        "landlock": {"read a file", "list a folder", "write a file"},
        "rlimits": {"take more memory than allowed", "read a file"},
        "uid": {"signal a parent", "read a parent's environment"},
    }
    for layer, stopped in report["proven"].items():
        assert expected[layer] <= set(stopped), layer


@pytest.mark.costly
@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_that_does_nothing_is_named(layer, report, monkeypatch):
    _skip_unless_on(report, layer)
    with _with(monkeypatch, GUTTED[layer], level="unsafe") as sandbox:
        found = sandbox.report()
    assert found["layers"][layer].startswith("does not hold: ")
    others = {name: status for name, status in found["layers"].items() if name != layer}
    assert others == {n: s for n, s in report["layers"].items() if n != layer}


@pytest.mark.costly
@pytest.mark.parametrize("layer", PARTLY)
def test_a_layer_that_does_less_than_it_should_is_named(layer, report, monkeypatch):
    _skip_unless_on(report, layer)
    with _with(monkeypatch, PARTLY[layer], level="unsafe") as sandbox:
        assert sandbox.report()["layers"][layer].startswith("does not hold: ")


@pytest.mark.costly
@pytest.mark.parametrize("layer", ["namespaces", "landlock"])
def test_the_level_drops_with_a_layer_that_does_nothing(layer, report, monkeypatch):
    _skip_unless_on(report, layer)
    with _with(monkeypatch, GUTTED[layer]) as sandbox:
        assert layer not in LEVELS[sandbox.level]
        assert sandbox.level != "unsafe"


@pytest.mark.parametrize("layer", ["seccomp", "rlimits"])
def test_without_a_layer_that_every_level_needs_programs_are_refused(layer, report, monkeypatch):
    _skip_unless_on(report, layer)
    with (
        _with(monkeypatch, GUTTED[layer]) as sandbox,
        pytest.raises(SandboxUnavailable, match=f"{layer}: does not hold: "),
    ):
        assert sandbox.level


def test_a_processor_without_a_filter_table_is_refused(monkeypatch):
    change = "import inner.jail; inner.jail.machine = lambda: None"
    with (
        _with(monkeypatch, change) as sandbox,
        pytest.raises(
            SandboxUnavailable, match="seccomp: unavailable: no table for this processor"
        ),
    ):
        assert sandbox.level
