"""`tutorsim summary`: a run as a whole."""

from pathlib import Path

import click

from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.pages.document_as_json_and_as_claims import document_parts, to_value
from tutorsim.analysis.pages.document_as_markdown import to_markdown
from tutorsim.analysis.pages.numbers_printed_in_studies import Printed
from tutorsim.analysis.systems.system_view_opened_run_and_cost import Asked, opened
from tutorsim.cli.ballot_options import ballot_options, panel_option
from tutorsim.cli.open_run_or_recording_and_head_of_page import RunPath, check_logs, records_held
from tutorsim.cli.options_that_commands_share import (
    PLACE,
    add_markdown,
    check_two_files,
    claims_option,
    markdown_option,
    published_option,
    report_options,
)
from tutorsim.cli.printed_prose_and_tables_and_published_files import publish
from tutorsim.cli.terminal_documents import document_asked, document_shown
from tutorsim.errors import UsageError
from tutorsim.kernel.cost_plan import load_prices


@click.command()
@click.argument("run", type=RunPath())
@click.option("--prices", type=PLACE, help="A price table in place of the shipped one.")
@click.option("--full", is_flag=True, help="Show every section.")
@click.option(
    "--section",
    "sections",
    multiple=True,
    metavar="NAME",
    help="Show only this section after the answers, one of those that the summary names; may be "
    "given several times.",
)
@claims_option(
    "Also write every number of the --full summary here, to be checked by "
    "`tutorsim verify --claims`."
)
@panel_option
@published_option
@ballot_options
@markdown_option
@report_options
@records_held()
def summary(
    run: Path,
    prices: Path | None,
    hints: Hints,
    published: tuple[Printed, ...] | None,
    full: bool,
    sections: tuple[str, ...],
    panel: str | None,
    markdown: Path | None,
    claims: Path | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Summarise a RUN folder, or a file of ballots: provenance, outcomes, votes, cost.

    Rates and means have intervals over tasks, at 95 %: see `tutorsim guide statistics`.
    A dash stands for what the data cannot give.

    \b
    --json gives, for every system and for ballots:
      schema_version, title, summary, provenance, warning
      answers: [{question headline detail section}]
      sections: [{id title lead
        figures: [{name finding caption rows}]
        tables: [{name title caption rows: [{column: value}]}]}]
      facts: {name: value}: settings, digests, versions
      values: what tables leave out, by name; of panels and ballots
        study, branch: {covered continued draws failed cursors}, or null
        grid: {episodes complete failed tasks: {benchmark: n} personas conditions}
        success: [{benchmark condition episodes unscored rate}]
        success_by_persona: [{benchmark persona condition successes unscored rate}]
        rounds: [{benchmark condition episodes fired mean mean_fired}]
        gains: [{benchmark condition measure n unscored initial final gain}]
        contrasts: [{benchmark outcome first second test p_holm p_alone
                     difference detectable}]
        diagnostics: one entry per protocol: turns, shift, flip, flip_set,
          tie_rate, fallback_rate, decided_by, abstentions, ballots
        chance: flip and shift to expect of independent first and final votes
        noise_floor: not estimable without a retest; else repeats stages sample
          answered_by failed ballots winners beside
        winning_roles: [{protocol role wins by_vote by_tie_round by_fallback}]
        ballots: [{protocol stage valid repaired abstained}]
        stop_reasons: [{stage stop_reason calls taken}], how replies ended
        usage: {models: {name: {calls input_tokens output_tokens cost_usd}}
                calls input_tokens output_tokens cost_usd prices_as_of}
        panels, of a run that compares some: {panels votes outcomes contrasts}
        ratings, of a run that people rated: {by agreement judge delivered
          success other_rules}
    A cell of a table that shows a number is a number here.
    Estimates are {value n interval: {low high method}}; what cannot be estimated
    is {not_estimable: reason}.
    """
    if claims is not None and not full:
        raise UsageError(
            "--claims needs --full.",
            why="A file of claims holds every number of the whole summary.",
            hint="Add --full, or write the claims of the report: `tutorsim report RUN`.",
        )
    check_two_files(claims, output, "summary")
    check_logs(run)
    table = load_prices(prices)
    asked = Asked(prices=table, published=published)
    what = opened(run, hints=hints, panel=panel, asked=asked, use="document")
    document = document_asked(what, brief=True, command="summary")
    if markdown is not None:
        add_markdown(markdown, to_markdown(document))
    shown = document_shown(document, sections, full=full)
    publish(shown, lambda: to_value(document), as_json=as_json, output=output)
    if claims is not None:
        from tutorsim.cli.claims_options_and_write_or_check_claims import Options, write_claims

        options = Options(published, None if prices is None else table, hints, panel)
        parts = document_parts(document, "summary")
        write_claims(claims, run, "summary", parts, options, drawn=output)
