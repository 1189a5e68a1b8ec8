"""`tutorsim judge`: one program against a task's tests."""

import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from tutorsim.cli.console import emit_json, out, safe
from tutorsim.cli.options import json_option
from tutorsim.cli.output_elements import number
from tutorsim.errors import UsageError
from tutorsim.files_given_by_user import read_named
from tutorsim.kernel.flow import CodeResult, CodeRun
from tutorsim.sandbox import SETTINGS, Sandbox, Setting, Usage
from tutorsim.tasks import CodeTask, builtin, load_tasks

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
@click.option(
    "--sandbox",
    "level",
    type=click.Choice(SETTINGS),
    default="auto",
    help="Protection that the machine must give; filter-only does without the layers.",
)
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
