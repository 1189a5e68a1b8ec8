"""Token estimates: the real prompts, driven with replies of usual length."""

from collections import Counter
from collections.abc import Iterator, Mapping

from tutorsim.flow_drivers import drive, scripted
from tutorsim.mechanisms.flow import CodeResult, CodeRun, Heard, Listen
from tutorsim.model import Call, CallKey
from tutorsim.records import CallRecord, VerdictRecord
from tutorsim.study import EpisodeSpec
from tutorsim.systems import LoadedStudy

__all__ = ["estimate_tokens"]


def estimate_tokens(loaded: LoadedStudy, *, longest: bool) -> Mapping[str, tuple[int, int]]:
    """Estimate input and output tokens by model, at four characters a token.

    Args:
        loaded: The study.
        longest: Follow the longest path of an episode; otherwise the shortest.

    Returns:
        Model → (input tokens, output tokens). One episode stands for all of its benchmark,
        condition and further factor.
    """
    specs = list(loaded.grid())
    shares = Counter(spec.cell for spec in specs)
    samples = {spec.cell: spec for spec in reversed(specs)}
    asked: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for cell, spec in samples.items():
        for call in _sample_calls(loaded, spec, longest=longest):
            asked[call.model] += call.input_tokens * shares[cell]
            answered[call.model] += call.output_tokens * shares[cell]
    return {model: (asked[model], answered[model]) for model in sorted(asked)}


def _sample_calls(loaded: LoadedStudy, spec: EpisodeSpec, *, longest: bool) -> Iterator[CallRecord]:
    """First askings of one episode; a person leaves at once, or stays to the end and is silent."""

    def reply(call: Call) -> str:
        return loaded.usual_reply(call, longest=longest)

    def judge_code(run: CodeRun) -> CodeResult:
        return CodeResult("", VerdictRecord(outcome="fail" if longest else "pass", reason=""))

    def listen(_: Listen) -> Heard:
        return Heard(None, 0, ended=not longest)

    world = scripted(reply, judge_code=judge_code, listen=listen)
    record = drive(loaded.episode(spec), world)
    return (call for call in record.calls if CallKey.parse(call.key).attempt == 1)
