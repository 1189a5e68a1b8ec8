"""An episode as a reader follows it, alone or beside what a branch re-simulated."""

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from tutorsim.analysis.pages.words_and_safe_text import step_sentence
from tutorsim.analysis.runs.branch_origins_and_shared_turns import branch_changes
from tutorsim.ballot_reading_and_decisions import Decision, RichBallot, leaders, tally
from tutorsim.cli.console_progress_and_safe_text import listing, safe
from tutorsim.cli.open_run_or_recording_and_head_of_page import draw_name, from_here
from tutorsim.cli.output_elements import Prose, heading, number, provenance, styled, table
from tutorsim.records import (
    Attempt,
    BallotRecord,
    BranchPoint,
    EpisodeLine,
    EpisodeRecord,
    Note,
    Proposal,
    ReviewRecord,
    RunRecord,
    Turn,
    odd_stops,
    stop_counts,
)
from tutorsim.records.run_head_and_reading_run_folders_and_retests import of_one_panel, taught_by
from tutorsim.records.stop_reasons_of_replies import WITHOUT_TEXT

# --- Episode trace -------------------------------------------------------------------------------

Shown = Iterator[RenderableType]

SHORT = 40
"""Characters of a reply that a table of ballots shows."""
JOINED = {"simple": "", "ranked": " > ", "cumulative": ", ", "approval": ", "}
FORMS = {"repaired": "not in the form asked for", "missing": "never came"}
REASONS = {
    "vote": "the vote",
    "tie_round": "the tie round",
    "fallback": "the fallback order (fallback)",
}
"""Deciding step → words for it."""


def trace(run: RunRecord, record: EpisodeRecord, part: EpisodeRecord) -> Shown:
    """What an episode record holds, in the order in which it happened.

    `part`: the same episode with the attempts and turns to show.
    """
    yield heading(record.episode_id)
    yield provenance(run.provenance)
    repeat = f", repeat {record.repeat}" if record.repeat > 1 else ""
    yield Prose(
        f"Task {record.task_id} of {record.benchmark}, student {record.persona}, "
        f"condition {record.condition}{taught_by(record, run)}{repeat}."
    )
    if record.branch is not None:
        yield Prose(_continued(record.branch, run))
    yield Prose(_outcome(record, run.panel.success_threshold))
    yield from odd_ends(record)
    yield from _task(record)
    turns = {turn.turn: turn for turn in part.turns}
    for attempt in part.attempts:
        if attempt.turn in turns:
            yield from _turn(turns.pop(attempt.turn), run, record)
        yield from _attempt(attempt)
    for turn in turns.values():
        yield from _turn(turn, run, record)


def odd_ends(record: EpisodeLine) -> Shown:
    """The calls whose replies had no text or no end of their own."""
    silent = record.without_text or ()
    for odd in odd_stops(stop_counts([record])):
        keys = [
            call.key
            for call in record.calls
            if call.stage == odd.stage
            and odd.stop_reason == (WITHOUT_TEXT if call.key in silent else call.stop_reason)
        ]
        yield Prose(styled(f"{odd.words}: ", "bold yellow") + safe(", ".join(keys)))


def _continued(point: BranchPoint, run: RunRecord) -> Text:
    """What a continuation continues, and from where on it is no log."""
    branch = run.branch
    name = f" of {branch.parent}" if branch else ""
    left = "never left" if point.left is None else f"left at turn {point.left}"
    return styled(f"Re-simulated from turn {point.turn} on", "bold yellow") + safe(
        f": {draw_name(point, branch)} of what might have followed in {point.parent_episode}"
        f"{name}; the logged path was {left}."
    )


def _task(record: EpisodeRecord) -> Shown:
    for title, text in (("Task", record.question), ("Reference, for the judge", record.reference)):
        if text:
            yield Text()
            yield heading(title)
            yield Prose(text, indent=2)


def _outcome(record: EpisodeRecord, threshold: float) -> Text:
    scores = " → ".join(number(attempt.score) for attempt in record.attempts)
    if record.failure is not None:
        failed = f"Failed, at call {record.failure.key}. {record.failure.error}"
        return styled(failed, "bold red") + safe(f"\nScores until then: {scores or 'none'}.")
    word, style = ("Success", "bold green") if record.success else ("No success", "bold")
    turns = "1 tutoring turn" if record.turns_taken == 1 else f"{record.turns_taken} tutoring turns"
    need = f"at least {threshold:g}" + (", tests passed" if record.benchmark == "humaneval" else "")
    return styled(word, style) + safe(f" after {turns}; scores {scores} (success: {need}).")


def _attempt(attempt: Attempt) -> Shown:
    title = "First attempt" if attempt.turn == 0 else f"Attempt after turn {attempt.turn}"
    yield Text()
    yield heading(f"━━ {title}", f"score {number(attempt.score)}{_tests(attempt)}")
    yield Prose(attempt.text or "(empty)", indent=2)
    rationale = attempt.score_rationale or "no readable score"
    yield Prose(styled("judge: ", "dim") + safe(rationale), indent=2)


def _tests(attempt: Attempt) -> str:
    verdict = attempt.verdict
    if verdict is None:
        words = {True: ", tests: pass", False: ", tests: fail", None: ""}
        return words[attempt.code_passed]
    unsafe = ", run without the sandbox" if verdict.unsafe else ""
    limit = ", near its limit" if verdict.near_limit else ""
    reason = f" ({verdict.reason})" if verdict.reason else ""
    return f", tests: {verdict.outcome}{reason}{limit}{unsafe}"


def _turn(turn: Turn, run: RunRecord, record: EpisodeRecord) -> Shown:
    yield Text()
    point = record.branch if record.branch and turn.turn >= record.branch.turn else None
    if point is not None:
        yield Prose(styled(from_here(point, run.branch, turn=turn.turn), "bold yellow"))
    if turn.decision is None:
        yield heading(f"━━ Turn {turn.turn}", "a single tutor, no vote")
        yield from _proposals("Reply", turn.proposals_initial)
        return
    yield heading(f"━━ Turn {turn.turn}", f"{_vote_name(turn)} vote")
    yield from _proposals("First drafts", turn.proposals_initial)
    yield from _reviews("Reviews of the first drafts", turn.reviews)
    yield from _ballots("Ballots on the first drafts", turn.ballots_initial, "diagnostic only")
    yield from _proposals("Revised replies", turn.proposals_final)
    yield from _ballots("Ballots on the revised replies", turn.ballots_final, "these count")
    for form, ballots in turn.ballots_as.items():
        logged = point is not None and form == record.condition
        title = f"Ballots {'of the logged vote' if logged else 'asked for'} as {form}"
        yield from _ballots(title, ballots, "diagnostic only")
    if turn.tie_round is not None:
        tied = listing(turn.tie_round.candidates)
        yield from _reviews(f"Tie round: reviews of {tied}", turn.tie_round.reviews)
        yield from _ballots("Tie round: ballots", turn.tie_round.ballots, "these count")
    study = (run if record.panel is None else of_one_panel(run, record.panel)).panel
    order = study.fallback_order if point is None else study.deciding_order
    yield from _decision(turn, turn.decision, order)


def _vote_name(turn: Turn) -> str:
    """The format of the ballots that decided, and the protocol where it is another."""
    if not turn.ballots_final:
        return "no"
    ballot = turn.ballots_final[0]
    return ballot.protocol + (f", counted as {ballot.counted_as}" if ballot.counted_as else "")


def _proposals(title: str, proposals: Mapping[str, Proposal]) -> Shown:
    yield Text()
    yield heading(title, _logged(proposals))
    for role, proposal in proposals.items():
        yield Prose(styled(role, "bold cyan") + styled(_sureness(proposal), "dim"), indent=2)
        yield Prose(proposal.text or "(no text)", indent=4)
        if proposal.rationale:
            yield Prose(styled("why: ", "dim") + safe(proposal.rationale), indent=4)


def _logged(parts: Sized) -> str:
    return "" if parts else "not in this log"


def _sureness(proposal: Proposal) -> str:
    notes = [] if proposal.confidence is None else [f"confidence {proposal.confidence}"]
    if proposal.status != "valid":
        notes.append(FORMS[proposal.status])
    if proposal.attempts > 1:
        notes.append(f"asked {proposal.attempts} times")
    return f"  {', '.join(notes)}" if notes else ""


def _reviews(title: str, reviews: Sequence[ReviewRecord]) -> Shown:
    yield Text()
    yield heading(title, _logged(reviews))
    for review in reviews:
        yield Prose(safe("by ") + styled(review.reviewer, "bold cyan") + _form(review), indent=2)
        if not review.notes:
            yield Prose(styled("whole reply: ", "dim") + safe(review.raw or "(empty)"), indent=4)
            continue
        shown_as = {role: f"  shown as {label}" for label, role in review.labels.items()}
        for role in {**shown_as, **review.notes}:
            note = review.notes.get(role, Note(strength=None, weakness=None))
            yield Prose(styled(role, "cyan") + styled(shown_as.get(role, ""), "dim"), indent=4)
            yield Prose(styled("+ ", "green") + safe(note.strength or "(nothing)"), indent=6)
            yield Prose(styled("− ", "red") + safe(note.weakness or "(nothing)"), indent=6)


def _form(review: ReviewRecord) -> Text:
    return styled("" if review.status == "valid" else f"  {FORMS[review.status]}", "dim")


def _legend(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{label}={role}" for label, role in labels.items())


def _ballots(title: str, ballots: Sequence[BallotRecord], note: str) -> Shown:
    yield Text()
    yield heading(title, _logged(ballots) or note)
    if not ballots:
        return
    rows = [(b.voter, _short(b.raw), _choice(b), _status(b)) for b in ballots]
    yield table(("voter", "ballot", "in roles", "status"), rows, left=4)
    for ballot in ballots:
        if not _names_all(ballot):
            yield Prose(styled(f"{ballot.voter} saw {_legend(ballot.labels)}", "dim"), indent=2)
        if ballot.raw_first is not None:
            first = styled(f"{ballot.voter}, first reply: ", "dim")
            yield Prose(first + safe(ballot.raw_first), indent=2)
        if ballot.raw.strip() != _short(ballot.raw):
            whole = styled(f"{ballot.voter}, whole reply: ", "dim")
            yield Prose(whole + safe(ballot.raw), indent=2)


def _names_all(ballot: BallotRecord) -> bool:
    """Whether the table row alone tells which label stood for which role."""
    if not ballot.labels:
        return True
    return not isinstance(ballot.parsed, str) and set(ballot.parsed or ()) == set(ballot.mass)


def _short(raw: str) -> str:
    """The first line, cut where it is too long for a ballot."""
    line = raw.strip().partition("\n")[0]
    return line if len(line) <= SHORT else line[: SHORT - 1] + "…"


def _status(ballot: BallotRecord) -> str:
    return ballot.ballot_status + (", asked twice" if ballot.attempts > 1 else "")


def _choice(ballot: BallotRecord) -> str:
    parsed = ballot.parsed
    if parsed is None:
        return "(abstained)"
    if isinstance(parsed, str):
        return parsed
    if isinstance(parsed, dict):
        return ", ".join(f"{role} {points}" for role, points in parsed.items())
    if isinstance(parsed, RichBallot):
        return _rich(parsed)
    return JOINED[ballot.protocol].join(parsed) if parsed else "(nobody)"


def _rich(parsed: RichBallot) -> str:
    """Best first with points, and a bar below the approved."""
    shown = [f"{role} {parsed.points[role]}" for role in parsed.order]
    approved = len(parsed.approved)
    return f"{' > '.join(shown[:approved])} | {' > '.join(shown[approved:])}".rstrip(" ")


def _decision(turn: Turn, decision: Decision, order: Sequence[str]) -> Shown:
    yield Text()
    yield heading("Count and decision")
    yield _counts(turn, decision)
    for place, step in enumerate(decision.steps, start=1):
        yield Prose(f"{place}. {step_sentence(step, order)}", indent=2)
    yield Prose(
        styled(f"→ {decision.winner} wins", "bold green")
        + safe(f", decided by {REASONS[decision.decided_by]}.")
    )
    yield Text()
    yield heading("The student reads")
    yield Prose(turn.delivered or "(no text)", indent=2)


def _counts(turn: Turn, decision: Decision) -> RenderableType:
    """Mass per candidate in every count; whoever leads one is marked."""
    roles = tuple(decision.tallies)
    columns = {_first_column(turn): tally((b.mass for b in turn.ballots_initial), roles)}
    columns["final vote"] = decision.tallies
    for step in decision.steps:
        if step.step == "tie_vote" and step.tallies is not None:
            columns["tie round"] = step.tallies
    rows = [
        (_winning(role, decision), *(_counted(tallies, role) for tallies in columns.values()))
        for role in roles
    ]
    return table(("candidate", *columns), rows)


def _first_column(turn: Turn) -> str:
    """Names the protocol of the first vote where a branch decides by another."""
    rules = [ballots[0].rule for ballots in (turn.ballots_initial, turn.ballots_final) if ballots]
    return "first drafts" if len(set(rules)) < 2 else f"first drafts, {rules[0]}"


def _winning(role: str, decision: Decision) -> Text:
    return styled(role, "bold green" if role == decision.winner else "none")


def _counted(tallies: Mapping[str, int], role: str) -> Text:
    if role not in tallies:
        return safe("not in it  ")
    leads = role in leaders(tallies)
    return styled(f"{tallies[role]} {'◀' if leads else ' '}", "bold" if leads else "none")


# --- Two futures ---------------------------------------------------------------------------------

NARROWEST = 38
"""Columns that a future needs to stand beside another."""


@dataclass(frozen=True)
class _Future:
    """One way on from the cursor."""

    name: str
    style: str
    episode: EpisodeRecord
    logged: EpisodeRecord

    def turn(self, number: int) -> Text | None:
        """A turn and the attempt that followed it; `None` where the episode had ended."""
        found = [turn for turn in self.episode.turns if turn.turn == number]
        if not found:
            return None
        attempts = [a for a in self.episode.attempts if a.turn == number]
        parts = [_decided(found[0]), *self._against_log(found[0]), *_delivered(found[0])]
        return Text("\n").join([*parts, *(line for a in attempts for line in _attempts_beside(a))])

    def end(self) -> Text:
        """How it ended."""
        e = self.episode
        if e.failure is not None:
            return styled(f"failed at call {e.failure.key}", "bold red")
        word, style = ("success", "bold green") if e.success else ("no success", "bold")
        turns = "1 turn" if e.turns_taken == 1 else f"{e.turns_taken} turns"
        return styled(word, style) + safe(f" after {turns}, score {number(e.final_correctness)}")

    def _against_log(self, turn: Turn) -> Iterator[Text]:
        point = self.episode.branch
        if point is None or point.left != turn.turn:
            return
        same = [t.decision for t in self.logged.turns if t.turn == turn.turn]
        instead = f", logged {same[0].winner}" if same and same[0] else ""
        yield styled(f"leaves the logged path{instead}", "bold yellow")


def futures(run: RunRecord, logged: EpisodeRecord, draws: Sequence[EpisodeRecord]) -> Shown:
    """What an episode and its continuations share, once, and then each of its futures.

    `draws`: its continuations; none of an episode that the branch covers.
    """
    branch = run.branch
    point = draws[0].branch if draws else None
    yield heading(logged.episode_id, "logged beside re-simulated")
    yield provenance(run.provenance)
    if branch is not None:
        yield Prose(f"Branch of {branch.parent} under {branch_changes(branch)}.")
    yield Prose(
        f"Task {logged.task_id} of {logged.benchmark}, student {logged.persona}, "
        f"condition {logged.condition}{taught_by(logged, run)}."
    )
    if point is None:
        yield Prose("Covered: the branch cannot change it, and keeps it as it was logged.")
        yield from _common(logged, len(logged.attempts))
        return
    ways = [_Future("logged", "bold cyan", logged, logged)]
    for draw in draws:
        name = draw_name(draw.branch, branch) if draw.branch else draw.episode_id
        ways.append(_Future(name, "bold magenta", draw, logged))
    yield Text()
    yield _overview(ways)
    yield from _common(logged, point.turn)
    yield Text()
    changes = f" under {branch_changes(branch)}" if branch else ""
    yield Prose(styled(f"━━ From here: turn {point.turn} on, re-simulated{changes}", "bold yellow"))
    yield _Ways(tuple(ways), point.turn)
    yield Prose(styled("A draw is what might have followed, not what would have happened.", "dim"))


def _overview(ways: Sequence[_Future]) -> RenderableType:
    return table(
        ("future", "left the path", "scores", "ended"),
        [
            (
                styled(way.name, way.style),
                _left(way.episode),
                " → ".join(number(attempt.score) for attempt in way.episode.attempts),
                way.end(),
            )
            for way in ways
        ],
        left=4,
    )


def _left(episode: EpisodeRecord) -> str:
    if episode.branch is None:
        return "–"
    return "never" if episode.branch.left is None else f"turn {episode.branch.left}"


def _common(logged: EpisodeRecord, cursor: int) -> Shown:
    """Everything before the cursor, which all futures have from the log."""
    turns = {turn.turn: turn for turn in logged.turns}
    yield Text()
    yield heading("━━ As logged", "the same in parent and branch")
    for attempt in logged.attempts:
        if attempt.turn >= cursor:
            break
        if attempt.turn in turns:
            turn = turns[attempt.turn]
            for line in (_decided(turn), *_delivered(turn)):
                yield Prose(line, indent=2)
        for line in _attempts_beside(attempt):
            yield Prose(line, indent=2)


@dataclass(frozen=True)
class _Ways:
    """The futures side by side on a terminal with room for them, else one after the other."""

    ways: tuple[_Future, ...]
    cursor: int

    @property
    def _turns(self) -> range:
        last = max((t.turn for way in self.ways for t in way.episode.turns), default=self.cursor)
        return range(self.cursor, last + 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width // len(self.ways)
        if console.is_terminal and room >= NARROWEST:
            yield self._beside()
        else:
            yield from self._stacked()

    def _beside(self) -> Table:
        shown = Table(box=box.SIMPLE_HEAD, show_lines=True, pad_edge=False, expand=True)
        for way in self.ways:
            shown.add_column(styled(way.name, way.style), ratio=1, overflow="fold")
        for turn in self._turns:
            shown.add_row(*(way.turn(turn) or safe("(ended)") for way in self.ways))
        shown.add_row(*(way.end() for way in self.ways))
        return shown

    def _stacked(self) -> Shown:
        for way in self.ways:
            yield Text()
            yield Prose(styled(way.name, way.style) + safe(f"  {way.episode.episode_id}"))
            for turn in self._turns:
                told = way.turn(turn)
                if told is not None:
                    yield Prose(told, indent=2)
            yield Prose(way.end(), indent=2)


def _decided(turn: Turn) -> Text:
    decision = turn.decision
    if decision is None:
        return styled(f"Turn {turn.turn}: a single tutor", "bold")
    vote = turn.ballots_final[0].rule if turn.ballots_final else "no"
    return styled(f"Turn {turn.turn}: {decision.winner} wins", "bold") + safe(
        f", {vote} vote, decided by {REASONS[decision.decided_by]}"
    )


def _delivered(turn: Turn) -> Iterator[Text]:
    yield styled("tutor: ", "dim") + safe(turn.delivered or "(no text)")


def _attempts_beside(attempt: Attempt) -> Iterator[Text]:
    yield styled("student: ", "dim") + safe(attempt.text or "(empty)")
    tests = {True: ", tests pass", False: ", tests fail", None: ""}[attempt.code_passed]
    yield styled(f"score {number(attempt.score)}{tests}", "bold")
