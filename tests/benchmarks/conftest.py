"""Benchmarks: outside the default run; `pytest tests/benchmarks -n 0 --benchmark-json FILE`.

The JSON file is pytest-benchmark's own; the table for readers is written beside it as Markdown.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.table import write_table


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_json(
    config: pytest.Config, benchmarks: list[Any], output_json: dict[str, Any]
) -> None:
    named = config.getoption("benchmark_json")
    if named is not None:
        write_table(output_json["benchmarks"], Path(named).with_suffix(".md"))
