"""What answered a recording, as its own replies tell."""

import pytest

from tutorsim.replay import AnsweredBy, package_versions


@pytest.mark.parametrize(
    ("kinds", "relay_name", "expected"),
    [
        (["stand-in"], None, ("stand-in", "tutorsim stand-in 1.0")),
        (["api"], "mine", ("api", "Anthropic API")),
        (["relay"], None, ("relay", "unnamed")),
        (["relay"], "mine", ("relay", "mine")),
        (["api", "relay"], "mine", ("relay", "mine (mixed: api, relay)")),
        ([], None, ("relay", "unnamed")),
    ],
)
def test_provenance_is_what_the_replies_tell(kinds, relay_name, expected):
    answered_by = AnsweredBy(kinds=set(kinds), models={"b", "a"}, standins={"1.0"})

    told = answered_by.provenance(
        relay_name=relay_name, recorded_from="2026-01-02", recorded_to="2026-01-03"
    )

    assert (told.kind, told.name) == expected
    assert told.models == ("a", "b")
    assert (told.recorded_from, told.recorded_to) == ("2026-01-02", "2026-01-03")


def test_a_witness_reads_sources_from_cassettes(tmp_path, call, interaction, message, write):
    answered_by = AnsweredBy()
    answered_by.note(write(tmp_path, []))
    answered_by.note(write(tmp_path, [interaction(call("a"), message("b"))]))

    assert answered_by == AnsweredBy(kinds={"relay"}, silent=True)


def test_package_versions_name_what_shapes_a_recording():
    assert [*package_versions()] == ["anthropic", "httpx2", "python", "tutorsim", "vcrpy"]
