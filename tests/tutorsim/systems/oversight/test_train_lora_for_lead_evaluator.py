"""The path of a tuned lead: examples of a run, training, and a study that it leads."""

import json
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import polars as pl
import pytest

from tutorsim.analysis.runs.write_export_and_preflib_files import export_run
from tutorsim.analysis.systems.system_view_opened_run_and_cost import open_run
from tutorsim.errors import TaskFileError
from tutorsim.runner.find_and_check_recording import bundled_recording
from tutorsim.runner.replay_into_run_folder_in_several_processes import replay
from tutorsim.standin.messages_api_routes_and_replies import Thought, think, tokens
from tutorsim.systems.oversight import OVERSIGHT
from tutorsim.systems.oversight import train_lora_for_lead_evaluator as command
from tutorsim.systems.oversight.train_lora_for_lead_evaluator import (
    PACKAGES,
    Recipe,
    Tuned,
    read_examples,
    tune,
)

ROW = {"conversation": "bus", "split": "train", "system": "You label.", "user": "Hm?", "gold": "{}"}
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"


@pytest.fixture
def examples(tmp_path):
    path = tmp_path / "lead_examples.parquet"
    pl.DataFrame([ROW]).write_parquet(path)
    return path


@pytest.fixture
def write(tmp_path):
    def rows(*changes):
        path = tmp_path / "lead_examples.parquet"
        pl.DataFrame([{**ROW, **change} for change in changes]).write_parquet(path)
        return path

    return rows


def test_the_recipe_is_that_of_the_study():
    recipe = Recipe()
    assert (recipe.rank, recipe.alpha, recipe.dropout, recipe.learning_rate) == (16, 32, 0.05, 2e-4)
    assert (recipe.batch, recipe.accumulation, recipe.epochs, recipe.quantize) == (16, 2, 3, True)


def test_a_missing_package_is_named_with_how_to_install_it(examples, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    said = command.main([str(examples), "--model", "m", "-o", str(tmp_path / "out")])
    assert said == 2
    text = capsys.readouterr().err
    assert "The package torch is missing" in text
    assert "tutorsim[finetune]" in text


def test_weights_in_four_bits_alone_need_a_gpu(examples, tmp_path, monkeypatch, capsys):
    for name in PACKAGES:
        monkeypatch.setitem(sys.modules, name, MagicMock())
    sys.modules["torch"].cuda.is_available.return_value = False
    sys.modules["transformers"].AutoTokenizer.from_pretrained.side_effect = OSError("gone")
    for options, said in (([], "with --no-quantize"), (["--no-quantize"], "m cannot be loaded")):
        assert command.main([f"{examples}", "--model=m", "-o", f"{tmp_path / 'x'}", *options]) == 2
        assert said in capsys.readouterr().err


def test_a_folder_that_holds_anything_is_left_alone(examples, tmp_path, capsys):
    assert command.main([str(examples), "--model", "m", "-o", str(tmp_path)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [examples.name]


class Letters:
    """A tokenizer of one token a letter, with its chat template."""

    eos_token = "¶"

    def apply_chat_template(self, said, *, tokenize, add_generation_prompt):
        assert (tokenize, add_generation_prompt) == (False, True)
        return "".join(f"<{one['role']}>{one['content']}" for one in said) + "<assistant>"

    def __call__(self, text, *, add_special_tokens):
        assert not add_special_tokens
        return SimpleNamespace(input_ids=[ord(letter) for letter in text])


@pytest.mark.parametrize(("longest", "trained", "too_long"), [(43, 1, 1), (44, 2, 0), (None, 2, 0)])
def test_examples_that_fit_are_trained_on_and_replies_alone_are_scored(
    longest, trained, too_long, write, tmp_path, monkeypatch, capsys
):
    prompt = "<system>You label.<user>Hm?<assistant>"
    path = write({}, {"user": "Hmm?", "gold": "{12}"}, {"split": "test", "conversation": "ribbon"})
    base = SimpleNamespace(config=SimpleNamespace(max_position_embeddings=longest))
    seen = {}

    def learnt(base, tokenizer, rows, output, recipe):
        output.mkdir()
        seen.update(rows, recipe=recipe)
        counts = {name: len(found) for name, found in rows.items()}
        return Tuned(counts, 0, 3, {"train": 2.0, "test": 2.5}, {"train": 1.5, "test": 2.25})

    monkeypatch.setattr(command, "_check_packages", lambda: None)
    monkeypatch.setattr(command, "_loaded", lambda model, recipe: (Letters(), base))
    monkeypatch.setattr(command, "_trained", learnt)
    monkeypatch.setattr(command, "version", lambda name: "1")
    out, options = tmp_path / "out", ("--max-steps", "1", "--epochs", "2", "--no-quantize")
    assert command.main([str(path), "--model", "m", "-o", str(out), *options]) == 0
    assert seen["recipe"] == Recipe(epochs=2, max_steps=1, quantize=False)
    first = seen["train"][0]
    assert "".join(map(chr, first["input_ids"])) == f"{prompt}{{}}¶"
    assert first["labels"] == [-100] * len(prompt) + [ord(letter) for letter in "{}¶"]
    assert capsys.readouterr().out.splitlines() == [
        f"Examples: {trained} to train on, 1 to test on; {too_long} too long for the model.",
        "Loss of train: 2.0000 before, 1.5000 after 3 steps.",
        "Loss of test: 2.5000 before, 2.2500 after 3 steps.",
        f"Adapter: {out}",
    ]
    account = json.loads((out / "tuning.json").read_text("utf-8"))
    assert (account["base"], account["too_long"], account["steps"]) == ("m", too_long, 3)


def test_examples_of_which_none_fits_are_refused(examples, tmp_path, monkeypatch, capsys):
    base = SimpleNamespace(config=SimpleNamespace(max_position_embeddings=10))
    monkeypatch.setattr(command, "_check_packages", lambda: None)
    monkeypatch.setattr(command, "_loaded", lambda model, recipe: (Letters(), base))
    out = tmp_path / "out"
    assert command.main([str(examples), "--model", "m", "-o", str(out)]) == 2
    assert "No example fits into the 10 tokens that m reads" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main([str(examples), "--model", "m", "-o", str(out), "--epochs", "0"])


# --- With the packages, on a tiny model of random weights -------------------------------------


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The examples of the bundled study, of the condition with the shortest prompts."""
    folder = bundled_recording(OVERSIGHT.demo)
    assert folder is not None
    log, out = tmp_path_factory.mktemp("log"), tmp_path_factory.mktemp("tables")
    replay(folder, log_dir=log, workers=1)
    export_run(log, out, "parquet")
    path = out / "lead_examples.parquet"
    table = pl.read_parquet(path).filter(condition="single")
    split = pl.when(conversation="bus").then(pl.lit("test")).otherwise(pl.lit("train"))
    table.with_columns(split=split).write_parquet(path)
    return path


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, exported):
    """Folder of a chat model with random weights; nothing is downloaded."""
    for name in PACKAGES:
        pytest.importorskip(name, reason=f"{name} comes with tutorsim[finetune] only")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed

    set_seed(1)
    table = pl.read_parquet(exported)
    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    words.train_from_iterator(
        [*table["user"], *table["gold"]],
        trainers.BpeTrainer(
            vocab_size=600,
            special_tokens=["<end>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=600, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, max_position_embeddings=2000, eos_token_id=0,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.mark.costly
@pytest.mark.filterwarnings("ignore")
def test_two_steps_on_a_tiny_model_lower_the_loss_and_keep_the_base(tiny, exported, tmp_path):
    weights = (tiny / "model.safetensors").read_bytes()
    tuned = tune(exported, str(tiny), tmp_path / "lead", Recipe(max_steps=2, quantize=False))
    assert tuned.steps == 2
    assert tuned.after["train"] < tuned.before["train"]
    assert tuned.examples == {"train": 14, "test": 2}
    assert set(tuned.before) == set(tuned.after) == {"train", "test"}
    assert (tiny / "model.safetensors").read_bytes() == weights
    account = json.loads((tmp_path / "lead" / "tuning.json").read_text(encoding="utf-8"))
    assert account["recipe"]["rank"] == 16
    assert account["after"] == tuned.after
    adapter = json.loads((tmp_path / "lead" / "adapter_config.json").read_text(encoding="utf-8"))
    assert (adapter["r"], adapter["lora_alpha"], adapter["lora_dropout"]) == (16, 32, 0.05)


@pytest.mark.costly
@pytest.mark.filterwarnings("ignore")
def test_bad_models_are_refused_with_what_to_do(tiny, exported, tmp_path, capsys):
    from transformers import AutoTokenizer

    def said(model, *options):
        out = str(tmp_path / "lead")
        assert command.main([str(exported), "--model", str(model), "-o", out, *options]) == 2
        return capsys.readouterr().err

    assert "cannot be loaded" in said(tmp_path, "--no-quantize")
    short = tmp_path / "short"
    short.mkdir()
    for path in tiny.iterdir():
        (short / path.name).write_bytes(path.read_bytes())
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    tokenizer.chat_template = None
    (short / "chat_template.jinja").unlink()
    tokenizer.save_pretrained(short)
    assert "has no chat template" in said(short, "--no-quantize")


STUDY = """
name = "tuned"
system = "oversight"
seed = 1
conditions = ["no_debate", "single"]
[benchmarks.mrbench]
sample = 1
[models]
lead = "tuned-lead"
"""


@pytest.mark.costly
@pytest.mark.loopback
@pytest.mark.filterwarnings("ignore")
def test_a_tuned_model_behind_a_relay_leads_a_study_in_recorded_calls(
    tiny, exported, tmp_path, shell, monkeypatch, stand_ins
):
    from peft import AutoPeftModelForCausalLM
    from transformers import AutoTokenizer

    folder = tmp_path / "lead"
    tune(exported, str(tiny), folder, Recipe(max_steps=1, quantize=False))
    model = AutoPeftModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def generated(system, user):
        said = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        asked = tokenizer.apply_chat_template(
            said, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        made = model.generate(**asked, max_new_tokens=12, do_sample=False)
        return "tuned: " + tokenizer.decode(made[0, asked["input_ids"].shape[1] :])

    def relay(body, chance, *, steady=None):
        if body["model"] != "tuned-lead":
            return think(body, chance, steady=steady)
        text = generated(body["system"], body["messages"][0]["content"])
        return Thought(text, tokens(body["system"]), tokens(text), "end_turn")

    monkeypatch.setattr("tutorsim.standin.messages_api_routes_and_replies.think", relay)
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    recording, log = tmp_path / "recording", tmp_path / "log"
    server = stand_ins()
    ran = shell("run", tmp_path / "study.toml", "--log-dir", log, "--cassette-dir", recording)
    assert ran.code == 0, ran.err
    records = open_run(log).episodes
    assert len(records) == 4
    for record in records:
        assert record.lead.raw.startswith("tuned: ")
        assert record.label is None  # random weights answer nothing that can be read
        assert record.judge is None or not record.judge.raw.startswith("tuned: ")
    assert server.requests == sum(len(record.calls) for record in records)
    assert shell("verify", recording).code == 0


# --- Finetune examples ----------------------------------------------------------------------------


def test_examples_are_read_by_their_split(write):
    found = read_examples(write({}, {"gold": "{1}"}, {"split": "test", "conversation": "ribbon"}))
    assert [one.gold for one in found["train"]] == ["{}", "{1}"]
    assert [one.conversation for one in found["test"]] == ["ribbon"]


def test_a_dialogue_in_both_splits_is_refused_by_its_name(write):
    with pytest.raises(TaskFileError, match="dialogue 'bus' are in both") as error:
        read_examples(write({}, {"split": "test"}))
    assert "labels that it has seen" in error.value.why


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"split": "dev"}, "line 1, field split: 'dev' is neither"),
        ({"gold": ""}, "line 1, field gold"),
        ({"user": None}, "line 1, field user"),
        ({"split": "test"}, "no example is of the split train"),
    ],
)
def test_a_table_that_cannot_be_learnt_from_is_refused_by_line_and_field(write, change, named):
    with pytest.raises(TaskFileError, match=named):
        read_examples(write(change))


def test_a_file_that_is_no_parquet_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("conversation,split\n")
    with pytest.raises(TaskFileError, match="cannot be read as Parquet"):
        read_examples(tmp_path / "x.csv")
