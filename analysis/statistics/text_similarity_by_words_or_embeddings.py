"""How alike texts are, by their words or by sentence embeddings; role collapse of proposals."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import file_digest
from itertools import combinations
from math import fsum, log, sqrt
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.runs.branch_counts_turns_siblings_share import without_shared_turns
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.array_types import Vectors
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable, mean_over_tasks
from tutorsim.errors import UsageError
from tutorsim.regular_files_and_digests import open_named, read_named

# --- Proposal similarity -------------------------------------------------------------------------

Vector = Mapping[str, float]
V = TypeVar("V")


def role_collapse(source: Source) -> dict[str, dict[str, Estimate | NotEstimable]]:
    """Condition → mean similarity of the drafts of a turn, `initial` and `final`, over tasks.

    A turn with fewer than two drafts that have words has none.
    """
    drafts = [
        ((e.condition, version), (e.benchmark, e.task_id), [p.text for p in proposals.values()])
        for e in without_shared_turns(source.episodes)
        if e.status == "complete"
        for turn in e.turns
        if turn.decision is not None
        for version, proposals in (
            ("initial", turn.proposals_initial),
            ("final", turn.proposals_final),
        )
    ]
    means = text_similarities([texts for *_, texts in drafts])
    cells = by_key(
        (cell, (mean, task)) for (cell, task, _), mean in zip(drafts, means, strict=True)
    )
    found: dict[str, dict[str, Estimate | NotEstimable]] = {}
    for (condition, version), rows in cells.items():
        values = [mean for mean, _ in rows if mean is not None]
        tasks = [task for mean, task in rows if mean is not None]
        found.setdefault(condition, {})[version] = mean_over_tasks(values, tasks, ends=(0, 1))
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
    vectors = [[_unit(words, weight) for words in panel if words] for panel in counts]
    return [
        _mean_of_pairs(panel, lambda a, b: sum([x * b[word] for word, x in a.items() if word in b]))
        for panel in vectors
    ]


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]{2,}", text.lower())


def _unit(words: Mapping[str, int], weight: Mapping[str, float]) -> Vector:
    vector = {word: count * weight[word] for word, count in sorted(words.items())}
    length = sqrt(sum(x * x for x in vector.values()))
    return {word: x / length for word, x in vector.items()}


def _mean_of_pairs(vectors: Sequence[V], cosine: Callable[[V, V], float]) -> float | None:
    cosines = [min(1.0, cosine(a, b)) for a, b in combinations(vectors, 2)]
    return sum(cosines) / len(cosines) if cosines else None


# --- Text embeddings -----------------------------------------------------------------------------

_FILES: Final = ("onnx/model.onnx", "model.onnx")
_POOLING: Final = {
    "pooling_mode_cls_token": "CLS",
    "pooling_mode_mean_tokens": "MEAN",
    "pooling_mode_lasttoken": "LAST_TOKEN",
}
"""Key of `1_Pooling/config.json` → name of the pooling."""


@dataclass(frozen=True)
class Embedding:
    """A model of sentences."""

    name: str
    """The folder's name and the first digits of the model file's SHA-256."""
    encode: Callable[[Sequence[str]], Vectors]
    """From texts to their vectors, (texts × dimensions), each of length 1."""


def embedded_similarities(
    panels: Sequence[Sequence[str]], embedding: Embedding
) -> list[float | None]:
    """Mean pairwise cosine of sentence embeddings within each panel of texts.

    An empty text is left out; a panel with fewer than two others has no similarity.
    """
    kept = [[text for text in panel if text.strip()] for panel in panels]
    texts = list(dict.fromkeys(text for panel in kept for text in panel))
    if not texts:
        return [None] * len(kept)
    vectors = dict(zip(texts, embedding.encode(texts), strict=True))
    every = [[vectors[text] for text in panel] for panel in kept]
    return [_mean_of_pairs(panel, lambda a, b: fsum(a * b)) for panel in every]


@cache
def open_embedding(folder: Path) -> Embedding:
    """Open a model of sentences; refused if the extra or the model is missing."""
    try:
        from fastembed import TextEmbedding
        from fastembed.common.model_description import ModelSource, PoolingType
    except ModuleNotFoundError as error:
        raise UsageError(
            "Sentence embeddings need the extra `embeddings`.",
            why=f"{error.name} is not installed.",
            hint="pip install 'tutorsim[embeddings]'",
        ) from error
    file = next((name for name in _FILES if (folder / name).is_file()), None)
    if file is None:
        raise _no_model(folder, f"Neither {' nor '.join(_FILES)} is in it.")
    name = str(folder.resolve())
    pooling = PoolingType[_pooling(folder)]
    TextEmbedding.add_custom_model(
        name, pooling, True, ModelSource(url=folder.resolve().as_uri()), 0, model_file=file
    )
    try:
        model = TextEmbedding(
            name,
            specific_model_path=name,
            cache_dir=name,  # nothing is cached; without it the library makes a folder of its own
            threads=1,
            providers=["CPUExecutionProvider"],
        )
    except Exception as error:  # the library raises whatever its readers do
        raise _no_model(folder, f"{type(error).__name__}: {error}") from error
    with open_named(folder / file) as opened:
        digest = file_digest(opened, "sha256").hexdigest()[:12]
    return Embedding(
        f"{folder.resolve().name}, {digest}", lambda texts: np.array(list(model.embed(texts)))
    )


def _pooling(folder: Path) -> str:
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        return "MEAN"
    try:
        found = json.loads(read_named(path))
        modes = [key for key, value in found.items() if key.startswith("pooling_mode") and value]
        [pooling] = [_POOLING[mode] for mode in modes]
    except (ValueError, KeyError, AttributeError, OSError) as error:
        raise _no_model(
            folder, f"1_Pooling/config.json names none of {', '.join(_POOLING)} alone."
        ) from error
    return pooling


def _no_model(folder: Path, why: str) -> UsageError:
    return UsageError(
        f"{folder} holds no model of sentences that can be opened.",
        why=why,
        hint="Give the folder of a sentence-transformers model with its ONNX file, for example "
        "from `hf download sentence-transformers/all-MiniLM-L6-v2 --local-dir DIR`.",
    )
