"""The mean of several models' weights: checkpoints of one run, or folders of one architecture."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal

import torch

from orrery.checkpoints import manifest, succession
from orrery.checkpoints.names import FOLDER as CHECKPOINT
from orrery.checkpoints.outputs import OutputFolder
from orrery.checkpoints.store import MODEL, SPEC, CheckpointStore
from orrery.errors import ModelFileError, UsageError
from orrery.exchange.exporting.export import compare_bytes, leaves
from orrery.exchange.reading.files import CONFIG
from orrery.exchange.reading.read import locate, read
from orrery.exchange.reading.stored import CHECKPOINTS, Stored
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving.save import MODEL_FILES
from orrery.exchange.saving.stored import save
from orrery.families import load_family, spec_of
from orrery.models.default_device import on_cpu_by_default
from orrery.models.dropout import without_dropout
from orrery.tuning import spec_json

LAST = 5
"""Checkpoints that are averaged where none are named, as of the base Transformer (Vaswani et al. 2017, 6.1)."""
WRITTEN = (*MODEL_FILES, SPEC, MODEL, manifest.NAME)
"""What an average may leave in its folder."""


@dataclass(frozen=True)
class Averaged:
    """What was averaged and written.

    Attributes:
        path: the folder.
        folders: of the models that went in.
        parameters: how many, tied ones once.
        layout: hf or own.
    """

    path: Path
    folders: tuple[Path, ...]
    parameters: int
    layout: Literal["hf", "own"]


@on_cpu_by_default
def average(
    model: str | Path,
    out: str | Path,
    *,
    last: int | None = None,
    checkpoints: Sequence[int] = (),
    others: Sequence[str | Path] = (),
    overwrite: bool = False,
) -> Averaged:
    """Write the model whose weights are the mean of several models' weights.

    ``W = (W_1 + ... + W_N) / N`` in float64, then in the dtype of the first (Vaswani et al. 2017, section 6.1). It is
    written as the inputs are: checkpoints of a family and published folders in the Hugging Face layout, all else as
    spec.json with our own names; read back and compared, and only then given its name.

    Args:
        model: a run, of which checkpoints are averaged; with ``others`` any model.
        out: the new folder.
        last: the number of the run's newest checkpoints, by default 5.
        checkpoints: steps of the run's checkpoints, in the place of ``last``.
        others: models that are averaged with the first, in the place of its checkpoints.
        overwrite: replace an average that is there.

    Raises:
        UsageError: the rule of `outputs` refuses ``out``, the run does not keep such checkpoints, or two models are
            of different architectures or tokenizers.
        ModelFileError: a model is damaged.
        RunError: what was written is not what was read back.
    """
    if sum((last is not None, bool(checkpoints), bool(others))) > 1:
        raise UsageError("last, checkpoints and others exclude each other", "give one of them")
    target = OutputFolder(out, WRITTEN, inputs=[model, *others], overwrite=overwrite)
    folders = [locate(name) for name in (model, *others)] if others else _of_run(Path(model), last, checkpoints)
    if len({folder.resolve() for folder in folders}) < max(2, len(folders)):
        named = ", ".join(map(str, folders))
        raise UsageError(f"a mean needs several models, each once, and these are {named}", "name others")
    stored = _mean(folders)
    weights, layout = weights_of(stored.model), _layout(stored)
    with target.aside(sum(tensor.nbytes for tensor in weights.values())) as fresh:
        save(stored, fresh, {"name": target.path.name}, layout)
        compare_bytes(weights, weights_of(read(fresh).model))
    return Averaged(Path(out), tuple(folders), sum(tensor.numel() for tensor in weights.values()), layout)


def _of_run(run: Path, last: int | None, steps: Sequence[int]) -> list[Path]:
    """Return the folders of a run's checkpoints, the newest first."""
    if run.is_dir():
        succession.finish(run)
    store = CheckpointStore(run / CHECKPOINTS if (run / CHECKPOINTS).is_dir() else run)
    kept = store.steps()
    if not kept:
        raise UsageError(f"{run} has no checkpoints", "give a run, or name several models with --others")
    count = LAST if last is None else last
    message = f"{run} keeps the checkpoints {', '.join(map(str, reversed(kept)))}"
    hint = "average those, or train with a higher checkpoints.keep"
    if missing := [step for step in steps if step not in kept]:
        raise UsageError(f"{message}, and not {missing[0]}", hint)
    if not steps and len(kept) < count:
        raise UsageError(f"{message}, and {count} were to be averaged", f"--last {len(kept)}: {hint}")
    return [store.path(step) for step in (steps or kept[:count])]


def _mean(folders: Iterable[Path]) -> Stored:
    """Return the first model with the mean of all weights; one at a time is in memory beside the sum."""
    models = map(read, folders)
    first, count = next(models), 1
    own = weights_of(first.model)
    sums = {name: tensor.double() for name, tensor in own.items() if tensor.is_floating_point()}
    for other in models:
        _refuse_other_kind(first, other)
        weights, count = weights_of(other.model), count + 1
        for name, tensor in own.items():
            if name in sums:
                sums[name] += weights[name]
            elif not torch.equal(tensor, weights[name]):
                message = f"{name} has whole numbers, which have no mean, and {other.folder} has others"
                raise UsageError(message, "average the models before they are quantised")
    for name, total in sums.items():
        own[name].copy_(total / count)
    return first


def _refuse_other_kind(first: Stored, other: Stored) -> None:
    """Refuse two models that differ in more than their weights."""
    if difference := next(_differences(first, other), None):
        message = f"{first.folder} and {other.folder} are different models: {difference}"
        raise UsageError(message, "average models of one architecture")
    if (first.tokenizer and first.tokenizer.fingerprint) != (other.tokenizer and other.tokenizer.fingerprint):
        message = f"{first.folder} and {other.folder} have different tokenizers"
        raise UsageError(message, "average models of one tokenizer: equal numbers must mean equal words")


def _differences(first: Stored, other: Stored) -> Iterator[str]:
    """Yield the settings in which two architectures differ, but for their dropout."""
    ours, theirs = (leaves(spec_json(without_dropout(s.model.spec), s.model.transforms)) for s in (first, other))
    for one, two in zip_longest(ours, theirs, fillvalue=("nothing more", None)):
        if one != two:
            yield f"{one[0]} = {one[1]}" + (f", not {two[1]}" if one[0] == two[0] else f", not {two[0]} = {two[1]}")


def _layout(stored: Stored) -> Literal["hf", "own"]:
    """Return the layout of a model's folder: of a checkpoint the one in which its run writes the final model."""
    if (stored.folder / CONFIG).is_file():
        return "hf"
    spec = stored.model.spec
    if not CHECKPOINT.fullmatch(stored.folder.name) or stored.model.transforms:
        return "own"
    if stored.family is None or stored.config is None or stored.tokenizer is None:
        return "own"
    try:
        published = spec_of(load_family(stored.family), stored.config)
    except ModelFileError:
        return "own"
    return "hf" if without_dropout(published) == without_dropout(spec) else "own"
