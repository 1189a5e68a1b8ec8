"""The head of every view of a source: its name, what answered its calls, what reading it took."""

from collections.abc import Iterator

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.cli.branch_notes import branch_head
from tutorsim.cli.output_elements import Prose, caption, elsewhere, heading, provenance

__all__ = ["source_shown"]


def source_shown(source: Source) -> Iterator[Prose]:
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
