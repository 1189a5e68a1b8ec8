"""`tutorsim run`: record a study."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tutorsim.cli.options_and_progress_of_commands_that_record import (
    check_may_record,
    record_study,
    recording_options,
    say_remarks,
)
from tutorsim.cli.options_that_commands_share import PLACE
from tutorsim.errors import StudyError
from tutorsim.kernel.cost_plan import ConditionPlan, Plan, PriceTable, load_prices, plan
from tutorsim.kernel.load_and_check_study_file import load_study
from tutorsim.kernel.system_and_loaded_study import LoadedStudy
from tutorsim.vocabularies import BLINDINGS

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command()
@click.argument("study", type=PLACE)
@click.option("--log-dir", type=PLACE, help="Run folder to write.")
@click.option("--cassette-dir", type=PLACE, help="Recording to write.")
@recording_options
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show calls, tokens, cost and what the tasks can show; send nothing.",
)
@click.option("--json", "as_json", is_flag=True, help="With --dry-run: report as JSON.")
@click.option("--seed", type=int, help="Override the study's seed.")
@click.option(
    "--condition",
    "conditions",
    metavar="NAME",
    multiple=True,
    help="Override the study's conditions.",
)
@click.option("--persona", "personas", multiple=True, help="Override the study's personas.")
@click.option("--limit", type=click.IntRange(min=1), help="Override the tasks per benchmark.")
@click.option("--max-turns", type=click.IntRange(min=0), help="Override the tutoring turns.")
@click.option("--repeats", type=click.IntRange(min=1), help="Override the repeats.")
@click.option("--blinding", type=click.Choice(BLINDINGS), help="Override how labels are drawn.")
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Override any setting, e.g. --set models.tutor='\"my-model\"' (TOML values).",
)
def run(
    study: Path,
    log_dir: Path | None,
    cassette_dir: Path | None,
    dry_run: bool,
    as_json: bool,
    prices: Path | None,
    **options: Any,
) -> None:
    """Record STUDY, a TOML file or the name of a shipped study.

    Every model call goes to the endpoint that the SDK's environment names and is recorded. The
    same command given again goes on where the last one stopped; nothing is paid for twice.

    With --batch all episodes advance wave by wave, one batch per wave. Ctrl-C leaves a batch to
    the endpoint, and the same command reads its results, for which the endpoint may take a day.

    Exit codes: 0 done · 1 done, but episodes failed · 2 usage · 4 a folder holds a damaged or
    other recording · 5 the cap is reached · 6 the sandbox failed · 130 interrupted.
    """
    if as_json and not dry_run:
        raise click.UsageError("--json goes with --dry-run.")
    loaded = load_study(study, overrides=_overrides(options, study))
    from tutorsim.runner.branch_plan_and_answers_from_parent import check_parent

    check_parent(loaded, None)
    table = load_prices(prices)
    if dry_run:
        show = emit_plan if as_json else show_plan
        show(loaded, planned(loaded, table))
        return
    if log_dir is None or cassette_dir is None:
        raise click.UsageError("Give --log-dir and --cassette-dir, or --dry-run.")
    check_may_record(options["record_in_ci"])
    record_study(loaded, log_dir, cassette_dir, table, options)


def _overrides(options: dict[str, Any], study: Path) -> dict[str, Any]:
    """Settings that the command line overrides, as nested tables."""
    import tomllib

    direct = ("seed", "max_turns", "repeats", "blinding")
    found: dict[str, Any] = {k: options[k] for k in direct if options[k] is not None}
    found |= {k: list(options[k]) for k in ("conditions", "personas") if options[k]}
    for text in options["settings"]:
        try:
            _merge(found, tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise StudyError(
                f"--set {text!r} is no TOML assignment.",
                why=str(error),
                hint="Texts need quotes: --set 'name=\"pilot\"'.",
            ) from error
    if options["limit"] is not None:
        tables = load_study(study, overrides=found).study.benchmarks
        _merge(found, {"benchmarks": {name: {"limit": options["limit"]} for name in tables}})
    return found


def _merge(into: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def planned(loaded: LoadedStudy, table: PriceTable) -> Plan:
    """Plan a study, with the usual length of episodes from its system's bundled recording."""
    from tutorsim.runner.find_and_check_recording import usual_length

    usual = usual_length(loaded.system)
    if usual is None:
        return plan(loaded, table)
    return plan(loaded, table, share=usual.share, share_of=usual.recording)


def show_plan(loaded: LoadedStudy, planned: Plan) -> None:
    """Show episodes, calls, tokens and cost of a study."""
    from tutorsim.analysis.pages.words_and_safe_text import counted
    from tutorsim.cli.console_progress_and_safe_text import out

    say_remarks(loaded)
    calls, console = planned.calls, out()
    episodes = counted(planned.episodes, "episode")
    console.print(f"Study {loaded.study.name}: {episodes}", style="bold")
    shortest, longest = loaded.paths
    paths = f" ({shortest}) to {calls.most:,} ({longest})" if calls.least < calls.most else ""
    console.print(f"Calls: {calls.least:,}{paths}")
    console.print(f"       at most {calls.ceiling:,} if every reply had to be asked for twice")
    if len(planned.conditions) > 1:
        console.print(_by_condition(planned))
    console.print("Estimated tokens of the longest path:")
    for model, (asked, answered) in planned.tokens.items():
        known = "" if model not in planned.unknown_prices else "  (price unknown)"
        console.print(f"  {model}: {asked:,} in, {answered:,} out{known}")
    unknown = ", ".join(planned.unknown_prices)
    cost = _money(planned, unit=" US dollars") or f"unknown: no price for {unknown}"
    console.print(f"Estimated cost: {cost} (prices of {planned.prices_as_of})")
    if planned.expected_cost is not None:
        console.print(f"Expected: {planned.expected_cost:,.2f} US dollars. {_assumed(planned)}")
    for line in _told(shown_by(loaded)):
        console.print(line)


def emit_plan(loaded: LoadedStudy, planned: Plan) -> None:
    """Write what a recording takes, and what it can show, as JSON."""
    from tutorsim.cli.console_progress_and_safe_text import emit_json

    say_remarks(loaded)
    shows = [shown._asdict() for shown in shown_by(loaded)]
    emit_json({"study": loaded.study.name, **asdict(planned), "shows": shows})


class Shown(NamedTuple):
    """What the tasks of one benchmark can show of conditions, before anything is recorded."""

    benchmark: str
    tasks: int
    contrasts: int
    """Contrasts over all benchmarks, two outcomes each: with the baseline, or else every two."""
    fewest_tasks: int
    """With fewer no difference is shown, whatever its size."""
    difference: float | None
    """Least difference in success shown with 80 % power; `None` with too few tasks."""
    tasks_for_0_3: int
    """Tasks that show a difference of 0.3 in success."""


def shown_by(loaded: LoadedStudy) -> list[Shown]:
    """What the planned tasks can show; nothing where there is nothing to compare.

    `loaded`: the study, whose tasks are taken to be independent of one another.
    """
    from tutorsim.analysis.statistics.intervals_and_tests import (
        NotEstimable,
        detectable,
        fewest_tasks,
        spread_to_expect,
        tasks_for,
    )

    names = loaded.study.conditions
    pairs = len(names) - 1 if "baseline" in names else len(names) * (len(names) - 1) // 2
    runs: dict[str, Counter[str]] = {}
    for benchmark, task, _, condition in loaded.cells():
        if condition == names[-1]:
            runs.setdefault(benchmark, Counter())[task.task_id] += loaded.study.repeats
    contrasts = 2 * pairs * len(runs)
    found = []
    for benchmark, of in runs.items() if contrasts else ():
        spread = spread_to_expect(max(of.values()))
        least = detectable(len(of), spread, contrasts)
        found.append(
            Shown(
                *(benchmark, len(of), contrasts, fewest_tasks(contrasts)),
                difference=None if isinstance(least, NotEstimable) else least,
                tasks_for_0_3=tasks_for(0.3, spread, contrasts),
            )
        )
    return found


def _told(found: list[Shown]) -> Iterator[str]:
    """What the tasks of each benchmark can show, in sentences."""
    for shown in found:
        compared = f"{shown.contrasts} contrasts of two outcomes"
        tasks = f"{shown.tasks} task{'' if shown.tasks == 1 else 's'} of {shown.benchmark}"
        if shown.difference is None:
            yield (
                f"{tasks}: too few to show any difference between conditions over tasks; "
                f"{compared} need {shown.fewest_tasks}, and about {shown.tasks_for_0_3} show 0.3 "
                "in success."
            )
        else:
            yield (
                f"{tasks}: a difference of {shown.difference:.2f} in success is shown over tasks "
                f"with 80 % power (the least of {compared})."
            )
    if found:
        yield "That is if tasks are independent, and differ as in `tutorsim guide statistics`."


def _assumed(planned: Plan) -> str:
    seen = f", as in the recording {planned.share_of}" if planned.share_of else ""
    way = f"{100 * planned.share:.0f} % of the way from the shortest to the longest path"
    return (
        f"It assumes episodes that go {way}{seen}, replies of usual length, four characters a "
        "token, and no second askings."
    )


def _by_condition(planned: Plan) -> "RenderableType":
    """Calls and cost of each condition, from the shortest path to the longest."""
    from tutorsim.cli.printed_prose_and_tables_and_published_files import table

    rows = [
        (
            *(one.condition, f"{one.episodes:,}"),
            *(_span(f"{one.calls.least:,}", f"{one.calls.most:,}"), _money(one) or "unknown"),
        )
        for one in planned.conditions
    ]
    return table(("condition", "episodes", "calls", "US dollars"), rows, left=1)


def _money(planned: Plan | ConditionPlan, *, unit: str = "") -> str:
    """The cost from the shortest path to the longest; empty where a price is unknown."""
    if planned.cost is None or planned.least_cost is None:
        return ""
    return _span(f"{planned.least_cost:,.2f}", f"{planned.cost:,.2f}") + unit


def _span(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"
