"""A path in, a language model out."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from orrery.exchange.reading.adapted import with_adapter
from orrery.exchange.reading.placement import choose_device, describe, place
from orrery.exchange.reading.read import read
from orrery.generation.compiled_step import check_kernel, described
from orrery.language_model.model import LanguageModel
from orrery.models.default_device import on_cpu_by_default
from orrery.settings import step_kernel
from orrery.training.live_curves import notebook_display


def _printed(line: str) -> None:
    """Print on stderr; in a notebook, which shows that in red as a fault, on stdout."""
    print(line, file=sys.stderr if notebook_display() is None else sys.stdout)


@on_cpu_by_default
def load(
    path: str | Path,
    device: str = "auto",
    dtype: str = "auto",
    say: Callable[[str], None] = _printed,
    adapter: str | Path | None = None,
    kernel: str | None = None,
) -> LanguageModel:
    """Load a model.

    Args:
        path: a run (its final model, else its best checkpoint, else its newest), a checkpoint, a Hugging Face folder,
            or ``hf:org/name@revision``, the only form that opens a socket; or a folder of peft's, whose base is here.
        device: ``auto`` (a GPU where there is one), ``cpu``, ``cuda``, ``cuda:1``.
        dtype: ``auto``, ``stored`` (exactly the file's), ``float32``, ``bfloat16``, ``float16``, ``float64``.
        say: told what was chosen; by default it is printed on stderr, in a notebook on stdout.
        adapter: a folder of peft's with a LoRA for this model.
        kernel: how one token after another is written: ``auto`` (compiled where that can be), ``eager``, ``compiled``
            (or an error); by default ``ORRERY_KERNEL``, else ``auto``.

    Raises:
        UsageError: no such device, dtype or kernel, or the hub has no such model.
        ModelFileError: there is no model, or its files are damaged or do not fit each other.
        MachineError: this machine has no such device, or the hub cannot be reached.
    """
    target, chosen = choose_device(device), kernel or step_kernel()
    check_kernel(chosen)
    stored = replace(read(path, say), kernel=chosen)
    if adapter is not None:
        stored = with_adapter(stored, adapter, say)
    place(stored.model, target, dtype)
    for behind in stored.behind:
        behind.to(target, torch.promote_types(stored.model.dtype, torch.float32))
    tells_kernel = stored.model.spec.writes and chosen != "eager"
    steps = f", {described(stored.model, chosen)}" if tells_kernel else ""
    say(f"{stored.folder}: {describe(stored.model)}{steps}")
    if stored.passed_over:
        say(f"config.json: {', '.join(stored.passed_over)} passed over, which no number depends on")
    if stored.left:
        say(f"the value head of a training passed over, {', '.join(stored.left)}: no logits pass through it")
    return LanguageModel(stored)
