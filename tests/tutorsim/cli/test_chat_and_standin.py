import signal

import anthropic
import pytest
from click.testing import CliRunner

from tests.tutorsim.conftest import ended
from tutorsim.cli.chat_and_standin import chat, standin
from tutorsim.errors import UsageError
from tutorsim.standin import FAULT_KINDS


@pytest.mark.loopback
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.costly)]
)
def test_the_server_prints_its_url_and_ends_tidily_on_a_signal(launch, number):
    process = launch("standin", "serve")
    url = process.stdout.readline().decode().strip()
    with (
        anthropic.Anthropic(base_url=url, api_key="none") as client,
        pytest.raises(anthropic.NotFoundError),
    ):
        client.models.list()
    process.send_signal(number)
    said = ended(process)
    assert url.startswith("http://127.0.0.1:")
    assert (said.code, said.out) == (0, "")
    assert "Answered 1 requests." in said.err


@pytest.mark.loopback
def test_the_server_warns_of_a_prompt_that_none_of_its_systems_has(launch):
    """So does a server that was started before the prompt's system was installed."""
    process = launch("standin", "serve")
    url = process.stdout.readline().decode().strip()
    with anthropic.Anthropic(base_url=url, api_key="none") as client:
        client.messages.create(
            model="some-model",
            max_tokens=100,
            system="You greet guests.",
            messages=[{"role": "user", "content": "Greet Otto."}],
        )
    process.send_signal(signal.SIGINT)
    said = ended(process).err
    assert "knows no system with the prompt “You greet guests.”; its reply means nothing" in said
    assert "Answered 1 requests, 1 of them with prompts of no system that it knows." in said


@pytest.mark.parametrize(
    ("named", "missed"), [("--log-dir", "--cassette-dir"), ("--cassette-dir", "--log-dir")]
)
def test_a_chat_asks_for_both_of_its_folders(named, missed):
    said = CliRunner().invoke(chat, ["study.toml", named, "folder"])
    assert (said.exit_code, f"Missing option '{missed}'" in said.output) == (2, True)


def test_a_fault_that_cannot_be_read_is_refused():
    with pytest.raises(UsageError, match="oops"):
        CliRunner().invoke(standin, ["serve", "--fault", "oops"], catch_exceptions=False)


def test_the_help_names_every_fault():
    text = CliRunner().invoke(standin, ["serve", "--help"]).output
    for kind in FAULT_KINDS:
        assert kind in text


def test_a_lesson_with_a_person_goes_through_no_batch():
    said = CliRunner().invoke(chat, ["lesson.toml", "--batch"])
    assert said.exit_code == 2
    assert "No such option" in said.output
