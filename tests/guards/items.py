"""What the commands say of each source: what a reader sees as text, what is larger as a hash.

    for name, text in items_of("debate", folder):
        ...

One file a source, `said/debate.txt`, has every item under a line `=== COMMAND`: what a command
printed, or a file that it wrote. `{}` is the source and `{out}` a folder for files.
"""

import base64
import contextlib
import difflib
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import polars as pl

from tests.analysis.ballots import test_convert_to_long_format as shapes
from tests.guards import sources, systems
from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.claims.claims_file_and_check_of_claims import ClaimsFile
from tutorsim.analysis.recount.result_models import RecountResult
from tutorsim.cli import main
from tutorsim.errors import BallotFileError, UsageError
from tutorsim.kernel.cost_plan import PriceTable
from tutorsim.records import RetestHead, RetestRecord, RunRecord
from tutorsim.records.ratings import RatedSheet
from tutorsim.records.run_head_and_reading_run_folders_and_retests import (
    StudySettings,
    SystemSettings,
)
from tutorsim.replay.manifests_of_recordings_and_retests_provenance import Manifest, RetestManifest
from tutorsim.system_registry import load
from tutorsim.systems.debate.settings import DebateVariant
from tutorsim.systems.group.lesson_problem_and_duel_scenario_files import Lesson, Scenario
from tutorsim.systems.group.settings import GroupCatalog
from tutorsim.systems.panel.settings_and_members_of_compared_panels import PanelCatalog

__all__ = ["COSTLY", "GUARDED", "changes", "held", "items_of", "kept_as", "place_of"]

SAID: Final = Path(__file__).with_name("said")
ROOT: Final = Path(__file__).parents[2]
LARGE: Final = 5_000
"""Characters; what is longer is kept by its head and a hash."""
HEAD: Final = 40
"""Lines of what a reader sees of something large."""
SHOWN: Final = 12
"""Changed lines of an item that are told."""

SYSTEMS: Final = ("panel", "debate", "oversight", "group")

Make = Callable[[Path], Path | tuple[Path, Path]]


class Guarded(NamedTuple):
    """A source, or two, and what is asked about it."""

    make: Make
    commands: tuple[str, ...]


_SCREENS: Final = ("summary {}", "recount {}", "report {} -o {out}/page.md")
_OF_BALLOTS: Final = (
    *_SCREENS,
    "summary {} --json",
    "recount {} --json",
    "recount {} --turns {out}/turns.csv",
    "recount {} --full",
    "export {} -o {out}/tables",
)
_OF_RUNS: Final = (
    *_OF_BALLOTS,
    "recount {} --threshold 0.5 --section outcomes --json",
    "diverge {} --claims {out}/claims.json --rule ranked",
    "diverge {} --rule ranked --json",
    "diverge {} --rule condorcet --ties fallback --exempt 1 --episodes {out}/episodes.csv",
    "diverge {} --tie-policy random --json",
    "compare {}",
)
_OF_RECORDINGS: Final = (
    "verify {}",
    "verify {} --json",
    "verify {} --wordings current --json",
    "show {}",
    "show {} humaneval.running-max.easily_frustrated_beginner.simple",
    "show {} humaneval.running-max.easily_frustrated_beginner.simple --json",
    "run {}/study.toml --dry-run",
    "run {}/study.toml --dry-run --json",
    "branch {} --rule ranked --plan",
    "branch {} --rule ranked --plan --json",
    "retest {} --repeats 2 --plan",
    "retest {} --repeats 2 --plan --json",
    "audit {} -o {out}/audit --dry-run",
    "tasks show {}/study.toml",
)
_OF_SYSTEMS: Final = (
    "verify {}",
    "verify {} --json",
    "show {}",
    "show {} --json",
    "summary {}",
    "summary {} --json",
    "recount {} --json",
    "retest {} --repeats 2 --plan",
    "run {}/study.toml --dry-run",
    "run {}/study.toml --dry-run --json",
    "cassette list {} --json",
    "cassette show {}",
    "cassette show {} --json",
    "cassette verify {}",
    "cassette verify {} --json",
)
_OF_PLAYED: Final = (
    *_SCREENS,
    "summary {} --full",
    "summary {} --json",
    "recount {} --claims {out}/claims.json --full",
    "recount {} --json",
    "report {} -o {out}/page.html",
    "export {} -o {out}/tables",
    "export {} -o {out}/tables --format csv",
    "compare {}",
    "diverge {} --rule ranked",
    "branch {} --rule ranked --plan",
    "audit {} -o {out}/audit --dry-run",
)
_OF_IMPORTED: Final = (
    "summary {}",
    "summary {} --claims {out}/claims.json --full",
    "recount {}",
    "recount {} --claims {out}/claims.json --full",
    "recount {} --json",
    "report {} -o {out}/page.html",
    "export {} -o {out}/tables --format csv",
)
_OF_TWO: Final = (
    "compare {} {}",
    "compare {} {} --claims {out}/claims.json --full",
    "compare {} {} --json",
)
_OF_RETESTS: Final = ("summary {}", "summary {} --full", "summary {} --json", _SCREENS[2])
_OF_RATED: Final = (
    *_SCREENS,
    "summary {} --json",
    "rate {} --export {out}/sheet.csv --of proposals --items 6 --raters 1",
    "rate {} --export {out}/sheet.html --items 3 --raters 1",
    "rate {} --export {out}/sheet.txt",
)
_CHECKED: Final = ("check {}", "check {} --json")
_FEW: Final = ("--targets simple,cumulative,approval,condorcet", "--exempt 0,1")


def _some(*targets):
    asked = " ".join(targets)
    return (
        "summary {} --json",
        f"recount {{}} {asked} --json",
        f"recount {{}} {asked} --turns {{out}}/turns.csv",
        "export {} -o {out}/tables",
    )


def _with_set(*settings):
    return tuple(f"recount {{}} --set {one}{form}" for one in settings for form in ("", " --json"))


def _charts(*names):
    drawn = tuple(f"report {{}} --chart {name} -o {{out}}/{name}.json" for name in names)
    return (*drawn, "report {} --chart none -o {out}/none.svg")


def _show(*episodes):
    return tuple(f"show {{}} {one}{form}" for one in episodes for form in ("", " --json"))


def _two(study):
    def make(folder):
        return (
            systems.played(folder / "first", study),
            systems.played(folder / "second", study, seed=8),
        )

    return Guarded(make, _OF_TWO)


GUARDED: Final[Mapping[str, Guarded]] = {
    "demo": Guarded(
        lambda folder: _replayed(folder, "demo"),
        (
            *_OF_RUNS,
            "report {} -o {out}/page.html",
            "rate {} --export {out}/sheet.csv --of answers --items 4 --raters 1",
        ),
    ),
    "branch": Guarded(sources.branched, _OF_RUNS),
    "parent and branch": Guarded(sources.parent_and_branch, _OF_TWO),
    "retest": Guarded(sources.retested, _OF_RUNS),
    "several formats": Guarded(sources.several_formats, _OF_RUNS),
    "rated": Guarded(lambda folder: systems.rated(folder, said), _OF_RATED),
    "120 turns": Guarded(lambda folder: sources.generated(folder, 120), (*_OF_BALLOTS, *_CHECKED)),
    "three roles": Guarded(
        lambda folder: sources.drawn(folder, 3, 3, 24), (*_OF_BALLOTS, *_CHECKED)
    ),
    "five candidates": Guarded(lambda folder: sources.drawn(folder, 5, 2, 12), _some()),
    "six roles": Guarded(lambda folder: sources.drawn(folder, 6, 6, 8), _some(*_FEW)),
    "eight roles": Guarded(lambda folder: sources.drawn(folder, 8, 8, 4), _some(*_FEW)),
    "rich ballots": Guarded(sources.rich, (*_OF_BALLOTS, *_CHECKED)),
    "PrefLib": Guarded(sources.preflib, (*_OF_BALLOTS, *_CHECKED)),
    "three lines": Guarded(sources.three_lines, (*_SCREENS, "check {}", "summary {} --json")),
    "recording": Guarded(lambda folder: _recording(folder, "demo"), _OF_RECORDINGS),
    **{
        name: Guarded(lambda folder, name=name: _recording(folder, name), _OF_SYSTEMS)
        for name in ("debate", "group", "oversight", "oversight-audit")
    },
    "council": Guarded(
        lambda folder: _council(folder), (*_OF_PLAYED, *_show("truthfulqa.rankings-3"), *_CHECKED)
    ),
    **{
        f"logs of {program}": Guarded(
            lambda folder, make=make: make(folder / "made", said),
            (
                f"import {program} {{}}/logs -o {{out}}/run",
                *(command.replace("{}", "{}/run") for command in _OF_IMPORTED),
            ),
        )
        for program, make in (("council", systems.council_logs), ("mallm", systems.mallm_logs))
    },
    "debates": Guarded(
        lambda folder: systems.played(folder / "run", systems.DEBATE),
        (
            *_OF_PLAYED,
            *_charts("protocols", "rounds"),
            *_with_set("vote_from=1,2", "majority=at_least_half", "scoring=mallm"),
            *_with_set(
                "undecided=leader,none", "merge_identical=true", "agreement_reading=lenient"
            ),
            *_show(*(f"strategyqa.strategyqa-0001.default.{c}.r01" for c in ("simple", "full"))),
            *_CHECKED,
        ),
    ),
    "lessons": Guarded(
        lambda folder: systems.played(folder / "run", systems.GROUP),
        (
            *_OF_PLAYED,
            *_charts("speakers", "balance", "thresholds"),
            *_with_set("lambda=0.9", "threshold=2.5", "interrupt_threshold=3", "silence=decay"),
            *_with_set(
                "criteria=relevance+urgency", "criteria=novelty", "selection=inner_thoughts"
            ),
            *_show(
                "lesson.run.person.self_select",
                "lesson.run.tom_average.next_speaker",
                "scenario.two_5Falone.none.duel",
            ),
        ),
    ),
    "labels": Guarded(
        lambda folder: systems.played(folder / "run", systems.OVERSIGHT),
        (
            *_OF_PLAYED,
            *_charts("accuracy", "scores", "differences", "adaptive", "calibration"),
            *_with_set("reading=strict,lenient", "over=items"),
            *_show(*(f"mrbench.cookies-1-Hammer.none.{c}" for c in ("hpo", "self_consistency"))),
        ),
    ),
    "panels": Guarded(
        lambda folder: systems.played(folder / "run", systems.PANELS), (*_OF_PLAYED, *_CHECKED)
    ),
    "audit": Guarded(
        lambda folder: _replayed(folder, "oversight-audit"),
        (*_OF_PLAYED, "rate {} --export {out}/sheet.csv --items 6 --raters 1"),
    ),
    "two runs of panels": Guarded(sources.two_panels, _OF_TWO),
    "two runs of more tasks": _two(systems.PANELS),
    "two runs of debates": _two(systems.DEBATE),
    "two runs of lessons": _two(systems.GROUP),
    "two runs of labels": _two(systems.OVERSIGHT),
    **{
        f"{name} asked again": Guarded(
            lambda folder, study=study: systems.asked_again(folder, study), _OF_RETESTS
        )
        for name, study in (
            ("debates", systems.DEBATE),
            ("lessons", systems.GROUP),
            ("labels", systems.OVERSIGHT),
        )
    },
    "refused files": Guarded(lambda folder: folder, ()),
    "read files": Guarded(lambda folder: folder, ()),
    "fields": Guarded(lambda folder: folder, ()),
}
WRITTEN: Final = {
    **{name: (load(name, "system").study, load(name, "record")) for name in SYSTEMS},
    "parts of studies": (PanelCatalog, DebateVariant, GroupCatalog, Lesson, Scenario, PriceTable),
    "runs": (RunRecord, StudySettings, SystemSettings, RetestHead, RetestRecord, RatedSheet),
    "recordings": (Manifest, RetestManifest),
    "answers": (RecountResult, ClaimsFile),
}
"""Models of what people write and what is written for them."""
COSTLY: Final = (
    *("demo", "branch", "retest", "several formats", "120 turns", "three roles"),
    *("five candidates", "six roles", "eight roles", "rich ballots", "recording"),
    *("logs of council", "logs of mallm", "read files", "panels", "debates"),
    "labels",
)
"""What CI holds with the other costly tests."""


def _replayed(folder, name):
    said(f"replay {ROOT / 'cassettes' / name} --log-dir {folder / name}")
    return folder / name


def _council(folder):
    said(f"import council {ROOT / 'cassettes' / 'council'} -o {folder / 'run'}")
    return folder / "run"


def _recording(folder, name):
    return Path(shutil.copytree(ROOT / "cassettes" / name, folder / "recording"))


def place_of(name):
    """The file that holds what was said of a source."""
    return SAID / f"{name.replace(',', '').replace(' ', '-')}.txt"


def held(name):
    """Item → text, as the file of a source has them; none where there is no file."""
    place = place_of(name)
    parts = re.split(r"^=== (.+)\n", place.read_text("utf-8") if place.exists() else "", flags=re.M)
    return {item: text.strip("\n") for item, text in zip(parts[1::2], parts[2::2], strict=True)}


def kept_as(items):
    """The text of such a file."""
    return "\n".join(f"=== {item}\n{text}\n" for item, text in items.items())


def changes(known, found):
    """Each item that is new, gone or changed, and its first changed lines."""
    for item in {**known, **found}:
        if item not in known or item not in found:
            yield f"{item}: {'new' if item in found else 'gone'}"
        elif known[item] != found[item]:
            lines = difflib.unified_diff(
                known[item].splitlines(), found[item].splitlines(), n=0, lineterm=""
            )
            changed = [line[:160] for line in lines if not line.startswith(("---", "+++", "@@"))]
            more = [f"… {len(changed) - SHOWN} lines more"] if len(changed) > SHOWN else []
            yield "\n  ".join([f"{item}: changed", *changed[:SHOWN], *more])


def items_of(name, folder):
    """Item → text to keep, of one source.

    `refused files` are all bad ballot files, and `read files` are ballots in the many shapes that
    people write them in, each kept as a hash of what it is read as; `fields` are what study files,
    records, tasks and tables have: each field's type, bounds and default.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if name == "refused files":
        found = _refusals(folder)
    elif name == "read files":
        found = _readings(folder)
    elif name == "fields":
        found = iter(_fields().items())
    else:
        found = _answers(GUARDED[name], folder)
    return {item: _kept(item, text.replace(str(folder), "FOLDER")) for item, text in found}


def _kept(item, text):
    lines = [line.rstrip() for line in text.splitlines()]
    if len(text) <= LARGE:
        return "\n".join(lines).strip("\n")
    head = [] if re.search(r"--json$|\.(html|json|csv|parquet)$", item) else lines[:HEAD]
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return "\n".join([*head, f"[{len(text):,} characters, {digest}]"]).strip("\n")


def _answers(guarded, folder):
    made = guarded.make(folder)
    places = made if isinstance(made, tuple) else (made, made)
    for i, command in enumerate(guarded.commands):
        out = folder / f"out{i}"
        out.mkdir()
        yield command, said(command.format(*places, out=out))
        for place in sorted(out.glob("*")):
            yield from ((f"{command} → {name}", text) for name, text in _written(place, out))


def _refusals(folder):
    for i, (wrong, (name, content)) in enumerate(sources.REFUSED.items()):
        file = folder / str(i) / name
        file.parent.mkdir(parents=True)
        file.write_bytes(content())
        by_text: dict[str, list[str]] = {}
        for command in ("summary", "recount", "export -o {out}"):
            text = said(f"{command.format(out=folder / f'tables{i}')} {file}")
            by_text.setdefault(text, []).append(command.split()[0])
        yield from ((f"{wrong}: {', '.join(names)}", text) for text, names in by_text.items())


def _readings(folder):
    cases = {
        "without hints": [(one.name, one.text, Hints()) for one in shapes.FOUND],
        "read": [(one.name, one.text, one.hints) for one in shapes.NATURAL.values()],
        "refused": [(one.name, one.text, one.hints) for one in shapes.REFUSED.values()],
    }
    for what, files in cases.items():
        for change in _ROWS:
            told = [
                _reading(folder / what / change / str(i), change, *one)
                for i, one in enumerate(files)
            ]
            kept = [hashlib.sha256(text.encode()).hexdigest()[:8] for text in told]
            lines = [f"{i}: {' '.join(kept[i : i + 8])}" for i in range(0, len(kept), 8)]
            yield f"{what}: {change}", "\n".join(lines)


_ROWS: Final = {
    "as it is": lambda rows: rows,
    "a row fewer": lambda rows: rows[:-1],
    "the last row again": lambda rows: [*rows, *rows[-1:]],
}


def _reading(folder, change, name, text, hints):
    """What is said of a file, and the rows that it is read as and what was assumed."""
    folder.mkdir(parents=True)
    file = folder / name
    file.write_text("".join(_ROWS[change](text.splitlines(keepends=True))), encoding="utf-8")
    check = said(f"check '{file}' --json") if change == "as it is" else ""
    return (check + _read(file, hints)).replace(str(folder), "FOLDER")


def _read(file, hints):
    try:
        source = open_source(file, hints=hints)
    except (BallotFileError, UsageError) as asked:
        return f"{asked.what} {asked.why} {asked.hint}"
    assumed = (source.budget, source.top, source.fallback_order, *source.notes)
    return source.ballots.write_ndjson() + "\n".join(map(str, assumed))


def _fields():
    found: dict[str, str] = {}
    for where, models in WRITTEN.items():
        for model in models:
            schema = model.model_json_schema()
            parts = {**schema.get("$defs", {}), model.__name__: schema}
            for name, part in parts.items():
                lines = [
                    f"{name}: {_bare(one)}" for name, one in part.get("properties", {}).items()
                ]
                required = f"required: {' '.join(part.get('required', ()))}"
                text = "\n".join([*lines, required])
                if text not in found.values():
                    found[f"{where}: {name}"] = text
    return found


def _bare(field):
    kept = {k: v for k, v in field.items() if k not in ("title", "description")}
    return json.dumps(kept, ensure_ascii=False)


def _written(place, out):
    """A file, or a folder's files; what lies in folders below it is one item each."""
    if place.is_file():
        yield str(place.relative_to(out)), _content(place)
        return
    for inner in sorted(place.glob("*")):
        files = [inner] if inner.is_file() else sorted(p for p in inner.rglob("*") if p.is_file())
        text = "\n".join(f"{file.relative_to(out)}\n{_content(file)}" for file in files)
        yield str(inner.relative_to(out)), text


def _content(file):
    if file.suffix == ".parquet":
        frame = pl.read_parquet(file)
        return f"{frame.schema}\n{frame.write_ndjson()}"
    return unpacked(file.read_text(encoding="utf-8"))


_PACK: Final = re.compile(r'(<script type="application/octet-stream"[^>]*>)([^<]*)')


def unpacked(page):
    """A page with its data as text, whatever library deflated them."""
    return _PACK.sub(lambda found: found[1] + _inflated(found[2]), page)


def _inflated(data):
    return zlib.decompress(base64.b64decode(data), -zlib.MAX_WBITS).decode()


def said(command):
    """What a command, run in this process, prints: stdout, then stderr and exit code, if any."""
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
    parts = [out.getvalue().rstrip("\n")]
    if err.getvalue():
        parts.append(f"--- stderr\n{err.getvalue()}".rstrip("\n"))
    if code:
        parts.append(f"--- exit {code}")
    return "\n".join(parts).strip("\n")
