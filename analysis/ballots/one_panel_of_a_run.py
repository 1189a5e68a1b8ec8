"""One panel of a run that compares several, as a source of its own."""

from dataclasses import replace

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.runs.branch_continuations import deciding_order
from tutorsim.analysis.runs.run_panels import of_one_panel, panels_of
from tutorsim.errors import UsageError

__all__ = ["of_panel"]


def of_panel(source: Source, name: str) -> Source:
    """The episodes of one panel, under its own order, and those of the single tutor beside them.

    Args:
        source: A run that compares panels.
        name: One of its panels.

    Raises:
        UsageError: If the source has no such panel.
    """
    panels = panels_of(source.run)
    if source.run is None or name not in panels:
        raise UsageError(
            f"{source.name} has no panel {name!r}.",
            why=f"Its panels are {', '.join(panels)}." if panels else "It compares no panels.",
            hint="Leave --panel out, or name one of them." if panels else "Leave --panel out.",
        )
    run = of_one_panel(source.run, name)
    episodes = tuple(e for e in source.episodes if e.panel in (None, name))
    ids = [e.episode_id for e in episodes]
    retest = source.retest
    if retest is not None:
        retest = retest._replace(episodes=tuple(r for r in retest.episodes if r.episode_id in ids))
    return replace(
        source,
        name=f"{source.name}, panel {name}",
        rows=source.ballots.filter(pl.col("episode_id").is_in(ids)),
        fallback_order=deciding_order(run.panel),
        run=run,
        episodes=episodes,
        retest=retest,
    )
