"""Role collapse: how alike the proposals of one turn are.

Word-level TF–IDF cosine: words are runs of two or more letters or digits, in lower case; the
weight of a word is its count times ln((1 + N) / (1 + d)) + 1, where d of the run's N proposals
hold it; texts are compared as unit vectors. 1 is the same words in the same proportions.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import log, sqrt
from typing import Final

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.runs.branch_continuations import without_shared_turns
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    mean_over_tasks,
)

__all__ = ["SIMILARITY_SCHEMA", "role_collapse", "similarities", "text_similarities"]

SIMILARITY_SCHEMA: Final = pl.Schema(
    {
        "episode_id": pl.String(),
        "benchmark": pl.String(),
        "task": pl.String(),
        "condition": pl.String(),
        "turn": pl.Int64(),
        "version": pl.String(),  # initial or final
        "similarity": pl.Float64(),  # mean over pairs; null with fewer than two texts with words
    }
)
"""One row per panel turn and version of its proposals."""

Vector = Mapping[str, float]


def similarities(source: Source) -> pl.DataFrame:
    """Mean pairwise similarity of each panel turn's proposals: see `SIMILARITY_SCHEMA`."""
    panels = [
        ((e.episode_id, e.benchmark, e.task_id, e.condition, turn.turn, version), texts)
        for e in without_shared_turns(source.episodes)
        if e.status == "complete"
        for turn in e.turns
        if turn.decision is not None
        for version, texts in (
            ("initial", [p.text for p in turn.proposals_initial.values()]),
            ("final", [p.text for p in turn.proposals_final.values()]),
        )
    ]
    means = text_similarities([texts for _, texts in panels])
    rows = [(*place, mean) for (place, _), mean in zip(panels, means, strict=True)]
    return pl.DataFrame(rows, schema=SIMILARITY_SCHEMA, orient="row")


def role_collapse(source: Source) -> dict[str, dict[str, Estimate | NotEstimable]]:
    """Condition → `initial`, `final` and `change` of the mean similarity, with intervals."""
    frame = similarities(source)
    wide = (
        frame.pivot(
            "version",
            index=["benchmark", "task", "condition", "episode_id", "turn"],
            values="similarity",
        )
        if frame.height
        else frame
    )
    found: dict[str, dict[str, Estimate | NotEstimable]] = {}
    for (condition,), turns in wide.group_by("condition", maintain_order=True):
        turns = turns.with_columns(change=pl.col("final") - pl.col("initial"))
        found[str(condition)] = {
            name: _mean(turns.drop_nulls(name), name) for name in ("initial", "final", "change")
        }
    return found


def text_similarities(panels: Sequence[Sequence[str]]) -> list[float | None]:
    """Mean pairwise TF–IDF cosine within each panel of texts.

    Word weights come from the texts of all panels together. A text without words is left out;
    a panel with fewer than two others has no similarity.
    """
    counts = [[Counter(_words(text)) for text in panel] for panel in panels]
    texts = [words for panel in counts for words in panel]
    holding = Counter(word for words in texts for word in words)
    weight = {word: log((1 + len(texts)) / (1 + d)) + 1 for word, d in holding.items()}
    return [_mean_cosine([_unit(words, weight) for words in panel if words]) for panel in counts]


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]{2,}", text.lower())


def _unit(words: Mapping[str, int], weight: Mapping[str, float]) -> Vector:
    vector = {word: count * weight[word] for word, count in sorted(words.items())}
    length = sqrt(sum(x * x for x in vector.values()))
    return {word: x / length for word, x in vector.items()}


def _mean_cosine(vectors: Sequence[Vector]) -> float | None:
    cosines = [
        min(1.0, sum([x * b[word] for word, x in a.items() if word in b]))
        for a, b in combinations(vectors, 2)
    ]
    return sum(cosines) / len(cosines) if cosines else None


def _mean(turns: pl.DataFrame, name: str) -> Estimate | NotEstimable:
    return mean_over_tasks(
        turns[name].to_list(), turns.select("benchmark", "task").rows(), ends=(0, 1)
    )
