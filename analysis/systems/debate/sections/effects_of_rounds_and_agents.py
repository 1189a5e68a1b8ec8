"""The experiments of the study: rounds, agents, likeness of answers, challenges."""

from collections.abc import Sequence
from typing import Final

from tutorsim.analysis.metrics.text_embeddings import Embedding
from tutorsim.analysis.report.document import Section, Table
from tutorsim.analysis.systems.debate.charts import rounds_figure
from tutorsim.analysis.systems.debate.experiments import (
    Slope,
    agents_slopes,
    challenge_cells,
    rounds_slopes,
    similarities,
)
from tutorsim.analysis.systems.debate.published_figures import printed
from tutorsim.analysis.systems.debate.sections.shared_cells import first_printed, one_number, slim
from tutorsim.analysis.views.cells import estimate, present, table
from tutorsim.records.debate import DebateRecord
from tutorsim.vocabularies import PROTOCOLS

__all__ = [
    "agents_section",
    "challenge_section",
    "rounds_section",
    "similarity_section",
]

_LIKENESS: Final = {
    False: "Similarity here is the cosine of word weights (TF–IDF), the study's is of sentence "
    "embeddings: the two scales differ.",
    True: "Similarity is the cosine of word weights (TF–IDF), and of sentence embeddings as in the "
    "study, whose model may be another one.",
}
"""Whether there is a model of sentences → what the numbers are."""


def rounds_section(full: Sequence[DebateRecord]) -> Section:
    """Scores by the turn in which votes begin, on the same debates."""
    slopes = rounds_slopes(full, PROTOCOLS)
    return Section(
        "rounds",
        "Rounds",
        "What voting would have scored with its first vote after one turn, two turns, and so on: "
        "the same debates of one variant at every point. The study prints a slope below zero and "
        "no numbers.",
        figures=(rounds_figure(slopes),),
        tables=present(_slopes_table("rounds", "Score by first turn of a vote", slopes)),
    )


def agents_section(records: Sequence[DebateRecord]) -> Section | None:
    """Scores by number of agents; `None` unless variants differ in it."""
    slopes = agents_slopes(records)
    if not slopes:
        return None
    return Section(
        "agents",
        "Agents",
        "Scores of variants that differ in the number of agents alone, on the same tasks. Each "
        "number has debates of its own, so chance is between them. The study prints a slope above "
        "zero and no numbers.",
        tables=present(_slopes_table("agents", "Score by number of agents", slopes)),
    )


def _slopes_table(name: str, title: str, slopes: Sequence[Slope]) -> Table | None:
    numbers = sorted({number for one in slopes for number in one.points})
    rows = [
        (
            one.name,
            *(one_number(one.points.get(number)) for number in numbers),
            estimate(one.slope, signed=True),
            one.tasks,
        )
        for one in slopes
    ]
    return table(
        name,
        title,
        "Mean scores in percent; slope by least squares in points for each further one, with its "
        "95 % interval over tasks.",
        ["condition", *map(str, numbers), "slope", "tasks"],
        rows,
    )


def similarity_section(
    records: Sequence[DebateRecord], *, beside_printed: bool, embedding: Embedding | None = None
) -> Section:
    """How alike final answers are, beside the score.

    Args:
        records: Complete debates.
        beside_printed: With the study's numbers.
        embedding: A model of sentences, for the study's own measure beside that of words.
    """
    rows: list[tuple[object, ...]] = [
        (
            cell.benchmark,
            cell.variant,
            "this run",
            cell.debates,
            one_number(cell.similarity, digits=3),
            *((one_number(cell.embedded, digits=3),) if embedding else ()),
            one_number(cell.score),
        )
        for cell in similarities(records, embedding)
    ]
    for one in printed("answer_similarity") if beside_printed else ():
        variant = one.cell["variant"]
        scores = [
            score for score in printed("accuracy", variant=variant) if score.where == one.where
        ]
        difference = printed("accuracy_difference", variant=variant)
        note = f" ({difference[0].note})" if difference and difference[0].note else ""
        rows.append(
            (
                one.cell["benchmark"],
                variant,
                f"printed{note}",
                None,
                *((one.text,) if embedding is None else ("–", one.text)),
                first_printed(scores),
            )
        )
    return Section(
        "similarity",
        "Similarity of answers",
        "Mean pairwise similarity of the agents' last final answers in a debate, beside the mean "
        "score. " + _LIKENESS[embedding is not None],
        tables=present(
            slim(
                "similarity",
                "Similarity and score by variant",
                "1 is the same words in the same proportions."
                + (f" Sentences: by the model {embedding.name}." if embedding else ""),
                [
                    *("benchmark", "variant", "source", "debates"),
                    *(("words", "sentences") if embedding else ("similarity",)),
                    "score",
                ],
                rows,
            )
        ),
    )


def challenge_section(records: Sequence[DebateRecord], *, beside_printed: bool) -> Section | None:
    """Judgements after the debate; `None` if there were none."""
    found = challenge_cells([record for record in records if record.status == "complete"])
    if not found:
        return None
    rows = []
    for cell in found:
        rate = 100 * cell.challenged / cell.judged if cell.judged else None
        beside = first_printed(printed("challenge_rate", setting=cell.setting))
        row = (cell.setting, cell.judged, cell.unread, one_number(rate))
        ends = (cell.rises, cell.falls, cell.stays)
        rows.append((*row, *ends, *((beside,) if beside_printed else ())))
    return Section(
        "challenge",
        "Challenge",
        "After the debate every agent judges an answer once for each setting, and gives another "
        "one if it disagrees.",
        tables=present(
            table(
                "challenge",
                "Challenged answers",
                "Rate: percent of readable judgements that challenge. Of these, the other answer "
                "scores more than the delivered one, less, or the same.",
                [
                    *("setting", "judged", "unreadable", "rate", "rises", "falls", "stays"),
                    *(("printed rate",) if beside_printed else ()),
                ],
                rows,
            )
        ),
    )
