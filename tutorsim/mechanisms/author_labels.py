"""Labels in place of authors' names.

Each order is drawn by sorting candidates by a SHA-256 hash of the study's seed, the episode, the
turn and, where labels are drawn per reader, the stage and the reader. No random generator of a
Python version or a platform is involved, and every order is equally likely.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256

from tutorsim.vocabularies import LABELS, LabelOrder

__all__ = ["draw_labels", "indented", "labelled"]


def draw_labels(
    candidates: Sequence[str],
    *,
    seed: int,
    episode_id: str,
    turn: int,
    stage: str,
    reader: str,
    blinding: LabelOrder,
    alphabet: str = LABELS,
) -> dict[str, str]:
    """Label → candidate for one reader, in label order.

    With `shared` everybody reads the same labels throughout a turn; with `listed` everybody reads
    the candidates in their given order.

    Args:
        candidates: Whom the labels stand for; at most as many as the alphabet has letters.
        seed: The study's seed.
        episode_id: The episode; a continuation's draws are those of the episode it continues.
        turn: The turn.
        stage: What the labels are read for.
        reader: Who reads them.
        blinding: How labels are drawn.
        alphabet: The labels, in order.
    """
    if blinding == "listed":
        return dict(zip(alphabet, candidates, strict=False))
    before = f"{seed}\x1f{episode_id}\x1f{turn}\x1f"
    if blinding == "per_reader":
        before = f"{before}{stage}\x1f{reader}\x1f"
    hashed = sorted([(sha256(f"{before}{name}".encode()).digest(), name) for name in candidates])
    return {label: name for label, (_, name) in zip(alphabet, hashed, strict=False)}


def labelled(texts: Mapping[str, str], labels: Mapping[str, str], *, blank: str) -> str:
    """`A: text` paragraphs in label order.

    Args:
        texts: Candidate → text.
        labels: Label → candidate.
        blank: What stands for a text that is empty.
    """
    return "\n\n".join(
        [f"{label}: {indented(texts[name]) or blank}" for label, name in labels.items()]
    )


@lru_cache(maxsize=256)
def indented(text: str) -> str:
    """The text with every line after the first indented.

    Text from a model can then never start a line, so it cannot pass for a label or a heading.
    """
    return "\n  ".join(text.strip().splitlines())
