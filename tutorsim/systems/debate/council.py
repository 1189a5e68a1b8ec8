"""Logs of councils: several models answer, rank one another's answers, and one writes the reply.

Three shapes are found by their keys, wherever they stand in a file: a conversation whose assistant
messages have `stage1`, `stage2` and `stage3`; the same with scores beside the rankings; a list of
trials with `stage1_responses`, `stage2_data` and `stage3_data`. One vote is one episode of one
turn. Members are voters and candidates under their own names; if they vote over answers, the
different answers are the candidates. Nothing is guessed: what a ranking repeats, does not know or
leaves out is told, and what it leaves out stays open.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from tutorsim.errors import LogError
from tutorsim.named_files import read_named
from tutorsim.records import BallotRecord
from tutorsim.records.debate import (
    AnswerRecord,
    CouncilVote,
    DebateRecord,
    DebateSetup,
    DebateTurn,
    Message,
)
from tutorsim.systems.system import Imported
from tutorsim.tasks import safe_id
from tutorsim.voting import masses_of

REPEATED: Final = "a ranking names an answer twice; the first place counts"
UNKNOWN: Final = "a ranking names a label that no answer has; it is left out"
LEFT_OUT: Final = "a ranking leaves answers out; they stand below, in an order that is not known"
EMPTY: Final = "a ranking is empty or cannot be read; its voter abstains"
NO_ANSWER: Final = "a member gave no answer that can be read; it abstains"
FAILED: Final = "a member failed; it is no voter"
CONTRADICTED: Final = "scores contradict the ranking beside them; the ranking counts"

_FINAL: Final = re.compile(r"FINAL ANSWER\s*:?(.*)", re.IGNORECASE)
_MARKS: Final = " \t\r\n*_`\"'“”‘’()[]{}.,;:!\\$"
_BOXED: Final = re.compile(r"\\boxed\{([^{}]*)\}")
_CLOSING: Final = re.compile(r"\[/[A-Z]+\]")
_NUMBER: Final = re.compile(r"[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_PLACE: Final = re.compile(r"^\s*\d+[.)]\s*(?:\*\*)?\s*(?:Response\s+)?([A-Z])\b", re.MULTILINE)
_LABEL: Final = re.compile(r"(?:Response\s+)?([A-Z])", re.IGNORECASE)

Namer = Callable[[str], int]


def read_council(path: Path, repeat_of: Namer) -> Iterator[Imported]:
    """The votes of a file, each with what it leaves open or garbles.

    Args:
        path: A JSON file of a conversation, or of trials.
        repeat_of: Numbers votes of one name.

    Raises:
        LogError: If the file is damaged, or holds nothing that a council wrote.
    """
    if path.suffix.lower() != ".json":
        raise _foreign(path, "It is no JSON file.")
    try:
        value = orjson.loads(read_named(path))
    except (OSError, orjson.JSONDecodeError) as error:
        raise _foreign(path, str(error)) from error
    found = 0
    for number, (vote, question) in enumerate(_votes(value), start=1):
        try:
            read = _trial(vote) if "stage1_responses" in vote else _message(vote, question)
            yield _imported(read, path, number, repeat_of)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _foreign(path, f"Vote {number} lacks or garbles {error}.") from error
        found += 1
    if not found:
        raise _foreign(path, "Nothing in it has the answers of several members (`stage1`).")


def _foreign(path: Path, why: str) -> LogError:
    return LogError(
        f"{path} is no log of a council.",
        why=why,
        hint="Leave it out, or see `tutorsim guide council` for the forms that are read.",
    )


def _votes(value: Any, asked: str = "") -> Iterator[tuple[Mapping[str, Any], str]]:
    """Every vote in a file, in order, with the question before it; forks wrap them differently."""
    if isinstance(value, list):
        for one in value:
            if isinstance(one, dict) and one.get("role") == "user":
                asked = str(one.get("content") or "")
            yield from _votes(one, asked)
    elif isinstance(value, dict):
        if "stage1" in value or "stage1_responses" in value:
            yield value, asked
            return
        for one in value.values():
            if isinstance(one, dict | list):
                yield from _votes(one, asked)


# --- What a vote holds, whatever its form ---------------------------------------------------------


class _Ranking(NamedTuple):
    """What one member says of the answers: labels, best first, and scores where it gave some."""

    labels: tuple[str, ...]
    text: str
    scores: Mapping[str, float]


@dataclass
class _Vote:
    """A vote as a file has it."""

    responses: dict[str, str]
    """Member → its first answer."""
    structure: str
    rankings: dict[str, _Ranking] | None = None
    """Voter → ranking; `None` where nobody ranked."""
    labels: dict[str, str] = field(default_factory=dict)
    """Label → member, in the order shown."""
    revised: dict[str, str] = field(default_factory=dict)
    """Member → what it said after a deliberation."""
    extracted: dict[str, str | None] | None = None
    """Member → the answer that it votes for; `None` where nobody votes over answers."""
    reply: str | None = None
    chairman: str | None = None
    expected: str | None = None
    right: bool | None = None
    benchmark: str = "council"
    task: str = ""
    question: str = ""
    notes: list[str] = field(default_factory=list)


def _trial(trial: Mapping[str, Any]) -> _Vote:
    said = {str(model): _text(text) for model, text in trial["stage1_responses"].items()}
    data, end = trial.get("stage2_data") or {}, trial.get("stage3_data") or {}
    words = re.findall(r"[a-z]+", str(trial.get("structure") or "").lower())
    vote = _Vote(
        responses={model: text for model, text in said.items() if text},
        structure="-".join(word for word in words if word != "independent") or "council",
        reply=_text(end.get("synthesis") or trial.get("final_answer")) or None,
        expected=None if trial.get("expected") is None else str(trial["expected"]),
        right=trial.get("is_correct"),
        benchmark=safe_id(str(trial.get("benchmark") or "council").lower()),
        task=str(trial.get("question_id") or ""),
    )
    vote.notes += [FAILED] * (len(said) - len(vote.responses))
    if "rankings" in data:
        vote.labels = _label_map(data.get("label_to_model"), list(said))
        vote.rankings = {
            str(model): _Ranking(_labels_of(order), "", {})
            for model, order in data["rankings"].items()
        }
    if "deliberation_responses" in data:
        vote.revised = {str(m): _text(text) for m, text in data["deliberation_responses"].items()}
    if "extracted_answers" in data:
        answers = data["extracted_answers"]
        vote.extracted = {str(m): _bare(_text(text)) or None for m, text in answers.items()}
    return vote


def _message(message: Mapping[str, Any], question: str) -> _Vote:
    first = [one for one in message["stage1"] or () if isinstance(one, Mapping)]
    said = {str(one["model"]): _text(one.get("response") or one.get("content")) for one in first}
    last = message.get("stage3")
    last = last if isinstance(last, Mapping) else {"response": last}
    meta = message.get("metadata") or message.get("meta") or {}
    vote = _Vote(
        responses={model: text for model, text in said.items() if text},
        structure="rank-synthesize" if last.get("response") else "rank",
        reply=_text(last.get("response") or last.get("content")) or None,
        chairman=str(last["model"]) if last.get("model") else None,
        question=question,
    )
    vote.notes += [FAILED] * (len(said) - len(vote.responses))
    ranked = message.get("stage2")
    if ranked is not None:
        answering = [model for model, text in said.items() if text]
        shown = meta.get("label_to_model") or message.get("label_to_model")
        vote.labels = _label_map(shown, answering)
        vote.rankings = {str(one["model"]): _ranking(one) for one in ranked}
    return vote


def _ranking(one: Mapping[str, Any]) -> _Ranking:
    """A member's ranking: the parsed one, or the numbered list that its text ends in."""
    parsed, text = one.get("parsed_ranking"), _text(one.get("ranking") or one.get("text"))
    scores: Mapping[str, Any] = {}
    if isinstance(parsed, Mapping):
        scores, parsed = parsed.get("scores") or {}, parsed.get("ranking")
    if parsed is None:
        _, head, end = text.upper().rpartition("FINAL RANKING")
        parsed = _PLACE.findall(text[len(text) - len(end) :]) if head else []
    numbers = {_label(label): float(number) for label, number in scores.items()}
    return _Ranking(_labels_of(parsed), text, numbers)


def _labels_of(order: Any) -> tuple[str, ...]:
    if not isinstance(order, Sequence) or isinstance(order, str):
        raise ValueError(f"a ranking that is no list: {order!r:.40}")
    return tuple(map(_label, order))


def _label(text: Any) -> str:
    """`Response C` and `C` are one label; anything else stays what it is."""
    bare = str(text).strip()
    found = _LABEL.fullmatch(bare)
    return found[1].upper() if found else bare


def _label_map(stated: Any, members: Sequence[str]) -> dict[str, str]:
    """Label → member: as stated, or by the order of the first answers."""
    if not stated:
        return {chr(ord("A") + place): member for place, member in enumerate(members)}
    return {
        _label(label): str(one["model"] if isinstance(one, Mapping) else one)
        for label, one in stated.items()
    }


def _text(value: Any) -> str:
    return "" if value is None else str(value)


# --- Answers --------------------------------------------------------------------------------------


def _final_answer(text: str) -> str | None:
    """The last line `FINAL ANSWER: …` of a text, without marks; `None` without one."""
    found = [bare for bare in map(_bare, _FINAL.findall(text)) if bare]
    return found[-1] if found else None


def _bare(text: str) -> str:
    boxed = _BOXED.search(text)
    return _CLOSING.sub("", boxed[1] if boxed else text).strip(_MARKS)


def _value(answer: str) -> Fraction | str:
    """What two answers are compared by: a number as a number, a letter or text as it reads."""
    numbers = _NUMBER.findall(answer)
    if len(numbers) == 1 and not re.fullmatch(r"[A-Ja-j]", answer):
        return Fraction(numbers[0].replace(",", "").replace("−", "-"))
    return " ".join(answer.casefold().split())


def _classes(answers: Mapping[str, str]) -> dict[str, str]:
    """Member → the first form of its answer, in the order of the members."""
    first: dict[Fraction | str, str] = {}
    return {member: first.setdefault(_value(text), text) for member, text in answers.items()}


# --- From a vote to an episode --------------------------------------------------------------------


def _imported(vote: _Vote, path: Path, number: int, repeat_of: Namer) -> Imported:
    if len(vote.responses) < 2:
        raise ValueError("answers of two members")
    place = f"{safe_id(path.stem)}-{number}"
    name = ".".join((vote.benchmark, place, "council", vote.structure))
    repeat = repeat_of(name)
    members = tuple(dict.fromkeys((*vote.responses, *(vote.rankings or ()))))
    said = vote.revised or vote.responses
    answers = {
        member: AnswerRecord(text=text, letter=None, attempts=0)
        for member, text in said.items()
        if text
    }
    final = vote.extracted or {m: _final_answer(text) for m, text in said.items()}
    ballots, candidates = _ballots(vote, tuple(vote.responses))
    known = {member: text for member, text in final.items() if text is not None}
    turn = DebateTurn(
        turn=1,
        messages=tuple(_messages(vote)),
        answers=answers,
        candidates=candidates,
        ballots_final=ballots,
    )
    council = CouncilVote(
        structure=vote.structure,
        members=members,
        over="answers" if vote.extracted is not None else "members",
        chairman=vote.chairman,
        final_answers=_classes(known),
        expected=vote.expected,
        right=_right(vote, candidates, known),
        told=tuple(dict.fromkeys(vote.notes)),
    )
    record = DebateRecord(
        episode_id=name if repeat == 1 else f"{name}.r{repeat:02d}",
        benchmark=vote.benchmark,
        task_id=vote.task or place,
        variant="council",
        condition=vote.structure,
        repeat=repeat,
        question=vote.question,
        answer_kind="passage",
        setup=DebateSetup(agents=len(members), max_turns=1, vote_from=1),
        turns=(turn,),
        turns_taken=1,
        ended_by="vote" if ballots else None,
        answer=vote.reply,
        answer_of=vote.chairman,
        score=None if vote.right is None else float(vote.right),
        council=council,
    )
    return Imported(record, members, council.told)


def _right(
    vote: _Vote, candidates: Sequence[str], final: Mapping[str, str]
) -> dict[str, bool] | None:
    """Candidate → whether it, or its answer, is the expected one; `None` where none is known."""
    if vote.expected is None:
        return None
    wanted = _value(_bare(vote.expected))
    answers = {c: c for c in candidates} if vote.extracted is not None else final
    return {c: _value(answers[c]) == wanted for c in candidates if c in answers}


def _messages(vote: _Vote) -> Iterator[Message]:
    rounds = [("first", vote.responses), ("message", vote.revised)]
    number = 0
    for place, (kind, said) in enumerate(rounds, start=1):
        shown = tuple(range(1, number + 1))
        for member, text in said.items():
            number += 1
            yield Message(
                number=number,
                agent=member,
                round=place,
                kind="first" if kind == "first" else "message",
                shown=shown,
                text=text,
                agreement="none",
                attempts=0,
            )


def _ballots(
    vote: _Vote, members: tuple[str, ...]
) -> tuple[tuple[BallotRecord, ...], tuple[str, ...]]:
    """The ballots, and whom they are about."""
    if vote.rankings is not None:
        candidates = tuple(m for m in dict.fromkeys(vote.labels.values()) if m in members)
        if len(candidates) < 2:
            raise ValueError("labels of two answers")
        ranked = vote.rankings.items()
        return tuple(_ranked(vote, voter, one, candidates) for voter, one in ranked), candidates
    if vote.extracted is not None:
        known = {member: text for member, text in vote.extracted.items() if text is not None}
        vote.notes += [NO_ANSWER] * (len(vote.extracted) - len(known))
        chosen = _classes(known)
        answers = tuple(dict.fromkeys(chosen.values()))
        return tuple(
            _ballot(voter, "simple", chosen.get(voter), answers, {}, "") for voter in vote.extracted
        ), answers
    return (), ()


def _ranked(vote: _Vote, voter: str, ranking: _Ranking, candidates: Sequence[str]) -> BallotRecord:
    order = []
    for label in ranking.labels:
        member = vote.labels.get(label)
        if member not in candidates:
            vote.notes.append(UNKNOWN)
        elif member in order:
            vote.notes.append(REPEATED)
        else:
            order.append(member)
    if not order:
        vote.notes.append(EMPTY)
    elif len(order) < len(candidates):
        vote.notes.append(LEFT_OUT)
    scored = [ranking.scores[label] for label in ranking.labels if label in ranking.scores]
    if any(later > earlier for earlier, later in pairwise(scored)):
        vote.notes.append(CONTRADICTED)
    shown = {label: member for label, member in vote.labels.items() if member in candidates}
    return _ballot(voter, "ranked", tuple(order) or None, candidates, shown, ranking.text)


def _ballot(
    voter: str, protocol: Any, choice: Any, candidates: Sequence[str], labels: Any, raw: str
) -> BallotRecord:
    mass = masses_of(choice, candidates, protocol=protocol)
    if protocol == "ranked" and choice is not None:
        mass = {member: mass[member] for member in choice}
    return BallotRecord(
        voter=voter,
        protocol=protocol,
        labels=labels,
        raw=raw,
        parsed=choice,
        mass=mass,
        ballot_status="valid" if choice is not None else "abstained",
        attempts=0,
    )
