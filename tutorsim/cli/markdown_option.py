"""`--markdown FILE`: what a command says, appended to a file as step summaries of CI are."""

import re
from collections.abc import Callable, Iterable
from io import StringIO
from pathlib import Path

import click
from rich.console import RenderableType

from tutorsim.cli.console import console_for, safe
from tutorsim.cli.output_elements import print_all
from tutorsim.errors import FolderError

__all__ = ["add_markdown", "markdown_option", "plain", "shown_as_markdown"]

_FENCE = "~" * 8
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def markdown_option(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--markdown`."""
    return click.option(
        "--markdown",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help='Also append to FILE in Markdown, as for "$GITHUB_STEP_SUMMARY".',
    )(command)


def add_markdown(path: Path, text: str) -> None:
    """Append a text to a file, with an empty line before it where the file has any.

    Raises:
        FolderError: If it cannot be written.
    """
    try:
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(("\n" if file.tell() else "") + text)
    except OSError as error:
        raise FolderError(
            f"{path} cannot be written.",
            why=error.strerror or str(error),
            hint="Name a file in a folder that can be written.",
        ) from error


def plain(text: str) -> str:
    """Text of any origin on one line, with every character of Markdown's own escaped."""
    return _SPECIAL.sub(r"\\\1", " ".join(safe(text).plain.split()))


def shown_as_markdown(title: str, shown: Iterable[RenderableType]) -> str:
    """What a terminal shows, under a heading, as it is laid out there."""
    written = StringIO()
    print_all(console_for(written), shown)
    text = written.getvalue().rstrip()
    return f"### {plain(title)}\n\n{_FENCE}text\n{text}\n{_FENCE}\n"
