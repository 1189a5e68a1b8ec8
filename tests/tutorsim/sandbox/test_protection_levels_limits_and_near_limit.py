"""Limits are checked, and follow the machine."""

import re
from pathlib import Path

import pytest

from tutorsim.errors import UsageError
from tutorsim.sandbox import LAYERS, LEVELS, SETTINGS, Limits
from tutorsim.sandbox.inner.encode_and_decode_plain_values import DEPTH_CAP, EAGER_CAP
from tutorsim.sandbox.inner.extract import FENCE_CAP
from tutorsim.sandbox.inner.frames_layers_and_longest_program import CODE_CAP, FRAME_CAP, TASK_CAP
from tutorsim.sandbox.inner.preload_standard_library import MODULES
from tutorsim.sandbox.protection_levels_limits_and_near_limit import level_of, wanted_layers

MIB = 1 << 20


@pytest.mark.parametrize("name", Limits().as_dict())
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_limit_that_leaves_nothing_is_refused(name, value):
    with pytest.raises(UsageError, match=f"limit {name} is") as error:
        Limits(**{name: value})  # type: ignore[arg-type]
    assert error.value.why
    assert error.value.hint


def test_messages_too_long_to_be_sent_cannot_be_allowed():
    assert Limits(message=16 << 20)
    with pytest.raises(UsageError, match="limit message"):
        Limits(message=(16 << 20) + 1)


@pytest.mark.parametrize(
    ("ceiling", "memory"), [(None, 512), (4096, 512), (1024, 512), (512, 256), (200, 100)]
)
def test_a_program_may_take_half_of_a_small_container(ceiling, memory):
    bytes_there = None if ceiling is None else ceiling * MIB
    assert Limits().within(bytes_there) == Limits(memory=memory * MIB)


def test_a_level_is_the_strongest_whose_layers_are_on():
    for level, layers in LEVELS.items():
        assert level_of(layers) == level
    assert level_of(frozenset({"namespaces", "rlimits"})) == "unsafe"
    assert set(LEVELS) == set(SETTINGS) - {"auto"}


def test_a_level_tries_its_layers_and_a_user_of_its_own():
    assert wanted_layers("filter-only") == {"seccomp", "rlimits", "uid"}
    assert wanted_layers("auto") == wanted_layers("unsafe") >= LEVELS["strong"]


# --- The page of the guide says what the code does ------------------------------------------------

GUIDE = Path(__file__).parents[3] / "tutorsim" / "guide" / "sandbox.md"
TEXT = GUIDE.read_text(encoding="utf-8")
LIMITS = Limits()


@pytest.mark.parametrize(
    "said",
    [
        f"processor time of the program | {LIMITS.cpu:g} s",
        f"processor time of the tests | {LIMITS.tests_cpu:g} s",
        f"| {LIMITS.wall:g} s, on a busy machine too",
        f"| {LIMITS.memory >> 20} MiB beyond the interpreter's own",
        f"standard output and error | {LIMITS.output >> 20} MiB",
        f"arguments | {FRAME_CAP >> 20} MiB",
        f"a task, a call's arguments | {TASK_CAP >> 20} MiB",
        f"at most {CODE_CAP:,} characters, a message at most {LIMITS.message >> 20} MiB",
        f"{FENCE_CAP} fence lines",
        f"deques may be nested {DEPTH_CAP:,} deep",
        f"at most {EAGER_CAP:,} items",
    ],
)
def test_limits_are_those_of_the_code(said):
    assert said in TEXT


def test_every_layer_and_level_is_described_with_what_it_needs():
    rows = {row[0]: row[1] for row in re.findall(r"^\| `([\w-]+)` \| (.+) \|$", TEXT, re.MULTILINE)}
    assert set(LAYERS) <= set(rows)
    for level, layers in LEVELS.items():
        if layers:
            assert set(rows[level].split(", ")) == layers


def test_what_may_be_imported_is_loaded():
    listed = TEXT[TEXT.index("among it") : TEXT.index("Nothing else can be imported")]
    loaded = {module.partition(".")[0] for module in MODULES} | set(MODULES)
    assert set(re.findall(r"`([\w.]+)`", listed)) <= loaded
