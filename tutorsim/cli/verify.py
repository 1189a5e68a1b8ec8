"""`tutorsim verify`: does a recording still give the same bytes?"""

from pathlib import Path
from typing import Any

import click

from tutorsim.cli.console import emit_json, err, out, safe

__all__ = ["verify"]


@click.command()
@click.argument("cassette_dir", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--junit",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the result as JUnit XML.",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="RUN",
    help="A run folder of the recording, to name the field that differs.",
)
@click.option("--workers", type=click.IntRange(1, 256), help="Processes.")
@click.option("--reader", type=click.Choice(["fast", "sdk"]), default="fast", show_default=True)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Report as JSON: study, provenance, "
    "episodes, calls, findings (episode_id, exit_code, what, why).",
)
def verify(
    cassette_dir: Path,
    junit: Path | None,
    against: Path | None,
    workers: int | None,
    reader: str,
    as_json: bool,
) -> None:
    """Replay CASSETTE_DIR and compare every episode with the digest of the recording.

    Exit codes: 0 the same bytes · 1 they differ · 3 a call is missing or changed · 4 the
    recording is damaged.
    """
    from tutorsim.replay import write_atomic
    from tutorsim.runner.verifying import junit_xml
    from tutorsim.runner.verifying import verify as check

    result = check(
        cassette_dir, reader="sdk" if reader == "sdk" else "fast", workers=workers, against=against
    )
    if junit is not None:
        write_atomic(junit, junit_xml(result))
    if as_json:
        emit_json(_as_json(result))
    else:
        _show(result)
    if result.exit_code:
        raise click.exceptions.Exit(result.exit_code)


def _as_json(result: Any) -> dict[str, Any]:
    manifest = result.recording.manifest
    return {
        "study": manifest.study_name,
        "provenance": manifest.provenance.model_dump(mode="json"),
        "episodes": result.episodes,
        "calls": result.calls,
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


def _show(result: Any) -> None:
    provenance = result.recording.manifest.provenance
    console = out()
    for finding in result.findings[:10]:
        err().print(safe(f"{finding.error}\n"), soft_wrap=True)
    if len(result.findings) > 10:
        err().print(f"… and {len(result.findings) - 10} more.")
    good = result.episodes - len({f.episode_id.partition(" ")[0] for f in result.findings})
    console.print(
        safe(
            f"{good:,} of {result.episodes:,} episodes ({result.calls:,} calls) give the "
            f"recorded bytes. Recorded from {provenance.kind}: {provenance.name}."
        )
    )
