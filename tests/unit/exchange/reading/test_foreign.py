"""Files of other programs, names of other places, and what stands where a file should be: refused by name."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from orrery.checkpoints.places import place_of
from orrery.checkpoints.tensors import TensorFile
from orrery.errors import ModelFileError, OrreryError
from orrery.exchange.reading.read import read
from orrery.exchange.saving.import_model import import_model
from orrery.text import load_tokenizer
from tiny_models import saved

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"
PAGE = b"<!DOCTYPE html>\n<html><head><title>a model</title></head></html>"
REFUSED = b"Access to model org/name is restricted. You must be authenticated to access it."


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("llama") / "model", "llama")


@pytest.fixture
def folder(llama: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(llama, tmp_path / "model"))


def refused(path: Path | str) -> OrreryError:
    with pytest.raises(OrreryError) as told:
        read(path)
    return told.value


WRITTEN = {
    "zero_to_fp32.py": "DeepSpeed", "global_step9/mp_rank_00_model_states.pt": "DeepSpeed",
    "latest_checkpointed_iteration.txt": "Megatron", "pytorch_model_fsdp_0/__0_0.distcp": "FSDP", "m.nemo": "NeMo",
    "lit_model.pth": "LitGPT", "tf_model.h5": "TensorFlow", "bert_model.ckpt.index": "TensorFlow",
    "flax_model.msgpack": "Flax", "dict.txt": "fairseq", "model_index.json": "diffusers", "onnx/model.onnx": "ONNX",
    "openvino_model.bin": "OpenVINO", "model.tflite": "LiteRT", "m.mlpackage": "Core ML", "rank0.engine": "TensorRT",
    "m.keras": "Keras", "rust_model.ot": "rust-bert", "weights.npz": "MLX", "m.zip": "archive", "m.tar.gz": "archive",
    "model_best.pth.tar": "name of an archive", "m.llamafile": "GGUF file in it",
    "model.safetensors.part": "did not end", "m-q4.gguf": "GGUF file",
    ".cache/huggingface/download/x.incomplete": "did not end",
}  # fmt: skip


@pytest.mark.parametrize("configured", [False, True])
@pytest.mark.parametrize("name", WRITTEN)
def test_what_another_program_wrote_is_refused_by_its_name(name: str, configured: bool, folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    if not configured:
        (folder / "config.json").unlink()
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"\x80\x02 something of its own")
    error = refused(folder)
    assert WRITTEN[name] in error.message
    assert name.rpartition("/")[2] in error.message
    if not name.endswith(".gguf"):
        assert WRITTEN[name] in refused(folder / name).message


def test_a_folder_for_several_frameworks_is_said_to_hold_the_pickle_that_can_be_imported(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    for name in ("pytorch_model.bin", "tf_model.h5", "flax_model.msgpack", "rust_model.ot"):
        (folder / name).write_bytes(b"\x80\x02")
    assert "only as pytorch_model.bin, a pickle" in refused(folder).message


@pytest.mark.parametrize(("content", "said"), [
    ((20240326).to_bytes(4, "little") + bytes(1020), "holds the numbers of llm.c"),
    ((0x616B3432).to_bytes(4, "little") + bytes(252), "holds the numbers of llama2.c"),
])  # fmt: skip
def test_numbers_of_programs_in_c_are_no_pickles(folder: Path, content: bytes, said: str, tmp_path: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.bin").write_bytes(content)
    assert said in refused(folder).message
    with pytest.raises(ModelFileError, match=said):
        import_model(folder, tmp_path / "new", allow_pickle=True)


def test_what_a_trainer_keeps_beside_the_weights_is_none(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    for name in ("optimizer.pt", "scheduler.pt", "rng_state_0.pth", "training_args.bin", "random_states_0.pkl"):
        (folder / name).write_bytes(b"\x80\x02")
    assert refused(folder).message.endswith("model.safetensors is missing")


@pytest.mark.parametrize(("content", "said"), [
    (POINTER, "pointer of git-lfs"), (PAGE, "page of the web"), (REFUSED, "was refused"), (b"", "is empty"),
])  # fmt: skip
@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "tokenizer.model"])
def test_what_stands_for_a_file_that_was_not_fetched_is_named(
    name: str, content: bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    if name.startswith("tokenizer"):
        with pytest.raises(ModelFileError, match=said):
            load_tokenizer(tmp_path)
    elif name == "config.json":
        assert said in refused(tmp_path).message
    else:
        with pytest.raises(ModelFileError, match=said):
            TensorFile(tmp_path / name)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_of_a_model_says_to_name_its_folder(name: str, folder: Path) -> None:
    assert refused(folder / name).hint.endswith(str(folder))


def test_a_link_to_nothing_is_named(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to("../../blobs/0123")
    assert "is a link to ../../blobs/0123" in refused(folder).message


def test_shards_without_an_index_are_the_whole_and_a_missing_one_is_named(
    llama: Path, folder: Path, tmp_path: Path
) -> None:
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    for number in (1, 2):
        part = {name: tensors[name] for name in names[number - 1 :: 2]}
        save_file(part, folder / f"model-0000{number}-of-00002.safetensors")
    whole = read(llama).model.state_dict()
    assert all(torch.equal(tensor, whole[name]) for name, tensor in read(folder).model.state_dict().items())
    again = import_model(folder, tmp_path / "new").model.state_dict()
    assert all(torch.equal(tensor, whole[name]) for name, tensor in again.items())
    (folder / "model-00001-of-00002.safetensors").unlink()
    assert "lacks 1 of the 2 shards" in refused(folder).message


@pytest.mark.parametrize(
    ("best", "taken"), [(None, "1000"), ("out/checkpoint-500", "500"), ("C:\\out\\checkpoint-9", "1000")]
)
def test_of_the_checkpoints_of_a_trainer_the_best_else_the_newest_is_taken(
    best: str | None, taken: str, llama: Path, tmp_path: Path
) -> None:
    for step in (500, 1000):
        (tmp_path / f"checkpoint-{step}").symlink_to(llama)
    state = tmp_path / "checkpoint-1000"
    state.unlink()
    shutil.copytree(llama, state)
    (state / "trainer_state.json").write_text(json.dumps({"best_model_checkpoint": best}))
    said: list[str] = []
    assert read(tmp_path, said.append).folder.name == f"checkpoint-{taken}"
    assert f"2 checkpoints of the Trainer, checkpoint-{taken}" in said[0]


def test_a_repository_of_the_cache_is_the_commit_that_its_branch_is_at(
    llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "models--org--name"
    (repository / "refs").mkdir(parents=True)
    assert "no snapshot" in refused(repository).message
    for commit in ("a" * 40, "b" * 40):
        shutil.copytree(llama, repository / "snapshots" / commit)
    (repository / "refs" / "main").write_text("a" * 40)
    stored = read(repository)
    assert (stored.folder.name, stored.name) == ("a" * 40, "org/name")
    monkeypatch.chdir(repository)
    assert read(Path()).folder.name == "a" * 40


ELSEWHERE = {
    "https://huggingface.co/org/name": "hf:org/name", "https://huggingface.co/org/name/tree/v2": "hf:org/name@v2",
    "hf.co/org/name": "hf:org/name", "https://huggingface.co/org/name/resolve/main/model.safetensors": "hf:org/name",
    "https://huggingface.co/org/name/blob/main/m.gguf": "hf download org/name m.gguf", "org/name": "hf:org/name",
    "hf://org/name": "hf:org/name", "hf:org/name:Q4_K_M": "hf:org/name", "https://example.org/m": "fetch it first",
    "llama3:8b": "ollama:llama3:8b", "~/model": str(Path("~/model").expanduser()),
}  # fmt: skip


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_model_that_is_named_as_other_programs_do_is_told_how_it_is_named_here(name: str) -> None:
    assert ELSEWHERE[name] in refused(name).hint


def test_a_line_break_behind_a_name_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError) as told:
        place_of(f"{tmp_path}\n")
    assert "line break" in told.value.hint
