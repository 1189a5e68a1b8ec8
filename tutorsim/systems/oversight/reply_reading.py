"""Reading labels and fields from replies.

A field that is needed and not there, or there twice with different values, leaves the reply
unread. Nothing is guessed. What a reply quotes is never its verdict: lines that are indented,
within a fence or within quotation marks hold no field, and an object there is not the lead's.

Readings of labels, as those of ballots:

* `strict`: exactly the form that the prompt asks for; the lead's whole reply is its object.
* `standard`: letter case, spaces, `:` for `=`, true/false and yes/no are forgiven in `LABELS`,
  and text around the lead's object. Runs use this one.
* `lenient`: the last `LABELS` line counts, in either order and with commas; the lead's first
  reply may have the types that are otherwise forgiven on the second asking only.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from tutorsim.records.oversight import Labels
from tutorsim.vocabularies import Reading

LEAD_KEYS: Final = ("mistake_identified", "guidance_quality", "confidence", "reasoning")


class ReadThesis(NamedTuple):
    """A critic's, or a reviewer's, message."""

    thesis: str
    evidence: str
    labels: Labels | None


class ReadPress(NamedTuple):
    """Whether one critic's defence convinces, and what it must still answer."""

    met: bool | None
    """`None` when the reply does not say."""
    demand: str
    """Empty when the defence is met."""


class ReadJudgment(NamedTuple):
    """The judge's verdict."""

    winner: str
    why: str
    labels: Labels
    confidence: int
    """0 to 100."""


class ReadStress(NamedTuple):
    """The stress tester's attack on the winning thesis."""

    weakness: str
    severity: int
    """0 to 3."""
    labels: Labels


class ReadLead(NamedTuple):
    """The lead's final labels."""

    labels: Labels
    confidence: float
    """0 to 1."""
    reasoning: str


# --- Quotation ------------------------------------------------------------------------------

_MARKS: Final = r"""(?<![\w"])"(?=\S)[^"]*(?<=\S)"(?!\w)|“[^”]*”|«[^»]*»"""
_FENCE: Final = r"^[ \t]*(```|~~~){}[^\n]*\n.*?(?:^[ \t]*\1|\Z)"
_QUOTED_LINES: Final = re.compile(rf"{_FENCE.format('')}|{_MARKS}", re.M | re.S)
_AROUND: Final = re.compile(r"(```|~~~)[^\n]*\n(.*)\n[ \t]*\1", re.S)
_QUOTED_OBJECT: Final = re.compile(
    rf"{_FENCE.format('(?![ ]*(?:json)?[ ]*$)')}|{_MARKS}"
    r"|(?<!\w)'[^'\n]*'(?!\w)|(?<!`)`[^`\n]+`(?!`)|^[ \t]*>[^\n]*|^[ \t]+\0",
    re.M | re.S | re.I,
)
_OPENED: Final = ("'", '"', "‘", "“", "«")
_INSIDE: Final = "\x1f"
"""Put before a line that stands inside a quotation, so that no field begins there."""


def _own_lines(reply: str) -> str:
    """Lines of a reply, the quoted ones marked; a fence around all of it quotes nothing."""
    text = reply.strip()
    around = _AROUND.fullmatch(text)
    text = around[2] if around and around[1] not in around[2] else text
    return _QUOTED_LINES.sub(lambda found: found[0].replace("\n", f"\n{_INSIDE}"), text)


def _is_quoted(text: str, place: tuple[int, int], objects: Sequence[tuple[int, int]]) -> bool:
    """Whether an object stands inside a quotation; the quotation marks in objects quote nothing."""
    masked = text
    for start, end in objects:
        masked = f"{masked[:start]}{chr(0) * (end - start)}{masked[end:]}"
    if masked[: place[0]].endswith(_OPENED):
        return True
    return any(found.start() <= place[0] < found.end() for found in _QUOTED_OBJECT.finditer(masked))


# --- Fields ---------------------------------------------------------------------------------


@cache
def _heads(names: tuple[str, ...]) -> re.Pattern[str]:
    either = "|".join(name.replace(" ", "[ \t]+") for name in names)
    return re.compile(rf"^(?:[*_#]+[ \t]*)?({either})[ \t]*[*_]*[ \t]*:[ \t]*[*_]*", re.I | re.M)


def fields_of(reply: str, names: tuple[str, ...]) -> dict[str, str]:
    """Field → its text, up to the next field; fields that come twice with other texts are out.

    A field begins its line; an indented or quoted one is part of the text before it.
    """
    parts = _heads(names).split(_own_lines(reply))
    said: dict[str, list[str]] = {}
    for head, text in zip(parts[1::2], parts[2::2], strict=True):
        said.setdefault(" ".join(head.upper().split()), []).append(
            text.replace(_INSIDE, "").strip().rstrip("*_").rstrip()
        )
    return {name: texts[0] for name, texts in said.items() if len(set(texts)) == 1 and texts[0]}


def read_fields(reply: str, names: tuple[str, ...]) -> dict[str, str] | None:
    """All fields; `None` if one is missing."""
    fields = fields_of(reply, names)
    return {name: fields[name] for name in names} if fields.keys() >= set(names) else None


# --- Labels ---------------------------------------------------------------------------------

_STRICT: Final = re.compile(r"^LABELS: mistake=([01]) guidance=([012])$", re.M)
_LINE: Final = re.compile(r"^(?:[*_#]+[ \t]*)?LABELS\b.*$", re.M | re.I)
_STANDARD: Final = re.compile(
    r"labels\s*[*_]*\s*:\s*[*_]*\s*mistake\s*[=:]\s*(\w+)\s+guidance\s*[=:]\s*([0-9]+)", re.I
)
_PART: Final = re.compile(r"(mistake|guidance)\s*[=:]\s*(\w+)", re.I)
_TRUTH: Final = {"1": 1, "true": 1, "yes": 1, "0": 0, "false": 0, "no": 0}


def read_labels(reply: str, *, reading: Reading = "standard") -> Labels | None:
    """The labels of the `LABELS` line; `None` if there is none, or two that differ."""
    own = _own_lines(reply)
    if reading == "strict":
        found = {_pair(*pair) for pair in _STRICT.findall(own)}
    else:
        lines = [line.strip(" \t\r*_#") for line in _LINE.findall(own)]
        read = _loose if reading == "lenient" else _standard
        pairs = [read(line) for line in lines]
        found = set(pairs[-1:] if reading == "lenient" else pairs)
    return found.pop() if len(found) == 1 else None


def _standard(line: str) -> Labels | None:
    match = _STANDARD.fullmatch(line.removesuffix("."))
    return _pair(*match.groups()) if match else None


def _loose(line: str) -> Labels | None:
    parts = _PART.findall(line)
    values = {name.lower(): value for name, value in parts}
    if len(parts) != 2 or len(values) != 2:
        return None
    return _pair(values["mistake"], values["guidance"])


def _pair(mistake: str, guidance: str) -> Labels | None:
    if mistake.lower() not in _TRUTH or guidance not in ("0", "1", "2"):
        return None
    return Labels.model_validate({"mistake": _TRUTH[mistake.lower()], "guidance": int(guidance)})


# --- Critics and reviewers ------------------------------------------------------------------

_THESIS: Final = ("THESIS", "EVIDENCE", "LABELS")


def read_thesis(reply: str, *, reading: Reading = "standard") -> ReadThesis | None:
    """Read `THESIS:`, `EVIDENCE:` and `LABELS:`; a thesis and labels are needed."""
    fields, labels = fields_of(reply, _THESIS), read_labels(reply, reading=reading)
    if "THESIS" not in fields or labels is None:
        return None
    return ReadThesis(fields["THESIS"], fields.get("EVIDENCE", ""), labels)


def salvage_thesis(reply: str, *, reading: Reading = "standard") -> ReadThesis | None:
    """What can be read of it; the whole text is the thesis if no field is in it."""
    fields = fields_of(reply, _THESIS)
    thesis = fields.get("THESIS") or _heads(_THESIS).split(reply.strip())[0].strip()
    if not thesis:
        return None
    return ReadThesis(thesis, fields.get("EVIDENCE", ""), read_labels(reply, reading=reading))


_CHALLENGES: Final = ("TO PERMISSIVE", "TO STRICT")
_NUMBERED: Final = re.compile(
    r"^[ \t]*[0-9]{1,2}[.)][ \t]+(\S.*(?:\n(?![ \t]*[0-9]{1,2}[.)][ \t]).*)*)", re.M
)
_MOST_CHALLENGES: Final = 3


def read_challenges(reply: str) -> dict[str, tuple[str, ...]] | None:
    """Critic → its challenges, one to three of each."""
    read = salvage_challenges(reply)
    return (
        read
        if read and all(1 <= len(lines) <= _MOST_CHALLENGES for lines in read.values())
        else None
    )


def salvage_challenges(reply: str) -> dict[str, tuple[str, ...]] | None:
    """Critic → the numbered lines to it; `None` when there are none at all."""
    fields = fields_of(reply, _CHALLENGES)
    read = {
        critic: tuple(" ".join(line.split()) for line in _NUMBERED.findall(fields.get(name, "")))
        for critic, name in zip(("permissive", "strict"), _CHALLENGES, strict=True)
    }
    return read if any(read.values()) else None


_PRESS: Final = ("PERMISSIVE", "STRICT", "PRESS PERMISSIVE", "PRESS STRICT")
_MET: Final = re.compile(r"(un)?met\b", re.I)


def read_press(reply: str) -> dict[str, ReadPress] | None:
    """Critic → whether its defence is met; an unmet one needs a demand."""
    read = salvage_press(reply)
    return read if read and all(one.met is not None for one in read.values()) else None


def salvage_press(reply: str) -> dict[str, ReadPress] | None:
    """Reviews in a reply as `read_press` has them; `None` for a critic of whom it does not say."""
    fields = fields_of(reply, _PRESS)
    read = {critic: _pressed(fields, critic.upper()) for critic in ("permissive", "strict")}
    return read if any(one.met is not None for one in read.values()) else None


def _pressed(fields: Mapping[str, str], critic: str) -> ReadPress:
    verdict = _MET.match(fields.get(critic, ""))
    demand = fields.get(f"PRESS {critic}", "")
    if verdict is None or (verdict[1] and not demand):
        return ReadPress(None, "")
    return ReadPress(False, demand) if verdict[1] else ReadPress(True, "")


# --- Judge and stress tester ----------------------------------------------------------------


def read_judgment(
    reply: str, *, sides: tuple[str, ...], reading: Reading = "standard"
) -> ReadJudgment | None:
    """Read `WINNER:`, `WHY:`, `LABELS:` and `CONFIDENCE:`; all but the reason are needed."""
    fields = fields_of(reply, ("WINNER", "WHY", "LABELS", "CONFIDENCE"))
    labels = read_labels(reply, reading=reading)
    winner = fields.get("WINNER", "").strip(" .*_`").lower()
    confidence = re.fullmatch(
        r"([0-9]{1,3})[ \t]*(?:%|/[ \t]*100)?\.?", fields.get("CONFIDENCE", "")
    )
    if labels is None or winner not in sides or confidence is None or int(confidence[1]) > 100:
        return None
    return ReadJudgment(winner, fields.get("WHY", ""), labels, int(confidence[1]))


def read_stress(reply: str, *, reading: Reading = "standard") -> ReadStress | None:
    """Read `WEAKNESS:`, `SEVERITY:` and `LABELS:`; all are needed."""
    fields = fields_of(reply, ("WEAKNESS", "SEVERITY", "LABELS"))
    labels = read_labels(reply, reading=reading)
    severity = re.fullmatch(r"([0-3])(?:[ \t]*/[ \t]*3)?\.?", fields.get("SEVERITY", ""))
    if labels is None or severity is None or "WEAKNESS" not in fields:
        return None
    return ReadStress(fields["WEAKNESS"], int(severity[1]), labels)


# --- The lead -------------------------------------------------------------------------------

_SECOND_TRUTH: Final = {"true": True, "false": False}


def read_lead(reply: str, *, attempt: int = 1, reading: Reading = "standard") -> ReadLead | None:
    """Read the last complete JSON object of the reply that has the four keys and is not quoted.

    `attempt`: from the second asking on, texts and floats that can only mean one label count.
    `reading`: how much is forgiven. Returns the labels, or `None`; an object that is there and
    holds anything else is not passed over for an earlier one.
    """
    found = _whole_object(reply) if reading == "strict" else _last_object(reply)
    if found is None:
        return None
    forgiving = reading != "strict" and (attempt > 1 or reading == "lenient")
    mistake = _truth(found["mistake_identified"], forgiving=forgiving)
    guidance = _quality(found["guidance_quality"], forgiving=forgiving)
    confidence, reasoning = found["confidence"], found["reasoning"]
    sure = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if mistake is None or guidance is None or not sure or not isinstance(reasoning, str):
        return None
    if not 0 <= confidence <= 1:
        return None
    labels = Labels.model_validate({"mistake": int(mistake), "guidance": guidance})
    return ReadLead(labels, float(confidence), _encodable(reasoning))


def _encodable(text: str) -> str:
    """The text with halves of surrogate pairs, which JSON can escape, replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _truth(value: object, *, forgiving: bool) -> bool | None:
    if isinstance(value, bool):
        return value
    return _SECOND_TRUTH.get(value) if forgiving and isinstance(value, str) else None


def _quality(value: object, *, forgiving: bool) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if value in (0, 1, 2) else None
    if forgiving and value in ("0", "1", "2", 0.0, 1.0, 2.0) and isinstance(value, str | float):
        return int(value)
    return None


class _Twice(dict[str, Any]):
    """An object that has a key twice, and so does not say which value is meant."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Twice(found)


def _no_number(name: str) -> None:
    """`NaN` and the infinities are no JSON; as `null` they are no confidence either."""


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_number)


def _whole_object(reply: str) -> dict[str, Any] | None:
    text = reply.strip()
    whole = [value for value, place in _objects(text) if place == (0, len(text))]
    return _unambiguous(whole[0]) if whole and _has_keys(whole[0]) else None


def _last_object(reply: str) -> dict[str, Any] | None:
    found = [(value, place) for value, place in _objects(reply) if _has_keys(value)]
    places = [place for _, place in found]
    own = (value for value, place in reversed(found) if not _is_quoted(reply, place, places))
    last = next(own, None)
    return None if last is None else _unambiguous(last)


def _has_keys(value: dict[str, Any]) -> bool:
    return value.keys() >= set(LEAD_KEYS)


def _unambiguous(value: dict[str, Any]) -> dict[str, Any] | None:
    return None if isinstance(value, _Twice) else value


@lru_cache(maxsize=64)
def _objects(text: str) -> tuple[tuple[dict[str, Any], tuple[int, int]], ...]:
    """Complete objects by their ends, decoded once; none inside one that has the four keys."""
    return tuple(_decoded(text))


def _decoded(text: str) -> Iterator[tuple[dict[str, Any], tuple[int, int]]]:
    at = text.find("{")
    while at >= 0:
        after = at + 1
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            pass
        else:
            yield value, (at, end)
            after = end if _has_keys(value) else after
        at = text.find("{", after)
