"""The layers that keep a student's program in: what the zygote puts on, and what its children do.

Each layer is tried in a forked child first, because a half-made change of namespaces cannot be
undone. A layer is `ok`, `off` (switched off by the level or by the caller) or
`unavailable: REASON`; whether it holds is for the probes to say, not for these return codes.
"""

import ctypes
import math
import os
import resource
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from . import linux
from .syscalls import Filter, build_filter, machine

__all__ = ["LAYERS", "Jail"]

LAYERS = ("seccomp", "namespaces", "landlock", "rlimits", "uid")

_EVERYTHING = (
    linux.CLONE_NEWUSER | linux.CLONE_NEWNS | linux.CLONE_NEWPID
    | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
)  # fmt: skip
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_REC, _MS_PRIVATE, _MS_BIND = 32, 16384, 1 << 18, 4096
_PLACES_TO_MOUNT = ("/tmp", "/mnt", "/proc", "/dev")
_HIGH_UID, _LOW_UID, _NOBODY = 0x6E000000, 61_184, 65_534
_LOW_UIDS = 4_000
_SIGKILL = 9


@dataclass
class Jail:
    """What is on in this zygote.

    Args:
        wanted: The layers to try; the others stay off.
        limits: CPU seconds, bytes of memory and so on, by name.
    """

    wanted: frozenset[str]
    limits: dict[str, float]
    status: dict[str, str] = field(default_factory=lambda: dict.fromkeys(LAYERS, "off"))
    _filter: Filter | None = None
    _own_pids: int = -1

    def has(self, layer: str) -> bool:
        """Whether the layer is on."""
        return self.status[layer] == "ok"

    @property
    def fresh_pids(self) -> bool:
        """Whether workers get a process table of their own, as no filter stops their signals."""
        return self.has("namespaces") and not self.has("seccomp")

    def enclose(self) -> None:
        """Put the zygote's layers on; in namespaces, returns in a forked child, pid 1.

        Only what would keep the zygote from forking is left for its children.
        """
        address_space = _pages_mapped() + int(self.limits["memory"])
        self._drop_uid()
        linux.prctl(linux.PR_SET_DUMPABLE, 1)
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
        kind = machine()
        if kind is None and "seccomp" in self.wanted:
            self.status["seccomp"] = "unavailable: no table for this processor"
        elif kind is not None:
            self._filter = Filter(build_filter(kind))
            self._try("seccomp", self._filter.install)
        self._try("landlock", _restrict_files)
        self._try("namespaces", lambda: _leave_namespaces(last=True))
        self._try("rlimits", lambda: _limit(address_space))
        if self.has("namespaces"):
            self._own_pids = _leave_namespaces(last=False)
        if not self.fresh_pids:
            # Where even this is refused, the filter still keeps them from being used.
            with suppress(OSError):
                linux.drop_capabilities()
        if self.has("landlock"):
            _restrict_files()
        if self.has("rlimits"):
            _limit(address_space)
        linux.prctl(linux.PR_SET_DUMPABLE, 0)

    def fork(self) -> int:
        """Fork a worker, in its own process table where nothing else keeps it from signalling."""
        if not self.fresh_pids:
            return os.fork()
        linux.unshare(linux.CLONE_NEWPID)
        pid = os.fork()
        if pid:
            linux.setns(self._own_pids, linux.CLONE_NEWPID)
        else:
            # A new user and IPC space too: nothing there outlives the program.
            linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWIPC)
        return pid

    def lock(self, *, cpu: float, descriptors: bool = False) -> None:
        """Put a child's own layers on; raises `OSError` when one that is `ok` does not go on.

        Args:
            cpu: Seconds of CPU time that the zygote will allow; the kernel's own limit is above.
            descriptors: Whether the child may open more than it has. Only the probes may: what
                they try has to be stopped by the layer that is there for it.
        """
        linux.prctl(linux.PR_SET_PDEATHSIG, _SIGKILL)
        linux.leave_keyring()
        if self.fresh_pids:
            linux.drop_capabilities()
        if self.has("rlimits"):
            seconds = math.ceil(cpu)
            _set_limit(resource.RLIMIT_CPU, seconds + 1, seconds + 2)
            _set_limit(resource.RLIMIT_NPROC, 0, 0)
            if not descriptors:
                # What is open stays open; no file, socket or anything else can be added to it.
                _set_limit(resource.RLIMIT_NOFILE, 0, 0)
        if self._filter is not None and self.has("seccomp"):
            self._filter.install()

    def _try(self, layer: str, change: Callable[[], object]) -> None:
        if layer in self.wanted:
            failure = _in_child(change)
            self.status[layer] = f"unavailable: {failure}" if failure else "ok"

    def _drop_uid(self) -> None:
        """Give up root for a user that nobody else is."""
        if "uid" not in self.wanted:
            return
        if os.geteuid() != 0:
            self.status["uid"] = "not needed: not root"
            return
        low = _LOW_UID + os.getpid() % _LOW_UIDS
        for uid in (_HIGH_UID + os.getpid(), low, _NOBODY):
            failure = _in_child(lambda uid=uid: _become(uid))  # type: ignore[misc]
            if not failure:
                _become(uid)
                self.status["uid"] = "ok"
                return
            self.status["uid"] = f"unavailable: {failure}"


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


def _in_child(change: Callable[[], object]) -> str:
    """Make the change in a forked child; the reason for which it failed, or nothing."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        failure = "unknown"
        try:
            change()
            failure = ""
        except OSError as error:
            text = error.strerror or ""
            failure = text if ":" in text else linux.errno_name(error)
        finally:
            os.write(theirs, failure.encode())
            os._exit(0)
    os.close(theirs)
    text = linux.read_all(ours).decode()
    os.waitpid(pid, 0)
    return text


def _leave_namespaces(*, last: bool) -> int:
    """Enter new namespaces with an empty read-only root, as their first process.

    Args:
        last: Whether the calling process ends here, as a trial does.

    Returns:
        A descriptor of the new process table, in its first process only.

    Raises:
        OSError: If a step fails.
    """
    uid, gid = os.getuid(), os.getgid()
    linux.unshare(_EVERYTHING)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    if last:
        failure = _in_child(_empty_root)
        if failure:
            raise OSError(0, failure)
        return -1
    child = os.fork()
    if child:
        _stand_in(child)
    linux.prctl(linux.PR_SET_PDEATHSIG, _SIGKILL)
    pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    _empty_root()
    return pids


def _stand_in(child: int) -> None:
    """Hold the outer place of the first process, and end as it ends."""
    os.closerange(0, 256)
    status = os.waitpid(child, 0)[1]
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _empty_root() -> None:
    """Change the root to an empty, read-only file system in memory."""
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    linux.mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    place = next(p for p in _PLACES_TO_MOUNT if Path(p).is_dir())
    linux.mount("tmpfs", place, "tmpfs", flags, "size=4k,nr_inodes=4,mode=555")
    os.chdir(place)
    # With the same path twice the old root ends up on top of the new one.
    linux.pivot_root()
    linux.umount_lazily(".")
    linux.mount("none", "/", None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | flags)
    os.chdir("/")


def _restrict_files() -> None:
    """Landlock with no rule at all: no file, no TCP, no signal or abstract socket outside."""
    abi = linux.syscall(linux.LANDLOCK_CREATE_RULESET, None, 0, 1)
    files = (1 << (13 + (abi >= 2) + (abi >= 3))) - 1 | (0x8000 if abi >= 5 else 0)
    network, scopes = (3 if abi >= 4 else 0), (3 if abi >= 6 else 0)
    fields = [files] + [network] * (abi >= 4) + [scopes] * (abi >= 6)
    ruleset = struct.pack(f"{len(fields)}Q", *fields)
    buffer = ctypes.create_string_buffer(ruleset, len(ruleset))
    descriptor = linux.syscall(linux.LANDLOCK_CREATE_RULESET, buffer, len(ruleset), 0)
    try:
        linux.syscall(linux.LANDLOCK_RESTRICT_SELF, descriptor, 0)
    finally:
        os.close(descriptor)
