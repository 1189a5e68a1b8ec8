"""Roles, personas and wordings: data that a study can add to without code.

The shipped data is `roles.toml`, `personas.toml` and `prompts.toml` beside this module; a
study's `[catalog]` table adds entries or replaces them. Templates use `$name`; what is filled
in is never expanded again, so text from a model cannot reach another placeholder.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources
from string import Template
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tutorsim.errors import CatalogError

__all__ = ["Catalog", "Persona", "Role", "load_catalog", "with_overrides"]


class Role(BaseModel):
    """A kind of tutor."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str = Field(min_length=1)
    """How prompts name the role, without an article."""
    objective: str = Field(min_length=1)
    """What its replies are for; completes "Your objective:"."""
    means: str = Field(min_length=1)
    """How it gets there, in whole sentences."""


class Persona(BaseModel):
    """A kind of student. Dimensions lie between 0 and 1."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prior_knowledge: float = Field(ge=0, le=1)
    confidence: float = Field(ge=0, le=1)
    persistence: float = Field(ge=0, le=1)
    frustration_sensitivity: float = Field(ge=0, le=1)
    help_seeking: float = Field(ge=0, le=1)
    character: str = Field(min_length=1)
    """How the student behaves, in whole sentences."""


class Catalog(BaseModel):
    """All roles, personas and templates that a study can name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    roles: dict[str, Role]
    personas: dict[str, Persona]
    prompts: dict[str, str]

    def fill(self, template: str, **values: object) -> str:
        """Fill a template; surrounding white space goes.

        Raises:
            KeyError: If there is no such template, or a placeholder has no value.
            ValueError: If a `$` in the template is neither doubled nor before a name.
        """
        form, to_fill = _form(self.prompts[template])
        return (form % values).strip() if to_fill else form

    def digest(self) -> str:
        """SHA-256 over every entry, independent of their order."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=512)
def _form(template: str) -> tuple[str, bool]:
    """A template as a format of the `%` operator, and whether it has placeholders.

    A template is read once and filled for every call. One without placeholders is its text,
    stripped.
    """
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
    return (form, True) if to_fill else ((form % ()).strip(), False)


@cache
def load_catalog() -> Catalog:
    """The shipped catalog."""
    here = resources.files(__name__)
    parts = {
        part: tomllib.loads((here / f"{part}.toml").read_text(encoding="utf-8"))
        for part in ("roles", "personas", "prompts")
    }
    return Catalog.model_validate(parts)


def with_overrides(catalog: Catalog, overrides: Mapping[str, Any], *, where: str) -> Catalog:
    """The catalog with a study's own entries added or put in place of shipped ones.

    Args:
        catalog: What to start from.
        overrides: The study's `[catalog]` table: `roles`, `personas`, `prompts`.
        where: The study file, for error texts.

    Raises:
        CatalogError: On an unknown part or template, a wrong value, or a placeholder that the
            shipped template does not have.
    """
    unknown = set(overrides) - set(Catalog.model_fields)
    if unknown:
        raise CatalogError(
            f"{where}: [catalog] has no part {sorted(unknown)[0]!r}.",
            hint="Its parts are roles, personas and prompts.",
        )
    for part, entries in overrides.items():
        if not isinstance(entries, Mapping):
            raise CatalogError(
                f"{where}: catalog.{part} is {entries!r}, not a table.",
                hint=f"Write its entries under [catalog.{part}].",
            )
    merged = {
        part: {**catalog.model_dump()[part], **overrides.get(part, {})}
        for part in Catalog.model_fields
    }
    for name, text in overrides.get("prompts", {}).items():
        _check_template(catalog, name, text, where)
    try:
        return Catalog.model_validate(merged)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise CatalogError(
            f"{where}: catalog.{place}: {first['msg']}.",
            hint="A role has title, objective and means; a persona has five dimensions from 0 to 1 "
            "and a character.",
        ) from error


def _check_template(catalog: Catalog, name: str, text: object, where: str) -> None:
    shipped = catalog.prompts.get(name)
    if shipped is None:
        raise CatalogError(
            f"{where}: there is no prompt template {name!r}.",
            hint="The templates are " + ", ".join(sorted(catalog.prompts)) + ".",
        )
    template = Template(text if isinstance(text, str) else "")
    allowed = set(Template(shipped).get_identifiers())
    extra = set(template.get_identifiers()) - allowed
    if not isinstance(text, str) or not template.is_valid() or extra:
        raise CatalogError(
            f"{where}: catalog.prompts.{name} is no usable template.",
            why=f"Placeholders that it cannot have: {', '.join(sorted(extra)) or 'a lone $'}.",
            hint="It can have " + ", ".join(f"${field}" for field in sorted(allowed)) + ".",
        )
