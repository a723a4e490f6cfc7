"""Multi-head latent attention: keys and values grow out of a small latent, and only the latent is cached."""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.attention.multihead import ScoreSettings
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.context import Context
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, Value, spec


@spec
class HeadWidths(Value):
    """Channels of a head: of q and k without and with rotation, and of v."""

    plain: int
    rotated: int
    value: int


class LatentAttention(nn.Module):
    """``c = norm(W_down x)``, ``k_h = [W_k_h c ; rotate(W_r x)]``, ``v_h = W_v_h c`` (DeepSeek-V2 2024, section 2.1).

    All heads share the rotated part of the key. The cache holds ``c`` and that part: ``latent + rotated`` numbers a
    token and layer, instead of ``2 H C``. Queries may come through a latent of their own (``query``).
    Shapes: ``[B, L, D]`` to ``[B, L, D]``; the latent ``[B, 1, S, R]``, the rotated key ``[B, 1, S, C_r]``.
    Differs from the paper: no matrices are absorbed; the keys are expanded at every call.
    """

    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """Heads and widths; ``norm`` is that of the latent, ``query`` brings ``x`` to what queries are made of."""

        heads: int
        widths: HeadWidths
        latent: int
        norm: ModuleSpec
        query: ModuleSpec = Identity.Spec()
        bias: bool = False
        scoring: ScoreSettings = ScoreSettings()
        position: str = "rotary"
        mask: str = "causal"

        @property
        def cached(self) -> int:
            """Return the numbers that a token leaves in the cache: the latent and one rotated key for all heads."""
            return self.latent + self.widths.rotated

        def build(self, width: int) -> "LatentAttention":
            """Return the attention."""
            return LatentAttention(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        heads, widths = spec.heads, spec.widths
        self.heads, self.widths = heads, widths
        self.query = spec.query.build(width)
        self.q = nn.Linear(spec.query.out_width(width), heads * (widths.plain + widths.rotated), bias=False)
        self.latent = nn.Linear(width, spec.latent, bias=spec.bias)
        self.rotated = nn.Linear(width, widths.rotated, bias=spec.bias)
        self.norm = spec.norm.build(spec.latent)
        self.k = nn.Linear(spec.latent, heads * widths.plain, bias=False)
        self.v = nn.Linear(spec.latent, heads * widths.value, bias=False)
        self.out = nn.Linear(heads * widths.value, width, bias=spec.bias)
        self.position, self.mask = spec.position, spec.mask
        width_of_a_head = widths.plain + widths.rotated
        self.scale = width_of_a_head**-0.5 if spec.scoring.scale is None else spec.scoring.scale
        self.dropout, self.cap = spec.scoring.dropout, spec.scoring.cap

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Let every token read what it may see."""
        assert ctx.layer is not None
        position = ctx.positions[self.position]
        q_BHLC = self.split(self.q(self.query(x_BLD)))
        plain_BHLC, turned_BHLC = q_BHLC.split([self.widths.plain, self.widths.rotated], dim=-1)
        q_BHLC = torch.cat([plain_BHLC, position.rotate(turned_BHLC)], dim=-1)
        key_B1LC = position.rotate(self.rotated(x_BLD)[:, None])
        latent_B1LR = ctx.tap(self, "latent", self.norm(self.latent(x_BLD)))[:, None]
        latent_B1SR, key_B1SC = ctx.layer.extend(self.mask, latent_B1LR, key_B1LC)
        latent_BSR = latent_B1SR[:, 0]
        k_BHSC = torch.cat([self.split(self.k(latent_BSR)), key_B1SC.expand(-1, self.heads, -1, -1)], dim=-1)
        q_BHLC, k_BHSC = ctx.tap(self, "q", q_BHLC), ctx.tap(self, "k", k_BHSC)
        kv = KeysValues(k_BHSC, ctx.tap(self, "v", self.split(self.v(latent_BSR))))
        operands = Operands(
            mask=ctx.masks[self.mask],
            scale=self.scale,
            bias_BHLS=position.bias(self.mask),
            dropout=self.dropout * self.training,
            cap=self.cap,
            tap=partial(ctx.tap, self),
        )
        mixed_BHLE = ctx.tap(self, "mixed", ctx.kernel(q_BHLC, kv, operands))
        return self.out(mixed_BHLE.transpose(1, 2).flatten(2))

    def split(self, x_BLE: Float[Tensor, "B L E"]) -> Float[Tensor, "B H L C"]:
        """Cut the channels into heads."""
        return x_BLE.unflatten(-1, (self.heads, -1)).transpose(1, 2)
