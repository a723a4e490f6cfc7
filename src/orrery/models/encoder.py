"""The encoder: every token reads the whole row, and one or more heads answer (BERT and its descendants).

Over a causal stack the same assembly is a classifier or a reward model; over patches of images it is a ViT.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.models.calls import default_kernel, tie
from orrery.models.places import placed
from orrery.nn.attention.kernels import Kernel
from orrery.nn.cache import UNCACHED
from orrery.nn.context import Context, Taps
from orrery.nn.embeddings import SegmentedEmbedding, TokenEmbedding
from orrery.nn.heads import LanguageModelHead
from orrery.nn.patches import PatchEmbedding
from orrery.nn.spec import ModuleSpec, spec
from orrery.nn.stack import Stack

Inputs: TypeAlias = Int[Tensor, "B L"] | Float[Tensor, "B channels rows columns"]
"""What an encoder reads: token numbers, or images where its embedding cuts patches."""


class Encoder(nn.Module):
    """``head(stack(embed(inputs, segments)))``.

    Shapes: ids ``[B, L]`` or images ``[B, channels, rows, columns]`` to what the head gives, often ``[B, L, V]``.
    """

    role: str = ""
    scan: str | None = None

    @spec
    class Spec(ModuleSpec):
        """The whole architecture; ``context`` is the length it is meant for, the first of ``heads`` the main one."""

        width: int
        context: int
        embed: TokenEmbedding.Spec | SegmentedEmbedding.Spec | PatchEmbedding.Spec
        stack: Stack.Spec
        heads: Mapping[str, ModuleSpec]

        def build(self, width: int = 0) -> "Encoder":
            """Return the model, its weights as torch leaves them; the width is the spec's own."""
            return Encoder(self)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec = spec
        self.kernel: Kernel = default_kernel(spec)
        self.embed = spec.embed.build(spec.stack.entry_width(spec.width))
        self.stack = spec.stack.build(spec.width)
        self.heads = nn.ModuleDict({name: head.build(spec.width) for name, head in spec.heads.items()})
        for name, head in spec.heads.items():
            if isinstance(head, LanguageModelHead.Spec) and head.tied:
                tie(self.embed.token, self.heads[name])  # type: ignore[arg-type]

    def prepare(
        self,
        inputs: Inputs,
        *,
        real: Bool[Tensor, "B L"] | None = None,
        positions: Int[Tensor, "#B L"] | None = None,
        documents: Int[Tensor, "B L"] | None = None,
        prefix: Int[Tensor, "B *L"] | None = None,
        segments: Int[Tensor, "B L"] | None = None,
        kernel: Kernel | None = None,
        scan: str | None = None,
        losses: list[Tensor] | None = None,
        taps: Taps | None = None,
    ) -> tuple[Float[Tensor, "B L D"], Context]:
        """Embed the inputs and bind everything that varies per call; always eager.

        Args:
            inputs: token numbers, or images.
            real: which of them are tokens and not padding; padding may stand on either side.
            positions: of each token; by default counted from the real ones, by document.
            documents: of each token in a packed row; -1 for padding.
            prefix: as in a decoder, where a mask has one.
            segments: of each token, where the model has segments; by default the first.
            kernel: the attention kernel; by default the model's own, ``model.kernel``.
            scan: the form of mixers with a state; by default ``model.scan``, or each mixer's own.
            losses: where auxiliary losses (load balance) are appended.
            taps: a recorder.
        """
        x_BLD = self.embed(inputs, segments)
        at = placed(self.stack, x_BLD, real=real, positions=positions, documents=documents, prefix=prefix)
        return self.stack.prepare(
            x_BLD,
            at.places,
            at.real,
            whole=at.whole,
            cache=UNCACHED,
            kernel=kernel or self.kernel,
            scan=scan or self.scan,
            losses=losses,
            taps=taps,
        )

    def hidden(self, inputs: Inputs, **call: Any) -> Float[Tensor, "B L D"]:
        """Return the final stream; arguments as in ``prepare``."""
        return self.stack(*self.prepare(inputs, **call))

    def forward(self, inputs: Inputs, *, head: str | None = None, **call: Any) -> Float[Tensor, "..."]:
        """Return the answer of a head, the main one by default; arguments as in ``prepare``.

        Raises:
            UsageError: the model has no head, or none of this name.
        """
        chosen = self._head(head)
        x_BLD, ctx = self.prepare(inputs, **call)
        return ctx.tap(self, "logits", chosen(self.stack(x_BLD, ctx), call.get("real")))

    @property
    def head(self) -> nn.Module:
        """The main head, the first.

        Raises:
            UsageError: the model has none.
        """
        return self._head(None)

    def _head(self, name: str | None) -> nn.Module:
        chosen = next(iter(self.heads), "") if name is None else name
        if chosen not in self.heads:
            raise UsageError(
                f"this encoder has no head {name or 'at all'}", f"it has: {', '.join(self.heads) or 'hidden()'}"
            )
        return self.heads[chosen]

    @torch.no_grad()
    def outputs(self, inputs: Inputs, **call: Any) -> dict[str, Tensor]:
        """Return the answers of all heads by name; arguments as in ``prepare``."""
        x_BLD = self.hidden(inputs, **call)
        return {name: head(x_BLD, call.get("real")) for name, head in self.heads.items()}
