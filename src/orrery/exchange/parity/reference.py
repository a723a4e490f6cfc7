"""The other side of a comparison: a folder as transformers reads it, under the names of our traces."""

import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from orrery.errors import MachineError, UsageError
from orrery.exchange.parity.compare import Values
from orrery.exchange.reading.config_keys import read_config
from orrery.exchange.reading.files import CONFIG, read_json
from orrery.families import load_family
from orrery.families._wholes import whole_of
from orrery.settings import install


@torch.no_grad()
def look(folder: Path, given: Sequence[Tensor], dtype: torch.dtype) -> Values:
    """Return what enters the first layer, what leaves every layer, and the logits.

    Raises:
        MachineError: transformers is not installed.
        UsageError: transformers has no such model.
    """
    model = _load(folder, dtype)
    values: dict[str, Tensor] = {}
    for side, layers in _stacks(model):
        _watch(side, layers, values)
    out = model(**_call(model, given, dtype))
    if getattr(out, "logits", None) is not None:
        values["logits"] = out.logits.movedim(1, -1) if out.logits.dim() == 4 else out.logits  # labels of every point
    return values


def _call(model: Any, given: Sequence[Tensor], dtype: torch.dtype) -> dict[str, Any]:
    """Return what a model is called with; a masked autoencoder hides nothing, as ours without noise."""
    dual = hasattr(model.config, "text_config") and hasattr(model.config, "vision_config")
    names = ("pixel_values", "input_ids") if dual else (model.main_input_name, "decoder_input_ids")
    arguments: dict[str, Any] = {
        name: x.to(dtype) if x.is_floating_point() else x for name, x in zip(names, given, strict=False)
    }
    if hasattr(model.config, "mask_ratio"):
        model.config.mask_ratio = 0.0
        patches = (given[0].shape[2] // model.config.patch_size) * (given[0].shape[3] // model.config.patch_size)
        arguments["noise"] = torch.arange(patches).expand(len(given[0]), -1)
    return arguments


def _load(folder: Path, dtype: torch.dtype) -> Any:
    """Load with the class that the family names: a folder may not choose code to run."""
    if importlib.util.find_spec("transformers") is None:
        raise MachineError("transformers is not installed", install("oracle"))
    import transformers

    if whole := whole_of(read_json(folder / CONFIG)):
        raise UsageError(
            f"{folder} is a {whole}, which transformers runs with its part for pictures",
            f"compare the part that reads and writes text, which is written by: orrery import {folder} NEW",
        )
    config = read_config(folder)
    family = load_family(config.get("model_type"))
    names = [name for name in (config.get("architectures") or []) if isinstance(name, str)]
    classes = (getattr(transformers, name, None) for name in (*names, family.ARCHITECTURE))
    own = (cls for cls in classes if isinstance(cls, type) and issubclass(cls, transformers.PreTrainedModel))
    # Some kinds have a configuration alone, and are read with the class of another.
    lent = transformers.AutoModelForCausalLM if config.get("model_type") in transformers.CONFIG_MAPPING else None
    cls: Any = next(own, lent)
    if cls is None:
        raise UsageError(f"transformers has no {family.ARCHITECTURE}", "compare with a folder that orrery reads")
    transformers.utils.logging.disable_progress_bar()
    safe: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False, "use_safetensors": True}
    # The experts that transformers takes by default are a grouped product of torch, which knows no float64.
    plain: dict[str, Any] = {"attn_implementation": "eager", "experts_implementation": "eager"}
    return cls.from_pretrained(folder, dtype=dtype, **plain, **safe).eval()


def _stacks(model: Any) -> Iterator[tuple[str, nn.ModuleList]]:
    """Yield the outermost lists of layers: one, that of each stage, or that of the encoder and that of the decoder."""
    lists = {name: module for name, module in model.named_modules() if isinstance(module, nn.ModuleList)}
    outer = {name: part for name, part in lists.items() if not any(name.startswith(f"{other}.") for other in lists)}
    first = next(iter(outer.values()))
    stages = [part for stage in first if isinstance(part := getattr(stage, "blocks", None), nn.ModuleList)]
    if stages:
        yield from (("" if part is stages[-1] else f"stage{n}.", part) for n, part in enumerate(stages))
        return
    for reads, answers in _SIDES:
        sides = [[part for name, part in outer.items() if side in name.split(".")] for side in (reads, answers)]
        if all(sides):
            yield "encoder.", sides[0][0]
            yield "", sides[1][0]
            return
    yield "", first


_SIDES = (("encoder", "decoder"), ("vit", "decoder"), ("vision_model", "text_model"), ("vision_model", "text_decoder"))
"""What the two sides of a model are called there: the one that is read first, and the one that answers."""


def _watch(side: str, layers: nn.ModuleList, values: dict[str, Tensor]) -> None:
    """Keep what enters the first layer and what leaves each, counted by calls: a shared layer runs several times."""

    def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
        values.setdefault(f"{side}embedded", args[0] if args else kwargs["hidden_states"])

    def leave(module: nn.Module, args: Any, output: Any) -> None:
        depth = sum(key.startswith(f"{side}blocks.") for key in values)
        values[f"{side}blocks.{depth}.resid_post"] = output[0] if isinstance(output, tuple | list) else output

    layers[0].register_forward_pre_hook(enter, with_kwargs=True)
    for layer in layers:
        layer.register_forward_hook(leave)
