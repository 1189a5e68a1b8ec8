"""The summary and the report of a panel's run, or of ballots: first screen and sections."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
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
from tutorsim.analysis.pages.words_and_safe_text import counted, listed, share, top
from tutorsim.analysis.recount import tables as recounted
from tutorsim.analysis.recount.first_screen import verdict_table
from tutorsim.analysis.recount.result_models import RuleRow
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
from tutorsim.analysis.systems.contrasts_of_runs_or_conditions_of_any_system import (
    contrast_headline,
)
from tutorsim.analysis.systems.panel import self_support_labels_pivotality_margins as voters
from tutorsim.analysis.systems.panel import student_outcomes as students
from tutorsim.analysis.systems.panel import winners_first_to_final_flips_beside_chance as votes
from tutorsim.analysis.systems.panel.contrasts_of_conditions_or_two_runs import (
    Family,
    contrast_words,
    contrasts_table,
)
from tutorsim.analysis.systems.panel.episode_messages_and_telling_episodes import telling, trace
from tutorsim.analysis.systems.panel.first_divergent_turns_and_success_bounds import (
    Divergence,
    alternatives_table,
    coverage_table,
    divergence_under,
    first_turns_table,
)
from tutorsim.analysis.systems.panel.page_data_and_facts_of_study import (
    Evidence,
    days_of,
    document_on,
    ran_in_short,
    study_words,
    summary_of,
    tutors_of,
    values_of,
)
from tutorsim.analysis.systems.panel.panels_compared_and_ties_of_random_ballots import certain_table
from tutorsim.analysis.systems.system_view_opened_run_and_cost import Leaving, Left, Opened
from tutorsim.vocabularies import PROTOCOLS

# --- First screen answers ------------------------------------------------------------------------


_NO_VOTES: Final = ("Not estimable", "Nothing was put to a vote.")


def _ran(evidence: Evidence) -> Answer | None:
    run = evidence.source.run
    turns = evidence.turns
    if run is None:
        formats = listed([d.protocol for d in evidence.diagnostics])
        return Answer(
            "What was read?",
            f"{counted(turns.height, 'vote')} on {counted(len(evidence.candidates), 'candidate')}",
            " ".join((f"Ballots are {formats}.", *evidence.source.notes)),
            "record",
        )
    grid, study = evidence.grid, run.panel
    failed = f" {counted(grid['failed'], 'episode')} failed." if grid["failed"] else ""
    panels = f"{counted(len(run.panels), 'panel')} stand side by side. " if run.panels else ""
    return Answer(
        "What was run?",
        f"{counted(grid['episodes'], 'episode')}, {counted(turns.height, 'voting turn')}",
        f"{counted(sum(grid['tasks'].values()), 'task')} × "
        f"{counted(len(study.personas), 'student persona')} under each of the conditions "
        f"{listed(study.conditions)}. {panels}A panel has {tutors_of(run)} tutors and at most "
        f"{counted(study.max_turns, 'turn')}.{failed}",
        "outcomes",
    )


def _won(evidence: Evidence) -> Answer | None:
    """Who won, of ballots from elsewhere."""
    n, wins = evidence.turns.height, Counter[str]()
    for row in evidence.winners.iter_rows(named=True):
        wins[row["role"]] += row["wins"]
    left = wins.pop(votes.LEFT_TIED, 0)
    if evidence.source.run is not None or not n:
        return None
    best, each = top(wins), ", ".join(f"{name} {k:,}" for name, k in wins.most_common(8) if k)
    most = f"Most wins: {each}. " if best and n > 1 else ""
    won = f"{listed(best[:3])}{' and others' if len(best) > 3 else ''}"
    of = f"{max(wins.values(), default=0):,} of {counted(n, 'vote')}"
    tied = f"{counted(left, 'vote')} stayed tied. " if left else ""
    return Answer(
        "Who won?",
        "Nobody: a tie" if not best else won if n == 1 else f"{won}, {of}",
        f"{most}{tied}By the rule of each ballot format.",
        "decisions",
    )


def _answered(evidence: Evidence) -> Answer | None:
    source, run = evidence.source, evidence.source.run
    if run is None and not source.stated:  # the head of the page says that nobody knows
        return None
    if run is None:
        told = _ANSWERED[source.kinds[0]][0] if len(source.kinds) == 1 else "Several"
        detail = f"The ballots were exported from a recording: {'; '.join(source.stated)}."
    else:
        stated, calls = run.provenance, sum(len(e.calls) for e in source.episodes)
        told, asked = _ANSWERED[stated.kind]
        models, days = listed(stated.models), days_of(stated)
        detail = f"{stated.name}. {counted(calls, 'call')} {asked} {models}, {days}."
    return Answer("What answered the calls?", told, detail, "record")


_ANSWERED: Final = {
    "api": ("The real endpoint", "answered by"),
    "stand-in": (
        "A scripted stand-in, no language model",
        "in the name of models that never saw them:",
    ),
    "relay": ("A relay, on the user's word", "in the name of"),
    "imported": ("Another program, whose logs were imported", "logged as answered by"),
}
"""Kind of what answered → its name, and what it did to calls."""


def _differs(evidence: Evidence) -> Answer | None:
    """Which differences between conditions are beyond chance."""
    found = evidence.contrasts
    if not found:
        return None
    return Answer(
        "Do the conditions differ?",
        contrast_headline(found),
        contrast_words(found),
        "contrasts" if evidence.brief else "conditions",
    )


def _of_panels(evidence: Evidence) -> Answer | None:
    """Which differences between panels are beyond chance."""
    panels = evidence.panels
    if not panels:
        return None
    headline = contrast_headline(panels.contrasts)
    return Answer("Do the panels differ?", headline, panels.words(), "panels")


def _agreed(evidence: Evidence) -> Answer:
    """Turns whose winner every other protocol surely keeps, or some protocol surely changes."""
    answer = partial(Answer, "What do the rules agree on?", section="rules")
    if not evidence.voted:
        return answer(*_NO_VOTES)
    unit, (keeps, changes, n) = evidence.unit, evidence.recount.agreed("set")
    if not n:
        return answer("Not estimable", f"{evidence.no_winner}, so there is no winner to keep.")
    detail = (
        f"A tie under another protocol stays a tie here. In {share(changes, n, unit)} at least "
        "one other protocol would surely elect somebody else."
    )
    if n > keeps + changes:
        detail += (
            f" In the other {n - keeps - changes:,} it depends on what the voters would have cast "
            "in the other formats, which their ballots do not say, or on who breaks a tie."
        )
    if not evidence.unordered:
        given, _, _ = evidence.recount.agreed("fallback")
        detail += f" With ties given to the fallback order, all agree in {share(given, n, unit)}."
    return answer(f"All four protocols surely agree in {share(keeps, n, unit)}", detail)


def _decided(evidence: Evidence) -> Answer:
    ordered = (
        "would an order" if evidence.voted and evidence.unordered else "did the fallback order"
    )
    section = "decisions" if evidence.brief else "orders"
    answer = partial(Answer, f"What {ordered} decide?", section=section)
    if not evidence.voted:
        return answer(*_NO_VOTES)
    found, unit = evidence.orders, evidence.unit
    if not found.decided_by_order:
        single = f"Counting left a single winner in every {unit}"
        return answer("Nothing", f"{single}: every fallback order elects the same.")
    decided = share(found.decided_by_order, found.turns, unit)
    if evidence.unordered:
        return answer(
            decided,
            f"Counting leaves a tie there, and no order is logged: such a {unit} has no "
            "winner in this report. An order would give it one.",
        )
    widest = max(found.candidates, key=lambda one: one.most - one.least)
    drawn = float(found.changed_expected or 0)
    return answer(
        decided,
        f"Another fallback order could change these, and a random one would change "
        f"{drawn:.1f} on average. {widest.candidate} wins "
        f"{widest.least:,} to {counted(widest.most, unit)} depending on the order. As logged it "
        f"wins {widest.logged:,}.",
    )


def _open(evidence: Evidence) -> Answer:
    section = "decisions" if evidence.brief else "rules"
    answer = partial(Answer, "What is not identified?", section=section)
    if not evidence.voted:
        return answer(*_NO_VOTES)
    said = ""
    if evidence.source.run is not None:
        said = " What a student would have said to another reply is never identified."
    if evidence.brief:
        bounded = f"`tutorsim recount` bounds the winners.{said}"
        return answer("Who would have won under another ballot format", bounded)
    every = [r for r in evidence.rule_rows if r.other and r.target in PROTOCOLS]
    other, given = ([r for r in every if r.reading == reading] for reading in ("set", "fallback"))
    cases, unit = sum(r.turns for r in other), evidence.unit
    open_, left = (sum(r.turns - r.identified for r in rows) for rows in (other, given))
    if not cases:
        return answer("Nothing was recounted", "No other rule was asked for.")
    if not evidence.unordered:
        said = f" With ties given to the fallback order it is {share(left, cases, 'case')}.{said}"
    return answer(
        f"The winner under another protocol, in {share(open_, cases, 'case')}",
        f"A case is a {unit} and another protocol, under which a tie stays a tie. Several winners "
        f"are possible there: {_where_open(other, unit)}{said}",
    )


def _where_open(other: Sequence[RuleRow], unit: str) -> str:
    """Under which protocols most and fewest turns are open."""

    def known(row: RuleRow) -> Fraction:
        return Fraction(row.identified, row.turns)

    def missing(row: RuleRow) -> str:
        return (
            f"{row.turns - row.identified:,} of {row.turns:,} {unit}s when {row.logged_protocol} "
            f"ballots are counted as {row.target}"
        )

    least, most = min(other, key=known), max(other, key=known)
    if known(least) == known(most):
        return "equally often, whatever ballots are counted as."
    return f"most often in {missing(least)}. Least often they are in {missing(most)}."


_OF_PAGE: Final = (_ran, _won, _answered, _differs, _of_panels, _agreed, _decided, _open)
"""Questions of a page's first screen; each says nothing where it has nothing to say."""
_OF_TERMINAL: Final = (_won, _differs, _of_panels, _decided, _open)
"""Questions of a terminal's, whose head says what ran; of agreement only a recount tells."""


def answers(evidence: Evidence) -> tuple[Answer, ...]:
    """The answers of the first screen."""
    asked = _OF_TERMINAL if evidence.brief else _OF_PAGE
    return tuple(found for ask in asked if (found := ask(evidence)) is not None)


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
    alternatives_table,
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
    section("study", "The study", study_words, failures_table),
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
    return document_on(
        evidence,
        "Report",
        summary=summary_of(evidence),
        told_of="What answered the calls" if run else "Where the ballots are from",
        answers=answers(evidence),
        sections=sections_of(evidence, BRIEF if brief else whole),
        episodes=NO_EPISODES if brief else _episodes(evidence),
        without_episodes="The run holds no episode." if run else "",
        lead="kept" if run or evidence.turns.get_column("winner").count() else "identification",
        unknown=run is None and not source.stated,
        digest=run.recording_digest if run else "",
        brief=present(*(part(evidence) for part in tables)),
        values=lambda: values_of(evidence) if brief else {},
    )


def diverged(opened: Opened, leaving: Leaving) -> Left:
    """Where episodes leave their logged path under one alternative."""
    found = divergence_under(opened.source, leaving)
    return Left(found.question, found.episodes, lambda: divergence_document(opened, found))


def divergence_document(opened: Opened, found: Divergence) -> Document:
    """The document on where episodes leave their logged path."""
    evidence = Evidence(opened.source, opened.asked, True)
    covered = sum(row.covered for row in found.coverage)
    episodes = found.episodes.height
    known = any(not isinstance(row.logged["success"], NotEstimable) for row in found.coverage)
    unknown = "" if known else "No outcome is logged, so there is none to bound."
    open_ = f" {_OPEN}" if evidence.unordered else ""
    tables = present(coverage_table(found), first_turns_table(found))
    return document_on(
        evidence,
        "Divergence",
        summary=f"{found.question}. {ran_in_short(evidence)}{open_}",
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
