"""What every protocol would have decided on recorded debates, one by one and over all of them.

Before it ends, a debate does not depend on its protocol. So from a debate that never stopped, each
protocol's stop and answer is exact. Any other recording gives an outer bound: what its ballots
leave open, and what lies beyond its logged end. When a debate ends, and with whose answer, says
the rule that ended it when it was recorded.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import combinations
from statistics import mean
from typing import Final, Literal, NamedTuple, get_args

from tutorsim.analysis.ballots.vote_arrays_and_profiles import Profile
from tutorsim.analysis.identify.possible_winners import PanelSearch, query_of
from tutorsim.analysis.identify.win_conditions import Query
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    Interval,
    NotEstimable,
    corrected,
    mean_over_tasks,
    share_over_tasks,
)
from tutorsim.analysis.systems.contrasts_of_any_sides_in_words_and_of_runs import (
    Contrast,
    contrasts_between,
)
from tutorsim.ballot_reading_and_decisions import leaders, tally
from tutorsim.records import BallotRecord
from tutorsim.records.debate import (
    AgreementReading,
    DebateRecord,
    DebateSetup,
    DebateTurn,
    Majority,
    Message,
    Undecided,
    flag,
)
from tutorsim.systems.debate.agreement_reading_consensus_and_end_of_debate import (
    End,
    Moment,
    consensus_rule,
    different_answers,
    end_of,
    moments,
    read_agreement,
)
from tutorsim.vocabularies import PROTOCOLS, PublishedProtocol, Scoring

Rule = Literal[
    "simple",
    "ranked",
    "cumulative",
    "approval",
    "majority",
    "supermajority",
    "unanimity",
    "hybrid",
    "solution_counting",
]
"""Everything that can decide a debate."""
Certainty = Literal["exact", "open", "beyond", "not_applicable"]
"""Known; one of several; not decided by the logged end; or not a question for this debate."""

RULES: Final[tuple[Rule, ...]] = get_args(Rule)
STUDY_RULES: Final[tuple[Rule, ...]] = RULES[:7]
"""The seven protocols of the debate study."""


class Changes(NamedTuple):
    """Settings that a recount puts in place of the logged ones; `None` keeps the logged one."""

    vote_from: int | None = None
    majority: Majority | None = None
    undecided: Undecided | None = None
    merge_identical: bool | None = None
    agreement_reading: AgreementReading | None = None


AS_LOGGED: Final = Changes()
"""No setting changed."""


class Outcome(NamedTuple):
    """What a protocol makes of a debate."""

    certainty: Certainty
    turn: int | None = None
    """The turn in which the debate ends; `None` if that is not known."""
    decided: bool | None = None
    """Whether the protocol decided, and not the limit; `None` if that is not known."""
    answers: tuple[str | None, ...] = ()
    """What is delivered: one answer if exact, the possible ones if open."""
    author: str | None = None
    """Whose answer it is; `None` if there is none, or several are possible."""
    ties: int | None = 0
    """Votes that tied on the way, as far as they are known; `None` of a council's one vote."""
    messages: int | None = None
    """Messages said until the end; `None` if that is not known."""


NOT_APPLICABLE: Final = Outcome("not_applicable")
BEYOND: Final = Outcome("beyond")


class Debate:
    """A logged debate that many rules are asked of: what its votes leave open is told once."""

    def __init__(self, record: DebateRecord) -> None:
        self.record = record
        self._settings = _settings_of(record.setup)
        self._messages = [message for turn in record.turns for message in turn.messages]
        self._flags = cache(partial(_flags, record))
        self._leading = cache(partial(_leading, record))
        self.worth = cache(record.worth)
        """What an answer to its task is worth."""

    def recounted(self, rule: Rule, changes: Changes = AS_LOGGED) -> Outcome:
        """What a rule decides on it. `changes`: settings in place of the logged ones."""
        settings = self._settings.under(changes)
        if rule in _VOTES:
            return self._vote(_VOTES[rule], settings)
        if consensus_rule(rule) is not None:
            return self._consensus(rule, settings.setup)
        return _solution_count(self.record, settings.setup)

    def _vote(self, rule: PublishedProtocol, settings: "_Settings") -> Outcome:
        """Walk the votes from the first one on until the debate ends, whatever they leave open."""
        first, merge = settings.setup.vote_from, settings.setup.merge_identical
        delivered: list[tuple[DebateTurn, End]] = []
        ties = said = 0
        for place, turn in enumerate(self.record.turns):
            said += len(turn.messages)
            if turn.turn < first:
                continue
            if not turn.answers:
                return BEYOND
            possible = self._leading(place, rule, merge)
            ends, over, tied = settings.ends(turn.turn, tuple(turn.answers), possible)
            ties += tied
            delivered += [(turn, end) for end in ends]
            if over:
                return _delivered(delivered, ties, said)
        return BEYOND

    def _consensus(self, rule: Rule, setup: DebateSetup) -> Outcome:
        """Walk the messages, asking the rule wherever the debate would have."""
        if setup.paradigm == "collective":
            return NOT_APPLICABLE
        flags, before = self._flags(setup.agreement_reading), 0
        for turn in self.record.turns:
            for said in moments([message.kind for message in turn.messages], setup):
                over = said == len(turn.messages) and _whole(turn, self.record)
                end = end_of(rule, Moment(turn.turn, over, flags[: before + said]), setup)
                if end is not None:
                    return _proposed(self._messages, end, turn.turn, before + said)
            before += len(turn.messages)
        return BEYOND


Possible = tuple[tuple[str, ...], ...]
"""Who may lead a vote: one set of candidates if that is known, else several."""

_Ends = tuple[tuple[End, ...], bool, bool]
"""Each end that a vote may make of a debate; whether it ends and whether it tied in any case."""
_VOTES: Final[dict[str, PublishedProtocol]] = {name: name for name in PROTOCOLS}


class _Settings:
    """The settings of many debates, and what they were asked before."""

    def __init__(self, setup: DebateSetup) -> None:
        self.setup = setup
        self.under = cache(self._under)
        self.ends = cache(self._ends)

    def _under(self, changes: Changes) -> "_Settings":
        """Settings with others in their place; the same ones where these say what is logged."""
        changed = {
            name: value
            for name, value in changes._asdict().items()
            if value is not None and value != getattr(self.setup, name)
        }
        return _Settings(self.setup.model_copy(update=changed)) if changed else self

    def _ends(self, turn: int, agents: tuple[str, ...], possible: Possible) -> _Ends:
        """What a vote makes of a debate, if any of these candidates may lead it."""
        moments = (Moment(turn, True, (), one, agents) for one in possible)
        found = dict.fromkeys(end_of("simple", moment, self.setup) for moment in moments)
        ends = tuple(end for end in found if end is not None)
        return ends, len(ends) == len(found), all(len(leading) > 1 for leading in possible)


_settings_of: Final = lru_cache(maxsize=1024)(_Settings)


# --- Consensus ------------------------------------------------------------------------------


def _whole(turn: DebateTurn, record: DebateRecord) -> bool:
    """Whether everybody spoke in a turn: a consensus stops a debate in the middle of one."""
    stopped = record.ended_by == "consensus" and turn is record.turns[-1]
    return not stopped or len(turn.messages) >= record.setup.agents


def _flags(record: DebateRecord, reading: AgreementReading) -> list[bool | None]:
    """Whether each message agrees, under a reading of agreement."""
    logged = reading == record.setup.agreement_reading
    return [
        flag(message)
        if logged or message.agreement == "none"
        else read_agreement(message.text, reading) == "agree"
        for turn in record.turns
        for message in turn.messages
    ]


def _proposed(messages: Sequence[Message], end: End, turn: int, said: int) -> Outcome:
    """A proposal is delivered; under another reading, its solution may never have been taken."""
    if end.message is None:
        return Outcome("exact", turn, end.decided, (None,), messages=said)
    message = messages[end.message]
    known = message.solution is not None
    answers = (message.solution,) if known else ()
    certainty: Certainty = "exact" if known else "open"
    return Outcome(certainty, turn, end.decided, answers, message.agent, messages=said)


# --- Votes ----------------------------------------------------------------------------------


def _delivered(ends: Sequence[tuple[DebateTurn, End]], ties: int, said: int) -> Outcome:
    """The one end that is possible, or what several leave open. `said`: messages until the last."""
    texts = [end.author and turn.answers[end.author].text for turn, end in ends]
    if len(ends) > 1:
        return Outcome("open", answers=tuple(dict.fromkeys(texts)), ties=ties)
    [(turn, end)] = ends
    return Outcome("exact", turn.turn, end.decided, (texts[0],), end.author, ties, said)


def _leading(record: DebateRecord, place: int, rule: PublishedProtocol, merge: bool) -> Possible:
    """Who may lead the vote of a turn, if identical answers are merged, or not.

    Candidates that were merged, or are to be, would have had a vote of their own, with other
    ballots: nothing is known of it but who stands.
    """
    turn = record.turns[place]
    candidates = turn.candidates
    if merge != record.setup.merge_identical:
        first = different_answers(turn.answers)
        candidates = tuple(a for a in first if not merge or first[a] == a)
    if len(candidates) == 1:
        return _known(candidates)
    if candidates != turn.candidates:
        return _any_of(candidates)
    ballots = turn.ballots_as.get(rule)
    if ballots is None:
        ballots = turn.cast
    if ballots and ballots[0].rule == rule:
        return _known(leaders(tally([ballot.mass for ballot in ballots], candidates)))
    if not turn.cast:
        return _any_of(candidates)
    budget = record.setup.cumulative_budget
    return _any_of(possible_outcomes(turn.cast, candidates, rule, budget=budget))


@lru_cache(maxsize=1024)  # one object for many votes
def _known(leading: tuple[str, ...]) -> Possible:
    return (leading,)


@lru_cache(maxsize=1024)
def _any_of(winners: tuple[str, ...]) -> Possible:
    """Each alone, or any two level: of more that are level, the first is the first of two."""
    return (*((name,) for name in winners), *combinations(winners, 2))


def possible_outcomes(
    ballots: Sequence[BallotRecord],
    candidates: Sequence[str],
    rule: PublishedProtocol,
    *,
    budget: int,
) -> tuple[str, ...]:
    """Possible winners of a vote under a rule that its ballots were not cast under.

    Every ballot is taken to rank the candidates as it does in its own format. The answer is an
    outer bound: several possible winners may also tie, and a question that is too costly leaves
    every candidate.
    """
    masses = tuple(
        tuple(ballot.mass[name] for name in candidates) if ballot.mass else None
        for ballot in ballots
    )
    profile = Profile(ballots[0].rule, len(candidates), masses)
    return tuple(candidates[place] for place in _searched(query_of(profile, rule, budget)))


@lru_cache(maxsize=1 << 16)
def _searched(query: Query) -> tuple[int, ...]:
    found = PanelSearch(query).possible(exempt=0, reading="set")
    return found.winners if found.settled else tuple(range(query.m))


# --- Solution counting ----------------------------------------------------------------------


def _solution_count(record: DebateRecord, setup: DebateSetup) -> Outcome:
    """The letter that most agents answer; of tied letters the one that stands first."""
    if record.answer_kind != "choice":
        return NOT_APPLICABLE
    before = [one for one in record.turns if one.turn < setup.vote_from]
    turn = next(iter(record.turns[len(before) :]), None)
    if turn is None or not turn.answers:
        return BEYOND
    authors: dict[str, list[str]] = {}
    for agent, answer in turn.answers.items():
        if answer.letter is not None:
            authors.setdefault(answer.letter, []).append(agent)
    if not authors:
        return NOT_APPLICABLE
    best = max(authors, key=lambda letter: len(authors[letter]))  # the first of the largest
    said = sum(len(one.messages) for one in (*before, turn))
    counted = _delivered([(turn, End("vote", True, author=authors[best][0]))], 0, said)
    return counted._replace(answers=(best,))


# --- Over all debates ------------------------------------------------------------------------


@dataclass(frozen=True)
class ProtocolRow:
    """What one protocol makes of a set of debates."""

    rule: Rule
    debates: int
    """Debates that the rule applies to."""
    tasks: int
    """Tasks that they are of; a task has as many debates as it was recorded times."""
    exact: int
    open: int
    beyond: int
    low: float | None
    """Mean score in percent if every unknown answer is worth least; `None` without debates."""
    high: float | None
    score: Estimate | NotEstimable
    """Score with an interval over tasks; only where every outcome is exact."""
    decided: float | None
    """Share of exact outcomes that the protocol decided, and not the limit."""
    turns: float | None
    """Mean turn of exact outcomes."""
    ties: int
    """Votes that tied on the way."""


def family(rule: str) -> str:
    """`voting`, `consensus` or `counting`."""
    if rule in ("simple", "ranked", "cumulative", "approval"):
        return "voting"
    return "counting" if rule == "solution_counting" else "consensus"


def score_bounds(
    debate: Debate, outcome: Outcome, scoring: Scoring = "standard"
) -> tuple[float, float]:
    """The least and the largest score that an outcome may have, in percent."""
    values = [100 * debate.worth(answer, scoring).value for answer in outcome.answers]
    if outcome.certainty == "beyond" or not values:
        return 0.0, 100.0
    return min(values), max(values)


class Told(NamedTuple):
    """What one protocol makes of one debate."""

    task: str
    """Benchmark and task."""
    certainty: Certainty
    low: float
    """The least score that the outcome may have, in percent."""
    high: float
    decided: bool | None
    turn: int | None
    ties: int


def told(
    debate: Debate,
    rules: Sequence[Rule] = RULES,
    changes: Changes = AS_LOGGED,
    scoring: Scoring = "standard",
) -> tuple[Told, ...]:
    """What each protocol makes of a debate, in the order of `rules`; small, whatever was said."""
    found = []
    task = task_of(debate.record)
    for rule in rules:
        one = debate.recounted(rule, changes)
        low, high = score_bounds(debate, one, scoring)
        found.append(Told(task, one.certainty, low, high, one.decided, one.turn, one.ties or 0))
    return tuple(found)


def accounts_of(
    debates: Sequence[Sequence[Told]], rules: Sequence[Rule] = RULES
) -> list[ProtocolRow]:
    """One row per protocol, from what each makes of each debate."""
    return [_row(rule, [one[i] for one in debates]) for i, rule in enumerate(rules)]


def _row(rule: Rule, debates: Sequence[Told]) -> ProtocolRow:
    told = [one for one in debates if one.certainty != "not_applicable"]
    exact = [one for one in told if one.certainty == "exact"]
    whole = bool(told) and len(exact) == len(told)
    low = mean(one.low for one in told) if told else None
    return ProtocolRow(
        rule=rule,
        debates=len(told),
        tasks=len({one.task for one in told}),
        exact=len(exact),
        open=sum(one.certainty == "open" for one in told),
        beyond=sum(one.certainty == "beyond" for one in told),
        low=low,
        high=low if whole else mean(one.high for one in told) if told else None,
        score=percent_over_tasks([one.low for one in told], [one.task for one in told])
        if whole
        else NotEstimable("not every outcome is known"),
        decided=mean(one.decided is True for one in exact) if exact else None,
        turns=mean(one.turn or 0 for one in exact) if exact else None,
        ties=sum(one.ties for one in told),
    )


def percent_over_tasks(
    scores: Sequence[float], tasks: Sequence[Hashable]
) -> Estimate | NotEstimable:
    """Mean of scores in percent, as the share that they are of the greatest score."""
    found = share_over_tasks([score / 100 for score in scores], tasks)
    if isinstance(found, NotEstimable):
        return found
    interval = found.interval
    if isinstance(interval, Interval):
        interval = Interval(100 * interval.low, 100 * interval.high, interval.method)
    return Estimate(100 * found.value, found.n, interval)


def contrasts(debates: Sequence[Sequence[Told]], *, seed: int) -> list[Contrast]:
    """Every protocol of the study − each after it, on debates whose outcome both know exactly."""
    exact = {
        rule: {
            place: (told[i].low,)
            for place, told in enumerate(debates)
            if told[i].certainty == "exact"
        }
        for i, rule in enumerate(STUDY_RULES)
    }
    found = contrasts_between(
        exact,
        [(second, first) for first, second in combinations(STUDY_RULES, 2)],
        cluster=lambda place: debates[place][0].task,
        ends=(-100, 100),
        seed=seed,
        measured="points",
    )
    return corrected([replace(one, repeats=((), ())) for one in found])  # they may be many


# --- Slopes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slope:
    """How a mean score changes with a number, on the same tasks."""

    name: str
    points: Mapping[int, float]
    """The number → mean score in percent."""
    slope: Estimate | NotEstimable
    """Least squares, in points per unit, with an interval over tasks."""
    tasks: int


def slope(name: str, scores: Iterable[tuple[str, int, float]]) -> Slope | None:
    """The line through the means of tasks that have a score at every number.

    The slope of the means is the mean of the tasks' slopes, as all share the same numbers.

    `scores`: task, number and score in percent; those of one task and number count by their mean.
    Returns `None` if there are fewer than two numbers.
    """
    means: dict[str, dict[int, float]] = {}
    for (task, n), held in by_key(((task, n), score) for task, n, score in scores).items():
        means.setdefault(task, {})[n] = mean(held) if len(held) > 1 else held[0]
    numbers = sorted({n for values in means.values() for n in values})
    whole = {task: values for task, values in means.items() if sorted(values) == numbers}
    if len(numbers) < 2 or not whole:
        return None
    middle = mean(numbers)
    spread = sum((n - middle) ** 2 for n in numbers)
    slopes = {
        task: sum((n - middle) * values[n] for n in numbers) / spread
        for task, values in whole.items()
    }
    return Slope(
        name,
        {n: mean(values[n] for values in whole.values()) for n in numbers},
        mean_over_tasks(list(slopes.values()), list(slopes)),
        len(whole),
    )


def rounds_slopes(debates: Sequence[Debate], rules: Sequence[Rule]) -> list[Slope]:
    """Scores of voting by the first turn of a vote, each rule on the same debates of a variant."""
    variants = by_key((debate.record.variant, debate) for debate in debates)
    found = []
    for variant, group in variants.items():
        last = min(debate.record.turns_taken for debate in group)
        begun = [Changes(vote_from=turn) for turn in range(1, last + 1)]
        for rule in rules:
            scores = [
                (task_of(debate.record), turn, score_bounds(debate, outcome)[0])
                for debate in group
                for turn, changes in enumerate(begun, start=1)
                if (outcome := debate.recounted(rule, changes)).certainty == "exact"
            ]
            found.append(slope(f"{rule} ({variant})" if len(variants) > 1 else rule, scores))
    return [one for one in found if one is not None]


def task_of(record: DebateRecord) -> str:
    """The task of a debate, with its benchmark."""
    return f"{record.benchmark}.{record.task_id}"
