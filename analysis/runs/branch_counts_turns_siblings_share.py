"""Episodes of a branch: what each continues, what its continuations share, and words for it.

A branch holds *covered* episodes, which are the parent's own records, and *continuations*: draws
of what might have followed a turn that the alternative decides. Continuations of one episode have
everything before that turn in common, often more. Two rules follow for whoever counts:

* an outcome's unit is the episode that was logged: its continuations are averaged first;
* a turn's unit is the vote that was held: one that continuations share is counted once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tutorsim.analysis.statistics import by_key
from tutorsim.records import Branch, BranchPoint, EpisodeRecord


@dataclass(frozen=True)
class BranchCounts:
    """What a run that is a branch consists of."""

    covered: int
    """Episodes kept as they were logged."""
    continued: int
    """Logged episodes with at least one continuation."""
    draws: int
    """Continuations, failed ones among them."""
    failed: int
    """Continuations that were cut short by a failed call."""
    cursors: Mapping[int, int]
    """First turn under the alternative → logged episodes taken up there."""


def origin_of(episode: EpisodeRecord) -> str:
    """The logged episode that a continuation continues; otherwise the episode's own id."""
    return episode.branch.parent_episode if episode.branch else episode.episode_id


def by_origin(episodes: Iterable[EpisodeRecord]) -> list[list[EpisodeRecord]]:
    """Episodes by the logged episode that they continue; each alone where nothing is a branch."""
    return [*by_key((origin_of(episode), episode) for episode in episodes).values()]


def shared_turns(episodes: Iterable[EpisodeRecord]) -> dict[tuple[str, int], str]:
    """Turns that an earlier continuation of the same episode holds too, and which one that is.

    Turns are shared up to the one at which the path was left, where their records are equal.
    Failed episodes are left out, as they are in every table of votes.

    Returns episode and turn → the first continuation with that turn.
    """
    found: dict[tuple[str, int], str] = {}
    for group in by_origin(e for e in episodes if e.branch and e.status == "complete"):
        for i, episode in enumerate(group):
            for turn in episode.turns[: _kept(episode)]:
                for earlier in group[:i]:
                    if turn in earlier.turns[: _kept(earlier)]:
                        found[episode.episode_id, turn.turn] = earlier.episode_id
                        break
    return found


def without_shared_turns(episodes: Iterable[EpisodeRecord]) -> tuple[EpisodeRecord, ...]:
    """Episodes with every shared turn left to the first continuation that holds it."""
    whole = tuple(episodes)
    shared = shared_turns(whole)
    with_shared = {name for name, _ in shared}

    def own(episode: EpisodeRecord) -> EpisodeRecord:
        turns = tuple(t for t in episode.turns if (episode.episode_id, t.turn) not in shared)
        return episode.model_copy(update={"turns": turns})

    return tuple(own(one) if one.episode_id in with_shared else one for one in whole)


def branch_counts(branch: Branch, episodes: Sequence[EpisodeRecord]) -> BranchCounts:
    """Count what a branch's run consists of."""
    draws = [e for e in episodes if e.branch]
    cursors = {e.branch.parent_episode: e.branch.turn for e in draws if e.branch}
    return BranchCounts(
        covered=len(episodes) - len(draws),
        continued=len(cursors),
        draws=len(draws),
        failed=sum(e.status == "failed" for e in draws),
        cursors=dict(sorted(Counter(cursors.values()).items())),
    )


def branch_changes(branch: Branch) -> str:
    """What a branch changes, in a few words."""
    said = {
        "rule": branch.rule,
        "fallback order": branch.fallback_order and " > ".join(branch.fallback_order),
        "tie policy": branch.tie_policy,
        "panel": branch.roles and ", ".join(branch.roles),
        "tutors' model": branch.model,
    }
    return "; ".join(f"{name} {value}" for name, value in said.items() if value) or "nothing"


def draw_name(point: BranchPoint, branch: Branch | None) -> str:
    """`draw 2 of 5`."""
    return f"draw {point.continuation}" + (f" of {branch.continuations}" if branch else "")


def branch_words(branch: Branch) -> str:
    """What a branch is, for a caption: part logged, part re-simulated."""
    draws = "1 draw" if branch.continuations == 1 else f"{branch.continuations} draws"
    return (
        f"branch of {branch.parent} under {branch_changes(branch)}: covered episodes as logged, "
        f"the others re-simulated from their first divergent turn, {draws} each"
    )


def _kept(episode: EpisodeRecord) -> int | None:
    """How many turns lie on the logged path, the one where it was left among them."""
    return episode.branch.left if episode.branch else None
