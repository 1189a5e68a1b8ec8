"""What the commands say of each source, each text or table by a readable name."""

import contextlib
import hashlib
import io
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import polars as pl

from tests.guards import sources
from tutorsim.cli import main

__all__ = ["GUARDED", "HASHES", "hashes_of"]

HASHES: Final = Path(__file__).with_name("hashes.json")
ROOT: Final = Path(__file__).parents[2]


class Guarded(NamedTuple):
    """A source and what is asked about it. `{}` is the source, `{out}` a folder for files."""

    make: Callable[[Path], Path]
    commands: tuple[str, ...]


_OF_BALLOTS: Final = (
    "summary {} --json",
    "recount {} --json",
    "recount {} --turns {out}/turns.csv",
    "recount {} --full",
    "report {} -o {out}/page.html",
    "report {} -o {out}/page.md",
    "export {} -o {out}/tables",
)
_OF_RUNS: Final = (
    *_OF_BALLOTS,
    "recount {} --threshold 0.5 --section outcomes --json",
    "diverge {} --rule ranked --json",
    "diverge {} --rule condorcet --ties fallback --exempt 1 --episodes {out}/episodes.csv",
    "diverge {} --tie-policy random --json",
    "compare {} {} --json",
)
_OF_RECORDINGS: Final = (
    "verify {} --json",
    "verify {} --wordings current --json",
    "show {} --json",
    "show {} humaneval.running-max.easily_frustrated_beginner.simple --json",
    "run {}/study.toml --dry-run --json",
    "branch {} --rule ranked --plan --json",
    "retest {} --repeats 2 --plan --json",
)
_OF_SYSTEMS: Final = (
    "verify {} --json",
    "show {} --json",
    "summary {} --json",
    "recount {} --json",
)
_FEW: Final = ("--targets simple,cumulative,approval,condorcet", "--exempt 0,1")


def _some(*targets: str) -> tuple[str, ...]:
    asked = " ".join(targets)
    return (
        "summary {} --json",
        f"recount {{}} {asked} --json",
        f"recount {{}} {asked} --turns {{out}}/turns.csv",
        "export {} -o {out}/tables",
    )


GUARDED: Final[Mapping[str, Guarded]] = {
    "demo": Guarded(lambda folder: _demo(folder), _OF_RUNS),
    "branch": Guarded(sources.branched, _OF_RUNS),
    "retest": Guarded(sources.retested, _OF_RUNS),
    "several formats": Guarded(sources.several_formats, _OF_RUNS),
    "20,000 turns": Guarded(lambda folder: sources.generated(folder, 20_000), _OF_BALLOTS),
    "400 turns": Guarded(lambda folder: sources.generated(folder, 400, form="csv"), _OF_BALLOTS),
    "three roles": Guarded(lambda folder: sources.drawn(folder, 3, 3, 24), _OF_BALLOTS),
    "five candidates": Guarded(lambda folder: sources.drawn(folder, 5, 2, 12), _some()),
    "six roles": Guarded(lambda folder: sources.drawn(folder, 6, 6, 8), _some(*_FEW)),
    "eight roles": Guarded(lambda folder: sources.drawn(folder, 8, 8, 4), _some(*_FEW)),
    "rich ballots": Guarded(sources.rich, _OF_BALLOTS),
    "PrefLib": Guarded(sources.preflib, _OF_BALLOTS),
    "recording": Guarded(lambda folder: _recording(folder, "demo"), _OF_RECORDINGS),
    **{
        name: Guarded(lambda folder, name=name: _recording(folder, name), _OF_SYSTEMS)
        for name in ("debate", "group", "oversight")
    },
}


def _demo(folder: Path) -> Path:
    _said(f"replay {ROOT / 'cassettes' / 'demo'} --log-dir {folder / 'demo'}")
    return folder / "demo"


def _recording(folder: Path, name: str) -> Path:
    return Path(shutil.copytree(ROOT / "cassettes" / name, folder / "recording"))


def hashes_of(name: str, folder: Path) -> dict[str, str]:
    """Item → hash, of one source; `refused files` are all bad ballot files."""
    found = _refusals(folder) if name == "refused files" else _answers(GUARDED[name], folder)
    return {item: _hash(text, folder) for item, text in found}


def _answers(guarded: Guarded, folder: Path) -> Iterator[tuple[str, str]]:
    folder.mkdir(parents=True, exist_ok=True)
    source = guarded.make(folder)
    for i, command in enumerate(guarded.commands):
        out = folder / f"out{i}"
        out.mkdir()
        said = _said(command.format(*(source, source), out=out))
        yield command, said
        for place in sorted(out.glob("*")):
            yield from ((f"{command} → {name}", text) for name, text in _written(place, out))


def _refusals(folder: Path) -> Iterator[tuple[str, str]]:
    for i, (wrong, (name, content)) in enumerate(sources.REFUSED.items()):
        file = folder / str(i) / name
        file.parent.mkdir(parents=True)
        file.write_bytes(content())
        for command in ("summary", "recount", "export -o {out}"):
            said = _said(f"{command.format(out=folder / f'tables{i}')} {file}")
            yield f"{wrong}: {command.split()[0]}", said


def _written(place: Path, out: Path) -> Iterator[tuple[str, str]]:
    """A file, or a folder's files; what lies in folders below it is one item each."""
    if place.is_file():
        yield str(place.relative_to(out)), _content(place)
        return
    for inner in sorted(place.glob("*")):
        files = [inner] if inner.is_file() else sorted(p for p in inner.rglob("*") if p.is_file())
        text = "\n".join(f"{file.relative_to(out)}\n{_content(file)}" for file in files)
        yield str(inner.relative_to(out)), text


def _content(file: Path) -> str:
    if file.suffix == ".parquet":
        frame = pl.read_parquet(file)
        return f"{frame.schema}\n{frame.write_ndjson()}"
    return file.read_text(encoding="utf-8")


def _said(command: str) -> str:
    """Exit code, stdout and stderr of a command, run in this process."""
    out, err = io.StringIO(), io.StringIO()
    env = {k: v for k, v in os.environ.items() if not k.startswith("TUTORSIM_") and k != "COLUMNS"}
    code: Any = 0
    with (
        patch.object(sys, "argv", ["tutorsim", *shlex.split(command)]),
        patch.dict(os.environ, env, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        except Exception as error:  # a traceback is an answer too
            code = f"{type(error).__name__}: {error}"
    return json.dumps({"exit": code, "stdout": out.getvalue(), "stderr": err.getvalue()})


def _hash(text: str, folder: Path) -> str:
    return hashlib.sha256(text.replace(str(folder), "FOLDER").encode()).hexdigest()[:16]
