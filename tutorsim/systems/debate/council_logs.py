"""Logs of councils: several models answer, rank one another's answers, and one writes the reply.

Three shapes are found by their keys, wherever they stand in a file: a conversation whose assistant
messages have `stage1`, `stage2` and `stage3`; the same with scores beside the rankings; a list of
trials with `stage1_responses`, `stage2_data` and `stage3_data`. One vote is one episode of one
turn. Members are voters and candidates under their own names; if they vote over answers, the
different answers are the candidates. Nothing is guessed: what a ranking repeats, does not know or
leaves out is told, and what it leaves out stays open.
"""

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal, NamedTuple

from tutorsim.ballot_reading_and_decisions import masses_of
from tutorsim.errors import LogError
from tutorsim.kernel.system_and_loaded_study import Imported, LogReading
from tutorsim.records import BallotRecord
from tutorsim.records.debate import (
    AnswerRecord,
    CouncilVote,
    DebateRecord,
    DebateSetup,
    DebateTurn,
    Message,
)
from tutorsim.regular_files_and_digests import read_named
from tutorsim.tasks import safe_id

REPEATED: Final = "a ranking names an answer twice; the first place counts"
UNKNOWN: Final = "a ranking names a label that no answer has; it is left out"
LEFT_OUT: Final = "a ranking leaves answers out; they stand below, in an order that is not known"
EMPTY: Final = "a ranking is empty or cannot be read; its voter abstains"
NO_ANSWER: Final = "a member gave no answer that can be read; it abstains"
FAILED: Final = "a member gave no answer; it is no candidate"
BLANK: Final = "an answer is blank; it is a candidate, as it was shown"
ERROR: Final = "an answer reads like an error message; it is a candidate, as it was shown"
NO_VOTE: Final = "a member that was asked cast no vote; it is no voter"
NO_STEP: Final = "nobody ranked or voted"
OUTSIDER: Final = "a voter is none of the members that were asked; its ranking counts"
NO_LABEL: Final = "an answer has no label, so that no ranking can name it; it is no candidate"
OTHER_SCORE: Final = "a score is for a label that no answer has; it is left out"
SOME_SCORES: Final = "scores leave answers out; those may have any"
OTHER_MEANS: Final = (
    "the mean places that the file states are not those of its rankings; the rankings count"
)
CONTRADICTED: Final = "scores contradict the ranking beside them; the ranking counts"
BAD_SCORES: Final = "scores are no whole numbers from 0 to 100; they are left out"
OTHER_VERDICT: Final = "`is_correct` is not what the answers give; for the reply the file counts"
OTHER_NUMBERS: Final = "a text does not number its places 1, 2, 3, …; the parsed form counts"
NO_RANKING_IN_TEXT: Final = (
    "a text names none of the answers that its parsed form ranks; the parsed form counts"
)
NO_QUESTION: Final = "no question stands before the vote"
NO_REPLY: Final = "the reply is missing"
SAME_ANSWERS: Final = "another vote has the same question and answers; both count"
OTHER_TEXT: Final = "a text ends in another ranking than its parsed form; the parsed form counts"

_FINAL: Final = re.compile(r"FINAL ANSWER[ \t*_]*(?:is)?[ \t*_]*:(.*)", re.IGNORECASE)
_MARKS: Final = " \t\r\n*_`\"'“”‘’()[]{}.,;:!\\$"
_BOXED: Final = re.compile(r"\\boxed\{([^{}]*)\}")
_CLOSING: Final = re.compile(r"\[/[A-Z]+\]")
_ONE_NUMBER: Final = re.compile(
    r"(?:[a-z]\s*=\s*)?[$€£]?\s*([-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)\s*%?(?:\s+[a-z]+)*",
    re.IGNORECASE | re.ASCII,
)
_ROUNDED: Final = 0.06
"""A mean place that is stated may be rounded to one digit."""
_ERROR: Final = re.compile(
    r"[\s\[({\"'*]*(?:(?:api |http |internal |server )*(?:error|exception)"
    r"(?:\s*(?:[:\])–.!-]|$)|\s+(?:\d|occurred|while|code|calling))"
    r"|traceback \(most|rate limit|too many requests|service unavailable|bad gateway"
    r"|(?:gateway|request|connection|read) time(?:d )?out"
    r"|(?:http )?[45]\d\d (?:error|[a-z]+ [a-z]+$)"
    r"|the (?:request|model|server) (?:failed|timed out|is overloaded))",
    re.IGNORECASE,
)
_ERROR_LENGTH: Final = 300
"""A longer text that begins so may be an answer about errors."""
_TOP: Final = 100
"""The end of the longest scale that scores are taken from."""
_DIGITS: Final = 300
"""A longer number is compared as a text."""
_CHOICE: Final = re.compile(r"([A-J])[).:]\s.*", re.IGNORECASE | re.DOTALL)
_FLAGS: Final = re.IGNORECASE | re.MULTILINE | re.ASCII
_RANKED: Final = re.compile("FINAL RANKING", _FLAGS)
_PLACE: Final = re.compile(
    r"^[ \t*_]*(\d{1,3})[.)][ \t*_]*"
    r"(?:Response[ \t]+([A-Z]|\d{1,3})\b|([A-Z])(?=[ \t*_\r]*(?:$|[:,;(–—]|- )))",
    _FLAGS,
)
_LABEL: Final = re.compile(r"(?:Response\s+)?([A-Z]|\d{1,3})", _FLAGS)
_LETTER: Final = re.compile(r"(?:Response\s+)?[A-Z]|Response\s+\d{1,3}", _FLAGS)

_LATER: Final = ("stage2", "stage2_data")


class _Answered(NamedTuple):
    """In the place of a vote's question: the one before it, which another vote has answered."""

    question: Any


Namer = Callable[[str], int]


class _LooksAlike(ValueError):
    """A name in one step that looks like a member's in another."""


def read_council(path: Path, reading: LogReading) -> Iterator[Imported | LogError]:
    """The votes of a conversation or of trials, each with what it leaves open or garbles, or why
    not.

    `reading` numbers votes of one name, and says which names are one. A file that is damaged, or
    holds nothing that a council wrote, is a `LogError`.
    """
    if path.suffix.lower() != ".json":
        raise _foreign(path, "It is no JSON file.")
    try:
        text = read_named(path).decode("utf-8-sig")
        value = json.loads(text, object_pairs_hook=_no_key_twice)
        votes, elsewhere = list(_votes(value)), list(_maps(value))
    except (OSError, ValueError, RecursionError) as error:
        raise _foreign(path, str(error)) from error
    if not votes:
        raise _foreign(path, "Nothing in it has the answers of several members (`stage1`).")
    for number, (vote, question) in enumerate(votes, start=1):
        try:
            if vote.keys().isdisjoint(("stage1", "stage1_responses")):
                raise ValueError("It has rankings or votes, and no answers (`stage1`)")
            if "stage1_responses" in vote:
                read = _trial(vote, reading.spelling)
            else:
                read = _message(vote, question, reading.spelling)
            read.refuse_other_maps([*elsewhere, *_maps(list(vote.values()))])
            asked = read.asked()
            read.notes += [SAME_ANSWERS] * (asked in reading.seen)
            reading.seen.add(asked)
            yield _imported(read, path, number, reading.repeat_of)
        except ValueError as error:
            spelt = "Say which: --spelling one or --spelling apart."
            on = "Mend it, or go on without it: the other votes of the file are read."
            yield LogError(
                f"Vote {number} of {path} is left out.",
                why=f"{error}.",
                hint=spelt if isinstance(error, _LooksAlike) else on,
            )


def _foreign(path: Path, why: str) -> LogError:
    return LogError(
        f"{path} is no log of a council.",
        why=why,
        hint="Leave it out, or see `tutorsim guide council` for the forms that are read.",
    )


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; one that has a key twice does not say which value is meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, times in Counter(k for k, _ in pairs).items() if times > 1)
        raise ValueError(f"An object in it has the key {twice!r} twice.")
    return found


def _votes(value: Any, asked: Any = None) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Every vote in a file, in order, with the question before it; forks wrap them differently."""
    if isinstance(value, list):
        for one in value:
            if isinstance(one, dict) and one.get("role") == "user":
                asked = one.get("content")
            found = list(_votes(one, asked))
            yield from found
            if found and asked is not None and not isinstance(asked, _Answered):
                asked = _Answered(asked)
    elif isinstance(value, dict):
        if _is_vote(value):
            yield value, asked
            return
        for one in value.values():
            if isinstance(one, dict | list):
                yield from _votes(one, asked)


def _maps(value: Any) -> Iterator[dict[str, str]]:
    """Whatever gives labels to names, label → name, but what votes inside say."""
    if isinstance(value, dict) and not _is_vote(value):
        models = {
            label: one.get("model") if isinstance(one, dict) else one
            for label, one in value.items()
        }
        yield from _map_of(models)
        value = list(value.values())
    elif isinstance(value, list) and all(isinstance(one, dict) for one in value):
        yield from _map_of({one.get("label"): one.get("model") for one in value})
    for one in value if isinstance(value, list) else ():
        if isinstance(one, dict | list):
            yield from _maps(one)


def _map_of(found: Mapping[Any, Any]) -> Iterator[dict[str, str]]:
    """Pairs as a map of labels, if all are of a label and a name."""
    labelled = all(isinstance(one, str) and _LETTER.fullmatch(one.strip()) for one in found)
    if len(found) > 1 and labelled and all(isinstance(name, str) for name in found.values()):
        yield {_label(label.strip()): name for label, name in found.items()}


def _is_vote(value: Mapping[str, Any]) -> bool:
    """Whether an object holds a vote, or what is left of one that lost its answers."""
    left = any(value.get(key) and not isinstance(value[key], bool) for key in _LATER)
    return left or "stage1" in value or "stage1_responses" in value


# --- Values as a file has them --------------------------------------------------------------------


def _text(value: Any, of: str) -> str:
    """A text, a number, or a list of parts of a text, as text; empty for `null`."""
    if isinstance(value, list) and all(isinstance(one, Mapping) for one in value):
        return "\n".join(_text(one.get("text", ()), of) for one in value)
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise ValueError(f"{of} is no text: {_shown(value)}")
    text = "" if value is None else str(value)
    return text if text.isascii() else text.encode("utf-16", "replace").decode("utf-16")


def _name(value: Any, of: str) -> str:
    name = _text(value, f"A model's name in {of}")
    if not name.strip():
        raise ValueError(f"{of} has an entry that names no model")
    return name


def _object(value: Any, of: str) -> Mapping[str, Any]:
    """An object, empty for `null`."""
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"{of} is no object: {_shown(value)}")
    return value or {}


def _listed(value: Any, of: str) -> dict[str, Mapping[str, Any]]:
    """Member → its entry in a list of objects."""
    if not isinstance(value, list | None):
        raise ValueError(f"{of} is no list: {_shown(value)}")
    entries = [_object(one, f"An entry of {of}") for one in value or ()]
    names = [_name(one.get("model"), of) for one in entries]
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(f"{of} has {_shown(twice[0])} twice, so which of the two is meant is open")
    return dict(zip(names, entries, strict=True))


def _bare_name(name: str) -> str:
    """A model's name by its letters and digits, without case and what stands before a slash."""
    last = unicodedata.normalize("NFKC", name).rpartition("/")[2]
    return "".join(char for char in last if char.isalnum() or char == ".").casefold()


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# --- What a vote holds, whatever its form ---------------------------------------------------------


class _Ranking(NamedTuple):
    """What one member says of the answers."""

    order: tuple[str, ...]
    """Labels or members, best first."""
    text: str = ""
    text_order: tuple[str, ...] = ()
    """The order that the text ends in, if it differs in form from `order`; else empty."""
    scores: Mapping[str, Any] = {}
    """Label or member → score."""
    labels: Mapping[str, str] = {}
    """Label → member, if this voter saw labels of its own; else empty."""
    is_numbered: bool = True
    """The text numbers its places 1, 2, 3, …, or has no numbered list."""


@dataclass
class _Vote:
    """A vote as a file has it."""

    responses: dict[str, str]
    """Member → its first answer."""
    structure: str
    spelling: Literal["one", "apart"] | None = None
    """Whether names that look like members' are theirs; `None`: the user does not say."""
    rankings: dict[str, _Ranking] | None = None
    """Voter → ranking; `None` where nobody ranked."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Label → member, in the order shown."""
    by_order: bool = False
    """The vote states no labels: they follow the order of the answers."""
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
    answers_to: str = ""
    """The question, also if it stands before another vote alone."""
    scored: list[BallotRecord] = field(default_factory=list)
    """Scores beside rankings, as ballots of those who gave them."""
    notes: list[str] = field(default_factory=list)

    def tell_of(self, said: Sequence[str]) -> None:
        """Tell of answers that are blank, or read like what a server says in place of one."""
        self.notes += [BLANK] * any(text.isspace() for text in said)
        short = (text for text in said if len(text) <= _ERROR_LENGTH)
        self.notes += [ERROR] * any(map(_ERROR.match, short))

    def rank(self, entries: Any, members: Sequence[str], maps: Sequence[Any], of: str) -> None:
        """Take the rankings and the labels that they are in.

        `entries`: voter → ranking, or a list of objects that name their voter. `members`: who was
        asked, in order; labels follow it if no map states them. `maps`: label → member, wherever
        the file has such a map. `of`: what the file calls the rankings.
        """
        stated = [self._respelt(_label_map(one), members) for one in maps if one]
        if any(one != stated[0] for one in stated):
            raise ValueError("Two maps of labels differ, so whose answer a label is is open")
        pairs = (entries if isinstance(entries, Mapping) else _listed(entries, of)).items()
        by_voter = {self.named(_text(name, of), members): one for name, one in pairs}
        if len(by_voter) < len(pairs):
            raise ValueError(f"{of} has a member twice, under names that look alike")
        outsider = [name for name in by_voter if name not in members]
        if outsider and isinstance(entries, Mapping):
            raise ValueError(f"{of} is by member, and {_shown(outsider[0])} is none")
        read = {voter: _ranking(one) for voter, one in by_voter.items()}
        self.rankings = {voter: one for voter, one in read.items() if one is not None}
        silent = [member for member in self.responses if member not in self.rankings]
        failed = any(voter not in self.rankings for voter in read)
        self.notes += [NO_VOTE] * bool(silent or failed) if read else [NO_STEP]
        self.notes += [OUTSIDER] * sum(voter not in members for voter in self.rankings)
        answered = [member in self.responses for member in members]
        if stated:
            self.labels = stated[0]
        elif not any(one.labels for one in self.rankings.values()):
            if any(later > earlier for earlier, later in pairwise(answered)):
                raise ValueError("No map of labels, and a member failed before one that answered")
            self.labels = {chr(ord("A") + at): member for at, member in enumerate(self.responses)}
            self.by_order = True
            self._refuse_labels_of_nobody()

    def _respelt(self, labels: Mapping[str, str], members: Sequence[str]) -> dict[str, str]:
        return {label: self.named(name, members) for label, name in labels.items()}

    def named(self, name: str, members: Sequence[str]) -> str:
        """The member that a name stands for; the name itself where it looks like nobody's."""
        if name in members or self.spelling == "apart":
            return name
        alike = [member for member in members if _bare_name(member) == _bare_name(name)]
        if not alike:
            return name
        if self.spelling is None or len(alike) > 1:
            raise _LooksAlike(
                f"{_shown(name)} in one step and {_shown(alike[0])} in another may be one member, "
                "or two"
            )
        return alike[0]

    def _refuse_labels_of_nobody(self) -> None:
        """Refuse labels that several rankings name and no answer has: which answer is lost?"""
        named = [
            {label for label in map(_label, one.order) if _LABEL.fullmatch(label)}
            for one in (self.rankings or {}).values()
        ]
        times = Counter(label for labels in named for label in labels if label not in self.labels)
        lost = [label for label, number in times.items() if number > 1]
        if lost:
            raise ValueError(
                f"No map of labels, and rankings name {_shown(lost[0])} beside those of the "
                "answers, so whose answer a label is is open"
            )

    def refuse_other_maps(self, elsewhere: Sequence[Mapping[str, str]]) -> None:
        """Refuse labels in the order of the answers where something else says otherwise."""
        if not self.by_order:
            return
        bare = {label: _bare_name(member) for label, member in self.labels.items()}
        stated = [{label: _bare_name(name) for label, name in one.items()} for one in elsewhere]
        if any(one != bare and set(one.values()) & set(bare.values()) for one in stated):
            raise ValueError(
                "The vote has no `label_to_model`, and labels that stand elsewhere are not in the "
                "order of its answers, so whose answer a label is is open"
            )

    def asked(self) -> str:
        """A digest of the question and the answers to it."""
        asked = (self.benchmark, self.task, self.answers_to, self.structure)
        return hashlib.sha256(repr((asked, self.responses, self.revised)).encode()).hexdigest()

    def has_means(self, stated: Any) -> bool:
        """Whether stated mean places are those of the rankings; also where none can be read."""
        places: dict[str, list[int]] = {}
        for one in (self.rankings or {}).values():
            for place, named in enumerate(one.order, start=1):
                member = self.member(named, one.labels or self.labels)
                places.setdefault(member or "", []).append(place)
        return all(
            abs(mean - fmean(places[member])) < _ROUNDED
            for one in (stated if isinstance(stated, list) else ())
            if isinstance(one, Mapping)
            for member, mean in [(one.get("model"), one.get("average_rank"))]
            if isinstance(mean, int | float) and member in places
        )

    def member(self, named: str, labels: Mapping[str, str]) -> str | None:
        """Whose answer a label, or a member's own name, stands for; `None` for nobody's."""
        whose = labels.get(_label(named), named)
        return whose if whose in self.responses else None


def _trial(trial: Mapping[str, Any], spelling: Literal["one", "apart"] | None) -> _Vote:
    responses = _object(trial["stage1_responses"], "`stage1_responses`")
    said = {_name(m, "`stage1_responses`"): _answer(one) for m, one in responses.items()}
    data = _object(trial.get("stage2_data"), "`stage2_data`")
    end = _object(trial.get("stage3_data"), "`stage3_data`")
    words = re.findall(r"[a-z]+", _text(trial.get("structure"), "`structure`").lower())
    right = trial.get("is_correct")
    if not isinstance(right, bool | None):
        raise ValueError(f"`is_correct` is neither true nor false: {_shown(right)}")
    benchmark = _text(trial.get("benchmark"), "`benchmark`").lower()
    vote = _Vote(
        responses={model: text for model, text in said.items() if text},
        structure="-".join(word for word in words if word != "independent") or "council",
        spelling=spelling,
        reply=_text(end.get("synthesis") or trial.get("final_answer"), "The reply") or None,
        expected=_text(trial.get("expected"), "`expected`") or None,
        right=right,
        benchmark=safe_id(benchmark or "council"),
        task=_text(trial.get("question_id"), "`question_id`"),
    )
    vote.notes += [FAILED] * (len(said) - len(vote.responses))
    vote.tell_of(tuple(said.values()))
    predicted = _text(trial.get("predicted"), "`predicted`")
    if predicted and vote.expected and right is not None:
        same = _value(_bare(predicted)) == _value(_bare(vote.expected))
        vote.notes += [OTHER_VERDICT] * (same != right)
    if "rankings" in data:
        vote.rank(data["rankings"], list(said), [data.get("label_to_model")], "`rankings`")
    if "deliberation_responses" in data:
        later = _object(data["deliberation_responses"], "`deliberation_responses`")
        vote.revised = {vote.named(m, list(said)): _answer(one) for m, one in later.items()}
    if "extracted_answers" in data:
        answers = _object(data["extracted_answers"], "`extracted_answers`")
        vote.extracted = {
            vote.named(m, list(said)): _bare(_text(one, "An answer")) or None
            for m, one in answers.items()
        }
        vote.notes += [NO_VOTE] * any(member not in vote.extracted for member in vote.responses)
    return vote


def _message(
    message: Mapping[str, Any], question: Any, spelling: Literal["one", "apart"] | None
) -> _Vote:
    said = {model: _answer(one) for model, one in _listed(message["stage1"], "`stage1`").items()}
    last = message.get("stage3")
    last = last if isinstance(last, Mapping) else {"response": last}
    reply = _answer(last)
    lost = isinstance(question, _Answered)
    asked = _text(question.question if lost else question, "The question")
    vote = _Vote(
        responses={model: text for model, text in said.items() if text},
        structure="rank-synthesize" if reply else "rank",
        spelling=spelling,
        reply=reply or None,
        chairman=_text(last.get("model"), "The chairman's name") or None,
        question="" if lost else asked,
        answers_to=asked,
    )
    vote.notes += [NO_QUESTION] * lost
    vote.notes += [NO_REPLY] * (not reply)
    vote.notes += [FAILED] * (len(said) - len(vote.responses))
    vote.tell_of(tuple(said.values()))
    ranked = message.get("stage2")
    holders = [message, *(_object(message.get(key), f"`{key}`") for key in ("metadata", "meta"))]
    if isinstance(ranked, Mapping) and "rankings" in ranked:
        holders.append(ranked)
        ranked = ranked["rankings"]
    if ranked is not None:
        vote.rank(ranked, list(said), [one.get("label_to_model") for one in holders], "`stage2`")
        stated = next((means for one in holders if (means := one.get("aggregate_rankings"))), None)
        vote.notes += [OTHER_MEANS] * (not vote.has_means(stated))
    else:
        vote.notes.append(NO_STEP)
    return vote


def _answer(said: Any) -> str:
    """What a member said: a text, or an object that has it; empty if the member failed."""
    if isinstance(said, Mapping):
        said = None if said.get("error") else said.get("response") or said.get("content")
    return _text(said, "An answer")


def _ranking(said: Any) -> _Ranking | None:
    """A member's ranking: parsed, or the list its text ends in; `None` if it failed."""
    if said is None or (isinstance(said, Mapping) and said.get("error")):
        return None
    one = said if isinstance(said, Mapping) else {"parsed_ranking": said}
    parsed, text = one.get("parsed_ranking"), one.get("ranking") or one.get("text")
    if parsed is None and isinstance(text, list | Mapping):
        parsed, text = text, None
    text = _text(text, "A ranking's text")
    scores: Any = {}
    if isinstance(parsed, Mapping) and not parsed.keys().isdisjoint(("ranking", "scores")):
        scores, parsed = parsed.get("scores") or {}, parsed.get("ranking")
    listed = _order_of(text) if parsed is None or isinstance(parsed, list) else ()
    if parsed is None:
        parsed, listed = listed, ()
    order = parsed if isinstance(parsed, Sequence) and not isinstance(parsed, str) else ()
    labels = _label_map(one.get("label_to_model") or {})
    named = tuple(map(_written, order))
    return _Ranking(
        named,
        text,
        listed,
        scores if isinstance(scores, Mapping) else {"": ""},
        labels,
        _is_numbered(_places(text)),
    )


def _places(text: str) -> list[tuple[str, str]]:
    """Number and label of every line of the list under the last FINAL RANKING of a text."""
    heads = list(_RANKED.finditer(text))
    found = _PLACE.findall(text, heads[-1].end()) if heads else []
    return [(number, label or letter) for number, label, letter in found]


def _is_numbered(places: Sequence[tuple[str, str]]) -> bool:
    return [int(number) for number, _ in places] == list(range(1, len(places) + 1))


def _order_of(text: str) -> tuple[str, ...]:
    """The list numbered 1, 2, 3, … under the last FINAL RANKING of a text; empty without one."""
    places = _places(text)
    return tuple(label for _, label in places) if _is_numbered(places) else ()


def _names_any(text: str, named: Sequence[str]) -> bool:
    """Whether a text names one of some labels or members."""
    return any(
        re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
        for one in named
        for name in {one, _label(one)}
    )


def _written(label: Any) -> str:
    """A label as a file writes it; empty for what can be none."""
    whole = isinstance(label, str | int) and not isinstance(label, bool)
    return str(label).strip() if whole else ""


def _label(text: str) -> str:
    """`Response C`, `C` and `c` are one label; anything else stays what it is."""
    found = _LABEL.fullmatch(text)
    return found[1].upper() if found else text


def _label_map(stated: Any) -> dict[str, str]:
    """Label → member, as stated."""
    entries = _object(stated, "`label_to_model`").items()
    pairs = [
        (_label(label.strip()), _name(one.get("model") if isinstance(one, Mapping) else one, "it"))
        for label, one in entries
    ]
    found = dict(pairs)
    if len(found) < len(pairs) or len(set(found.values())) < len(pairs):
        raise ValueError("`label_to_model` has a label or a member twice")
    return found


# --- Answers --------------------------------------------------------------------------------------


def _final_answer(text: str) -> str | None:
    """The last line `FINAL ANSWER: …` of a text, without marks; `None` without one."""
    found = [bare for bare in map(_bare, _FINAL.findall(text)) if bare]
    return found[-1] if found else None


def _bare(text: str) -> str:
    boxed = _BOXED.search(text)
    return _CLOSING.sub("", boxed[1] if boxed else text).strip(_MARKS)


def _value(answer: str) -> Fraction | str:
    """What two answers are compared by: a number as a number, a letter or text as it reads.

    `$70,000` and `70000 dollars` are one number; `2x`, `√2` and `2 + i` are texts.
    """
    number = _ONE_NUMBER.fullmatch(answer)
    if number and len(number[1]) <= _DIGITS:
        return Fraction(number[1].replace(",", "").replace("−", "-"))
    letter = _CHOICE.fullmatch(answer)
    return letter[1].casefold() if letter else " ".join(answer.casefold().split())


def _classes(answers: Mapping[str, str]) -> dict[str, str]:
    """Member → the first form of its answer, in the order of the members."""
    first: dict[Fraction | str, str] = {}
    return {member: first.setdefault(_value(text), text) for member, text in answers.items()}


# --- From a vote to an episode --------------------------------------------------------------------


def _imported(vote: _Vote, path: Path, number: int, repeat_of: Namer) -> Imported:
    if len(vote.responses) < 2:
        raise ValueError("Fewer than two members answered, so that there is nothing to vote on")
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
        ballots_as={"score": tuple(vote.scored)} if vote.scored else {},
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
        file=f"{path.name}, vote {number}",
    )
    record = DebateRecord(
        episode_id=name if repeat == 1 else f"{name}.r{repeat:02d}",
        benchmark=vote.benchmark,
        task_id=vote.task or (place if repeat == 1 else f"{place}.r{repeat:02d}"),
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
    return Imported(record, members, council.told, f"vote {number}", _said(vote))


def _said(vote: _Vote) -> str:
    """A digest of question, answers and votes, which copies of a vote share."""
    said = (vote.asked(), vote.extracted, vote.rankings)
    return hashlib.sha256(repr(said).encode()).hexdigest()


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
        maps = (vote.labels, *(one.labels for one in vote.rankings.values()))
        shown = dict.fromkeys(member for labels in maps for member in labels.values())
        candidates = tuple(member for member in shown if member in members)
        vote.notes += [NO_LABEL] * (len(members) - len(candidates))
        if len(candidates) < 2:
            raise ValueError("Fewer than two answers have a label")
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
    labels = ranking.labels or vote.labels
    named = [vote.member(one, labels) for one in ranking.order]
    known = [member for member in named if member is not None and member in candidates]
    order = tuple(dict.fromkeys(known))
    faults = {
        UNKNOWN: len(known) < len(named),
        REPEATED: len(order) < len(known),
        EMPTY: not order,
        LEFT_OUT: 0 < len(order) < len(candidates),
        OTHER_NUMBERS: bool(order) and not ranking.is_numbered,
        NO_RANKING_IN_TEXT: bool(order and ranking.text.strip())
        and not _names_any(ranking.text, [*ranking.order, *known]),
        OTHER_TEXT: bool(ranking.text_order)
        and [vote.member(one, labels) for one in ranking.text_order] != named,
    }
    given = {vote.member(name, labels): _whole(one) for name, one in ranking.scores.items()}
    scores = {member: n for member, n in given.items() if member in candidates and n is not None}
    if None in given.values():
        faults[BAD_SCORES], scores = True, {}
    faults[OTHER_SCORE] = None in given and not faults.get(BAD_SCORES)
    faults[SOME_SCORES] = 0 < len(scores) < len(candidates)
    scored = [scores[member] for member in order if member in scores]
    faults[CONTRADICTED] = any(later > earlier for earlier, later in pairwise(scored))
    vote.notes += [note for note, shown in faults.items() if shown]
    shown = {label: member for label, member in labels.items() if member in candidates}
    if scores:
        vote.scored.append(_ballot(voter, "score", scores, candidates, shown, ranking.text))
    return _ballot(voter, "ranked", order or None, candidates, shown, ranking.text)


def _whole(score: Any) -> int | None:
    """A score that is a whole number on some scale; `None` for any other."""
    number = isinstance(score, int | float) and not isinstance(score, bool)
    return int(score) if number and 0 <= score <= _TOP and score == score // 1 else None


def _ballot(
    voter: str, protocol: Any, choice: Any, candidates: Sequence[str], labels: Any, raw: str
) -> BallotRecord:
    mass = masses_of(choice, candidates, protocol=protocol)
    if isinstance(choice, tuple | dict):
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
