"""The first sentence, first answers and stated facts of a page on a panel's run, or on ballots."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Final

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.pages.document import Answer, Document, Fact
from tutorsim.analysis.pages.words_and_safe_text import (
    WARNINGS,
    counted,
    listed,
    share,
    spoken,
    top,
    warning_of,
)
from tutorsim.analysis.recount.result_models import RuleRow
from tutorsim.analysis.runs.branch_counts_turns_siblings_share import branch_changes, branch_words
from tutorsim.analysis.systems.contrasts_of_any_sides_in_words_and_of_runs import contrast_headline
from tutorsim.analysis.systems.panel import winning_roles_ties_ballots_shift_flip_chance as votes
from tutorsim.analysis.systems.panel.contrasts_of_conditions_or_two_runs import (
    contrast_values,
    contrast_words,
)
from tutorsim.analysis.systems.panel.page_data_and_published_figures import Evidence
from tutorsim.records import Provenance, RunRecord, stop_counts
from tutorsim.records.run_head_and_reading_run_folders_and_retests import (
    makeup_words,
    panels_of,
    sizes_of,
)
from tutorsim.vocabularies import PROTOCOLS

# --- What was read --------------------------------------------------------------------------------

_UNKNOWN = "unknown: ballots from elsewhere"
_ABSENT = "The file says how voters voted, and nothing of what was said before or came of it."


def tutors_of(run: RunRecord) -> str:
    """How many tutors a panel has, from the smallest to the largest."""
    least, *_, most = (*sizes_of(run), sizes_of(run)[-1])
    return str(least) if least == most else f"{least} to {most}"


def days_of(stated: Provenance) -> str:
    """The days on which a recording was made."""
    if stated.recorded_from is None:
        return "no day recorded"
    if stated.recorded_to in (None, stated.recorded_from):
        return f"recorded on {stated.recorded_from}"
    return f"recorded from {stated.recorded_from} to {stated.recorded_to}"


def study_words(evidence: Evidence) -> str:
    """What was studied, and how much of it there is; nothing of ballots from elsewhere."""
    run = evidence.source.run
    if run is None:
        return ""
    study, grid = run.panel, evidence.grid
    changed = run.branch is not None and run.branch.fallback_order is not None
    said = (
        f"Study {study.name}, seed {study.seed}, digest {run.study_digest[:12] or 'not stated'}; "
        f"recording {run.recording_digest[:12] or 'not stated'}. "
        f"Success: score at least {study.success_threshold:g}, and passing tests for programs, "
        f"within {study.max_turns} turns. Labels: {spoken(study.blinding)}. "
        f"Fallback order: {' > '.join(study.fallback_order)}"
        + (", before the branch changes it." if changed else ".")
    )
    if not grid["episodes"]:
        return said
    named = panels_of(run)
    panels = f"; panels {listed(list(named))}" if named else ""
    tasks = listed([f"{n} of {name}" for name, n in grid["tasks"].items()])
    return (
        f"{said} Grid: tasks {tasks}; {len(grid['personas'])} personas; conditions "
        f"{listed(grid['conditions'])}{panels}. Episodes: {grid['episodes']}, "
        f"of which {grid['complete']} complete and {grid['failed']} failed."
    )


def provenance_of(source: Source) -> str:
    """What answered the calls, for captions."""
    if source.run is None and source.stated:
        return f"{'; '.join(source.stated)} (exported ballots, {source.name})"
    if source.run is None:
        return f"{_UNKNOWN} ({source.name})"
    stated, branch = source.run.provenance, source.run.branch
    return f"{stated.kind} ({stated.name})" + (f"; {branch_words(branch)}" if branch else "")


def summary_of(evidence: Evidence) -> str:
    """What was run, and what a page says of it; of a summary, what was run in short."""
    run = evidence.source.run
    if evidence.brief:
        return ran_in_short(evidence)
    if run is None:
        return (
            f"What the ballots of {evidence.source.name} say about ties, orders and rules; "
            f"{counted(evidence.turns.height, 'vote')}."
        )
    words = (
        f"How panels of {tutors_of(run)} tutors chose what to tell a student, what became of "
        f"the students, and what other decision rules would have chosen from the same ballots."
    )
    counts = evidence.branched
    if run.branch is None or counts is None:
        return words
    return (
        f"{words} The run is a {branch_words(run.branch)}. Its figures are of both together: "
        f"{counted(counts.covered, 'logged episode')} and {counted(counts.continued, 'episode')} "
        "re-simulated. The comparison with its parent keeps them apart."
    )


def ran_in_short(evidence: Evidence) -> str:
    """How much was run, and by which models."""
    run, source = evidence.source.run, evidence.source
    if run is None:
        cast = counted(evidence.turns.height, "vote")
        notes = "".join(f" {note}" for note in source.notes)
        return f"{cast} from elsewhere.{notes}"
    episodes, stated = source.episodes, run.provenance
    if not episodes:
        return "The run has no episode."
    failed, tasks = evidence.grid["failed"], sum(evidence.grid["tasks"].values())
    left = f" {counted(failed, 'episode')} failed and are in no figure." if failed else ""
    mixed = ""
    if counts := evidence.branched:
        mixed = (
            f" Logged and re-simulated together: {counts.covered:,} as logged, "
            f"{counts.continued:,} re-simulated. These have {counted(counts.draws, 'draw')}, of "
            f"which {counts.failed:,} failed."
        )
    return (
        f"{counted(len(episodes), 'episode')} of {counted(tasks, 'task')} under "
        f"{listed(evidence.grid['conditions'])}.{left} Models: {listed(stated.models)}, "
        f"{days_of(stated)}.{mixed}"
    )


def document_on(evidence: Evidence, title: str, **parts: Any) -> Document:
    """A document with what was read around its parts; of ballots a warning says what an export
    stated, and that the rest is absent."""
    source, run = evidence.source, evidence.source.run
    said = [WARNINGS[kind] for kind in source.kinds if source.stated]
    return Document(
        title=f"{title} of {run.study.name if run else source.name}",
        provenance=provenance_of(source),
        warning=warning_of(run.provenance) if run else " ".join((*said, _ABSENT)),
        facts=_facts(source),
        **parts,
    )


def _facts(source: Source) -> tuple[Fact, ...]:
    """Settings, digests and versions; what a reader needs to find the same recording again."""
    run = source.run
    if run is None:
        return (
            ("Source", source.name),
            ("Where they are from", _UNKNOWN),
            ("Points of a cumulative ballot", source.budget),
            *(("Reader's note", note) for note in source.notes),
        )
    study, stated, branch = run.panel, run.provenance, run.branch
    branched = branch and (
        ("Branch of", branch.parent),
        ("Under", branch_changes(branch)),
        ("Draws of each episode taken up", str(branch.continuations)),
        ("Parent's recording digest", branch.parent_recording),
    )
    return (
        ("Study", study.name),
        *(branched or ()),
        ("Seed", study.seed),
        ("What answered", f"{stated.kind}: {stated.name}"),
        ("Models that replied", listed(stated.models)),
        ("Models asked for", listed([f"{who} {name}" for who, name in study.models.items()])),
        ("Recorded", f"{stated.recorded_from or 'no day'} to {stated.recorded_to or 'no day'}"),
        *((f"Panel {name}", makeup_words(made)) for name, made in run.panels.items()),
        ("Roles", listed(study.roles)),
        ("Fallback order", " › ".join(study.fallback_order)),
        ("Labels", f"drawn {spoken(study.blinding)}"),
        ("Success", f"judge score of at least {study.success_threshold:g}; programs also pass"),
        ("Points of a cumulative ballot", study.cumulative_budget),
        ("Repeats", study.repeats),
        ("Study digest", run.study_digest),
        ("Recording digest", run.recording_digest),
        *((f"Package {name}", version) for name, version in run.packages.items()),
    )


def values_of(evidence: Evidence) -> dict[str, Any]:
    """What a summary's tables leave out or say in words."""
    run = evidence.source.run
    return {
        "study": None if run is None else run.study.model_dump(mode="json"),
        "branch": evidence.branched,
        "grid": evidence.grid,
        "success": evidence.success,
        "success_by_persona": evidence.successes,
        "rounds": evidence.rounds,
        "gains": evidence.gains,
        "contrasts": contrast_values(evidence.contrasts),
        "diagnostics": evidence.diagnostics,
        "chance": evidence.chance,
        "noise_floor": evidence.noise,
        "winning_roles": evidence.winners.to_dicts(),
        "ballots": evidence.ballots,
        "stop_reasons": [count._asdict() for count in stop_counts(evidence.source.episodes)],
        "usage": evidence.usage,
        **({"panels": evidence.panels} if evidence.panels else {}),
    }


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
