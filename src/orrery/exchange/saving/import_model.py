"""Importing: a published folder in any file format that weights come in, written as safetensors and compared."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from orrery.checkpoints import strict_json
from orrery.checkpoints.outputs import OutputFolder
from orrery.checkpoints.stand_ins import refuse_stand_in
from orrery.checkpoints.stores import is_manifest
from orrery.checkpoints.tensors import TensorFile
from orrery.errors import ModelFileError, RunError, UsageError
from orrery.exchange.reading.cross_encoder_folder import read_pair_scores
from orrery.exchange.reading.files import (
    CONFIG,
    PICKLE,
    PICKLE_INDEX,
    PICKLES,
    WEIGHTS,
    Weights,
    has_safetensors,
    open_weights,
    pickles_in,
    read_index,
    read_json,
)
from orrery.exchange.reading.foreign import HERE, refuse_foreign
from orrery.exchange.reading.gguf_model import is_gguf
from orrery.exchange.reading.nanogpt import is_nanogpt, of_nanogpt, with_biases
from orrery.exchange.reading.native import PARAMS, is_native, joined, name_alone, of_params
from orrery.exchange.reading.read import Stored, makes_vectors, read, read_native, read_published
from orrery.exchange.reading.sentence_folder import transformer_in
from orrery.exchange.reading.static_folder import table_in
from orrery.exchange.reading.unpickle import ARGUMENTS, CHARACTERS
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving.save import MODEL_FILES, save_model
from orrery.families import load_family, other_heads
from orrery.models.pair_scores import PairScores
from orrery.models.sentence_vectors import Sentences
from orrery.text import Tokenizer
from orrery.text.algorithms.characters import listed
from orrery.tuning import merge

TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "merges.txt", "vocab.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "source.spm", "target.spm",
    "chat_template.jinja",
)  # fmt: skip
IMPORTED = tuple(dict.fromkeys((*MODEL_FILES, *TOKENIZER_FILES)))
"""What an import may leave in its folder."""
_PASSED_ON = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "SYSTEMROOT", "TMPDIR")
"""What the process that opens a pickle sees of the environment: no keys."""


def import_model(
    source: Path,
    out: Path,
    *,
    allow_pickle: bool = False,
    overwrite: bool = False,
    ignore_keys: Sequence[str] = (),
    say: Callable[[str], None] = lambda line: None,
) -> Stored:
    """Write a model as safetensors, read it back, and compare every tensor.

    Args:
        source: a Hugging Face folder, one file of weights inside one, a folder of Meta's or Mistral's own layout, a
            checkpoint of nanoGPT, or a GGUF file.
        out: the new folder, which gets its name only when all in it was read back equal.
        overwrite: replace an import that is there.
        ignore_keys: keys of config.json that are left out, though the reference reads them.
        allow_pickle: whether weights may come from a pickle, which another process opens.
        say: told what is done.

    Raises:
        UsageError: the rule of `outputs` refuses ``out``.
        ModelFileError: the files are damaged, or a pickle that is not allowed, or holds more than tensors.
        RunError: what was written is not what was read.
    """
    folder = source.parent if source.is_file() else source
    target = OutputFolder(out, IMPORTED, inputs=[folder], overwrite=overwrite)
    if is_gguf(source) or is_manifest(source):
        return _from_gguf(source, out, target, ignore_keys, say)
    if source.is_file():
        refuse_foreign(source)
    if table_in(folder) is not None:
        hint = f"to write it again: orrery export {folder} hf {out}"
        raise UsageError(f"{folder} is a table of static vectors, which is read as it is", hint)
    given, sentences = folder, None if source.is_file() else makes_vectors(folder)
    if not source.is_file():
        source = folder = transformer_in(folder) or folder
    with target.aside() as fresh, TemporaryDirectory(prefix="orrery-import-") as scratch:
        if (folder / CONFIG).is_file():
            weights = _weights(source, folder, out, Path(scratch), allow_pickle, say)
            stored = read_published(folder, weights, ignore_keys)
        else:
            weights = Weights([])
            stored = _read_native(source, folder, out, Path(scratch), allow_pickle, say)
            sentences = stored.sentences
        if stored.whole is not None:
            say(f"{folder}: {stored.part_alone}")
        beside = other_heads(load_family(stored.family), stored.config or {}, weights)
        _write(fresh, stored, beside, sentences, read_pair_scores(given, stored))
        _copy_tokenizer(folder, fresh)
        _compare(stored, beside, fresh, out)
    say(f"{out}: {len(weights_of(stored.model)) + len(beside):,} tensors, read back equal bit for bit")
    if beside:
        say(f"kept beside the model, for heads that config.json does not name: {', '.join(sorted(beside))}")
    return stored


def _from_gguf(
    source: Path, out: Path, target: OutputFolder, ignore_keys: Sequence[str], say: Callable[[str], None]
) -> Stored:
    """Write the model of a GGUF file as a Hugging Face folder; numbers in blocks are unpacked, into float32."""
    if ignore_keys:
        raise UsageError("a GGUF file has no config.json, of which keys could be left out", "leave --ignore-keys away")
    stored = read(source, say)
    rounded = bool(stored.model.transforms)
    merge(stored.model)
    with target.aside() as fresh:
        _write(fresh, stored, sentences=stored.sentences)
        _compare(stored, {}, fresh, out)
    say(f"{out}: {len(weights_of(stored.model)):,} tensors, read back equal bit for bit")
    if rounded:
        say("they were rounded when the file was made: what stands here are the same numbers in float32")
    return stored


def _write(
    fresh: Path,
    stored: Stored,
    beside: Mapping[str, Tensor] | None = None,
    sentences: Sentences | None = None,
    pairs: PairScores | None = None,
) -> None:
    """Write a model as a Hugging Face folder."""
    assert stored.family is not None
    assert stored.config is not None
    save_model(
        fresh,
        stored.model,
        stored.family,
        stored.config,
        stored.tokenizer,
        generation=stored.generation or None,
        chat=stored.chat,
        beside=beside,
        sentences=sentences,
        pairs=pairs,
        pictures=stored.pictures,
    )


def _weights(
    source: Path, folder: Path, out: Path, scratch: Path, allow_pickle: bool, say: Callable[[str], None]
) -> Weights:
    """Return the weights, from safetensors where there are any."""
    if source.is_file() and source.suffix == ".safetensors":
        return Weights([TensorFile(source)])
    if not source.is_file() and has_safetensors(folder):
        return open_weights(folder)
    return Weights(_converted(source, folder, out, scratch, allow_pickle, say))


def _converted(
    source: Path, folder: Path, out: Path, scratch: Path, allow_pickle: bool, say: Callable[[str], None]
) -> list[TensorFile]:
    """Return the weights of pickles, which another process turns into safetensors."""
    files = [source] if source.is_file() else _pickles(folder)
    if not allow_pickle:
        raise ModelFileError(
            f"{files[0]} is a pickle, which can run any code",
            f"if you trust its source: orrery import {source} {out} --allow-pickle",
        )
    if missing := [path.name for path in files if not path.is_file()]:
        raise ModelFileError(f"{folder} lacks {', '.join(missing[:10])}", "get them from the source of the others")
    for path in files:
        refuse_stand_in(path)
    converted = []
    for number, path in enumerate(files):
        say(f"{path}: converting a pickle in a process without network")
        converted.append(_convert(path, scratch / f"{number}.safetensors"))
    return converted


def _read_native(
    source: Path, folder: Path, out: Path, scratch: Path, allow_pickle: bool, say: Callable[[str], None]
) -> Stored:
    """Read a model without a config.json: Meta's and Mistral's layout, or a checkpoint that holds its settings."""
    whole = any(folder.glob("consolidated*.safetensors")) or not pickles_in(folder)
    if source.suffix == ".safetensors" or (not source.is_file() and whole):
        return read(source, say)
    refuse_foreign(folder, HERE)
    files = _converted(source, folder, out, scratch, allow_pickle, say)
    parts = [{now: file[name] for name in file if (now := name_alone(name)) is not None} for file in files]
    settings, path = _settings_of(files, folder)
    if is_nanogpt(settings):
        native, tensors = of_nanogpt(settings, path), with_biases(parts[0])
        say(f"{path}: read as nanoGPT computes since June 2023, with the exact gelu")
    else:
        tensors = joined(parts, settings, path)
        native = of_params(settings, path, tensors)
    empty = {name: torch.empty_like(tensor, device="meta") for name, tensor in tensors.items()}
    stored = read_native(folder, native, tensors, empty)
    if (folder / CHARACTERS).is_file() and stored.tokenizer is None:
        return replace(stored, tokenizer=_of_characters(folder / CHARACTERS, scratch))
    return stored


def _of_characters(file: Path, scratch: Path) -> Tokenizer:
    """Return the tokenizer of nanoGPT's list of characters, which another process reads."""
    found = strict_json.parse(_convert(file, scratch / "characters.safetensors").metadata.get(CHARACTERS, "[]"))
    if (
        not isinstance(found, list)
        or not all(isinstance(one, str) and len(one) == 1 for one in found)
        or len(set(found)) < len(found)
    ):
        raise ModelFileError(f"{file} is no list of characters", "take it from the folder of the texts, data/NAME")
    return Tokenizer(listed(found).to_str())


def _settings_of(files: Sequence[TensorFile], folder: Path) -> tuple[dict[str, Any], Path]:
    """Return what a folder or a checkpoint says of its model, and the file that says it."""
    if (folder / PARAMS).is_file():
        return read_json(folder / PARAMS), folder / PARAMS
    settings = strict_json.parse(files[0].metadata.get(ARGUMENTS, "{}"))
    if isinstance(settings, dict) and settings:
        return settings, folder
    raise ModelFileError(
        f"{folder} has no config.json, and nothing else says of which model the weights are",
        "put config.json and the tokenizer of the model beside the weights",
    )


def _pickles(folder: Path) -> list[Path]:
    """Return the files that make up the weights."""
    if is_native(folder):
        return sorted(folder.glob("consolidated*.pt*"))
    if (folder / PICKLE).is_file():
        return [folder / PICKLE]
    if (folder / PICKLE_INDEX).is_file():
        return [folder / shard for shard in sorted(set(read_index(folder / PICKLE_INDEX, ".bin").values()))]
    files = pickles_in(folder) if folder.is_dir() else []
    if not files:
        refuse_foreign(folder)
    if len(files) != 1:
        which = ", ".join(path.name for path in files)
        raise ModelFileError(
            f"{folder}: the weights could be each of {which}" if files else f"{folder} holds no file of weights",
            f"name the one file of weights ({', '.join((WEIGHTS, PICKLE, *PICKLES))}) with its path",
        )
    return files


def _convert(source: Path, target: Path) -> TensorFile:
    """Let another process turn a pickle into safetensors."""
    # -P: a folder of a stranger must not become a place to import from.
    command = [sys.executable, "-P", "-m", "orrery.exchange.reading.unpickle", str(source), str(target)]
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    patience = 120 + source.stat().st_size / 10e6
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=patience, check=False)
    except subprocess.TimeoutExpired as error:
        raise ModelFileError(f"{source} took more than {patience:.0f} s", "get safetensors of the model") from error
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"])[-1]
        hint = "get safetensors of the model, or save its tensors alone: torch.save(model.state_dict(), FILE)"
        raise ModelFileError(f"{source} was not converted: {reason}", hint)
    return TensorFile(target)


def _copy_tokenizer(folder: Path, out: Path) -> None:
    """Copy the tokenizer's own files, which say more than ours (chat templates, slow tokenizers)."""
    for name in TOKENIZER_FILES:
        if (folder / name).is_file():
            shutil.copyfile(folder / name, out / name)


def _compare(stored: Stored, beside: Mapping[str, Tensor], fresh: Path, out: Path) -> None:
    """Read back what was written, before it gets its name."""
    file = open_weights(fresh)
    before = {**beside, **weights_of(stored.model)}
    after = {**{name: file[name] for name in beside}, **weights_of(read(fresh).model)}
    wrong = [n for n, tensor in before.items() if tensor.dtype != after[n].dtype or not torch.equal(tensor, after[n])]
    if wrong:
        raise RunError(f"{out}: {wrong[0]} came back with other numbers", "nothing was written; report the model")
