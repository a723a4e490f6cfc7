"""Norms: each token's vector brought to a fixed scale."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.parting import Grain
from orrery.nn.spec import ModuleSpec, spec


class LayerNorm(nn.Module):
    """``(x - mean) / sqrt(var + eps) * (offset + gain) + bias``, over the channels (Ba et al. 2016).

    The variance is the biased one (divided by D), as in the paper and the course. Differs from the slides: they write
    no epsilon; ``eps=0`` is their formula. Nemotron stores the gain minus one, which is ``offset=1``.
    Shapes: ``[B, L, D]`` to ``[B, L, D]``.
    """

    parting: ClassVar = Grain.TOKEN

    @spec
    class Spec(ModuleSpec):
        """``eps`` inside the root; ``bias`` as in the paper, or none (LLM practice); a ``gain`` or none (OLMo)."""

        eps: float = 1e-5
        bias: bool = True
        gain: bool = True
        offset: float = 0.0

        def build(self, width: int) -> "LayerNorm":
            """Return a norm with gain one and bias zero."""
            return LayerNorm(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.eps, self.offset = spec.eps, spec.offset
        self.shape = (width,)
        self.weight = nn.Parameter(torch.full((width,), 1.0 - spec.offset)) if spec.gain else None
        self.bias = nn.Parameter(torch.zeros(width)) if spec.bias else None

    def forward(self, x_BLD: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Normalise each vector."""
        gain_D = self.weight if not self.offset or self.weight is None else self.weight + self.offset
        return F.layer_norm(x_BLD, self.shape, gain_D, self.bias, self.eps)


class RMSNorm(nn.Module):
    """``x / sqrt(mean(x^2) + eps) * (offset + gain)`` (Zhang and Sennrich 2019).

    Differs from the paper: epsilon inside the root, as every implementation has it. Below float32 the statistics are
    taken in float32. Gemma stores the gain minus one, which is ``offset=1``. Shapes: ``[B, L, D]`` to ``[B, L, D]``.
    """

    parting: ClassVar = Grain.TOKEN

    @spec
    class Spec(ModuleSpec):
        """``eps`` inside the root; ``offset`` added to the stored gain."""

        eps: float = 1e-6
        offset: float = 0.0

        def build(self, width: int) -> "RMSNorm":
            """Return a norm whose effective gain is one."""
            return RMSNorm(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.eps, self.offset = spec.eps, spec.offset
        self.weight = nn.Parameter(torch.full((width,), 1.0 - spec.offset))

    def forward(self, x_BLD: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Normalise each vector."""
        gain_D = self.weight + self.offset  # under autocast x may be bfloat16 beside a float32 gain
        return F.rms_norm(x_BLD.to(gain_D.dtype), gain_D.shape, gain_D, self.eps).to(x_BLD.dtype)


class PlainRMSNorm(nn.Module):
    """``x / sqrt(mean(x^2) + eps)``: an RMSNorm without a gain (Falcon Mamba). Shapes: ``[B, L, D]`` to ``[B, L, D]``.

    Below float32 the statistics are taken in float32.
    """

    parting: ClassVar = Grain.TOKEN

    @spec
    class Spec(ModuleSpec):
        """``eps`` inside the root."""

        eps: float = 1e-6

        def build(self, width: int) -> "PlainRMSNorm":
            """Return the norm; it has no parameters."""
            return PlainRMSNorm(self.eps)

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps

    def forward(self, x_BLD: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Normalise each vector."""
        return F.rms_norm(x_BLD, x_BLD.shape[-1:], eps=self.eps)


class HeadNorm(nn.Module):
    """``norm(head)`` for every head of q or k, with one gain for all heads (Qwen 3, Gemma 3).

    Shapes: ``[B, L, H C]`` unchanged; the norm sees ``[B, L, H, C]``.
    """

    parting: ClassVar = Grain.HEAD

    @spec
    class Spec(ModuleSpec):
        """The norm of a head of ``head_width`` channels."""

        norm: ModuleSpec
        head_width: int

        def build(self, width: int) -> "HeadNorm":
            """Return the norm."""
            return HeadNorm(self.norm.build(self.head_width), self.head_width)

    def __init__(self, norm: nn.Module, head_width: int) -> None:
        super().__init__()
        self.norm, self.head_width = norm, head_width

    def forward(self, x_BLE: Float[Tensor, "*B E"]) -> Float[Tensor, "*B E"]:
        """Return the vectors, each head normalised by itself."""
        return self.norm(x_BLE.unflatten(-1, (-1, self.head_width))).flatten(-2)


class PerHeadNorm(nn.Module):
    """``(head_h - mean) / sqrt(var + eps) * gain_h``, a LayerNorm with a gain for each head (StableLM 2, Cohere).

    The gains are separate, as q, k and v are; that some files hold them as one matrix is a fact of those files.
    Shapes: ``[B, L, H C]`` unchanged; H gains ``[C]``.
    """

    @spec
    class Spec(ModuleSpec):
        """``eps`` inside the root."""

        head_width: int
        eps: float = 1e-5

        def build(self, width: int) -> "PerHeadNorm":
            """Return norms for ``width / head_width`` heads."""
            return PerHeadNorm(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.eps, self.shape = spec.eps, (spec.head_width,)
        self.gains = nn.ParameterList(torch.ones(spec.head_width) for _ in range(width // spec.head_width))

    def forward(self, x_BLE: Float[Tensor, "*B E"]) -> Float[Tensor, "*B E"]:
        """Return the vectors, each head normalised by itself."""
        x_BLHC = F.layer_norm(x_BLE.unflatten(-1, (-1, *self.shape)), self.shape, eps=self.eps)
        return (x_BLHC * torch.stack(list(self.gains))).flatten(-2)
