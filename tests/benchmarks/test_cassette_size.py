"""Bytes of cassettes on disk, beside their requests and replies as compact JSON."""

import orjson
import pytest
import zstandard

from tutorsim.replay.convert_recording_to_other_form import convert

REFERENCE = "their requests and replies as compact JSON"


@pytest.fixture(scope="module")
def cassettes(make_recording):
    """The text cassettes of 120 episodes."""
    return sorted(make_recording(tasks=2).folder.glob("*.*.*.*.json"))


def compact(path):
    """Requests and replies alone, as JSON without white space."""
    lines = (
        orjson.dumps([orjson.loads(one["request"]["body"]), orjson.loads(said)])
        for one in orjson.loads(path.read_bytes())["interactions"]
        for said in (one["response"]["body"]["string"],)
    )
    return b"\n".join(lines)


def packed(data):
    return len(zstandard.ZstdCompressor(level=3).compress(data))


@pytest.mark.parametrize(
    ("reference", "target", "size"),
    [(f"{REFERENCE} with zstd", "at most 12", packed), (REFERENCE, "at most 1.3", len)],
    ids=["zstd", "plain"],
)
def test_text(benchmark, cassettes, reference, target, size):
    text = sum(path.stat().st_size for path in cassettes)
    beside = benchmark.pedantic(lambda: sum(size(compact(path)) for path in cassettes), rounds=1)
    benchmark.extra_info.update(
        what="cassettes on disk, text form",
        reference=reference,
        target=f"{target} × its size",
        ratio=text / beside,
        unit="× its size",
    )


def test_compressed(benchmark, cassettes, tmp_path):
    folder = cassettes[0].parent
    written = benchmark.pedantic(lambda: convert(folder, tmp_path / "new", "compressed"), rounds=1)
    beside = sum(packed(compact(path)) for path in cassettes)
    benchmark.extra_info.update(
        what="cassettes on disk, compressed form",
        reference=f"{REFERENCE} with zstd",
        target="at most 1.5 × its size",
        ratio=written / beside,
        unit="× its size",
    )
