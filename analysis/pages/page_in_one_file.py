"""A page in one HTML file that loads nothing and sends nothing."""

import base64
import hashlib
from functools import cache
from typing import Any, Final

import jinja2
from markupsafe import Markup

from tutorsim.analysis.pages.words_and_safe_text import shown

_POLICY: Final = (
    "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)
"""The page's own style and script are named by hash, and nothing else runs."""


@cache
def templates(package: str) -> jinja2.Environment:
    """The templates of a package; they show every hidden character of a text."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: shown(value) if type(value) is str else value,
    )


def text_of(package: str, name: str) -> str:
    """A file beside the templates of a package as it is."""
    source, _, _ = templates(package).loader.get_source(templates(package), name)  # type: ignore[union-attr]
    return source


def page_of(package: str, name: str, *, style: str, script: str, **known: Any) -> str:
    """The page that a template of a package makes with a style and a script.

    `known`: what else the template names.
    """
    policy = _POLICY.format(style=_digest(style), script=_digest(script))
    page: str = (
        templates(package)
        .get_template(name)
        .render(style=Markup(style), script=Markup(script), policy=policy, **known)
    )
    return page


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
