"""The pattern of one head with another scale or base, from the queries and keys of a pass, before another has run."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.interventions.configured import attentions, rotations
from orrery.nn.attention.disentangled import DisentangledAttention
from orrery.nn.attention.latent import LatentAttention
from orrery.nn.attention.operands import KeysValues
from orrery.nn.masks import TokenPositions
from orrery.nn.positions.rotary import Rotary
from orrery.nn.positions.scheme import PositionCall
from orrery.nn.stack import Stack
from orrery.page.views._inside import Inside


@dataclass(frozen=True)
class Turn:
    """From the angles of one base to those of another: ``R(new) R(old)^-1``, over the channels that rotate.

    Attributes:
        old: the rotation of the pass.
        new: the one that is asked for.
        magnitude: the factor on cosine and sine, which both have.
        first: the first channel that rotates.
    """

    old: Any
    new: Any
    magnitude: float
    first: int

    def __call__(self, x_BHLC: Float[Tensor, "B H L C"]) -> Float[Tensor, "B H L C"]:
        """Return queries or keys, turned back and turned again."""
        turned = x_BHLC[..., self.first :]
        width = self.old.width
        back = replace(self.old, sine=-self.old.sine).rotate(turned)[..., :width] / self.magnitude**2
        again = self.new.rotate(torch.cat([back, turned[..., width:]], dim=-1))
        return torch.cat([x_BHLC[..., : self.first], again], dim=-1)


@dataclass(frozen=True)
class Reconfigured:
    """One attention of a pass, with what is asked of it."""

    inside: Inside
    path: str
    factor: float
    base: float | None

    @torch.no_grad()
    def pattern(self, head: int) -> Float[Tensor, "L S"]:
        """Return the pattern of a head whose queries and keys came from what this pass has given to its block.

        Raises:
            UsageError: the attention has no scale, its queries are not held, as where an edit reaches its scores, or a
                base is asked of a model without rotary positions.
        """
        definition = self.inside.first.definitions.get(self.path)
        attention: Any = dict(attentions(self.inside.model)).get(self.path)
        if definition is None or attention is None:
            raise UsageError(f"the scores of {self.path} cannot be made again alone", "run the whole pass with an edit")
        operands = definition.operands._replace(scale=self.factor * definition.operands.scale)
        if isinstance(attention, DisentangledAttention) and operands.bias_BHLS is not None:
            operands = operands._replace(bias_BHLS=self.factor * operands.bias_BHLS)
        other = replace(definition, operands=operands)
        if self.base is not None:
            turn = self._turn(attention, self.base, definition.q_BHLC)
            k_BKSC, v_BKSE = definition.kv
            other = replace(other, q_BHLC=turn(definition.q_BHLC), kv=KeysValues(turn(k_BKSC), v_BKSE))
        return other.rows("pattern", head, slice(0, definition.shape[2]))

    def _turn(self, attention: Any, base: float, like_BHLC: Tensor) -> Callable[[Tensor], Tensor]:
        """Return how queries and keys of the pass become those of another base."""
        named = (scheme for name, scheme in self._stack().positions.items() if name == attention.position)
        old = next((part for scheme in named for part in scheme.modules() if isinstance(part, Rotary)), None)
        if old is None:
            if not list(rotations(self.inside.model)):
                raise UsageError(f"the positions of {self.path} do not rotate", "leave base out")
            return _as_it_is  # an attention without positions in a model whose others rotate
        new = deepcopy(old)
        new.base = base
        call = _call(like_BHLC)
        first = attention.widths.plain if isinstance(attention, LatentAttention) else 0
        return Turn(old.bind(call), new.bind(call), old.scaling.magnitude, first)

    def _stack(self) -> Stack:
        """Return the stack in which the attention stands."""
        for stack in self.inside.model.modules():
            if isinstance(stack, Stack) and self.path.startswith(f"{stack.path}blocks."):
                return stack
        raise UsageError(f"{self.path} stands in no stack", "run the whole pass with an edit")


def quickly(inside: Inside) -> list[str]:
    """Return the attentions of a pass whose patterns with another scale or base can be made alone, by their keys."""
    return [path for path, _ in attentions(inside.model) if path in inside.first.definitions]


def _as_it_is(x_BHLC: Tensor) -> Tensor:
    return x_BHLC


def _call(like_BHLC: Float[Tensor, "B H L C"]) -> PositionCall:
    """Return the call of one whole text."""
    length = like_BHLC.shape[2]
    at = TokenPositions(torch.arange(length, device=like_BHLC.device)[None])
    return PositionCall(at, {"": at}, length, like_BHLC.dtype)
