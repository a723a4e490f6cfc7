"""The captioner: an image encoder reads, a decoder writes about what it saw."""

from jaxtyping import Bool, Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.models.calls import default_kernel, tie
from orrery.models.encoder import Encoder
from orrery.models.encoder_decoder import ConditionalDecoder, Read
from orrery.nn.attention.kernels import Kernel
from orrery.nn.context import Taps
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.heads import LanguageModelHead
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, spec
from orrery.nn.stack import Stack


class Captioner(ConditionalDecoder):
    """``head(decoder(embed(target), bridge(eyes(image))))`` (Vinyals et al. 2015, with Transformers on both sides).

    Shapes: images ``[B, channels, rows, columns]`` and target ``[B, L]`` to the logits of each next target token
    ``[B, L, V]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The whole architecture; ``bridge`` brings the image's vectors to the decoder's width."""

        width: int
        context: int
        eyes: Encoder.Spec
        target: TokenEmbedding.Spec
        decoder: Stack.Spec
        head: LanguageModelHead.Spec
        start: int
        bridge: ModuleSpec = Identity.Spec()

        def build(self, width: int = 0) -> "Captioner":
            """Return the model, its weights as torch leaves them; the width is the spec's own."""
            return Captioner(self)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec, self.first = spec, spec.start
        self.kernel: Kernel = default_kernel(spec)
        self.eyes = spec.eyes.build()
        self.eyes.stack.path, self.eyes.stack.role = "encoder.", "encoder"
        self.bridge = spec.bridge.build(spec.eyes.width)
        self.target = spec.target.build(spec.decoder.entry_width(spec.width))
        self.decoder, self.head = spec.decoder.build(spec.width), spec.head.build(spec.width)
        if spec.head.tied:
            tie(self.target.token, self.head)

    def read(
        self,
        source: Float[Tensor, "B channels rows columns"],
        *,
        real: Bool[Tensor, "B S"] | None = None,
        kernel: Kernel | None = None,
        taps: Taps | None = None,
    ) -> Read:
        """Look at the images.

        Raises:
            UsageError: padding, which images do not have.
        """
        if real is not None:
            raise UsageError("images have no padding", "leave lengths and masks of the source away")
        return Read(self.bridge(self.eyes.hidden(source, kernel=kernel or self.kernel, taps=taps)), None)
