"""The encoder: every token reads the whole row, and one or more heads answer (BERT and its descendants).

Over a causal stack the same assembly is a classifier or a reward model; over patches of images it is a ViT.
"""

from typing import Any, TypeAlias

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.models.inputs import Batch, Inputs
from orrery.models.kernel_choice import default_kernel
from orrery.models.model import Model, ModelSpec, build_heads, tie
from orrery.models.places import placed
from orrery.nn.attention.kernels import Kernel
from orrery.nn.cache.contract import UNCACHED
from orrery.nn.context import DEFAULT_EXECUTION, Context, Execution
from orrery.nn.embeddings import TokenEmbedding, TokenTypeEmbedding
from orrery.nn.heads import LanguageModelHead
from orrery.nn.inputs import Tokens
from orrery.nn.patches import OverlappingPatches, PatchEmbedding, PlainPatches
from orrery.nn.row_ends import RowEnd
from orrery.nn.spec import spec
from orrery.nn.stack import Stack

EncoderStates: TypeAlias = tuple[Float[Tensor, "B P M"], Bool[Tensor, "B P"] | None]
"""The vectors that a reader leaves, and which of them are real; ``None`` where all are."""

Given: TypeAlias = Int[Tensor, "B L"] | Float[Tensor, "B channels rows columns"]
"""What an encoder reads: token numbers, or images where its embedding cuts patches."""


def rows_at(x_BLD: Float[Tensor, "B L D"], kept: Int[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
    """Return the vectors at some places of each row.

    Raises:
        UsageError: a place is not in the row.
    """
    length = x_BLD.shape[1]
    if kept.dim() != 2 or bool(((kept < 0) | (kept >= length)).any()):
        raise UsageError(f"kept of shape {list(kept.shape)} in rows of {length}", "give places of each row, [B, N]")
    return x_BLD.gather(1, kept[..., None].expand(-1, -1, x_BLD.shape[-1]))


class Encoder(Model):
    """``head(stack(embed(inputs, token_types)))``.

    Shapes: ids ``[B, L]`` or images ``[B, channels, rows, columns]`` to what the head gives, often ``[B, L, V]``.
    """

    how = frozenset({"real", "positions", "documents", "prefix", "token_types", "kept"})

    @spec
    class Spec(ModelSpec):
        """The whole architecture; the first of ``heads`` is the main one; ``end`` says where rows end for them."""

        embed: (
            TokenEmbedding.Spec
            | TokenTypeEmbedding.Spec
            | PatchEmbedding.Spec
            | PlainPatches.Spec
            | OverlappingPatches.Spec
        )
        stack: Stack.Spec
        end: RowEnd | None = None

        def counted(self, batch: Batch) -> Bool[Tensor, "B L"] | None:
            """Return which tokens heads count as real: with an ``end`` those up to it, whatever is padding."""
            return super().counted(batch) if self.end is None else self.end.counted(batch["ids"], batch.get("real"))

        @property
        def inputs(self) -> Inputs:
            """The tokens or the images."""
            read = self.embed.input
            return {"ids" if isinstance(read, Tokens) else "images": read}

        @property
        def token_types(self) -> int:
            """How many token types the embedding has a vector for."""
            return self.embed.token_types if isinstance(self.embed, TokenTypeEmbedding.Spec) else 1

        @property
        def answering(self) -> Stack.Spec:
            """The stack."""
            return self.stack

        def build(self, width: int = 0) -> "Encoder":
            """Return the model, its weights as torch leaves them; the width is the spec's own."""
            return Encoder(self)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec = spec
        self.kernel: Kernel = default_kernel(spec)
        self.embed = spec.embed.build(spec.stack.entry_width(spec.width))
        self.stack = spec.stack.build(spec.width)
        self.heads = build_heads(spec)
        for name, head in spec.heads.items():
            if isinstance(head, LanguageModelHead.Spec) and head.tied:
                tie(self.embed.token, self.heads[name])  # type: ignore[arg-type]

    @property
    def head(self) -> nn.Module:
        """The main head, the first.

        Raises:
            UsageError: the model has none.
        """
        for head in self.heads.values():
            return head
        raise UsageError("this encoder has no head at all", "it has: hidden()")

    def prepare(
        self,
        inputs: Given,
        *,
        real: Bool[Tensor, "B L"] | None = None,
        positions: Int[Tensor, "#B L"] | None = None,
        documents: Int[Tensor, "B L"] | None = None,
        prefix: Int[Tensor, "B *L"] | None = None,
        token_types: Int[Tensor, "B L"] | None = None,
        kept: Int[Tensor, "B N"] | None = None,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> tuple[Float[Tensor, "B L D"], Context]:
        """Embed the inputs and bind everything that varies per call; always eager.

        Args:
            inputs: token numbers, or images.
            real: which of them are tokens and not padding; padding may stand on either side.
            positions: of each token; by default counted from the real ones, by document.
            documents: of each token in a packed row; -1 for padding.
            prefix: as in a decoder, where a mask has one.
            token_types: of each token, where the model has token_types; by default the first.
            kept: the places of those that are read, each at its position; the others of the row are left out.
            execution: how the call is computed.
        """
        spec: Any = self.spec
        grid = spec.embed.input.grid_of(inputs)
        x_BLD = self.embed(inputs, token_types)
        if kept is not None:
            x_BLD, positions = rows_at(x_BLD, kept), kept if positions is None else positions
        at = placed(self.stack, x_BLD, real=real, positions=positions, documents=documents, prefix=prefix)
        return self.stack.prepare(
            x_BLD,
            at.places,
            at.real,
            whole=at.whole,
            cache=UNCACHED,
            execution=execution.by_default(self.kernel, self.scan),
            grid=grid,
        )

    def stream(self, batch: Batch, execution: Execution) -> Float[Tensor, "B L D"]:
        """Return the final stream of the tokens or images."""
        (read,) = self.spec.inputs
        how = {name: batch[name] for name in self.how if name in batch}
        return self.stack(*self.prepare(batch[read], execution=execution, **how))

    def read(
        self,
        source: Given,
        *,
        real: Bool[Tensor, "B S"] | None = None,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> EncoderStates:
        """Return the final stream as the states that a decoder reads, and which places are real; ``None`` is all.

        Raises:
            UsageError: padding of images, which they do not have.
        """
        spec: Any = self.spec
        spec.embed.input.check_padding(real)
        return self.stack(*self.prepare(source, real=real, execution=execution)), real

    def stand_before(self, decoder: Stack) -> None:
        """Take a name of its own in traces, beside the stack that answers."""
        self.stack.path, self.stack.role, decoder.role = "encoder.", "encoder", ""
