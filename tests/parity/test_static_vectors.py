"""Tables of static vectors: sentence-transformers' StaticEmbedding and model2vec's folders."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer as Library

import orrery
from orrery.checkpoints.tensors import write_tensors
from orrery.cli.program import run
from orrery.errors import ModelFileError
from orrery.language_model.model import LanguageModel
from orrery.text.special import train_framed
from serving_toy import post, serving

WORDS = "the cat sat on a mat and the dog lay by the door while it rained"
TEXTS = [
    "the",
    "sat on a mat",
    WORDS,
    f"{WORDS} " * 60,
    "UPPER Cat",
    "",
    "  two  spaces ",
    "日本",
    "émigré 日本 the cat",
]
OLD, NEW = "sentence_transformers.models", "sentence_transformers.sentence_transformer.modules"
CONFIG = {"model_type": "model2vec", "architectures": ["StaticModel"], "hidden_dim": 12, "seq_length": 1_000_000}


def folder(place: Path, modules: list[tuple[str, str]] | None, inside: str = "", **parts: torch.Tensor) -> Path:
    """Write a table, its tokenizer and the list of modules, where there is one."""
    tokenizer = train_framed("wordpiece", [WORDS] * 20, 90, "bert", lowercase=True)
    generator = torch.Generator().manual_seed(3)
    table = torch.randn(tokenizer.size, 12, generator=generator, dtype=torch.float64)
    (place / inside).mkdir(parents=True, exist_ok=True)
    tokenizer.save(place / inside)
    write_tensors(place / inside / "model.safetensors", parts or {"embedding.weight": table})
    if modules is not None:
        listed = [{"idx": n, "name": str(n), "path": path, "type": kind} for n, (path, kind) in enumerate(modules)]
        (place / "modules.json").write_text(json.dumps(listed))
    return place


def loaded(place: Path) -> LanguageModel:
    return orrery.load(place, "cpu", say=str)


def distance(lm: LanguageModel, theirs: Any, **asked: Any) -> float:
    return float((lm.embed(TEXTS, **asked).double() - torch.as_tensor(theirs).double()).abs().max())


def shared() -> dict[str, torch.Tensor]:
    """Return a table of fewer rows than tokens, the row of each token, and its factor."""
    generator = torch.Generator().manual_seed(4)
    size = train_framed("wordpiece", [WORDS] * 20, 90, "bert", lowercase=True).size
    table = torch.randn(20, 12, generator=generator, dtype=torch.float64)
    factors = torch.rand(size, generator=generator, dtype=torch.float64)
    return {"embeddings": table, "mapping": torch.arange(size) % 20, "weights": factors}


@pytest.mark.parametrize("package", [OLD, NEW])
@pytest.mark.parametrize("inside", [".", "0_StaticEmbedding"])
def test_vectors_are_those_of_sentence_transformers(package: str, inside: str, tmp_path: Path) -> None:
    parts = shared() if inside == "." else {}
    modules = [(inside, f"{package}.StaticEmbedding"), ("1_Normalize", f"{package}.Normalize")]
    place = folder(tmp_path / "table", modules[: 1 + (inside == ".")], inside, **parts)
    said = {"prompts": {"query": "the dog: "}, "truncate_dim": 7} if inside != "." else {}
    (place / "config_sentence_transformers.json").write_text(json.dumps(said))
    theirs, lm = SentenceTransformer(str(place), device="cpu"), loaded(place)
    assert distance(lm, theirs.encode(TEXTS)) < 1e-12
    assert not lm.embed("").any()
    if said:
        assert distance(lm, theirs.encode(TEXTS, prompt_name="query"), prompt="query") < 1e-12
    assert run(["export", str(place), "hf", str(tmp_path / "again")]) == 0
    for name in ("again", "table"):
        assert torch.equal(loaded(tmp_path / name).embed(TEXTS), lm.embed(TEXTS))
    assert distance(lm, SentenceTransformer(str(tmp_path / "again"), device="cpu").encode(TEXTS)) < 1e-12


def test_a_length_in_the_tokenizers_file_and_matrices_behind_are_followed(tmp_path: Path) -> None:
    modules = [("", f"{OLD}.StaticEmbedding"), ("1_Dense", f"{OLD}.Dense"), ("2_Normalize", f"{OLD}.Normalize")]
    place = folder(tmp_path, modules)
    engine = Library.from_file(str(place / "tokenizer.json"))
    engine.enable_truncation(9)
    engine.save(str(place / "tokenizer.json"))
    (place / "1_Dense").mkdir()
    of_dense = {"in_features": 12, "out_features": 5, "activation_function": "torch.nn.modules.activation.Tanh"}
    (place / "1_Dense" / "config.json").write_text(json.dumps(of_dense))
    matrices = {"linear.weight": torch.randn(5, 12), "linear.bias": torch.randn(5)}
    write_tensors(place / "1_Dense" / "model.safetensors", matrices)
    table = {"embedding.weight": torch.randn(loaded(place).tokenizer.size, 12)}
    write_tensors(place / "model.safetensors", table)
    assert distance(loaded(place), SentenceTransformer(str(place), device="cpu").encode(TEXTS)) < 1e-6
    assert [vector.cut > 0 for vector in loaded(place).vectors(TEXTS)] == [False, False, True, True, *[False] * 5]


def as_model2vec(parts: dict[str, torch.Tensor], place: Path, normalises: bool, length: int | None) -> np.ndarray:
    """Return the vectors of the package model2vec (0.8): the mean over the known tokens of the first of a text."""
    engine = Library.from_file(str(place / "tokenizer.json"))
    table, unknown = parts["embeddings"].numpy(), engine.token_to_id("[UNK]")
    rows = []
    for text in TEXTS:
        ids = engine.encode(text, add_special_tokens=False).ids[:length]
        ids = [id for id in ids if id != unknown]
        places = parts["mapping"].numpy()[ids] if "mapping" in parts else ids
        vectors = table[places] * (parts["weights"].numpy()[ids, None] if "weights" in parts else 1)
        mean = vectors.mean(0, dtype=np.float64) if ids else np.zeros(12)
        rows.append(mean / (np.linalg.norm(mean) + 1e-32) if normalises else mean)
    return np.stack(rows)


@pytest.mark.parametrize("kind", ["float64", "float16", "int8", "shared"])
def test_a_folder_without_modules_is_read_as_model2vec_reads_it(kind: str, tmp_path: Path) -> None:
    parts = shared()
    if kind != "shared":
        table = parts["embeddings"][parts["mapping"]]
        parts = {"embeddings": (table * (40 if kind == "int8" else 1)).to(getattr(torch, kind))}
    normalises, length = kind != "float64", None if kind == "float16" else 512
    place = folder(tmp_path / "table", None, **parts)
    said = {**CONFIG, "normalize": normalises} | ({"max_length": None} if length is None else {})
    (place / "config.json").write_text(json.dumps(said))
    lm = loaded(place)
    assert distance(lm, as_model2vec(parts, place, normalises, length)) < (
        1e-12 if kind in ("float64", "shared") else 1e-5
    )
    assert not lm.embed("日本").any()
    lm.save(tmp_path / "again")
    assert torch.equal(loaded(tmp_path / "again").embed(TEXTS), lm.embed(TEXTS))


def test_every_door_gives_the_vectors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = folder(tmp_path / "table", [("", f"{OLD}.StaticEmbedding")])
    lm = loaded(place)
    assert run(["embed", str(place), "the cat", "--output", str(tmp_path / "found.npy")]) == 0
    assert np.allclose(np.load(tmp_path / "found.npy"), lm.embed(["the cat"]).numpy())
    assert run(["show", str(place)]) == 0
    assert run(["neighbours", str(place), "cat"]) == 0
    with serving(lm, "toy") as server:
        _, answer = post(server, {"model": "toy", "input": ["the cat", "日"]}, "/v1/embeddings")
    assert np.allclose([one["embedding"] for one in answer["data"]], lm.embed(["the cat", "日"]).numpy(), atol=1e-6)


def test_a_fine_tuned_table_has_the_same_vectors_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = folder(tmp_path / "table", [("", f"{OLD}.StaticEmbedding")])
    rows = [{"anchor": f"the cat {word}", "positive": f"a dog {word}"} for word in WORDS.split()]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["finetune", "embedding", "--from", str(place), "--train", str(tmp_path / "pairs.jsonl")]
    assert run([*words, "--output", str(tmp_path / "run"), "--training.steps", "2"]) == 0
    lm = loaded(tmp_path / "run")
    assert distance(lm, loaded(place).embed(TEXTS, normalise=True)) > 1e-6
    assert run(["export", str(tmp_path / "run"), "hf", str(tmp_path / "out")]) == 0
    assert distance(lm, SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(TEXTS)) < 1e-6
    assert run(["import", str(place), str(tmp_path / "new")]) == 2
    assert "orrery export" in capsys.readouterr().err


@pytest.mark.parametrize(
    "fault",
    [
        "two tables",
        "no table",
        "rows",
        "axes",
        "row outside",
        "row before the first",
        "half a row",
        "normalize",
        "tokenizer",
    ],
)
def test_a_damaged_table_is_refused_by_what_is_wrong(fault: str, tmp_path: Path) -> None:
    parts = shared()
    match fault:
        case "two tables":
            parts["embedding.weight"] = parts["embeddings"]
        case "no table":
            del parts["embeddings"]
        case "rows":
            parts["weights"] = parts["weights"][:7]
        case "axes":
            parts["embeddings"] = parts["embeddings"][0]
        case "row outside":
            parts["mapping"][3] = 99
        case "row before the first":
            parts["mapping"][3] = -1
        case "half a row":
            parts["mapping"] = parts["mapping"] + 0.5
    place = folder(tmp_path, None, **parts)
    (place / "config.json").write_text(json.dumps({**CONFIG, "normalize": "yes" if fault == "normalize" else True}))
    if fault == "tokenizer":
        (place / "tokenizer.json").unlink()
    with pytest.raises(ModelFileError) as refused:
        loaded(place)
    assert str(place) in refused.value.message
    assert refused.value.hint
