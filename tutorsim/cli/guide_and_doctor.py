"""`tutorsim guide` and `doctor`: the pages that go with the README, and what a machine can do."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from tutorsim.cli.console_progress_and_safe_text import emit_json, out, safe
from tutorsim.errors import SandboxError
from tutorsim.guide import TOPICS, page
from tutorsim.sandbox.protection_levels_and_limits import SETTINGS, Setting

# --- Guide ---------------------------------------------------------------------------------------


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


# --- Doctor --------------------------------------------------------------------------------------


@click.command()
@click.option(
    "--sandbox",
    "level",
    type=click.Choice(SETTINGS),
    default="auto",
    show_default=True,
    help="Sandbox level to try.",
)
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
    from tutorsim.kernel.study_file_head import shipped_studies
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
