"""Likeness of texts by sentence embeddings: hand counts, and a small model opened as a real one."""

import json
import math
from math import log

import numpy as np
import pytest

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn
from tutorsim.analysis.statistics.text_similarity_by_words_or_embeddings import (
    Embedding,
    embedded_similarities,
    open_embedding,
    role_collapse,
    text_similarities,
)
from tutorsim.errors import UsageError
from tutorsim.records import Proposal

WORDS = {"yes": (1.0, 0.0), "no": (0.0, 1.0), "perhaps": (0.6, 0.8)}


def by_hand(texts):
    return np.array([WORDS[text] for text in texts])


def test_a_panel_has_the_mean_cosine_of_its_pairs():
    """yes·no = 0, yes·perhaps = 0.6, no·perhaps = 0.8; an empty text is left out."""
    panels = [["yes", "no", "perhaps"], ["yes", "yes", " "], ["no"], []]
    found = embedded_similarities(panels, Embedding("m", by_hand))
    assert found[0] == pytest.approx((0 + 0.6 + 0.8) / 3)
    assert found[1:] == [1.0, None, None]


def test_no_text_asks_no_model():
    assert embedded_similarities([[], [""]], Embedding("m", by_hand)) == [None, None]


def test_a_folder_without_a_model_is_refused(tmp_path):
    pytest.importorskip("fastembed", reason="the extra `embeddings` is not installed")
    with pytest.raises(UsageError, match="holds no model"):
        open_embedding(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(UsageError, match="holds no model"):
        open_embedding(tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_max_tokens": true}')
    with pytest.raises(UsageError) as caught:
        open_embedding(tmp_path)
    assert "pooling_mode_mean_tokens" in caught.value.why


@pytest.fixture
def small_model(tmp_path):
    """A whole model of three words, whose sentence is the mean of its words: yes, no, perhaps."""
    onnx = pytest.importorskip("onnx", reason="there is no onnx to build a small model with")
    tokenizers = pytest.importorskip("tokenizers", reason="the extra is not installed")
    pytest.importorskip("fastembed", reason="the extra `embeddings` is not installed")
    vocabulary = {"[PAD]": 0, "[UNK]": 1, "yes": 2, "no": 3, "perhaps": 4}
    words = np.array([(0, 0), (0, 0), *(WORDS[w] for w in ("yes", "no", "perhaps"))], np.float32)
    whole = onnx.TensorProto.INT64
    shape = ["texts", "words"]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "words",
        [
            onnx.helper.make_tensor_value_info("input_ids", whole, shape),
            onnx.helper.make_tensor_value_info("attention_mask", whole, shape),
        ],
        [
            onnx.helper.make_tensor_value_info(
                "last_hidden_state", onnx.TensorProto.FLOAT, [*shape, 2]
            )
        ],
        [onnx.numpy_helper.from_array(words, "table")],
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    folder = tmp_path / "small"
    (folder / "onnx").mkdir(parents=True)
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=opset, ir_version=8),
        folder / "onnx" / "model.onnx",
    )
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.enable_padding(pad_id=0, pad_token="[PAD]")
    tokenizer.save(str(folder / "tokenizer.json"))
    for name, content in {
        "tokenizer_config.json": {"model_max_length": 16, "pad_token": "[PAD]"},
        "special_tokens_map.json": {"pad_token": "[PAD]", "unk_token": "[UNK]"},
        "config.json": {"pad_token_id": 0},
    }.items():
        (folder / name).write_text(json.dumps(content))
    return folder


def test_a_model_of_a_folder_is_opened_and_asked(small_model):
    """yes + perhaps = (0.8, 0.4), of length √0.8; its cosine with yes is 0.8 / √0.8."""
    embedding = open_embedding(small_model)
    assert embedding.name.startswith("small, ")
    found = embedded_similarities([["yes", "no"], ["yes", "yes perhaps"]], embedding)
    assert found == pytest.approx([0.0, math.sqrt(0.8)], abs=1e-5)


# --- Proposal similarity --------------------------------------------------------------------------


def test_the_same_words_are_one_and_other_words_are_nought():
    values = text_similarities([["Alpha, beta!", "beta alpha"], ["gamma", "delta x"]])
    assert values == [pytest.approx(1), 0.0]


def test_a_shared_word_counts_by_its_rarity():
    # "aa" in both of two texts: weight ln(3/3) + 1 = 1; "bb", "cc" in one: ln(3/2) + 1.
    rare = log(3 / 2) + 1
    assert text_similarities([["aa bb", "aa cc"]]) == [pytest.approx(1 / (1 + rare**2))]


def test_texts_without_words_are_left_out_and_one_text_has_no_similarity():
    values = text_similarities([["words here", "", "!"], [], ["one", "one", ""]])
    assert values == [None, None, pytest.approx(1)]


def test_role_collapse_is_per_condition_of_first_and_of_revised_drafts():
    same = dict.fromkeys(
        ("scaffolding", "misconception", "motivation", "metacognitive"), "the same"
    )
    turn = panel_turn("simple", {"scaffolding": "motivation"}, texts=same)
    apart = {"scaffolding": Proposal(text="one"), "motivation": Proposal(text="other")}
    revised = turn.model_copy(update={"proposals_final": apart})
    source = panel_source(panel_episode(turn), panel_episode(revised, task="t2"), panel_episode())
    found = role_collapse(source)
    assert list(found) == ["simple"]
    first, last = found["simple"]["initial"], found["simple"]["final"]
    assert (first.value, first.n) == (pytest.approx(1), 2)
    assert (last.value, last.n) == (pytest.approx(1 / 2), 2)


def test_a_run_without_panels_has_no_role_collapse():
    assert role_collapse(panel_source(panel_episode())) == {}
    assert role_collapse(panel_source()) == {}
