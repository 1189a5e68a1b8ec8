"""Tasks that are debated, whatever file they come from."""

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from tutorsim.tasks.answer_scores import LETTERS, AnswerScore, score_answer
from tutorsim.vocabularies import AnswerKind

__all__ = ["BENCHMARKS", "DebateBenchmark", "DebateTask", "answer_kind"]

DebateBenchmark = Literal["mmlu", "mmlu_pro", "gpqa", "strategyqa", "musr", "squad2"]

BENCHMARKS: Final[tuple[DebateBenchmark, ...]] = get_args(DebateBenchmark)


def answer_kind(benchmark: str) -> AnswerKind:
    """How tasks of a benchmark are answered."""
    return {"musr": "names", "squad2": "passage"}.get(benchmark, "choice")  # type: ignore[return-value]


@dataclass(frozen=True)
class DebateTask:
    """One task."""

    task_id: str
    benchmark: DebateBenchmark
    question: str
    options: tuple[str, ...] = ()
    """Option texts in order; empty for a passage."""
    gold: tuple[str, ...] = ()
    """The right letter, the right name, or every right answer; empty if there is none."""
    context: str = ""
    """The passage or story; may be empty."""
    category: str = ""
    """Subject, where the file names one."""

    @property
    def kind(self) -> AnswerKind:
        return answer_kind(self.benchmark)

    @property
    def shown(self) -> str:
        """The question, after its passage."""
        return f"{self.context}\n\n{self.question}".strip() if self.context else self.question

    @property
    def shown_options(self) -> tuple[str, ...]:
        """Options as prompts show them, with letters if answers are letters."""
        if self.kind == "names":
            return tuple(f"- {option}" for option in self.options)
        return tuple(
            f"{letter}) {option}" for letter, option in zip(LETTERS, self.options, strict=False)
        )

    def score(self, text: str | None) -> AnswerScore:
        """What an answer is worth."""
        return score_answer(text, kind=self.kind, options=self.options, gold=self.gold)

    def wrong_options(self) -> tuple[str, ...]:
        """Options that are not right, as an answer would give them."""
        right = self.gold
        if self.kind == "choice":
            right = tuple(self.options[LETTERS.index(letter)] for letter in self.gold)
        return tuple(
            shown.removeprefix("- ")
            for shown, option in zip(self.shown_options, self.options, strict=True)
            if option not in right
        )

    def published(self) -> dict[str, Any]:
        """The task under its published names: what is shown of it, and what its digest is over."""
        name = {"task_id": self.task_id}
        match self.benchmark:
            case "mmlu":
                return name | {
                    "question": self.question,
                    "subject": self.category,
                    "choices": list(self.options),
                    "answer": LETTERS.index(self.gold[0]),
                }
            case "mmlu_pro" | "gpqa":
                return name | {
                    "question_id": self.task_id,
                    "question": self.question,
                    "options": list(self.options),
                    "answer": self.gold[0],
                    "category": self.category,
                }
            case "strategyqa":
                scores = {
                    option: int(letter == self.gold[0])
                    for letter, option in zip(LETTERS, self.options, strict=False)
                }
                return name | {"input": self.question, "target_scores": scores}
            case "musr":
                return name | {
                    "narrative": self.context,
                    "question": self.question,
                    "choices": list(self.options),
                    "answer_choice": self.gold[0],
                }
            case "squad2":
                return name | {
                    "id": self.task_id,
                    "context": self.context,
                    "question": self.question,
                    "is_impossible": not self.gold,
                    "answers": [{"text": text} for text in self.gold],
                }
