"""A fault in the code of another package is told in three parts that name its place."""

import sys

import pytest

from tutorsim.errors import UsageError
from tutorsim.kernel.load_and_check_study_file import load_study
from tutorsim.kernel.study_file_and_episode_spec import shipped_studies
from tutorsim.system_registry import fault_of_extension, load, place_of

SHIPPED = shipped_studies()["demo"]
UNFINISHED = """
from tutorsim.kernel.system_and_loaded_study import LoadedStudy, System

class Loaded(LoadedStudy):
    episode = model_names = lambda self: ()

DUEL = System("duel", (), None, Loaded, None, {}, None, None)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a module of this text as the system `duel`, for the test alone."""

    def install(text, name="duel"):
        info = tmp_path / "duel-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: duel\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[tutorsim.systems]\n{name} = duel_system:DUEL\n")
        (tmp_path / "duel_system.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))

    yield install
    sys.modules.pop("duel_system", None)


@pytest.mark.parametrize(
    ("text", "what", "why"),
    [
        ("import duell", "cannot be loaded", "duel_system.py, line 1, in <module>: ModuleNotFound"),
        ("DUELL = 1", "cannot be loaded", "has no attribute 'DUEL'"),
        ("DUEL = 1", "gives no system 'duel'", "duel_system:DUEL is a int called None."),
        (UNFINISHED, "cannot be loaded", "TypeError: Loaded does not define usual_reply, model_of"),
    ],
)
def test_an_entry_point_that_gives_no_system_is_refused(installed, text, what, why):
    installed(text)
    with pytest.raises(UsageError) as refused:
        load("duel", "system")
    assert what in refused.value.what
    assert why in refused.value.why
    assert refused.value.hint


def test_a_system_named_like_a_shipped_one_is_refused_when_a_study_asks_for_that(installed):
    load_study(SHIPPED)
    installed("DUEL = 1", name="panel")
    with pytest.raises(UsageError, match="duel_system:DUEL brings a system called 'panel'"):
        load_study(SHIPPED)


def test_an_unexpected_error_names_the_line_of_the_other_package(installed):
    installed("def flow(catalog):\n    return catalog['grete']\n")
    with pytest.raises(KeyError) as failed:
        {}["nobody"]
    assert fault_of_extension(failed.value) is None, "nothing of another package is loaded"
    from duel_system import flow

    with pytest.raises(KeyError) as failed:
        flow({})
    assert place_of(failed.value) == "duel_system.py, line 2, in flow"
    fault = fault_of_extension(failed.value)
    assert fault.what == "duel_system.py, line 2, in flow: KeyError: 'grete'"
    assert "duel_system.py" in fault.why
    assert "guide extending" in fault.hint
