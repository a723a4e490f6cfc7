"""The encoder-decoder: one side reads, the other writes while it looks at what was read."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from orrery.models.calls import Numbers, check_start, on_host, real_of, unused
from orrery.models.encoder import Encoder
from orrery.models.inputs import Batch, Inputs
from orrery.models.kernel_choice import default_kernel
from orrery.models.model import Model, ModelSpec, build_heads, tie
from orrery.models.places import placed
from orrery.models.recurrent_encoder import RecurrentEncoder
from orrery.models.session import DecodingSession, Read
from orrery.nn.attention.kernels import Kernel
from orrery.nn.cache.contract import UNCACHED, Cache
from orrery.nn.cache.kinds import cache_for
from orrery.nn.cache.rows import RowCache
from orrery.nn.context import DEFAULT_EXECUTION, Context, Execution
from orrery.nn.embeddings import TokenEmbedding, TokenTypeEmbedding
from orrery.nn.heads import LanguageModelHead
from orrery.nn.inputs import Tokens
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, spec
from orrery.nn.stack import Stack


class EncoderDecoder(Model):
    """``head(decoder(embed(target), projection(reader(source))))``: it writes while it looks at what it has read.

    The reader is an encoder over tokens (Vaswani et al. 2017) or over images (Vinyals et al. 2015, with Transformers on
    both sides), or a recurrence (Cho et al. 2014; Bahdanau et al. 2015).
    Shapes: source ``[B, S]`` or images ``[B, channels, rows, columns]``, and target ``[B, L]``, to the logits of each
    next target token ``[B, L, V]``.
    """

    renamed: ClassVar[Mapping[str, str]] = {
        r"^embed\.": "reader.embed.",
        r"^encoder\.": "reader.stack.",
        r"^reader\.(?=engine\.|summary\.|reader\.)": "reader.recurrence.",
        r"^eyes\.": "reader.",
        r"^bridge\.": "projection.",
    }
    target: TokenEmbedding | TokenTypeEmbedding
    how = frozenset({"source_real", "real", "positions", "prefix"})

    @spec
    class Spec(ModelSpec):
        """The whole architecture.

        ``target`` is the decoder's own embedding, ``None`` where it is the reader's (one with token types adds the
        first to every token, as BERT does where it writes); ``start`` is the token that every
        target begins with; ``projection`` brings what was read to the decoder's width.
        """

        writes: ClassVar[bool] = True

        reader: Encoder.Spec | RecurrentEncoder.Spec
        decoder: Stack.Spec
        head: LanguageModelHead.Spec
        start: int
        target: TokenEmbedding.Spec | TokenTypeEmbedding.Spec | None = None
        projection: ModuleSpec = Identity.Spec()

        @property
        def first_token(self) -> int:
            """Return the token that every target begins with."""
            return self.start

        @property
        def inputs(self) -> Inputs:
            """What the reader reads, and the target's tokens, which stand under ``ids``."""
            (read,) = self.reader.inputs.values()
            embed = self.reader.embed if self.target is None else self.target
            return {"source" if isinstance(read, Tokens) else "images": read, "ids": embed.input}

        @property
        def answering(self) -> Stack.Spec:
            """The stack that writes."""
            return self.decoder

        def build(self, width: int = 0) -> "EncoderDecoder":
            """Return the model, its weights as torch leaves them; the width is the spec's own."""
            return EncoderDecoder(self)

    spec: Spec

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec = spec
        self.kernel: Kernel = default_kernel(spec)
        self.reader = spec.reader.build()
        self.projection = spec.projection.build(spec.reader.out_width(spec.reader.width))
        own = None if spec.target is None else spec.target.build(spec.decoder.entry_width(spec.width))
        target: Any = self.reader.embed if own is None else own
        self.target = target
        self.decoder, self.head = spec.decoder.build(spec.width), spec.head.build(spec.width)
        self.heads = build_heads(spec)
        self.reader.stand_before(self.decoder)
        if spec.head.tied:
            tie(target.token, self.head)

    @property
    def stack(self) -> Stack:  # type: ignore[override]
        """The stack that answers: the decoder."""
        return self.decoder

    def read(
        self,
        source: Tensor,
        *,
        real: Bool[Tensor, "B S"] | None = None,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> Read:
        """Read the sources; ``real`` says which of their tokens are no padding, which may stand on either side."""
        encoder_states_BSM, seen_BS = self.reader.read(
            source, real=real, execution=execution.by_default(self.kernel, self.scan)
        )
        return Read(self.projection(encoder_states_BSM), seen_BS)

    def prepare(
        self,
        target_BL: Int[Tensor, "B L"],
        read: Read,
        *,
        real: Bool[Tensor, "B L"] | None = None,
        lengths: Sequence[int] | None = None,
        positions: Int[Tensor, "#B L"] | None = None,
        prefix: Int[Tensor, "B *L"] | None = None,
        cache: Cache = UNCACHED,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> tuple[Float[Tensor, "B L D"], Context]:
        """Embed the target's tokens and bind everything that varies per call; always eager.

        Args:
            target_BL: token numbers, the start token first.
            read: what the encoder made of the sources.
            real: which of them are tokens and not padding; padding may stand on either side.
            lengths: the same for rows that are padded on the right, in numbers that no device has to be asked for.
            positions: of each token, rising; by default counted from the real ones, or from the cache.
            prefix: the length of each target's prefix, where a mask has one.
            cache: keys and values of earlier calls.
            execution: how the call is computed.
        """
        at = placed(
            self.decoder, target_BL, real=real, lengths=lengths, positions=positions, prefix=prefix, cache=cache
        )
        return self.decoder.prepare(
            self.target(target_BL),
            at.places,
            at.real,
            whole=at.whole,
            counts=at.counts,
            cache=cache,
            execution=execution.by_default(self.kernel, self.scan),
            encoder_states=read.encoder_states_BSD,
            encoder_mask=read.mask,
        )

    def stream(self, batch: Batch, execution: Execution) -> Float[Tensor, "B L D"]:
        """Return the decoder's final stream; ``source_real`` is ``real`` for the source."""
        source = next(iter(self.spec.inputs))
        read = self.read(batch[source], real=batch.get("source_real"), execution=execution)
        how: dict[str, Any] = {name: batch[name] for name in ("real", "positions", "prefix") if name in batch}
        return self.decoder(*self.prepare(batch["ids"], read, execution=execution, **how))

    def start(
        self,
        source: Tensor,
        capacity: int,
        lengths: Numbers | None = None,
        *,
        prompt: Int[Tensor, "B N"] | None = None,
        cache: RowCache | None = None,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> tuple[Float[Tensor, "B V"], DecodingSession]:
        """Read the sources (right-padded rows); return the logits after the start token or ``prompt``, and the session.

        ``capacity`` counts the target's tokens, the start token among them.

        Raises:
            UsageError: the start token is none that the model writes.
        """
        real = None if lengths is None else real_of(source, on_host(lengths, "lengths"))
        rows, masks = len(source), self.decoder.masks
        cache = cache_for(masks, rows, capacity, source.device) if cache is None else unused(cache, rows)
        session = DecodingSession(cache, self.read(source, real=real, execution=execution))
        if prompt is None:
            check_start(self.spec.start, self.target.token.num_embeddings)
            prompt = torch.full((rows, 1), self.spec.start, dtype=torch.long, device=source.device)
        return self.step(prompt, session, execution=execution)[:, -1], session

    def step(
        self,
        tokens: Int[Tensor, "B N"],
        session: DecodingSession,
        lengths: Numbers | None = None,
        *,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> Float[Tensor, "B N V"]:
        """Write N more target tokens a row into the session, in place, and return the logits after each.

        Raises:
            UsageError: the session is over, or a row is full.
        """
        counts = None if lengths is None else on_host(lengths, "lengths")
        with session.writing() as cache:
            call = self.prepare(tokens, session.read, lengths=counts, cache=cache, execution=execution)
            logits_BNV = self.head(self.decoder(*call))
        return execution.tap("logits", logits_BNV)
