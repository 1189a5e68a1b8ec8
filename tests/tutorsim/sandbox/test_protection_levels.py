"""Limits are checked, and follow the machine."""

import pytest

from tutorsim.errors import UsageError
from tutorsim.sandbox import LEVELS, SETTINGS, Limits
from tutorsim.sandbox.protection_levels import level_of, wanted_layers

MIB = 1 << 20


@pytest.mark.parametrize("name", Limits().as_dict())
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_limit_that_leaves_nothing_is_refused(name, value):
    with pytest.raises(UsageError, match=f"limit {name} is") as error:
        Limits(**{name: value})  # type: ignore[arg-type]
    assert error.value.why
    assert error.value.hint


def test_messages_too_long_to_be_sent_cannot_be_allowed():
    with pytest.raises(UsageError, match="limit message"):
        Limits(message=1 << 30)


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
