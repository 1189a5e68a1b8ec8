"""The summary and the report of a panel's run, or of ballots: their sections, and divergence."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from tutorsim.analysis.pages.cells_and_tables import Table, dollars, present
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import (
    DeclaredSection,
    Row,
    chart,
    section,
    sections_of,
    table,
)
from tutorsim.analysis.pages.document import Answer, Document, Section
from tutorsim.analysis.pages.shown_episodes import NO_EPISODES, Episodes, Run
from tutorsim.analysis.pages.words_and_safe_text import counted
from tutorsim.analysis.recount import tables as recounted
from tutorsim.analysis.recount.first_screen_what_was_read_and_verdict import verdict_table
from tutorsim.analysis.recount.same_voter_in_two_formats import (
    askings_by_format_table,
    invariance_table,
    invariance_words,
)
from tutorsim.analysis.recount.success_under_other_score_thresholds import (
    Thresholds,
    threshold_table,
)
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable, to_json
from tutorsim.analysis.systems.panel import first_divergent_turns_and_success_bounds as divergence
from tutorsim.analysis.systems.panel import first_sentence_answers_and_facts_of_summary as opening
from tutorsim.analysis.systems.panel import self_support_labels_pivotality_margins as voters
from tutorsim.analysis.systems.panel import student_outcomes as students
from tutorsim.analysis.systems.panel import winning_roles_ties_ballots_shift_flip_chance as votes
from tutorsim.analysis.systems.panel.contrasts_of_conditions_or_two_runs import (
    Family,
    contrast_words,
    contrasts_table,
)
from tutorsim.analysis.systems.panel.episode_messages_and_telling_episodes import telling, trace
from tutorsim.analysis.systems.panel.page_data_and_published_figures import Evidence
from tutorsim.analysis.systems.panel.panels_compared_and_ties_of_random_ballots import certain_table
from tutorsim.analysis.systems.system_view_opened_run_and_cost import Leaving, Left, Opened

# --- Sections ------------------------------------------------------------------------------------


def _dial(evidence: Evidence) -> Table | None:
    """Every protocol under the others, as voters are exempt."""
    rows = [r for r in evidence.recount.rules if r.reading == evidence.reading and r.other]
    return recounted.dial_table(recounted.Dial(rows, invariance_words(evidence.invariance)))


def _mixed_words(evidence: Evidence) -> str:
    """What a branch's figures are of, for a section's lead."""
    if not evidence.branched:
        return ""
    return (
        "Logged and re-simulated together, without episodes that the branch left open; `tutorsim "
        "compare PARENT BRANCH` keeps them apart and bounds the open ones."
    )


def _policies(evidence: Evidence) -> Table | None:
    """Other ways to break ties that the votes had; a lot alone says no more than any order does."""
    held = evidence.tie_rounds
    if evidence.unordered and not held:
        return None
    rows = recounted.of_protocol(evidence.recount.policies)
    return recounted.policies_table(
        [row for row in rows if held or row.policy not in _OF_TIE_ROUNDS]
    )


_OF_TIE_ROUNDS: Final = ("no_tie_round", "random_no_tie_round")


def _electorates(evidence: Evidence) -> Table | None:
    return recounted.electorates_table(recounted.of_protocol(evidence.recount.electorates))


def _folded(found: Table | None) -> Table | None:
    """A table whose chart says the same."""
    return None if found is None else replace(found, folded=True)


_student_chart = partial(chart, "tutorsim.analysis.systems.panel.charts_of_students")
_rule_chart = partial(chart, "tutorsim.analysis.systems.panel.charts_of_fallback_orders_and_rules")
_vote_chart = partial(
    chart, "tutorsim.analysis.systems.panel.charts_of_steps_shifts_noise_pivots_labels"
)

CONDITIONS: Final[DeclaredSection[Evidence]] = section(
    "conditions",
    "One condition against another",
    lambda of: contrast_words(of.contrasts),
    _student_chart("contrasts_figure"),
    lambda of: _folded(contrasts_table(Family(of.contrasts))),
    when=lambda of: of.contrasts,
)
PANELS: Final[DeclaredSection[Evidence]] = section(
    "panels",
    "One panel against another",
    lambda of: (
        f"{of.panels.words()} A larger panel has more voters and more drafts to choose from, so "
        "ties and flips change with size by chance alone; the tables give that chance. All other "
        "sections take the panels together; --panel NAME reports on one of them."
    ),
    lambda of: of.panels.tables(),
    lambda of: None if of.brief else certain_table(of),
    when=lambda of: of.panels,
)
OUTCOMES: Final = section(
    "outcomes",
    "What became of the students",
    lambda of: (
        f"{of.as_logged}. Differences between conditions are differences between recordings "
        "of the same tasks and personas, whose first attempts were drawn separately."
    ),
    _student_chart("scores_figure"),
    _student_chart("personas_figure"),
    students.gains_table,
    lambda of: threshold_table(Thresholds(of.thresholds, of.threshold)),
)
DECISIONS: Final = section(
    "decisions",
    "How the votes were decided",
    lambda of: (
        f"{of.as_logged}, except what is headed “re-asked”. The turn is the unit; turns of "
        "one episode are not independent."
    ),
    _vote_chart("decided_figure"),
    _vote_chart("movement_figure"),
    _vote_chart("noise_figure"),
    votes.diagnostics_table,
    lambda of: of.published_table,
    votes.chance_table,
    votes.beside_floor_table,
    votes.askings_table,
    votes.winners_table,
)
ORDERS: Final = section(
    "orders",
    "What the fallback order decided",
    "Exact: under another order only turns that counting left tied can change, and how "
    "often each set of candidates was tied says what every order would have done.",
    _rule_chart("orders_figure"),
    _rule_chart("wins_figure"),
    _policies,
)
RULES: Final = section(
    "rules",
    "What other rules would have chosen",
    "Mostly not exact: a ballot in one format says only part of what its voter would have "
    "cast in another. What is certain and what is possible stand side by side.",
    _rule_chart("kept_figure"),
    _rule_chart("agreement_figure"),
    _rule_chart("identification_figure"),
    lambda of: verdict_table(of.recount),
    _dial,
    lambda of: recounted.approvals_table(of.recount),
    lambda of: invariance_table({"": of.invariance}),
    lambda of: askings_by_format_table({"": of.invariance}),
    _electorates,
    lambda of: recounted.readings_table(recounted.of_protocol(of.recount.readings)),
    divergence.alternatives_table,
)
VOTERS: Final = section(
    "voters",
    "How far to trust the votes",
    "Signs that ballots follow something else than what is voted on, and how many ballots each "
    "decision hangs on.",
    _vote_chart("margins_figure"),
    _vote_chart("pivotal_figure"),
    _vote_chart("labels_figure"),
    voters.panel_table,
    voters.self_support_table,
)

WHOLE: Final = (ORDERS, RULES, CONDITIONS, PANELS, OUTCOMES, DECISIONS, VOTERS)
"""Sections of a report."""
_CALLED: Final = {
    "turns": "votes",
    "turns changed": "votes changed",
    "share of turns": "share of votes",
    "of turns": "of votes",
    "episodes": "votes on",
}
"""Heads of columns and axes → what they are called where nobody holds a dialogue."""


def _in_votes(*sections: DeclaredSection[Evidence]) -> tuple[DeclaredSection[Evidence], ...]:
    """Tables, and the charts that there are, in words for ballots from elsewhere."""

    def called(part: Callable[[Evidence], Any], of: Evidence) -> Any:
        made = part(of)
        if made is None or (not isinstance(made, Table) and made.chart is None):
            return None
        data = made.data.rename(_CALLED, strict=False)
        if not isinstance(made, Table):
            return replace(made, data=data, heads=_CALLED)
        written = {_CALLED.get(name, name): cells for name, cells in made.written.items()}
        secondary = tuple(_CALLED.get(name, name) for name in made.secondary)
        return replace(made, data=data, written=written, secondary=secondary)

    return tuple(
        replace(one, parts=tuple(partial(called, part) for part in one.parts)) for one in sections
    )


OF_BALLOTS: Final = _in_votes(
    section(
        "decisions",
        "Who won",
        "As the ballots say, by their own format's rule.",
        votes.winners_table,
        _vote_chart("decided_figure"),
        _vote_chart("movement_figure"),
        votes.diagnostics_table,
        votes.chance_table,
    ),
    replace(
        RULES,
        title="Who else could have won",
        parts=tuple(part for part in RULES.parts if part is not _electorates),
    ),
    replace(
        ORDERS,
        title="What an order decides where counting leaves a tie",
        lead="Exact: only what counting leaves tied can change under an order, and how often each "
        "set of candidates is tied says what every order would do.",
    ),
    section(
        "voters",
        "Who decides",
        "How many ballots each winner hangs on, and whose.",
        _vote_chart("margins_figure"),
        _vote_chart("pivotal_figure"),
        _electorates,
    ),
    section(
        "agreement",
        "How the votes agree",
        "Voters who think alike are fewer than they seem.",
        voters.panel_table,
        voters.self_support_table,
        _vote_chart("labels_figure"),
    ),
)
"""Sections of a report on ballots from elsewhere."""


# --- Sections of the summary ----------------------------------------------------------------------


@table("failures", "Failed episodes")
def failures_table(of: Evidence) -> Iterator[Row]:
    """They are in no figure."""
    for episode in of.source.episodes:
        if episode.failure is not None:
            yield {
                "episode": episode.episode_id,
                "call": episode.failure.key,
                "error": episode.failure.error,
            }


@table(
    "cost",
    "Calls, tokens and cost",
    paid=lambda of: (
        ""
        if of.source.run.provenance.kind == "api"
        else " Not what was paid: the Messages API did not answer them."
    ),
)
def cost_table(of: Evidence) -> Iterator[Row]:
    """At list prices of {usage[prices_as_of]}.{paid}"""
    models = of.usage["models"]
    for name, row in {**models, **({"all": of.usage} if len(models) > 1 else {})}.items():
        yield {
            "model": name,
            "calls": row["calls"],
            "input tokens": row["input_tokens"],
            "output tokens": row["output_tokens"],
            "US$": dollars(row["cost_usd"]),
        }


BRIEF: Final[tuple[DeclaredSection[Evidence], ...]] = (
    section("study", "The study", opening.study_words, failures_table),
    section(
        "outcomes",
        "What became of the students",
        _mixed_words,
        students.success_table,
        students.gains_table,
        students.persona_tables,
        when=lambda of: of.source.run,
    ),
    section(
        "contrasts",
        "One condition against another",
        "",
        lambda of: contrasts_table(Family(of.contrasts)),
    ),
    PANELS,
    section(
        "decisions",
        "How the votes were decided",
        _mixed_words,
        votes.diagnostics_table,
        votes.chance_table,
        votes.beside_floor_table,
        votes.askings_table,
        votes.winners_table,
    ),
    section("ballots", "The ballots", "", votes.ballots_table),
    section("published", "Beside the published study", "", lambda of: of.published_table),
    section(
        "cost",
        "What it cost",
        lambda of: (
            "Calls taken over from the parent are among them, once for every draw; "
            "`tutorsim compare PARENT BRANCH` counts those that were paid for."
            if of.branched
            else ""
        ),
        cost_table,
        when=lambda of: of.source.run,
    ),
)
"""Sections of a summary."""


# --- Document ------------------------------------------------------------------------------------


def document(opened: Opened, brief: bool) -> Document:
    """The summary (brief) or the report (whole) of a run, or of ballots from elsewhere."""
    evidence = Evidence(opened.source, opened.asked, brief)
    source, run = evidence.source, evidence.source.run
    whole = OF_BALLOTS if run is None else WHOLE
    tables = (students.success_table, votes.winners_table) if brief else ()
    return opening.document_on(
        evidence,
        "Report",
        summary=opening.summary_of(evidence),
        told_of="What answered the calls" if run else "Where the ballots are from",
        answers=opening.answers(evidence),
        sections=sections_of(evidence, BRIEF if brief else whole),
        episodes=NO_EPISODES if brief else _episodes(evidence),
        without_episodes="The run holds no episode." if run else "",
        lead="kept" if run or evidence.turns.get_column("winner").count() else "identification",
        unknown=run is None and not source.stated,
        digest=run.recording_digest if run else "",
        brief=present(*(part(evidence) for part in tables)),
        values=lambda: opening.values_of(evidence) if brief else {},
    )


def diverged(opened: Opened, leaving: Leaving) -> Left:
    """Where episodes leave their logged path under one alternative."""
    found = divergence.divergence_under(opened.source, leaving)
    return Left(found.question, found.episodes, lambda: divergence_document(opened, found))


def divergence_document(opened: Opened, found: divergence.Divergence) -> Document:
    """The document on where episodes leave their logged path."""
    evidence = Evidence(opened.source, opened.asked, True)
    covered = sum(row.covered for row in found.coverage)
    episodes = found.episodes.height
    known = any(not isinstance(row.logged["success"], NotEstimable) for row in found.coverage)
    unknown = "" if known else "No outcome is logged, so there is none to bound."
    open_ = f" {_OPEN}" if evidence.unordered else ""
    tables = present(divergence.coverage_table(found), divergence.first_turns_table(found))
    return opening.document_on(
        evidence,
        "Divergence",
        summary=f"{found.question}. {opening.ran_in_short(evidence)}{open_}",
        answers=(
            Answer(
                "How far does the recording speak for it?",
                f"{covered:,} of {counted(episodes, 'episode')} are covered"
                if episodes
                else "There is no episode with a panel",
                unknown,
                "coverage",
            ),
        ),
        sections=(Section("coverage", "First turns that may differ", "", tables=tables),),
        brief=tuple(_first_rows(one) for one in tables),
        values=lambda: to_json(found),
    )


_LISTED: Final = 8
"""First turns on a terminal's first screen."""


def _first_rows(made: Table) -> Table:
    left = made.data.height - _LISTED
    if made.name != "first-turns" or left < 1:
        return made
    caption = f"{made.caption} {left:,} more: --full shows them, and --episodes FILE writes them."
    return replace(made, data=made.data.head(_LISTED), caption=caption)


_OPEN: Final = (
    "No order is logged: turns that counting leaves tied have no winner to diverge from, and are "
    "left out."
)


def _episodes(evidence: Evidence) -> Episodes:
    episodes, run = evidence.source.episodes, evidence.source.run
    if not episodes or run is None:
        return NO_EPISODES
    flipped = set(evidence.turns.filter("flip")["episode_id"])
    told = partial(trace, Run(run))
    return Episodes(episodes, told, telling(flipped), evidence.asked.episodes)
