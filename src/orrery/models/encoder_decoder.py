"""The encoder-decoder: one stack reads, the other writes while it looks at what was read (Vaswani et al. 2017)."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad

from orrery.models.calls import check_start, default_kernel, real_of, tie
from orrery.models.places import placed
from orrery.nn.attention.kernels import Kernel
from orrery.nn.cache import UNCACHED, Cache
from orrery.nn.caches import RowCache, fitting
from orrery.nn.context import Context, Taps
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import PLAIN_FULL, BoundMask
from orrery.nn.spec import ModuleSpec, spec
from orrery.nn.stack import Stack


@dataclass(frozen=True)
class Read:
    """What the encoder made of the sources: its output, and which of its places are real."""

    memory_BSD: Float[Tensor, "B S D"]
    real_BS: Bool[Tensor, "B S"] | None

    @property
    def mask(self) -> BoundMask:
        """Return what every query may see of it."""
        return PLAIN_FULL if self.real_BS is None else BoundMask(dense=self.real_BS[:, None, None], is_causal=False)

    def select(self, rows: Int[Tensor, "N"]) -> "Read":
        """Return the given rows."""
        return Read(self.memory_BSD[rows], None if self.real_BS is None else self.real_BS[rows])

    def join(self, other: "Read") -> "Read":
        """Return both sources' rows, the shorter ones padded."""
        longest = max(self.memory_BSD.shape[1], other.memory_BSD.shape[1])
        memory = [pad(x.memory_BSD, (0, 0, 0, longest - x.memory_BSD.shape[1])) for x in (self, other)]
        real = [pad(x._real(), (0, longest - x.memory_BSD.shape[1])) for x in (self, other)]
        return Read(torch.cat(memory), torch.cat(real))

    def _real(self) -> Tensor:
        whole = self.memory_BSD.new_ones(self.memory_BSD.shape[:2], dtype=torch.bool)
        return whole if self.real_BS is None else self.real_BS


@dataclass(frozen=True)
class EncoderDecoderState:
    """What an encoder-decoder remembers: what it read, and the cache of what it wrote."""

    read: Read
    cache: RowCache

    @property
    def lengths(self) -> Int[Tensor, "B"]:
        """Return how many tokens each row has written."""
        return self.cache.lengths_B

    def select(self, rows: Int[Tensor, "N"]) -> "EncoderDecoderState":
        """Return a state of the given rows."""
        return EncoderDecoderState(self.read.select(rows), self.cache.select(rows))

    def reorder(self, rows: Int[Tensor, "B"]) -> "EncoderDecoderState":
        """Return each row as the continuation of ``rows[b]``."""
        return self.select(rows)

    def join(self, other: "EncoderDecoderState") -> "EncoderDecoderState":
        """Return a state of both states' rows."""
        return EncoderDecoderState(self.read.join(other.read), self.cache.join(other.cache))

    def truncate(self, lengths: Int[Tensor, "B"]) -> "EncoderDecoderState":
        """Forget what was written beyond ``lengths``."""
        self.cache.truncate(lengths)
        return self

    def bytes(self) -> int:
        """Return the bytes of keys and values, those of the source among them, and of the encoder's output."""
        return self.cache.bytes() + self.read.memory_BSD.nbytes


class ConditionalDecoder(nn.Module, ABC):
    """``head(decoder(embed(target), read(source)))``: it writes while it looks at what it has read.

    A final one says how it reads, and builds the parts named here.
    Shapes: target ``[B, L]`` to the logits of each next target token ``[B, L, V]``.
    """

    role: str = ""
    first: int
    kernel: Kernel
    scan: str | None = None
    target: TokenEmbedding
    decoder: Stack
    head: LanguageModelHead

    @property
    def stack(self) -> Stack:
        """The stack that answers: the decoder."""
        return self.decoder

    @abstractmethod
    def read(
        self,
        source: Tensor,
        *,
        real: Bool[Tensor, "B S"] | None = None,
        kernel: Kernel | None = None,
        taps: Taps | None = None,
    ) -> Read:
        """Encode the sources; ``real`` says which of their tokens are no padding."""

    def prepare(
        self,
        target_BL: Int[Tensor, "B L"],
        read: Read,
        *,
        real: Bool[Tensor, "B L"] | None = None,
        positions: Int[Tensor, "#B L"] | None = None,
        prefix: Int[Tensor, "B *L"] | None = None,
        cache: Cache = UNCACHED,
        kernel: Kernel | None = None,
        scan: str | None = None,
        taps: Taps | None = None,
    ) -> tuple[Float[Tensor, "B L D"], Context]:
        """Embed the target's tokens and bind everything that varies per call; always eager.

        Args:
            target_BL: token numbers, the start token first.
            read: what the encoder made of the sources.
            real: which of them are tokens and not padding; padding may stand on either side.
            positions: of each token, rising; by default counted from the real ones, or from the cache.
            prefix: the length of each target's prefix, where a mask has one.
            cache: keys and values of earlier calls.
            kernel: the attention kernel; by default the model's own, ``model.kernel``.
            scan: the form of mixers with a state; by default ``model.scan``, or each mixer's own.
            taps: a recorder.
        """
        at = placed(self.decoder, target_BL, real=real, positions=positions, prefix=prefix, cache=cache)
        return self.decoder.prepare(
            self.target(target_BL),
            at.places,
            at.real,
            whole=at.whole,
            cache=cache,
            kernel=kernel or self.kernel,
            scan=scan or self.scan,
            taps=taps,
            memory=read.memory_BSD,
            memory_mask=read.mask,
        )

    def hidden(
        self,
        source: Tensor,
        target_BL: Int[Tensor, "B L"],
        *,
        source_real: Bool[Tensor, "B S"] | None = None,
        kernel: Kernel | None = None,
        taps: Taps | None = None,
        **call: Any,
    ) -> Float[Tensor, "B L D"]:
        """Return the decoder's final stream; ``source_real`` is ``real`` for the source, the rest as in ``prepare``."""
        read = self.read(source, real=source_real, kernel=kernel, taps=taps)
        return self.decoder(*self.prepare(target_BL, read, kernel=kernel, taps=taps, **call))

    def forward(
        self,
        source: Tensor,
        target_BL: Int[Tensor, "B L"],
        *,
        taps: Taps | None = None,
        **call: Any,
    ) -> Float[Tensor, "B L V"]:
        """Return the logits of every next target token; arguments as in ``hidden``."""
        logits_BLV = self.head(self.hidden(source, target_BL, taps=taps, **call))
        return logits_BLV if taps is None else taps("logits", logits_BLV)

    def start(
        self,
        source: Tensor,
        capacity: int,
        lengths: Int[Tensor, "B"] | None = None,
        *,
        prompt: Int[Tensor, "B N"] | None = None,
        cache: RowCache | None = None,
        kernel: Kernel | None = None,
    ) -> tuple[Float[Tensor, "B V"], EncoderDecoderState]:
        """Read the sources (right-padded rows) and return the logits after the start token, or after ``prompt``.

        ``capacity`` counts the target's tokens, the start token among them.

        Raises:
            UsageError: the start token is none that the model writes.
        """
        real = None if lengths is None else real_of(source, lengths)
        read = self.read(source, real=real, kernel=kernel)
        if cache is None:
            cache = fitting(self.decoder.masks, len(source), capacity, source.device)
        state = EncoderDecoderState(read, cache)
        begin = prompt
        if begin is None:
            check_start(self.first, self.target.token.num_embeddings)
            begin = torch.full((len(source), 1), self.first, dtype=torch.long, device=source.device)
        logits_BNV, state = self.step(begin, state, kernel=kernel)
        return logits_BNV[:, -1], state

    def step(
        self,
        tokens: Int[Tensor, "B N"],
        state: EncoderDecoderState,
        lengths: Int[Tensor, "B"] | None = None,
        *,
        kernel: Kernel | None = None,
    ) -> tuple[Float[Tensor, "B N V"], EncoderDecoderState]:
        """Take N more target tokens a row and return the logits after each."""
        x_BND, ctx = self.prepare(tokens, state.read, real=real_of(tokens, lengths), cache=state.cache, kernel=kernel)
        return self.head(self.decoder(x_BND, ctx)), state


class EncoderDecoder(ConditionalDecoder):
    """``head(decoder(embed(target), encoder(embed(source))))``.

    Shapes: source ``[B, S]`` and target ``[B, L]`` to the logits of each next target token ``[B, L, V]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The whole architecture.

        ``target`` is the decoder's own embedding, ``None`` where both sides share one; ``start`` is the token that
        every target begins with.
        """

        width: int
        context: int
        embed: TokenEmbedding.Spec
        encoder: Stack.Spec
        decoder: Stack.Spec
        head: LanguageModelHead.Spec
        start: int
        target: TokenEmbedding.Spec | None = None

        def build(self, width: int = 0) -> "EncoderDecoder":
            """Return the model, its weights as torch leaves them; the width is the spec's own."""
            return EncoderDecoder(self)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec, self.first = spec, spec.start
        self.kernel: Kernel = default_kernel(spec)
        self.embed = spec.embed.build(spec.encoder.entry_width(spec.width))
        self.target = self.embed if spec.target is None else spec.target.build(spec.decoder.entry_width(spec.width))
        self.encoder, self.decoder = spec.encoder.build(spec.width), spec.decoder.build(spec.width)
        self.encoder.path = "encoder."
        self.encoder.role, self.decoder.role = "encoder", ""
        self.head = spec.head.build(spec.width)
        if spec.head.tied:
            tie(self.target.token, self.head)

    def read(
        self,
        source: Int[Tensor, "B S"],
        *,
        real: Bool[Tensor, "B S"] | None = None,
        kernel: Kernel | None = None,
        taps: Taps | None = None,
    ) -> Read:
        """Run the encoder over the sources; padding may stand on either side."""
        at = placed(self.encoder, source, real=real)
        chosen = kernel or self.kernel
        prepared = self.encoder.prepare(
            self.embed(source), at.places, at.real, whole=at.whole, cache=UNCACHED, kernel=chosen, taps=taps
        )
        return Read(self.encoder(*prepared), real)
