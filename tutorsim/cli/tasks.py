"""`tutorsim tasks`: list and show tasks."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

import click
from rich.table import Table

from tutorsim.cli import console
from tutorsim.errors import UsageError
from tutorsim.kernel.load import system_named
from tutorsim.system_registry import system_names
from tutorsim.tasks import CodeTask, Task, TaskFormat, load_tasks

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
        type=click.Path(path_type=Path),
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
    ctx: click.Context,
    task_id: str,
    benchmark: str | None,
    path: Path | None,
    as_json: bool,
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
        table.add_row(task.benchmark, console.safe(task.task_id), console.safe(text))
    return table


def _signature(prompt: str) -> str:
    heads = [line for line in prompt.splitlines() if line.startswith("def ")]
    return heads[-1] if heads else prompt.strip().split("\n", 1)[0]
