"""A model out, as a Hugging Face folder or as GGUF: written aside, read back, compared, only then given its name."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orrery.checkpoints import gguf
from orrery.checkpoints.gguf_blocks import unpacked
from orrery.checkpoints.gguf_file import Kind
from orrery.checkpoints.outputs import OutputFile, OutputFolder
from orrery.checkpoints.rules import to_theirs
from orrery.errors import RunError, UsageError
from orrery.exchange.exporting.blocks import laid_out
from orrery.exchange.reading.gguf_architectures import ARCHITECTURES
from orrery.exchange.reading.gguf_factors import stated, written_tensors
from orrery.exchange.reading.gguf_learned import as_facts, is_learned
from orrery.exchange.reading.gguf_parts import TEMPERATURE, GgufArchitecture
from orrery.exchange.reading.read import Stored, read
from orrery.exchange.reading.weights import refuse_buffers, weights_of
from orrery.exchange.saving.beside import beside, copy_beside
from orrery.exchange.saving.save import MODEL_FILES
from orrery.exchange.saving.stored import save
from orrery.exchange.stored import ends_of, tokenizer_of
from orrery.families import load_family
from orrery.models.decoder import Decoder
from orrery.models.dropout import without_dropout
from orrery.nn.spec import to_json
from orrery.text.chat.folder import DEFAULT
from orrery.text.gguf.writing import tells_apart_long_words, vocabulary
from orrery.tuning import describe, numbers_of

_KINDS = {torch.bfloat16: "bf16", torch.float16: "f16"}


@dataclass(frozen=True)
class Exported:
    """What was written and compared.

    Attributes:
        path: the file or folder.
        form: of what kind, in words.
        parameters: how many, tied ones once.
        size: in bytes.
        deviation: the largest difference between a weight and what was read back.
        notes: what a reader of the file may do otherwise.
    """

    path: Path
    form: str
    parameters: int
    size: int
    deviation: float
    notes: tuple[str, ...] = ()


def export_hf(stored: Stored, folder: str | Path, *, overwrite: bool = False) -> Exported:
    """Write the Hugging Face layout, and compare what is read back: weights by bytes, architecture, tokenizer.

    Raises:
        UsageError: the rule of `outputs` refuses the folder, or the model has no family.
        MachineError: the disk refuses.
        RunError: what was read back differs.
    """
    folder = Path(folder)
    tensors = weights_of(stored.model)
    target = OutputFolder(folder, MODEL_FILES, inputs=[stored.folder], overwrite=overwrite)
    with target.aside(sum(tensor.nbytes for tensor in tensors.values())) as fresh:
        save(stored, fresh)
        copy_beside(stored.folder, fresh)
        again = read(fresh)
        compare_bytes(tensors, weights_of(again.model))
        if without_dropout(again.model.spec) != without_dropout(stored.model.spec):
            raise differs("the architecture", "")
        before, after = (None if s.tokenizer is None else s.tokenizer.fingerprint for s in (stored, again))
        if before != after:
            raise differs("the tokenizer", "")
        if again.chat != stored.chat:
            raise differs("the chat template", "")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Exported(folder, f"Hugging Face layout, {stored.family or 'static vectors'}", _count(tensors), size, 0.0)


def export_gguf(stored: Stored, path: str | Path, kind: str | None = None, *, overwrite: bool = False) -> Exported:
    """Write a GGUF file, and compare what is read back: every fact, and every weight within what its kind allows.

    Args:
        stored: the model; its family, settings and tokenizer must be ones that llama.cpp has.
        path: of the file.
        kind: of the matrices: f32, f16, bf16, q8_0 or q4_0; by default the model's own, with float64 as f32. What
            `orrery quantise` stored in groups of a multiple of 32 stays as it is, as Q4_0 and Q8_0.
        overwrite: replace a file that is there.

    Raises:
        UsageError: the rule of `outputs` refuses the path, or GGUF cannot say this model.
        ModelFileError: the model has no tokenizer, or numbers that are not finite.
        MachineError: the package gguf is missing, or the disk refuses.
        RunError: what was read back differs.
    """
    gguf.library()
    path = Path(path)
    model = stored.model
    refuse_buffers(model)
    describe(model)
    kind = kind or _KINDS.get(model.dtype, "f32")
    if kind not in gguf.KINDS:
        raise UsageError(f"no type {kind!r}", f"use one of {', '.join(gguf.KINDS)}")
    architecture = _architecture(stored.family)
    spec: Any = model.spec
    laid = laid_out(model, architecture.rules(spec))
    everything = _tensors(laid.tensors, spec, architecture)
    tensors = {name: tensor for name, tensor in everything.items() if not is_learned(name)}
    gguf.check_storable(tensors, kind, laid.kinds)
    facts = {**_facts(stored, spec, architecture, tensors), **as_facts(everything)}
    target = OutputFile(path, inputs=[stored.folder], overwrite=overwrite)
    with target.aside(sum(tensor.nbytes for tensor in tensors.values())) as fresh:
        gguf.write_gguf(fresh, architecture.name, facts, tensors, kind, laid.kinds)
        worst = _compare(gguf.read_gguf(fresh), facts, tensors, kind, laid.kinds)
    notes = _notes(stored, facts, tensors)
    form = f"GGUF, {architecture.name}, {kind}"
    if laid.kinds:
        names = sorted({kept.name for kept in laid.kinds.values()})
        form = f"{form}, {len(laid.kinds)} matrices as they are, in {', '.join(names)}"
    return Exported(path, form, numbers_of(model), path.stat().st_size, max(worst, laid.deviation), notes)


def _notes(stored: Stored, facts: Mapping[str, Any], tensors: Collection[str]) -> tuple[str, ...]:
    """Return what llama.cpp does otherwise with a file of these facts."""
    names = ", ".join(path.name for path in beside(stored.folder))
    notes = [f"left out, for GGUF has no place for it: {names}; export to hf copies it"] if names else []
    if stored.tokenizer is not None and tells_apart_long_words(stored.tokenizer):
        notes.append("words of more than 64 characters become other tokens in llama.cpp, which does not cut them")
    if facts.get("phi3.attention.sliding_window", math.inf) < facts.get("phi3.context_length", 0):
        notes.append("llama.cpp leaves out the windows of Phi-3: there every token sees all tokens before it")
    if f"phi3.{TEMPERATURE}" in facts:
        notes.append("llama.cpp takes the long factors of LongRoPE by the context it is opened with, not by the text")
    if "t5.block_count" in facts and "output.weight" not in tensors:
        notes.append("llama.cpp leaves out the scale of a tied head: it is surer of each token than the model is")
    return tuple(notes)


def _count(tensors: Mapping[str, Tensor]) -> int:
    return sum(tensor.numel() for tensor in tensors.values())


def _architecture(family: str | None) -> GgufArchitecture:
    written = {name: architecture for name, architecture in ARCHITECTURES.items() if architecture.facts}
    if family not in written:
        named = "a model without a family" if family is None else f"the family {family!r}"
        raise UsageError(f"{named} cannot be written to GGUF", f"GGUF takes {', '.join(written)}; export to hf")
    return written[family]


def _tensors(ours: Mapping[str, Tensor], spec: Decoder.Spec, architecture: GgufArchitecture) -> dict[str, Tensor]:
    """Return the tensors of the file from ours.

    Raises:
        UsageError: one of ours has no place there.
    """
    rules = architecture.rules(spec)
    placed = {name for rule in rules for _, names in rule.places(ours) for name in names}
    if homeless := [name for name in ours if name not in placed]:
        raise UsageError(f"GGUF's {architecture.name} has no place for {homeless[0]}", "export to hf")
    assert architecture.facts is not None
    return {**to_theirs(ours, rules), **written_tensors(spec, architecture.facts(spec))}


def _facts(
    stored: Stored, spec: Decoder.Spec, architecture: GgufArchitecture, tensors: Collection[str]
) -> dict[str, Any]:
    """Return all facts of the file by full key.

    Raises:
        UsageError: a reader of the facts would build another model.
    """
    assert architecture.facts is not None
    facts = architecture.facts(spec)
    understood = load_family(stored.family).spec(architecture.config(facts, tensors))
    if difference := _difference(without_dropout(stated(spec, facts)), without_dropout(understood)):
        raise UsageError(f"GGUF's {architecture.name} cannot say {difference}", "export to hf")
    return {
        "general.type": "model",
        "general.name": stored.name or architecture.name,
        **{f"{architecture.name}.{key}": value for key, value in facts.items()},
        **vocabulary(tokenizer_of(stored), facts["vocab_size"], ends_of(stored)),
        **_templates(stored.chat),
    }


def _templates(chat: Mapping[str, str]) -> dict[str, Any]:
    """Return the facts of chat templates: the usual one, and others by their names, which a list tells."""
    others = {name: source for name, source in chat.items() if name != DEFAULT}
    return {
        **({"tokenizer.chat_template": chat[DEFAULT]} if DEFAULT in chat else {}),
        **({"tokenizer.chat_templates": list(others)} if others else {}),
        **{f"tokenizer.chat_template.{name}": source for name, source in others.items()},
    }


def _difference(ours: Any, understood: Any) -> str | None:
    """Return the first setting that two specs differ in, with what a reader would take instead."""
    left, right = (dict(leaves(to_json(spec))) for spec in (ours, understood))
    for path in [*left, *right]:
        if left.get(path) != right.get(path):
            return f"{path} = {left.get(path)} (a reader takes {right.get(path)})"
    return None


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a JSON tree with their dotted paths."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def compare_bytes(ours: Mapping[str, Tensor], read_back: Mapping[str, Tensor]) -> None:
    """Compare every tensor with what was read back.

    Raises:
        RunError: one differs.
    """
    for name, tensor in ours.items():
        other = read_back.get(name)
        if other is None or other.dtype != tensor.dtype or not torch.equal(other, tensor.cpu()):
            raise differs(f"tensor {name}", "")


def _compare(
    content: gguf.Content, facts: Mapping[str, Any], tensors: Mapping[str, Tensor], kind: str, kept: Mapping[str, Kind]
) -> float:
    """Return the largest deviation of a tensor; what is kept in its blocks has none.

    Raises:
        RunError: a fact or a tensor is not what was written.
    """
    for key, value in facts.items():
        if content.facts.get(key) != (float(np.float32(value)) if isinstance(value, float) else value):
            raise differs(f"the fact {key}", f": {content.facts.get(key)!r} for {value!r}")
    if content.tensors.keys() != tensors.keys():
        raise differs("the set of tensors", f": {sorted(content.tensors.keys() ^ tensors.keys())[:5]}")
    worst = 0.0
    for name, tensor in tensors.items():
        stored = gguf.kind_of(name, tensor, kind, kept)
        original, by = (unpacked(tensor, kept[name]), "f32") if name in kept else (tensor, stored)
        error, explained = gguf.deviation(original, content.tensors[name], by)
        if not explained or content.kinds[name] != stored:
            raise differs(f"tensor {name}", f" by {error:.3g}, more than {stored} explains")
        worst = max(worst, error)
    return worst


def differs(what: str, how: str) -> RunError:
    """Return the error of an export that is not what was to be written."""
    return RunError(
        f"the export was read back, and {what} differs{how}; nothing was left behind",
        "the disk or its memory may be failing; if it happens again, report it with 'orrery info'",
    )
