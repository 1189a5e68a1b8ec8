"""The few system calls that the standard library does not offer, through ctypes."""

import ctypes
import errno
import os
from contextlib import suppress

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4

# Numbers above 423 are the same on every architecture.
LANDLOCK_CREATE_RULESET = 444
LANDLOCK_RESTRICT_SELF = 446
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_KEYCTL_JOIN_SESSION_KEYRING = 1
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

_MNT_DETACH = 2
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)


def _checked(result: int, name: str) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {errno.errorcode.get(number, number)}")
    return result


def syscall(number: int, *arguments: object) -> int:
    """Make a system call by number; raises `OSError` on -1."""
    longs = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    _libc.syscall.restype = ctypes.c_long
    return _checked(_libc.syscall(ctypes.c_long(number), *longs), f"syscall {number}")


def prctl(option: int, argument: int, address: int = 0) -> int:
    """Call prctl(2) with one or two arguments after the option, the others being zero."""
    return _checked(_libc.prctl(option, argument, address, 0, 0), f"prctl {option}")


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags` for new ones."""
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def landlock_version() -> int:
    """The kernel's version of Landlock; raises `OSError` where it has none."""
    return syscall(LANDLOCK_CREATE_RULESET, None, 0, 1)


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Call mount(2)."""
    fstype = None if kind is None else kind.encode()
    data = options.encode() or None
    _checked(
        _libc.mount(source.encode(), target.encode(), fstype, ctypes.c_ulong(flags), data),
        f"mount {target}",
    )


def pivot_root() -> None:
    """Make the working directory the root, with the old root mounted over it."""
    syscall(_PIVOT_ROOT[os.uname().machine], b".", b".")


def umount_lazily(target: str) -> None:
    """Take a mount out of sight at once, and down when nobody uses it."""
    _checked(_libc.umount2(target.encode(), _MNT_DETACH), f"umount {target}")


def drop_capabilities() -> None:
    """Give up every capability of this process, in every set."""
    with suppress(OSError):
        prctl(PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _checked(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def leave_keyring() -> None:
    """Take a new, empty session keyring, where the kernel has any."""
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        with suppress(OSError):
            syscall(number, _KEYCTL_JOIN_SESSION_KEYRING, 0)


def errno_name(error: OSError) -> str:
    """`EPERM` and the like: the same on every machine and in every language."""
    return errno.errorcode.get(error.errno or 0, os.strerror(error.errno or 0))
