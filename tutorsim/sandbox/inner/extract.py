"""Find the program in a student's message.

The message is hostile text, so this runs in the worker, behind every lock, and before any of
the student's code.

Fences are read as Markdown reads them: three or more backticks or tildes, closed by at least
as many of the same, the closing fence indented no deeper than the opening one allows; an
unclosed block runs to the next tagged fence or to the end. On top of that, a tagged fence
inside an open block opens a block of its own, so that a program inside a fenced Markdown
answer, or after a fence that was never closed, is found too.
"""

import ast
import re
import types
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from .frames_layers_and_longest_program import CODE_CAP

FENCE_CAP = 500
"""Fence lines in a message: nobody writes so many."""
_MARK = "\ufeff"
"""The byte-order mark, which some programs put before a text."""
_TAGS = frozenset({"", "python", "py", "python3"})
_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})(.*)$")
_DEEPER = 3
_MORE_ENDS = 3


class Extraction(NamedTuple):
    """The program, or why there is none."""

    code: str | None
    """Code with `\\n` line ends; `None` where none was found."""
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

    Else the last that compiles; else nothing, and the reason.
    """
    text = message.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    fences = [fence for number, line in enumerate(lines) if (fence := _fence(number, line))]
    if len(fences) > FENCE_CAP:
        return Extraction(None, f"more than {FENCE_CAP} code fences")
    blocks = _blocks(fences, len(lines))
    if not blocks:
        return Extraction(None, "no fenced Python block")
    return _chosen(lines, blocks, entry_point)


def without_mark(text: str) -> str:
    """The text without a byte-order mark before it, as Python reads a file."""
    return text.removeprefix(_MARK)


def _chosen(lines: list[str], blocks: list[_Block], entry_point: str) -> Extraction:
    second_best, too_long = None, False
    for block in reversed(blocks):
        code = _compiling(lines, block)
        if code is None:
            too_long = too_long or len(_text(lines, block, block.ends[0])) > CODE_CAP
        elif _defines(code, entry_point):
            return Extraction(code, "")
        else:
            second_best = second_best or code
    if second_best is not None:
        return Extraction(second_best, "")
    if too_long:
        return Extraction(None, "the program is too long")
    return Extraction(None, "no fenced Python block compiles")


def compiles(code: str) -> bool:
    """Whether Python accepts the text as a module; never raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(code, "<solution>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return False
    return True


def compile_head(prompt: str) -> types.CodeType:
    """A task's head as code; one that ends after a signature is completed."""
    try:
        return compile(prompt, "<prompt>", "exec")
    except SyntaxError:
        return compile(f"{prompt.rstrip()}\n    pass\n", "<prompt>", "exec")


def _compiling(lines: list[str], block: _Block) -> str | None:
    """The block's text up to the first end with which it compiles; blank blocks are none."""
    for end in block.ends:
        text = _text(lines, block, end)
        if len(text) > CODE_CAP:
            return None
        if text.strip() and compiles(text):
            return text.rstrip("\n") + "\n"
    return None


def _text(lines: list[str], block: _Block, end: int) -> str:
    text = "\n".join(_unindented(line, block.indent) for line in lines[block.start : end])
    return without_mark(text)


def _unindented(line: str, indent: int) -> str:
    """A line without the indentation that the fence itself had, and no more."""
    kept = line.lstrip(" \t")
    return line[min(indent, len(line) - len(kept)) :]


def _defines(code: str, name: str) -> bool:
    """Whether the module's own statements bind the name, and no later one deletes it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    bound = False
    for node in _of_the_module(module):
        if _binds(node, name):
            bound = True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del) and node.id == name:
            bound = False
    return bound


def _of_the_module(module: ast.Module) -> Iterator[ast.AST]:
    """Nodes in the order of the source, without what has a scope of its own."""
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.AnnAssign) and node.value is None:
            continue  # an annotation alone binds nothing
        if not isinstance(node, _SCOPES):
            waiting += reversed(list(ast.iter_child_nodes(node)))


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp,
           ast.SetComp, ast.DictComp, ast.GeneratorExp)  # fmt: skip


def _binds(node: ast.AST, name: str) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name == name
        case ast.Name(ctx=ast.Store()):
            return node.id == name
        case ast.alias():
            return (node.asname or node.name.partition(".")[0]) == name
        case ast.MatchAs() | ast.MatchStar():
            return node.name == name
        case ast.MatchMapping():
            return node.rest == name
    return False


def _blocks(fences: list[_Fence], length: int) -> list[_Block]:
    """Python blocks of a message of so many lines, in order of their opening fence."""
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
    blocks += [_unclosed(fence, fences, length) for fence in still_open]
    tags = {fence.line + 1: fence.tag for fence in fences}
    return sorted(block for block in blocks if tags[block.start] in _TAGS)


def _closed_by(fence: _Fence, still_open: list[_Fence]) -> int | None:
    """Position of the innermost open block that this fence closes."""
    for level, opening in reversed(list(enumerate(still_open))):
        if _closes(fence, opening):
            return level
    return None


def _closes(fence: _Fence, opening: _Fence) -> bool:
    return (
        fence.tag == ""
        and fence.mark.startswith(opening.mark)
        and fence.indent <= opening.indent + _DEEPER
    )


def _nests(fence: _Fence, opening: _Fence) -> bool:
    """Whether an untagged fence is too short to close the open block, so it opens another."""
    return opening.mark.startswith(fence.mark) and fence.mark != opening.mark


def _block(opening: _Fence, end: int, fences: list[_Fence]) -> _Block:
    """A closed block; a fence inside a text of the program may have closed it too early."""
    later = [f.line for f in fences if f.line > end and _closes(f, opening)]
    return _Block(opening.line + 1, (end, *later[:_MORE_ENDS]), opening.indent)


def _unclosed(opening: _Fence, fences: list[_Fence], last: int) -> _Block:
    """A block that ends at the next tagged fence, if there is one before `last`."""
    tagged = (f.line for f in fences if opening.line < f.line < last and f.tag)
    return _Block(opening.line + 1, (next(tagged, last),), opening.indent)


def _fence(number: int, line: str) -> _Fence | None:
    match = _FENCE.match(without_mark(line))
    if match is None:
        return None
    indent, mark, info = match.groups()
    if "`" in mark and "`" in info:
        return None
    words = re.split(r"[\s{},:;=]+", info.strip().lstrip("{."))
    return _Fence(number, len(indent), mark, words[0].lower())
