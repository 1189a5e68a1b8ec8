"""`tutorsim audit`: label the replies of a recorded run."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tutorsim.cli.recording import check_may_record, record_study, recording_options
from tutorsim.cli.sources import RunPath
from tutorsim.errors import UsageError
from tutorsim.kernel.cost_plan import load_prices
from tutorsim.records import RUN_FILE, RunRecord, read_episodes, read_lines, read_run
from tutorsim.systems.oversight.acts_by_condition import CONDITIONS

if TYPE_CHECKING:
    from tutorsim.systems.oversight.items import Item
    from tutorsim.systems.oversight.study import OversightStudy


@click.command()
@click.argument("source", metavar="RUN", type=RunPath())
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="REC", help="Folder of the audit."
)
@click.option(
    "--all-proposals",
    is_flag=True,
    help="Label every role's final proposal, to ask what other rules would have delivered.",
)
@click.option("--sample", type=click.IntRange(min=1), help="So many turns, drawn by hash.")
@click.option(
    "--condition",
    "conditions",
    type=click.Choice(CONDITIONS),
    multiple=True,
    default=("single",),
    show_default=True,
    help="Who labels: the lead alone, a debate, …; may be given again.",
)
@click.option("--show-reference", is_flag=True, help="Show the right answer to who labels.")
@click.option("--model", help="The model of analysts, critics, advocate, judge and stress tester.")
@click.option("--lead-model", help="The model of the lead evaluator.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of draws.")
@click.option("--dry-run", is_flag=True, help="Show calls, tokens and cost; send nothing.")
@click.option("--json", "as_json", is_flag=True, help="With --dry-run: report as JSON.")
@recording_options
def audit(
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
    loaded = audit_study(
        source,
        all_proposals=all_proposals,
        sample=sample,
        seed=seed,
        conditions=conditions,
        show_reference=show_reference,
        models={name: value for name, value in models.items() if value is not None},
    )
    table = load_prices(options["prices"])
    if dry_run:
        from tutorsim.cli.run import emit_plan, planned, show_plan

        show = emit_plan if as_json else show_plan
        show(loaded, planned(loaded, table))
        return
    if output is None:
        raise click.UsageError("Give -o REC, or --dry-run.")
    check_may_record(options["record_in_ci"])
    record_study(loaded, output, output, table, options)


def audit_study(
    source: Path,
    *,
    all_proposals: bool,
    sample: int | None,
    seed: int,
    conditions: tuple[str, ...] = ("single",),
    show_reference: bool = False,
    models: dict[str, str] | None = None,
) -> "OversightStudy":
    """The oversight study of a run's replies.

    Args:
        source: The run folder.
        all_proposals: Every role's final proposal is an item.
        sample: So many turns, drawn by hash; all when `None`.
        seed: Of the draws.
        conditions: Who labels.
        show_reference: The right answer is shown.
        models: `agent` and `lead`, where they are not the default.

    Raises:
        UsageError: If there is no run, or it has no replies of a tutor.
    """
    from tutorsim.systems.oversight import OVERSIGHT
    from tutorsim.systems.oversight.audited_replies import drawn_turns
    from tutorsim.systems.oversight.settings import Study
    from tutorsim.systems.oversight.study import OversightStudy

    head = _head(source)
    items = _items(source, head, all_proposals)
    if not items:
        raise UsageError(
            f"{source} holds no delivered reply.",
            why="No episode came to a tutoring turn.",
            hint="Audit a run in which tutors replied.",
        )
    study = Study.model_validate(
        {
            "name": f"audit-{head.study.name}"[:80],
            "seed": seed,
            "conditions": conditions,
            "benchmarks": {"audit": {"tasks": "tasks.audit.jsonl"}},
            "models": models or {},
            "oversight": {"show_reference": show_reference},
            "inputs": {
                "run": head.study.name,
                "provenance": head.provenance,
                "recording_digest": head.recording_digest,
            },
        }
    )
    tasks = {"audit": drawn_turns(items, sample, seed=seed)}
    return OversightStudy(study, OVERSIGHT.catalog(), tasks, OVERSIGHT)


def _items(source: Path, head: RunRecord, all_proposals: bool) -> "tuple[Item, ...]":
    """The replies of a run's tutors.

    Raises:
        UsageError: If there are no proposals besides the replies.
    """
    from tutorsim.records.group import GroupRecord, LessonRecord
    from tutorsim.systems.oversight.audited_replies import audited_items, lesson_items

    name = head.study.name
    if head.system == "panel" and all_proposals:
        return _proposals(source, name)
    if head.system == "panel":
        return audited_items(name, read_episodes(source))
    if all_proposals:
        raise UsageError(
            f"{source} has no proposals besides the messages that were posted.",
            why="In a group lesson nobody votes on what is said.",
            hint="Leave --all-proposals out.",
        )
    records = read_lines(source, GroupRecord)
    return lesson_items(name, (one for one in records if isinstance(one, LessonRecord)))


def _head(source: Path) -> RunRecord:
    """The head of a run whose replies can be audited."""
    if not (source / RUN_FILE).is_file():
        raise UsageError(f"{source} is no run folder.", why=_missing(source), hint=_NEXT)
    head = read_run(source)
    if head.system not in ("panel", "group"):
        raise UsageError(
            f"`tutorsim audit` does not apply to {source}, a run of the system {head.system!r}.",
            why="Its log holds no replies of a tutor to a student, one a turn.",
            hint="Audit a run of panels or of single tutors, a branch of one, or group lessons.",
        )
    return head


_NEXT = "Record a study with `tutorsim run`, or write its log with `tutorsim replay REC`."


def _missing(source: Path) -> str:
    if source.exists():
        return "Ballots say who was voted for; what was said to whom, an audit's items, is missing."
    return "There is no such folder."


def _proposals(source: Path, name: str) -> "tuple[Item, ...]":
    """Every role's final proposal, with who could have won under each rule."""
    from tutorsim.analysis.ballots.recount_source import open_source
    from tutorsim.analysis.recount import possible_winners
    from tutorsim.systems.oversight.audited_replies import audited_items

    opened = open_source(source)
    return audited_items(name, opened.episodes, possible=possible_winners(opened))
