"""Run, record and replay studies of how groups of LLM tutors decide.

To ask a run questions: `run = tutorsim.open("runs/pilot")` takes a run folder, a recording or a
file of ballots, and gives `run.ballots`, `run.turns`, `run.episodes`, `run.calls`,
`run.recount()`, `run.contrasts()` and `run.report("page.html")`;
see `help("tutorsim.opened_run_and_recount_for_python")`.

A recount takes rules of your own: `run.recount(rules={"veto": tutorsim.RankScores([1, 1, 1, 0])})`
gives each rank a score, and is answered with bounds as the shipped rules are; a function from
`tutorsim.CastBallots` to `{candidate: score}` gets a point winner and no bounds.

For programs of other people: `recorded` gives a client of the SDK bound to one cassette, `keyed`
names its calls.

The command line is `tutorsim`, or `python -m tutorsim`; its pages are `tutorsim guide`. All names
are loaded when they are used.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tutorsim.analysis.recount.recount_plan_and_own_rules import CastBallots, RankScores
    from tutorsim.opened_run_and_recount_for_python import open_path as open  # noqa: A004 - `tutorsim.open`, as `gzip.open`
    from tutorsim.replay.any_sdk_client_and_streams import keyed, recorded, recorded_http

__version__ = "0.1.0"

__all__ = ["CastBallots", "RankScores", "__version__", "keyed", "open", "recorded", "recorded_http"]

_HERE = Path(__file__).parent
if not (_HERE / "analysis").is_dir() and (_HERE.parent / "pyproject.toml").is_file():
    __path__.append(str(_HERE.parent))  # a checkout without symbolic links has it one folder up

_LOADED_LATER = {
    "CastBallots": ("tutorsim.analysis.recount.recount_plan_and_own_rules", "CastBallots"),
    "RankScores": ("tutorsim.analysis.recount.recount_plan_and_own_rules", "RankScores"),
    "keyed": ("tutorsim.replay.any_sdk_client_and_streams", "keyed"),
    "open": ("tutorsim.opened_run_and_recount_for_python", "open_path"),
    "recorded": ("tutorsim.replay.any_sdk_client_and_streams", "recorded"),
    "recorded_http": ("tutorsim.replay.any_sdk_client_and_streams", "recorded_http"),
}


def __getattr__(name: str) -> Any:
    if name not in _LOADED_LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, there = _LOADED_LATER[name]
    return getattr(import_module(module), there)
