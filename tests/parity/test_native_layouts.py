"""Models in the layout of their makers' own programs give the numbers that these programs define, in float64."""

import io
import json
import math
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from torch import Tensor
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel

import orrery
from orrery.checkpoints.tensors import TensorFile
from orrery.cli.program import run
from orrery.errors import ModelFileError, OrreryError
from orrery.exchange.reading import unpickle
from orrery.exchange.saving import import_model as importing
from orrery.text import load_tokenizer
from parity import oracle
from parity.helper import error

IDS = torch.tensor([3, 9, 1, 40, 22, 7, 7, 0, 11])
MISTRAL = {
    "dim": 24, "n_layers": 2, "head_dim": 8, "hidden_dim": 40, "n_heads": 4, "n_kv_heads": 2, "norm_eps": 1e-5,
    "vocab_size": 61,
}  # fmt: skip
META = {
    "dim": 24, "n_layers": 2, "n_heads": 6, "n_kv_heads": 2, "multiple_of": 32, "norm_eps": 1e-5, "vocab_size": -1,
}  # fmt: skip


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Convert pickles here: that another process does so is tested elsewhere, and it takes seconds to start."""

    def convert(source: Path, target: Path) -> TensorFile:
        unpickle.convert(source, target)
        return TensorFile(target)

    monkeypatch.setattr(importing, "_convert", convert)


def tensors_of(heads: int, width: int, hidden: int, experts: int = 0, tied: bool = False) -> dict[str, Tensor]:
    """Return random weights under the names of Meta's and Mistral's programs, of a model of 24 channels."""
    rng = torch.Generator().manual_seed(heads + experts)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=rng) * 0.3

    made = {"tok_embeddings.weight": drawn(62, 24), "norm.weight": drawn(24)}
    made |= {} if tied else {"output.weight": drawn(62, 24)}
    for layer in ("layers.0.", "layers.1."):
        made |= {f"{layer}{name}_norm.weight": drawn(24) for name in ("attention", "ffn")}
        rows = {"q": heads * width, "k": 2 * width, "v": 2 * width}
        made |= {f"{layer}attention.w{name}.weight": drawn(count, 24) for name, count in rows.items()}
        made[f"{layer}attention.wo.weight"] = drawn(24, heads * width)
        made |= {f"{layer}feed_forward.gate.weight": drawn(experts, 24)} if experts else {}
        for place in [f"experts.{number}." for number in range(experts)] or [""]:
            made |= {f"{layer}feed_forward.{place}w{number}.weight": drawn(hidden, 24) for number in (1, 3)}
            made[f"{layer}feed_forward.{place}w2.weight"] = drawn(24, hidden)
    return made


def rotation(width: int, base: float, factor: float | None) -> Tensor:
    """Return cos + i sin of every position and pair of channels; a factor stretches slow ones, as in Llama 3.1."""
    speeds = [base ** (-channel / width) for channel in range(0, width, 2)]
    for place, speed in enumerate(speeds):
        turns = 8192 * speed / (2 * math.pi)
        if factor and turns < 4:
            share = max(0.0, (turns - 1) / 3)
            speeds[place] = (1 - share) * speed / factor + share * speed
    angles = torch.outer(torch.arange(len(IDS), dtype=torch.float64), torch.tensor(speeds, dtype=torch.float64))
    return torch.polar(torch.ones_like(angles), angles)


def logits(
    given: Mapping[str, Tensor], heads: int, width: int, base: float,
    factor: float | None = None, window: int | None = None,
) -> Tensor:  # fmt: skip
    """Return the logits of IDS: neighbouring channels are the two parts of a complex number that turns."""
    t = {name: tensor.double() for name, tensor in given.items()}
    turn, places = rotation(width, base, factor)[:, None], torch.arange(len(IDS))
    apart = places[:, None] - places
    hidden = (apart < 0) | (apart >= (window or len(IDS)))

    def norm(x: Tensor, name: str) -> Tensor:
        return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * t[name]

    def turned(x: Tensor) -> Tensor:
        return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * turn).flatten(-2)

    def network(x: Tensor, at: str) -> Tensor:
        w1, w2, w3 = (t[f"{at}w{number}.weight"] for number in (1, 2, 3))
        return (F.silu(x @ w1.T) * (x @ w3.T)) @ w2.T

    x = t["tok_embeddings.weight"][IDS]
    for layer in ("layers.0.", "layers.1."):
        read = norm(x, f"{layer}attention_norm.weight")
        q, k, v = ((read @ t[f"{layer}attention.w{name}.weight"].T).unflatten(-1, (-1, width)) for name in "qkv")
        k, v = (part.repeat_interleave(heads // 2, 1) for part in (turned(k), v))
        scores = torch.einsum("ihc,jhc->hij", turned(q), k) / math.sqrt(width)
        mixed = torch.einsum("hij,jhc->ihc", scores.masked_fill(hidden, -math.inf).softmax(-1), v)
        x = x + mixed.flatten(1) @ t[f"{layer}attention.wo.weight"].T
        read, at = norm(x, f"{layer}ffn_norm.weight"), f"{layer}feed_forward."
        if f"{at}gate.weight" not in t:
            x = x + network(read, at)
            continue
        best, chosen = (read @ t[f"{at}gate.weight"].T).topk(2)
        rows = zip(read, best.softmax(-1), chosen.tolist(), strict=True)
        x = x + torch.stack(
            [sum(w * network(row, f"{at}experts.{e}.") for w, e in zip(ws, es, strict=True)) for row, ws, es in rows]
        )
    return norm(x, "norm.weight") @ t.get("output.weight", t["tok_embeddings.weight"]).T


def loaded(folder: Path) -> Any:
    return orrery.load(folder, "cpu", "float64", say=lambda line: None)


def imported(source: Path, out: Path) -> Any:
    assert run(["import", str(source), str(out), "--allow-pickle"]) == 0
    return loaded(out)


def params(folder: Path, **given: Any) -> Path:
    folder.mkdir()
    (folder / "params.json").write_text(json.dumps(given))
    return folder


OF_MISTRAL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a base": ({"rope_theta": 1e6}, {"base": 1e6}), "no base": ({}, {"base": 1e6}),
    "the first, with a window": ({"sliding_window": 3}, {"base": 1e4, "window": 3}),
    "experts": ({"moe": {"num_experts": 4, "num_experts_per_tok": 2}}, {"base": 1e6}),
}  # fmt: skip


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("kind", OF_MISTRAL)
@torch.no_grad()
def test_mistrals_own_files_are_its_model(kind: str, shards: int, tmp_path: Path) -> None:
    said, settings = OF_MISTRAL[kind]
    made = tensors_of(4, 8, 40, experts=4 if "moe" in said else 0)
    folder = params(tmp_path / "model", **{**MISTRAL, "vocab_size": 62}, **said)
    names = sorted(made)
    places = {name: f"consolidated-{1 + i % shards:05d}-of-{shards:05d}.safetensors" for i, name in enumerate(names)}
    for file in set(places.values()):
        part = {name: made[name] for name in names if places[name] == file}
        save_file(part, folder / (file if shards > 1 else "consolidated.safetensors"))
    if shards > 1:
        (folder / "consolidated.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    assert error(loaded(folder).logits(IDS[None])[0], logits(made, 4, 8, **settings)) < 1e-12
    if shards == 1:
        assert error(imported(folder, tmp_path / "new").logits(IDS[None])[0], logits(made, 4, 8, **settings)) < 1e-12


OF_META: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "Llama 2": ({}, {"base": 1e4}, 1), "Llama 2 of two parts": ({}, {"base": 1e4}, 2),
    "Llama 3 of two parts": ({"rope_theta": 5e5}, {"base": 5e5}, 2),
    "Llama 3.1": ({"rope_theta": 5e5, "use_scaled_rope": True}, {"base": 5e5, "factor": 8}, 1),
    "tied": ({"rope_theta": 5e5}, {"base": 5e5}, 1),
}  # fmt: skip


def cut(made: dict[str, Tensor], parts: int, folder: Path, old: bool) -> None:
    """Write the files of as many GPUs: rows, or columns of what reads what a GPU computed, and of Llama 2's table."""
    columns = ("wo.weight", "w2.weight", *(["tok_embeddings.weight"] if old else []))
    for number in range(parts):
        part = {
            name: tensor if tensor.dim() == 1 else tensor.chunk(parts, int(name.endswith(columns)))[number].clone()
            for name, tensor in made.items()
        }
        torch.save({**part, "rope.freqs": torch.ones(2)}, folder / f"consolidated.{number:02d}.pth")


@pytest.mark.parametrize("kind", OF_META)
@torch.no_grad()
def test_metas_own_files_are_its_model(kind: str, tmp_path: Path) -> None:
    said, settings, parts = OF_META[kind]
    made = tensors_of(6, 4, 64, tied=kind == "tied")
    folder = params(tmp_path / "model", **META, **said)
    cut(made, parts, folder, old="rope_theta" not in said)
    with pytest.raises(ModelFileError, match="a pickle") as told:
        loaded(folder)
    assert f"orrery import {folder} NEW_FOLDER --allow-pickle" in told.value.hint
    assert error(imported(folder, tmp_path / "new").logits(IDS[None])[0], logits(made, 6, 4, **settings)) < 1e-12
    if parts > 1:
        (folder / "consolidated.01.pth").unlink()
        with pytest.raises(ModelFileError, match="has 1 of the 2 parts"):
            importing.import_model(folder, tmp_path / "half", allow_pickle=True)


@torch.no_grad()
def test_a_checkpoint_of_llama2_c_is_read_from_its_settings(tmp_path: Path) -> None:
    made = tensors_of(6, 4, 64)
    settings = {key: META[key] for key in ("dim", "n_layers", "n_heads", "n_kv_heads", "multiple_of")}
    state = {f"_orig_mod.{name}": tensor for name, tensor in made.items()}
    settings |= {"vocab_size": 62, "max_seq_len": 32, "dropout": 0.0}
    torch.save({"model": state, "optimizer": {}, "model_args": settings, "iter_num": 9}, tmp_path / "ckpt.pt")
    lm = imported(tmp_path, tmp_path / "new")
    assert error(lm.logits(IDS[None])[0], logits(made, 6, 4, 1e4)) < 1e-12
    assert lm.model.spec.context == 32


def of_nanogpt(model: GPT2LMHeadModel) -> dict[str, Tensor]:
    """Return the state of a GPT-2 as nanoGPT has it: its matrices are those of linears."""
    turned = re.compile(r".*\.(c_attn|c_proj|c_fc)\.weight")
    return {name: tensor.T if turned.fullmatch(name) else tensor for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize("bias", [True, False])
@torch.no_grad()
def test_a_checkpoint_of_nanogpt_is_read_from_its_settings(bias: bool, tmp_path: Path) -> None:
    settings = {
        "n_layer": 2,
        "n_head": 3,
        "n_embd": 24,
        "block_size": 32,
        "vocab_size": 64,
        "dropout": 0.1,
        "bias": bias,
    }
    config = GPT2Config(n_layer=2, n_head=3, n_embd=24, n_positions=32, vocab_size=64, activation_function="gelu")
    theirs = GPT2LMHeadModel._from_config(config, attn_implementation="eager").eval()
    oracle.randomise(theirs, 0)
    for name, parameter in theirs.named_parameters():
        if name.endswith(".bias") and not bias:
            parameter.zero_()
    state = of_nanogpt(theirs).items()
    kept = {f"_orig_mod.{name}": tensor for name, tensor in state if bias or not name.endswith(".bias")}
    torch.save({"model": kept, "optimizer": {}, "model_args": settings, "iter_num": 9}, tmp_path / "ckpt.pt")
    lm = imported(tmp_path / "ckpt.pt", tmp_path / "new")
    assert error(lm.logits(IDS[None]), theirs.double()(IDS[None]).logits) < 1e-12
    torch.save({"model": kept, "model_args": {**settings, "use_rmsnorm": True}}, tmp_path / "ckpt.pt")
    with pytest.raises(ModelFileError, match="use_rmsnorm, which nanoGPT has not"):
        importing.import_model(tmp_path, tmp_path / "other", allow_pickle=True)


@torch.no_grad()
def test_the_characters_beside_a_checkpoint_of_nanogpt_are_its_tokenizer(tmp_path: Path) -> None:
    settings = {"n_layer": 1, "n_head": 1, "n_embd": 4, "block_size": 8, "vocab_size": 4, "dropout": 0.0, "bias": True}
    theirs = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=1, n_embd=4, n_positions=8, vocab_size=4))
    torch.save({"model": of_nanogpt(theirs), "model_args": settings}, tmp_path / "ckpt.pt")
    characters = dict(enumerate("\n ab"))
    meta = {"vocab_size": 4, "itos": characters, "stoi": {letter: id for id, letter in characters.items()}}
    (tmp_path / "meta.pkl").write_bytes(pickle.dumps(meta))
    lm = imported(tmp_path, tmp_path / "new")
    assert (lm.tokenizer.encode("ab a\n"), lm.tokenizer.decode([3, 1, 2])) == ([2, 3, 1, 2, 0], "b a")
    with pytest.raises(OrreryError):
        lm.score("abc")
    (tmp_path / "meta.pkl").write_bytes(pickle.dumps({"itos": Path("a")}))
    with pytest.raises(pickle.UnpicklingError, match="GLOBAL pathlib"):
        importing.import_model(tmp_path, tmp_path / "other", allow_pickle=True)


@pytest.mark.parametrize("said", [
    {"quantization": {"qformat_weight": "fp8_e4m3"}}, {"vision_encoder": {"hidden_size": 1}}, {"use_biases": True},
    {"sliding_window": [None, 3]}, {"moe": {"num_experts": 4}}, {"yarn": {"factor": 2}},
    {"rope_scaling_factor": "8"}, {"use_scaled_rope": "false"},
])  # fmt: skip
def test_what_may_change_numbers_and_is_not_read_is_named(said: dict[str, Any], tmp_path: Path) -> None:
    folder = params(tmp_path / "model", **MISTRAL, **said)
    save_file(tensors_of(4, 8, 40), folder / "consolidated.safetensors")
    with pytest.raises(ModelFileError, match=f"{next(iter(said))} may change numbers"):
        loaded(folder)


@pytest.mark.parametrize("name", ["tokenizer.model", "tokenizer.model.v3"])
def test_a_text_begins_as_the_makers_programs_begin_it(name: str, tmp_path: Path) -> None:
    made, texts = io.BytesIO(), ["the cat sat on the mat and drank coffee in the morning while birds sang"] * 9
    settings = {"vocab_size": 300, "model_type": "bpe", "byte_fallback": True, "hard_vocab_limit": False}
    SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=made, minloglevel=2, **settings)
    folder = params(tmp_path / "model", **MISTRAL)
    (folder / name).write_bytes(made.getvalue())
    theirs = SentencePieceProcessor(model_proto=made.getvalue())
    assert load_tokenizer(folder).frame("the mat sang").ids == [theirs.bos_id(), *theirs.encode("the mat sang")]


@torch.no_grad()
def test_of_both_layouts_in_a_folder_hugging_faces_is_read(tmp_path: Path) -> None:
    folder = params(tmp_path / "model", **{**MISTRAL, "vocab_size": 62})
    save_file(made := tensors_of(4, 8, 40), folder / "consolidated.safetensors")
    imported(folder, tmp_path / "new")
    for file in (tmp_path / "new").iterdir():
        file.rename(folder / file.name)
    (folder / "consolidated.safetensors").write_bytes(b"not read")
    assert error(loaded(folder).logits(IDS[None])[0], logits(made, 4, 8, 1e6)) < 1e-12
