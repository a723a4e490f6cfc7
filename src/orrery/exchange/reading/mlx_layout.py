"""Folders that mlx-lm wrote: tensors that it names or lays out otherwise than transformers does.

All experts of a layer lie in one tensor, and the filters of a convolution are turned; a few families have more.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from orrery.errors import ModelFileError

_EACH = "{x}"
_MOST = 4096
"""Experts of a layer; a file may say any number."""
Make = Callable[..., Tensor]


def _as_it_is(tensor: Tensor) -> Tensor:
    return tensor


def _turned(tensor: Tensor) -> Tensor:
    return tensor.mT


def _less_one(tensor: Tensor) -> Tensor:
    return (tensor.float() - 1).to(tensor.dtype)


def _alone(tensor: Tensor) -> Tensor:
    return tensor.reshape(1)


def _below(*tensors: Tensor) -> Tensor:
    return torch.cat(tensors, -2)


def _in_turn(*tensors: Tensor) -> Tensor:
    return torch.stack(tensors, -1).flatten(-2)


def _turned_in_turn(*tensors: Tensor) -> Tensor:
    return _in_turn(*(tensor.mT for tensor in tensors))


def _keys_over_values(keys_HLD: Tensor, values_HDL: Tensor) -> Tensor:
    """Return the matrix that makes the keys and values of all heads out of a latent of L channels."""
    return torch.cat([keys_HLD.mT, values_HDL], 1).flatten(0, 1)


@dataclass(frozen=True)
class _Move:
    """One tensor of transformers, or one for each expert.

    Attributes:
        source: a regular expression of the name in the files of mlx-lm.
        target: the name in those of transformers; ``{x}`` counts the first axis of the source.
        make: the tensor of the target from those of the sources.
        second: another source.
    """

    source: str
    target: str
    make: Make = _as_it_is
    second: str | None = None


def _experts(theirs: str, ours: str) -> _Move:
    return _Move(rf"(.*)\.switch_mlp\.({theirs})\.(weight|bias)", rf"\1.experts.{_EACH}.{ours}.\3")


_USUAL = (_experts(r"\w+", r"\2"), _Move(r"(.*\.(?:conv1d|conv_1d|conv\.conv)\.weight)", r"\1", _turned))
_MIXTRAL = (_experts("gate_proj", "w1"), _experts("down_proj", "w2"), _experts("up_proj", "w3"))
_GRANITE = (
    _Move(r"(.*)\.switch_mlp\.gate_proj\.weight", r"\1.input_linear.weight", _below, r"\1.switch_mlp.up_proj.weight"),
    _Move(r"(.*)\.switch_mlp\.down_proj\.weight", r"\1.output_linear.weight"),
)
_GRANITE_HYBRID = (
    _Move(r"(.*)\.mlp\.gate_proj\.weight", r"\1.shared_mlp.input_linear.weight", _below, r"\1.mlp.up_proj.weight"),
    _Move(r"(.*)\.mlp\.down_proj\.weight", r"\1.shared_mlp.output_linear.weight"),
)
_GPT_OSS = (
    _Move(r"(.*)\.gate_proj\.weight", r"\1.gate_up_proj", _turned_in_turn, r"\1.up_proj.weight"),
    _Move(r"(.*)\.gate_proj\.bias", r"\1.gate_up_proj_bias", _in_turn, r"\1.up_proj.bias"),
    _Move(r"(.*)\.down_proj\.weight", r"\1.down_proj", _turned),
    _Move(r"(.*)\.down_proj\.bias", r"\1.down_proj_bias"),
)
_GPT_NEOX = (
    _Move(r"model\.embed_out\.(.*)", r"embed_out.\1"),
    _Move(r"model\.h\.(.*)", r"gpt_neox.layers.\1"),
    _Move(r"model\.(.*)", r"gpt_neox.\1"),
)
_GPTJ = _Move(r"model\.(.*)", r"transformer.\1")
_MOVES: Mapping[str, tuple[_Move, ...]] = {
    "apertus": (_Move(r"(.*\.alpha_[pn])", r"\1", _alone),),
    "deepseek_v3": (
        _Move(r"(.*)\.embed_q\.weight", r"\1.kv_b_proj.weight", _keys_over_values, r"\1.unembed_out.weight"),
    ),
    "gpt2": (_Move(r"model\.(.*\.(?:c_attn|c_proj|c_fc)\.weight)", r"transformer.\1", _turned), _GPTJ),
    "gpt_neox": _GPT_NEOX,
    "gpt_oss": _GPT_OSS,
    "gptj": (_GPTJ,),
    "granitemoe": _GRANITE,
    "granitemoehybrid": (*_GRANITE, *_GRANITE_HYBRID),
    **dict.fromkeys(("minimax_m2", "mixtral", "phimoe"), _MIXTRAL),
    "nemotron_h": (_experts("fc1", "up_proj"), _experts("fc2", "down_proj")),
    "qwen3_next": (
        _Move(r"(model\.norm\.weight|.*\.(?:(?:input|post_attention)_layernorm|[qk]_norm)\.weight)", r"\1", _less_one),
    ),
}
_REFUSED: Mapping[str, str] = {
    "ernie4_5_moe": "leaves out the corrections of the routers",
    "falcon_h1": "multiplies the multipliers of config.json into the weights, and not all of them",
}


class MlxTensors(Mapping[str, Any]):  # not Tensor, as RoundedWeights
    """The tensors of a folder of mlx-lm as transformers would have them, each made when it is asked for.

    Args:
        tensors: those of the files, unpacked where they were rounded.
        family: the ``model_type``.
        path: the configuration, for errors.

    Raises:
        ModelFileError: what mlx-lm writes of the family is not the model of transformers.
    """

    def __init__(self, tensors: Any, family: Any, path: Path) -> None:
        if why := _REFUSED.get(str(family)):
            raise ModelFileError(
                f"{path}: mlx-lm, which wrote this {family}, {why}",
                "take the folder that it was made from, or a GGUF of the same model",
            )
        self._tensors, self._path = tensors, path
        self._plan = _plan(tensors.empty(), (*_MOVES.get(str(family), ()), *_USUAL))
        self._last: dict[tuple[str, ...], list[Tensor]] = {}

    @property
    def method(self) -> str | None:
        """What the matrices were rounded by, where they were."""
        return self._tensors.method

    @property
    def elements(self) -> int:
        """How many numbers there are."""
        return self._tensors.elements

    def __getitem__(self, name: str) -> Tensor:
        sources, make = self._plan[name]
        if sources not in self._last:  # the experts of a layer, which come one after another, lie in one
            self._last = {sources: [self._tensors[source] for source in sources]}
        return self._made(name, make, self._last[sources])

    def __iter__(self) -> Iterator[str]:
        return iter(self._plan)

    def __len__(self) -> int:
        return len(self._plan)

    def empty(self) -> dict[str, Tensor]:
        """Return all tensors on the meta device."""
        empty = self._tensors.empty()
        return {
            name: self._made(name, make, [empty[one] for one in parts]) for name, (parts, make) in self._plan.items()
        }

    def _made(self, name: str, make: Make, sources: Sequence[Tensor]) -> Tensor:
        try:
            return make(*sources)
        except (RuntimeError, IndexError) as error:
            shapes = " and ".join(str(list(source.shape)) for source in sources)
            raise ModelFileError(
                f"{self._path}: {name} cannot be made of what mlx-lm wrote, of the shape {shapes}",
                "get the folder again from its source",
            ) from error


def _plan(tensors: Mapping[str, Tensor], moves: Sequence[_Move]) -> dict[str, tuple[tuple[str, ...], Make]]:
    """Return each tensor of transformers with the names of those that it is made of.

    Raises:
        ModelFileError: one is there besides.
    """
    plan: dict[str, tuple[tuple[str, ...], Make]] = {}
    taken: set[str] = set()
    for move, name in product(moves, tensors):
        found = None if name in taken else re.fullmatch(move.source, name)
        if found is None:
            continue
        sources = (name,) if move.second is None else (name, found.expand(move.second))
        target, count = found.expand(move.target), len(tensors[name]) if tensors[name].dim() else 0
        if not tensors.keys() >= set(sources) or (_EACH in target and count > _MOST):
            continue  # left as it is, and named as unexpected
        taken |= set(sources)
        if _EACH in target:
            plan |= {target.replace(_EACH, str(x)): (sources, lambda stack, x=x: stack[x]) for x in range(count)}
        else:
            plan[target] = (sources, move.make)
    others = {name: ((name,), _as_it_is) for name in tensors if name not in taken}
    if doubled := sorted(plan.keys() & others.keys()):
        raise ModelFileError(
            f"{doubled[0]} stands in the files twice, as transformers has it and as mlx-lm has it",
            "get the folder again from its source",
        )
    return plan | others
