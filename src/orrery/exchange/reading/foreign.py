"""What other programs write in the place of a model's folder: known by the names of its files, and refused by name.

Nothing is opened: a name says which program wrote a file, and that program has the way to a Hugging Face folder.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from orrery.checkpoints.stand_ins import refuse_stand_in
from orrery.errors import ModelFileError

_MOST = 10_000
"""Names of a folder that are looked at."""
PIPELINE = "model_index.json"
HERE = ("*",)
_BELOW = (*HERE, "*/*", ".cache/huggingface/download/*")
_SOURCE = "it is made to be run and cannot be read back: take the Hugging Face folder that it was made from"
_TRANSFORMERS = "write it again with version 4 of transformers, with the class that config.json names: CLASS"


class ForeignFile(NamedTuple):
    """Files of another program: patterns of their names, what they are, and what to do."""

    patterns: tuple[str, ...]
    what: str
    hint: str


FOREIGN = (
    ForeignFile(
        ("*.incomplete", "*.part", "*.partial", "*.crdownload", "*.aria2"),
        "a download that did not end",
        "fetch it again: hf download goes on where it stopped",
    ),
    ForeignFile(
        ("zero_to_fp32.py", "*mp_rank_*_model_states.pt", "*layer_*-model_states.pt"),
        "a checkpoint of DeepSpeed, with the weights in pieces",
        "join them with the script that DeepSpeed puts beside them: python zero_to_fp32.py . OUT --safe_serialization; "
        "then put config.json and the tokenizer into OUT",
    ),
    ForeignFile(
        ("latest_checkpointed_iteration.txt", "*model_optim_rng.pt"),
        "a checkpoint of Megatron",
        "write a Hugging Face folder of it with Megatron Bridge, AutoBridge.export_ckpt",
    ),
    ForeignFile(
        ("*.distcp",),
        "a distributed checkpoint of torch, with the weights in pieces (FSDP)",
        "join them: accelerate merge-weights FOLDER OUT, or python -m torch.distributed.checkpoint.format_utils "
        "dcp_to_torch FOLDER OUT.pt; then put config.json and the tokenizer beside them",
    ),
    ForeignFile(
        ("*.nemo", "model_weights.ckpt"),
        "a model of NeMo",
        "write a Hugging Face folder of it with NeMo: nemo llm export path=MODEL target=hf",
    ),
    ForeignFile(
        ("lit_model.pth", "lit_config.json"),
        "a checkpoint of LitGPT",
        "litgpt convert_from_litgpt FOLDER OUT writes the names of transformers; put the model's config.json into OUT, "
        "then: orrery import OUT NEW --allow-pickle",
    ),
    ForeignFile(
        ("tf_model.h5", "*.ckpt.index", "*.ckpt.meta", "saved_model.pb", "*.h5"),
        "weights of TensorFlow",
        f"{_TRANSFORMERS}.from_pretrained(FOLDER, from_tf=True).save_pretrained(OUT)",
    ),
    ForeignFile(
        ("flax_model*.msgpack", "*.ocdbt", "*_METADATA"),
        "weights of Flax",
        f"{_TRANSFORMERS}.from_pretrained(FOLDER, from_flax=True).save_pretrained(OUT)",
    ),
    ForeignFile(
        ("dict.txt", "dict.*.txt"),
        "a checkpoint of fairseq",
        "convert it with the script of its family in transformers, such as convert_bart_original_pytorch_checkpoint_to_"
        "pytorch.py, and load what that writes",
    ),
    ForeignFile(
        (PIPELINE,),
        "a pipeline of several models, of diffusers",
        "Orrery makes no pictures; the part that reads texts is a folder of its own: FOLDER/text_encoder",
    ),
    ForeignFile(
        ("*.llamafile",), "a program with a GGUF file in it", "it is a zip: unzip FILE '*.gguf', and name that"
    ),
    ForeignFile(("*.onnx", "*.onnx_data"), "a model for ONNX Runtime", _SOURCE),
    ForeignFile(("openvino_*.bin", "openvino_*.xml"), "a model for OpenVINO", _SOURCE),
    ForeignFile(("*.tflite", "*.litertlm", "*.task"), "a model for LiteRT (TensorFlow Lite)", _SOURCE),
    ForeignFile(("*.mlmodel", "*.mlpackage", "*.mlmodelc"), "a model for Core ML", _SOURCE),
    ForeignFile(("*.engine", "*.plan"), "an engine of TensorRT", _SOURCE),
    ForeignFile(("*.pte",), "a program of ExecuTorch", _SOURCE),
    ForeignFile(("mlc-chat-config.json", "params_shard_*.bin"), "a model for MLC", _SOURCE),
    ForeignFile(("shared_vocabulary.*",), "a model for CTranslate2", _SOURCE),
    ForeignFile(("*.keras",), "a model of Keras", "take the Hugging Face folder of the same model"),
    ForeignFile(("rust_model.ot",), "weights of rust-bert", "take the safetensors or the .bin of the same model"),
    ForeignFile(("*.npz",), "weights of MLX or NumPy", "write them as safetensors: mx.save_safetensors"),
    ForeignFile(
        ("*.pth.tar", "*.pt.tar"),
        "a checkpoint of torch with the name of an archive",
        "rename it to end in .pth, put config.json and the tokenizer beside it, then: orrery import FILE NEW "
        "--allow-pickle",
    ),
    ForeignFile(
        ("*.zip", "*.tar", "*.tar.*", "*.tgz", "*.7z", "*.rar"), "an archive", "unpack it and name the folder in it"
    ),
    ForeignFile(("*.gguf",), "a GGUF file beside no model", "name the file itself: {found}"),
)
"""In this order: a folder with files of several is what the first says."""


def refuse_foreign(place: Path, places: tuple[str, ...] = _BELOW) -> None:
    """Refuse a file, or a folder without weights that can be read, which another program wrote.

    Args:
        place: the file or the folder.
        places: patterns of the folder's files whose names are looked at.

    Raises:
        ModelFileError: the name of a file says so.
    """
    names = [place.name] if place.is_file() else sorted(_names(place, places))
    for kind in FOREIGN:
        for name in names:
            if any(fnmatchcase(name.rpartition("/")[2], pattern) for pattern in kind.patterns):
                found = place if place.is_file() else place / name
                file = "" if place.is_file() else f"{name}, "
                message = f"{place} holds no model that Orrery reads, but {file}{kind.what}"
                raise ModelFileError(message, kind.hint.format(found=found))
    if place.is_file():
        refuse_stand_in(place)


def refuse_broken_links(folder: Path) -> None:
    """Refuse a folder that was copied without what its links lead to.

    Raises:
        ModelFileError: a file of its is a link to nothing.
    """
    for entry in folder.iterdir():
        if entry.is_symlink() and not entry.exists():
            raise ModelFileError(
                f"{entry} is a link to {entry.readlink()}, which is not there",
                "the hub's cache keeps its files in blobs/: copy a snapshot with cp -rL, or fetch the model again",
            )


def _names(folder: Path, places: tuple[str, ...]) -> Iterator[str]:
    """Yield the names of files and folders of a folder, and of those in its folders."""
    for pattern in places:
        yield from (entry.relative_to(folder).as_posix() for entry in islice(folder.glob(pattern), _MOST))
