"""How ballots from elsewhere were read, as a value."""

from typing import Any

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source


def reading_of(source: Source) -> dict[str, Any]:
    """Files, columns, candidates, votes and what was assumed; the JSON of `tutorsim check`."""
    frame = source.ballots
    return {
        "source": source.name,
        "provenance": source.provenance,
        "stated": list(source.stated),
        "budget": source.budget,
        "fallback_order": source.fallback_order and list(source.fallback_order),
        "notes": list(source.notes),
        "files": [
            {**file._asdict(), "columns": dict(file.columns), "assumed": list(file.assumed)}
            for file in source.files
        ],
        "candidates": frame["candidate"].unique().sort().to_list(),
        "voters": frame["voter"].n_unique(),
        "episodes": frame["episode_id"].n_unique(),
        "turns": frame.select("episode_id", "turn").n_unique(),
        "votes": _votes(frame),
    }


def _votes(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """One row a protocol and stage."""
    ballot = ("episode_id", "turn", "stage", "voter")
    each = frame.unique(ballot, maintain_order=True)
    counted = each.group_by("protocol", "stage", maintain_order=True).agg(
        turns=pl.struct("episode_id", "turn").n_unique(),
        voters=pl.col("voter").n_unique(),
        ballots=pl.len(),
        repaired=(pl.col("ballot_status") == "repaired").sum(),
        abstained=(pl.col("ballot_status") == "abstained").sum(),
    )
    names = frame.group_by("protocol", "stage").agg(candidates=pl.col("candidate").n_unique())
    found = counted.join(names, on=["protocol", "stage"], maintain_order="left")
    return found.to_dicts()


def order_words(source: Source) -> str:
    """What decides a tie in ballots from elsewhere."""
    if source.fallback_order is None:
        return (
            "No order is logged: a tie that counting leaves stays a set. --fallback-order sets one."
        )
    return f"Ties go to {' > '.join(source.fallback_order)}, as --fallback-order says."
