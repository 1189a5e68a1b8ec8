"""The system calls that a student's program may make, as a classic BPF program for seccomp.

An allow-list: what is not named is refused with EPERM. There is no way on it to open, create
or look up a file, to make a socket, a process or a thread, to signal anybody, or to map memory
that can be executed.
"""

import ctypes
import platform
import struct

from .linux import PR_SET_SECCOMP, prctl

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
        prctl(PR_SET_SECCOMP, _MODE_FILTER, self._address)


def _guarded(number: int, argument: int, body: list[bytes]) -> list[bytes]:
    """Steps that look at the low half of an argument of one call; every path returns."""
    load = _step(_LOAD, _AT_ARGUMENTS + 8 * argument)
    return [_step(_EQUAL, number, 0, len(body) + 1), load, *body]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
