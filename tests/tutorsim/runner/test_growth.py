"""What a replay does for each call, counted: as often in a large recording as in a small one."""

import builtins
import io
import json
import os
from collections import Counter
from contextlib import contextmanager
from typing import NamedTuple

import orjson
import pytest

from tutorsim import model as json_bodies
from tutorsim.replay import cassette_file, recorded_call
from tutorsim.replay import cassette_file as fast_reader
from tutorsim.replay import recorded_call as first_difference
from tutorsim.runner.replay import replay
from tutorsim.systems.panel.settings import PanelCatalog

SMALL = {"conditions": ["simple"], "max_turns": 1}
LARGE = {"conditions": ["simple"], "max_turns": 3, "repeats": 2}


class Counted(NamedTuple):
    """Operations of one replay, and what it replayed."""

    done: Counter[str]
    calls: int
    episodes: int


@contextmanager
def counting(monkeypatch):
    """Count, while the block runs, how often the functions below are called."""
    done: Counter[str] = Counter()

    def watch(owner, name, kind):
        function = getattr(owner, name)

        def counted(*args, **kwargs):
            done[kind] += 1
            return function(*args, **kwargs)

        patch.setattr(owner, name, counted)

    with monkeypatch.context() as patch:
        for module in (cassette_file, recorded_call, json_bodies):
            patch.setattr(module, "orjson", _Watched(orjson, done))
        watch(io, "open", "opened")
        watch(builtins, "open", "opened")
        watch(os, "open", "opened")
        watch(json, "loads", "parsed otherwise")
        watch(json, "dumps", "written otherwise")
        watch(fast_reader, "check_same", "compared")
        watch(recorded_call, "request_value", "requests parsed")
        watch(recorded_call, "first_difference", "described")
        watch(first_difference, "first_difference", "described")
        watch(PanelCatalog, "fill", "filled")
        watch(PanelCatalog, "part", "parts filled")
        yield done


class _Watched:
    """A module whose parser and writer are counted."""

    def __init__(self, module, done):
        self._module, self._done = module, done

    def __getattr__(self, name):
        found = getattr(self._module, name)
        if name not in ("loads", "dumps"):
            return found

        def counted(*args, **kwargs):
            self._done["parsed" if name == "loads" else "written"] += 1
            return found(*args, **kwargs)

        return counted


@pytest.fixture
def counted(endpoint, write_grid, record, tmp_path, monkeypatch):
    """Record a study from the endpoint and count what its replay does."""

    def run(**settings):
        name, sent = f"recording-{len(endpoint.sent)}", len(endpoint.sent)
        assert record(write_grid(**settings), name=name).code == 0
        folder = tmp_path / name
        with counting(monkeypatch) as done:
            run, _ = replay(folder / "cassettes", log_dir=folder / "again", workers=1)
        return Counted(done, len(endpoint.sent) - sent, run.episodes)

    return run


@pytest.mark.costly
@pytest.mark.loopback
def test_the_work_of_a_replay_grows_with_its_calls_alone(counted):
    """A cassette is opened and parsed once, a reply parsed once, a request compared as text.

    Of the files that are read and written whole there are no more for more episodes; the file of
    timings has a line for each.
    """
    small, large = counted(**SMALL), counted(**LARGE)
    assert large.calls > 3 * small.calls
    assert large.episodes == 2 * small.episodes
    for one in (small, large):
        done = one.done
        assert done["compared"] == done["written"] == one.calls
        assert done["parsed"] == one.calls + one.episodes + 1  # the manifest
        assert done["requests parsed"] == done["described"] == 0
        assert done["filled"] < 3 * one.calls
        assert done["parts filled"] < 3 * one.calls
    for kind, each in (("opened", 1), ("parsed otherwise", 0), ("written otherwise", 1)):
        once = [one.done[kind] - each * one.episodes for one in (small, large)]
        assert once[0] == once[1], kind
