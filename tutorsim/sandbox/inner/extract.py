"""Find the program in a student's message.

The message is hostile text, so this runs in the worker, behind every lock, and before any of
the student's code.

Fences are read as Markdown reads them: three or more backticks or tildes, closed by at least
as many of the same, the closing fence indented no deeper than the opening one allows; an
unclosed block runs to the next tagged fence or to the end. On top of that, a tagged fence
inside an open block opens a block of its own, so that a program inside a fenced Markdown
answer, or after a fence that was never closed, is found too.
"""

import re
import symtable
import types
import warnings
from typing import NamedTuple

__all__ = ["CODE_CAP", "Extraction", "compile_head", "compiles", "extract"]

CODE_CAP = 64 * 1024
_FENCE_CAP = 500
"""Fence lines that count, from the end: nobody writes so many."""
_TAGS = frozenset({"", "python", "py", "python3"})
_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})(.*)$")
_DEEPER = 3
_MORE_ENDS = 3


class Extraction(NamedTuple):
    """The program, or why there is none."""

    code: str | None
    """With `\\n` line ends; `None` where none was found."""
    reason: str
    """Why none was found; empty where one was."""


class _Fence(NamedTuple):
    line: int
    indent: int
    mark: str
    tag: str
    """First word after the marks, in lower case; empty where there is none."""


class _Block(NamedTuple):
    start: int
    ends: tuple[int, ...]
    """Lines where the block may end: as Markdown has it, then each later fence that could."""
    indent: int


def extract(message: str, entry_point: str) -> Extraction:
    """The last fenced Python block that compiles and defines the entry point.

    Args:
        message: The student's whole message.
        entry_point: Name of the function under test.

    Returns:
        That block; else the last that compiles; else nothing, and the reason.
    """
    lines = message.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    blocks = _blocks(lines)
    if not blocks:
        return Extraction(None, "no fenced Python block")
    second_best = None
    for block in reversed(blocks):
        code = _compiling(lines, block)
        if code is None:
            continue
        if _defines(code, entry_point):
            return Extraction(code, "")
        second_best = second_best or code
    if second_best is None:
        return Extraction(None, "no fenced Python block compiles")
    return Extraction(second_best, "")


def compiles(code: str) -> bool:
    """Whether Python accepts the text as a module; never raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(code, "<solution>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return False
    return True


def compile_head(prompt: str) -> types.CodeType:
    """A task's head as code; one that ends after a signature is completed."""
    try:
        return compile(prompt, "<prompt>", "exec", dont_inherit=True)
    except SyntaxError:
        return compile(f"{prompt.rstrip()}\n    pass\n", "<prompt>", "exec", dont_inherit=True)


def _compiling(lines: list[str], block: _Block) -> str | None:
    """The block's text up to the first end with which it compiles; blank blocks are none."""
    for end in block.ends:
        text = "\n".join(_unindented(line, block.indent) for line in lines[block.start : end])
        if len(text) > CODE_CAP:
            return None
        if text.strip() and compiles(text):
            return text.rstrip("\n") + "\n"
    return None


def _unindented(line: str, indent: int) -> str:
    """Without the indentation that the fence itself had, and no more."""
    kept = line.lstrip(" \t")
    return line[min(indent, len(line) - len(kept)) :]


def _defines(code: str, name: str) -> bool:
    """Whether the module binds the name anywhere at its top level."""
    try:
        symbol = symtable.symtable(code, "<solution>", "exec").lookup(name)
    except (KeyError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return symbol.is_assigned() or symbol.is_imported()


def _blocks(lines: list[str]) -> list[_Block]:
    """Python blocks in order of their opening fence."""
    every = [fence for number, line in enumerate(lines) if (fence := _fence(number, line))]
    fences = every[-_FENCE_CAP:]
    blocks: list[_Block] = []
    still_open: list[_Fence] = []
    for fence in fences:
        level = _closed_by(fence, still_open)
        if level is not None:
            blocks.append(_block(still_open[level], fence.line, fences))
            # What was opened inside and not closed ends where its parent ends.
            blocks += [_unclosed(f, fences, fence.line) for f in still_open[level + 1 :]]
            del still_open[level:]
        elif fence.tag or not still_open or _nests(fence, still_open[-1]):
            still_open.append(fence)
    blocks += [_unclosed(fence, fences, len(lines)) for fence in still_open]
    tags = {fence.line + 1: fence.tag for fence in fences}
    return sorted(block for block in blocks if tags[block.start] in _TAGS)


def _closed_by(fence: _Fence, still_open: list[_Fence]) -> int | None:
    """Position of the innermost open block that this fence closes."""
    for level in range(len(still_open) - 1, -1, -1):
        if _closes(fence, still_open[level]):
            return level
    return None


def _closes(fence: _Fence, opening: _Fence) -> bool:
    return (
        fence.tag == ""
        and fence.mark[0] == opening.mark[0]
        and len(fence.mark) >= len(opening.mark)
        and fence.indent <= opening.indent + _DEEPER
    )


def _nests(fence: _Fence, opening: _Fence) -> bool:
    """Whether an untagged fence is too short to close the open block, so it opens another."""
    return fence.mark[0] == opening.mark[0] and len(fence.mark) < len(opening.mark)


def _block(opening: _Fence, end: int, fences: list[_Fence]) -> _Block:
    """A closed block; a fence inside a text of the program may have closed it too early."""
    later = [f.line for f in fences if f.line > end and _closes(f, opening)]
    return _Block(opening.line + 1, (end, *later[:_MORE_ENDS]), opening.indent)


def _unclosed(opening: _Fence, fences: list[_Fence], last: int) -> _Block:
    """A block that ends at the next tagged fence, if there is one before `last`."""
    tagged = (f.line for f in fences if opening.line < f.line < last and f.tag)
    return _Block(opening.line + 1, (next(tagged, last),), opening.indent)


def _fence(number: int, line: str) -> _Fence | None:
    match = _FENCE.match(line)
    if match is None:
        return None
    indent, mark, info = match.groups()
    if mark[0] == "`" and "`" in info:
        return None
    words = re.split(r"[\s{},:;=]+", info.strip().lstrip("{."))
    return _Fence(number, len(indent), mark, words[0].lower())
