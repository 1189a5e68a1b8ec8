import signal
import subprocess
import sys

import anthropic
import pytest
from click.testing import CliRunner

from tutorsim.cli.chat_and_standin import chat, standin
from tutorsim.errors import UsageError
from tutorsim.standin import FAULT_KINDS


@pytest.mark.loopback
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_server_prints_its_url_and_ends_tidily_on_a_signal(number):
    command = [sys.executable, "-c", "from tutorsim.cli import main; main()", "standin", "serve"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        url = process.stdout.readline().strip()
        with (
            anthropic.Anthropic(base_url=url, api_key="none") as client,
            pytest.raises(anthropic.NotFoundError),
        ):
            client.models.list()
        process.send_signal(number)
        rest, errors = process.communicate(timeout=90)
    assert url.startswith("http://127.0.0.1:")
    assert (process.returncode, rest) == (0, "")
    assert "Answered 1 requests." in errors
    assert "Traceback" not in errors


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
