"""`tutorsim replay` and `verify`: a recording played again, and held to its bytes and claims."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tutorsim.cli.console_progress_and_safe_text import counted, emit_json, listing, out, safe, tell
from tutorsim.cli.open_run_or_recording_and_head_of_page import RunPath
from tutorsim.cli.options_that_commands_share import (
    FILE,
    FOLDER,
    PLACE,
    add_markdown,
    claims_option,
    markdown_option,
    max_age_option,
    plain,
)
from tutorsim.errors import CheckFailed, UsageError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tutorsim.sandbox import Sandbox
    from tutorsim.sandbox.protection_levels_limits_and_near_limit import Setting

MANIFEST = "manifest.json"
SHOWN = 20
"""Findings in a step summary."""


@click.command()
@click.argument("cassette_dir", type=FOLDER)
@click.option("--log-dir", type=PLACE, required=True, help="Run folder to write.")
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    help="Processes; as many as pay off by default. The bytes written are the same.",
)
@click.option("--reexecute", is_flag=True, help="Run the recorded programs again and compare.")
@click.option(
    "--sandbox", "level", default="auto", show_default=True, help="Sandbox level for --reexecute."
)
def replay(
    cassette_dir: Path, log_dir: Path, workers: int | None, reexecute: bool, level: Setting
) -> None:
    """Replay the recording in CASSETTE_DIR without a network or a key.

    Exit codes: 0 done · 1 a verdict or a call differs · 3 a call is missing or changed · 4 the
    recording or a log is damaged.
    """
    from contextlib import nullcontext

    from tutorsim.runner.replay_into_run_folder_in_several_processes import replay as play

    if level != "auto" and not reexecute:
        raise UsageError(
            "--sandbox is for --reexecute.",
            why="No other replay runs a program.",
            hint="Add --reexecute, or leave --sandbox out.",
        )
    judge: AbstractContextManager[Sandbox | None] = nullcontext()
    if reexecute:
        from tutorsim.sandbox import Sandbox

        judge = Sandbox(level)
    with judge as sandbox, counted("episodes") as count:
        run, changes = play(
            cassette_dir, log_dir=log_dir, workers=workers, sandbox=sandbox, on_progress=count
        )
    provenance = run.provenance
    tell(
        f"{run.episodes:,} episode{'s' * (run.episodes != 1)} replayed into {log_dir} "
        f"(recorded from {provenance.kind}: {provenance.name})."
    )
    if changes:
        first = changes[0]
        raise CheckFailed(
            f"Verdicts that differ when run again: {len(changes)}, the first in "
            f"{first.episode_id}, turn {first.turn}: recorded {first.recorded}, now {first.now}.",
            why="The log keeps the recorded verdicts.",
            hint="Another interpreter or other limits can do this; `tutorsim doctor` shows yours.",
        )


@click.command()
@click.argument("cassette_dir", type=PLACE)
@click.option("--junit", type=FILE, metavar="FILE", help="Write the result as JUnit XML.")
@click.option(
    "--against",
    type=FOLDER,
    metavar="RUN",
    help="A run folder of the recording, to name the field that differs.",
)
@click.option(
    "--wordings",
    type=click.Choice(["recorded", "current"]),
    default="recorded",
    show_default=True,
    help="`current` asks whether today's wordings would send the same calls.",
)
@claims_option("Also compute every number again that FILE claims.")
@click.option(
    "--claim",
    "ids",
    multiple=True,
    metavar="ID",
    help="Compute this number again, of FILE or by itself: an id, or a whole citation "
    "(tutorsim:DIGEST#ID); may be given several times.",
)
@click.option(
    "--page",
    type=FILE,
    metavar="FILE",
    help="With --claims: the page that was written with them, whose numbers are compared too. "
    "[default: the one beside them]",
)
@click.option(
    "--beside",
    type=RunPath(),
    metavar="RUN",
    help="With --claims of a comparison of two runs: the second, or its recording.",
)
@max_age_option
@markdown_option
@click.option("--workers", type=click.IntRange(1, 256), help="Processes.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Report as JSON: study, provenance, "
    "episodes, calls, unvouched (what only the manifest says), findings (episode_id, exit_code, "
    "what, why); with `--wordings current` also "
    "same and reworded (name, line, recorded, today); with --claims or --claim also "
    "claims: digest, same, differing (id, question, claimed, recomputed), missing, unknown, "
    "page, asked.",
)
def verify(
    cassette_dir: Path,
    junit: Path | None,
    claims: Path | None,
    ids: tuple[str, ...],
    page: Path | None,
    beside: Path | None,
    markdown: Path | None,
    against: Path | None,
    wordings: str,
    earliest: str | None,
    workers: int | None,
    as_json: bool,
) -> None:
    """Replay CASSETTE_DIR and compare every episode with the digest of the recording.

    Cassettes of a panel of your own are looked at as by `tutorsim cassette verify`.

    Exit codes: 0 the same bytes · 1 they differ · 3 a call is missing or changed · 4 the
    recording is damaged. With `--wordings current` a changed call gives 1.

    With --claims or --claim, numbers are computed again from the replayed recording, and 1 also
    means that a claim does not hold, or that the page beside the claims prints something else.
    Claims of ballots from elsewhere, and of runs without a recording, take those in CASSETTE_DIR's
    place. See `tutorsim guide claims`.
    """
    if page is not None and claims is None:
        raise UsageError(
            "--page names a page, and no claims are given that it was written with.",
            why="A page is held against its file of claims and the recording.",
            hint="Add --claims FILE.",
        )
    if beside is not None and claims is None:
        raise UsageError(
            "--beside names a second run, and no claims are given that compare two.",
            hint="Add --claims FILE.",
        )
    if claims is not None or ids:
        _check_fits(cassette_dir, junit, against, wordings, earliest)
        from tutorsim.cli.claims_options_and_write_or_check_claims import wanted

        asked = wanted(claims, ids, page, second=beside)
        if not (cassette_dir / MANIFEST).is_file():
            _without_recording(asked, cassette_dir, markdown, as_json=as_json)
            return
    else:
        asked = None
        if cassette_dir.is_file():
            raise UsageError(
                f"{cassette_dir} is a file, and a recording is a folder.",
                hint=f"Name its folder: `tutorsim verify {cassette_dir.parent}`.",
            )
        if not (cassette_dir / MANIFEST).is_file() and _is_of_own_panel(cassette_dir):
            if junit or against or markdown or as_json or wordings != "recorded":
                raise UsageError(
                    f"{cassette_dir} holds cassettes of a panel of your own.",
                    why="Without its program nothing can be replayed: only --max-age goes with it.",
                    hint="Leave the other options out; your own tests replay such cassettes.",
                )
            from tutorsim.cli.list_show_and_convert_recordings import check_files

            check_files(cassette_dir, earliest)
            return
    from tutorsim.replay import write_atomic
    from tutorsim.runner.verify_by_replay_against_digests import verify as check

    with counted("episodes") as count:
        result = check(
            cassette_dir,
            workers=workers,
            against=against,
            wordings="current" if wordings == "current" else "recorded",
            on_progress=count,
        )
    if junit is not None:
        write_atomic(junit, _junit_xml(result))
    found = None
    if asked is not None and not result.exit_code:
        from tutorsim.cli.claims_options_and_write_or_check_claims import claimed_of

        found = claimed_of(asked, cassette_dir, workers=workers)
    _give(result, found, markdown, as_json=as_json)
    if asked is not None and found is None:
        tell("No claim was computed again: the recording itself does not hold.")
    if result.exit_code or (found is not None and not found.holds):
        raise click.exceptions.Exit(result.exit_code or CheckFailed.exit_code)
    if earliest is not None:
        from tutorsim.cli.list_show_and_convert_recordings import check_age

        check_age(cassette_dir, earliest)


def _is_of_own_panel(folder: Path) -> bool:
    from tutorsim.replay.list_and_check_recordings import loose_cassettes

    return any(loose_cassettes(folder))


def _check_fits(
    target: Path, junit: Path | None, against: Path | None, wordings: str, earliest: str | None
) -> None:
    """Refuse options that say nothing of claims."""
    if wordings != "recorded":
        raise UsageError(
            "--claims and --claim do not go with --wordings current.",
            why="Claims are of what was recorded, in the recording's own wordings.",
            hint="Ask the two questions one after the other.",
        )
    if not target.exists():
        raise UsageError(
            f"{target} is not there.", hint="Name a recording, a run folder or a file of ballots."
        )
    if junit:
        raise UsageError(
            "--junit is about episodes, and says nothing of claims.",
            hint="Use --json or --markdown, or verify once with and once without --claims.",
        )
    if (against or earliest) and not (target / MANIFEST).is_file():
        raise UsageError(
            f"{target} is no recording; {'--against' if against else '--max-age'} is about one.",
            hint="Leave it out, or name the recording.",
        )


def _without_recording(asked: Any, run: Path, markdown: Path | None, *, as_json: bool) -> None:
    """Claims of a run or of ballots that no recording is named for."""
    from tutorsim.cli.claims_options_and_write_or_check_claims import claimed

    found = claimed(asked, run)
    _give(None, found, markdown, as_json=as_json)
    if not as_json:
        tell(f"{run} was read as it is; no recording was replayed.")
    if not found.holds:
        raise click.exceptions.Exit(CheckFailed.exit_code)


def _give(result: Any, found: Any, markdown: Path | None, *, as_json: bool) -> None:
    """What came of the recording and of its claims, each where there is one."""
    if markdown is not None:
        parts = [_markdown(result)] if result else []
        add_markdown(markdown, "\n".join([*parts, *([found.markdown()] if found else [])]))
    if as_json:
        value = _as_json(result) if result else {}
        emit_json({**value, **({"claims": found.value()} if found else {})})
        return
    if result:
        _show(result)
    if found:
        from tutorsim.cli.printed_prose_and_tables_and_published_files import print_all

        print_all(out(), found.shown())


def _as_json(result: Any) -> dict[str, Any]:
    manifest = result.recording.manifest
    value = {
        "study": manifest.study_name,
        "provenance": manifest.provenance.model_dump(mode="json"),
        "episodes": result.episodes,
        "calls": result.calls,
        "unvouched": list(result.unvouched),
        "findings": [
            {
                "episode_id": finding.episode_id,
                "exit_code": finding.error.exit_code,
                "what": finding.error.what,
                "why": finding.error.why,
            }
            for finding in result.findings
        ],
    }
    if result.reworded is not None:
        value["same"] = result.same
        value["reworded"] = [vars(one) for one in result.reworded]
    return value


def _junit_xml(verification: Any) -> bytes:
    """JUnit XML with one test case an episode."""
    from xml.etree import ElementTree  # few ask for it

    by_episode = {finding.episode_id: finding.error for finding in verification.findings}
    names = [spec.episode_id for spec in verification.recording.specs]
    known = set(names)
    names += [name for name in by_episode if name not in known]
    suite = ElementTree.Element(
        "testsuite",
        name=f"tutorsim verify {verification.recording.manifest.study_name}",
        tests=str(len(names)),
        failures=str(len(by_episode)),
        errors="0",
    )
    for name in names:
        case = ElementTree.SubElement(suite, "testcase", classname="tutorsim.verify", name=name)
        if name in by_episode:
            error = by_episode[name]
            failure = ElementTree.SubElement(case, "failure", message=_xml_safe(error.what))
            failure.text = _xml_safe(str(error))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _xml_safe(text: str) -> str:
    """The text without the characters that XML 1.0 cannot hold."""
    kept = (
        c
        if c in "\t\n\r"
        or 0x20 <= ord(c) <= 0xD7FF
        or 0xE000 <= ord(c) <= 0xFFFD
        or ord(c) >= 0x10000
        else "\ufffd"
        for c in text
    )
    return "".join(kept)


def _show(result: Any) -> None:
    console = out()
    for finding in result.findings[:10]:
        tell(f"{finding.error}\n")
    if len(result.findings) > 10:
        tell(f"… and {len(result.findings) - 10} more.")
    for one in result.reworded or ():
        console.print(safe(str(one)), soft_wrap=True)
    console.print(safe(_verdict(result)))
    if result.unvouched and result.is_manifest_true:
        alone = listing(result.unvouched)
        console.print(f"Nothing checks what the manifest alone says: {alone}.", soft_wrap=True)


def _verdict(result: Any) -> str:
    """How many episodes give their bytes, and what answered their calls."""
    what = "give the recorded bytes"
    if result.reworded is not None:
        number = len(result.reworded)
        what += f" in today's wordings; {number or 'none'} of those used {_differ(number)}"
    return (
        f"{result.same:,} of {result.episodes:,} episodes ({result.calls:,} calls) {what}. "
        f"{_recorded_from(result)}"
    )


def _recorded_from(result: Any) -> str:
    provenance = result.recording.manifest.provenance
    if not result.is_manifest_true:
        return "The manifest is contradicted, so what it was recorded from is not said."
    return f"Recorded from {provenance.kind}: {provenance.name}."


def _markdown(result: Any) -> str:
    """The verdict, and a table of what differs."""
    name = result.recording.manifest.study_name
    lines = [f"### {'❌' if result.exit_code else '✅'} verify {plain(name)}", ""]
    lines += [plain(_verdict(result)), ""]
    if result.findings:
        lines += ["| episode | what | why |", "|---|---|---|"]
        lines += [
            f"| {plain(one.episode_id)} | {plain(one.error.what)} | {plain(one.error.why)} |"
            for one in result.findings[:SHOWN]
        ]
        left = len(result.findings) - SHOWN
        lines += ["", f"… and {left} more."] if left > 0 else [""]
    lines += [f"- {plain(str(one))}" for one in result.reworded or ()]
    return "\n".join(lines).rstrip() + "\n"


def _differ(number: int) -> str:
    return "differs" if number == 1 else "differ"
