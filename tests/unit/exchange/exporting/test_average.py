"""The mean of weights: against numpy in float64, loaded here and by transformers, refused by name, never half there."""

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

import orrery
import tiny_models
from orrery.checkpoints.store import CheckpointStore
from orrery.checkpoints.tensors import read_tensors
from orrery.cli.program import run as program
from orrery.errors import ModelFileError, UsageError
from orrery.exchange.exporting.quantised import quantise
from orrery.exchange.reading.read import read
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving.own import save_own
from orrery.exchange.saving.save import save_model
from orrery.runs.train import train
from orrery.text.train import train_tokenizer
from outputs_toy import TRAIN
from programs import DEVNULL, PIPE, Program

SENTENCES = [("ein hund", "a dog"), ("eine katze", "a cat"), ("der hund sitzt", "the dog sits"), ("katze", "cat")] * 4


def recipe(folder: Path, **changes: Any) -> dict[str, Any]:
    (folder / "text.txt").write_text("the cat sat on the mat and the dog sat on the log\n" * 20)
    changed = {"data": {**TRAIN["data"], "train": str(folder / "text.txt")}, "checkpoints": {"every": 3, "keep": 5}}
    return {**TRAIN, **changed, **changes}


@pytest.fixture(scope="module")
def llama_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llama")
    train(recipe(folder), folder / "run", quiet=True)
    return folder / "run"


@pytest.fixture(scope="module")
def transformer_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The original Transformer, killed before it had written its final model."""
    folder = tmp_path_factory.mktemp("transformer")
    for side, lines in zip(("source", "target"), zip(*SENTENCES, strict=True), strict=True):
        (folder / side).write_text("".join(f"{line}\n" for line in lines))
    config = {"d_model": 12, "d_ff": 24, "num_layers": 1, "num_heads": 2, "max_position_embeddings": 32}
    pairs = {"pairs": {side: str(folder / side) for side in ("source", "target")}}
    paired = recipe(folder, data=pairs, batches={"length": 20, "tokens": 60}, objective={"kind": "seq2seq"})
    train({**paired, "model": {"family": "transformer", "config": config}}, folder / "run", quiet=True)
    shutil.rmtree(folder / "run" / "final")
    return folder / "run"


def expected(run: Path, steps: list[int]) -> dict[str, np.ndarray]:
    """Return numpy's mean of the checkpoints' tensors in float64, rounded to float32 once."""
    models = [read_tensors(CheckpointStore(run / "checkpoints").path(step) / "model.safetensors") for step in steps]
    return {
        name: np.mean([model[name].double().numpy() for model in models], axis=0).astype(np.float32)
        for name in models[0]
    }


def same(folder: Path, means: dict[str, np.ndarray]) -> bool:
    weights = weights_of(read(folder).model)
    return weights.keys() == means.keys() and all(np.array_equal(weights[name].numpy(), means[name]) for name in means)


@pytest.mark.parametrize("run", ["llama_run", "transformer_run"])
@pytest.mark.parametrize(
    ("how", "steps"),
    [
        ({"last": 2}, [12, 9]),
        ({"last": 4}, [12, 9, 6, 3]),
        ({"checkpoints": [3, 9]}, [3, 9]),
        ({"last": 3}, [12, 9, 6]),
    ],
)
def test_the_mean_is_that_of_float64(run: str, how: Any, steps: list[int], tmp_path: Path, request: Any) -> None:
    folder = request.getfixturevalue(run)
    averaged = orrery.average(folder, tmp_path / "mean", **how)
    assert same(tmp_path / "mean", expected(folder, steps))
    assert [path.name for path in averaged.folders] == [f"step-{step:06d}" for step in steps]
    assert averaged.layout == "hf"
    assert not same(tmp_path / "mean", expected(folder, steps[:1]))


def test_it_loads_here_and_in_transformers(llama_run: Path, tmp_path: Path) -> None:
    orrery.average(llama_run, tmp_path / "mean", last=3)
    ours = orrery.load(tmp_path / "mean", device="cpu", dtype="float64", say=lambda line: None)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "mean").double().eval()
    ids = torch.tensor([ours.tokenizer.encode("the cat")])
    with torch.no_grad():
        torch.testing.assert_close(ours.model.logits(ids), theirs(ids).logits, rtol=0, atol=1e-6)
    assert ours.tokenizer.fingerprint == read(llama_run).tokenizer.fingerprint


def test_an_averaged_transformer_translates(transformer_run: Path, tmp_path: Path) -> None:
    orrery.average(transformer_run, tmp_path / "mean", last=2)
    lm = orrery.load(tmp_path / "mean", say=lambda line: None)
    assert len(lm.translate(["ein hund", "katze"], num_beams=2, max_new_tokens=5)) == 2


def test_several_folders_of_each_layout(tmp_path: Path) -> None:
    models = [tiny_models.tiny("llama", torch.float32) for _ in range(3)]
    rng = torch.Generator().manual_seed(3)
    for number, model in enumerate(models):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=rng))
        save_model(tmp_path / f"hf{number}", model, "llama", tiny_models.CONFIGS["llama"], tiny_models.TOKENIZER)
        save_own(tmp_path / f"own{number}", model, tiny_models.TOKENIZER)
    means = {
        name: np.mean([weights_of(model)[name].double().numpy() for model in models], axis=0).astype(np.float32)
        for name in weights_of(models[0])
    }
    for layout in ("hf", "own"):
        folders = [tmp_path / f"{layout}{number}" for number in range(3)]
        averaged = orrery.average(folders[0], tmp_path / f"mean-{layout}", others=folders[1:])
        assert averaged.layout == layout
        assert same(tmp_path / f"mean-{layout}", means)


def test_a_narrow_dtype_is_rounded_once(tmp_path: Path) -> None:
    """1 once and 1 + 2^-7 three times: sums in bfloat16 would lose what float64 keeps."""
    for number in range(4):
        model = tiny_models.tiny("llama", torch.bfloat16)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(1.0 + (number > 0) * 2**-7)
        save_model(tmp_path / str(number), model, "llama", tiny_models.CONFIGS["llama"], tiny_models.TOKENIZER)
    orrery.average(tmp_path / "0", tmp_path / "mean", others=[tmp_path / str(number) for number in (1, 2, 3)])
    weight = next(iter(weights_of(read(tmp_path / "mean").model).values()))
    assert weight.dtype == torch.bfloat16
    assert torch.equal(weight, torch.full_like(weight, 1 + 2**-7))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"last": 9}, "keeps the checkpoints 3, 6, 9, 12, and 9 were to be averaged"),
        ({}, "keeps the checkpoints 3, 6, 9, 12, and 5 were to be averaged"),
        ({"last": 1}, "a mean needs several models"),
        ({"checkpoints": [3, 4]}, "and not 4"),
        ({"checkpoints": [3, 3]}, "each once"),
        ({"last": 2, "checkpoints": [3]}, "exclude each other"),
    ],
)
def test_what_a_run_does_not_keep_is_refused(how: Any, words: str, llama_run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        orrery.average(llama_run, tmp_path / "mean", **how)
    assert not (tmp_path / "mean").exists()


def test_a_run_without_checkpoints_is_refused(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(UsageError, match=f"{tmp_path} has no checkpoints") as error:
        orrery.average(tmp_path, tmp_path / "mean")
    assert error.value.hint == "give a run, or name several models with --others"


def test_different_models_are_refused_by_name(tmp_path: Path) -> None:
    tiny_models.saved(tmp_path / "one", "llama")
    tiny_models.saved(tmp_path / "wide", "llama", intermediate_size=64)
    tiny_models.saved(tmp_path / "gpt2", "gpt2")
    spelt = train_tokenizer("byte_bpe", ["another text altogether\n"] * 3, 270)
    model = tiny_models.tiny("llama", torch.float32)
    save_model(tmp_path / "spelt", model, "llama", tiny_models.CONFIGS["llama"], spelt)
    refused = {"wide": "different models: .*hidden = 56, not 64", "gpt2": "different models", "spelt": "tokenizers"}
    for name, words in refused.items():
        with pytest.raises(UsageError, match=words):
            orrery.average(tmp_path / "one", tmp_path / "mean", others=[tmp_path / name])
    with pytest.raises(ModelFileError, match="does not exist"):
        orrery.average(tmp_path / "one", tmp_path / "mean", others=[tmp_path / "none"])
    assert not (tmp_path / "mean").exists()


def test_whole_numbers_have_no_mean_unless_they_are_equal(tmp_path: Path) -> None:
    for number in range(2):
        model = tiny_models.randomised(tiny_models.tiny("llama", torch.float32), seed=number)
        save_model(tmp_path / str(number), model, "llama", tiny_models.CONFIGS["llama"], tiny_models.TOKENIZER)
        quantise(tmp_path / str(number), tmp_path / f"whole{number}", 8, group=16)
    shutil.copytree(tmp_path / "whole0", tmp_path / "copy")
    with pytest.raises(UsageError, match=r"blocks\.0\..*whole numbers, which have no mean.*whole1 has others") as error:
        orrery.average(tmp_path / "whole0", tmp_path / "mean", others=[tmp_path / "whole1"])
    assert error.value.hint == "average the models before they are quantised"
    assert not (tmp_path / "mean").exists()
    orrery.average(tmp_path / "whole0", tmp_path / "mean", others=[tmp_path / "copy"])
    assert same(tmp_path / "mean", {n: t.numpy() for n, t in weights_of(read(tmp_path / "whole0").model).items()})


def test_a_damaged_checkpoint_is_refused(llama_run: Path, tmp_path: Path) -> None:
    shutil.copytree(llama_run, tmp_path / "run")
    path = CheckpointStore(tmp_path / "run" / "checkpoints").path(9) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ModelFileError, match=r"step-000009"):
        orrery.average(tmp_path / "run", tmp_path / "mean", last=2)
    assert not (tmp_path / "mean").exists()


def test_the_verb(llama_run: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "mean"
    assert program(["average", str(llama_run), str(out), "--last", "2"]) == 0
    said = capsys.readouterr().out
    assert "step-000012" in said
    assert "the mean of 2 models" in said
    assert program(["average", str(llama_run), str(out), "--checkpoints", "3", "6"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert same(out, expected(llama_run, [12, 9]))
    assert program(["average", str(llama_run), str(out), "--checkpoints", "3", "6", "--overwrite"]) == 0
    assert same(out, expected(llama_run, [3, 6]))
    assert program(["average", str(out), str(tmp_path / "again"), "--others", str(llama_run)]) == 0
    assert program(["average", str(llama_run), str(llama_run / "final"), "--last", "2", "--overwrite"]) == 2


def test_killed_at_any_moment_the_old_average_or_the_new_one_is_there(llama_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "mean"
    orrery.average(llama_run, out, last=2)
    words = ["average", str(llama_run), str(out), "--last", "3", "--overwrite"]
    code = "from orrery.exchange.exporting import average; from orrery.cli.program import run; "
    code += "print('ready', flush=True); "
    code += f"run({json.dumps(words)})"
    for number in range(4):
        process = Program([sys.executable, "-c", code], stdout=PIPE, stderr=DEVNULL)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.05 * number)
        process.kill()
        process.wait()
        process.stdout.close()
        assert same(out, expected(llama_run, [12, 9])) or same(out, expected(llama_run, [12, 9, 6]))
    assert program(words) == 0
    assert same(out, expected(llama_run, [12, 9, 6]))
    assert [path.name for path in tmp_path.iterdir()] == ["mean"]
