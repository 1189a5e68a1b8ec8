"""One table of all benchmarks: what was measured, against what, and the ratio reached.

Every benchmark measures a thing and its reference side by side and puts into
`benchmark.extra_info`: `what`, `reference`, `target`, `ratio` (the figure reached, a number) and
`unit` (what stands behind the figure, such as `× faster`, `× its time` or `s`).
"""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("anthropic", "vcrpy", "pydantic", "polars", "altair", "orjson", "zstandard")
FIELDS = ("what", "reference", "target", "ratio", "unit")


def markdown(benchmarks):
    """The table as Markdown, with what it was measured on.

    Args:
        benchmarks: The `benchmarks` of a pytest-benchmark JSON file.

    Raises:
        KeyError: If a benchmark does not say what it measured.
    """
    rows = [[one["extra_info"][field] for field in FIELDS] for one in benchmarks]
    lines = [
        f"Measured on {datetime.now(UTC).date().isoformat()}: {_machine()}.",
        "",
        "| what | reference | to reach | reached |",
        "|---|---|---|---|",
        *(
            f"| {what} | {reference} | {target} | {_figure(ratio)} {unit} |"
            for what, reference, target, ratio, unit in rows
        ),
    ]
    return "\n".join(lines) + "\n"


def write_table(benchmarks, path):
    """Write the table to a file."""
    path.write_text(markdown(benchmarks), encoding="utf-8")


def _figure(ratio):
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def _machine():
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    load = os.getloadavg()[0]
    return (
        f"{_processor()}, {os.cpu_count()} cores, load {load:.1f} at the end, "
        f"Python {platform.python_version()}, {versions}"
    )


def _processor():
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(x.partition(":")[2].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()
