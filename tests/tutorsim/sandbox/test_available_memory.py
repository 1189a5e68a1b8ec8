"""How much memory there is, as the kernel tells it."""

from pathlib import Path

import pytest

from tutorsim.sandbox.sandbox import memory_ceiling

MIB = 1 << 20
MACHINE = memory_ceiling(Path("/nowhere"))


def _root(folder, groups, limits):
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/cgroup").write_text(groups, encoding="utf-8")
    for place, limit in limits.items():
        path = folder / "sys/fs/cgroup" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{limit}\n", encoding="ascii")
    return folder


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        ("0::/a/b\n", {"a/b/memory.max": str(64 * MIB)}, 64),
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": str(48 * MIB + 5)}, 48),
        ("0::/a/b\n", {"memory.max": str(32 * MIB), "a/memory.max": str(48 * MIB)}, 32),
        ("0::/\n", {"memory.max": str(96 * MIB)}, 96),
        ("4:memory:/x\n1:cpu:/x\n", {"memory/x/memory.limit_in_bytes": str(20 * MIB)}, 20),
        ("4:cpu,memory:/of/the/host\n", {"memory/memory.limit_in_bytes": str(20 * MIB)}, 20),
    ],
    ids=["group", "above", "the least", "container", "first version", "container, first version"],
)
def test_the_limit_of_a_control_group_is_found(groups, limits, expected, tmp_path):
    assert memory_ceiling(_root(tmp_path, groups, limits)) == expected * MIB


@pytest.mark.parametrize(
    ("groups", "limits"),
    [
        ("0::/a\n", {"a/memory.max": "max"}),
        ("0::/a\n", {}),
        ("4:memory:/x\n", {"memory/x/memory.limit_in_bytes": str(2**63 - 4096)}),
    ],
    ids=["no limit", "nothing in sight", "no limit, first version"],
)
def test_without_a_limit_the_machine_is_what_there_is(groups, limits, tmp_path):
    assert memory_ceiling(_root(tmp_path, groups, limits)) == MACHINE
