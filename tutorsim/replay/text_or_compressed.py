"""A cassette as a file: its text, or its text compressed.

The compressed form is one Zstandard frame over the very bytes of the text form, so converting to
and fro gives the same bytes, and every digest of a cassette is one of its text, whatever the form.
Stock vcrpy plays the text form; a recording is made in it, and `tutorsim cassette convert` turns
one form into the other.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NoReturn, get_args

from tutorsim.errors import MissingCallError, RecordingError
from tutorsim.replay.recorded_call import cassette_name, is_episode_id
from tutorsim.replay.safe_files import write_atomic

__all__ = [
    "CASSETTE_FORMS",
    "READ_SUFFIXES",
    "CassetteForm",
    "cassette_file",
    "cassette_files",
    "cassettes_by_content",
    "check_inside",
    "check_recordable",
    "check_regular",
    "compressed",
    "decompressed",
    "read_cassette_file",
    "read_inside",
    "write_cassette_file",
]

CassetteForm = Literal["text", "compressed"]
CASSETTE_FORMS: Final[tuple[CassetteForm, ...]] = get_args(CassetteForm)
READ_SUFFIXES: Final = (".json", ".jsonl", ".toml", ".zst")
"""Suffixes of the files that a replay reads."""
_ADDED: Final[dict[CassetteForm, str]] = {"text": "", "compressed": ".zst"}
"""What a form adds to the cassette's name."""
_LEVEL: Final = 9
_BEGINNING: Final = b'{\n "version": 1,\n "interactions": ['
"""Of every cassette's text."""
_LARGEST: Final = 1 << 30
"""Bytes of text that a compressed file may hold: a frame says so before it is unpacked."""
_RESTORE: Final = "Restore the file from version control, or record the study into a new folder."


def cassette_file(folder: Path, episode_id: str, form: CassetteForm) -> Path:
    """Where an episode's cassette stands in a form."""
    return folder / (cassette_name(episode_id) + _ADDED[form])


def cassette_files(names: list[str]) -> Iterator[tuple[str, CassetteForm]]:
    """Episode id and form of every name that is a cassette's, in the order of the names."""
    for name in names:
        for form, added in _ADDED.items():
            ending = cassette_name("") + added
            if name.endswith(ending) and is_episode_id(name.removesuffix(ending)):
                yield name.removesuffix(ending), form


def check_recordable(folder: Path) -> None:
    """Refuse to record into a folder of compressed cassettes, whose calls would be paid again.

    Raises:
        RecordingError: If there is one.
    """
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    for episode_id, form in cassette_files(names):
        if form == "compressed":
            raise RecordingError(
                f"{folder} holds compressed cassettes, the first of {episode_id}.",
                why="A recording is made, and taken up again, in text.",
                hint=f"`tutorsim cassette convert {folder} --to text -o NEW`, and go on in NEW.",
            )


def read_cassette_file(folder: Path, episode_id: str) -> bytes:
    """The text of an episode's cassette, from whichever form is there; from the text first.

    Raises:
        MissingCallError: If there is no such file.
        RecordingError: If it leads out of the folder, cannot be read or cannot be unpacked.
    """
    data = read_inside(cassette_file(folder, episode_id, "text"))
    if data is not None:
        return data
    packed = cassette_file(folder, episode_id, "compressed")
    data = read_inside(packed)
    if data is not None:
        return decompressed(data, packed.name)
    raise MissingCallError(
        f"{cassette_name(episode_id)}: the recording has no cassette for this episode.",
        hint="Restore the file, or record the missing episodes with `tutorsim run`.",
    )


def read_inside(path: Path) -> bytes | None:
    """A file of a recording's folder; `None` where it is not there.

    Raises:
        RecordingError: If it leads out of the folder, is no regular file, or cannot be read.
    """
    try:
        check_inside(path)
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordingError(
            f"{path.name} cannot be read.", why=error.strerror or str(error), hint=_RESTORE
        ) from error


def check_inside(path: Path) -> None:
    """Refuse a file that leads out of its folder, or that a reader would wait for.

    Raises:
        RecordingError: If it does.
    """
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode):
            return
        if stat.S_ISLNK(mode) and not path.resolve().is_relative_to(path.parent.resolve()):
            raise RecordingError(
                f"{path.name} leads out of its folder.",
                why="It is a symbolic link to a file elsewhere.",
                hint="Put the file itself into the folder.",
            )
        is_file = stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return
    if not is_file:
        raise RecordingError(
            f"{path.name} is no regular file.",
            why="It is a pipe, a folder or a device, which is not read.",
            hint=_RESTORE,
        )


def check_regular(folder: Path, *, links: bool) -> None:
    """Refuse what is no regular file, before anything is read: a pipe would be waited for.

    Args:
        folder: A recording's folder, or a run folder.
        links: Refuse symbolic links too, wherever they lead.

    Raises:
        RecordingError: Naming the first such file.
    """
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        odd = [
            entry.name
            for entry in entries
            if entry.name.endswith(READ_SUFFIXES)
            and ((links and entry.is_symlink()) or not (entry.is_file() or _leads_nowhere(entry)))
        ]
    if odd:
        raise RecordingError(
            f"{folder / min(odd)} is no regular file.",
            why="It is a link, a pipe, a folder or a device, which is not followed.",
            hint="Put the file itself into the folder, or move this one away.",
        )


def _leads_nowhere(entry: "os.DirEntry[str]") -> bool:
    return entry.is_symlink() and not Path(entry.path).exists()


def cassettes_by_content(folder: Path, names: list[str]) -> Iterator[tuple[str, CassetteForm]]:
    """Name without ending, and form, of every file that begins as a cassette does, by name."""
    for name in names:
        for form, added in _ADDED.items():
            ending = cassette_name("") + added
            if name.endswith(ending) and _begins_as_cassette(folder / name, form):
                yield name.removesuffix(ending), form


def _begins_as_cassette(path: Path, form: CassetteForm) -> bool:
    import zstandard

    try:
        check_inside(path)
        with path.open("rb") as file:
            if form == "text":
                return file.read(len(_BEGINNING)) == _BEGINNING
            with zstandard.ZstdDecompressor().stream_reader(file) as text:
                return bool(text.read(len(_BEGINNING)) == _BEGINNING)
    except (RecordingError, OSError, zstandard.ZstdError):
        return False


def write_cassette_file(folder: Path, episode_id: str, text: bytes, form: CassetteForm) -> None:
    """Write a cassette's text in a form.

    Raises:
        FolderError: If it cannot be written.
    """
    data = text if form == "text" else compressed(text)
    write_atomic(cassette_file(folder, episode_id, form), data)


def compressed(text: bytes) -> bytes:
    """One frame that says how much it holds and has a checksum."""
    import zstandard

    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(text)


def decompressed(data: bytes, name: str) -> bytes:
    """Unpack what `compressed` gave.

    Args:
        data: One whole frame.
        name: The file, for the error.

    Raises:
        RecordingError: If it is no such frame, is damaged, or holds more than any recording.
    """
    import zstandard

    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= _LARGEST:
            _refuse(name, f"It says that it holds {size} bytes of text.")
        return zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        _refuse(name, f"{error}.")


def _refuse(name: str, why: str) -> NoReturn:
    raise RecordingError(f"{name} is not a whole compressed cassette.", why=why, hint=_RESTORE)
