"""`tutorsim summary`: what a run holds and how it went, provenance first."""

from pathlib import Path

import click

from analysis.sources import open_source
from tutorsim.cli.options import report_options
from tutorsim.cli.overview import overview, overview_shown, overview_value
from tutorsim.cli.render import publish
from tutorsim.plan import load_prices

__all__ = ["summary"]


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--prices", type=click.Path(path_type=Path), help="A price table in place of the shipped one."
)
@report_options
def summary(run: Path, prices: Path | None, as_json: bool, output: Path | None) -> None:
    """Summarise a RUN folder, or a file of ballots: provenance, outcomes, votes, cost.

    Rates have Wilson intervals, means intervals from a bootstrap over tasks, all at 95 %.
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
      usage: {models: {name: {calls input_tokens output_tokens cost_usd}}
              calls input_tokens output_tokens cost_usd prices_as_of}
    Estimates are {value n interval: {low high method}}; what cannot be estimated
    is {not_estimable: reason}.
    """
    found = overview(open_source(run), load_prices(prices))
    publish(overview_shown(found), overview_value(found), as_json=as_json, output=output)
