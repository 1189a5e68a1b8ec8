"""How alike texts are by their sentence embeddings; with the extra `embeddings`.

The model is a folder on this machine, in the form in which sentence-transformers publish it:
`onnx/model.onnx` or `model.onnx`, `tokenizer.json`, `tokenizer_config.json`, and
`1_Pooling/config.json`, which says how the vectors of words become one of a sentence (the mean if
there is none). Nothing is downloaded.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import file_digest
from itertools import combinations
from math import fsum
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tutorsim.errors import UsageError
from tutorsim.named_files import open_named, read_named

__all__ = ["Embedding", "embedded_similarities", "open_embedding"]

Vectors = NDArray[np.floating[Any]]
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
    return [_mean_cosine([vectors[text] for text in panel]) for panel in kept]


def _mean_cosine(vectors: Sequence[Vectors]) -> float | None:
    cosines = [min(1.0, fsum(a * b)) for a, b in combinations(vectors, 2)]
    return sum(cosines) / len(cosines) if cosines else None


@cache
def open_embedding(folder: Path) -> Embedding:
    """Open a model of sentences.

    Raises:
        UsageError: If the extra is not installed, or the folder holds no model.
    """
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
