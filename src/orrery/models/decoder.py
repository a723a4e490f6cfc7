"""The decoder-only language model: GPT, Llama and their descendants are specs of this assembly."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.models.calls import Numbers, on_device, on_host, unused
from orrery.models.inputs import Batch, Inputs
from orrery.models.kernel_choice import default_kernel
from orrery.models.model import Model, ModelSpec, build_heads, tie
from orrery.models.places import placed
from orrery.models.session import DecodingSession
from orrery.nn.attention.kernels import Kernel
from orrery.nn.cache.contract import UNCACHED, Cache
from orrery.nn.cache.kinds import cache_for
from orrery.nn.cache.rows import RowCache
from orrery.nn.context import DEFAULT_EXECUTION, Context, Execution
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.heads import Headless, LanguageModelHead
from orrery.nn.masks import Need
from orrery.nn.spec import spec
from orrery.nn.stack import Stack


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
        lengths: Sequence[int] | None = None,
        positions: Int[Tensor, "#B L"] | None = None,
        documents: Int[Tensor, "B L"] | None = None,
        prefix: Int[Tensor, "B *L"] | None = None,
        cache: Cache = UNCACHED,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> tuple[Float[Tensor, "B L D"], Context]:
        """Embed the tokens and bind everything that varies per call; always eager.

        Args:
            ids_BL: token numbers.
            real: which of them are tokens and not padding; padding may stand on either side.
            lengths: the same for rows that are padded on the right, in numbers that no device has to be asked for.
            positions: of each token, rising; by default counted from the real ones, by document, or from the cache.
            documents: of each token in a packed row; -1 for padding.
            prefix: the length of each row's prefix, where a mask has one; by token (of its document) in packed rows.
            cache: keys and values of earlier calls.
            execution: how the call is computed.
        """
        at = placed(
            self.stack,
            ids_BL,
            real=real,
            lengths=lengths,
            positions=positions,
            documents=documents,
            prefix=prefix,
            cache=cache,
        )
        return self.stack.prepare(
            self.embed(ids_BL),
            at.places,
            at.real,
            whole=at.whole,
            counts=at.counts,
            cache=cache,
            execution=execution.by_default(self.kernel, self.scan),
        )

    def stream(self, batch: Batch, execution: Execution) -> Float[Tensor, "B L D"]:
        """Return the final stream of the tokens."""
        how: dict[str, Any] = {name: batch[name] for name in self.how if name in batch}
        return self.stack(*self.prepare(batch["ids"], execution=execution, **how))

    def start(
        self,
        source: Int[Tensor, "B L"],
        capacity: int,
        lengths: Numbers | None = None,
        *,
        prefix: Numbers | None = None,
        cache: RowCache | None = None,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> tuple[Float[Tensor, "B V"], DecodingSession]:
        """Read the prompts (right-padded rows); return the logits after each row's last token, and the session.

        Where a mask has a prefix, it is ``prefix`` tokens long, by default the whole prompt.

        Raises:
            UsageError: a row is empty, or the capacity is beyond what the positions reach.
        """
        rows, tokens = source.shape
        last = [tokens] * rows if lengths is None else on_host(lengths, "lengths")
        if min(last, default=1) < 1:
            raise UsageError("an empty prompt has no next token", "give every row at least one token")
        if prefix is None and Need.PREFIX in self.stack.needs:
            prefix = last
        begun = None if prefix is None else on_host(prefix, "prefix")
        cache = cache_for(self.stack.masks, rows, capacity, source.device) if cache is None else unused(cache, rows)
        session = DecodingSession(cache, prefix=begun)
        counts = None if lengths is None else last
        x_BLD = self._write(source, session, counts, execution, prefix=begun)
        x_BD = (
            x_BLD[:, -1]
            if lengths is None
            else x_BLD[torch.arange(rows, device=source.device), on_device(last, source.device) - 1]
        )
        return execution.tap("logits", self.head(x_BD)), session

    def step(
        self,
        tokens: Int[Tensor, "B N"],
        session: DecodingSession,
        lengths: Numbers | None = None,
        *,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> Float[Tensor, "B N V"]:
        """Write N more tokens a row into the session, in place, and return the logits after each.

        Raises:
            UsageError: the session is over, or a row is full.
        """
        counts = None if lengths is None else on_host(lengths, "lengths")
        return execution.tap("logits", self.head(self._write(tokens, session, counts, execution)))

    def _write(
        self,
        tokens_BN: Tensor,
        session: DecodingSession,
        lengths: list[int] | None,
        execution: Execution,
        prefix: list[int] | None = None,
    ) -> Float[Tensor, "B N D"]:
        with session.writing() as cache:
            at = None if prefix is None else on_device(prefix, tokens_BN.device)
            return self.stack(*self.prepare(tokens_BN, lengths=lengths, prefix=at, cache=cache, execution=execution))
