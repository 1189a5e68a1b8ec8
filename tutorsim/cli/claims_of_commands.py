"""Numbers that a command prints, as a file of claims."""

import contextlib
import hashlib
import io
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click
from pydantic import TypeAdapter, ValidationError
from rich.console import RenderableType

from tutorsim import __version__
from tutorsim.analysis.ballots.reading_options import NO_HINTS, Hints
from tutorsim.analysis.claims.claims_file import (
    CLAIMS_VERSION,
    ClaimsFile,
    DrawnFile,
    PageName,
    SourceName,
    read_claims,
    to_text,
)
from tutorsim.analysis.claims.claims_of_printed_numbers import Printed as Part
from tutorsim.analysis.claims.claims_of_printed_numbers import Words, claims_in, drawn_as
from tutorsim.analysis.pages.document import Document
from tutorsim.analysis.pages.document_as_json import cells_of, document_parts
from tutorsim.analysis.pages.published_figures import Printed, printed_of
from tutorsim.analysis.systems.system_view import Asked, opened
from tutorsim.cli.console import err, safe
from tutorsim.cli.options import TYPED
from tutorsim.cli.output_elements import Prose, publish
from tutorsim.cli.terminal_documents import TableShown, document_asked
from tutorsim.errors import ClaimsError, FolderError, UsageError
from tutorsim.kernel.cost_plan import PriceTable, load_prices
from tutorsim.records import EPISODES_FILE, RUN_FILE, RunRecord, read_run

ENDING: Final = ".claims.json"
Identity = tuple[str, SourceName]


@dataclass(frozen=True)
class Options:
    """What changes the numbers of a page, besides the run; `None` for what is shipped."""

    published: tuple[Printed, ...] | None = None
    prices: PriceTable | None = None
    hints: Hints = NO_HINTS
    panel: str | None = None
    asked: Mapping[str, Any] | None = None
    """Of a command whose options all change what it prints: those given, as they were typed."""
    beside: str | None = None
    """Digest of the second run, of a comparison of two."""

    def stated(self) -> dict[str, Any]:
        """The options that were given, as JSON has them."""
        found: dict[str, Any] = {}
        if self.published is not None:
            found["published"] = [asdict(figure) for figure in self.published]
        if self.prices is not None:
            found["prices"] = self.prices.model_dump(mode="json")
        if self.hints != NO_HINTS:
            found["hints"] = _HINTS.dump_python(self.hints, mode="json")
        if self.panel is not None:
            found["panel"] = self.panel
        if self.asked is not None:
            found["asked"] = dict(self.asked)
        if self.beside is not None:
            found["beside"] = self.beside
        return found


_FIGURES: Final = TypeAdapter(tuple[dict[str, Any], ...])
_HINTS: Final = TypeAdapter(Hints)
_NAME: Final = TypeAdapter(str)
_TYPED: Final = TypeAdapter(dict[str, bool | str | list[str]])
_NOT_ASKED: Final = (
    "claims",
    "output",
    "as_json",
    "turns",
    "outcomes",
    "episodes",
    "engine",
    "source",
)
"""Parameters that change no number: where and how a command writes."""


def options_of(stated: dict[str, Any], path: Path) -> Options:
    """The options that a file of claims states.

    Args:
        stated: From the file.
        path: The file, for errors.

    Raises:
        ClaimsError: If one of them is unknown, or has another form.
    """
    readers: dict[str, Callable[[Any], Any]] = {
        "published": lambda value: tuple(map(printed_of, _FIGURES.validate_python(value))),
        "prices": PriceTable.model_validate,
        "hints": _HINTS.validate_python,
        "panel": _NAME.validate_python,
        "asked": _TYPED.validate_python,
        "beside": _NAME.validate_python,
    }
    try:
        return Options(**{name: readers[name](value) for name, value in stated.items()})
    except KeyError as error:
        why = f"The option {error} is unknown."
    except ValidationError as error:
        why = f"{error.errors(include_url=False)[0]['msg']}."
    raise ClaimsError(
        f"{path}: its options cannot be read.", why=why, hint="Write the claims again."
    )


def page_claims(run: Path, page: PageName, options: Options) -> ClaimsFile:
    """Every number of a page of a run, computed from its log; see `made_again`."""
    return made_again(run, page, options)[0]


def made_again(
    run: Path, page: PageName, options: Options, *, second: Path | None = None
) -> tuple[ClaimsFile, Document | None]:
    """Every number of a page of a run, computed from its log, and the page if it is a document.

    Args:
        run: A run folder, or ballots from elsewhere.
        page: What printed them.
        options: What changes its numbers.
        second: The second run, of a comparison of two.
    """
    if page not in ("report", "summary"):
        return _asked_again(run, page, options, second), None
    asked = Asked(prices=options.prices or load_prices(), published=options.published)
    what = opened(run, hints=options.hints, panel=options.panel, asked=asked)
    document = document_asked(what, brief=page == "summary", command=page)
    return claims_of(run, page, document_parts(document, page), options), document


def _asked_again(run: Path, page: PageName, options: Options, second: Path | None) -> ClaimsFile:
    """The claims of a command that is given the same options again.

    Raises:
        ClaimsError: If its options are no longer known.
    """
    group = click.get_current_context().find_root().command

    assert isinstance(group, click.Group)
    command = group.get_command(click.Context(group), page)
    assert command is not None
    known = {p.name: p.opts[0] for p in command.params if isinstance(p, click.Option)}
    words: list[str] = [str(path) for path in (run, second) if path is not None]
    for name, value in (options.asked or {}).items():
        if name not in known or name in _NOT_ASKED:
            raise ClaimsError(
                f"`tutorsim {page}` cannot be asked again.",
                why=f"It has no option {name!r} that changes its numbers.",
                hint="Write the claims again.",
            )
        each = value if isinstance(value, list) else [value]
        words += [w for one in each for w in ([known[name]] if one is True else [known[name], one])]
    with tempfile.TemporaryDirectory(prefix="tutorsim-") as folder:
        claims = Path(folder) / "again.json"
        words += ["--claims", str(claims), "--output", str(Path(folder) / "page.txt")]
        with contextlib.redirect_stderr(io.StringIO()):
            command.main(words, prog_name=page, standalone_mode=False)
        return read_claims(claims)


def publish_claimed(
    run: Path,
    shown: Iterable[RenderableType],
    value: Callable[[], Any],
    *,
    second: Path | None = None,
) -> None:
    """Give what a command found where it was asked for, and its claims if they were.

    Args:
        run: What it is of.
        shown: The result for readers.
        value: Gives the result as JSON.
        second: The second run, of a comparison of two.

    Raises:
        UsageError: If one file is named for both.
    """
    context = click.get_current_context()
    claims, output = context.params["claims"], context.params["output"]
    if claims is not None and claims == output:
        raise UsageError(f"{claims} is the command's file and that of its claims.", hint=_TWO)
    every = list(shown)
    publish(every, value, as_json=context.params["as_json"], output=output)
    if claims is None:
        return
    typed = context.meta[TYPED]
    asked = {
        p.name: list(typed[p.name]) if isinstance(typed[p.name], list | tuple) else typed[p.name]
        for p in context.command.params
        if isinstance(p, click.Option) and p.name in typed and p.name not in _NOT_ASKED
    }
    options = Options(asked=asked, beside=None if second is None else digest_of(second)[0])
    page: PageName = context.command.name  # type: ignore[assignment]  # its commands are pages
    drawn = None if output is None else drawn_as(output, output.read_bytes())
    write_claims(claims, claims_of(run, page, _shown_parts(page, every), options, drawn=drawn))


_TWO: Final = "Name two files."


def _shown_parts(page: PageName, shown: Iterable[RenderableType]) -> Iterator[Part]:
    """What a command prints: its tables by name, its texts in the order that they stand in."""
    counts: Counter[str] = Counter()

    def place(name: str) -> str:
        counts[name] += 1
        return f"{page}.{name}" + (f"~{counts[name]}" if counts[name] > 1 else "")

    for part in shown:
        if isinstance(part, Prose):
            yield Words(place("text"), "", part.plain)
        elif isinstance(part, TableShown):
            made = part.made
            where = place(f"table-{made.name}")
            yield cells_of(where, made.title, made.data, made.written)


def claims_of(
    run: Path,
    page: PageName,
    parts: Iterable[Part],
    options: Options,
    *,
    drawn: DrawnFile | None = None,
) -> ClaimsFile:
    """The claims of what a page prints.

    Args:
        run: What it is of.
        page: What prints it.
        parts: What it prints.
        options: What changes its numbers.
        drawn: The file that it was written to.
    """
    head = read_run(run) if (run / RUN_FILE).is_file() else None
    digest, kind = digest_of(run)
    stated: dict[str, Any] = (
        {"kind": "elsewhere"} if head is None else head.provenance.model_dump(mode="json")
    )
    if head is not None and head.inputs is not None:
        stated["inputs"] = head.inputs.model_dump(mode="json")
    return ClaimsFile(
        claims_version=CLAIMS_VERSION,
        page=page,
        digest=digest,
        digest_of=kind,
        name=head.study.name if head else run.resolve().name,
        provenance=stated,
        made_by=f"tutorsim {__version__}",
        options=options.stated(),
        drawn=drawn,
        excerpt=False,
        claims=claims_in(parts, str(stated["kind"])),
    )


def digest_of(run: Path) -> Identity:
    """What a citation names: the digest of a run's recording, else of its log or its files."""
    if not (run / RUN_FILE).is_file():
        files = sorted(run.iterdir()) if run.is_dir() else [run]
        return _sha256(file for file in files if file.is_file()), "ballots"
    head: RunRecord = read_run(run)
    if head.recording_digest:
        return head.recording_digest, "log" if head.provenance.kind == "imported" else "recording"
    return _sha256([run / EPISODES_FILE]), "log"


def _sha256(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def write_claims(path: Path, file: ClaimsFile) -> None:
    """Write a file of claims, and say so on stderr.

    Raises:
        FolderError: If it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(to_text(file), encoding="utf-8", newline="\n")
    except OSError as error:
        raise FolderError(
            f"{path} cannot be written.",
            why=str(error.strerror or error),
            hint="Name a file in a folder that can be written.",
        ) from error
    err().print(safe(f"{len(file.claims):,} claims written to {path}."), soft_wrap=True)
