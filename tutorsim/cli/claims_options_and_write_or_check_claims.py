"""Numbers that a command prints as a file of claims, and claims beside what a recording gives."""

import contextlib
import hashlib
import io
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import click
from pydantic import BeforeValidator, TypeAdapter, ValidationError
from rich.console import RenderableType

from tutorsim import __version__
from tutorsim.analysis.ballots.reading_options_and_column_words import NO_HINTS, Hints
from tutorsim.analysis.claims.claims_file_and_check_of_claims import (
    CLAIMS_VERSION,
    Checked,
    Citation,
    Claim,
    ClaimsFile,
    Difference,
    DrawnFile,
    PageName,
    SourceName,
    check_claims,
    chosen,
    citation,
    cited,
    read_claims,
    to_text,
)
from tutorsim.analysis.claims.claims_of_printed_numbers_and_page_recomputed import Printed as Part
from tutorsim.analysis.claims.claims_of_printed_numbers_and_page_recomputed import (
    Words,
    bytes_differ,
    claims_in,
    drawn_as,
    numbers_differ,
    text_differs,
)
from tutorsim.analysis.pages.document import Document
from tutorsim.analysis.pages.document_as_json_and_as_claims import cells_of, document_parts
from tutorsim.analysis.pages.document_as_markdown import to_markdown
from tutorsim.analysis.pages.numbers_printed_in_studies import Printed, printed_of
from tutorsim.analysis.systems.system_view_opened_run_and_cost import Asked, opened
from tutorsim.cli.console_progress_and_safe_text import tell
from tutorsim.cli.open_run_or_recording_and_head_of_page import check_logs
from tutorsim.cli.options_that_commands_share import TYPED, check_two_files, plain
from tutorsim.cli.printed_prose_and_tables_and_published_files import (
    Prose,
    caption,
    publish,
    styled,
)
from tutorsim.cli.terminal_documents import TableShown, document_asked
from tutorsim.errors import CheckFailed, ClaimsError, FolderError, UsageError
from tutorsim.records import EPISODES_FILE, RUN_FILE, RunRecord, read_run
from tutorsim.regular_files_and_digests import read_named, sha256_named

if TYPE_CHECKING:
    from tutorsim.kernel.cost_plan import PriceTable

ENDING: Final = ".claims.json"
Identity = tuple[str, SourceName]


@dataclass(frozen=True)
class Options:
    """What changes the numbers of a page, besides the run; `None` for what is shipped."""

    published: tuple[Printed, ...] | None = None
    prices: "PriceTable | None" = None
    hints: Hints = NO_HINTS
    panel: str | None = None
    asked: Mapping[str, Any] | None = None
    """Options given to a command, as they were typed, where all of them change what it prints."""
    beside: str | None = None
    """Digest of the second run, of a comparison of two."""

    def stated(self) -> dict[str, Any]:
        """The options that were given, as JSON has them."""
        return {
            name: form.dump_python(value, mode="json")
            for name, form in _forms().items()
            if (value := getattr(self, name)) != getattr(_SHIPPED, name)
        }


_SHIPPED: Final = Options()


@cache
def _forms() -> dict[str, TypeAdapter[Any]]:
    """Option → its form in a file of claims."""
    from tutorsim.kernel.cost_plan import PriceTable

    return {
        "published": TypeAdapter(tuple[Annotated[Printed, BeforeValidator(printed_of)], ...]),
        "prices": TypeAdapter(PriceTable),
        "hints": TypeAdapter(Hints),
        "panel": TypeAdapter(str),
        "asked": TypeAdapter(dict[str, bool | str | list[str]]),
        "beside": TypeAdapter(str),
    }


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

    Raises `ClaimsError` if one of them is unknown, or has another form.
    """
    try:
        return Options(**{n: _forms()[n].validate_python(value) for n, value in stated.items()})
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

    `second`: the second run, of a comparison of two.
    """
    if page not in ("report", "summary"):
        return _asked_again(run, page, options, second), None
    from tutorsim.kernel.cost_plan import load_prices

    asked = Asked(prices=options.prices or load_prices(), published=options.published)
    what = opened(run, hints=options.hints, panel=options.panel, asked=asked, use="document")
    document = document_asked(what, brief=page == "summary", command=page)
    return claims_of(run, page, document_parts(document, page), options), document


def _asked_again(run: Path, page: PageName, options: Options, second: Path | None) -> ClaimsFile:
    """The claims of a command given the same options again; refused if it lacks them now."""
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

    `value`: gives the result as JSON. `second`: the second run, of a comparison of two. Raises
    `UsageError` if one file is named for both.
    """
    context = click.get_current_context()
    claims, output = context.params["claims"], context.params["output"]
    check_two_files(claims, output, "command")
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
    write_claims(claims, run, page, _shown_parts(page, every), options, drawn=output)


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
    """The claims of what a page prints. `drawn`: the file that it was written to."""
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
        digest.update(bytes.fromhex(sha256_named(path)))
    return digest.hexdigest()


def write_claims(
    path: Path,
    run: Path,
    page: PageName,
    parts: Iterable[Part],
    options: Options,
    *,
    drawn: Path | None,
) -> None:
    """Write the claims of what a page prints, and say so on stderr.

    `drawn`: the file that the page was written to. Raises `FolderError` if the claims cannot be
    written.
    """
    written = None if drawn is None else drawn_as(drawn, drawn.read_bytes())
    file = claims_of(run, page, parts, options, drawn=written)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(to_text(file), encoding="utf-8", newline="\n")
    except OSError as error:
        raise FolderError(
            f"{path} cannot be written.",
            why=str(error.strerror or error),
            hint="Name a file in a folder that can be written.",
        ) from error
    tell(f"{len(file.claims):,} claims written to {path}.")


# --- Claims compared -----------------------------------------------------------------------------

SHOWN = 20
"""Claims of a kind that are named one by one; JSON has them all."""
DIGITS = 12
"""Digits of a digest that are shown."""
_ANOTHER = {"recording": "another recording", "log": "another log", "ballots": "other ballots"}
PAGES: dict[str, PageName] = {"report": "report", "summary": "summary"}


class Wanted(NamedTuple):
    """What to check."""

    path: Path | None
    """The file of claims; `None` where numbers are asked for by id alone."""
    file: ClaimsFile | None
    options: Options
    citations: tuple[Citation, ...]
    """The numbers asked for; none for all of the file."""
    page: tuple[Path, bytes] | None = None
    """The page that was written with the claims; `None` where none is at hand."""
    second: Path | None = None
    """The second run, of claims of a comparison of two."""


class Claimed(NamedTuple):
    """What came of it."""

    checked: Checked | None
    """`None` without a file of claims."""
    claims: tuple[Claim, ...]
    """The numbers asked for, as they are now."""
    digest: str
    provenance: str
    """What answered the calls."""
    page: str | None = None
    """Name of the page whose numbers were held too."""
    absent: str = ""
    """Name of the page that was written with the claims, where it is not beside them."""

    @property
    def holds(self) -> bool:
        """Whether nothing that is claimed differs."""
        return self.checked is None or self.checked.holds

    def shown(self) -> Iterator[RenderableType]:
        """What differs, what is missing or unknown, the numbers asked for, and the verdict."""
        checked = self.checked
        for one in checked.differing[:SHOWN] if checked else ():
            yield Prose(styled(f"{one.id} differs", "bold"))
            yield Prose(one.question, indent=2)
            yield Prose(f"claimed     {one.claimed}", indent=2)
            yield Prose(f"recomputed  {one.recomputed}", indent=2)
        if checked:
            yield from _more(len(checked.differing))
            yield from _listed("is claimed, and is no number of the page", checked.unknown)
            yield from _listed("is printed, and not claimed", checked.missing)
        differing = {one.id for one in checked.differing} if checked else set()
        for claim in (claim for claim in self.claims if claim.id not in differing):
            yield Prose(styled(citation(self.digest[:DIGITS], claim.id), "bold"))
            yield Prose(claim.question, indent=2)
            yield Prose(f"{claim.printed}{_beside(claim)}  ({claim.provenance})", indent=2)
        if checked:
            yield Prose(_verdict(self))
        if self.absent:
            yield caption(
                f"{self.absent} is not beside the claims, so it was not read: --page FILE."
            )

    def markdown(self) -> str:
        """The verdict on the claims, and a table of what differs."""
        checked = self.checked
        if checked is None:
            return ""
        lines = [f"### {'✅' if self.holds else '❌'} claims", "", plain(_verdict(self)), ""]
        if checked.differing:
            lines += ["| claim | claimed | recomputed |", "|---|---|---|"]
            lines += [
                f"| {plain(one.id)} | {plain(one.claimed)} | {plain(one.recomputed)} |"
                for one in checked.differing[:SHOWN]
            ]
            lines.append("")
        lines += [f"- unknown: {plain(claim.id)}" for claim in checked.unknown[:SHOWN]]
        lines += [f"- missing: {plain(claim.id)}" for claim in checked.missing[:SHOWN]]
        return "\n".join(lines).rstrip() + "\n"

    def value(self) -> dict[str, Any]:
        """The values that JSON output has."""
        found: dict[str, Any] = {"digest": self.digest}
        if self.checked is not None:
            found |= {
                "same": self.checked.same,
                "differing": [one._asdict() for one in self.checked.differing],
                "missing": [claim.id for claim in self.checked.missing],
                "unknown": [claim.id for claim in self.checked.unknown],
                "page": self.page,
            }
        return {**found, "asked": [claim.model_dump(mode="json") for claim in self.claims]}


def wanted(
    path: Path | None, asked: Sequence[str], page: Path | None = None, *, second: Path | None = None
) -> Wanted:
    """Read the file of claims, the ids and the page, before anything is replayed.

    `page`: the page; `None` takes the one beside the claims that was written with them. Raises
    `UsageError` if a second run is missing, or given where there is none; `ClaimsError` if the
    page, the file, its options or a citation cannot be read, or an id names no page; `CheckFailed`
    if the file has no claim of an id.
    """
    citations = tuple(cited(text) for text in asked)
    if path is None:
        for one in citations:
            _page_of(one.id)
        return Wanted(None, None, Options(), citations)
    file = read_claims(path)
    chosen(file, [one.id for one in citations])
    for one in citations:
        _check_digest(one, file.digest, f"the claims of {path}")
    options = options_of(file.options, path)
    _check_second(path, options, second)
    return Wanted(path, file, options, citations, _page(path, file, page), second)


def _check_second(path: Path, options: Options, second: Path | None) -> None:
    if (second is None) != (options.beside is None):
        raise UsageError(
            f"{path} claims numbers of {'one run' if options.beside is None else 'two runs'}.",
            why="Only claims that `tutorsim compare` wrote of two runs need both.",
            hint="Leave --beside out." if second else "Name the second run: --beside RUN.",
        )
    if second is not None and digest_of(second)[0] != options.beside:
        raise CheckFailed(
            f"{second} is not the second run of {path}.",
            why=f"That one's digest begins with {str(options.beside)[:DIGITS]}, and this one's "
            f"with {digest_of(second)[0][:DIGITS]}.",
            hint="Give the run that was compared.",
        )


def _page(path: Path, file: ClaimsFile, named: Path | None) -> tuple[Path, bytes] | None:
    """The page that the claims are of: the one named, else the one that stands beside them."""
    beside = [path.with_name(file.drawn.name)] if file.drawn else _of_that_name(path)
    for page in [named] if named else [one for one in beside if one.is_file()]:
        try:
            return page, read_named(page)
        except OSError as error:
            raise ClaimsError(
                f"{page} cannot be read as the page of the claims.",
                why=str(error.strerror or error),
                hint="Name the page that was written with them.",
            ) from error
    return None


def _of_that_name(claims: Path) -> list[Path]:
    """Pages that a report writes beside claims of a name."""
    if not claims.name.endswith(ENDING):
        return []
    return [claims.with_name(claims.name.removesuffix(ENDING) + form) for form in (".html", ".md")]


def claimed_of(wanted: Wanted, recording: Path, *, workers: int | None = None) -> Claimed:
    """Compute numbers again from the run that a recording replays to.

    Raises `CheckFailed` if the claims are of another recording, or no number has an id;
    `ReplayError` if a call is missing or changed.
    """
    # What replays loads slowly, and a page without claims needs none of it.
    from tutorsim.replay import read_manifest
    from tutorsim.runner.replay_into_run_folder_in_several_processes import replay_into

    digest = read_manifest(recording).recording_digest()
    for one in wanted.citations:
        _check_digest(one, digest, "the recording")
    if wanted.file is not None:
        _check_recording(wanted.path, wanted.file, digest, "recording")
    with tempfile.TemporaryDirectory(prefix="tutorsim-") as folder:
        run = replay_into(recording, Path(folder), workers=workers)
        return claimed(wanted, run)


def claimed(wanted: Wanted, run: Path) -> Claimed:
    """Compute numbers again from a run, and compare them with what is claimed.

    `run`: the run that the recording replayed to, or a run or ballots without a recording. Raises
    `CheckFailed` if the claims are of another recording, or no number has an id.
    """
    check_logs(run)
    digest, kind = digest_of(run)
    for one in wanted.citations:
        _check_digest(one, digest, f"the {kind}")
    ids = [one.id for one in wanted.citations]
    if wanted.file is None:
        pages = {name: page_claims(run, PAGES[name], Options()) for name in _pages(ids)}
        found = tuple(chosen(pages[_page_of(id_)], [id_])[0] for id_ in ids)
        kinds = [file.provenance for file in pages.values()]
        return Claimed(None, found, digest, _answered(kinds[0]))
    _check_recording(wanted.path, wanted.file, digest, kind)
    now, document = made_again(run, wanted.file.page, wanted.options, second=wanted.second)
    file = wanted.file
    if ids:
        file = file.model_copy(update={"claims": chosen(file, ids), "excerpt": True})
    known = {claim.id for claim in now.claims}
    asked = chosen(now, [id_ for id_ in ids if id_ in known])
    checked = check_claims(file, now)
    apart = tuple(_page_differs(wanted, now.claims, document, ids)) if wanted.page else ()
    return Claimed(
        replace(checked, differing=(*checked.differing, *apart)),
        asked,
        digest,
        _answered(now.provenance),
        wanted.page[0].name if wanted.page else None,
        file.drawn.name if file.drawn and not wanted.page else "",
    )


def _page_differs(
    wanted: Wanted, now: Sequence[Claim], document: Document | None, ids: Sequence[str]
) -> Iterator[Difference]:
    """What the page prints and the recording does not give."""
    assert wanted.page is not None
    assert wanted.file is not None
    path, content = wanted.page
    if wanted.file.drawn is not None:
        yield from bytes_differ(path, content, wanted.file.drawn)
    text = content.decode("utf-8", "replace")
    if document is None or wanted.file.page != "report":
        return
    if path.suffix == ".md" and not ids:
        yield from text_differs(text, to_markdown(document))
    elif path.suffix == ".html":
        yield from numbers_differ(text, now, ids)


def _check_recording(path: Path | None, file: ClaimsFile, digest: str, kind: str) -> None:
    """Refuse claims of another recording; `CheckFailed` naming both digests."""
    if (file.digest, file.digest_of) != (digest, kind):
        raise CheckFailed(
            f"{path} claims numbers of {_ANOTHER[file.digest_of]}.",
            why=f"They are of the {file.digest_of} {file.digest[:DIGITS]}, and this is the {kind} "
            f"{digest[:DIGITS]}.",
            hint=f"Give the {file.digest_of} that they were written from.",
        )


def _check_digest(one: Citation, digest: str, what: str) -> None:
    if not digest.startswith(one.digest):
        raise CheckFailed(
            f"{citation(one.digest, one.id)} cites another recording.",
            why=f"The digest of {what} begins with {digest[:DIGITS]}.",
            hint="Give the recording that is cited.",
        )


def _pages(ids: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(_page_of(id_) for id_ in ids))


def _page_of(id_: str) -> str:
    page = id_.partition(".")[0]
    if page not in PAGES:
        raise ClaimsError(
            f"{id_} is no id of a number.",
            why=f"An id begins with {' or '.join(f'{name}.' for name in PAGES)}",
            hint="The report's section “Cite a number” shows ids.",
        )
    return page


def _answered(provenance: dict[str, Any]) -> str:
    name = provenance.get("name")
    told = f"{provenance['kind']}: {name}" if name else str(provenance["kind"])
    given = provenance.get("inputs")
    return f"{told}, of texts by {_answered(given['provenance'])}" if given else told


def _beside(claim: Claim) -> str:
    """An interval that is printed in columns of its own."""
    if claim.interval is None or claim.value is None or "[" in claim.printed:
        return ""
    low, high = claim.interval
    return f" [{low}, {high}]"


def _listed(what: str, claims: Sequence[Claim]) -> Iterator[RenderableType]:
    for claim in claims[:SHOWN]:
        yield Prose(styled(f"{claim.id} {what}", "bold"))
        yield Prose(f"{claim.question} → {claim.printed}", indent=2)
    yield from _more(len(claims))


def _more(number: int) -> Iterator[RenderableType]:
    if number > SHOWN:
        yield Prose(f"… and {number - SHOWN:,} more; --json names all.")


def _verdict(found: Claimed) -> str:
    """How many claims hold, and what answered the calls."""
    checked = found.checked
    assert checked is not None
    heads = sum(one.id.startswith("(") for one in checked.differing)
    claims = checked.same + len(checked.differing) - heads + len(checked.unknown)
    apart = [
        f"{len(part):,} {word}"
        for part, word in (
            (checked.differing, "differ" if len(checked.differing) != 1 else "differs"),
            (checked.unknown, "unknown"),
            (checked.missing, "missing"),
        )
        if part
    ]
    told = f"; {', '.join(apart)}" if apart else ""
    if found.page and checked.holds:
        told += f", and so does what {found.page} prints"
    return f"{checked.same:,} of {claims:,} claims hold{told}. Answered by {found.provenance}."
