"""Logs of the program MALLM as debates: one object, or a list of them, in a JSON file.

What a log does not say stays absent. Voters come from the text of the voting process, simple
choices from the indices in `votes`: once equal answers have been removed, the names in that text
point at other people. Agreement flags are taken as logged; under the reading `tag` a recount reads
them again from the text.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from tutorsim.ballot_reading_and_decisions import (
    Choice,
    Decision,
    decide,
    leaders,
    masses_of,
    tally,
)
from tutorsim.errors import LogError
from tutorsim.kernel.system_and_loaded_study import Imported, LogReading
from tutorsim.records import BallotRecord
from tutorsim.records.debate import (
    AnswerRecord,
    DebateRecord,
    DebateSetup,
    DebateTurn,
    EndedBy,
    HeldVote,
    Message,
    Paradigm,
    PersonaRecord,
)
from tutorsim.regular_files_and_digests import read_named
from tutorsim.systems.debate.discussion_challenges_and_reply_reading import agent_names
from tutorsim.tasks import safe_id
from tutorsim.tasks.task_types_ids_digests_and_scoring import LETTERS, chosen_letter
from tutorsim.vocabularies import AnswerKind, Protocol

_PARADIGMS: Final[Mapping[str, Paradigm]] = {
    "memory": "memory",
    "relay": "relay",
    "report": "report",
    "debate": "debate",
    "collective_refinement": "collective",
}
_PROTOCOLS: Final[Mapping[str, Protocol]] = {
    "simple_voting": "simple",
    "voting": "simple",
    "consensus_voting": "simple",
    "approval_voting": "approval",
    "approval": "approval",
    "ranked_voting": "ranked",
    "cumulative_voting": "cumulative",
}
"""Type of a logged vote → the protocol of its ballots."""
_BENCHMARKS: Final = ("mmlu_pro", "mmlu", "gpqa", "strategyqa", "musr", "squad")
_OPTION: Final = re.compile(r"^\(?([A-J])[).:]\s*(.+)$", re.MULTILINE)
_RULE: Final = re.compile(
    r"(simple_voting|approval_voting|ranked_voting|cumulative_voting|consensus_voting)"
    r"|(supermajority|majority|unanimity|hybrid)",
    re.IGNORECASE,
)
"""The rule in a file's name: one that votes, or a consensus."""
_END: Final = re.compile(
    r"\n(?:\nVoting with alteration:|[^\n]* (?:voted for answer|approved ans))"
)
_VOTED: Final = re.compile(r"^(.*) voted for answer from .*$", re.MULTILINE)
_APPROVED: Final = re.compile(r"^(.*) approved answers from (\[.*\])$", re.MULTILINE)
_SEEN_TURNS: Final = 2
"""Earlier turns that the program's default shows."""

Namer = Callable[[str], int]
"""From an episode's name without repeat to the number of this repeat, from 1."""


def read_mallm(path: Path, reading: LogReading) -> Iterator[Imported]:
    """The discussions of a file, each with the program's faults that it shows.

    Raises `LogError` if the file is truncated or no log of the program.
    """
    try:
        value = orjson.loads(read_named(path))
    except (OSError, orjson.JSONDecodeError) as error:
        raise _foreign(path, str(error)) from error
    logs = value if isinstance(value, list) else [value]
    if not logs:
        raise _foreign(path, "It holds no discussion.")
    for log in logs:
        try:
            models = {str(one["model"]) for one in log["personas"]}
            record = _record(log, path, reading.repeat_of)
            yield Imported(record, tuple(sorted(models)), tuple(_faults(log, record)))
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise _foreign(path, f"A discussion lacks or garbles {error}.") from error


def _foreign(path: Path, why: str) -> LogError:
    return LogError(
        f"{path} is no log of MALLM.", why=why, hint="Leave it out, or download it again."
    )


def _record(log: Mapping[str, Any], path: Path, repeat_of: Namer) -> DebateRecord:
    agents = agent_names(len(log["personas"]))
    names = {one["agentId"]: agent for one, agent in zip(log["personas"], agents, strict=True)}
    options, kind, gold = _task(log)
    setup = DebateSetup(
        agents=len(agents),
        max_turns=None,
        paradigm=_PARADIGMS[log["paradigm"]],
        agreement_reading="lenient",
        vote_from=min(map(int, log["votesEachTurn"] or {"1": None})),
    )
    turns = _turns(log, agents, names, options)
    condition = _condition(log, path)
    benchmark = _benchmark(log)
    name = ".".join((benchmark, safe_id(log["exampleId"]), log["paradigm"], condition))
    repeat = repeat_of(name)
    answer = log["finalAnswer"] or None
    record = DebateRecord(
        episode_id=f"{name}.r{repeat:02d}",
        benchmark=benchmark,
        task_id=log["exampleId"],
        variant=log["paradigm"],
        condition=condition,
        repeat=repeat,
        question="\n\n".join(map(str, log["input"])),
        answer_kind=kind,
        options=options,
        gold=gold,
        setup=setup,
        personas=tuple(_personas(log, agents)),
        turns=turns,
        turns_taken=int(log["turns"]),
        ended_by=_ended_by(log, condition),
        decided=bool(log["decisionSuccess"]),
        answer=answer,
        answer_of=_author(answer, turns),
    )
    if not gold:
        return record
    score = record.worth(answer)
    read = {"letter": score.letter, "score": score.value, "exact": score.exact}
    return record.model_copy(update=read | {"readable": score.readable if answer else None})


def _personas(log: Mapping[str, Any], agents: Sequence[str]) -> Iterator[PersonaRecord]:
    for agent, one in zip(agents, log["personas"], strict=True):
        described = one.get("personaDescription") or ""
        yield PersonaRecord(agent=agent, role=one["persona"], description=described)


def _benchmark(log: Mapping[str, Any]) -> str:
    stem = Path(str(log["dataset"])).stem.lower()
    return next((name for name in _BENCHMARKS if name in stem), safe_id(stem) or "unknown")


def _condition(log: Mapping[str, Any], path: Path) -> str:
    """The type of the logged votes; without votes the rule that the file's name tells."""
    votes = log["votesEachTurn"] or {}
    if votes:
        return str(next(iter(votes.values()))["type"])
    found = _RULE.search(path.stem)
    if found is None:
        return "consensus"
    return found[1].lower() if found[1] else f"{found[2].lower()}_consensus"


def _ended_by(log: Mapping[str, Any], condition: str) -> EndedBy:
    if not log["decisionSuccess"]:
        return "limit"
    return "vote" if log["votesEachTurn"] or condition in _PROTOCOLS else "consensus"


def _task(log: Mapping[str, Any]) -> tuple[tuple[str, ...], AnswerKind, tuple[str, ...]]:
    """Options, how the task is answered, and the right answers."""
    lines = _OPTION.findall("\n".join(map(str, log["input"])))
    references = tuple(map(str, log["references"] or ()))
    letters = [letter for letter, _ in lines]
    if len(lines) < 2 or letters != list(LETTERS[: len(lines)]):
        return (), "passage", references
    options = tuple(text.strip() for _, text in lines)
    letter = chosen_letter(references[0], options) if references else None
    return options, "choice", () if letter is None else (letter,)


def _author(answer: str | None, turns: Sequence[DebateTurn]) -> str | None:
    """Who said it, in the last turn with answers, or as a proposal."""
    if answer is None:
        return None
    for turn in reversed(turns):
        for agent, said in turn.answers.items():
            if said.text == answer:
                return agent
    messages = [message for turn in turns for message in turn.messages]
    return next((one.agent for one in reversed(messages) if one.solution == answer), None)


def _turns(
    log: Mapping[str, Any], agents: Sequence[str], names: Mapping[str, str], options: Sequence[str]
) -> tuple[DebateTurn, ...]:
    by_turn: dict[int, list[Message]] = {}
    for said in sorted(log["globalMemory"], key=lambda one: int(one["message_id"])):
        message = _message(said, names)
        if message is not None:
            by_turn.setdefault(int(said["turn"]), []).append(message)
    votes = {int(turn): vote for turn, vote in (log["votesEachTurn"] or {}).items()}
    last = max(votes, default=0)
    return tuple(
        DebateTurn(
            turn=turn,
            messages=tuple(messages),
            **(
                _vote(log, votes[turn], agents, options, delivers=turn == last)
                if turn in votes
                else {}
            ),
        )
        for turn, messages in sorted(by_turn.items())
    )


def _message(said: Mapping[str, Any], names: Mapping[str, str]) -> Message | None:
    """A message as logged; `None` for one of a moderator."""
    agent = names.get(said["agent_id"])
    if agent is None:
        return None
    flag = said["agreement"]
    draft = flag is None or said["contribution"] == "draft"
    agrees = flag is True and not draft
    return Message(
        number=int(said["message_id"]) + 1,
        agent=agent,
        kind="draft" if draft else "message",
        shown=tuple(int(number) + 1 for number in said["memory_ids"]),
        text=said["message"] or "",
        agreement="none" if draft else "agree" if agrees else "disagree",
        solution=None if agrees else said["solution"] or "",
        attempts=0,
    )


# --- Votes ----------------------------------------------------------------------------------


def _vote(
    log: Mapping[str, Any],
    vote: Mapping[str, Any],
    agents: Sequence[str],
    options: Sequence[str],
    *,
    delivers: bool,
) -> dict[str, Any]:
    """Answers and ballots of a turn; only the last vote can have delivered its winner."""
    texts = _answers(log, vote, agents)
    answers = {
        agent: AnswerRecord(
            text=text, letter=chosen_letter(text, options) if options else None, attempts=0
        )
        for agent, text in texts.items()
    }
    listed = [str(text) for text in vote["answers"]]
    candidates = _candidates(listed, texts, agents)
    protocol = _PROTOCOLS.get(vote["type"])
    found: dict[str, Any] = {"answers": answers, "candidates": tuple(candidates)}
    ballots = protocol and _ballots(log, vote, protocol, agents, candidates)
    if not ballots or protocol is None:
        return found
    tallies = tally([ballot.mass for ballot in ballots], candidates)
    ahead = leaders(tallies)
    told = next(iter(vote["alterations"].values()))
    won = len(ahead) == 1 and bool(told["agreed"]) and delivers
    if won and texts[ahead[0]] == log["finalAnswer"]:
        decision: Decision = decide([one.mass for one in ballots], candidates, order=agents)
        return found | {"ballots_final": ballots, "decision": decision}
    if len(ahead) > 1:
        held = HeldVote(tallies=tallies, tied=ahead)
        return found | {"held": held, "other_votes": {"vote_held": ballots}}
    return found | {"ballots_as": {protocol: ballots}}


def _answers(
    log: Mapping[str, Any], vote: Mapping[str, Any], agents: Sequence[str]
) -> dict[str, str]:
    """Agent → final answer, from the list if it has all, otherwise from the process text."""
    listed = [str(text) for text in vote["answers"]]
    if len(listed) == len(agents):
        return dict(zip(agents, listed, strict=True))
    text = "\n" + str(vote["voting_process_string"])
    end = _END.search(text)
    text = text[: end.start()] if end else text
    heads = [f"\n{one['persona']} final answer: " for one in log["personas"]]
    found, at = {}, 0
    for i, (agent, head) in enumerate(zip(agents, heads, strict=True)):
        start = text.index(head, at) + len(head)
        at = text.index(heads[i + 1], start) if i + 1 < len(heads) else len(text)
        found[agent] = text[start:at].strip("\n")
    return found


def _candidates(
    listed: Sequence[str], texts: Mapping[str, str], agents: Sequence[str]
) -> list[str]:
    """The author of each listed answer; of equal ones removed, the first who gave it."""
    if len(listed) == len(agents):
        return list(agents)
    return [
        next(agent for agent, text in texts.items() if text.strip() == answer.strip())
        for answer in listed
    ]


def _ballots(
    log: Mapping[str, Any],
    vote: Mapping[str, Any],
    protocol: Protocol,
    agents: Sequence[str],
    candidates: Sequence[str],
) -> tuple[BallotRecord, ...]:
    """Every agent's ballot; none if the log does not say whose is whose."""
    votes = next(iter(vote["alterations"].values()))["votes"]
    choices: Sequence[Choice | None]
    if protocol == "approval":
        found = _approvals(log, vote, candidates)
        if found is None:
            return ()
        choices = found
    elif protocol == "simple":
        voters = _voters(log, vote, agents)
        if len(voters) != len(votes):
            return ()
        chosen = dict(zip(voters, (candidates[int(place)] for place in votes), strict=True))
        choices = [chosen.get(agent) for agent in agents]
    elif len(votes) != len(agents):
        return ()  # a voter's invalid ballot is missing, and nothing says whose
    elif protocol == "ranked":
        choices = [tuple(candidates[int(place)] for place in order) for order in votes]
    else:
        choices = [{candidates[int(k)]: int(v) for k, v in given.items()} for given in votes]
    return tuple(
        BallotRecord(
            voter=voter,
            protocol=protocol,
            labels={},
            parsed=choice,
            mass=masses_of(choice, candidates, protocol=protocol) if choice is not None else {},
            ballot_status="abstained" if choice is None else "valid",
            attempts=0,
        )
        for voter, choice in zip(agents, choices, strict=True)
    )


def _voters(
    log: Mapping[str, Any], vote: Mapping[str, Any], agents: Sequence[str]
) -> Sequence[str]:
    """Who cast the simple votes, in their order: all, or those whom the process text names.

    An invalid ballot is missing. Of persona names that repeat, the text does not say whose it is.
    """
    if len(next(iter(vote["alterations"].values()))["votes"]) == len(agents):
        return agents
    named = {str(one["persona"]): agent for one, agent in zip(log["personas"], agents, strict=True)}
    found = [named.get(name) for name in _VOTED.findall(str(vote["voting_process_string"]))]
    known = [agent for agent in found if agent is not None]
    alone = len(named) == len(agents) and len(set(known)) == len(found)
    return known if alone else ()


def _approvals(
    log: Mapping[str, Any], vote: Mapping[str, Any], candidates: Sequence[str]
) -> list[Choice | None] | None:
    """Approvals per voter from the process text; `None` if persona names repeat or one is missing.

    The flat list of indices does not say where a voter's ballot ends.
    """
    names = [str(one["persona"]) for one in log["personas"]]
    if len(set(names)) != len(names):
        return None
    said = dict(_APPROVED.findall(str(vote["voting_process_string"])))
    if set(said) != set(names):
        return None
    places = [ast.literal_eval(said[name]) for name in names]
    return [tuple(candidates[names.index(one)] for one in approved) for approved in places]


# --- Faults of the program ------------------------------------------------------------------


def _faults(log: Mapping[str, Any], record: DebateRecord) -> Iterator[str]:
    """Known faults of the program that a discussion shows, and votes that cannot be read."""
    said = sorted(log["globalMemory"], key=lambda one: int(one["message_id"]))
    flags = [one["agreement"] is True for one in said]
    size = len(log["personas"])
    agreed = any(
        not flags[i] and all(flags[i + 1 : i + size]) for i in range(len(flags) - size + 1)
    )
    if agreed and not log["votesEachTurn"] and not log["decisionSuccess"]:
        yield "consensus never decided, though all agents agreed"
    turns = {int(one["message_id"]): int(one["turn"]) for one in said}
    seen = (int(one["turn"]) - turns[int(n)] for one in said for n in one["memory_ids"] or ())
    if max(seen, default=0) > _SEEN_TURNS:
        yield "messages older than the two visible turns were shown"
    votes = log["votesEachTurn"] or {}
    if not votes and record.condition in _PROTOCOLS:
        yield f"no vote was held, though the rule is {record.condition}"
    read = {turn.turn for turn in record.turns if turn.cast or turn.ballots_as}
    left = sum(int(turn) not in read for turn in votes)
    if left:
        counted = "1 vote" if left == 1 else f"{left} votes"
        yield f"ballots of {counted} left out, as the log does not say whose is whose"
    for vote in votes.values():
        if _PROTOCOLS.get(vote["type"]) == "approval":
            yield "approval ballots were flattened into one list"
            break
