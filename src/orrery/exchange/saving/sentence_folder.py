"""What sentence-transformers reads beside a model: the list of modules, and a folder for each step behind the model."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from torch import nn

from orrery.checkpoints.tensors import write_tensors
from orrery.exchange.reading.files import WEIGHTS
from orrery.exchange.reading.sentence_folder import FLAGS, MODULES, OF_TRANSFORMERS, SETTINGS
from orrery.models.sentence_vectors import Dense, Sentences, SentenceVectors, UnitLength

_CLASSES = {Dense: "Dense", nn.LayerNorm: "LayerNorm", UnitLength: "Normalize"}
Step: TypeAlias = tuple[str, dict[str, Any] | None, nn.Module | None]
"""The class of a step, its configuration, and what holds its tensors."""
_PACKAGE = "sentence_transformers.models"
_MOST = 10
FOLDERS = tuple(f"{place}_{kind}" for place in range(1, _MOST) for kind in ("Pooling", *_CLASSES.values()))
"""What the folders of the steps may be called."""
FILES = (MODULES, SETTINGS, OF_TRANSFORMERS[0], *FOLDERS)


def write_sentences(folder: Path, sentences: Sentences, width: int) -> None:
    """Write how vectors of texts are made, so that sentence-transformers makes the same.

    Args:
        folder: of the model, whose own files are there.
        sentences: how they are made.
        width: of the model's final stream.
    """
    rows = {"max_seq_length": sentences.length, "do_lower_case": sentences.lowercase}
    write_json(folder / OF_TRANSFORMERS[0], rows)
    write_settings(folder, sentences)
    write_modules(folder, steps_written(folder, steps_of(sentences.vectors, width, sentences.pools_prompt)))


def write_settings(folder: Path, sentences: Sentences) -> None:
    """Write what is said of the whole: prompts, how vectors are compared."""
    said = {
        "prompts": dict(sentences.prompts),
        "default_prompt_name": sentences.prompt,
        "similarity_fn_name": sentences.similarity or "cosine",
    }
    write_json(folder / SETTINGS, said)


def steps_written(folder: Path, steps: Sequence[Step], last: Mapping[str, Any] | None = None) -> list[tuple[str, str]]:
    """Write a folder for each step behind the model, and return their names with those of their classes.

    Args:
        folder: of the model.
        steps: as `steps_of` gives them.
        last: what the configuration of the last step says besides.
    """
    named = []
    for place, (kind, config, module) in enumerate(steps, 1):
        name = f"{place}_{kind}"
        named.append((name, kind))
        (folder / name).mkdir(exist_ok=True)
        if config is not None:
            write_json(folder / name / "config.json", {**config, **((last or {}) if place == len(steps) else {})})
        if module is not None:
            start = "norm." if kind == "LayerNorm" else ""
            tensors = {f"{start}{key}": tensor.detach() for key, tensor in module.named_parameters()}
            write_tensors(folder / name / WEIGHTS, tensors, {"format": "pt"})
    return named


def write_modules(
    folder: Path, behind: Sequence[tuple[str, str]], package: str = _PACKAGE, first: str = "Transformer"
) -> None:
    """Write the list of modules: the model, whose class is ``first``, and what stands behind it, each in a folder."""
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"{package if path else _PACKAGE}.{kind}"}
        for place, (path, kind) in enumerate([("", first), *behind])
    ]
    write_json(folder / MODULES, modules)


def steps_of(vectors: SentenceVectors, width: int, pools_prompt: bool = True) -> list[Step]:
    """Return the pooling and each step behind it; ``width`` is of the model's final stream."""
    return list(_steps(vectors, width, pools_prompt))


def _steps(vectors: SentenceVectors, width: int, pools_prompt: bool) -> Iterator[Step]:
    modes = vectors.pooling.modes
    flags: dict[str, Any] = {key: mode in modes for key, mode in FLAGS.items()}
    # The keys of older versions put several side by side in one order; newer ones have a list for any other.
    ordered = [mode for mode in FLAGS.values() if mode in modes] == list(modes)
    flags |= {} if ordered else {"pooling_mode": list(modes)}
    yield "Pooling", {"word_embedding_dimension": width, **flags, "include_prompt": pools_prompt}, None
    for step in vectors.steps:
        if isinstance(step, Dense):
            config = {
                "in_features": step.linear.in_features,
                "out_features": step.linear.out_features,
                "bias": step.linear.bias is not None,
                "activation_function": step.activation,
                **({"use_residual": True} if step.adds else {}),
            }
            yield "Dense", config, step
        elif isinstance(step, nn.LayerNorm):
            yield "LayerNorm", {"dimension": step.normalized_shape[0]}, step
        elif isinstance(step, UnitLength):
            yield "Normalize", None, None


def write_json(path: Path, content: Any) -> None:
    """Write a file of settings."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
