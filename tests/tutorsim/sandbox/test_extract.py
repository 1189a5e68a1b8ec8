"""Which program is found in a message."""

import pytest

from tutorsim.sandbox.inner.extract import Extraction, extract
from tutorsim.sandbox.inner.frames_layers_and_longest_program import CODE_CAP

GOOD = "def solve(n):\n    return n"
OTHER = "def solve(n):\n    return -n"
HELPER = "def helper(n):\n    return n"
DELETED = "solve = 1\ndel solve\n"
METHOD = "class A:\n    def solve(self): pass"
BROKEN = "def solve(n)\n    return n"
IN_TEXT = 'def solve(n):\n    """\n    ```\n    >>> solve(1)\n    ```\n    """\n    return n'
AT_MARGIN = 'TEXT = """\n```\nexample\n```\n"""\ndef solve(n):\n    return n'
TILDES = 'A = """\n~~~\n"""\n# """\ndef solve(n):\n    return n'
THREE, FOUR = (AT_MARGIN.replace("example", "\n".join(["```"] * more)) for more in (1, 2))
LONGEST = f"{GOOD}\n#{'x' * CODE_CAP}"[:CODE_CAP]


def fenced(code, tag="python", mark="```"):
    return f"{mark}{tag}\n{code}\n{mark}"


FOUND = {
    "one block": (fenced(GOOD), GOOD),
    "prose around": (f"I think:\n\n{fenced(GOOD)}\n\nIs it right?", GOOD),
    "the last of several": (f"{fenced(OTHER)}\nno, wait\n{fenced(GOOD)}", GOOD),
    "tag py": (fenced(GOOD, "py"), GOOD),
    "tag PYTHON3": (fenced(GOOD, "PYTHON3"), GOOD),
    "tag with more words": (fenced(GOOD, 'Python title="x.py"'), GOOD),
    "tag with a space before": (fenced(GOOD, " python"), GOOD),
    "tag with a space after": (fenced(GOOD, "python  "), GOOD),
    "no tag": (fenced(GOOD, ""), GOOD),
    "tildes": (fenced(GOOD, mark="~~~"), GOOD),
    "four marks": (fenced(GOOD, mark="````"), GOOD),
    "Windows line ends": (fenced(GOOD).replace("\n", "\r\n"), GOOD),
    "old line ends": (fenced(GOOD).replace("\n", "\r"), GOOD),
    "unclosed": (f"Here:\n```python\n{GOOD}", GOOD),
    "unclosed and empty lines after": (f"```python\n{GOOD}\n\n", GOOD),
    "unclosed, then another": (f"```python\n{OTHER}\n\nbetter:\n{fenced(GOOD)}", GOOD),
    "the entry point before the last block": (f"{fenced(GOOD)}\n{fenced(HELPER)}", GOOD),
    "output after the code": (f"{fenced(GOOD)}\ngives\n{fenced('3', '')}", GOOD),
    "another language after": (f"{fenced(GOOD)}\n{fenced('x = 1', 'text')}", GOOD),
    "shell before": (f"{fenced('pip install x', 'bash')}\n{fenced(GOOD)}", GOOD),
    "the last one is broken": (f"{fenced(GOOD)}\n{fenced(BROKEN)}", GOOD),
    "only another function": (fenced(HELPER), HELPER),
    "two others": (f"{fenced('x = 1')}\n{fenced(HELPER)}", HELPER),
    "inside a Markdown block": (f"````markdown\n{fenced(GOOD)}\n````", GOOD),
    "inside a Markdown block of equal marks": (f"```markdown\n{fenced(GOOD)}\n```", GOOD),
    "untagged inside a longer untagged": (f"````\n{fenced(GOOD, '')}\n````", GOOD),
    "a fence in a docstring": (fenced(IN_TEXT), IN_TEXT),
    "tildes in a text of a longer block": (fenced(TILDES, mark="````"), TILDES),
    "a backtick after the tag": (f"~~~python `x`\n{GOOD}\n~~~", GOOD),
    "a fence in a text at the margin": (fenced(AT_MARGIN), AT_MARGIN),
    "three fences in a text at the margin": (fenced(THREE), THREE),
    "as long as a program may be": (fenced(LONGEST), LONGEST),
    "as many fences as a message may have": (f"{fenced('x', 'text')}\n" * 249 + fenced(GOOD), GOOD),
    "indented in a list": (
        "1. So:\n   ```python\n   def solve(n):\n       return n\n   ```\n2. Done.",
        GOOD,
    ),
    "less indented than its fence": ("  ```python\ndef solve(n):\n      return n\n  ```", GOOD),
    "unclosed inside a Markdown block": (f"````markdown\n```python\n{GOOD}\n````", GOOD),
    "backticks in prose": (f"I used ``` and `solve`.\n{fenced(GOOD)}", GOOD),
    "inline code of three marks": (f"```not a fence``` then\n{fenced(GOOD)}", GOOD),
    "imported name only used": (fenced("print(solve)") + "\n" + fenced(HELPER), HELPER),
    "a method is no definition": (f"{fenced(GOOD)}\n{fenced(METHOD)}", GOOD),
    "a mark before the message": (f"\ufeff{fenced(GOOD)}", GOOD),
    "a mark before the fence": (f"So:\n\ufeff{fenced(GOOD)}", GOOD),
    "a mark before the closing fence": (f"```python\n{GOOD}\n\ufeff```\nRight?", GOOD),
    "a mark before the code": (fenced(f"\ufeff{GOOD}"), GOOD),
    "deleted and never defined": (f"{fenced(GOOD)}\n{fenced('del solve')}", GOOD),
    "defined and deleted": (f"{fenced(GOOD)}\n{fenced(OTHER + chr(10) + 'del solve')}", GOOD),
    "deleted and defined again": (f"{fenced(OTHER)}\n{fenced(DELETED + GOOD)}", DELETED + GOOD),
    "only annotated": (f"{fenced(GOOD)}\n{fenced('solve: object')}", GOOD),
    "bound inside a comprehension only": (
        f"{fenced(GOOD)}\n{fenced('x = [solve for solve in ()]')}",
        GOOD,
    ),
    "unicode": (fenced('def solve(n):\n    return "naïve 数"'),) * 2,
    "future import": (fenced(f"from __future__ import annotations\n{GOOD}"),) * 2,
    "form feed and line separators": (fenced('X = "\x0b\x0c\u2028"\n' + GOOD),) * 2,
}


@pytest.mark.parametrize("name", FOUND)
def test_the_program_is_found(name):
    message, *rest = FOUND[name]
    expected = rest[0]
    if expected == message:
        expected = message.removeprefix("```python\n").removesuffix("\n```")
    assert extract(message, "solve") == Extraction(f"{expected}\n", "")


@pytest.mark.parametrize(
    "code",
    [
        'def solve(n):\n    return "\\d"', "async def solve(n): pass", "class solve: pass",
        "solve = lambda n: n", "(solve := len)", "solve: object = len", "import solve.part",
        "from math import floor as solve", "from solve import solve", "for solve in [len]: pass",
        "with open('x') as solve: pass", "if True:\n    def solve(n): return n",
        *(f"match 1:\n    case {name}: pass" for name in ("solve", "[*solve]", "{**solve}")),
    ],
)  # fmt: skip
def test_whatever_binds_the_name_defines_it(code):
    assert extract(f"{fenced(code)}\n{fenced(HELPER)}", "solve") == Extraction(f"{code}\n", "")


NOT_FOUND = {
    "empty": ("", "no fenced Python block"),
    "prose": ("I do not know.", "no fenced Python block"),
    "code without a fence": (GOOD, "no fenced Python block"),
    "another language": (fenced(GOOD, "javascript"), "no fenced Python block"),
    "inline": ("`def solve(n): return n`", "no fenced Python block"),
    "broken": (fenced(BROKEN), "no fenced Python block compiles"),
    "blank": (fenced("   "), "no fenced Python block compiles"),
    "a return outside": (fenced("return 1"), "no fenced Python block compiles"),
    "unclosed with prose behind": (
        f"```python\n{GOOD}\nI am not sure of it.",
        "no fenced Python block compiles",
    ),
    "zero byte": (fenced("x = 1\0"), "no fenced Python block compiles"),
    "lone surrogate": (fenced("x = '\udc80'"), "no fenced Python block compiles"),
    "broken, and as long as a program may be": (
        fenced(LONGEST.replace("return", "return (")[:CODE_CAP]),
        "no fenced Python block compiles",
    ),
    "four fences in a text at the margin": (fenced(FOUR), "no fenced Python block compiles"),
    "too long": (fenced(f"{LONGEST}x"), "the program is too long"),
    "too deep": (fenced("(" * 5000 + ")" * 5000), "no fenced Python block compiles"),
}


@pytest.mark.parametrize("name", NOT_FOUND)
def test_no_program_is_found_and_the_reason_is_given(name):
    message, reason = NOT_FOUND[name]
    assert extract(message, "solve") == Extraction(None, reason)


def test_a_message_of_more_fences_than_anybody_writes_says_so():
    message = "```python\n(\n" * 499 + fenced(GOOD)
    assert extract(message, "solve") == Extraction(None, "more than 500 code fences")


def test_a_closing_fence_stands_at_most_three_blanks_deeper():
    for blanks, closes in ((3, True), (4, False)):
        found = extract(f"```python\n{GOOD}\n{blanks * ' '}```\n```", "solve")
        assert (found.code == f"{GOOD}\n") == closes
