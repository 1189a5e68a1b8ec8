"""The head of a view of a source: its name, what answered, tokens used, what a branch changes."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tutorsim.analysis.runs.branch_continuations import branch_changes, branch_counts
from tutorsim.cli.console import safe
from tutorsim.cli.output_elements import (
    Prose,
    caption,
    elsewhere,
    heading,
    listing,
    provenance,
    styled,
)
from tutorsim.records import Branch, BranchPoint, EpisodeRecord

if TYPE_CHECKING:  # `show` looks at no table
    from tutorsim.analysis.ballots.recount_source import Source

# --- Branch notes --------------------------------------------------------------------------------


def branch_head(branch: Branch, episodes: Sequence[EpisodeRecord]) -> Prose:
    """What a run that is a branch consists of."""
    counts = branch_counts(branch, episodes)
    told = f" under {branch_changes(branch)}. Episodes: {counts.covered:,} as logged"
    if counts.draws:
        turns = listing([f"turn {turn} ({n:,})" for turn, n in counts.cursors.items()])
        failed = f", {counts.failed:,} of them failed" if counts.failed else ""
        told += (
            f", {counts.continued:,} re-simulated from {turns} on in {counts.draws:,} draws{failed}"
        )
    return Prose(
        styled(f"A branch of {branch.parent}", "bold")
        + safe(
            f"{told}. The figures of this run are of both together; an episode counts by the "
            "mean of its draws, each of which is what might have followed."
        )
    )


def draw_name(point: BranchPoint, branch: Branch | None) -> str:
    """`draw 2 of 5`."""
    return f"draw {point.continuation}" + (f" of {branch.continuations}" if branch else "")


def from_here(point: BranchPoint, branch: Branch | None, *, turn: int) -> str:
    """What a turn of a continuation is, from the first that the branch decides on."""
    draw = draw_name(point, branch)
    if point.left is not None and turn > point.left:
        return f"re-simulated, {draw}"
    under = f", under {branch_changes(branch)}" if branch and turn == point.turn else ""
    start = "from here: " if turn == point.turn else ""
    winner = "another" if turn == point.left else "the same"
    return (
        f"{start}re-simulated, {draw}{under}; drafts and votes of this turn are the log's, its "
        f"decision is the branch's: {winner} winner"
    )


# --- Source head ---------------------------------------------------------------------------------


def source_shown(source: "Source") -> Iterator[Prose]:
    """What is looked at, and what answered its calls: the head of every view."""
    yield heading(source.name)
    if source.run is None:
        yield elsewhere(source.stated, source.kinds)
    else:
        yield provenance(source.run.provenance)
        if source.run.branch is not None:
            yield branch_head(source.run.branch, source.episodes)
    for note in source.notes:
        yield caption(note)
