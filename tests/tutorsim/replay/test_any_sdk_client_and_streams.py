"""Clients of the SDK bound to one cassette, sync and async, in every record mode."""

import asyncio
import json
import threading

import anthropic
import pytest

import tutorsim
from tests.tutorsim.conftest import loaded_by
from tests.tutorsim.replay.made import message
from tutorsim.errors import (
    ChangedCallError,
    FolderError,
    MissingCallError,
    RecordingError,
    RecordingRefused,
    UnusedCallError,
    UsageError,
)
from tutorsim.replay import read_cassette
from tutorsim.replay.cassette_file import write_cassette_file

KEY = "sk-ant-test-0123456789-credential"


def ask(client, text, **more):
    return client.messages.create(
        model="model-1", max_tokens=64, messages=[{"role": "user", "content": text}], **more
    )


def say(client, text, **more):
    return str(ask(client, text, **more).content[0].text)


@pytest.fixture(autouse=True)
def _only_replaying(monkeypatch):
    monkeypatch.delenv("TUTORSIM_RECORD", raising=False)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "note.json"


@pytest.fixture
def noted(path, server):
    """A cassette of one call."""
    with tutorsim.recorded(path, mode="once") as client:
        say(client, "one")
    return path


@pytest.mark.loopback
def test_what_one_client_records_another_plays_without_network_or_key(tmp_path, server, offline):
    path = tmp_path / "cassettes" / "note.json"
    with tutorsim.recorded(path, mode="once") as client:
        assert isinstance(client, anthropic.Anthropic)
        assert [say(client, "one"), say(client, "two")] == ["re: one", "re: two"]
    assert len(server.seen) == 2
    assert sorted(one.name for one in path.parent.iterdir()) == ["note.json"]
    offline()
    with tutorsim.recorded(path) as client:
        assert [say(client, "one"), say(client, "two")] == ["re: one", "re: two"]
    with tutorsim.recorded(path, mode="once") as client:
        assert [say(client, "one"), say(client, "two")] == ["re: one", "re: two"]
    assert len(server.seen) == 2


@pytest.mark.loopback
def test_the_asynchronous_client_plays_what_the_synchronous_one_recorded(noted, server, offline):

    async def play():
        async with tutorsim.recorded(noted) as client:
            assert isinstance(client, anthropic.AsyncAnthropic)
            return str((await ask(client, "one")).content[0].text)

    offline()
    assert asyncio.run(play()) == "re: one"


@pytest.mark.loopback
def test_agents_that_ask_side_by_side_have_keys_of_their_own(tmp_path, server, offline):
    path = tmp_path / "panel.json"
    names = ("writer", "checker", "editor")

    async def panel(order):
        async with tutorsim.recorded(path, mode="once") as client:

            async def agent(name, delay):
                mine = client.with_options(default_headers=tutorsim.keyed(name))
                said = []
                for turn in (1, 2):
                    await asyncio.sleep(delay)
                    said.append((await ask(mine, f"{name} {turn}")).content[0].text)
                return said

            asked = [agent(name, 0.01 * place) for place, name in enumerate(order)]
            return dict(zip(order, await asyncio.gather(*asked), strict=True))

    first = asyncio.run(panel(names))
    offline()
    assert asyncio.run(panel(names[::-1])) == first
    held = json.loads(path.read_text())["interactions"]
    keys = {one["request"]["headers"]["x-tutorsim-call"][0] for one in held}
    assert keys == {f"panel/{n}/call/{name}/1" for n in (1, 2) for name in names}


@pytest.mark.loopback
def test_the_caller_may_give_whole_keys(path, server):
    with tutorsim.recorded(path, mode="once") as client:
        say(client, "b", extra_headers=tutorsim.keyed("critic", stage="review", turn=2))
        say(client, "a", extra_headers=tutorsim.keyed("critic", stage="review", turn=1))
    with tutorsim.recorded(path) as client:
        for turn, text in ((1, "a"), (2, "b")):
            headers = tutorsim.keyed("critic", stage="review", turn=turn)
            assert say(client, text, extra_headers=headers) == f"re: {text}"
    with tutorsim.recorded(path, partial=True) as client:
        headers = tutorsim.keyed("critic", stage="review", turn=1)
        say(client, "a", extra_headers=headers)
        with pytest.raises(UsageError, match="two calls have the key 1/review/critic/1"):
            say(client, "a", extra_headers=headers)


@pytest.mark.loopback
def test_misses_have_the_types_and_words_of_a_replay(path, server):
    with pytest.raises(MissingCallError, match=r"note\.json") as nothing, tutorsim.recorded(path):
        pass
    assert 'mode="once"' in nothing.value.hint
    assert 'mode="all"' not in nothing.value.hint
    with tutorsim.recorded(path, mode="once") as client:
        say(client, "the first question")
        say(client, "two")
    with (
        pytest.raises(ChangedCallError, match=r"note\.json: call 1/call/agent/1") as changed,
        tutorsim.recorded(path) as client,
    ):
        say(client, "the last question")
    assert "recorded 'the first question', now 'the last question'" in changed.value.why
    assert 'mode="all"' in changed.value.hint
    with pytest.raises(UnusedCallError, match="2/call/agent/1"), tutorsim.recorded(path) as client:
        say(client, "the first question")
    with tutorsim.recorded(path, partial=True) as client:
        say(client, "the first question")
        say(client, "two")
        with pytest.raises(MissingCallError, match="3/call/agent/1"):
            say(client, "three")
    assert len(server.seen) == 2


@pytest.mark.loopback
def test_new_asks_only_what_is_not_there_and_all_asks_everything(noted, server, monkeypatch):
    before = noted.read_bytes()
    monkeypatch.setenv("TUTORSIM_RECORD", "new")
    with tutorsim.recorded(noted) as client:
        assert [say(client, "one"), say(client, "two")] == ["re: one", "re: two"]
    assert [one["messages"][0]["content"] for one in server.seen] == ["one", "two"]
    assert noted.read_bytes() != before
    server.respond = lambda body: message("anew")
    with tutorsim.recorded(noted, mode="all") as client:
        assert say(client, "one") == "anew"
    with tutorsim.recorded(noted, mode="none") as client:
        assert say(client, "one") == "anew"
    assert len(server.seen) == 3


@pytest.mark.loopback
def test_a_cassette_says_which_calls_the_last_recording_did_not_ask_for(tmp_path, path, server):
    with tutorsim.recorded(path, mode="once") as client:
        assert [say(client, word) for word in ("one", "two")]
    assert "unasked" not in path.read_text()
    for partial, unasked in ((False, ("1/call/agent/1", "2/call/agent/1")), (True, ())):
        with tutorsim.recorded(path, mode="new", partial=partial) as client:
            say(client, "three")
        assert read_cassette(tmp_path, "note").unasked == unasked
    with tutorsim.recorded(path, mode="new") as client:
        assert [say(client, word) for word in ("one", "two", "three")]
    assert read_cassette(tmp_path, "note").unasked == ()
    assert len(server.seen) == 3


@pytest.mark.loopback
def test_new_needs_no_key_where_nothing_is_new(noted, server, offline):
    offline()
    with tutorsim.recorded(noted, mode="new") as client:
        assert say(client, "one") == "re: one"
        with pytest.raises(UsageError, match="No credentials"):
            say(client, "two")


@pytest.mark.loopback
def test_a_failed_block_leaves_the_cassette_alone_and_pays_nothing_twice(tmp_path, path, server):
    with pytest.raises(KeyError), tutorsim.recorded(path, mode="once") as client:
        raise KeyError(say(client, "one"))
    assert not path.exists()
    with tutorsim.recorded(path, mode="once") as client:
        assert [say(client, "one"), say(client, "two")] == ["re: one", "re: two"]
    assert len(server.seen) == 2
    assert [one.name for one in tmp_path.iterdir()] == ["note.json"]


@pytest.mark.loopback
def test_a_retried_call_keeps_its_number(path, server):
    answers = iter([(529, {}, b"{}"), message("first"), message("second")])
    server.respond = lambda body: next(answers)
    with tutorsim.recorded(path, mode="once") as client:
        assert [say(client, "same"), say(client, "same")] == ["first", "second"]
    with tutorsim.recorded(path) as client:
        assert [say(client, "same"), say(client, "same")] == ["first", "second"]


@pytest.mark.loopback
def test_the_endpoint_s_errors_are_the_sdk_s_and_are_not_recorded(path, server):
    refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
    server.respond = lambda body: (400, {}, refusal)
    with tutorsim.recorded(path, mode="once") as client, pytest.raises(anthropic.BadRequestError):
        say(client, "one")
    assert not path.exists()


@pytest.mark.loopback
def test_nothing_secret_is_written(noted, server):
    text = noted.read_text()
    for secret in (KEY, "req_secret", "org_secret", "session=secret", "x-stainless", "user-agent"):
        assert secret not in text
    with tutorsim.recorded(noted, mode="new") as client:
        say(client, "one")
        with pytest.raises(RecordingRefused, match="contains the credential"):
            say(client, f"my key is {KEY}")
    assert len(server.seen) == 1


@pytest.mark.loopback
def test_recording_is_refused_in_ci(path, server, monkeypatch):
    monkeypatch.setenv("CI", "true")
    with tutorsim.recorded(path, mode="once") as client:
        with pytest.raises(RecordingRefused, match="CI is set"):
            say(client, "one")
        assert server.seen == []
    with tutorsim.recorded(path, mode="once", record_in_ci=True) as client:
        say(client, "one")
    assert path.exists()


@pytest.mark.loopback
def test_what_a_cassette_does_not_keep_is_refused_before_it_is_sent(tmp_path, server):
    form = {"file": ("note.txt", b"one")}
    with tutorsim.recorded(tmp_path / "note.json", mode="once") as client:
        with pytest.raises(
            UsageError, match="The POST request to /v1/files is not kept"
        ) as refused:
            client.post("/v1/files", cast_to=object, files=form)
        assert "application/json" in refused.value.why
    assert server.seen == []


@pytest.mark.loopback
def test_one_client_records_a_cassette_at_a_time(path, server):
    with (
        pytest.warns(UserWarning, match="Nothing was asked"),
        tutorsim.recorded(path, mode="once"),
        pytest.raises(FolderError, match="Another run is using"),
        tutorsim.recorded(path, mode="once"),
    ):
        pass
    one = tutorsim.recorded(path, mode="once")
    nothing = pytest.warns(UserWarning, match="Nothing was asked")
    with nothing, one, pytest.raises(UsageError, match="is entered already"), one:
        pass


@pytest.mark.loopback
def test_compressed_cassettes_are_played_and_not_recorded_over(tmp_path, noted):
    write_cassette_file(tmp_path, "note", noted.read_bytes(), "compressed")
    noted.unlink()
    with tutorsim.recorded(noted, mode="once") as client:
        assert say(client, "one") == "re: one"
    with pytest.raises(RecordingError, match="compressed"), tutorsim.recorded(noted, mode="new"):
        pass


@pytest.mark.parametrize("name", ["note", "note.yaml", "a b.json", "..json", "é.json"])
def test_other_names_are_refused(tmp_path, name):
    with (
        pytest.raises(UsageError, match="is not the name of a cassette"),
        tutorsim.recorded(tmp_path / name, mode="once"),
    ):
        pass


def test_no_name_is_refused_with_an_example():
    with pytest.raises(UsageError, match="is not the name of a cassette") as refused:
        tutorsim.recorded_http("")
    assert refused.value.hint == "For example cassettes/panel.json."


@pytest.mark.loopback
def test_a_renamed_cassette_is_refused_with_its_name(tmp_path, noted):
    noted.rename(tmp_path / "letter.json")
    with pytest.raises(RecordingError) as refused, tutorsim.recorded(tmp_path / "letter.json"):
        pass
    assert refused.value.what == "letter.json holds a call of 'note'."
    assert "note.json" in refused.value.hint


def test_unknown_modes_and_keys_are_refused(monkeypatch):
    monkeypatch.setenv("TUTORSIM_RECORD", "always")
    with pytest.raises(UsageError, match="There is no record mode 'always'"):
        tutorsim.recorded("note.json")
    wrong = (("a/b", "call", 1), ("", "call", 1), ("a", "Call", 1), (" a", "call", 1))
    for agent, stage, turn in (*wrong, ("a", "call", -1)):
        with pytest.raises(UsageError, match="No call can have the key"):
            tutorsim.keyed(agent, stage=stage, turn=turn)
    assert list(tutorsim.keyed("a", stage="b", turn=0).values()) == ["0/b/a/1"]


@pytest.mark.costly
@pytest.mark.loopback
def test_fifty_cassettes_are_recorded_and_played_side_by_side(tmp_path, server, offline):
    """In one loop; each client hears its own cassette only."""

    async def panel(number, mode):
        async with tutorsim.recorded(tmp_path / f"p{number}.json", mode=mode) as client:
            asked = (ask(client, f"{number} {turn}") for turn in range(3))
            return [(await one).content[0].text for one in asked]

    async def fifty(mode):
        return await asyncio.gather(*(panel(number, mode) for number in range(50)))

    expected = [[f"re: {number} {turn}" for turn in range(3)] for number in range(50)]
    assert asyncio.run(fifty("once")) == expected
    offline()
    server.seen.clear()
    assert asyncio.run(fifty("none")) == expected
    assert server.seen == []


@pytest.mark.costly
@pytest.mark.loopback
def test_threads_play_cassettes_of_their_own(tmp_path, server, offline):
    for number in range(8):
        with tutorsim.recorded(tmp_path / f"p{number}.json", mode="once") as client:
            say(client, f"from {number}")
    offline()
    heard: dict[int, str] = {}

    def play(number):
        with tutorsim.recorded(tmp_path / f"p{number}.json") as client:
            heard[number] = say(client, f"from {number}")

    threads = [threading.Thread(target=play, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == {number: f"re: from {number}" for number in range(8)}


def test_importing_the_package_loads_nothing_heavy():
    heavy = {"anthropic", "vcr", "polars", "httpx2", "pydantic", "tutorsim.replay"}
    assert heavy.isdisjoint(loaded_by("import tutorsim"))


def test_the_package_has_no_other_late_names():
    with pytest.raises(AttributeError, match="no attribute 'record'"):
        _ = tutorsim.record  # type: ignore[attr-defined]
