"""``orrery export``: a model out, as GGUF or in the Hugging Face layout, read back and compared."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from orrery.errors import UsageError

if TYPE_CHECKING:
    from orrery.loading.export import Exported


def export(
    model: str,
    format: Literal["gguf", "hf"],
    output: Path,
    /,
    *,
    type: Annotated[Literal["f32", "f16", "bf16", "q8_0", "q4_0"] | None, Parameter(name="--type")] = None,
) -> None:
    """Write a model for other programs; success is told only after what was written was read back and compared.

    gguf is one file for llama.cpp and what is built on it, and takes the families and byte-level BPE tokenizers that
    llama.cpp has; hf is a folder for transformers, with every weight as it is. What exists is never overwritten.

    Args:
        model: A run, a checkpoint, or a Hugging Face folder.
        format: gguf or hf.
        output: The file or folder to write.
        type: How gguf stores matrices; where not given, as the model does, float64 as f32.
    """
    if format == "hf" and type is not None:
        raise UsageError("--type belongs to gguf; hf writes the weights as they are", "leave --type away")
    from orrery.loading.export import export_gguf, export_hf
    from orrery.loading.read import read

    stored = read(model, lambda line: print(line, file=sys.stderr))
    _print(export_hf(stored, output) if format == "hf" else export_gguf(stored, output, type))


def _print(done: "Exported") -> None:
    print(f"{done.path}: {done.form}; {done.parameters:,} parameters, {done.size:,} bytes")
    print(f"read back and compared: the largest deviation of a weight is {done.deviation:.3g}")
    for note in done.notes:
        print(f"note: {note}", file=sys.stderr)
