"""`tutorsim guide` and `doctor`: the pages that go with the README, and what a machine can do."""

import inspect
import os
from collections.abc import Iterator
from importlib import import_module, resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import click

from tutorsim.cli.console_progress_and_safe_text import emit_json, out, safe
from tutorsim.cli.options_that_commands_share import sandbox_option
from tutorsim.errors import SandboxError, UsageError
from tutorsim.sandbox.protection_levels_limits_and_near_limit import Setting

# --- Guide ---------------------------------------------------------------------------------------

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

_OPENED: Final = ("tutorsim.opened_run_and_recount_for_python", ("Run", "Recount"))
_FIXTURES: Final = ("replayed_study", "replayed_episode", "recorded", "recorded_http")


@click.command()
@click.argument("topic", required=False)
def guide(topic: str | None) -> None:
    """Print the page of the guide about TOPIC, or say which topics there are.

    The blocks of a page run from top to bottom in an empty folder after `tutorsim demo --log-dir
    runs/demo`. On a terminal a page is laid out; elsewhere it is printed as it is, in Markdown.
    """
    console = out()
    if topic is None:
        width = max(map(len, TOPICS))
        for name, about in TOPICS.items():
            console.print(f"{name:<{width}}  {about}", soft_wrap=True)
        return
    text = page(topic)
    if not console.is_terminal:
        click.echo(text, nl=False)
        return
    from rich.markdown import Markdown

    console.print(Markdown(text))


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
    return (resources.files("tutorsim") / "guide" / f"{topic}.md").read_text(encoding="utf-8")


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
    plugin = import_module("tutorsim.pytest_plugin_replayed_studies_and_cassettes")
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


# --- Doctor --------------------------------------------------------------------------------------


@click.command()
@sandbox_option("Sandbox level to try.")
@click.option("--json", "as_json", is_flag=True, help="Report as JSON.")
def doctor(level: Setting, as_json: bool) -> None:
    """Say what this installation and machine can do. No call is made.

    Exit code 6 when no sandbox level works, so that programming tasks cannot be recorded; 1 when
    the installation lacks what counts and reports.
    """
    facts = _facts(level)
    if as_json:
        emit_json(facts)
    else:
        _show(facts)
    if not facts["analysis"]:
        raise click.exceptions.Exit(1)
    if facts["sandbox"].get("problem"):
        raise click.exceptions.Exit(SandboxError.exit_code)


def _facts(level: Setting) -> dict[str, Any]:
    from tutorsim.kernel.study_file_and_episode_spec import shipped_studies
    from tutorsim.replay import package_versions
    from tutorsim.runner.find_and_check_recording import bundled_recording

    bundled = bundled_recording()
    return {
        "packages": package_versions(),
        "analysis": find_spec("tutorsim.analysis") is not None,
        "credentials": _credentials(),
        "base_url": "default" if not os.environ.get("ANTHROPIC_BASE_URL") else "set by environment",
        "recording_refused": bool(os.environ.get("CI")),
        "bundled_recording": str(bundled) if bundled else None,
        "shipped_studies": list(shipped_studies()),
        "sandbox": _sandbox(level),
        "writable": {name: os.access(name, os.W_OK) for name in (str(Path.cwd()),)},
    }


def _credentials() -> str:
    """Which variable holds a credential; never the credential."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        if os.environ.get(name):
            return f"from {name}"
    return "none; replaying needs none"


def _sandbox(level: Setting) -> dict[str, Any]:
    from tutorsim.sandbox import Sandbox

    try:
        with Sandbox(level) as sandbox:
            return sandbox.report()
    except SandboxError as error:
        return {"setting": level, "problem": str(error)}


def _show(facts: dict[str, Any]) -> None:
    console = out()
    versions = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
    console.print(safe(f"Packages     {versions}"))
    if not facts["analysis"]:
        console.print("Analysis     missing: nothing can be counted; install tutorsim again")
    console.print(safe(f"Credentials  {facts['credentials']}"))
    console.print(safe(f"Endpoint     {facts['base_url']}"))
    if facts["recording_refused"]:
        console.print("Recording    refused because CI is set; replay and verify work")
    console.print(safe(f"Bundled      {facts['bundled_recording'] or 'not found'}"))
    console.print(safe(f"Studies      {', '.join(facts['shipped_studies'])}"))
    sandbox = facts["sandbox"]
    if "problem" in sandbox:
        console.print(safe(f"Sandbox      {sandbox['problem']}"))
        return
    console.print(safe(f"Sandbox      level {sandbox['level']}, workers: {sandbox['workers']}"))
    for layer, status in sandbox["layers"].items():
        alone = len(sandbox["proven"].get(layer, ()))
        proof = f" (alone it stopped {alone} of the probes)" if alone else ""
        console.print(safe(f"  layer      {layer}: {status}{proof}"))
    for probe, result in sandbox["probes"].items():
        console.print(safe(f"  probe      {probe}: {result}"))
