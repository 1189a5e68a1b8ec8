"""A panel's episodes, message by message; and which are worth a look, and why."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from tutorsim.analysis.pages.shown_episodes import (
    Episode,
    EpisodePart,
    Grid,
    Group,
    Message,
    Run,
    Telling,
    usual_marks,
)
from tutorsim.analysis.pages.words_and_safe_text import count_words, counted, spoken, step_sentence
from tutorsim.analysis.runs.branch_counts_turns_siblings_share import branch_changes, draw_name
from tutorsim.ballot_reading_and_decisions import RichBallot, leaders, tally
from tutorsim.records import (
    Attempt,
    BallotRecord,
    EpisodeRecord,
    Note,
    Proposal,
    ReviewRecord,
    RunRecord,
    Turn,
)
from tutorsim.records.run_head_and_reading_run_folders_and_retests import makeup_words, of_one_panel

# --- Episode message by message ------------------------------------------------------------------


def telling(flipped: Collection[str]) -> Telling:
    """Why an episode is worth a look → whether it is one.

    `flipped`: ids of episodes where deliberation changed a winner.
    """
    return {
        "the fallback order decided a turn": lambda one: "fallback" in _steps(one),
        "a tie round broke a tie": lambda one: "tie_round" in _steps(one),
        "a voter abstained": lambda one: any(map(_abstained, one.turns)),
        "deliberation changed a winner": lambda one: one.episode_id in flipped,
    }


def _steps(record: EpisodeRecord) -> tuple[str, ...]:
    """The steps that decided some turn, each once."""
    by = (turn.decision.decided_by for turn in record.turns if turn.decision)
    return tuple(dict.fromkeys(by))


def _abstained(turn: Turn) -> bool:
    tie = turn.tie_round.ballots if turn.tie_round else ()
    ballots = (*turn.ballots_initial, *turn.ballots_final, *tie)
    return any(ballot.ballot_status == "abstained" for ballot in ballots)


def trace(run: Run, record: EpisodeRecord) -> Episode:
    """An episode, message by message; ballots name roles where voters saw labels."""
    won = tuple(dict.fromkeys(turn.decision.winner for turn in record.turns if turn.decision))
    steps = tuple(spoken(step) for step in _steps(record))
    return Episode(
        id=record.episode_id,
        parts=tuple(_parts(run.head, record)),
        outcome=_came_of(record),
        line=_line(record, won),
        facts=tuple(_facts(run.head, record)),
        marks={
            **usual_marks(record, "Persona"),
            "Condition": (record.arm,),
            "What came of it": (_came_of(record),),
            "Won a turn": won,
            "Decided by": steps,
        },
    )


def _came_of(record: EpisodeRecord) -> str:
    if record.status != "complete":
        return "failed to finish"
    return "success" if record.success else "no success"


def _line(record: EpisodeRecord, won: Sequence[str]) -> str:
    winners = f"; {', '.join(won)} won" if won else ""
    scores = " → ".join(_score(attempt) for attempt in record.attempts) or "none"
    return f"{counted(record.turns_taken, 'tutoring turn')}, judge score {scores}{winners}"


def _score(attempt: Attempt) -> str:
    return "–" if attempt.score is None else f"{attempt.score:.2f}"


def _facts(run: RunRecord, record: EpisodeRecord) -> Iterator[tuple[str, str]]:
    if record.failure is not None:
        yield "Failed", f"call {record.failure.key}: {record.failure.error}"
    tests = ", tests passed" if record.benchmark == "humaneval" else ""
    yield "Success is", f"a judge score of at least {run.panel.success_threshold:g}{tests}"
    if record.panel is not None:
        yield "Panel", f"{record.panel}: {makeup_words(run.panels[record.panel])}"
    if record.repeat > 1:
        yield "Repeat", str(record.repeat)
    point, branch = record.branch, run.branch
    if point is not None and branch is not None:
        left = "never left" if point.left is None else f"left at turn {point.left}"
        yield (
            "Re-simulated",
            f"from turn {point.turn} on under {branch_changes(branch)}: "
            f"{draw_name(point, branch)} of what might have followed in {point.parent_episode} of "
            f"{branch.parent}; the logged path was {left}",
        )


def _parts(run: RunRecord, record: EpisodeRecord) -> Iterator[EpisodePart]:
    if record.question:
        yield Message("What the student was asked", record.question)
    if record.reference:
        reference = Message("Reference", record.reference, quiet=True)
        yield Group("What the judge compared with", (reference,), folded=True)
    turns = {turn.turn: turn for turn in record.turns}
    for attempt in record.attempts:
        if attempt.turn in turns:
            yield from _turn(turns.pop(attempt.turn), run, record)
        yield from _attempt(attempt)
    for turn in turns.values():  # a failed episode ends without an attempt
        yield from _turn(turn, run, record)


def _attempt(attempt: Attempt) -> Iterator[Message]:
    when = f"after turn {attempt.turn}" if attempt.turn else "before any tutoring"
    note = f"{when}, judge: {_score(attempt)}{_tests(attempt)}"
    yield Message("Student", attempt.text or "(empty)", note)
    if attempt.score_rationale:
        yield Message("Judge", attempt.score_rationale, quiet=True)


def _tests(attempt: Attempt) -> str:
    verdict = attempt.verdict
    if verdict is None:
        words = {True: ", tests: pass", False: ", tests: fail", None: ""}
        return words[attempt.code_passed]
    reason = f" ({verdict.reason})" if verdict.reason else ""
    limit = ", near its limit" if verdict.near_limit else ""
    unsafe = ", run without the sandbox" if verdict.unsafe else ""
    return f", tests: {verdict.outcome}{reason}{limit}{unsafe}"


def _turn(turn: Turn, run: RunRecord, record: EpisodeRecord) -> Iterator[EpisodePart]:
    decision, point = turn.decision, record.branch
    vote = f"{turn.ballots_final[0].protocol} vote" if turn.ballots_final else "no vote"
    yield Group(f"Turn {turn.turn}", note="a single tutor, no vote" if decision is None else vote)
    if point is not None and turn.turn < point.turn:
        point = None
    if point is not None and (point.left is None or turn.turn <= point.left):
        winner = "another" if turn.turn == point.left else "the same"
        told = "Drafts and votes are the log's, the decision is the branch's:"
        yield Message("Re-simulated", f"{told} {winner} winner.")
    elif point is not None:
        yield Message("Re-simulated", "The logged path was left before.")
    if decision is None:
        replies = _drafts(turn.proposals_initial, *turn.proposals_initial)
        yield from replies or (Message("The student reads", turn.delivered),)
        return
    yield _group("First drafts", _drafts(turn.proposals_initial))
    yield _group("Reviews of the first drafts", map(_review, turn.reviews))
    yield ballots_grid("First vote, on the drafts (diagnostic)", turn.ballots_initial)
    revised = _drafts(turn.proposals_final, decision.winner)
    yield _group("Revised drafts", revised, folded=False)
    yield ballots_grid("Final vote, on the revised drafts", turn.ballots_final)
    for form, ballots in turn.ballots_as.items():
        logged = point is not None and form == record.condition
        title = f"Ballots {'of the logged vote' if logged else 'asked for'} as {form} (diagnostic)"
        yield ballots_grid(title, ballots)
    if turn.tie_round is not None:
        tied = ", ".join(turn.tie_round.candidates)
        yield _group(f"Reviews of the tied drafts, {tied}", map(_review, turn.tie_round.reviews))
        yield ballots_grid("Tie round", turn.tie_round.ballots)
    study = (run if record.panel is None else of_one_panel(run, record.panel)).panel
    order = study.fallback_order if point is None else study.deciding_order
    steps = (step_sentence(step, order) for step in decision.steps)
    told = "\n".join(f"{place}. {step}" for place, step in enumerate(steps, start=1))
    by = f"decided by the {spoken(decision.decided_by)}"
    yield Message(f"{decision.winner} wins", told, by, quiet=True, chosen=True)
    yield Message("The student reads", turn.delivered)


def _drafts(drafts: Mapping[str, Proposal], *won: str) -> tuple[Message, ...]:
    """Drafts by role; those of the roles named were delivered."""
    told = []
    for role, draft in drafts.items():
        sure = "" if draft.confidence is None else f"confidence {draft.confidence}"
        note = _notes(draft, "delivered" if role in won else "", sure)
        aside = f"why: {draft.rationale}" if draft.rationale else ""
        told.append(Message(role, draft.text, note, chosen=role in won, aside=aside))
    return tuple(told)


def _group(title: str, told: Iterable[Message], *, folded: bool = True) -> Group:
    return Group(title, tuple(told) or (Message("(none)", "not in this log"),), folded=folded)


def _notes(said: Proposal | ReviewRecord, *first: str) -> str:
    """What is known of how a text was given, behind what is known of it besides."""
    forms = {"valid": "", "repaired": "not in the form asked for", "missing": "never came"}
    asked = f"asked {said.attempts} times" if said.attempts > 1 else ""
    return ", ".join(filter(None, (*first, forms[said.status], asked)))


def _review(review: ReviewRecord) -> Message:
    labels = {role: f" ({label})" for label, role in review.labels.items()}
    notes = "\n".join(
        f"{role}{labels.get(role, '')}\n"
        f"  + {note.strength or '(nothing)'}\n  − {note.weakness or '(nothing)'}"
        for role in {**labels, **review.notes}
        for note in [review.notes.get(role, Note())]
    )
    text = notes if review.notes else f"whole reply: {review.raw or '(empty)'}"
    return Message(review.reviewer, text, _notes(review), quiet=True)


# --- Votes ---------------------------------------------------------------------------------------

_SHORT: Final = 40
"""Characters of a reply that a row of ballots has room for."""


def ballots_grid(title: str, ballots: Sequence[BallotRecord]) -> Grid:
    """A vote, a row a voter: the ballot as written, and as read in roles.

    Below it stand the labels that a voter saw, where the row does not tell them, and replies that
    it has no room for.
    """
    rows = tuple(
        (b.voter, _short(b.raw), _choice(b), b.ballot_status + ", asked twice" * (b.attempts > 1))
        for b in ballots
    )
    notes = (_counted(ballots), *(line for ballot in ballots for line in _below(ballot)))
    return Grid(title, ("voter", "ballot", "in roles", "status"), rows, notes)


def _counted(ballots: Sequence[BallotRecord]) -> str:
    """What the ballots come to, and under which rule."""
    roles = tuple(dict.fromkeys(role for ballot in ballots for role in ballot.mass))
    if not roles:
        return "every voter abstained" if ballots else "not in this log"
    totals = tally((ballot.mass for ballot in ballots), roles)
    return f"{ballots[0].rule} count: {count_words(totals, leaders(totals))}"


def _below(ballot: BallotRecord) -> Iterator[str]:
    parsed = ballot.parsed.order if isinstance(ballot.parsed, RichBallot) else ballot.parsed or ()
    if ballot.labels and (isinstance(parsed, str) or set(parsed) != set(ballot.mass)):
        saw = ", ".join(f"{label}={role}" for label, role in ballot.labels.items())
        yield f"{ballot.voter} saw {saw}"
    if ballot.raw_first is not None:
        yield f"{ballot.voter}, first reply: {ballot.raw_first}"
    if ballot.raw.strip() != _short(ballot.raw):
        yield f"{ballot.voter}, whole reply: {ballot.raw}"


def _short(raw: str) -> str:
    """The first line, cut where it is too long for a ballot."""
    line = raw.strip().partition("\n")[0]
    return line if len(line) <= _SHORT else line[: _SHORT - 1] + "…"


def _choice(ballot: BallotRecord) -> str:
    """The choice in roles: best first, with points; a bar stands below the approved."""
    parsed = ballot.parsed
    if parsed is None:
        return "(abstained)"
    if isinstance(parsed, str):
        return parsed
    if isinstance(parsed, dict):
        return ", ".join(f"{role} {points}" for role, points in parsed.items())
    if isinstance(parsed, RichBallot):
        shown = [f"{role} {parsed.points[role]}" for role in parsed.order]
        bar = len(parsed.approved)
        return f"{' > '.join(shown[:bar])} | {' > '.join(shown[bar:])}".rstrip(" ")
    return {"ranked": " > "}.get(ballot.protocol, ", ").join(parsed) or "(nobody)"
