"""`tutorsim summary`: what a run holds and how it went, provenance first."""

from pathlib import Path

import click

from tutorsim.analysis.ballots.reading_options import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.claims.claims_file import DrawnFile
from tutorsim.analysis.claims.drawn_pages import drawn_as
from tutorsim.analysis.pages.values import document_parts, to_value
from tutorsim.analysis.report.markdown import to_markdown
from tutorsim.analysis.systems.panel.published import PublishedFigure
from tutorsim.analysis.systems.panel.summary import SECTIONS
from tutorsim.cli.ballot_options import ballot_options, of_panel_asked, panel_option, refuse_panel
from tutorsim.cli.claims_file import Options, claims_of, summary_parts, write_claims
from tutorsim.cli.options import (
    add_markdown,
    check_sections,
    claims_option,
    markdown_option,
    published_option,
    report_options,
    shown_as_markdown,
)
from tutorsim.cli.output_elements import publish
from tutorsim.cli.sources import RunPath, check_logs
from tutorsim.cli.summary_in_terminal import overview, overview_shown
from tutorsim.cli.terminal_documents import document_of, document_shown, system_run
from tutorsim.errors import UsageError
from tutorsim.kernel.cost_plan import load_prices


@click.command()
@click.argument("run", type=RunPath())
@click.option(
    "--prices", type=click.Path(path_type=Path), help="A price table in place of the shipped one."
)
@click.option("--full", is_flag=True, help="Show every section.")
@click.option(
    "--section",
    "sections",
    multiple=True,
    metavar="NAME",
    help="Show only this section after the verdict; may be given several times. Of panels: "
    f"{', '.join(SECTIONS)}; of other systems those that the summary names.",
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
def summary(
    run: Path,
    prices: Path | None,
    hints: Hints,
    published: tuple[PublishedFigure, ...] | None,
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
    --json gives:
      source, provenance, study, digests: what was run, and what answered
      branch: {covered continued draws failed cursors: {turn: n}}, or null
      grid: {episodes complete failed tasks: {benchmark: n} personas conditions}
      success: [{benchmark condition episodes unscored rate}]
      success_by_persona: [{benchmark persona condition successes unscored rate}]
      rounds: [{benchmark condition episodes fired mean mean_fired}]
      gains: [{benchmark condition measure n unscored initial final gain}]
      contrasts: [{benchmark outcome first second test p_holm difference detectable}]
      published: [{quantity of condition this_run published where}], as texts
      diagnostics: one entry per protocol: turns, shift, flip, flip_set,
        tie_rate, fallback_rate, decided_by, abstentions, ballots
      chance: flip and shift to expect of independent first and final votes
      noise_floor: not estimable without a retest; else repeats stages sample
        answered_by failed
        ballots: [{form stage votes pairs one_abstained both_abstained
                   same same_top chance}]
        winners: [{form stage turns elects_logged agree sampled}]
        beside: [{form quantity stage turns logged floor left sampled}],
          quantity: flip, flip_set, leader (without tie rounds) or shift
      winning_roles: [{protocol role wins by_vote by_tie_round by_fallback}]
      ballots: [{protocol stage valid repaired abstained}]
      failures: [{episode_id key error}]
      stop_reasons: [{stage stop_reason calls taken}], how replies ended;
        taken: those that were not asked for once more
      usage: {models: {name: {calls input_tokens output_tokens cost_usd}}
              calls input_tokens output_tokens cost_usd prices_as_of}
      panels: only of a run that compares panels: {panels: {name: roles, …}
        votes: [{panel size found chance: {tied fallback flip exact}}]
        outcomes: [{benchmark panel size condition episodes success score
                    rounds}]
        contrasts: [{benchmark condition measure first second test p_holm
                     difference detectable}]}
      ratings, of a run that people rated: {by
        agreement: [{kind rubric by raters items shared ratings
          ordinal interval: {value over_tasks over_items}}]
        judge: [{kind rubric by items bias distance pearson spearman
          bands: [{low high items judge people}]}]
        delivered: [{kind rubric by condition texts rated score good}]
        success: [{rubric by benchmark condition episodes answers rated
          logged success: {low high n}}]
        other_rules: [{rubric by logged_protocol rule turns identified
          delivered score delivered_good good}]}
    Estimates are {value n interval: {low high method}}; what cannot be estimated
    is {not_estimable: reason}.
    """
    _check_claims(claims, output, full=full)
    check_logs(run)
    system = system_run(run)
    refuse_panel(system, panel)
    if system is not None:
        document = document_of(system, brief=True, command="summary")
        if markdown is not None:
            add_markdown(markdown, to_markdown(document))
        shown = document_shown(document, sections, full=full)
        publish(shown, lambda: to_value(document), as_json=as_json, output=output)
        if claims is not None:
            parts = document_parts(document, "summary")
            write_claims(claims, claims_of(run, "summary", parts, Options(), drawn=_drawn(output)))
        return
    table = load_prices(prices)
    source = of_panel_asked(open_source(run, hints=hints), panel)
    found = overview(source, table, published=published)
    chosen = tuple(SECTIONS) if full else check_sections(sections, SECTIONS)
    if markdown is not None:
        shown = overview_shown(found, chosen)
        add_markdown(markdown, shown_as_markdown(f"summary {run.name}", shown))
    shown = overview_shown(found, chosen)
    publish(shown, lambda: found.to_json(), as_json=as_json, output=output)
    if claims is not None:
        options = Options(published, None if prices is None else table, hints, panel)
        parts = summary_parts(found)
        write_claims(claims, claims_of(run, "summary", parts, options, drawn=_drawn(output)))


def _drawn(output: Path | None) -> DrawnFile | None:
    """What binds the claims to the file that the summary was written to."""
    return None if output is None else drawn_as(output, output.read_bytes())


def _check_claims(claims: Path | None, output: Path | None, *, full: bool) -> None:
    """Refuse claims of a part, before anything is computed."""
    if claims is not None and not full:
        raise UsageError(
            "--claims needs --full.",
            why="A file of claims holds every number of the whole summary.",
            hint="Add --full, or write the claims of the report: `tutorsim report RUN`.",
        )
    if claims is not None and claims == output:
        raise UsageError(
            f"{claims} is the summary's file and that of its claims.", hint="Name two files."
        )
