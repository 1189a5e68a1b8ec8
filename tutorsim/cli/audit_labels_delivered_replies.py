"""`tutorsim audit`: label the replies of a recorded run."""

from pathlib import Path
from typing import Any

import click

from tutorsim.cli.open_run_or_recording_and_head_of_page import RunPath
from tutorsim.cli.options_and_progress_of_commands_that_record import (
    check_may_record,
    record_study,
    recording_options,
)
from tutorsim.cli.options_that_commands_share import PLACE
from tutorsim.kernel.cost_plan import load_prices
from tutorsim.kernel.load_and_check_study_file import system_named
from tutorsim.kernel.system_and_loaded_study import Auditing
from tutorsim.system_registry import named, system_names

_AUDITING = filter(None, (system_named(name).auditing for name in system_names()))
AUDITING: Auditing = named(next(_AUDITING))
"""How the replies of a run are labelled: by the studies of the first system that can."""


@click.command("audit")
@click.argument("source", metavar="RUN", type=RunPath())
@click.option("-o", "--output", type=PLACE, metavar="REC", help="Folder of the audit.")
@click.option(
    "--all-proposals",
    is_flag=True,
    help="Label every role's final proposal, to ask what other rules would have delivered.",
)
@click.option("--sample", type=click.IntRange(min=1), help="So many turns, drawn by hash.")
@click.option(
    "--condition",
    "conditions",
    type=click.Choice(AUDITING.conditions),
    multiple=True,
    default=("single",),
    show_default=True,
    help="Who labels: the lead alone, a debate, …; may be given again.",
)
@click.option("--show-reference", is_flag=True, help="Show the right answer to whoever labels.")
@click.option("--model", help="The model of analysts, critics, advocate, judge and stress tester.")
@click.option("--lead-model", help="The model of the lead evaluator.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of draws.")
@click.option("--dry-run", is_flag=True, help="Show calls, tokens and cost; send nothing.")
@click.option("--json", "as_json", is_flag=True, help="With --dry-run: report as JSON.")
@recording_options
def audit_recorded_run(
    source: Path,
    output: Path | None,
    all_proposals: bool,
    sample: int | None,
    conditions: tuple[str, ...],
    show_reference: bool,
    model: str | None,
    lead_model: str | None,
    seed: int,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Label the replies that RUN delivered: do they guide, and identify the mistake?

    RUN is a run folder or a recording of panels or single tutors, a branch, or group lessons, of
    which every message of an agent counts as a reply to the learner. Each reply is an item of an
    oversight study, which is recorded like any other. REC becomes a recording and a run in one:
    `tutorsim summary REC`, `tutorsim report REC`, `tutorsim verify REC`. The same command given
    again goes on where the last one stopped.

    With --all-proposals the recount of RUN says which proposals could have won under each rule,
    and the report what each rule would have delivered, as ranges, without a further call.

    Exit codes: as for `tutorsim run`.
    """
    if as_json and not dry_run:
        raise click.UsageError("--json goes with --dry-run.")
    models = {"agent": model, "lead": lead_model}
    loaded = AUDITING.study(
        source,
        possible=possible_in if all_proposals else None,
        sample=sample,
        seed=seed,
        conditions=conditions,
        show_reference=show_reference,
        models={name: value for name, value in models.items() if value is not None},
    )
    table = load_prices(options["prices"])
    if dry_run:
        from tutorsim.cli.run_and_dry_run import emit_plan, planned, show_plan

        show = emit_plan if as_json else show_plan
        show(loaded, planned(loaded, table))
        return
    if output is None:
        raise click.UsageError("Give -o REC, or --dry-run.")
    check_may_record(options["record_in_ci"])
    record_study(loaded, output, output, table, options)


def possible_in(source: Path) -> dict[tuple[str, int], dict[str, tuple[str, ...]]]:
    """Episode and turn of a run → rule → roles that could have won."""
    from tutorsim.analysis.ballots.recount_source import open_source
    from tutorsim.analysis.recount import possible_winners

    return possible_winners(open_source(source))
