"""Token estimates: the real prompts, driven with replies of usual length."""

from collections import Counter
from collections.abc import Iterator, Mapping

from tutorsim.agents.scene import Scene
from tutorsim.drivers import drive, scripted
from tutorsim.episode import episode
from tutorsim.mechanisms.flow import CodeResult, CodeRun
from tutorsim.model import Call, CallKey
from tutorsim.records import CallRecord, VerdictRecord
from tutorsim.study import EpisodeSpec, LoadedStudy
from tutorsim.types import LABELS

__all__ = ["estimate_tokens"]

SENTENCE = (
    "This stands for about eighteen words of the kind that tutors and students write to others. "
)


def estimate_tokens(loaded: LoadedStudy, *, longest: bool) -> Mapping[str, tuple[int, int]]:
    """Estimate input and output tokens by model, at four characters a token.

    Args:
        loaded: The study.
        longest: Follow the path on which no attempt succeeds and every final vote ties;
            otherwise the one on which every first attempt succeeds.

    Returns:
        Model → (input tokens, output tokens). One episode stands for all of its benchmark and
        condition.
    """
    shares = Counter((spec.benchmark, spec.condition) for spec in loaded.grid())
    samples = {(spec.benchmark, spec.condition): spec for spec in reversed(list(loaded.grid()))}
    asked: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for cell, spec in samples.items():
        for call in _sample_calls(loaded, spec, longest=longest):
            asked[call.model] += call.input_tokens * shares[cell]
            answered[call.model] += call.output_tokens * shares[cell]
    return {model: (asked[model], answered[model]) for model in sorted(asked)}


def _sample_calls(loaded: LoadedStudy, spec: EpisodeSpec, *, longest: bool) -> Iterator[CallRecord]:
    """First askings of one episode."""
    roles = loaded.study.roles

    def reply(call: Call) -> str:
        return _usual_reply(call, len(roles), longest=longest)

    def judge_code(run: CodeRun) -> CodeResult:
        return CodeResult("", VerdictRecord(outcome="fail" if longest else "pass", reason=""))

    record = drive(episode(Scene(loaded, spec)), scripted(reply, judge_code=judge_code))
    return (call for call in record.calls if CallKey.parse(call.key).attempt == 1)


def _usual_reply(call: Call, count: int, *, longest: bool) -> str:
    """A reply of usual length.

    Ballots, and scores on the longest path, are of no readable form: every vote then ties and
    no attempt succeeds, whatever the protocol and the threshold.
    """
    match call.key.stage:
        case "student":
            return SENTENCE * 6
        case "judge":
            return f"SCORE: {'-' if longest else 1}\n{SENTENCE}"
        case "propose" | "revise":
            return f"PROPOSAL: {SENTENCE * 3}\nRATIONALE: {SENTENCE}\nCONFIDENCE: 70"
        case "critique" | "tie_critique":
            blocks = (f"{label}:\nSTRENGTH: {SENTENCE}\nWEAKNESS: {SENTENCE}" for label in LABELS)
            return "\n".join(list(blocks)[:count])
        case _:
            return "?" * 4 * count
