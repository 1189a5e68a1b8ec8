"""From published files to scores: counts, trivial baselines, and dialogues as clusters."""

import json
import os
from collections import Counter
from itertools import chain, repeat
from pathlib import Path

import pytest

from tutorsim.analysis.systems.oversight.exported_tables_lead_examples_recounted_labels import (
    split_of,
)
from tutorsim.analysis.systems.oversight.label_accuracy import Judged, baselines, by_text, evaluate
from tutorsim.records.gold_labels_of_one_annotation import gold_labels
from tutorsim.records.oversight import OversightRecord
from tutorsim.systems.oversight.items_to_label_from_mrbench_or_audit_files import (
    read_mrbench,
    read_mrbench_text,
    sampled,
)

SHARED = Path(os.environ.get("TUTORSIM_PUBLISHED_DATA", "nowhere"))
TUTORS = ["Sonnet", "Llama318B", "Llama31405B", "GPT4", "Mistral", "Expert", "Gemini", "Phi3"]
SOME = "To some extent"


def second_version():
    """A file with the counts of version 2: 200 rows, 195 conversations, 1,655 replies.

    Five conversations come twice with nine replies each (45 pairs, 6 of equal text); of the others
    45 have nine replies and 145 have eight. Texts are made up.
    """
    names = [f"twice-{i}" for i in range(5)] * 2 + [f"once-{i}" for i in range(190)]
    sizes = [9] * 10 + [9] * 45 + [8] * 145
    mistakes = chain(repeat("Yes", 1326), repeat(SOME, 96), repeat("No", 233))
    # No guidance: 304. Some: 343 and 48 that reveal the answer. Yes: 776 and 184 that reveal it.
    guidance = [
        *[("No", "No")] * 304,
        *[(SOME, "No")] * 343,
        *[(SOME, "Yes (and the answer is correct)")] * 48,
        *[("Yes", "No")] * 776,
        *[("Yes", "Yes (but the answer is incorrect)")] * 184,
    ]
    given = zip(mistakes, guidance, strict=True)
    rows = []
    for place, (name, size) in enumerate(zip(names, sizes, strict=True)):
        replies = {}
        for number, tutor in enumerate([*TUTORS, "Novice"][:size]):
            mistake, (guides, reveals) = next(given)
            same = place < 10 and place % 5 == 0 and number < 6
            replies[tutor] = {
                "response": f"Reply {number}." if same else f"Reply {number} in row {place}.",
                "annotation": {"Mistake_Identification": mistake, "Mistake_Location": "Yes",
                               "Revealing_of_the_Answer": reveals, "Providing_Guidance": guides,
                               "Actionability": "No", "humanlikeness": "Yes", "Coherence": "Yes",
                               "Tutor_Tone": "Neutral"},
            }  # fmt: skip
        history = (
            f"Tutor: Of {name}?\n\xa0Student: So.\n More of it.\n \xa0Tutor: Go on.\nStudent: 5."
        )
        rows.append(
            {"conversation_id": name, "conversation_history": history, "Ground_Truth_Solution": "4",
             "anno_llm_responses": replies},
        )  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def second(tmp_path_factory):
    path = tmp_path_factory.mktemp("published") / "MRBench_V2.json"
    path.write_text(json.dumps(second_version()), encoding="utf-8")
    return read_mrbench(path)


def judged(items, *, mistake_map="lenient", guidance_map="plain"):
    found = []
    for item in items:
        gold = gold_labels(item.annotation, mistake_map=mistake_map, guidance_map=guidance_map)
        pair = (gold.mistake, gold.guidance)
        found.append(Judged(item.task_id, item.conversation, pair, (1, 2)))
    return found


def rounded(scores):
    return tuple(round(one.value, 4) for one in scores.metrics.values())


def test_a_file_with_the_counts_of_the_second_version(second):
    assert len(second) == 1655
    assert len({item.conversation for item in second}) == 195
    assert len({(item.conversation, item.occurrence) for item in second}) == 200
    pairs = Counter((item.conversation, item.tutor) for item in second)
    assert sum(count == 2 for count in pairs.values()) == 45
    texts = Counter((item.conversation, item.tutor, item.reply) for item in second)
    assert sum(count == 2 for count in texts.values()) == 6
    assert len({item.task_id for item in second}) == 1655


def test_its_trivial_baselines(second):
    found = baselines(judged(second))
    assert rounded(found["always yes"]) == (0.8592, 0.4621)
    assert rounded(found["always effective"]) == (0.5801, 0.2447)
    revealed = baselines(judged(second, guidance_map="revealed_is_zero"))
    assert rounded(revealed["always effective"]) == (0.4689, 0.2128)
    counts = Counter(i.gold[1] for i in judged(second, guidance_map="revealed_is_zero"))
    assert (counts[0], counts[1], counts[2]) == (536, 343, 776)


def test_its_intervals_are_over_195_conversations(second):
    found = evaluate({"all": judged(second)}, metrics=["guidance_accuracy"])["all"]
    method = found.metrics["guidance_accuracy"].interval.method
    assert method == "Wilson score over 195 dialogues"


@pytest.mark.costly
@pytest.mark.parametrize(
    ("name", "maps", "baseline", "expected"),
    [
        ("mrbench_v3_devset.json", {"mistake_map": "strict"}, "always yes", (0.7803, 0.4383)),
        ("mrbench_v3_devset.json", {}, "always effective", (0.5683, 0.2416)),
    ],
)
def test_trivial_baselines_of_published_files(name, maps, baseline, expected):
    if not (SHARED / name).is_file():
        pytest.skip(f"{name} is not on this machine")
    found = baselines(judged(read_mrbench(SHARED / name), **maps))
    assert rounded(found[baseline]) == expected


def rows_of(*named):
    """A file of dialogues: id and text, with one reply each."""
    return [
        {
            "conversation_id": name,
            "conversation_history": f"Tutor: {text}?\nStudent: 5",
            "tutor_responses": {"GPT4": {"response": "Is it?"}},
        }
        for name, text in named
    ]


def logged(items):
    """Items as a run logs them."""
    return [
        OversightRecord(
            episode_id=f"mrbench.{item.task_id}.none.single",
            benchmark="mrbench",
            task_id=item.task_id,
            variant="none",
            condition="single",
            conversation=item.conversation,
            dialogue=tuple((turn.speaker, turn.text) for turn in item.dialogue),
        )
        for item in items
    ]


def test_a_dialogue_under_two_ids_is_one_dialogue_told_by_its_text():
    rows = rows_of(("7_1", "2 + 2"), ("7_2", "2  + 2"), ("8_1", "3 + 3"), ("8_2", "3 + 4"))
    items = read_mrbench_text(json.dumps(rows), "test.json")
    assert [r.conversation for r in by_text(logged(items))] == ["7_1", "7_1", "8_1", "8_2"]
    for seed in range(9):  # both are drawn, or neither
        drawn = {item.conversation for item in sampled(items, 1, seed=seed)}
        assert drawn in ({"7_1", "7_2"}, {"8_1"}, {"8_2"})
    one, two, *_ = logged(items)
    assert split_of(one.dialogue_text) == split_of(two.dialogue_text)


@pytest.mark.costly
def test_the_published_development_set_has_287_dialogues_under_300_ids():
    path = SHARED / "mrbench_v3_devset.json"
    if not path.is_file():
        pytest.skip(f"{path.name} is not on this machine")
    records = logged(read_mrbench(path))
    assert len({record.conversation for record in records}) == 300
    told = by_text(records)
    assert len({record.conversation for record in told}) == 287
    splits = {(record.conversation, split_of(record.dialogue_text)) for record in told}
    assert len(splits) == 287
