"""What may have been meant by words that other programs know: a flag or key that the verb at hand has."""

import dataclasses

import pytest

from orrery.cli.console import judge
from orrery.cli.program import VERBS, build, run
from orrery.cli.suggestions import VERBS_ELSEWHERE, spelled
from orrery.errors import UsageError
from orrery.recipes.config import Recipe
from orrery.recipes.read import check_recipe, from_flags
from orrery.recipes.word_vectors import WordVectorRecipe
from orrery.schema.keys import Known, has_key, keys
from orrery.schema.other_names import OTHER_NAMES, meant, plain
from orrery.tuning.lora import LoRA
from pages import ROOT

EXAMPLE = ROOT / "docs/examples/countries.yaml"
WRITING = {
    "--temp": "--temperature", "--t": "--temperature", "--max_tokens": "--max-new-tokens",
    "--max-tokens": "--max-new-tokens", "--maxTokens": "--max-new-tokens", "--n-predict": "--max-new-tokens",
    "--max-length": "--max-new-tokens", "-n": "--max-new-tokens", "--num-predict": "--max-new-tokens",
    "--topk": "--top-k", "--topp": "--top-p", "--nucleus": "--top-p", "--typical": "--typical-p",
    "--repeat-penalty": "--repetition-penalty", "--rep-pen": "--repetition-penalty", "--beams": "--num-beams",
    "--beam-size": "--num-beams", "--num-return-sequences": "--answers", "--best-of": "--answers",
    "--stop-sequences": "--stop", "--stop-strings": "--stop", "--reverse-prompt": "--stop",
    "--guided-json": "--json-schema", "--guided-regex": "--regex", "--gbnf": "--grammar", "--random-seed": "--seed",
    "--manual-seed": "--seed", "--torch-dtype": "--dtype", "--ngl": "--device", "-ngl": "--device",
    "--draft-model": "--draft", "--speculative-model": "--draft", "--device-map": "--device",
    "--tempratur": "--temperature",
    "--bad-words-ids": "--bad-word",
}  # fmt: skip
TRAINING = {
    "--lr": "training.optimizer.rate", "--learning-rate": "training.optimizer.rate",
    "--learning_rate": "training.optimizer.rate", "--batch_size": "batches.size", "--batch-size": "batches.size",
    "--per_device_train_batch_size": "batches.size", "--epochs": "training.steps",
    "--num-train-epochs": "training.steps", "--max-steps": "training.steps", "--max_iters": "training.steps",
    "--warmup-steps": "training.schedule.warmup", "--lr-scheduler-type": "training.schedule.kind",
    "--weight-decay": "training.optimizer.weight_decay", "--max-grad-norm": "training.clip",
    "--gradient-accumulation-steps": "training.micro_batch", "--bf16": "training.precision",
    "--fp16": "training.precision", "--max-seq-length": "batches.length", "--block_size": "batches.length",
    "--eval-steps": "evaluation.every", "--save-steps": "checkpoints.every", "--save-total-limit": "checkpoints.keep",
    "--logging-steps": "logging.every", "--metric-for-best-model": "evaluation.best",
    "--report-to": "logging.observers",
    "--load-best-model-at-end": "training.final", "--early-stopping-patience": "evaluation.patience",
    "--model-name-or-path": "model.from", "--dataset-name": "data.train", "--validation-file": "data.val",
    "--label-smoothing-factor": "objective.label_smoothing", "--lora-r": "model.adapter.rank",
    "--lora-alpha": "model.adapter.alpha", "--target-modules": "model.adapter.targets",
    "--vocab-size": "tokenizer.vocabulary", "--optim": "training.optimizer.kind",
    "--adam-beta1": "training.optimizer.betas",
    "--training.lr": "training.optimizer.rate", "--training.learning_rate": "training.optimizer.rate",
    "--optimizer.lr": "training.optimizer",
    "--optimizer": "training.optimizer", "--dropout": "model.dropout", "--steps": "training.steps",
}  # fmt: skip
OF_THE_VERB = {
    "--output-dir": "output",
    "--resume-from-checkpoint": "resume",
    "--resum": "resume",
    "--force": "overwrite",
}


def told(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(words) == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith("error: ")
    return hint


@pytest.mark.parametrize("word", WRITING)
def test_words_of_writing_are_understood(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    hint = told(["generate", "m", "text", word, "3"], capsys)
    assert hint == f"hint: did you mean {WRITING[word]}? see 'orrery generate --help'"


@pytest.mark.parametrize("word", TRAINING)
def test_words_of_training_are_understood(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", str(EXAMPLE), word, "3"]) == 2
    said = capsys.readouterr().err
    if "." in word:
        assert f"unknown key; did you mean '{TRAINING[word]}'?" in said
    else:
        assert f"hint: did you mean --{TRAINING[word]}? see 'orrery train --help'" in said
    assert has_key(Recipe, TRAINING[word])


@pytest.mark.parametrize("word", OF_THE_VERB)
def test_flags_of_the_verb_stand_beside_keys(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"did you mean --{OF_THE_VERB[word]}?" in told(["train", str(EXAMPLE), word, "3"], capsys)


def test_a_place_without_a_flag_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "MODEL stands in its place, without a flag" in told(["generate", "-m", "x", "text"], capsys)
    assert "PROMPT stands in its place" in told(["generate", "m", "--prompt", "text"], capsys)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["translate", "m", "--fiel", "x"], "did you mean --file?"),
        (["embed", "m", "--labls", "x"], "see 'orrery embed --help'"),
        (["classify", "m", "--labls", "x"], "did you mean --labels?"),
        (["evaluate", "m", "perplexity", "--ctx", "3"], "did you mean --length? see 'orrery evaluate --help'"),
        (["serve", "m", "--max-num-seqs", "3"], "did you mean --most-rows?"),
        (["serve", "m", "--served-model-name", "x"], "did you mean --name?"),
        (["quantise", "m", "o", "--load-in-4bit"], "did you mean --bits?"),
        (["tokenizer", "train", "x", "-o", "y", "--vocab-size", "8"], "did you mean --vocabulary?"),
        (["finetune", "classification", "--model", "m", "--train-file", "x"], "--train FILE"),
        (["info", "--zzz"], "see 'orrery info --help'"),
    ],
)
def test_other_verbs(words: list[str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert hint in told(words, capsys)


def test_nothing_far_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(["generate", "m", "text", "--qqqq", "3"], capsys) == "hint: see 'orrery generate --help'"


@pytest.mark.parametrize("word", VERBS_ELSEWHERE)
def test_a_verb_of_another_program_is_understood(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"did you mean 'orrery {VERBS_ELSEWHERE[word]}'?" in told([word, "x"], capsys)
    assert VERBS_ELSEWHERE[word].split()[0] in VERBS
    assert word not in VERBS


def names_here() -> set[str]:
    return {one for names in OTHER_NAMES.values() for one in names}


def test_each_word_leads_to_something_that_there_is() -> None:
    """No name is one that no verb and no recipe has, and no word leads nowhere."""
    flags = set()
    for name in VERBS:
        app = build([name])[name]
        for each in [app, *(app[one] for one in app if not one.startswith("-"))]:
            if each.default_command:
                flags |= set(spelled(each.assemble_argument_collection()))
    flags |= {"length", "shots", "file"}  # of the tasks of evaluate
    adapter = {f"model.adapter.{field.name}" for field in dataclasses.fields(LoRA)}
    recipe = {*keys(Recipe), *keys(WordVectorRecipe), *adapter}
    assert names_here() - flags - recipe == set()
    assert len(OTHER_NAMES) > 300


def test_a_key_is_told_by_its_schema_alone() -> None:
    assert meant("lr", Known(schemas=(WordVectorRecipe,))) == "training.rate"
    assert meant("epochs", Known(schemas=(WordVectorRecipe,))) == "training.epochs"
    assert meant("epochs", Known(schemas=(Recipe,))) == "training.steps"
    assert meant("lr", Known(flags=("seed",))) is None
    assert plain("--perDeviceTrainBatchSize") == "per_device_train_batch_size"


def test_python_is_told_the_same() -> None:
    with pytest.raises(UsageError) as refused:
        check_recipe({"training": {"lr": 1}}, "x")
    assert "did you mean 'training.optimizer.rate'" in refused.value.message
    with pytest.raises(UsageError) as refused:
        list(from_flags(["--lr", "3"], {"training"}, (Recipe,)))
    assert refused.value.hint == "did you mean --training.optimizer.rate?"
    assert judge(refused.value).hint == refused.value.hint
