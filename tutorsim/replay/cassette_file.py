"""Cassettes as files: vcrpy's format, version 1, as JSON text or that text compressed.

A reader answers calls from a cassette that is parsed once, by key; no check of vcrpy's is left out.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, NoReturn, get_args

import orjson

from tutorsim.errors import MissingCallError, RecordingError
from tutorsim.model import CALL_HEADER, Call, Reply
from tutorsim.replay.durable_files_folder_lock_key_leaks import write_atomic
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import (
    MESSAGES_URI,
    Interaction,
    cassette_name,
    check_episode_id,
    check_same,
    is_episode_id,
    missing,
    requests_digest,
    unused_error,
)
from tutorsim.vocabularies import ProvenanceKind

# --- Text or compressed --------------------------------------------------------------------------

CassetteForm = Literal["text", "compressed"]
CASSETTE_FORMS: Final[tuple[CassetteForm, ...]] = get_args(CassetteForm)
READ_SUFFIXES: Final = (".json", ".jsonl", ".toml", ".zst")
"""Suffixes of the files that a replay reads."""
_ADDED: Final[dict[CassetteForm, str]] = {"text": "", "compressed": ".zst"}
"""What a form adds to the cassette's name."""
_LEVEL: Final = 9
_BEGINNING: Final = b'{\n "version": 1,\n "interactions": ['
"""Beginning of every cassette's text."""
_LARGEST: Final = 1 << 30
"""Bytes of text that a compressed file may hold: a frame says so before it is unpacked."""
_RESTORE: Final = "Restore the file from version control, or record again into a new folder."


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
    """Refuse to record into a folder of compressed cassettes, whose calls would be paid again."""
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

    `MissingCallError` if there is no such file.
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
    """A file of a recording's folder; `None` where it is not there."""
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
    """Refuse a file that leads out of its folder, or that a reader would wait for."""
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

    `links` refuses symbolic links too, wherever they lead.
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
    """Write a cassette's text in a form."""
    data = text if form == "text" else compressed(text)
    write_atomic(cassette_file(folder, episode_id, form), data)


def compressed(text: bytes) -> bytes:
    """One frame that says how much it holds and has a checksum."""
    import zstandard

    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(text)


def decompressed(data: bytes, name: str) -> bytes:
    """Unpack what `compressed` gave.

    `RecordingError`, naming the file, if it is no whole frame or holds more than any recording.
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


# --- Cassette file -------------------------------------------------------------------------------

CASSETTE_SCHEMA: Final = 1
"""Version of what we keep inside vcrpy's format."""
METADATA_NAME: Final = "tutorsim"
_VCR_VERSION: Final = 1
_KINDS: Final = get_args(ProvenanceKind)
_LONE_ITEM: Final = re.compile(r'\[\n +("(?:[^"\\]|\\.)*")\n +\]')
"""A list of one text over three lines. A line break is never part of a text in JSON."""
_INDENT: Final = re.compile(r"\n +")
_ESCAPED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SUCCESS: Final = range(200, 300)


class RecordedBy(NamedTuple):
    """What a cassette itself says of its recording, so that a manifest is held against it."""

    first: str
    """First day of the recording, ISO date in UTC."""
    last: str
    """Day of the latest reply."""
    relay: str | None
    """What the user called the server that answered; `None` where it was not named."""


@dataclass(frozen=True)
class Cassette:
    """A cassette as read from disk."""

    episode_id: str
    sha256: str
    """Digest of the file's text, whichever form it was read from."""
    study_digest: str
    kind: ProvenanceKind
    packages: Mapping[str, str]
    interactions: Mapping[str, Interaction]
    """Interactions by call key, in the order of the file."""
    recorded: RecordedBy | None = None
    """`None` in cassettes from before they said it."""
    unasked: tuple[str, ...] = ()
    """Keys that the program which last added calls did not ask for; studies ask for each."""

    @property
    def name(self) -> str:
        """File name."""
        return cassette_name(self.episode_id)

    def requests_sha256(self) -> str:
        """Digest of the keys and requests, which stays the same when only replies change."""
        try:
            return requests_digest((i.key, i.request) for i in self.interactions.values())
        except ValueError as error:
            raise RecordingError(
                f"{self.name} holds a request that is no JSON.", why=str(error), hint=_RESTORE
            ) from error


class JsonText:
    """vcrpy serializer: readable JSON that is YAML too."""

    @staticmethod
    def serialize(data: dict[str, Any]) -> str:
        """Write a cassette's content, one body a line."""
        text = orjson.dumps(data, option=orjson.OPT_INDENT_2).decode()
        text = _LONE_ITEM.sub(r"[\1]", text)
        text = _INDENT.sub(lambda found: found[0][: 1 + len(found[0]) // 2], text)
        return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


class _WholeFiles:
    """vcrpy persister: UTF-8 in any locale, and no half-written file."""

    @staticmethod
    def save_cassette(path: Path, data: dict[str, Any], serializer: Any) -> None:
        from vcr.serialize import serialize

        write_atomic(path, serialize(data, serializer).encode())


def write_cassette(
    folder: Path,
    episode_id: str,
    interactions: Sequence[Interaction],
    *,
    kind: ProvenanceKind,
    study_digest: str,
    packages: Mapping[str, str],
    recorded: RecordedBy | None = None,
    unasked: Sequence[str] = (),
) -> None:
    """Write an episode's cassette with its interactions in the given order.

    If it cannot be written an older file stays as it was.
    """
    from vcr.cassette import Cassette as VcrCassette
    from vcr.record_mode import RecordMode
    from vcr.request import Request as VcrRequest

    path = folder / cassette_name(episode_id)
    tape = VcrCassette(path, serializer=JsonText, persister=_WholeFiles, record_mode=RecordMode.ALL)
    tape.get_metadata(
        METADATA_NAME,
        {
            "schema": CASSETTE_SCHEMA,
            "study_digest": study_digest,
            "provenance": kind,
            "packages": dict(sorted(packages.items())),
            **({} if recorded is None else {"recorded": recorded._asdict()}),
            **({"unasked": list(unasked)} if unasked else {}),
        },
    )
    for one in interactions:
        request = VcrRequest(one.method, one.uri, one.request, one.request_headers)
        tape.append(request, _vcr_response(one))
    tape._save(force=True)


def _vcr_response(one: Interaction) -> dict[str, Any]:
    return {
        "status": {"code": one.status, "message": _phrase(one.status)},
        "headers": {name: [value] for name, value in one.response_headers.items()},
        "body": {"string": one.response},
    }


@cache
def _phrase(status: int) -> str:
    """The standard's word for a status; empty where it has none."""
    from http import HTTPStatus  # a replay writes no cassette

    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def read_cassette(folder: Path, episode_id: str) -> Cassette:
    """Read an episode's cassette, parsing the file once.

    `MissingCallError` if there is none in either form.
    """
    return parse_cassette(read_cassette_file(folder, episode_id), episode_id)


def parse_cassette(data: bytes, episode_id: str) -> Cassette:
    """Read a cassette's bytes.

    `RecordingError` if they are truncated, of another version, or of another episode.
    """
    name = cassette_name(episode_id)
    try:
        content = orjson.loads(data)
        _check_version(name, content)
        head = content["metadata"][METADATA_NAME]
        _check_head(head)
        place = f"{episode_id}/"
        entries = [
            _interaction(raw, place, head["provenance"], study=head["study_digest"])
            for raw in content["interactions"]
        ]
        found = {entry.key: entry for entry in entries}
        if len(found) != len(entries):
            raise ValueError("a call key stands twice")
        return Cassette(
            episode_id=episode_id,
            sha256=hashlib.sha256(data).hexdigest(),
            study_digest=head["study_digest"],
            kind=head["provenance"],
            packages=head["packages"],
            interactions=found,
            recorded=_recorded_by(head.get("recorded")),
            unasked=tuple(map(str, head.get("unasked", ()))),
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(
            f"{name} is not a whole cassette.", why=_why(error), hint=_RESTORE
        ) from error


def _check_version(name: str, content: Any) -> None:
    versions = content["version"], content["metadata"][METADATA_NAME]["schema"]
    if versions != (_VCR_VERSION, CASSETTE_SCHEMA):
        raise RecordingError(
            f"{name} has cassette version {versions[0]!r}, schema {versions[1]!r}.",
            why=f"This tutorsim reads version {_VCR_VERSION}, schema {CASSETTE_SCHEMA}.",
            hint="Use the tutorsim that wrote it, or record the study again.",
        )


def _check_head(head: dict[str, Any]) -> None:
    if head["provenance"] not in _KINDS:
        raise ValueError(f"the provenance {head['provenance']!r} is unknown")
    if not isinstance(head["study_digest"], str) or not isinstance(head["packages"], dict):
        raise ValueError("the metadata of the recording are not text")


def _recorded_by(said: dict[str, Any] | None) -> RecordedBy | None:
    if said is None:
        return None
    found = RecordedBy(**said)
    if not all(isinstance(text, str) for text in (*found[:2], found.relay or "")):
        raise ValueError("the days or the name of the recording are not text")
    return found


def _interaction(
    raw: dict[str, Any], place: str, kind: ProvenanceKind, *, study: str
) -> Interaction:
    """Check an entry of the file, whose call header begins with `place`, as `episode/`."""
    request, response = raw["request"], raw["response"]
    headers = {name: str(values[0]) for name, values in request["headers"].items()}
    said = {name: str(values[0]) for name, values in response["headers"].items()}
    method, uri = request["method"], request["uri"]
    call, asked, answer = headers[CALL_HEADER], request["body"], response["body"]["string"]
    key, status = call[len(place) :], response["status"]["code"]
    if not call.startswith(place):
        recorded = call.partition("/")[0]
        raise RecordingError(
            f"{cassette_name(place[:-1])} holds a call of {recorded!r}.",
            why="Every call in a cassette has the name that the file was recorded under.",
            hint=f"Name the file {cassette_name(recorded)} again, or record under the new name.",
        )
    if not study and asked is None:
        asked = ""
    if (study and uri != MESSAGES_URI) or not isinstance(asked, str):
        raise ValueError(f"call {key} is not a Messages API request")
    if not isinstance(answer, str):
        raise ValueError(f"the reply to call {key} is no text")
    if status not in _SUCCESS:
        raise ValueError(f"the reply to call {key} is not a success")
    return Interaction(key, kind, status, headers, asked, said, answer, method, uri)


def _why(error: Exception) -> str:
    text = str(error)
    return f"The field {text} is missing." if isinstance(error, KeyError) else f"{text}."


# --- Answering calls from a cassette -------------------------------------------------------------


class Playback:
    """One episode's recording, being replayed. A `Model` for that episode."""

    def __init__(self, cassette: Cassette) -> None:
        self.cassette = cassette
        """What is played."""
        self._left = dict(cassette.interactions)

    async def reply(self, episode_id: str, call: Call) -> Reply:
        """Answer one call at once; each recorded reply is given once.

        `MissingCallError` if none is left for the call's key; `ChangedCallError` if it was recorded
        with another request.
        """
        name, key = self.cassette.name, str(call.key)
        found = self._left.get(key)
        if found is None:
            held = self.cassette.interactions
            raise missing(name, key, held=held, played=key in held)
        check_same(name, found, call)
        try:
            answer = found.reply()
        except ValueError as error:
            raise unreadable_reply(name, key, error) from error
        del self._left[key]
        return answer

    def unused(self) -> tuple[str, ...]:
        """Keys that were not asked for, in the order of the cassette."""
        return tuple(self._left)

    def check_all_used(self) -> None:
        """Refuse a replay that left entries of its cassette unused."""
        unused = self.unused()
        if unused:
            raise unused_error(self.cassette.name, unused)


class Reader:
    """Opens the episodes of a folder for replay; the cassette that was read last is kept.

    So a retest, which follows each episode, reads no cassette twice.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last: Cassette | None = None

    def open(self, episode_id: str) -> Playback:
        """Open an episode. `MissingCallError` if the recording has no cassette for it."""
        return Playback(self.cassette(episode_id))

    def cassette(self, episode_id: str) -> Cassette:
        """What an episode's recording holds, without playing it."""
        if self._last is None or self._last.episode_id != episode_id:
            check_episode_id(episode_id)
            self._last = read_cassette(self._folder, episode_id)
        return self._last


def unreadable_reply(cassette: str, key: str, error: Exception) -> RecordingError:
    """The error for a recorded reply that is no message."""
    return RecordingError(
        f"{cassette}: the reply to call {key} cannot be read.",
        why=str(error),
        hint=_RESTORE,
    )
