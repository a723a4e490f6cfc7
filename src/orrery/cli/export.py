"""``orrery export``: a model out, as GGUF, in the Hugging Face layout or as word vectors, read back and compared."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from orrery.cli.places import MODEL
from orrery.errors import UsageError

if TYPE_CHECKING:
    from orrery.exchange.exporting.export import Exported


def export(
    model: Annotated[str, MODEL],
    format: Literal["gguf", "hf", "peft", "word2vec"],
    output: Path,
    /,
    *,
    type: Annotated[Literal["f32", "f16", "bf16", "q8_0", "q4_0"] | None, Parameter(name="--type")] = None,
    binary: bool = False,
    merge: bool = False,
    overwrite: bool = False,
) -> None:
    """Write a model for other programs (GGUF, Hugging Face, word2vec, peft), read it back, and compare.

    gguf is one file for llama.cpp and what is built on it, and takes the families and byte-level BPE tokenizers that
    llama.cpp has; hf is a folder for transformers, with every weight as it is; peft is a folder with a model's low-rank
    adapters alone; word2vec is the file of the C program, from word vectors or from the table a model reads its
    tokens from.

    Args:
        model: A run, a checkpoint, a Hugging Face folder, or a GGUF file; for word2vec also a file of word vectors.
        format: gguf, hf, peft or word2vec.
        output: The file or folder to write.
        type: How gguf stores matrices of floats; where not given, as the model does, float64 as f32.
        binary: Write word2vec's binary form, a third of the size, instead of text.
        merge: First put what adapters and quantised weights compute into plain matrices, which other programs know.
        overwrite: Replace the file that is there, or a folder that holds an exported model and nothing else.
    """
    _refuse_flags(format, type, binary=binary, merge=merge)
    from orrery import tuning
    from orrery.checkpoints.outputs import OutputFile, OutputFolder
    from orrery.exchange.exporting.export import export_gguf, export_hf
    from orrery.exchange.exporting.peft import FILES, export_peft
    from orrery.exchange.exporting.word2vec import export_word2vec
    from orrery.exchange.reading.read import read
    from orrery.exchange.reading.word_vectors import read_word_vectors
    from orrery.exchange.saving.save import MODEL_FILES

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    # Refused before anything is read.
    if format in ("hf", "peft"):
        OutputFolder(output, MODEL_FILES if format == "hf" else FILES, inputs=[model], overwrite=overwrite)
    else:
        OutputFile(output, inputs=[model], overwrite=overwrite)
    if format == "word2vec":
        _print(export_word2vec(read_word_vectors(model, say), output, binary=binary, overwrite=overwrite))
        return
    stored = read(model, say)
    if merge:
        tuning.merge(stored.model)
    if format == "peft":
        _print(export_peft(stored, output, overwrite=overwrite))
    elif format == "hf":
        _print(export_hf(stored, output, overwrite=overwrite))
    else:
        _print(export_gguf(stored, output, type, overwrite=overwrite))


def _refuse_flags(format: str, type: str | None, *, binary: bool, merge: bool) -> None:
    if format != "gguf" and type is not None:
        raise UsageError(f"--type belongs to gguf; {format} writes the numbers as they are", "leave --type away")
    if format != "word2vec" and binary:
        raise UsageError("--binary belongs to word2vec", "leave --binary away")
    if format in ("peft", "word2vec") and merge:
        raise UsageError("--merge belongs to gguf and hf", "leave --merge away")


def _print(done: "Exported") -> None:
    print(f"{done.path}: {done.form}; {done.parameters:,} parameters, {done.size:,} bytes")
    print(f"read back and compared: the largest deviation of a weight is {done.deviation:.3g}")
    for note in done.notes:
        print(f"note: {note}", file=sys.stderr)
