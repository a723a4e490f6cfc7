"""The recurrent encoder-decoder: RNNenc, RNNsearch, Sutskever's and Luong's models are specs of this assembly."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from orrery.models.calls import default_kernel, tie
from orrery.models.encoder_decoder import ConditionalDecoder, Read
from orrery.nn.attention.kernels import Kernel
from orrery.nn.context import Taps
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.heads import LanguageModelHead
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, spec
from orrery.nn.stack import Stack


class SequenceToSequence(ConditionalDecoder):
    """``head(decoder(embed(target), reader(embed(source))))``, with recurrences on both sides.

    Shapes: source ``[B, S]`` and target ``[B, L]`` to the logits of each next target token ``[B, L, V]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The whole architecture; ``enter`` comes behind the source's embedding (dropout), ``start`` begins targets."""

        width: int
        context: int
        embed: TokenEmbedding.Spec
        reader: ModuleSpec
        decoder: Stack.Spec
        head: LanguageModelHead.Spec
        start: int
        target: TokenEmbedding.Spec | None = None
        enter: ModuleSpec = Identity.Spec()

        def build(self, width: int = 0) -> "SequenceToSequence":
            """Return the model, its weights as torch leaves them; the width is the spec's own."""
            return SequenceToSequence(self)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec, self.first = spec, spec.start
        self.kernel: Kernel = default_kernel(spec)
        self.embed = spec.embed.build(spec.width)
        self.target = self.embed if spec.target is None else spec.target.build(spec.width)
        self.enter, self.reader = spec.enter.build(spec.width), spec.reader.build(spec.width)
        self.decoder, self.head = spec.decoder.build(spec.width), spec.head.build(spec.width)
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
        """Run the reader over the sources; padding may stand on either side."""
        if real is None:
            real = torch.ones_like(source, dtype=torch.bool)
        memory, seen = self.reader(self.enter(self.embed(source)), real)
        if taps is not None:
            memory = taps("encoder.memory", memory)
        return Read(memory, seen)
