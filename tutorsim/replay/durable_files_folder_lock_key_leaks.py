"""Files of a recording: written whole or not at all, appended durably, one run a folder, no keys.

`leaked_keys` finds credentials that must not get into a recording, or that got into one.
"""

import errno
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tutorsim.errors import FolderError, RecordingRefused

# --- Safe files ----------------------------------------------------------------------------------

LOCK_FILE: Final = ".tutorsim.lock"
TEMPORARY: Final = ".tmp"
"""Ending of a file that is being written."""
_SAFE: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
"""No symbolic link, and not for child processes; 0 on systems that do not know this."""
_BINARY: Final = getattr(os, "O_BINARY", 0)
"""Bytes as they are, where a system would change line ends."""
_OPEN: Final = os.O_WRONLY | os.O_CREAT | _SAFE | _BINARY
_HINTS: Final = {
    errno.ENOSPC: "Free some space, then give the same command again; what is there stays usable.",
    errno.EDQUOT: "Free some space, then give the same command again; what is there stays usable.",
    errno.EROFS: "Choose a folder that can be written.",
    errno.EACCES: "Choose a folder that you may write, or change its permissions.",
    errno.EPERM: "Choose a folder that you may write, or change its permissions.",
    errno.ELOOP: "A symbolic link stands where a file belongs; remove it.",
    errno.ENAMETOOLONG: "Shorten the task, variant or study names.",
}


def folder_error(path: Path, error: OSError) -> FolderError:
    """Say what to do about a file that cannot be written."""
    return FolderError(
        f"{path} cannot be written.",
        why=error.strerror or str(error),
        hint=_HINTS.get(error.errno or 0, "Choose another folder, or repair this one."),
    )


def make_folder(folder: Path) -> None:
    """Create a folder and its parents where they do not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise folder_error(folder, error) from error


def create_file(path: Path) -> int:
    """The handle of a new file; a link, or what a killed run left there, is removed first."""
    path.unlink(missing_ok=True)
    return os.open(path, _OPEN | os.O_EXCL, 0o644)


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a machine that fails, sees the old or the new one whole.

    If it cannot be written the old file stays as it was.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        try:
            handle = create_file(temporary)
            try:
                _write_all(handle, data)
                os.fsync(handle)
            finally:
                os.close(handle)
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise folder_error(path, error) from error


class AppendFile:
    """Lines appended one write each. A line is complete when its line end is there.

    A last line without its end was cut off by a kill; opening the file for appending removes it.
    The file is created by the first line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None
        self._size = 0
        self._unsynced = False
        self._created = False

    def read(self) -> list[bytes]:
        """The complete lines, without their ends; none when there is no file."""
        try:
            handle = os.open(self.path, os.O_RDONLY | _SAFE | _BINARY)
        except FileNotFoundError:
            return []
        with os.fdopen(handle, "rb") as file:
            return file.read().split(b"\n")[:-1]

    def append(self, line: bytes) -> None:
        """Add one line; it survives a kill of this process from here on.

        If it cannot be written the file holds what it held before.
        """
        try:
            handle = self._opened()
            try:
                _write_all(handle, line + b"\n")
            except OSError:
                os.ftruncate(handle, self._size)
                raise
        except OSError as error:
            raise folder_error(self.path, error) from error
        self._size += len(line) + 1
        self._unsynced = True

    @property
    def unsynced(self) -> bool:
        """Whether lines were added since the last `sync`."""
        return self._unsynced

    def sync(self) -> None:
        """Make the lines survive a failure of the machine."""
        if self._handle is None or not self._unsynced:
            return
        self._unsynced = False
        try:
            os.fsync(self._handle)
            if self._created:
                self._created = False
                _sync_folder(self.path.parent)
        except OSError as error:
            raise folder_error(self.path, error) from error

    def close(self) -> None:
        """Release the file; a later `append` opens it again."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def remove(self) -> None:
        """Close and delete the file."""
        self.close()
        self._size = 0
        self.path.unlink(missing_ok=True)

    def _opened(self) -> int:
        if self._handle is None:
            self._created = not self.path.exists()
            whole = sum(len(line) + 1 for line in self.read())
            self._handle = os.open(self.path, _OPEN | os.O_APPEND, 0o644)
            os.ftruncate(self._handle, whole)
            self._size = whole
        return self._handle


_held: Final[set[int]] = set()
"""Handles of the locks that this process holds."""


def _leave_locks() -> None:
    """Close them in a forked child, which would keep them after this process has ended."""
    for handle in _held:
        os.close(handle)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_locks)


class FolderLock:
    """Keeps a second run out of a folder. Released by the kernel if the process dies.

    On a system without file locks a killed run leaves its lock, which has to be removed by hand. A
    run that writes one file of the folder locks a `name` of its own. On entry, `FolderError` if
    another run has the folder.
    """

    def __init__(self, folder: Path, *, name: str = LOCK_FILE) -> None:
        self._path = folder / name
        self._handle: int | None = None

    def __enter__(self) -> "FolderLock":
        make_folder(self._path.parent)
        try:
            while self._handle is None:
                self._handle = self._locked()
            _held.add(self._handle)
        except BlockingIOError as error:
            stale = "" if _flock() else f" If none is running, remove {self._path}."
            raise FolderError(
                f"Another run is using {self._path.parent}.",
                hint=f"Wait until it ends, or choose another folder.{stale}",
            ) from error
        except OSError as error:
            raise folder_error(self._path.parent, error) from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle not in _held:
            return  # never locked, or a forked child, whose parent holds the lock
        if _flock():  # before the lock goes, so that nobody waits for a file that will go too
            self._remove()
        _held.discard(self._handle)
        os.close(self._handle)
        self._handle = None
        if not _flock():  # an open file cannot be removed everywhere
            self._remove()

    def _remove(self) -> None:
        """Delete the file, or leave it: what ended the run is told, and no lock is on the file."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _created(self) -> int:
        """The handle of a file that only one run can create: a lock that outlives a kill."""
        try:
            return os.open(self._path, _OPEN | os.O_EXCL, 0o644)
        except FileExistsError as error:
            raise BlockingIOError(*error.args) from error

    def _locked(self) -> int | None:
        """A locked handle, or `None` when the file was removed by its last holder meanwhile."""
        lock = _flock()
        if lock is None:
            return self._created()
        handle = os.open(self._path, _OPEN, 0o644)
        try:
            lock(handle)
            if os.path.samestat(os.fstat(handle), self._path.stat()):
                return handle
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        return None


def _flock() -> Callable[[int], None] | None:
    """What locks a handle or raises `BlockingIOError`; `None` on systems without file locks."""
    try:
        import fcntl
    except ImportError:
        return None
    return lambda handle: fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _sync_folder(folder: Path) -> None:
    directory = getattr(os, "O_DIRECTORY", None)
    if directory is None:
        return  # a system that cannot open a folder, so that its names cannot be flushed
    handle = os.open(folder, os.O_RDONLY | directory | _SAFE)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --- Leaked keys ---------------------------------------------------------------------------------

REDACTED: Final = "[credential]"
_SHOWN: Final = 8
"""Characters of a key that a message shows."""
_SHORTEST: Final = 8
"""Characters of a credential; shorter texts stand in for one where any will do."""
SECRET_FIELDS: Final = ("key", "api_key", "api-key", "access_token", "token")
"""Fields of a query that are credentials, and are never kept."""

_SHAPES: Final = re.compile(
    r"sk-ant-[A-Za-z0-9_-]{16,}"
    r"|sk-(?:proj-)?[A-Za-z0-9]{32,}"
    r"|gh[pousr]_[A-Za-z0-9]{36,}"
    r"|github_pat_[A-Za-z0-9_]{22,}"
    r"|AKIA[0-9A-Z]{16}(?![0-9A-Z])"
    r"|AIza[0-9A-Za-z_-]{35}"
    r"|xox[abprs]-[0-9A-Za-z-]{20,}"
    r"|-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----"
)
_ESCAPED: Final = re.compile(r"(?:\\)+u00([2-7][0-9a-fA-F])")
"""A printable ASCII character written as an escape of JSON, in JSON inside JSON too."""


def key_shaped(text: str) -> list[str]:
    """Strings in the shape of a key, each with its beginning only; none twice."""
    if "\\u00" in text:
        text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    return [f"{found[:_SHOWN]}…" for found in dict.fromkeys(_SHAPES.findall(text))]


def without_keys(text: str, secrets: Sequence[str]) -> str:
    """A message without credentials in use, and with the beginning alone of what looks like one."""
    known = [secret for secret in secrets if len(secret) >= _SHORTEST]
    return _SHAPES.sub(lambda found: f"{found[0][:_SHOWN]}…", _redacted(text, known))


def refuse_keys(texts: Mapping[str, Any], secrets: Sequence[str]) -> None:
    """Refuse to record what contains a key, before anything is written or sent.

    `texts` goes from what is meant, for the error, to its JSON value.
    """
    for name, value in texts.items():
        for place, text in json_strings(value, name):
            used = any(secret in text for secret in secrets)
            shaped = key_shaped(text)
            if used or shaped:
                what = "the credential in use" if used else f"a string like a key, {shaped[0]}"
                raise RecordingRefused(
                    f"{place} contains {what}, so the study must not be recorded.",
                    why="Recordings are shared; a credential in one is a credential given away.",
                    hint="Take it out of the study, its tasks and prompts. Then replace the "
                    "credential.",
                )


def without_secrets(texts: Mapping[str, str], secrets: Iterable[str]) -> dict[str, str]:
    """Headers with every credential in their values redacted."""
    return {name: _redacted(text, [*secrets]) for name, text in texts.items()}


def redacted(text: str, secrets: Sequence[str]) -> str:
    """A body with credentials redacted that escapes of JSON hide.

    It is the very text unless one of its strings contains a credential.
    """
    if not secrets or "\\" not in text:
        return text
    value = json.loads(text)
    if not any(secret in string for _, string in json_strings(value, "") for secret in secrets):
        return text
    return json.dumps(_replaced(value, secrets), ensure_ascii=False, separators=(",", ":"))


def json_strings(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Every string of a JSON value, names of fields among them, with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield place, str(name)
            yield from json_strings(inner, f"{place}.{name}" if place else str(name))
    elif isinstance(value, Sequence):
        for index, inner in enumerate(value):
            yield from json_strings(inner, f"{place}[{index}]")


def _replaced(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, str):
        return _redacted(value, secrets)
    if isinstance(value, dict):
        return {_redacted(name, secrets): _replaced(v, secrets) for name, v in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, secrets) for inner in value]
    return value


def _redacted(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    return text
