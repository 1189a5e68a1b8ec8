"""What ballots predict, held against what comes when the other rule is really run.

A study is recorded from the stand-in with steady voters, who prefer the same under every ballot
format. The possible winners of every turn under every other rule are computed from the logged
ballots alone. Then the truth is looked up, or run: the ballots that the same voters cast in the
other format on the same proposals, and branches of the recording under each rule. All figures
are the stand-in's and say nothing about any language model.
"""

import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.recount import recount
from tutorsim.analysis.systems.panel.first_divergent_turns_and_success_bounds import (
    alternatives_of,
    diverge,
)
from tutorsim.ballot_reading_and_decisions import cast_as, leaders, masses_of, tally
from tutorsim.kernel.cost_plan import load_prices
from tutorsim.kernel.load_and_check_study_file import load_study
from tutorsim.records import EpisodeRecord
from tutorsim.runner.branch_plan_and_answers_from_parent import Alternative, Parent
from tutorsim.runner.early_stops_by_signal_cost_cap_or_outage import Budget
from tutorsim.runner.find_and_check_recording import open_recording
from tutorsim.runner.record import RecordingOptions, record
from tutorsim.sandbox import Sandbox
from tutorsim.standin import StandIn
from tutorsim.systems.panel.branch_study_and_plan_of_calls_to_pay import branch_study
from tutorsim.vocabularies import BALLOT_FORMATS, PROTOCOLS, Protocol

STUDY = Path(__file__).with_name("ground_truth.toml")
SEED = 5
CONTINUATIONS = 3


@dataclass(frozen=True)
class Prediction:
    """One pair of logged format and rule, over all turns."""

    logged: str
    rule: Protocol
    turns: int
    contained: int
    """Turns whose true leaders are all among the possible winners."""
    single: int
    """Turns with one possible winner."""
    right: int
    """Turns where the projection's winner leads in truth."""


@dataclass(frozen=True)
class Branched:
    """One rule, over all episodes that voted in another format."""

    rule: Protocol
    episodes: int
    covered: int
    left: int
    """Episodes that came to another winner in some continuation."""
    logged: float
    """Mean success as logged."""
    bounds: tuple[float, float]
    """Worst-case bounds of the mean success before the branch."""
    realised: float
    """Mean success of covered episodes and of the continuations' means."""
    reused: int
    paid: int

    @property
    def width_per_call(self):
        """Percentage points of width that a thousand paid calls removed."""
        low, high = self.bounds
        return 100_000 * (high - low) / self.paid if self.paid else 0.0


def run_ground_truth(folder):
    """Record, predict, branch and compare.

    Args:
        folder: Where everything is recorded.
    """
    with _endpoint(), Sandbox("auto") as sandbox:
        parent = folder / "parent"
        _record(load_study(STUDY), parent, sandbox)
        source = open_source(parent)
        predictions = [p for rule in PROTOCOLS for p in _predictions(source, rule)]
        branched = [_branched(source, parent, rule, folder, sandbox) for rule in PROTOCOLS]
    return predictions, branched


@contextmanager
def _endpoint():
    before = dict(os.environ)
    with StandIn(seed=SEED, steady=True) as server:
        os.environ |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "unused"}
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _record(loaded, folder, sandbox, parent=None):
    budget = Budget(load_prices())
    options = RecordingOptions()
    record(
        loaded, cassette_dir=folder, log_dir=folder, sandbox=sandbox, budget=budget,
        options=options, parent=parent,
    )  # fmt: skip
    return budget


def _predictions(source, rule):
    rows = recount(source, targets=[rule], exempt=[0]).per_turn.filter(reading="set")
    turns = {(e.episode_id, t.turn): t for e in source.episodes for t in e.turns}
    assert source.run is not None
    for logged in BALLOT_FORMATS:
        own = source.run.study.rich_protocol if logged == "rich" else logged
        found = rows.filter(logged_protocol=logged).to_dicts() if own != rule else []
        truths = [true_leaders(turns[row["episode_id"], row["turn"]], rule) for row in found]
        pairs = list(zip(found, truths, strict=True))
        if pairs:
            yield Prediction(
                logged=logged,
                rule=rule,
                turns=len(pairs),
                contained=sum(truth <= set(row["possible_winners"]) for row, truth in pairs),
                single=sum(len(row["possible_winners"]) == 1 for row, _ in pairs),
                right=sum(row["point_winner"] in truth for row, truth in pairs),
            )


def true_leaders(turn, rule):
    """Who led when the same voters really cast ballots of a rule on the final proposals."""
    assert turn.decision is not None
    ballots = turn.ballots_as.get(rule)
    if ballots is None:
        [form] = {ballot.protocol for ballot in turn.ballots_final}
        cast = [cast_as(b.parsed, form=form, protocol=rule) for b in turn.ballots_final]
    else:
        cast = [ballot.parsed for ballot in ballots]
    roles = tuple(turn.decision.tallies)
    return set(leaders(tally([masses_of(one, roles, protocol=rule) for one in cast], roles)))


def _branched(source, parent_folder, rule, folder, sandbox):
    found = recount(source, targets=[rule], exempt=[0]).per_turn.filter(reading="set")
    divergence = diverge(source, alternatives_of(found), question=f"Rule {rule}")
    rows = divergence.episodes.to_dicts()
    first = {r["episode_id"]: r["first_possible"] for r in rows if r["path"] != "covered"}
    recording = open_recording(parent_folder)
    loaded = branch_study(
        recording, source.episodes, Alternative(rule=rule), first, continuations=CONTINUATIONS
    )
    assert loaded.study.branch is not None
    parent = Parent(recording, loaded.study.branch)
    child = folder / rule
    budget = _record(loaded, child, sandbox, parent)
    return _compared(source, open_source(child), set(first), rule, budget)


def _compared(source, child, taken_up, rule, budget):
    logged = {e.episode_id: _success(e) for e in source.episodes}
    drawn: dict[str, list[EpisodeRecord]] = {}
    for e in child.episodes:
        if e.branch is not None:
            drawn.setdefault(e.branch.parent_episode, []).append(e)
    realised = {**logged, **{name: _mean(map(_success, es)) for name, es in drawn.items()}}
    known = sum(value for name, value in logged.items() if name not in taken_up)
    n = len(logged)
    return Branched(
        rule=rule, episodes=n, covered=n - len(taken_up),
        left=sum(any(e.branch and e.branch.left for e in es) for es in drawn.values()),
        logged=_mean(logged.values()),
        bounds=(known / n, (known + len(taken_up)) / n),
        realised=_mean(realised.values()), reused=budget.reused, paid=budget.calls,
    )  # fmt: skip


def _success(episode):
    return float(bool(episode.success))


def _mean(values):
    found = list(values)
    return sum(found) / len(found)
