"""Councils: what other rules would have chosen, what own votes did, whether the winner was right.

The candidates of a vote are its members or the different answers; nothing decided its ties, so a
tie is a set. Where a right answer is known, what a rule would have delivered is known too: each
candidate is right or wrong, whoever writes the reply.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from operator import itemgetter
from statistics import fmean
from typing import Final, NamedTuple

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.counting.names_and_parameters_of_rules import Approvals
from tutorsim.analysis.pages.cells_and_tables import Written, bounds_of, estimate, part_of, plain
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import (
    Row,
    Rows,
    chart,
    section,
    sections_there,
    table,
)
from tutorsim.analysis.pages.document import Answer, Document
from tutorsim.analysis.pages.words_and_safe_text import counted, listed, spoken
from tutorsim.analysis.recount import recount
from tutorsim.analysis.recount.recount_plan_and_own_rules import (
    NOBODY_NAME,
    RecountTable,
    approvals_asked,
)
from tutorsim.analysis.recount.result_models import ElectorateRow, RecountResult, RuleRow
from tutorsim.analysis.runs.exported_tables import Parts
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.intervals_and_tests import (
    corrected,
    flips_by_task,
    mean_over_tasks,
)
from tutorsim.analysis.systems.contrasts_of_any_sides_in_words_and_of_runs import (
    Contrast,
    beyond_chance,
    not_shown,
)
from tutorsim.analysis.systems.debate.episode_messages_and_telling_episodes import TELLING
from tutorsim.analysis.systems.debate.outcomes_under_every_protocol import Outcome
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun, episodes_of, framed
from tutorsim.records import RunRecord
from tutorsim.records.debate import DebateRecord
from tutorsim.vocabularies import CUMULATIVE_BUDGET

_EXEMPT: Final = (0, 1, 2)
_NOBODY: Final = frozenset({NOBODY_NAME})


class Possible(NamedTuple):
    """Who may have won a vote under a rule."""

    winners: frozenset[str] | None
    """`None` where the search did not settle it."""
    led: frozenset[str]
    """Who won under the rule's convention; several where they tie."""


_CANDIDATES: Final = {
    "members": ("mean_position", "ranked", "rankings of answers"),
    "answers": ("simple", "simple", "votes over answers"),
}
"""What the candidates are → the rule that councils go by, the format of the ballots, which is also
its own rule, and words for the votes."""


class VotesOver:
    """A council's votes over its members, or over the different answers.

    `named`: what a row's votes are over, where there are votes of both kinds.
    """

    def __init__(self, over: str, votes: list[DebateRecord], run: SystemRun, named: Row) -> None:
        self.over, self.votes, self.named, self._run = over, votes, named, run
        self.rule, self.form, self.words = _CANDIDATES[over]

    @cached_property
    def _source(self) -> Source:
        ids = [vote.episode_id for vote in self.votes]
        return Source(
            name=self._run.name,
            rows=self._run.ballots.filter(pl.col("episode_id").is_in(ids)),
            fallback_order=None,
            budget=CUMULATIVE_BUDGET,
            run=self._run.head,
            episodes=(),
        )

    @cached_property
    def exempt(self) -> dict[int, RuleRow]:
        """Number of voters that may have cast any ballot → the votes under the own rule."""
        return {row.exempt: row for row in self._without.rules if row.reading == "set"}

    @cached_property
    def electorates(self) -> list[ElectorateRow]:
        """The votes without those for oneself, and without each member."""
        wanted = ("no_own_votes",) if self.over == "members" else ()
        return [
            row
            for row in self._without.electorates
            if row.protocol is None
            and (row.scenario in wanted or (row.scenario == "leave_one_out" and row.voter))
        ]

    @cached_property
    def _without(self) -> RecountResult:
        tables: tuple[RecountTable, ...] = ("rules", "electorates")
        return recount(self._source, targets=(self.form,), exempt=_EXEMPT, tables=tables)

    @cached_property
    def winners(self) -> dict[str, dict[str, Possible]]:
        """Rule → vote → who may have won, ties left as ties."""
        return _possible(recount(self._source, exempt=(0,), tables=()))

    @cached_property
    def kept(self) -> list[Row]:
        """Every rule beside the council's own, over votes that its own rule decides alone."""
        every = self.winners.items()
        return [self._kept_under(rule, votes) for rule, votes in every if rule != self.rule]

    @cached_property
    def kept_along(self) -> dict[Approvals, Row]:
        """Votes kept under approval voting, by how many each member approves of."""
        asked = partial(recount, self._source, targets=("approval",), exempt=(0,), tables=())
        return {
            number: self._kept_under("approval", _possible(asked(approves=number))["approval"])
            for number in approvals_asked(len(self._source.votes.order))
        }

    def _kept_under(self, rule: str, votes: Mapping[str, Possible]) -> Row:
        """What a rule does to the winners of the council's own rule, in numbers of votes."""
        found = [
            (votes[vote].winners, own.led)
            for vote, own in self.winners[self.rule].items()
            if len(own.led) == 1 and vote in votes
        ]
        keeps = sum(winners == own for winners, own in found)
        nobody = sum(winners == _NOBODY for winners, _ in found)
        changes = sum(w is not None and not w & (_NOBODY | own) for w, own in found)
        return {
            "rule": rule,
            "votes": len(found),
            "keeps": keeps,
            "changes": changes,
            "nobody": nobody,  # votes in which the rule chooses nobody
            "open": len(found) - keeps - changes - nobody,  # where the ballots do not say
        }

    @cached_property
    def judged(self) -> dict[str, Mapping[str, bool]]:
        """Vote with a known right answer → candidate → whether it is right."""
        votes = ((vote.episode_id, vote.council) for vote in self.votes)
        return {name: of.right for name, of in votes if of is not None and of.right is not None}

    @cached_property
    def right(self) -> dict[str, tuple[Written, int]]:
        """Rule → in how many votes its winner is right, and of how many that is known."""
        judged = self.judged.items()
        found = {}
        for rule, votes in self.winners.items() if judged else ():
            ends = [_ends(votes[vote], right) for vote, right in judged if vote in votes]
            least, most = (sum(end[i] for end in ends) for i in (0, 1))
            found[rule] = (bounds_of(least, most), len(ends))
        return found


def _possible(found: RecountResult) -> dict[str, dict[str, Possible]]:
    """Rule → vote → who may have won."""
    rows = found.per_turn.filter(pl.col("reading") == "set")
    wanted = rows.select("target", "episode_id", "possible_winners", "tied_set", "point_winner")
    by_rule: dict[str, dict[str, Possible]] = {}
    for target, episode, possible, tied, point in wanted.iter_rows():
        led = tuple(tied or ()) or ((point,) if point else ())
        winners = None if possible is None else frozenset(possible)
        by_rule.setdefault(target, {})[episode] = Possible(winners, frozenset(led))
    return by_rule


def _ends(possible: Possible, right: Mapping[str, bool]) -> tuple[bool, bool]:
    """Whether the winner is right for certain, and whether it may be.

    A tie is one of the tied; a candidate without a readable answer may be either.
    """
    names = possible.winners
    if names is None:
        return False, True
    marks = [right.get(name) for name in names]
    return all(mark is True for mark in marks) and bool(marks), any(m is not False for m in marks)


class Councils:
    """What a council's tables and answers are of."""

    def __init__(self, run: SystemRun) -> None:
        self.run = run
        self.records: list[DebateRecord] = list(run.episodes)
        votes = by_key(
            (record.council.over, record)
            for record in self.records
            if record.council is not None and record.turns and record.turns[0].ballots_final
        )
        self.kinds = [
            VotesOver(over, votes[over], run, {"ballots": words} if len(votes) > 1 else {})
            for over, (_, _, words) in _CANDIDATES.items()
            if over in votes
        ]
        """Votes by what candidates are: members first, where there are such votes."""
        self.rankings = votes.get("members", [])
        """Votes over members."""

    @cached_property
    def places(self) -> pl.DataFrame:
        """A row for each answer that a ranking names, with its place, 1 the best."""
        rows = [
            (record.episode_id, _task(record), ballot.voter, name, labels.get(name), place)
            for record in self.rankings
            for ballot in record.turns[0].ballots_final
            for labels in [{member: label for label, member in ballot.labels.items()}]
            if isinstance(ballot.parsed, tuple)
            for place, name in enumerate(ballot.parsed, start=1)
        ]
        names = ("episode_id", "task", "voter", "candidate", "label", "place")
        return pl.DataFrame(rows, schema=list(names), orient="row")

    @cached_property
    def told(self) -> dict[str, list[str]]:
        """What logs leave open or garble → the votes that do, by file."""
        return by_key(
            (note, record.council.file or record.episode_id)
            for record in self.records
            if record.council is not None
            for note in record.council.told
        )


def is_council(episodes: Sequence[DebateRecord]) -> bool:
    """Whether a run is an imported council's."""
    return any(record.council is not None for record in episodes)


def _task(record: DebateRecord) -> str:
    """The question of a vote: as it reads, else its number; votes on one question share it."""
    return f"{record.benchmark}/{' '.join(record.question.split()) or record.task_id}"


# --- Other rules ----------------------------------------------------------------------------------


@table("rules", "The same ballots under other rules")
def rules(of: Councils) -> Rows:
    """Keeps, changes, open: votes in which every completion and every sincere ballot of the other
    format keeps the winner of the council's own rule, in which all of them change it, and in which
    they differ. Nobody: votes in which the rule certainly chooses nobody, as Condorcet's may. Own
    rules: mean position for rankings, most votes for answers; votes that tie there are left out. A
    voter is assumed to prefer the same in every format."""
    for one in of.kinds:
        for kept in one.kept:
            yield {**one.named, **kept}


@table("approvals", "Approval voting, by how many a member approves of")
def approvals(of: Councils) -> Rows:
    """The same, if each member approves of its first alone, of one or two, of up to three, or of
    any number. In a range a member may approve of one of two equal answers, under “any number” of
    both or neither."""
    for one in of.kinds:
        for number, kept in one.kept_along.items():
            counts = {name: kept[name] for name in ("votes", "keeps", "changes", "open")}
            yield {**one.named, "each_approves_of": number.words, **counts}


# --- Own answers ----------------------------------------------------------------------------------


@table("own", "Own answers")
def own_answers(of: Councils) -> Rows:
    """Mean place, 1 the best, that members give their own answer, and that others give the same
    answers; their difference over answers that both place, with a 95 % interval over questions.
    Below zero, members favour their own."""
    mine = of.places.filter(pl.col("voter") == pl.col("candidate"))
    others = of.places.filter(pl.col("voter") != pl.col("candidate"))
    theirs = others.group_by("episode_id", "candidate").agg(pl.col("place").mean().alias("theirs"))
    paired = mine.join(theirs, on=["episode_id", "candidate"], maintain_order="left")
    if paired.height:
        away = (paired["place"] - paired["theirs"]).to_list()
        difference = mean_over_tasks(away, paired["task"].to_list(), over="questions")
        yield {
            "own_place": plain(fmean(mine["place"].to_list())),
            "others_place": plain(fmean(paired["theirs"].to_list())),
            "difference": estimate(difference, signed=True),
            "rankings": mine.height,
        }


@table("electorates", "Without some votes")
def electorates(of: Councils) -> Rows:
    """Votes whose winner, by Borda points of rankings or by most votes, changes when votes for
    oneself, or one member's, are left out. A range where a tie leaves it open. Votes that tie
    already, or lack the member, are not counted."""
    for one in of.kinds:
        for row in one.electorates:
            yield {
                **one.named,
                "without": row.voter or "votes for oneself",
                "votes": row.turns if row.compared is None else row.compared,
                "changes": bounds_of(row.changed.lower, row.changed.upper),
            }


# --- How sure, and whether right ------------------------------------------------------------------


@table("exempt", "If some rankings may be anything")
def exempt(of: Councils) -> Rows:
    """Votes whose winner stays the only possible one if any so many of the voters may have cast
    any ballot at all."""
    for one in of.kinds:
        for row in one.exempt.values():
            yield {
                **one.named,
                "voters_exempt": row.exempt,
                "votes": row.turns,
                "one_possible_winner": row.identified,
            }


@table("right", "Whether the winner was right")
def winner_right(of: Councils) -> Rows:
    """Votes whose winner is right under each rule, of those with a known right answer. A range
    where the ballots leave the winner open, where a tie has both, or where a winner's answer cannot
    be read. This is known, as each candidate is right or wrong: nothing has to be simulated."""
    for one in of.kinds:
        for rule, (right, votes) in one.right.items():
            yield {**one.named, "rule": rule, "votes": votes, "right": right}


# --- Labels ---------------------------------------------------------------------------------------


def _by_label(of: Councils) -> list[Contrast]:
    """Mean distance of a label's answers from the middle of their vote; below zero is better."""
    frame = of.places.filter(pl.col("label").is_not_null())
    middle = frame.group_by("episode_id", "voter").agg(pl.col("place").mean().alias("middle"))
    joined = frame.join(middle, on=["episode_id", "voter"], maintain_order="left")
    found = []
    for (label,), rows in sorted(joined.group_by("label"), key=lambda one: str(one[0][0])):
        away, tasks = (rows["place"] - rows["middle"]).to_list(), rows["task"].to_list()
        mean = mean_over_tasks(away, tasks, over="questions")
        test = flips_by_task(away, tasks, seed=of.run.head.study.seed)
        found.append(Contrast("middle", str(label), mean, test, "places"))
    return corrected(found)


@table("labels", "Places by label")
def labels(of: Councils) -> Rows:
    """How far above (below zero) or below the middle of its ranking an answer stands, by the label
    that it had, with a 95 % interval over questions. If members always come in one order, a label
    is a member, and this cannot tell the two apart."""
    for one in _by_label(of):
        rankings = of.places.filter(pl.col("label") == one.second).height
        from_middle = estimate(one.difference, signed=True)
        yield {"label": one.second, "rankings": rankings, "from_middle": from_middle}


@table(
    "told",
    "What the logs leave open",
    secondary=("files",),
    first=lambda of: "; ".join(f"({n}) {p[0]}" for n, p in enumerate(of.told.values(), start=1)),
)
def told(of: Councils) -> Rows:
    """As read; nothing was guessed. The first of each, from the top: {first}. `tutorsim show` of a
    vote says what it leaves open."""
    for note, places in of.told.items():
        more = len(places) - _NAMED
        files = [*places[:_NAMED], *([f"{more:,} more"] if more > 0 else [])]
        yield {"note": note, "votes": len(places), "files": "; ".join(files)}


_NAMED: Final = 3
"""Files that a note names; `show` of an episode has its own."""


# --- The page -------------------------------------------------------------------------------------

drawn = partial(chart, "tutorsim.analysis.systems.debate.charts_of_protocols_vote_start_councils")
"""A chart of debates or councils, by its name."""

_RULES: Final = section(
    "rules",
    "Other rules",
    "Would another rule have chosen another answer? Each vote holds the logged answers fixed.",
    rules,
    approvals,
)
_RIGHT: Final = section("right", "Right answers", "Was the winner right?", winner_right)
_TOLD: Final = section(
    "told", "What was read", "What the files say, and what they leave open.", told
)


_WHOLE: Final = (
    replace(_RULES, parts=(drawn("kept"), *_RULES.parts)),
    section(
        *("own", "Votes for oneself", "What did votes for oneself do?"),
        *(own_answers, electorates),
    ),
    section("sure", "How sure the winner is", "How much may be wrong with the rankings?", exempt),
    _RIGHT,
    section("labels", "Labels", "Do the rankings depend on the label?", labels),
    _TOLD,
)


def council_document(run: SystemRun, brief: bool) -> Document:
    """The summary (brief) or the report (whole) of an imported council."""
    of = Councils(run)
    return framed(
        run,
        summary=_summary(of),
        answers=tuple(_answers(of)),
        sections=tuple(sections_there(of, (_RULES, _TOLD) if brief else _WHOLE)),
        lead="kept",
        episodes=episodes_of(run, TELLING),
        unit="council",
        facts=(("Members", listed(_members(of))),),
    )


def council_recount(run: SystemRun) -> Document:
    """What other rules make of a council: winners kept, and how many of them are right."""
    of = Councils(run)
    every = tuple(one(of) for one in (_RULES, _RIGHT, _TOLD))
    sections = [one if one.tables else replace(one, lead="") for one in every]
    return framed(run, summary=_summary(of), answers=(), sections=sections)


def council_outcomes(records: Sequence[DebateRecord], run: RunRecord) -> Iterator[Parts]:
    """Each vote under each rule: record, no setting, rule, whether the winner is right, outcome."""
    for one in Councils(SystemRun("", run, records)).kinds:
        votes = {vote.episode_id: vote for vote in one.votes}
        for rule, found in one.winners.items():
            for name, possible in found.items():
                cast, right = votes[name].turns[0].ballots_final, one.judged.get(name)
                ends = (None, None) if right is None else [*map(float, _ends(possible, right))]
                names = sorted(possible.winners or {n for ballot in cast for n in ballot.mass})
                sole = len(names) == 1
                came = Outcome(
                    "exact" if sole else "open",
                    turn=1,
                    answers=tuple(names),
                    author=names[0] if one.over == "members" and sole else None,
                    ties=None,
                )
                yield votes[name], "", rule, ends, came


def _members(of: Councils) -> list[str]:
    every = (r.council.members for r in of.records if r.council is not None)
    return list(dict.fromkeys(chain.from_iterable(every)))


def _summary(of: Councils) -> str:
    kinds = [
        f"{len(one.votes)} {'with rankings' if one.over == 'members' else 'over answers'}"
        for one in of.kinds
    ]
    tasks = {_task(record) for record in of.records}
    votes = f"Votes: {listed(kinds)}." if kinds else "No vote."
    notes = [f"{counted(len(places), 'vote')}: {note}." for note, places in of.told.items()]
    left = " Left open, told and not guessed (“What was read” names the files): "
    return (
        f"{counted(len(of.records), 'council')} on {counted(len(tasks), 'question')}. "
        f"{counted(len(_members(of)), 'member')}. {votes}"
        f"{left if notes else ''}{' '.join(notes)}"
    )


Told = tuple[str, str]
"""The headline and the detail of an answer."""


def _other_rule(council: Councils) -> Told:
    of = council.kinds[0]
    kept = [{**one, "rule": spoken(one["rule"])} for one in of.kept]
    votes = max((one["votes"] for one in kept), default=0)
    safe = [one["rule"] for one in kept if one["keeps"] == one["votes"]]
    turned = [one for one in kept if one["changes"]]
    told = (
        f"{listed(safe)} keep every winner." if safe else "No rule keeps every winner for certain."
    )
    if turned:
        most = max(turned, key=itemgetter("changes"))
        told += f" {most['rule']} changes the most: {part_of(most['changes'], most['votes'])}."
    unsure = [one["rule"] for one in kept if one["open"] and not one["changes"]]
    if unsure:
        told += f" The ballots leave some open under {listed(unsure)}."
    nobody = [one for one in kept if one["nobody"]]
    told += "".join(f" {one['rule']} chooses nobody in {one['nobody']}." for one in nobody)
    along = of.kept_along
    for number in (next(iter(along)), next(reversed(along))) if along else ():
        keeps = along[number]["keeps"]
        told += f" If each member approves of {number.words}, approval keeps {keeps}."
    ties = len(of.votes) - votes
    tied = f" Ties under it are left out: {ties}." if ties else ""
    return (
        f"Yes, under {len(turned)} of {len(kept)} rules" if turned else "Under no rule for certain",
        f"Beside {spoken(of.rule)}, over {counted(votes, 'vote')}: {told}{tied}",
    )


def _own(of: Councils) -> Told:
    found = next(iter(own_answers.rows(of)), None)
    changed = next((row for row in of.kinds[0].electorates if row.voter is None), None)
    if found is None or changed is None:
        return "Not known", "No ranking names the voter's own answer."
    winners = bounds_of(changed.changed.lower, changed.changed.upper)
    return (
        f"Without them {winners} of {changed.compared or changed.turns} winners change",
        f"Members place their own answer at {found['own_place']} on average, others place the same "
        f"answers at {found['others_place']}. The difference is {found['difference']}, below zero "
        "if members favour their own.",
    )


def _one_member(of: Councils) -> Told:
    rows = [row for row in of.kinds[0].electorates if row.voter is not None]
    most = max(rows, key=lambda row: row.changed.upper, default=None)
    if most is not None and most.changed.upper:
        changed = bounds_of(most.changed.lower, most.changed.upper)
        return (
            f"{most.voter}: {changed} of {most.compared or most.turns}",
            "So many winners change without that member's vote, the most of all members; a range "
            "where a tie would follow.",
        )
    unchanged = "Leaving out one member changes no winner" if rows else "Not known"
    return unchanged, "Counted by Borda points of rankings."


def _sure(of: Councils) -> Told:
    by = of.kinds[0].exempt
    rest = "; ".join(f"with {k} such voters: {by[k].identified}" for k in _EXEMPT[2:] if k in by)
    return (
        f"Sure against one wrong ballot: {part_of(by[1].identified, by[1].turns)}",
        f"So many votes keep a single winner if any one voter may have cast any ballot; {rest}. "
        "A tie counts as no single winner.",
    )


def _was_right(of: Councils) -> Told:
    known = [(one, *one.right[one.rule]) for one in of.kinds if one.right]
    told = [
        f"{one.words.capitalize()}: {right} of {votes} under {spoken(one.rule)}"
        for one, right, votes in known
    ]
    if not told:
        return "Not known", "The files name no right answer."
    delivered = [r.score for r in of.records if r.score is not None]
    reply = f" Of all replies delivered, {part_of(int(sum(delivered)), len(delivered))} are right."
    _, right, votes = known[0]
    return f"{right} of {votes}", f"{'. '.join(told)}.{reply}"


def _position(of: Councils) -> Told:
    found = _by_label(of)
    if not found:
        return "Not known", "No ranking has labels."
    beyond = [one.second for one in found if beyond_chance(one)]
    best = min(found, key=lambda one: one.difference.value or 0.0)
    stands = f"{best.second} stands best: {estimate(best.difference, signed=True)} from the middle"
    ballots = [ballot for vote in of.rankings for ballot in vote.turns[0].ballots_final]
    shown = {pair for ballot in ballots for pair in ballot.labels.items()}
    fixed = len(shown) == len(dict(shown))
    why = " Each label is always the same member, so the two cannot be told apart." if fixed else ""
    return (
        stands if best.second in beyond else not_shown(found),
        (
            f"Beyond chance over questions: {listed(beyond)}."
            if beyond
            else f"No label differs from the middle beyond chance over questions. {stands}."
        )
        + " Signs of questions are flipped, with Holm's correction over labels."
        + why,
    )


_OF_RANKINGS: Final = (_own, _position)
_ASKED: Final = {
    _other_rule: ("Would another rule have chosen another answer?", "rules"),
    _own: ("What did votes for oneself do?", "own"),
    _one_member: ("Does one member decide?", "own"),
    _sure: ("How sure is the winner?", "sure"),
    _was_right: ("Was the winner right?", "right"),
    _position: ("Do the rankings depend on the label?", "labels"),
}
"""What tells it → the question of a council's owner, and the section that has the evidence."""


def _answers(of: Councils) -> Iterator[Answer]:
    for told, (question, section_id) in _ASKED.items() if of.kinds else ():
        if of.rankings or told not in _OF_RANKINGS:
            yield Answer(question, *told(of), section_id)
