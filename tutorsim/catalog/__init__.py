"""The catalog of a system: wordings and other data that a study can add to without code.

The shipped data is `prompts.toml` and the like in the system's folder; a study's `[catalog]` table
adds entries or replaces them. Templates use `$name`; what is filled
in is never expanded again, so text from a model cannot reach another placeholder.

A recording keeps its wordings: all that its models are told, in a file that people can read.
`wordings.toml` stands beside the cassettes. Its parts (prompts, roles, personas, and whatever
else a system has) hold entries by name; an entry is a text or a table of fields. A replay takes
its wordings from there, so a recording does not change with what the package ships.
"""

import hashlib
import json
import tomllib
from collections.abc import Collection, Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, Final, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from tutorsim.errors import CatalogError, RecordingError

__all__ = [
    "WORDINGS_FILE",
    "BaseCatalog",
    "WordingNames",
    "Wordings",
    "overlaid",
    "read_catalog",
    "read_wordings",
    "templates_of",
    "with_overrides",
    "wordings_text",
]

# --- Wordings kept with a recording --------------------------------------------------------------

WORDINGS_FILE: Final = "wordings.toml"

Wordings = Mapping[str, Mapping[str, Any]]
"""Part → name → a text, or a table of fields."""

WordingNames = Mapping[str, Collection[str]]
"""Part → names of entries."""

_HEAD: Final = (
    "# All that the models of this recording are told. Every replay uses these texts, and the\n"
    "# recording's digest covers them: an edit is refused.\n\n"
)


def wordings_text(wordings: Wordings) -> str:
    """Write wordings as TOML; the same wordings give the same text.

    Texts of several lines are written as such where that keeps each of their characters.
    """
    import tomli_w  # a replay writes none

    ordered = {
        part: {name: entries[name] for name in sorted(entries)}
        for part, entries in wordings.items()
    }
    text = tomli_w.dumps(ordered, multiline_strings=True)
    if tomllib.loads(text) != ordered:  # a carriage return does not survive in a block of lines
        text = tomli_w.dumps(ordered)
    return _HEAD + text


def read_wordings(folder: Path) -> Wordings | None:
    """Read the wordings of a recording.

    Returns the wordings; `None` where the folder has none, as recordings of the first form. Raises
    `RecordingError` if the file cannot be read or does not have the form above.
    """
    path = folder / WORDINGS_FILE
    try:
        found = tomllib.loads(path.read_bytes().decode())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # bytes that are no text, and text that is no TOML
        raise _damaged(path, str(error)) from error
    for part, entries in found.items():
        if not isinstance(entries, dict):
            raise _damaged(path, f"{part} is {entries!r}, not a table.")
    return found


def _damaged(path: Path, why: str) -> RecordingError:
    return RecordingError(
        f"{path} does not hold the wordings of a recording.",
        why=why,
        hint="Restore the file from version control.",
    )


# --- Catalog -------------------------------------------------------------------------------------

C = TypeVar("C", bound="BaseCatalog")


class BaseCatalog(BaseModel):
    """What every system's catalog has: the templates of its prompts. Systems add parts."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    prompts: dict[str, str]

    def fill(self, template: str, **values: object) -> str:
        """Fill a template; surrounding white space goes.

        Raises `KeyError` if there is no such template, or a placeholder has no value; `ValueError`
        if a `$` in the template is neither doubled nor before a name.
        """
        form, to_fill = _form(self.prompts[template])
        return (form % values if to_fill else form).strip()

    def part(self, template: str, **values: object) -> str:
        """Fill a template that is a part of a prompt; white space at its ends stays.

        Raises `KeyError` or `ValueError` as `fill`.
        """
        form, to_fill = _form(self.prompts[template])
        return form % values if to_fill else form

    def wordings(self) -> Wordings:
        """Every entry as plain values."""
        return self.model_dump(mode="json")

    def only(self, names: WordingNames) -> Self:
        """The entries of these names; one that the catalog does not have is left out."""
        parts = {
            part: {name: entry for name, entry in entries.items() if name in names[part]}
            for part, entries in dict(self).items()
        }
        return type(self)(**parts)

    def digest(self) -> str:
        """SHA-256 over every entry, independent of their order."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=512)
def _form(template: str) -> tuple[str, bool]:
    """A template, read once for all calls, as a format of `%`, and whether it has places."""
    parts, end, to_fill = [], 0, False
    for found in Template.pattern.finditer(template):
        parts.append(template[end : found.start()].replace("%", "%%"))
        end = found.end()
        if (name := found["named"] or found["braced"]) is not None:
            parts.append(f"%({name})s")
            to_fill = True
        elif found["escaped"] is not None:
            parts.append(Template.delimiter)
        else:
            raise ValueError(f"{template[found.start() :][:20]!r} begins no placeholder")
    form = "".join((*parts, template[end:].replace("%", "%%")))
    return (form, True) if to_fill else (form % (), False)


def read_catalog(model: type[C], package: str) -> C:
    """A system's shipped catalog: one TOML file for each part, named after it.

    `package`: the package whose folder has the files, such as `tutorsim.systems.debate`.
    """
    parts = {part: _read_part(package, part) for part in model.model_fields}
    return model.model_validate({**parts, "prompts": dict(_templates(parts["prompts"]))})


@cache
def _read_part(package: str, part: str) -> dict[str, Any]:
    text = (resources.files(package) / f"{part}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _templates(prompts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The templates of `prompts.toml`, under its headings or none."""
    for name, value in prompts.items():
        yield from value.items() if isinstance(value, Mapping) else [(name, value)]


def templates_of(package: str, parts: Collection[str]) -> frozenset[str]:
    """Names of the templates that some call of a study can show.

    A heading of `prompts.toml`, such as `["opening or argument"]`, says in which parts of a study
    the templates under it are used; those above all headings are used in every study.

    `parts`: the parts that the study has, in the words of the headings.
    """
    found = set[str]()
    for name, value in _read_part(package, "prompts").items():
        if not isinstance(value, Mapping):
            found.add(name)
        elif not set(name.split(" or ")).isdisjoint(parts):
            found.update(value)
    return frozenset(found)


def overlaid(catalog: C, entries: Mapping[str, Any]) -> C:
    """The catalog with entries added or put in place of its own.

    Raises `ValidationError` if an entry does not have the fields of its part.
    """
    merged = {part: {**own, **entries.get(part, {})} for part, own in catalog.wordings().items()}
    return type(catalog).model_validate(merged)


def with_overrides(catalog: C, overrides: Mapping[str, Any], *, where: str) -> C:
    """The catalog with a study's own entries added or put in place of shipped ones.

    `overrides`: the study's `[catalog]` table, by part. `where`: the study file, for error texts.
    Raises `CatalogError` on an unknown part or template, a wrong value, or a placeholder that the
    shipped template does not have.
    """
    parts = tuple(type(catalog).model_fields)
    unknown = set(overrides) - set(parts)
    if unknown:
        raise CatalogError(
            f"{where}: [catalog] has no part {sorted(unknown)[0]!r}.",
            hint="Its parts are " + ", ".join(sorted(parts, key="prompts".__eq__)) + ".",
        )
    for part, entries in overrides.items():
        if not isinstance(entries, Mapping):
            raise CatalogError(
                f"{where}: catalog.{part} is {entries!r}, not a table.",
                hint=f"Write its entries under [catalog.{part}].",
            )
    for name, text in overrides.get("prompts", {}).items():
        _check_template(catalog, name, text, where)
    try:
        return overlaid(catalog, overrides)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise CatalogError(
            f"{where}: catalog.{place}: {first['msg']}.",
            hint=_fields_of(type(catalog), str(first["loc"][0])),
        ) from error


def _fields_of(catalog: type[BaseCatalog], part: str) -> str:
    """What an entry of a part has, in words."""
    entry = get_args(catalog.model_fields[part].annotation)[1]
    fields = ", ".join(getattr(entry, "model_fields", {}))
    return f"An entry of catalog.{part} has {fields}." if fields else ""


NEEDED: Final = frozenset({"attempt", "ballot", "proposals", "situation"})
"""Placeholders without which a template that has them asks about nothing."""


def _check_template(catalog: BaseCatalog, name: str, text: object, where: str) -> None:
    shipped = catalog.prompts.get(name)
    if shipped is None:
        raise CatalogError(
            f"{where}: there is no prompt template {name!r}.",
            hint="The templates are " + ", ".join(sorted(catalog.prompts)) + ".",
        )
    allowed = set(Template(shipped).get_identifiers())
    wrong = _fault_of(text, allowed)
    if wrong:
        fields = ", ".join(f"${field}" for field in sorted(allowed))
        raise CatalogError(
            f"{where}: catalog.prompts.{name} is no usable template.",
            why=wrong,
            hint=f"It can have {fields}." if fields else "It can have no placeholder.",
        )


def _fault_of(text: object, allowed: Collection[str]) -> str:
    """What is wrong with a template; empty where nothing is."""
    if not isinstance(text, str):
        return f"It is {text!r}, not a text."
    template = Template(text)
    if not template.is_valid():
        return "It has a $ that begins no placeholder; a dollar sign itself is written $$."
    found = set(template.get_identifiers())
    extra, missing = sorted(found - {*allowed}), sorted({*allowed} & NEEDED - found)
    if extra:
        return f"Placeholders that it cannot have: {', '.join(extra)}."
    if missing:
        return f"It lacks {', '.join(f'${name}' for name in missing)}, what the call is about."
    return ""
