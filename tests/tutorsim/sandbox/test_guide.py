"""The page of the guide says what the code does."""

import re
from pathlib import Path

import pytest

from tutorsim.sandbox import LAYERS, LEVELS, Limits
from tutorsim.sandbox.inner.both_sides import CODE_CAP, FRAME_CAP
from tutorsim.sandbox.inner.extract import FENCE_CAP
from tutorsim.sandbox.inner.plain_values import DEPTH_CAP, EAGER_CAP
from tutorsim.sandbox.inner.preload import MODULES

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
