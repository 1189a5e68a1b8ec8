"""`tutorsim run`: record a study."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from tutorsim.cli.recording import (
    check_may_record,
    record_study,
    recording_options,
    say_remarks,
)
from tutorsim.cost_plan import Plan, PriceTable, load_prices, plan
from tutorsim.errors import StudyError
from tutorsim.systems import LoadedStudy, load_study
from tutorsim.vocabularies import BLINDINGS

__all__ = ["emit_plan", "planned", "run", "show_plan"]


@click.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--log-dir", type=click.Path(path_type=Path), help="Run folder to write.")
@click.option("--cassette-dir", type=click.Path(path_type=Path), help="Recording to write.")
@recording_options
@click.option("--dry-run", is_flag=True, help="Show calls, tokens and cost; send nothing.")
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
    from tutorsim.runner.branching import check_parent

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
    from tutorsim.runner.usual_length import usual_length

    usual = usual_length(loaded.system)
    if usual is None:
        return plan(loaded, table)
    return plan(loaded, table, share=usual.share, share_of=usual.recording)


def show_plan(loaded: LoadedStudy, planned: Plan) -> None:
    """Show episodes, calls, tokens and cost of a study."""
    from tutorsim.cli.console import out

    say_remarks(loaded)
    calls, console = planned.calls, out()
    console.print(f"Study {loaded.study.name}: {planned.episodes:,} episodes", style="bold")
    console.print(
        f"Calls: {calls.least:,} ({loaded.paths[0]}) to {calls.most:,} ({loaded.paths[1]})"
    )
    console.print(f"       at most {calls.ceiling:,} if every reply had to be asked for twice")
    console.print("Estimated tokens of the longest path:")
    for model, (asked, answered) in planned.tokens.items():
        known = "" if model not in planned.unknown_prices else "  (price unknown)"
        console.print(f"  {model}: {asked:,} in, {answered:,} out{known}")
    console.print(f"Estimated cost: {_cost(planned)} (prices of {planned.prices_as_of})")
    if planned.expected_cost is not None:
        console.print(f"Expected: {planned.expected_cost:,.2f} US dollars. {_assumed(planned)}")


def emit_plan(loaded: LoadedStudy, planned: Plan) -> None:
    """The same as JSON."""
    from tutorsim.cli.console import emit_json

    say_remarks(loaded)
    emit_json({"study": loaded.study.name, **asdict(planned)})


def _assumed(planned: Plan) -> str:
    seen = f", as in the recording {planned.share_of}" if planned.share_of else ""
    way = f"{100 * planned.share:.0f} % of the way from the shortest to the longest path"
    return (
        f"It assumes episodes that go {way}{seen}, replies of usual length, four characters a "
        "token, and no second askings."
    )


def _cost(planned: Plan) -> str:
    if planned.cost is None or planned.least_cost is None:
        return f"unknown: no price for {', '.join(planned.unknown_prices)}"
    return f"{planned.least_cost:,.2f} to {planned.cost:,.2f} US dollars"
