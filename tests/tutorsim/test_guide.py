"""README and guide: every page is there, and every command and snippet in them runs."""

import os
import pydoc
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple, get_args

import click
import pytest
from pydantic import BaseModel

import tutorsim
from tutorsim.cli import COMMANDS, cli
from tutorsim.cli.print_guide_pages_and_doctor import TOPICS, page
from tutorsim.errors import UsageError
from tutorsim.kernel.load_and_check_study_file import system_named

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {"README": README} | {topic: page(topic) for topic in TOPICS}
FROM_NOTHING = ("claims", "extending", "futures", "python", "recounts", "replay")
"""Pages that run from top to bottom in an empty folder; their first command is the demo."""
ORDER = ("recording", "ballots", "panel")
"""Pages in the order in which they build on each other's files; the others follow."""
BLOCK = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PORT = "8808"
"""The stand-in's port in the pages; a test takes a free one."""


class Snippet(NamedTuple):
    language: str
    file: str
    text: str


def snippets(topic):
    return [Snippet(*found) for found in BLOCK.findall(PAGES[topic])]


def commands(text):
    """Words of every `tutorsim …` in a shell text, of its lines put together."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words and re.fullmatch(r"\w+=.*", words[0]):
            words = words[1:]
        if words and Path(words[0]).name == "tutorsim":
            yield [word for word in words[1:] if word != "&"]


def test_each_topic_has_a_page_and_each_page_a_topic():
    folder = ROOT / "tutorsim" / "guide"
    assert {path.stem for path in folder.glob("*.md")} == {*TOPICS} - {"api"}
    for topic in TOPICS:
        assert page(topic).startswith("# ")
        assert f"tutorsim/guide/{topic}.md" in README or topic == "api"
    with pytest.raises(UsageError, match="no page 'voting'"):
        page("voting")


def test_the_page_of_names_has_every_name_and_what_its_docstring_says():
    text = page("api")
    for name in tutorsim.__all__:
        assert f"## tutorsim.{name}\n" in text or name == "__version__"
    for member in ("recount", "report", "turns"):
        assert f".{member}" in text
    assert "- `targets`: Rules to count under." in text  # from the docstring of `Run.recount`
    assert "UsageError" in text


@pytest.mark.parametrize("topic", PAGES)
def test_constants_and_modules_that_are_named_are_there(topic):
    sources = [p for top in ("tutorsim", "analysis") for p in (ROOT / top).rglob("*.py")]
    program = "".join(path.read_text(encoding="utf-8") for path in sources)
    for name in re.findall(r"`(_[A-Z_]+)`", PAGES[topic]):
        assert re.search(rf"^{name}\b", program, re.MULTILINE), name
    for name in re.findall(r"`((?:tutorsim|analysis|tests)/[\w/]+(?:\.py)?)`", PAGES[topic]):
        assert (ROOT / name).exists(), name


def test_the_help_of_the_package_names_a_page_that_help_opens():
    [asked] = re.findall(r'help\("([\w.]+)"\)', tutorsim.__doc__ or "")
    assert "recount" in pydoc.render_doc(asked)
    assert re.findall(r"help\(\w", tutorsim.__doc__ or "") == []


def test_what_help_says_of_the_script_of_a_report_is_so(shell):
    page = (ROOT / "analysis/pages/templates/page.html.j2").read_text(encoding="utf-8")
    assert page.count("<script>") == 1
    assert "its one script" in " ".join(shell("report", "--help").out.split())


def test_the_guide_is_printed(shell):
    listed = shell("guide")
    assert [line.split()[0] for line in listed.out.splitlines()] == list(TOPICS)
    assert shell("guide", "panel").out == page("panel")
    refused = shell("guide", "voting")
    assert refused.code == 2
    assert len(refused.err.strip().splitlines()) == 3


def test_the_system_of_the_guide_is_the_tested_one():
    [shown] = [one.text for one in snippets("extending") if one.file == "greeting_system.py"]
    tested = Path(__file__).with_name("systems") / "greeting.py"
    assert shown == tested.read_text(encoding="utf-8")


def test_every_option_of_a_command_says_what_it_is_for():
    commands = {name: cli.get_command(click.Context(cli), name) for name in COMMANDS}
    for group in [one for one in commands.values() if isinstance(one, click.Group)]:
        commands |= {f"{group.name} {name}": inner for name, inner in group.commands.items()}
    silent = {
        name: [one.name for one in command.params if isinstance(one, click.Option) and not one.help]
        for name, command in commands.items()
    }
    assert {name: options for name, options in silent.items() if options} == {}


@pytest.mark.parametrize("topic", PAGES)
def test_every_command_that_is_named_exists_with_its_options(topic):
    named = [line for one in snippets(topic) if one.language == "sh" for line in commands(one.text)]
    named += [
        line for text in re.findall(r"`(tutorsim [^`]+)`", PAGES[topic]) for line in commands(text)
    ]
    for words in named:
        options: list[click.Command] = [cli]
        for word in words:
            known = {name for one in options for p in one.params for name in p.opts}
            if word.startswith("-"):
                assert word.partition("=")[0] in {*known, "--help"}, words
            elif isinstance(options[-1], click.Group) and word.islower():
                found = options[-1].get_command(click.Context(cli), word)
                assert found is not None, words
                options.append(found)
        assert len(options) > 1 or all(word.startswith("-") for word in words), words


def test_the_readme_s_own_limits():
    """About two screens, one picture, one line each to set up and to test."""
    lines = README.splitlines()
    assert len(lines) <= 110
    assert max(map(len, lines)) <= 130
    setups = [line for line in lines if line.startswith("python3 -m venv")]
    assert len(setups) == 2
    [picture] = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert 0 < (ROOT / picture).stat().st_size < 200_000


def test_every_table_of_environment_variables_names_what_the_code_reads():
    text = page("replay")
    sources = [p for room in ("tutorsim", "analysis") for p in (ROOT / room).rglob("*.py")]
    read = {
        name
        for path in sources
        for name in re.findall(r'"(TUTORSIM_[A-Z_]+)"', path.read_text(encoding="utf-8"))
    }
    assert read <= set(re.findall(r"TUTORSIM_[A-Z_]+", text))
    assert set(COMMANDS) >= {"run", "replay"}  # of the examples of options in the environment


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """An empty folder, a model that answers, and a venv with the system of `extending`."""
    folder = tmp_path / "folder"
    folder.mkdir()
    site = tmp_path / "site"
    info = site / "greeting_system-1.0.dist-info"
    info.mkdir(parents=True)
    [system] = [one.text for one in snippets("extending") if one.file == "greeting_system.py"]
    [rule] = [one.text for one in snippets("extending") if one.file == "black.py"]
    (site / "greeting_system.py").write_text(system, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting-system\nVersion: 1.0\n")
    (site / "black.py").write_text(rule, encoding="utf-8")
    tables = [tomllib.loads(one.text) for one in snippets("extending") if one.language == "toml"]
    lines = []
    for table in tables:
        for group, points in table.get("project", {}).get("entry-points", {}).items():
            lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
    port = free_port()
    for name in ("CI", "TUTORSIM_RECORD", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{site}")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "unused")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    model = [sys.executable, "-m", "tutorsim", "standin", "serve", "--port", str(port)]
    server = subprocess.Popen(model, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(port)
    yield folder
    server.terminate()
    server.wait()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_for(port, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the stand-in does not answer")


def runnable(text, port):
    """A shell block without the lines that set a machine up, which `.ci/run` runs."""
    kept = [line for line in text.splitlines() if not line.startswith(("python3 -m venv", "pip "))]
    return "\n".join(kept).replace(PORT, str(port))


def run_block(text, folder):
    """Exit code of a shell block, and what it said; nothing that it starts outlives it."""
    with (folder / "said.txt").open("w+", encoding="utf-8") as said:
        started = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", text], cwd=folder, stdout=said, stderr=said
        )
        try:
            code = started.wait(timeout=300)
        finally:
            started.kill()
        said.seek(0)
        return code, said.read()


@pytest.mark.costly
@pytest.mark.longest
@pytest.mark.loopback
@pytest.mark.parametrize("first", [*FROM_NOTHING, "the others"])
def test_every_command_and_snippet_runs(first, scratch):
    """A page of `FROM_NOTHING` alone in its folder; the others in one with the recordings."""
    port = free_port()
    servers = []
    rest = [topic for topic in PAGES if topic not in (*ORDER, *FROM_NOTHING)]
    topics = [first] if first in FROM_NOTHING else [*ORDER, *rest]
    if first in FROM_NOTHING:
        [command, *_] = [one.text for one in snippets(first) if one.language == "sh"]
        assert command.startswith("tutorsim demo --log-dir runs/demo")
    else:
        shutil.copytree(ROOT / "cassettes", scratch / "cassettes")
    try:
        for topic in topics:
            for one in snippets(topic):
                if one.file:
                    path = scratch / one.file
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(one.text, encoding="utf-8")
                elif one.language == "sh" and one.text.startswith("tutorsim standin serve"):
                    command = shlex.split(runnable(one.text, port))
                    servers.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
                    wait_for(port)
                elif one.language == "sh":
                    code, said = run_block(runnable(one.text, port), scratch)
                    assert code == 0, f"{topic}:\n{one.text}\n{said}"
                else:
                    assert one.language in ("json", "text", "toml"), (
                        f"{topic}: loose {one.language}"
                    )
    finally:
        for server in servers:
            server.terminate()
            server.wait()


STUDY_FILES = {
    "my-study.toml": ("recording", "panel"),
    "panel-sizes.toml": ("panels", "panel"),
    "debate-study.toml": ("debate", "debate"),
    "group-study.toml": ("group", "group"),
    "oversight-study.toml": ("oversight", "oversight"),
}
"""Study file → its page and its system; together the files of a system use every setting."""
NO_SETTINGS = {
    "branch": "written by `tutorsim branch`",
    "inputs": "written by `tutorsim audit`",
    "debate.benchmarks.format": "the table has the format's name",
    "group.benchmarks.format": "the table has the format's name",
    "oversight.benchmarks.format": "the table has the format's name",
}
"""Fields of a study that no one writes by hand, and why."""


def written(file):
    """The tables of a study file of the guide, the lines put behind a comment sign among them."""
    [text] = [one.text for one in snippets(STUDY_FILES[file][0]) if one.file == file]
    return tomllib.loads(re.sub(r"^# (?=\w+ = |\[)", "", text, flags=re.MULTILINE))


def without_a_line(model, tables, place):
    """Settings of a model, and of the models in it, that no table has."""
    for name, field in model.model_fields.items():
        key = field.alias or name
        if key in NO_SETTINGS or f"{place}.{key}" in NO_SETTINGS:
            continue
        given = [table[key] for table in tables if key in table]
        if not given:
            yield f"{place}.{key}"
        inner = (field.annotation, *get_args(field.annotation))
        for one in inner if given else ():
            if isinstance(one, type) and issubclass(one, BaseModel):
                named = [given] if one is field.annotation else [one.values() for one in given]
                yield from without_a_line(one, [t for of in named for t in of], f"{place}.{key}")


@pytest.mark.parametrize("system", sorted({system for _, system in STUDY_FILES.values()}))
def test_the_study_files_of_a_system_use_every_setting(system):
    tables = [written(file) for file, (_, of) in STUDY_FILES.items() if of == system]
    assert list(without_a_line(system_named(system).study, tables, system)) == []


@pytest.mark.parametrize("file", sorted({*STUDY_FILES} - {"panel-sizes.toml"}))
def test_every_setting_of_a_study_file_has_a_comment(file):
    [text] = [one.text for one in snippets(STUDY_FILES[file][0]) if one.file == file]
    settings = [line for line in text.splitlines() if re.match(r"(# )?\w+ = ", line)]
    assert [line for line in settings if "  #" not in line and " # " not in line] == []
    assert len(settings) > 20


def test_the_guide_is_short():
    """At most 9,000 words of prose and tables, the bars of tables among them."""
    pages = [text for topic, text in PAGES.items() if topic not in ("README", "api")]
    prose = [re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL) for text in pages]
    assert sum(len(text.split()) for text in prose) <= 9000


@pytest.mark.parametrize("topic", PAGES)
def test_every_python_snippet_has_a_file_and_compiles(topic):
    for one in snippets(topic):
        if one.language == "python":
            assert one.file.endswith(".py"), one.text
            compile(one.text, one.file, "exec")
