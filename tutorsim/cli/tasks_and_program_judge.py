"""`tutorsim tasks` and `tutorsim judge`: tasks to look at, and one program against their tests."""

import difflib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import indent
from typing import Any

import click
from rich.table import Table

from tutorsim.cli import console_progress_and_safe_text as console
from tutorsim.cli.console_progress_and_safe_text import emit_json, out, safe
from tutorsim.cli.options_that_commands_share import PLACE, json_option, sandbox_option
from tutorsim.cli.printed_prose_and_tables_and_published_files import number
from tutorsim.errors import UsageError
from tutorsim.kernel.flow_drivers_and_call_log import CodeResult, CodeRun
from tutorsim.kernel.load_and_check_study_file import system_named
from tutorsim.regular_files_and_digests import read_named
from tutorsim.sandbox import Sandbox, Setting, Usage
from tutorsim.system_registry import system_names
from tutorsim.tasks import CodeTask, Task, TaskFormat, builtin, load_tasks

_CHOSEN = "tutorsim.chosen"


def _known(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
    """Refuses a benchmark that no system has."""
    if given is not None and given not in _formats():
        raise click.BadParameter(f"{given!r} is none of {', '.join(_formats())}.")
    return given


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that the list and `show` share."""
    as_json = click.option("--json", "as_json", is_flag=True, help="Write JSON.")
    benchmark = click.option(
        "--benchmark", callback=_known, metavar="NAME", help="Only this kind of tasks."
    )
    file = click.option(
        "--tasks",
        "path",
        type=PLACE,
        help="A file in the format of the benchmark, in place of the original set.",
    )
    return benchmark(file(as_json(command)))


@click.group(invoke_without_command=True)
@_options
@click.pass_context
def tasks(ctx: click.Context, benchmark: str | None, path: Path | None, as_json: bool) -> None:
    """List tasks: the original ones, or those of a file."""
    ctx.meta[_CHOSEN] = {"benchmark": benchmark, "path": path, "as_json": as_json}
    if ctx.invoked_subcommand is None:
        chosen = _chosen(benchmark, path)
        if as_json:
            console.emit_json([_listed(task) for task in chosen])
        else:
            console.out().print(_table(chosen))


@tasks.command()
@click.argument("task_id", metavar="ID")
@_options
@click.pass_context
def show(
    ctx: click.Context, task_id: str, benchmark: str | None, path: Path | None, as_json: bool
) -> None:
    """Show one task with its reference answer."""
    before = ctx.meta[_CHOSEN]
    found = _find(task_id, _chosen(benchmark or before["benchmark"], path or before["path"]))
    fields = {"benchmark": found.benchmark, "task_id": found.task_id, **found.published()}
    if as_json or before["as_json"]:
        console.emit_json(fields)
        return
    out = console.out()
    for name, value in ((name, x) for name, x in fields.items() if x is not None):
        out.print(name, style="bold")
        out.print(console.safe(_readable(value)))
        out.print()


def _chosen(benchmark: str | None, path: Path | None) -> tuple[Task, ...]:
    formats = _formats()
    if path is None:
        wanted = [name for name in formats if benchmark in (None, name)]
        sets = (form for form in map(formats.__getitem__, wanted) if form.builtin is not None)
        return tuple(task for form in sets for task in form.builtin())  # type: ignore[misc]
    if benchmark is None:
        raise UsageError(
            f"{path} can be read only when its benchmark is known.",
            hint=f"Add --benchmark, one of {', '.join(formats)}.",
        )
    return load_tasks(benchmark, path, formats=formats)


def _formats() -> dict[str, TaskFormat]:
    """The benchmarks of every system."""
    systems = map(system_named, system_names())
    return {name: form for system in systems for name, form in system.tasks.items()}


def _find(task_id: str, chosen: Sequence[Task]) -> Task:
    by_id = {task.task_id: task for task in chosen}
    if task_id not in by_id:
        close = difflib.get_close_matches(task_id, by_id, n=1)
        raise UsageError(
            f"There is no task {task_id!r}.",
            hint=f"Did you mean {close[0]!r}?" if close else "`tutorsim tasks` lists them all.",
        )
    return by_id[task_id]


def _readable(value: object) -> str:
    """A published field as lines: entries below each other, what is in them indented."""
    if isinstance(value, Mapping):
        inner = {name: _readable(one) for name, one in value.items()}
        return "\n".join(
            f"{name}:\n{indent(text, '  ')}" if "\n" in text else f"{name}: {text}"
            for name, text in inner.items()
        )
    if isinstance(value, list):
        return "\n".join(map(_readable, value))
    return str(value)


def _text(task: Task) -> str:
    """What the task asks."""
    said = {name: x for name, x in task.published().items() if x not in (task.task_id, None)}
    return str(said.get(_formats()[task.benchmark].asked) or next(iter(said.values()), ""))


def _listed(task: Task) -> dict[str, str]:
    return {"benchmark": task.benchmark, "task_id": task.task_id, "text": _text(task)}


def _table(chosen: Sequence[Task]) -> Table:
    table = Table("benchmark", "task", "question or signature", box=None, header_style="bold")
    for task in chosen:
        text = _signature(task.prompt) if isinstance(task, CodeTask) else _text(task)
        table.add_row(
            task.benchmark,
            console.safe(task.task_id),
            console.safe(text),
        )
    return table


def _signature(prompt: str) -> str:
    heads = [line for line in prompt.splitlines() if line.startswith("def ")]
    return heads[-1] if heads else prompt.strip().split("\n", 1)[0]


# --- Judge program -------------------------------------------------------------------------------

BUILTIN = "builtin"
SHOWN_OUTPUT = 2_000
"""Characters of a program's own output that the terminal shows."""

_FENCE = re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE)


@click.command("judge")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--task", "task_id", required=True, metavar="ID", help="The task to judge against.")
@click.option(
    "--tasks", default=BUILTIN, metavar="PATH", help="Tasks in HumanEval's format, or `builtin`."
)
@sandbox_option("Protection that the machine must give; see `tutorsim guide sandbox`.")
@json_option
def judge_program(file: Path, task_id: str, tasks: str, level: Setting, as_json: bool) -> None:
    """Judge the program in FILE, or on stdin with `-`, against a task's tests.

    FILE is a student's message, of which the last fenced Python block counts. A file whose name
    ends in .py, or that has no fence at all, is taken as the program itself.

    Exit code 0: all tests passed. 1: any other verdict. 6: the sandbox failed or is missing.

    \b
    --json gives:
      task_id level code
      verdict: {outcome reason near_limit unsafe}
      usage: {cpu wall memory calls written output detail}
    """
    text = _read(file)
    task = _task(task_id, tasks)
    with Sandbox(level, workers=1) as sandbox:
        result, usage = _judged(sandbox, task, text, is_program=_is_program(file, text))
        shown = sandbox.level
    if as_json:
        emit_json(
            {
                "task_id": task.task_id,
                "level": shown,
                "code": result.code,
                "verdict": result.verdict.model_dump(),
                "usage": asdict(usage),
            }
        )
    else:
        _show(task, shown, result, usage)
    sys.exit(0 if result.verdict.outcome == "pass" else 1)


def _judged(
    sandbox: Sandbox, task: CodeTask, text: str, *, is_program: bool
) -> tuple[CodeResult, Usage]:
    terms = {"prompt": task.prompt, "entry_point": task.entry_point, "test": task.test}
    if is_program:
        return sandbox.judge_program(text, **terms)
    return sandbox.judge_detailed(CodeRun(turn=0, message=text, **terms))


def _read(file: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else read_named(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be read.", why=error.strerror or str(error)) from error
    if not data:
        raise UsageError(
            f"There is nothing to judge in {'standard input' if str(file) == '-' else file}.",
            why="It is empty or closed.",
            hint="Give a student's message or a program.",
        )
    return data.decode("utf-8-sig", "surrogateescape")


def _is_program(file: Path, text: str) -> bool:
    return file.suffix == ".py" or not _FENCE.search(text)


def _task(task_id: str, source: str) -> CodeTask:
    chosen = builtin("humaneval") if source == BUILTIN else load_tasks("humaneval", Path(source))
    for task in chosen:
        if isinstance(task, CodeTask) and task.task_id == task_id:
            return task
    raise UsageError(
        f"There is no programming task {task_id!r}.",
        hint="`tutorsim tasks --benchmark humaneval` lists them.",
    )


def _show(task: CodeTask, level: str, result: CodeResult, usage: Usage) -> None:
    console = out()
    verdict = result.verdict
    style = "green" if verdict.outcome == "pass" else "red"
    line = safe(f"{task.task_id}: {verdict.outcome}, {verdict.reason}")
    line.stylize(style, len(task.task_id) + 2, len(task.task_id) + 2 + len(verdict.outcome))
    console.print(line)
    console.print(safe("\n".join(_facts(level, verdict.model_dump(), usage))))
    if usage.detail:
        console.print(safe(f"Exception: {usage.detail}"))
    if usage.output:
        console.print(safe(f"Output:\n{usage.output[:SHOWN_OUTPUT].rstrip()}"))
        if len(usage.output) > SHOWN_OUTPUT:
            more = usage.written - len(usage.output[:SHOWN_OUTPUT].encode())
            console.print(f"… and {more:,} more bytes; --json has the first 64 KiB.")


def _facts(level: str, verdict: dict[str, Any], usage: Usage) -> list[str]:
    facts = [
        f"Sandbox level: {level}",
        f"Used: {number(usage.cpu, 3)} s CPU, {number(usage.wall, 3)} s wall, "
        f"{usage.memory >> 20} MiB, {usage.calls} calls, {usage.written} bytes written",
    ]
    if verdict["near_limit"]:
        facts.append("Near a limit: more than half of it was used up.")
    if verdict["unsafe"]:
        facts.append("Unsafe: the sandbox's protection was not required.")
    return facts
