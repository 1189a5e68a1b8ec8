"""Train an adapter for the lead evaluator.

    python -m tutorsim.systems.oversight.train_lora_for_lead_evaluator EXAMPLES --model M -o DIR

EXAMPLES is `lead_examples.parquet` of `tutorsim export`, M a chat model (a folder, or a name on
the Hugging Face hub). An adapter of low rank is trained on the replies that the gold labels give,
over a base in four bits; the base itself is never changed. Needs `pip install
'tutorsim[finetune]'`. Serve base and adapter behind a relay that speaks the Messages API, and name
it as `models.lead` of a study: its calls are recorded like any others.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from tutorsim.errors import FolderError, TaskFileError, TutorsimError, UsageError
from tutorsim.regular_files_and_digests import read_named
from tutorsim.tasks.read_task_files_jsonl_parquet_sciq_humaneval import Row, read_parquet, refuse

PACKAGES: Final = ("torch", "transformers", "peft", "accelerate")
_UNSCORED: Final = -100
"""A target that no loss is taken of."""
SPLITS: Final = ("train", "test")
_COLUMNS: Final = ("conversation", "split", "system", "user", "gold")


# --- Examples -------------------------------------------------------------------------------------


class LeadExample(NamedTuple):
    """One call to the lead, and the reply that the gold labels give."""

    conversation: str
    split: str
    """`train` or `test`."""
    system: str
    user: str
    gold: str
    """A JSON object as the lead is asked for."""


def read_examples(path: Path) -> Mapping[str, tuple[LeadExample, ...]]:
    """Read the examples by split.

    Raises `TaskFileError` if the file cannot be read, a column is missing or holds no text, nothing
    is there to train on, or the replies to one dialogue are in both splits: the labels of a test
    dialogue would then be learnt.
    """
    found = [_example(row) for row in read_parquet(path)]
    splits = {name: tuple(one for one in found if one.split == name) for name in SPLITS}
    _check_splits(path, splits["train"], splits["test"])
    return splits


def _example(row: Row) -> LeadExample:
    values = [row.fields.get(name) for name in _COLUMNS]
    for name, value in zip(_COLUMNS, values, strict=True):
        if not isinstance(value, str) or not value:
            refuse(row, name, "it is missing, empty or no text")
    example = LeadExample(*map(str, values))
    if example.split not in SPLITS:
        refuse(row, "split", f"{example.split!r} is neither train nor test")
    return example


def _check_splits(path: Path, train: Sequence[LeadExample], test: Sequence[LeadExample]) -> None:
    both = {one.conversation for one in train} & {one.conversation for one in test}
    if both:
        raise TaskFileError(
            f"{path}: replies to the dialogue {min(both)!r} are in both splits.",
            why="A lead tuned on some of them would be tested on labels that it has seen.",
            hint="Export the run again with `tutorsim export`, which splits by dialogue, or join "
            "tables of several runs without changing their column `split`.",
        )
    if not train:
        raise TaskFileError(
            f"{path}: no example is of the split train.",
            why="About a fifth of the dialogues is kept for testing; of very few, all can be.",
            hint="Export a run over more dialogues.",
        )


# --- Training -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """How the adapter is trained. Defaults are those of the oversight study."""

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.05
    learning_rate: float = 2e-4
    """Learning rate at the start; it falls along a cosine."""
    batch: int = 16
    """Examples of one forward pass."""
    accumulation: int = 2
    """Forward passes of one step."""
    epochs: int = 3
    max_steps: int | None = None
    """Ends the training after so many steps, whatever `epochs` says."""
    quantize: bool = True
    """The base is held in 4-bit NF4, which needs a GPU."""
    seed: int = 0


class Tuned(NamedTuple):
    """What came of a training."""

    examples: Mapping[str, int]
    """Split → examples used."""
    too_long: int
    """Examples left out, as they are longer than the model's context."""
    steps: int
    before: Mapping[str, float]
    """Split → mean loss per token of the gold replies before training; no entry if empty."""
    after: Mapping[str, float]


def tune(examples: Path, model: str, output: Path, recipe: Recipe | None = None) -> Tuned:
    """Train an adapter of a chat model (a folder or a name) on `lead_examples.parquet`.

    It is written with its tokenizer and `tuning.json` into a new folder, or an empty one. Refused
    are examples that cannot be used, a folder that holds anything, and a missing package, GPU,
    model or chat template.
    """
    recipe = recipe or Recipe()
    splits = read_examples(examples)
    _check_free(output)
    _check_packages()
    tokenizer, base = _loaded(model, recipe)
    longest = getattr(base.config, "max_position_embeddings", None)
    tokens = {name: [_tokens(tokenizer, one) for one in found] for name, found in splits.items()}
    rows = {name: [one for one in found if _fits(one, longest)] for name, found in tokens.items()}
    if not rows["train"]:
        raise UsageError(
            f"No example fits into the {longest} tokens that {model} reads.",
            why="What the lead is asked after a debate holds the whole debate.",
            hint="Tune a model with a longer context, or on a run of the condition `single`.",
        )
    found = _trained(base, tokenizer, rows, output, recipe)
    tuned = found._replace(too_long=sum(map(len, tokens.values())) - sum(found.examples.values()))
    _write_account(output, examples, model, recipe, tuned)
    return tuned


def _check_free(output: Path) -> None:
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise FolderError(
            f"{output} is there already.",
            why="An adapter is never mixed with other files.",
            hint="Name a new folder.",
        )


def _check_packages() -> None:
    for name in PACKAGES:
        try:
            import_module(name)
        except ImportError as error:
            raise UsageError(
                f"The package {name} is missing.",
                why="Training needs packages that nothing else of tutorsim does.",
                hint="Install them with `pip install 'tutorsim[finetune]'`.",
            ) from error


def _loaded(model: str, recipe: Recipe) -> tuple[Any, Any]:
    """The tokenizer, and the base with a fresh adapter."""
    import torch
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
    from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, set_seed

    if recipe.quantize and not torch.cuda.is_available():
        raise UsageError(
            "There is no GPU to hold the model in four bits.",
            why="Weights in 4-bit NF4 are computed with on a GPU only.",
            hint="Train elsewhere, or with --no-quantize, which takes memory and time.",
        )
    set_seed(recipe.seed)  # the adapter begins with drawn weights
    try:
        tokenizer = AutoTokenizer.from_pretrained(model)
        base = AutoModelForCausalLM.from_pretrained(
            model,
            quantization_config=BitsAndBytesConfig(
                load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
            )
            if recipe.quantize
            else None,
        )
    except (OSError, ValueError, ImportError) as error:
        raise UsageError(
            f"The model {model} cannot be loaded.",
            why=" ".join(str(error).split())[:300],
            hint="Give the folder of a causal language model with its tokenizer, or its name on "
            "the hub.",
        ) from error
    if tokenizer.chat_template is None:
        raise UsageError(
            f"The model {model} has no chat template.",
            why="Nothing says how a system text and a message are put to it, here or in a relay.",
            hint="Tune the chat or instruct version of the model.",
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if recipe.quantize:
        base = prepare_model_for_kbit_training(base)
    adapter = LoraConfig(
        task_type="CAUSAL_LM",
        target_modules="all-linear",
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        lora_dropout=recipe.dropout,
    )
    return tokenizer, get_peft_model(base, adapter)


def _tokens(tokenizer: Any, example: LeadExample) -> dict[str, list[int]]:
    """Prompt and gold reply as the model sees them; only the reply has targets."""
    said = [
        {"role": "system", "content": example.system},
        {"role": "user", "content": example.user},
    ]
    prompt = tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True)
    asked, replied = (
        tokenizer(text, add_special_tokens=False).input_ids
        for text in (prompt, example.gold + tokenizer.eos_token)
    )
    return {"input_ids": asked + replied, "labels": [_UNSCORED] * len(asked) + replied}


def _fits(tokens: Mapping[str, Sequence[int]], longest: int | None) -> bool:
    return longest is None or len(tokens["input_ids"]) <= longest


def _trained(
    model: Any,
    tokenizer: Any,
    rows: Mapping[str, list[dict[str, list[int]]]],
    output: Path,
    recipe: Recipe,
) -> Tuned:
    from transformers import DataCollatorForSeq2Seq, Trainer, TrainingArguments

    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(output),
            per_device_train_batch_size=recipe.batch,
            per_device_eval_batch_size=recipe.batch,
            gradient_accumulation_steps=recipe.accumulation,
            learning_rate=recipe.learning_rate,
            lr_scheduler_type="cosine",
            num_train_epochs=recipe.epochs,
            max_steps=recipe.max_steps or -1,
            seed=recipe.seed,
            save_strategy="no",
            report_to=[],
        ),
        train_dataset=rows["train"],
        data_collator=DataCollatorForSeq2Seq(tokenizer, label_pad_token_id=_UNSCORED),
    )

    def losses() -> dict[str, float]:
        used = {name: found for name, found in rows.items() if found}
        return {name: trainer.evaluate(found)["eval_loss"] for name, found in used.items()}

    with redirect_stdout(sys.stderr):  # the trainer prints as it goes
        before = losses()
        trainer.train()
        after = losses()
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)
    counts = {name: len(found) for name, found in rows.items()}
    return Tuned(counts, 0, trainer.state.global_step, before, after)


def _write_account(output: Path, examples: Path, model: str, recipe: Recipe, tuned: Tuned) -> None:
    """Say beside the adapter what it was trained on, and how."""
    account = {
        "base": Path(model).name if Path(model).is_dir() else model,
        "examples_sha256": sha256(read_named(examples)).hexdigest(),
        "recipe": asdict(recipe),
        **tuned._asdict(),
        "packages": {name: version(name) for name in PACKAGES},
    }
    text = json.dumps(account, indent=1) + "\n"
    (output / "tuning.json").write_text(text, encoding="utf-8")


def _recipe(arguments: argparse.Namespace) -> Recipe:
    return Recipe(
        epochs=arguments.epochs,
        max_steps=arguments.max_steps,
        quantize=arguments.quantize,
        seed=arguments.seed,
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tutorsim.systems.oversight.train_lora_for_lead_evaluator",
        description="Tune a lead evaluator on the table lead_examples of an exported run.",
    )
    parser.add_argument("examples", type=Path, help="lead_examples.parquet of `tutorsim export`")
    parser.add_argument("--model", required=True, help="chat model: a folder, or a name on the hub")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help="new folder of the adapter"
    )
    parser.add_argument("--epochs", type=_positive, default=3, help="default: 3")
    parser.add_argument("--max-steps", type=_positive, help="end after so many steps")
    parser.add_argument("--seed", type=int, default=0, help="of the draws; default: 0")
    parser.add_argument(
        "--no-quantize",
        dest="quantize",
        action="store_false",
        help="hold the base in full width, for machines without a GPU",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    given = _parser().parse_args(arguments)
    try:
        tuned = tune(given.examples, given.model, given.output, _recipe(given))
    except TutorsimError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write("\n".join(_told(tuned, given.output)) + "\n")
    return 0


def _told(tuned: Tuned, output: Path) -> list[str]:
    return [
        f"Examples: {tuned.examples['train']} to train on, {tuned.examples['test']} to test on; "
        f"{tuned.too_long} too long for the model.",
        *(
            f"Loss of {split}: {tuned.before[split]:.4f} before, {tuned.after[split]:.4f} after "
            f"{tuned.steps} steps."
            for split in tuned.before
        ),
        f"Adapter: {output}",
    ]


if __name__ == "__main__":
    sys.exit(main())
