"""What every protocol would have decided on recorded debates, one by one and over all of them.

Before it ends, a debate does not depend on its protocol. So from a debate that never stopped, each
protocol's stop and answer is exact. Any other recording gives an outer bound: what its ballots
leave open, and what lies beyond its logged end. When a debate ends, and with whose answer, says
the rule that ended it when it was recorded.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, combinations
from typing import Final, Literal, NamedTuple, get_args

import numpy as np

from tutorsim.analysis.ballots.vote_arrays import Profile
from tutorsim.analysis.identify import Identifier
from tutorsim.analysis.statistics.array_types import Floats, Ints
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    Interval,
    NotEstimable,
    PermutationTest,
    corrected,
    flips_of_numbered,
    mean_of_numbered,
    share_of_sums,
    sums_of_numbered,
)
from tutorsim.ballots_and_decisions import (
    AgreementReading,
    Majority,
    leaders,
    read_agreement,
    tally,
)
from tutorsim.records import BallotRecord
from tutorsim.records.debate import (
    DebateRecord,
    DebateSetup,
    DebateTurn,
    Message,
    Undecided,
    different_answers,
    flag,
)
from tutorsim.systems.debate.end_of_debate import End, Moment, consensus_rule, end_of, moments
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
CERTAINTIES: Final[tuple[Certainty, ...]] = get_args(Certainty)
EXACT, OPEN, _BEYOND, _NOT_APPLICABLE = range(len(CERTAINTIES))


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
    ties: int = 0
    """Votes that tied on the way, as far as they are known."""
    messages: int | None = None
    """Messages said until the end; `None` if that is not known."""


NOT_APPLICABLE: Final = Outcome("not_applicable")
BEYOND: Final = Outcome("beyond")


class Outcomes(NamedTuple):
    """What a protocol makes of many debates: columns of `Outcome`, -1 for what is not known."""

    certainty: Ints
    """Places in `CERTAINTIES`."""
    turn: Ints
    decided: Ints
    answer: Ints
    """Number of the answer that is delivered, if exact."""
    author: Sequence[str | None]
    ties: Ints
    messages: Ints
    possible: Mapping[int, list[int]]
    """Debate whose outcome is open → numbers of the answers that are possible."""


class Debates:
    """Logged debates, at least one, that many rules are asked of together.

    debates = Debates(records)
    found = debates.recounted("approval", Changes(vote_from=1))
    low, high = debates.score_bounds(found)

    What their votes leave open is told once, however many rules are asked.
    """

    def __init__(self, records: Sequence[DebateRecord]) -> None:
        self.records = records
        self.tasks = [f"{record.benchmark}.{record.task_id}" for record in records]
        self._settings = [_settings_of(record.setup) for record in records]
        self._silent = np.array([not record.turns for record in records])
        self._as_logged: dict[Rule, Outcomes] = {}
        self._flags: dict[AgreementReading | None, list[list[bool | None]]] = {}
        self._answers: dict[tuple[int, str | None], int] = {}
        self._worth: dict[Scoring, Floats] = {}
        self._votes: dict[_Vote | None, int] = {None: 0}
        self._held: dict[bool | None, dict[PublishedProtocol, Ints]] = {}

    def recounted(self, rule: Rule, changes: Changes = AS_LOGGED) -> Outcomes:
        """What a rule decides on each. `changes`: settings in place of the logged ones."""
        under = {one: one.under(changes) for one in set(self._settings)}
        settings = [under[one] for one in self._settings]
        as_logged = settings == self._settings
        if as_logged and rule in self._as_logged:
            return self._as_logged[rule]
        if rule in _VOTES:
            found = self._vote(_VOTES[rule], changes, settings)
        elif consensus_rule(rule) is not None:
            found = self._columns(self._consensus(rule, changes.agreement_reading, settings))
        else:
            pairs = zip(self.records, settings, strict=True)
            found = self._columns(_solution_count(record, one.setup) for record, one in pairs)
        found.certainty[self._silent] = _NOT_APPLICABLE
        if as_logged:
            self._as_logged[rule] = found
        return found

    def outcomes(self, found: Outcomes) -> Iterator[Outcome]:
        """The outcome of each debate."""
        texts = [text for _, text in self._answers]
        columns = (found.turn, found.decided, found.answer, found.ties, found.messages)
        known = ([None if n < 0 else n for n in column.tolist()] for column in columns)
        rows = zip(found.certainty.tolist(), found.author, *known, strict=True)
        for i, (certainty, author, turn, decided, answer, ties, messages) in enumerate(rows):
            numbers = found.possible.get(i, ()) if answer is None else (answer,)
            answers = tuple(texts[number] for number in numbers)
            ended = turn, None if decided is None else decided == 1, answers, author, ties, messages
            yield Outcome(CERTAINTIES[certainty], *ended)

    def score_bounds(self, found: Outcomes, scoring: Scoring = "standard") -> tuple[Floats, Floats]:
        """The least and the largest score that each outcome may have, in percent."""
        known = found.answer >= 0
        several = [number for numbers in found.possible.values() for number in numbers]
        asked = np.concatenate([found.answer[known], np.array(several, dtype=np.int64)])
        worth = self._worth.get(scoring, np.empty(0))
        worth = np.pad(worth, (0, len(self._answers) - len(worth)), constant_values=np.nan)
        answers = [*self._answers]
        for number in np.unique(asked[np.isnan(worth[asked])]).tolist():
            debate, text = answers[number]
            worth[number] = 100 * self.records[debate].worth(text, scoring).value
        self._worth[scoring] = worth
        low, high = np.zeros(len(known)), np.full(len(known), 100.0)
        low[known] = high[known] = worth[found.answer[known]]
        for debate, numbers in found.possible.items():
            if numbers:
                low[debate], high[debate] = worth[numbers].min(), worth[numbers].max()
        return low, high

    def _number(self, debate: int, text: str | None) -> int:
        """The number of an answer to a debate's task; equal ones have the same."""
        return self._answers.setdefault((debate, text), len(self._answers))

    def _columns(self, outcomes: Iterable[Outcome]) -> Outcomes:
        certainty, turn, decided, answers, author, ties, messages = zip(*outcomes, strict=True)
        numbers = [[self._number(i, text) for text in texts] for i, texts in enumerate(answers)]
        possible = {i: numbers[i] for i, one in enumerate(certainty) if one == "open"}
        exact = (None if i in possible or not one else one[0] for i, one in enumerate(numbers))
        places = [CERTAINTIES.index(one) for one in certainty]
        columns = map(_column, (places, turn, decided, exact, ties, messages))
        known, ended, by_rule, answer, tied, said = columns
        return Outcomes(known, ended, by_rule, answer, author, tied, said, possible)

    @cached_property
    def _turns(self) -> tuple[Ints, Ints, Ints]:
        """Debate by place: the turn, messages until its end, and numbers of its answers.

        At the last place no debate has a turn. Answers are in the agents' order, and last none.
        """
        depth = 1 + max(len(record.turns) for record in self.records)
        widest = max((len(t.answers) for one in self.records for t in one.turns), default=0)
        shape = len(self.records), depth
        turns, said = np.full(shape, np.iinfo(np.int64).max), np.zeros(shape, np.int64)
        answers = np.zeros((*shape, 1 + widest), np.int64)
        for i, record in enumerate(self.records):
            answers[i, :, -1] = self._number(i, None)
            said[i, : len(record.turns)] = [*accumulate(len(t.messages) for t in record.turns)]
            for place, turn in enumerate(record.turns):
                turns[i, place] = turn.turn
                told = [self._number(i, one.text) for one in turn.answers.values()]
                answers[i, place, : len(told)] = told
        return turns, said, answers

    def _vote(
        self, rule: PublishedProtocol, changes: Changes, settings: Sequence["_Settings"]
    ) -> Outcomes:
        """Walk the votes from the first one on until each debate ends, whatever they leave open."""
        turns, said, answers = self._turns
        every, held = np.arange(len(said)), self._votes_held(changes.merge_identical)[rule]
        asked = turns >= np.array([one.setup.vote_from for one in settings])[:, None]
        told = [_ends(vote, changes) for vote in self._votes]
        tied = np.array([one.tied for one in told])
        several = np.array([len(one.ends) for one in told])
        goes_on = np.array([not one.over for one in told])
        last, ties, ends = np.zeros((3, len(said)), np.int64)
        going = np.ones(len(said), np.bool_)
        for place in range(said.shape[1]):
            there = np.flatnonzero(going & asked[:, place])
            ties[there] += tied[held[there, place]]
            ends[there] += several[held[there, place]]
            last[there] = place
            going[there] = goes_on[held[there, place]]
        final = held[every, last]
        exact, beyond = (ends == 1) & (final > 0), final == 0
        first = [one.ends[0] if one.ends else End("vote", None) for one in told]
        column = np.array([one.columns[0] if one.ends else -1 for one in told])[final]
        decided = _column(one.decided for one in first)[final]
        author = np.array([one.author for one in first], object)[final]
        author[~exact] = None

        def possible(i: int) -> list[int]:
            found: dict[int, None] = {}
            for place in np.flatnonzero(asked[i, : last[i] + 1]).tolist():
                columns = told[held[i, place]].columns
                found |= dict.fromkeys(answers[i, place, list(columns)].tolist())
            return [*found]

        return Outcomes(
            np.where(exact, EXACT, np.where(beyond, _BEYOND, OPEN)),
            np.where(exact, turns[every, last], -1),
            np.where(exact, decided, -1),
            np.where(exact, answers[every, last, column], -1),
            author.tolist(),
            np.where(beyond, 0, ties),
            np.where(exact, said[every, last], -1),
            {i: possible(i) for i in np.flatnonzero(~(exact | beyond)).tolist()},
        )

    def _votes_held(self, merged: bool | None) -> dict[PublishedProtocol, Ints]:
        """The votes under each rule by number, debate by place; 0 if there was none to hold.

        `merged`: whether equal answers are one candidate; `None`: as logged.
        """
        if merged not in self._held:
            votes, (turns, _, _) = self._votes, self._turns
            found = np.zeros((len(PROTOCOLS), *turns.shape), np.int64)
            for debate, record in enumerate(self.records):
                for place, turn in enumerate(record.turns):
                    if turn.answers:
                        settings, agents = self._settings[debate], tuple(turn.answers)
                        found[:, debate, place] = [
                            votes.setdefault((settings, turn.turn, agents, possible), len(votes))
                            for possible in _leading(turn, record.setup, merged)
                        ]
            self._held[merged] = dict(zip(PROTOCOLS, found, strict=True))
        return self._held[merged]

    def _consensus(
        self, rule: Rule, reading: AgreementReading | None, settings: Sequence["_Settings"]
    ) -> Iterator[Outcome]:
        """Walk the messages, asking the rule wherever each debate would have."""
        if reading not in self._flags:
            self._flags[reading] = [
                [
                    _flag(message, record, reading)
                    for turn in record.turns
                    for message in turn.messages
                ]
                for record in self.records
            ]
        every = zip(self.records, settings, self._flags[reading], self._moments, strict=True)
        for record, of, flags, asked in every:
            if of.setup.paradigm == "collective":
                yield NOT_APPLICABLE
                continue
            ends = (
                (end_of(rule, Moment(turn, over, flags[:said]), of.setup), turn, said)
                for turn, over, said in asked
            )
            found = (_proposed(record, end, turn, said) for end, turn, said in ends if end)
            yield next(found, BEYOND)

    @cached_property
    def _moments(self) -> list[list[tuple[int, bool, int]]]:
        """When a rule is asked in each debate: turn, whether it is over, and messages so far."""
        found: list[list[tuple[int, bool, int]]] = [[] for _ in self.records]
        for record, asked in zip(self.records, found, strict=True):
            before = 0
            for turn in record.turns:
                last, whole = before + len(turn.messages), _whole(turn, record)
                for said in moments([message.kind for message in turn.messages], record.setup):
                    asked.append((turn.turn, whole and before + said == last, before + said))
                before = last
        return found


Possible = tuple[tuple[str, ...], ...]
"""Who may lead a vote: one set of candidates if that is known, else several."""
_Vote = tuple["_Settings", int, tuple[str, ...], Possible]
"""A vote, whoever held it: settings and turn of its debate, the agents, and who may lead it."""

_VOTES: Final[dict[str, PublishedProtocol]] = {name: name for name in PROTOCOLS}


class _Settings:
    """The settings of many debates, and what they were asked before."""

    def __init__(self, setup: DebateSetup) -> None:
        self.setup = setup
        self._under: dict[Changes, _Settings] = {AS_LOGGED: self}
        self._ends: dict[tuple[int, tuple[str, ...], Possible], _Ends] = {}

    def under(self, changes: Changes) -> "_Settings":
        """Settings with others in their place; the same ones where these say what is logged."""
        if changes not in self._under:
            changed = {
                name: value
                for name, value in changes._asdict().items()
                if value is not None and value != getattr(self.setup, name)
            }
            made = _Settings(self.setup.model_copy(update=changed)) if changed else self
            self._under[changes] = made
        return self._under[changes]

    def ends(self, turn: int, agents: tuple[str, ...], possible: Possible) -> "_Ends":
        """What a vote makes of a debate, if any of these candidates may lead it."""
        place = turn, agents, possible
        if place not in self._ends:
            moments = (Moment(turn, True, (), one, agents) for one in possible)
            found = dict.fromkeys(end_of("simple", moment, self.setup) for moment in moments)
            ends = tuple(end for end in found if end is not None)
            tied = all(len(leading) > 1 for leading in possible)
            columns = tuple(-1 if one.author is None else agents.index(one.author) for one in ends)
            self._ends[place] = _Ends(ends, columns, len(ends) == len(found), tied)
        return self._ends[place]


class _Ends(NamedTuple):
    """What a vote makes of a debate."""

    ends: tuple[End, ...]
    """Each that is possible."""
    columns: tuple[int, ...]
    """The places of their authors among the agents; -1 if nothing is delivered."""
    over: bool
    """Whether it ends in any case."""
    tied: bool
    """Whether it tied in any case."""


_NOTHING_HELD: Final = _Ends((), (), over=True, tied=False)


def _ends(vote: _Vote | None, changes: Changes) -> _Ends:
    """What a vote makes of a debate under some changes; nothing is known if there is none."""
    if vote is None:
        return _NOTHING_HELD
    settings, turn, agents, possible = vote
    return settings.under(changes).ends(turn, agents, possible)


@lru_cache(maxsize=1024)
def _settings_of(setup: DebateSetup) -> _Settings:
    return _Settings(setup)


def _column(values: Iterable[int | None]) -> Ints:
    return np.array([-1 if value is None else value for value in values], np.int64)


# --- Consensus ------------------------------------------------------------------------------


def _whole(turn: DebateTurn, record: DebateRecord) -> bool:
    """Whether everybody spoke in a turn: a consensus stops a debate in the middle of one."""
    stopped = record.ended_by == "consensus" and turn is record.turns[-1]
    return not stopped or len(turn.messages) >= record.setup.agents


def _flag(message: Message, record: DebateRecord, reading: AgreementReading | None) -> bool | None:
    if message.agreement == "none" or reading in (None, record.setup.agreement_reading):
        return flag(message)
    return read_agreement(message.text, reading) == "agree"


def _proposed(record: DebateRecord, end: End, turn: int, said: int) -> Outcome:
    """A proposal is delivered; under another reading, its solution may never have been taken."""
    if end.message is None:
        return Outcome("exact", turn, end.decided, (None,), messages=said)
    message = [one for of in record.turns for one in of.messages][end.message]
    known = message.solution is not None
    answers = (message.solution,) if known else ()
    certainty: Certainty = "exact" if known else "open"
    return Outcome(certainty, turn, end.decided, answers, message.agent, messages=said)


# --- Votes ----------------------------------------------------------------------------------


def _leading(turn: DebateTurn, setup: DebateSetup, merged: bool | None) -> list[Possible]:
    """Who may lead the vote of a turn, under each protocol.

    Candidates that were merged, or are to be, would have had a vote of their own, with other
    ballots: nothing is known of it but who stands.
    """
    candidates = turn.candidates
    if merged not in (None, setup.merge_identical):
        first = different_answers(turn.answers)
        candidates = tuple(a for a in first if not merged or first[a] == a)
    if len(candidates) == 1:
        return [_known(candidates)] * len(PROTOCOLS)
    if candidates != turn.candidates:
        return [_any_of(candidates)] * len(PROTOCOLS)
    return [_counted(turn, rule, setup.cumulative_budget) for rule in PROTOCOLS]


def _counted(turn: DebateTurn, rule: PublishedProtocol, budget: int) -> Possible:
    """Who may lead the vote of a turn, as far as its ballots say."""
    ballots = turn.ballots_as.get(rule)
    if ballots is None:
        ballots = turn.cast
    if ballots and ballots[0].rule == rule:
        return _known(leaders(tally([ballot.mass for ballot in ballots], turn.candidates)))
    if not turn.cast:
        return _any_of(turn.candidates)
    return _any_of(possible_outcomes(turn.cast, turn.candidates, rule, budget=budget))


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
    possible = _identifier(budget).possible(profile, rule, exempt=0, reading="set")
    if not possible.settled:
        return tuple(candidates)
    return tuple(candidates[place] for place in possible.winners)


@lru_cache(maxsize=8)
def _identifier(budget: int) -> Identifier:
    return Identifier(budget=budget)


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
    return Outcome("exact", turn.turn, True, (best,), authors[best][0], 0, said)


# --- Over all debates ------------------------------------------------------------------------


@dataclass(frozen=True)
class ProtocolRow:
    """What one protocol makes of a set of debates."""

    rule: Rule
    debates: int
    """Those that the rule applies to."""
    tasks: int
    """Tasks that they are of; a task has as many debates as it was recorded times."""
    exact: int
    open: int
    beyond: int
    low: float | None
    """Mean score in percent if every unknown answer is worth least; `None` without debates."""
    high: float | None
    score: Estimate | NotEstimable
    """With an interval over tasks; only where every outcome is exact."""
    decided: float | None
    """Share of exact outcomes that the protocol decided, and not the limit."""
    turns: float | None
    """Mean turn of exact outcomes."""
    ties: int
    """Votes that tied on the way."""


@dataclass(frozen=True)
class Contrast:
    """Two protocols on the same debates."""

    first: Rule
    second: Rule
    test: PermutationTest | NotEstimable
    """Of the difference in percent, first minus second."""
    difference: Estimate | NotEstimable
    """The difference itself, with its interval over tasks."""
    p_holm: float | None = None
    """The p-value after Holm's correction over all pairs shown."""
    benchmark: str = ""
    """Debates of every benchmark are compared together."""


def family(rule: str) -> str:
    """`voting`, `consensus` or `counting`."""
    if rule in ("simple", "ranked", "cumulative", "approval"):
        return "voting"
    return "counting" if rule == "solution_counting" else "consensus"


class Told(NamedTuple):
    """What one protocol makes of many debates: columns in their order, as those of `Outcomes`."""

    certainty: Ints
    low: Floats
    """The least score that each outcome may have, in percent."""
    high: Floats
    decided: Ints
    turn: Ints
    ties: Ints


def told(
    debates: Debates,
    rules: Sequence[Rule] = RULES,
    changes: Changes = AS_LOGGED,
    scoring: Scoring = "standard",
) -> list[Told]:
    """What each protocol makes of debates, in the order of `rules`; small, whatever was said."""
    found = [debates.recounted(rule, changes) for rule in rules]
    return [
        Told(one.certainty, *debates.score_bounds(one, scoring), one.decided, one.turn, one.ties)
        for one in found
    ]


def joined(parts: Iterable[Sequence[Told]]) -> list[Told]:
    """What each protocol makes of all debates, from what it makes of some after others."""
    return [Told(*map(np.concatenate, zip(*one, strict=True))) for one in zip(*parts, strict=True)]


def accounts_of(
    found: Sequence[Told], tasks: Ints, rules: Sequence[Rule] = RULES
) -> list[ProtocolRow]:
    """One row per protocol, from what each makes of the debates of numbered tasks."""
    return [_row(rule, one, tasks) for rule, one in zip(rules, found, strict=True)]


def _row(rule: Rule, found: Told, tasks: Ints) -> ProtocolRow:
    applies, exact = found.certainty != _NOT_APPLICABLE, found.certainty == EXACT
    debates, known = int(applies.sum()), int(exact.sum())
    whole = 0 < debates == known
    low = _mean(found.low[applies])
    score: Estimate | NotEstimable = NotEstimable("not every outcome is known")
    if whole:
        sums = sums_of_numbered(tasks[applies], found.low[applies] / 100)
        score = in_percent(share_of_sums(*sums))
    return ProtocolRow(
        rule=rule,
        debates=debates,
        tasks=int(np.count_nonzero(np.bincount(tasks[applies]))),
        exact=known,
        open=int((found.certainty == OPEN).sum()),
        beyond=int((found.certainty == _BEYOND).sum()),
        low=low,
        high=low if whole else _mean(found.high[applies]),
        score=score,
        decided=_mean((found.decided[exact] == 1).astype(np.int64)),
        turns=_mean(found.turn[exact]),
        ties=int(found.ties[applies].sum()),
    )


def _mean(values: Ints | Floats) -> float | None:
    """The mean of values, rounded once; `None` of none."""
    if not len(values):
        return None
    if values.dtype != np.float64:
        total, rest = divmod(int(values.sum()), len(values))
        return total if not rest else int(values.sum()) / len(values)
    several, times = np.unique(values, return_counts=True)
    pairs = zip(several.tolist(), times.tolist(), strict=True)
    return float(sum(Fraction(value) * number for value, number in pairs) / len(values))


def in_percent(found: Estimate | NotEstimable) -> Estimate | NotEstimable:
    """A share in percent."""
    if isinstance(found, NotEstimable):
        return found
    interval = found.interval
    if isinstance(interval, Interval):
        interval = Interval(100 * interval.low, 100 * interval.high, interval.method)
    return Estimate(100 * found.value, found.n, interval)


def contrasts(
    debates: Sequence[Told], tasks: Ints, rules: Sequence[Rule], *, seed: int
) -> list[Contrast]:
    """Paired differences of every two protocols, on debates whose outcome both know exactly.

    `debates`: what every protocol makes of them. `tasks`: their numbers. `rules`: those to compare,
    each with every other: one family.
    """
    found = []
    columns = {rule: debates[RULES.index(rule)] for rule in rules}
    for first, second in combinations(rules, 2):
        a, b = columns[first], columns[second]
        known = (a.certainty == EXACT) & (b.certainty == EXACT)
        differences, of = (a.low - b.low)[known], tasks[known]
        test = flips_of_numbered(of, differences, seed=seed)
        mean_difference = mean_of_numbered(of, differences, ends=(-100, 100))
        found.append(Contrast(first, second, test, mean_difference))
    return corrected(found)
