"""`tutorsim recount`: what other orders, tie policies and rules would have chosen."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, get_args

import click
from rich.console import RenderableType
from rich.text import Text

from tutorsim.analysis.ballots.parquet_batches import Runner
from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import (
    Source,
    check_panel,
    open_source,
    provenance_words,
    refuse_hints,
)
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS, Approvals
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row
from tutorsim.analysis.pages.document import Document, section_ids
from tutorsim.analysis.pages.document_as_json_and_as_claims import to_value
from tutorsim.analysis.pages.words_and_safe_text import listed, odd_replies
from tutorsim.analysis.recount import NO_ORDER
from tutorsim.analysis.recount import recount as recount_source
from tutorsim.analysis.recount.first_screen_what_was_read_and_verdict import (
    read_words,
    recount_verdict,
    told_rows,
    told_rules,
    verdict_table,
)
from tutorsim.analysis.recount.recount_plan_and_own_rules import (
    TABLES,
    RankScores,
    RecountTable,
    refuse_shadowed,
)
from tutorsim.analysis.recount.result_models import RecountResult
from tutorsim.analysis.recount.same_voter_in_two_formats import (
    UNTESTED,
    FormatInvariance,
    format_invariance,
    invariance_words,
)
from tutorsim.analysis.recount.success_under_other_score_thresholds import (
    Bounded,
    Thresholds,
    at_threshold,
    threshold_table,
)
from tutorsim.analysis.recount.tables import SECTIONS, approvals_table, protocols_table, turns_table
from tutorsim.analysis.runs.exported_tables import Table
from tutorsim.analysis.runs.write_export_and_preflib_files import write_frames
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable, to_json
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun, view_of
from tutorsim.cli.ballot_options import ballot_options, of_panel_asked, panel_option
from tutorsim.cli.claims_options_and_write_or_check_claims import publish_claimed
from tutorsim.cli.console_progress_and_safe_text import counted
from tutorsim.cli.open_run_or_recording_and_head_of_page import RunPath, check_logs, source_shown
from tutorsim.cli.options_that_commands_share import (
    Remembering,
    check_sections,
    claims_option,
    names,
    order_option,
    report_options,
    table_option,
    tell_rows,
    whole_numbers,
)
from tutorsim.cli.printed_prose_and_tables_and_published_files import Prose, caption, styled
from tutorsim.cli.terminal_documents import document_shown, parts_shown, system_run
from tutorsim.dask_cluster import Engine, connect, parse_engine, scattered
from tutorsim.errors import UsageError
from tutorsim.records import StopCount
from tutorsim.vocabularies import PROTOCOLS


def _rank_scores(
    _: click.Context, __: click.Parameter, given: tuple[str, ...]
) -> Mapping[str, RankScores]:
    """The values of `--score`: name → scores by rank."""
    rules: dict[str, RankScores] = {}
    for text in given:
        name, equals, scores = (part.strip() for part in text.partition("="))
        if not (name and equals and scores):
            raise UsageError(
                f"--score {text!r} names no rule.",
                why="A rule is a name and one score for each rank, best first.",
                hint="For example --score veto=1,1,1,0 for votes with four candidates.",
            )
        if name in rules:
            raise UsageError(
                f"--score gives {name!r} twice.",
                why="A name stands for one rule.",
                hint="Give each rule a name of its own.",
            )
        rules[name] = _scored(text, scores)
    return rules


def _scored(text: str, scores: str) -> RankScores:
    try:
        return RankScores(scores.split(","))
    except UsageError as error:
        raise UsageError(
            f"--score {text!r} is no rule.",
            why=" ".join(filter(None, (error.what, error.why))),
            hint=error.hint,
        ) from error


def _approvals(_: click.Context, __: click.Parameter, given: str | None) -> Approvals | None:
    """The value of `--approves`."""
    return None if given is None else Approvals.read(given)


@click.command(cls=Remembering)
@click.argument("source", metavar="RUN|BALLOTS", type=RunPath())
@click.option(
    "--targets",
    callback=names,
    metavar="RULE,RULE,…",
    help=f"Rules to count under: {', '.join(TARGETS)}, or one of another package. Default: all but "
    "those of other packages.",
)
@click.option(
    "--score",
    "rules",
    multiple=True,
    callback=_rank_scores,
    metavar="NAME=S,S,…",
    help="Count also under a rule of your own: a score for each rank, best first, such as "
    "veto=1,1,1,0 or mine=3,1/2,0,0. May be given several times; `--targets NAME` counts it alone.",
)
@click.option(
    "--exempt",
    callback=whole_numbers,
    default="0,1,2",
    show_default=True,
    metavar="K,K,…",
    help="Numbers of voters that may have cast any ballot at all.",
)
@click.option(
    "--approves",
    callback=_approvals,
    metavar="LEAST..MOST",
    help="How many candidates each voter approves of under approval voting: 1..2, 2 for exactly "
    "two, 2.., or ..3. Default: any number, and the answer for 1, 1..2 and 1..3 beside it.",
)
@order_option
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    type=click.FloatRange(0, 1),
    help="Outcomes under another success threshold; may be given several times.",
)
@panel_option
@ballot_options
@click.option(
    "--section",
    "sections",
    multiple=True,
    metavar="NAME",
    help="Count and show only this section; may be given several times. Of votes: "
    f"{', '.join(SECTIONS)}; of whole episodes those that the recount names.",
)
@click.option(
    "--engine",
    metavar="dask://HOST:PORT",
    help="Recount parts on a Dask cluster; dask://local?workers=N starts one here.",
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE[,VALUE…]",
    help="Recount whole episodes under another setting, in systems that can (oversight: "
    "reading=strict|standard|lenient, over=dialogues|items); may be repeated.",
)
@click.option(
    "--full", is_flag=True, help="Show every section, every order and all wins under every rule."
)
@table_option("--turns", "one row per turn, rule, k and reading of ties (to the order, or left)")
@table_option(
    "--outcomes",
    "what would have come of each debate under each protocol, each event of a lesson under each "
    "setting, or each labelled reply under each reading",
)
@claims_option(
    "Also write every number that is printed here, to be checked by `tutorsim verify --claims`."
)
@report_options
def recount(
    source: Path,
    targets: tuple[str, ...] | None,
    rules: Mapping[str, RankScores],
    exempt: tuple[int, ...],
    approves: Approvals | None,
    fallback_order: tuple[str, ...] | None,
    thresholds: tuple[float, ...],
    hints: Hints,
    panel: str | None,
    sections: tuple[str, ...],
    engine: str | None,
    changes: tuple[str, ...],
    full: bool,
    turns: Path | None,
    outcomes: Path | None,
    **_: Any,
) -> None:
    """Ask of every logged turn what other rules would have chosen.

    The source is a run folder or ballots from elsewhere. Parquet files in the ballots table's
    shape are read a part at a time; every file must hold whole turns. Answers are exact where
    the ballots settle them and intervals where they do not: a figure stands with what the
    ballots leave open. Each turn is counted alone, and the logged dialogue is held fixed.

    \b
    --json gives, for every system and for ballots; tables are empty of what is
    not there or was not asked for:
      schema_version source provenance caption fallback_order budget exempt
      turns notes
      orders: [{protocol logged_order turns decided_by_order changed_expected
                changed_most orders
                candidates: [{candidate logged least most expected robust
                              by_order share_by_order}]
                listed: [{order wins changed}]}]
      policies: [{policy protocol turns wins changed}]
      electorates: [{scenario voter protocol turns not_computable open_ties
                     wins changed}]
      readings: [{reading protocol turns not_computable ballots
                  ballots_changed abstained open_ties wins changed}]
      rules: [{logged_protocol target convention projection reading exempt turns
               not_settled identified widths wins point_ties point_impossible
               agreement changes flips flip_turns breakdown}]
      approvals: as rules, under approval by how many each voter approves of:
        approves is [least, most], most null for any number
      approved: candidates approved -> logged approval ballots
      compared: in policies, electorates and rules of ballots without an order:
        turns that counting decided, which alone have a logged winner
      format_invariance: {from_vote again again_consistent
        pairs: [{given other pairs abstained consistent same_top turns
                 same_winner}]
        askings: [{form pairs abstained same consistent}]}, or not_estimable
      thresholds: [{benchmark condition threshold episodes exact fired success
                    turns final gain}]
      episodes: of whole episodes under other settings, a document as that of
        `summary --json`, with `outcomes`, the rows of --outcomes; null of
        panels and ballots
    convention says how the target counts, if rules of its name are counted in several
    ways, and is null otherwise. For a rule given by --score it has the scores.
    protocol null is all protocols; intervals are {lower point upper} in turns,
    shares and means over orders or lots are numbers; every entry has its
    caption. orders counts them, as a text such as 19! of over 18 candidates.

    \b
    --turns FILE has the columns:
      episode_id turn logged_protocol logged_winner target fallback_order
      tied_set possible_winners necessary_winner point_winner point_state
      projection exempt breakdown breakdown_state settled
    point_state is winner, tie, or impossible: the projection's outcome is none
    of the possible winners. breakdown_state is number, never or not_settled.
    Where fallback_order is null a tie stays a tie: the tied set wins. Where it
    is given, ties go to its first candidate. Conventions of the rules are those
    that --json names.

    \b
    --outcomes FILE has, after those of every table, the columns
      of debates: repeat setting protocol certainty answers author turn decided
                  ties messages score_least score_most
      of lessons: event setting logged speaker
      of labelled replies: repeat reading rule mistake guidance ties confidence
                  mistake_correct guidance_correct
    --json has the same rows as `outcomes` in `episodes`.
    """
    check_logs(source)
    run = system_run(source, use="recount")
    whole = None
    if run is not None:
        if panel is not None:
            check_panel(run.name, run.head, panel)
        refuse_hints(source, hints)
        _refuse_what_does_not_apply(run)
        whole = _whole_episodes(run, changes)
        if outcomes is not None:
            _write_outcomes(run, changes, outcomes)
    elif changes or outcomes:
        raise UsageError(
            f"--{'set' if changes else 'outcomes'} is for runs of systems whose episodes can be "
            "recounted whole.",
            why=f"{source} holds ballots.",
            hint="Use --targets, --fallback-order or --turns.",
        )
    of_episodes = partial(_value_of_whole, whole, run, changes)
    if run is not None and whole is not None and run.head.voting is None:
        no_votes = RecountResult(source=run.name, provenance=run.provenance)
        shown = chain(document_shown(whole, sections, full=full), _odd_replies(run.stops))
        publish_claimed(source, shown, lambda: _value(no_votes, {}, UNTESTED, of_episodes()))
        return
    of_whole, of_votes = _sections_of(whole, sections)
    every = tuple(SECTIONS) if full else ()
    refuse_shadowed(targets or ())
    tables = _tables(of_votes, every=full)
    brief = turns is None and tables == _FIRST_SCREEN
    count = partial(
        recount_source,
        targets=targets or (PROTOCOLS if brief else TARGETS),
        rules=rules,
        exempt=_told_exempt(exempt) if brief else exempt,
        approves=approves,
        order=fallback_order,
        tables=tables,
    )
    if run is None:  # an order that is given is the ballots' own; a run has one
        hints = replace(hints, fallback_order=fallback_order)
    opened, found = _counted(source, run, hints, panel, engine, turns, count)
    at = {threshold: at_threshold(opened, threshold) for threshold in thresholds}
    formats = format_invariance(opened)
    shown = chain(
        () if whole is None else document_shown(whole, of_whole, full=full),
        _shown(opened, found, of_votes or every, full, at, formats),
        _odd_replies(run.stops if run is not None else ()),
    )
    publish_claimed(source, shown, lambda: _value(found, at, formats, of_episodes()))


def _tables(sections: Sequence[str], *, every: bool) -> tuple[RecountTable, ...]:
    """What has to be counted: the sections asked for, or what is shown without any."""
    asked = click.get_current_context().params
    output: Path | None = asked["output"]
    every |= asked["as_json"] or (output is not None and output.suffix == ".json")
    if not sections and not every:
        return _FIRST_SCREEN
    return tuple(table for table in TABLES if not sections or table in sections)


_FIRST_SCREEN: Final[tuple[RecountTable, ...]] = ("orders", "kept")


def _told_exempt(exempt: Sequence[int]) -> tuple[int, ...]:
    """Numbers of exempt voters that a first screen tells of."""
    return tuple(sorted({min(exempt), *[k for k in sorted(exempt) if k][:1]}))


def _value_of_whole(
    whole: Document | None, run: SystemRun | None, changes: tuple[str, ...]
) -> Mapping[str, object] | None:
    """Whole episodes as JSON has them: what is shown, and what came of each; `None` of a source
    that cannot say it."""
    if whole is None or run is None:
        return None
    table, value = _outcomes(run, changes), to_value(whole)
    if table is None:
        return value
    return {**value, "outcomes": table.frame(run.episodes, run.head).to_dicts()}


_OF_VOTES: Final = (
    *("targets", "rules", "exempt", "approves"),
    *("fallback_order", "engine", "turns"),
)
"""Options that say how votes are counted."""


def _refuse_what_does_not_apply(run: SystemRun) -> None:
    """Refuse options that would change nothing of the recount of a run, by name."""
    given = _options_given()
    if "thresholds" in given and run.head.success is None:
        raise _refusal(run, "recount --threshold")
    options = [given[name] for name in _OF_VOTES if name in given]
    if run.head.voting is None and options:
        raise UsageError(
            f"`tutorsim recount {options[0]}` counts votes.",
            why=f"Nobody votes in {run.name}, a run of the system {run.head.system!r}.",
            hint=f"Leave {options[0]} out.",
        )


def _refusal(run: SystemRun, command: str) -> UsageError:
    """The error that a run's system has no such command."""
    from tutorsim.kernel.load_and_check_study_file import system_named

    return system_named(run.head.system).refusal(command)


def _options_given() -> dict[str, str]:
    """Parameters of the command line by name → the option as it is typed."""
    context = click.get_current_context()
    on_the_line = click.core.ParameterSource.COMMANDLINE
    return {
        p.name: p.opts[0]
        for p in context.command.params
        if p.name is not None and context.get_parameter_source(p.name) is on_the_line
    }


def _sections_of(
    whole: Document | None, chosen: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The sections asked for: of whole episodes, and of votes."""
    known = () if whole is None else section_ids(whole)
    names = check_sections(chosen, (*SECTIONS, *known))
    return tuple(n for n in names if n in known), tuple(n for n in names if n in SECTIONS)


def _counted(
    source: Path,
    run: SystemRun | None,
    hints: Hints,
    panel: str | None,
    engine: str | None,
    turns: Path | None,
    count: Callable[..., RecountResult],
) -> tuple[Source, RecountResult]:
    """The source, and its recount."""
    if turns is not None and engine is not None:
        raise UsageError(
            "--turns cannot be written of ballots that are recounted on a cluster.",
            why="Its workers send back counts that add up, which name no turn.",
            hint="Leave --engine out: the parts are then recounted here, one after the other.",
        )
    with ExitStack() as stack:
        cluster: Runner | None = None
        if engine is not None:
            cluster = _on_cluster(parse_engine(engine), stack)
        if run is None or cluster is not None:  # a cluster reads files alone, and refuses a run
            found = open_source(source, hints=hints, run=cluster)
        else:
            found = run.source
        opened = of_panel_asked(found, panel)
        progress = stack.enter_context(counted("turns under each rule"))
        result = count(opened, progress=progress, run=cluster)
    if turns is not None:
        frames = map(turns_table, result.per_turn_frames())
        tell_rows(write_frames(frames, turns, "; ".join(opened.answered_by)), turns)
    return replace(opened, told=tuple(n for n in result.notes if n != NO_ORDER)), result


def _on_cluster(engine: Engine, stack: ExitStack) -> Runner:
    """Runs pieces on the cluster, which is reached, or started, when there is a first piece."""
    client = cache(lambda: stack.enter_context(connect(engine)))
    return lambda function, pieces: scattered(client(), function, pieces)


def _whole_episodes(run: SystemRun, changes: tuple[str, ...]) -> Document | None:
    """What whole episodes would have been; refused of a system that cannot say it."""
    recount = view_of(run.head.system).recount
    if recount is not None:
        return recount(run, dict(map(_change, changes)))
    if changes or run.head.voting is None:
        raise _refusal(run, "recount --set" if changes else "recount")
    return None


def _outcomes(run: SystemRun, changes: tuple[str, ...]) -> Table | None:
    """The table of what came of each episode under the settings, of systems that have it."""
    under = view_of(run.head.system).outcomes_under
    return under and under(dict(map(_change, changes)))


def _write_outcomes(run: SystemRun, changes: tuple[str, ...], path: Path) -> None:
    """Write that table; refused of a system that has none."""
    table = _outcomes(run, changes)
    if table is None:
        raise _refusal(run, "recount --outcomes")
    came = table.frame(run.episodes, run.head)
    tell_rows(write_frames([came], path, provenance_words(run.head)), path)


def _change(text: str) -> tuple[str, tuple[str, ...]]:
    key, equals, values = text.partition("=")
    if not (key.strip() and equals and values.strip()):
        raise UsageError(
            f"--set {text!r} changes nothing.",
            why="A change is KEY=VALUE, or KEY=VALUE,VALUE,… for several.",
            hint="For example --set threshold=2.5,3.",
        )
    return key.strip(), tuple(value.strip() for value in values.split(","))


def _shown(
    source: Source,
    found: RecountResult,
    sections: Sequence[str],
    full: bool,
    at: Mapping[float, Sequence[Row]],
    formats: FormatInvariance | NotEstimable,
) -> Iterator[RenderableType]:
    yield from source_shown(source, read_words(source, found))
    yield Text()
    for sentence in recount_verdict(found):
        yield Prose(sentence)
    yield from parts_shown([verdict_table(found)])
    if sections and found.turns:
        yield Text()
        yield Prose(styled(found.caption, "yellow"))
        tested = invariance_words(formats)
        for name in (name for name in SECTIONS if name in sections):
            yield from parts_shown(SECTIONS[name](found, tested, full), every_row=True)
    elif found.turns:
        along = [approvals_table(found)] if "approval" in told_rules(found) else []
        yield from parts_shown([protocols_table(told_rows(found)), *along])
        yield caption(f"More: --full, or --section {', '.join(SECTIONS)}.")
    own = source.run.success.threshold if at and source.run and source.run.success else None
    every = (Thresholds(at, own, outcome) for outcome in get_args(Bounded))
    yield from parts_shown(map(threshold_table, every))


def _odd_replies(stops: Sequence[StopCount]) -> Iterator[RenderableType]:
    """How many replies were empty, refused or cut off; nothing where none was."""
    odd = [*odd_replies(stops)]
    if odd:
        yield Prose(styled(f"The run has {listed(odd)}: `tutorsim summary` counts them.", "yellow"))


def _value(
    found: RecountResult,
    at: Mapping[float, Sequence[Row]],
    formats: FormatInvariance | NotEstimable,
    episodes: Mapping[str, object] | None,
) -> dict[str, object]:
    """What JSON has: the same names of every source, empty or null where it lacks one."""
    return {
        **found.model_dump(mode="json"),
        "format_invariance": to_json(formats),
        "thresholds": to_json([row for rows in at.values() for row in rows]),
        "episodes": episodes,
    }
