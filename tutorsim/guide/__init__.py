"""The guide: one Markdown page a topic, in this folder, and one made from docstrings."""

import inspect
from collections.abc import Iterator
from importlib import import_module, resources
from typing import Any, Final

from tutorsim.errors import UsageError

__all__ = ["TOPICS", "page"]

TOPICS: Final = {
    "recording": "Record a study: its file, costs, interruptions, keys.",
    "replay": "Replay and verify, in CI and in tests; environment variables.",
    "claims": "Cite a number of a report, and compute every one again.",
    "recounts": "What other rules would have chosen, and what that assumes.",
    "statistics": "What intervals and tests hold, and how many tasks show what.",
    "futures": "Branch, retest and format invariance: three experiments on a recording.",
    "panels": "Compare panels of other sizes and roles, and placebos.",
    "rating": "People as judges: rating sheets, agreement, the model judge beside people.",
    "ballots": "Ballots from elsewhere.",
    "debate": "Debates that end by a vote or a consensus, and every protocol on one discussion.",
    "council": "Councils of models: who ranked whom, and what another rule would have chosen.",
    "oversight": "Labels for tutors' replies, and an audit of any recording.",
    "group": "Lessons in which agents decide when to speak, and a person can take part.",
    "panel": "Record and test a panel of your own, which is no study of ours.",
    "python": "The same questions in Python.",
    "api": "Every name for Python, made from its docstring.",
    "extending": "Add a task format, a rule, a ballot format, a system, a table with a chart.",
    "sandbox": "How students' programs are judged.",
    "speed": "How fast it is, and how to measure it again.",
}
"""Topic → what its page is about, in the order to read them."""


_OPENED: Final = ("tutorsim.python_api_of_run", ("Run", "Recount"))
_FIXTURES: Final = ("replayed_study", "replayed_episode", "recorded", "recorded_http")


def page(topic: str) -> str:
    """The text of a page, in Markdown; a topic that is none is a `UsageError`."""
    if topic not in TOPICS:
        raise UsageError(
            f"The guide has no page {topic!r}.",
            why=f"Its pages are {', '.join(TOPICS)}.",
            hint="`tutorsim guide` says what each is about.",
        )
    if topic == "api":
        return "\n".join(_api())
    return (resources.files(__name__) / f"{topic}.md").read_text(encoding="utf-8")


def _api() -> Iterator[str]:
    """The lines of the page of names for Python."""
    yield "# Every name for Python"
    package = import_module("tutorsim")
    for name in package.__all__:
        if name != "__version__":
            yield from _described(f"tutorsim.{name}", getattr(package, name))
    module, names = _OPENED
    for name in names:
        yield from _described(name, getattr(import_module(module), name))
    yield "\n## Fixtures of pytest\n"
    plugin = import_module("tutorsim.pytest_plugin")
    yield from (f"- `{name}`: {_first(getattr(plugin, name))}" for name in _FIXTURES)
    yield "\n## Errors\n\n```text"
    yield inspect.getdoc(import_module("tutorsim.errors")) or ""
    yield "```\n"


def _described(name: str, value: Any) -> Iterator[str]:
    """A name with its signature and its docstring; of a class its public members too."""
    yield f"\n## {name}\n"
    if not inspect.isclass(value):
        yield f"`{name}{inspect.signature(value)}`\n"
    yield from _text(value)
    for member, held in vars(value).items() if inspect.isclass(value) else ():
        if member.startswith("_") or not inspect.getdoc(held):
            continue
        if inspect.isfunction(held):
            yield f"\n### .{member}\n\n`{member}{inspect.signature(held)}`\n"
            yield from _text(held)
        else:
            yield f"\n- `.{member}`: {_first(held)}"


def _first(value: Any) -> str:
    """The summary of a docstring, on one line."""
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())


def _text(value: Any) -> Iterator[str]:
    """A docstring in Markdown: its sections as headings, what they name as lists."""
    section = False
    for line in (inspect.getdoc(value) or "").splitlines():
        if line in ("Args:", "Raises:", "Returns:", "Attributes:"):
            section = True
            yield f"**{line.rstrip(':')}**\n"
        elif section:
            name, colon, said = line.strip().partition(": ")
            named = colon and not line.startswith("     ") and name.isidentifier()
            yield f"- `{name}`: {said}" if named else line.strip()
        else:
            yield line
