"""The layers that keep a student's program in: what the zygote puts on, and what its children do.

Each layer is tried in a forked child first, because a half-made change of namespaces cannot be
undone, and there it has to stop by itself what it is there for: no other layer is on that could
answer in its place. A layer is `ok`, `off` (switched off by the level or by the caller),
`unavailable: REASON`, or `does not hold: ATTEMPT, …`.

The system calls that a student's program may make are an allow-list, as a classic BPF program for
seccomp: what is not named is refused with EPERM. There is no way on it to open, create or look up a
file, to make a socket, a process or a thread, to signal anybody, or to map memory that can be
executed.
"""

import ctypes
import math
import os
import platform
import resource
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from . import make_system_calls as system_calls
from .frames_layers_and_longest_program import LAYERS, Layer
from .probes import PROBES, Targets, Trial, tried

# --- Filter of system calls ----------------------------------------------------------------------

_X86_64: dict[str, int] = {
    "read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "munmap": 11, "brk": 12,
    "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "readv": 19, "writev": 20,
    "select": 23, "sched_yield": 24, "mremap": 25, "madvise": 28, "dup": 32, "dup2": 33,
    "pause": 34, "nanosleep": 35, "getitimer": 36, "alarm": 37, "setitimer": 38, "getpid": 39,
    "exit": 60, "getcwd": 79, "gettimeofday": 96, "getrusage": 98, "times": 100, "getuid": 102,
    "getgid": 104, "geteuid": 107, "getegid": 108, "getppid": 110, "getpgrp": 111,
    "getgroups": 115, "getresuid": 118, "getresgid": 120, "getpgid": 121, "getsid": 124,
    "sigaltstack": 131, "gettid": 186, "time": 201, "futex": 202, "sched_getaffinity": 204,
    "restart_syscall": 219, "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230,
    "exit_group": 231, "pselect6": 270, "ppoll": 271, "set_robust_list": 273, "dup3": 292,
    "getrandom": 318, "rseq": 334,
}  # fmt: skip
_AARCH64: dict[str, int] = {
    "getcwd": 17, "dup": 23, "dup3": 24, "close": 57, "lseek": 62, "read": 63, "write": 64,
    "readv": 65, "writev": 66, "pselect6": 72, "ppoll": 73, "fstat": 80, "exit": 93,
    "exit_group": 94, "futex": 98, "set_robust_list": 99, "nanosleep": 101, "getitimer": 102,
    "setitimer": 103, "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115,
    "sched_getaffinity": 123, "sched_yield": 124, "restart_syscall": 128, "sigaltstack": 132,
    "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "getresuid": 148,
    "getresgid": 150, "times": 153, "getpgid": 155, "getsid": 156, "getgroups": 158,
    "getrusage": 165, "gettimeofday": 169, "getpid": 172, "getppid": 173, "getuid": 174,
    "geteuid": 175, "getgid": 176, "getegid": 177, "gettid": 178, "brk": 214, "munmap": 215,
    "mremap": 216, "madvise": 233, "getrandom": 278, "rseq": 293,
}  # fmt: skip

# (audit architecture, plain calls, fcntl, mmap, mprotect)
_MACHINES: dict[str, tuple[int, dict[str, int], int, int, int]] = {
    "x86_64": (0xC000003E, _X86_64, 72, 9, 10),
    "aarch64": (0xC00000B7, _AARCH64, 25, 222, 226),
}
_CLONE3 = 435
_X32_BIT = 0x40000000

# F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC. F_SETOWN with F_SETSIG could kill others.
_FCNTL_COMMANDS = (0, 1, 2, 3, 1030)
_PROT_EXEC = 4

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOSYS = 0x00050000 | 1, 0x00050000 | 38
_AT_NUMBER, _AT_ARCH, _AT_ARGUMENTS = 0, 4, 16
_MODE_FILTER = 2


def machine() -> str | None:
    """The name of this processor's table, or `None` where there is none."""
    name = platform.machine()
    return name if name in _MACHINES else None


def build_filter(name: str) -> bytes:
    """The filter for one kind of processor, as an array of `struct sock_filter`."""
    arch, plain, fcntl, mmap, mprotect = _MACHINES[name]
    program = [
        _step(_LOAD, _AT_ARCH),
        _step(_EQUAL, arch, 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _AT_NUMBER),
    ]
    if name == "x86_64":
        program += [_step(_AT_LEAST, _X32_BIT, 0, 1), _step(_RETURN, _EPERM)]
    for number in plain.values():
        program += [_step(_EQUAL, number, 0, 1), _step(_RETURN, _ALLOW)]
    program += [_step(_EQUAL, _CLONE3, 0, 1), _step(_RETURN, _ENOSYS)]
    for number in (mmap, mprotect):
        program += _guarded(number, 2, [_step(_ANY_BIT, _PROT_EXEC, 0, 1), _step(_RETURN, _EPERM),
                                        _step(_RETURN, _ALLOW)])  # fmt: skip
    commands = [
        s for c in _FCNTL_COMMANDS for s in (_step(_EQUAL, c, 0, 1), _step(_RETURN, _ALLOW))
    ]
    program += _guarded(fcntl, 1, [*commands, _step(_RETURN, _EPERM)])
    program.append(_step(_RETURN, _EPERM))
    return b"".join(program)


class Filter:
    """A filter in memory, ready to be put on."""

    def __init__(self, program: bytes) -> None:
        self._steps = ctypes.create_string_buffer(program, len(program))
        header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(self._steps))
        self._header = ctypes.create_string_buffer(header, len(header))
        self._address = ctypes.addressof(self._header)

    def install(self) -> None:
        """Put this process under the filter, for good; raises `OSError` if the kernel refuses."""
        system_calls.prctl(system_calls.PR_SET_SECCOMP, _MODE_FILTER, self._address)


def _guarded(number: int, argument: int, body: list[bytes]) -> list[bytes]:
    """Steps that look at the low half of an argument of one call; every path returns."""
    load = _step(_LOAD, _AT_ARGUMENTS + 8 * argument)
    return [_step(_EQUAL, number, 0, len(body) + 1), load, *body]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


# --- Layers --------------------------------------------------------------------------------------

_EVERYTHING = (
    system_calls.CLONE_NEWUSER | system_calls.CLONE_NEWNS | system_calls.CLONE_NEWPID
    | system_calls.CLONE_NEWNET | system_calls.CLONE_NEWIPC | system_calls.CLONE_NEWUTS
)  # fmt: skip
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_REC, _MS_PRIVATE, _MS_BIND = 32, 16384, 1 << 18, 4096
_PLACES_TO_MOUNT = ("/tmp", "/mnt", "/proc", "/dev")
_HIGH_UID, _LOW_UID, _NOBODY = 0x6E000000, 61_184, 65_534
_LOW_UIDS = 4_000
_SIGKILL = 9
_FILES = ("read a file", "list a folder", "write a file", "execute a program",
          "read a parent's environment")  # fmt: skip
_OUTSIDE = (*_FILES, "connect over TCP", "send over UDP", "connect to an abstract socket",
            "signal a parent")  # fmt: skip
_MEMORY = "take more memory than allowed"
_ALL_BUT_MEMORY = tuple(name for name in PROBES if name != _MEMORY)


@dataclass
class Jail:
    """What is on in this zygote. Layers that are not `wanted` stay off; `limits` go by name."""

    wanted: frozenset[str]
    limits: dict[str, float]
    status: dict[Layer, str] = field(default_factory=lambda: dict.fromkeys(LAYERS, "off"))
    proven: dict[Layer, list[str]] = field(default_factory=dict)
    """Layer → what it was seen to stop while no other layer was on."""
    _on: set[Layer] = field(default_factory=set)
    """Layers that could be put on, also where they stop less than they should."""
    _filter: Filter | None = None

    def has(self, layer: Layer) -> bool:
        """Whether the layer is on."""
        return layer in self._on

    def enclose(self, targets: Targets) -> None:
        """Put the zygote's layers on; in namespaces, returns in a forked child, pid 1.

        Only what would keep the zygote from forking is left for its children.
        """
        address_space = _pages_mapped() + int(self.limits["memory"])
        self._drop_uid(targets)
        system_calls.prctl(system_calls.PR_SET_DUMPABLE, 1)
        system_calls.prctl(system_calls.PR_SET_NO_NEW_PRIVS, 1)
        self._try_each(address_space, targets._replace(parent=os.getpid()))
        if self.has("namespaces"):
            _leave_namespaces()
        # Where even this is refused, the filter still keeps them from being used.
        with suppress(OSError):
            system_calls.drop_capabilities()
        if self.has("landlock"):
            _restrict_files()
        if self.has("rlimits"):
            _limit(address_space)
        system_calls.prctl(system_calls.PR_SET_DUMPABLE, 0)

    def lock(self, *, cpu: float, descriptors: bool = False) -> None:
        """Put a child's own layers on; raises `OSError` when one that is `ok` does not go on.

        `cpu` seconds are what the zygote will allow; the kernel's own limit is above. Only the
        probes may open more `descriptors`: what they try has to be stopped by the layer that is
        there for it.
        """
        system_calls.prctl(system_calls.PR_SET_PDEATHSIG, _SIGKILL)
        system_calls.leave_keyring()
        if self.has("rlimits"):
            _limit_program(cpu, descriptors=descriptors)
        if self._filter is not None and self.has("seccomp"):
            self._filter.install()

    def probe(self, targets: Targets) -> dict[str, str]:
        """Every attempt in a child as locked as a worker, and what came of it."""
        trial = tried(lambda: self.lock(cpu=self.limits["cpu"], descriptors=True), targets)
        return trial.results or {"lock a child": f"allowed: {trial.failure}"}

    def _try_each(self, address_space: int, targets: Targets) -> None:
        """Try the layers, each in a child that lacks the others."""
        without = tried(_nothing, targets)
        kind = machine()
        if kind is None and "seccomp" in self.wanted:
            self.status["seccomp"] = "unavailable: no table for this processor"
        elif kind is not None:
            self._filter = Filter(build_filter(kind))
            self._try("seccomp", self._filter.install, _ALL_BUT_MEMORY, without, targets)
        self._try("landlock", _restrict_files, _stopped_by_landlock(), without, targets)
        self._try("namespaces", _leave_namespaces, _OUTSIDE, without, targets)
        limited = partial(self._limited, address_space)
        self._try("rlimits", limited, ("read a file", _MEMORY), without, targets)

    def _limited(self, address_space: int) -> None:
        _limit(address_space)
        _limit_program(self.limits["cpu"])

    def _try(
        self,
        layer: Layer,
        change: Callable[[], object],
        stopped: Iterable[str],
        without: Trial,
        targets: Targets,
    ) -> None:
        """Try a layer alone: it must stop what is possible without it."""
        if layer not in self.wanted:
            return
        names = set(stopped) & set(without.allowed())
        trial = tried(change, targets, names)
        if trial.failure:
            self.status[layer] = f"unavailable: {trial.failure}"
            return
        self._on.add(layer)
        allowed = trial.allowed()
        self.proven[layer] = [name for name in trial.results if name not in allowed]
        if allowed or not names:
            self.status[layer] = f"does not hold: {', '.join(allowed) or 'nothing to stop'}"
        else:
            self.status[layer] = "ok"

    def _drop_uid(self, targets: Targets) -> None:
        """Give up root for a user that nobody else is."""
        if "uid" not in self.wanted:
            return
        if os.geteuid() != 0:
            self.status["uid"] = "not needed: not root"
            return
        stopped = ("signal a parent", "read a parent's environment")
        without = tried(_nothing, targets, stopped)
        low = _LOW_UID + os.getpid() % _LOW_UIDS
        for uid in (_HIGH_UID + os.getpid(), low, _NOBODY):
            self._try("uid", lambda uid=uid: _become(uid), stopped, without, targets)  # type: ignore[misc]
            if self.has("uid"):
                _become(uid)
                return


def _nothing() -> None:
    """The change that leaves everything as it is: what is possible without any layer."""


def _stopped_by_landlock() -> tuple[str, ...]:
    """What this kernel's version of Landlock has to stop."""
    try:
        abi = system_calls.landlock_version()
    except OSError:
        return _FILES
    network = ("connect over TCP",) if abi >= 4 else ()
    scopes = ("connect to an abstract socket", "signal a parent") if abi >= 6 else ()
    return (*_FILES, *network, *scopes)


def _limit(address_space: int) -> None:
    """Limits that the zygote itself can live with; its children inherit them."""
    _set_limit(resource.RLIMIT_AS, address_space, address_space)
    for kind, value in (
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_STACK, 8 << 20),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        # Not every kernel knows each of these.
        with suppress(OSError, ValueError):
            _set_limit(kind, value, value)


def _limit_program(cpu: float, *, descriptors: bool = False) -> None:
    """Limits of one program: what is open stays open, and nothing can be added to it."""
    seconds = math.ceil(cpu)
    _set_limit(resource.RLIMIT_CPU, seconds + 1, seconds + 2)
    _set_limit(resource.RLIMIT_NPROC, 0, 0)
    if not descriptors:
        _set_limit(resource.RLIMIT_NOFILE, 0, 0)


def _set_limit(kind: int, soft: int, hard: int) -> None:
    """Lower a limit; one that is lower already stays."""
    ceiling = resource.getrlimit(kind)[1]
    top = hard if ceiling == resource.RLIM_INFINITY else min(hard, ceiling)
    resource.setrlimit(kind, (min(soft, top), top))


def _become(uid: int) -> None:
    with suppress(PermissionError):
        os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _pages_mapped() -> int:
    """Bytes of address space in use: the limit on memory is counted from here."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _leave_namespaces() -> None:
    """Enter new namespaces with an empty read-only root; it returns in a child, their first."""
    uid, gid = os.getuid(), os.getgid()
    system_calls.unshare(_EVERYTHING)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    child = os.fork()
    if child:
        _stand_in(child)
    system_calls.prctl(system_calls.PR_SET_PDEATHSIG, _SIGKILL)
    _empty_root()


def _stand_in(child: int) -> None:
    """Hold the outer place of the first process, and end as it ends."""
    os.closerange(0, 256)
    status = os.waitpid(child, 0)[1]
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _empty_root() -> None:
    """Change the root to an empty, read-only file system in memory."""
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    system_calls.mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    place = next(p for p in _PLACES_TO_MOUNT if Path(p).is_dir())
    system_calls.mount("tmpfs", place, "tmpfs", flags, "size=4k,nr_inodes=4,mode=555")
    os.chdir(place)
    # With the same path twice the old root ends up on top of the new one.
    system_calls.pivot_root()
    system_calls.umount_lazily(".")
    system_calls.mount("none", "/", None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | flags)
    os.chdir("/")


def _restrict_files() -> None:
    """Landlock with no rule at all: no file, no TCP, no signal or abstract socket outside."""
    abi = system_calls.landlock_version()
    files = (1 << (13 + (abi >= 2) + (abi >= 3))) - 1 | (0x8000 if abi >= 5 else 0)
    network, scopes = (3 if abi >= 4 else 0), (3 if abi >= 6 else 0)
    fields = [files] + [network] * (abi >= 4) + [scopes] * (abi >= 6)
    ruleset = struct.pack(f"{len(fields)}Q", *fields)
    buffer = ctypes.create_string_buffer(ruleset, len(ruleset))
    descriptor = system_calls.syscall(system_calls.LANDLOCK_CREATE_RULESET, buffer, len(ruleset), 0)
    try:
        system_calls.syscall(system_calls.LANDLOCK_RESTRICT_SELF, descriptor, 0)
    finally:
        os.close(descriptor)
