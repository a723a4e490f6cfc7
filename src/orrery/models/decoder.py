"""The decoder-only language model: GPT, Llama and their descendants are specs of this assembly."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.models.calls import default_kernel, real_of, tie
from orrery.models.inputs import Batch, Inputs
from orrery.models.model import Model, ModelSpec, build_heads
from orrery.models.places import placed
from orrery.nn.attention.kernels import Kernel
from orrery.nn.cache.contract import UNCACHED, Cache
from orrery.nn.cache.kinds import RowCache, cache_for
from orrery.nn.context import Context, Taps
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.heads import Headless, LanguageModelHead
from orrery.nn.masks import Need
from orrery.nn.spec import spec
from orrery.nn.stack import Stack


@dataclass(frozen=True)
class DecoderState:
    """What a decoder remembers: its cache, and the length of each row's prefix where a mask has one."""

    cache: RowCache
    prefix: Int[Tensor, "B"] | None = None

    @property
    def lengths(self) -> Int[Tensor, "B"]:
        """Return how many tokens each row has taken."""
        return self.cache.lengths_B

    def select(self, rows: Int[Tensor, "N"]) -> "DecoderState":
        """Return a state of the given rows."""
        return DecoderState(self.cache.select(rows), None if self.prefix is None else self.prefix[rows])

    def reorder(self, rows: Int[Tensor, "B"]) -> "DecoderState":
        """Return each row as the continuation of ``rows[b]``."""
        return self.select(rows)

    def join(self, other: "DecoderState") -> "DecoderState":
        """Return a state of both states' rows."""
        prefix = None if self.prefix is None or other.prefix is None else torch.cat([self.prefix, other.prefix])
        return DecoderState(self.cache.join(other.cache), prefix)

    def truncate(self, lengths: Int[Tensor, "B"]) -> "DecoderState":
        """Forget what lies beyond ``lengths``.

        Raises:
            UsageError: a prefix would be cut, of which every token has seen the rest.
        """
        if self.prefix is not None and bool((lengths < torch.minimum(self.prefix, self.lengths)).any()):
            raise UsageError(
                "a prefix cannot be cut: its tokens have seen all of it", "start again from the shorter text"
            )
        self.cache.truncate(lengths)
        return self

    def bytes(self) -> int:
        """Return the bytes of keys and values."""
        return self.cache.bytes()


class Decoder(Model):
    """``head(stack(embed(ids)))``: the probability of each next token, given those before it.

    Other heads (a value, a reward, a class) may stand beside that of the language model.
    Shapes: ids ``[B, L]`` to logits ``[B, L, V]``.
    """

    how = frozenset({"real", "positions", "documents", "prefix"})

    @spec
    class Spec(ModelSpec):
        """The whole architecture."""

        writes: ClassVar[bool] = True

        embed: TokenEmbedding.Spec
        stack: Stack.Spec
        head: LanguageModelHead.Spec | Headless.Spec

        @property
        def inputs(self) -> Inputs:
            """The tokens."""
            return {"ids": self.embed.input}

        @property
        def answering(self) -> Stack.Spec:
            """The stack."""
            return self.stack

        def build(self, width: int = 0) -> "Decoder":
            """Return the model, its weights as torch leaves them; the width is the spec's own."""
            return Decoder(self)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec = spec
        self.kernel: Kernel = default_kernel(spec)
        self.embed = spec.embed.build(spec.stack.entry_width(spec.width))
        self.stack = spec.stack.build(spec.width)
        self.head = spec.head.build(spec.width)
        self.heads = build_heads(spec)
        if isinstance(self.head, LanguageModelHead) and spec.head.tied:
            tie(self.embed.token, self.head)

    def prepare(
        self,
        ids_BL: Int[Tensor, "B L"],
        *,
        real: Bool[Tensor, "B L"] | None = None,
        positions: Int[Tensor, "#B L"] | None = None,
        documents: Int[Tensor, "B L"] | None = None,
        prefix: Int[Tensor, "B *L"] | None = None,
        cache: Cache = UNCACHED,
        kernel: Kernel | None = None,
        scan: str | None = None,
        losses: list[Tensor] | None = None,
        taps: Taps | None = None,
    ) -> tuple[Float[Tensor, "B L D"], Context]:
        """Embed the tokens and bind everything that varies per call; always eager.

        Args:
            ids_BL: token numbers.
            real: which of them are tokens and not padding; padding may stand on either side.
            positions: of each token, rising; by default counted from the real ones, by document, or from the cache.
            documents: of each token in a packed row; -1 for padding.
            prefix: the length of each row's prefix, where a mask has one; by token (of its document) in packed rows.
            cache: keys and values of earlier calls.
            kernel: the attention kernel; by default the model's own, ``model.kernel``.
            scan: the form of mixers with a state; by default ``model.scan``, or each mixer's own.
            losses: where auxiliary losses (load balance) are appended.
            taps: a recorder.
        """
        at = placed(self.stack, ids_BL, real=real, positions=positions, documents=documents, prefix=prefix, cache=cache)
        return self.stack.prepare(
            self.embed(ids_BL),
            at.places,
            at.real,
            whole=at.whole,
            cache=cache,
            kernel=kernel or self.kernel,
            scan=scan or self.scan,
            losses=losses,
            taps=taps,
        )

    def stream(
        self, batch: Batch, *, kernel: Kernel | None, scan: str | None, losses: list[Tensor] | None, taps: Taps | None
    ) -> Float[Tensor, "B L D"]:
        """Return the final stream of the tokens."""
        how: dict[str, Any] = {name: batch[name] for name in self.how if name in batch}
        return self.stack(*self.prepare(batch["ids"], kernel=kernel, scan=scan, losses=losses, taps=taps, **how))

    def start(
        self,
        source: Int[Tensor, "B L"],
        capacity: int,
        lengths: Int[Tensor, "B"] | None = None,
        *,
        prefix: Int[Tensor, "B"] | None = None,
        cache: RowCache | None = None,
        kernel: Kernel | None = None,
        taps: Taps | None = None,
    ) -> tuple[Float[Tensor, "B V"], DecoderState]:
        """Read the prompts (right-padded rows) and return the logits after each row's last token.

        Where a mask has a prefix, it is ``prefix`` tokens long, by default the whole prompt.

        Raises:
            UsageError: a row is empty, or the capacity is beyond what the positions reach.
        """
        if source.shape[1] == 0 or (lengths is not None and int(lengths.min()) < 1):
            raise UsageError("an empty prompt has no next token", "give every row at least one token")
        if cache is None:
            cache = cache_for(self.stack.masks, len(source), capacity, source.device)
        last_B = torch.full_like(source[:, 0], source.shape[1]) if lengths is None else lengths
        if prefix is None and Need.PREFIX in self.stack.needs:
            prefix = last_B
        state = DecoderState(cache, prefix)
        x_BLD = self._take(source, state, lengths, kernel, taps, prefix)
        logits_BV = self.head(x_BLD[torch.arange(len(last_B), device=last_B.device), last_B - 1])
        return logits_BV if taps is None else taps("logits", logits_BV), state

    def step(
        self,
        tokens: Int[Tensor, "B N"],
        state: DecoderState,
        lengths: Int[Tensor, "B"] | None = None,
        *,
        kernel: Kernel | None = None,
        taps: Taps | None = None,
    ) -> tuple[Float[Tensor, "B N V"], DecoderState]:
        """Take N more tokens a row and return the logits after each."""
        logits_BNV = self.head(self._take(tokens, state, lengths, kernel, taps))
        return logits_BNV if taps is None else taps("logits", logits_BNV), state

    def _take(
        self,
        tokens_BN: Tensor,
        state: DecoderState,
        lengths_B: Tensor | None,
        kernel: Kernel | None,
        taps: Taps | None,
        prefix_B: Tensor | None = None,
    ) -> Float[Tensor, "B N D"]:
        real_BN = real_of(tokens_BN, lengths_B)
        x_BND, ctx = self.prepare(tokens_BN, real=real_BN, prefix=prefix_B, cache=state.cache, kernel=kernel, taps=taps)
        return self.stack(x_BND, ctx)
