"""The recurrent reader of an encoder-decoder: RNNenc, RNNsearch, Sutskever's and Luong's models read with it."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from orrery.models.encoder import EncoderStates
from orrery.models.inputs import Inputs
from orrery.nn.context import DEFAULT_EXECUTION, Execution
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, spec
from orrery.nn.stack import Stack


class RecurrentEncoder(nn.Module):
    """``recurrence(enter(embed(ids)))``: the encoder states that a recurrence leaves of a source.

    Shapes: ids ``[B, S]`` to encoder states ``[B, P, M]`` and, of its places, which may be seen ``[B, P]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The width of the words, the recurrence, and ``enter`` behind the embedding (dropout)."""

        width: int
        embed: TokenEmbedding.Spec
        recurrence: ModuleSpec
        enter: ModuleSpec = Identity.Spec()

        @property
        def inputs(self) -> Inputs:
            """The tokens."""
            return {"ids": self.embed.input}

        def out_width(self, width: int) -> int:
            """Return the width of the encoder states."""
            return self.recurrence.out_width(width)

        def build(self, width: int = 0) -> "RecurrentEncoder":
            """Return the reader; the width is the spec's own."""
            return RecurrentEncoder(self)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.embed, self.enter = spec.embed.build(spec.width), spec.enter.build(spec.width)
        self.recurrence = spec.recurrence.build(spec.width)

    def stand_before(self, decoder: Stack) -> None:
        """Do nothing: the only thing it shows has a name of its own."""

    def read(
        self,
        source: Int[Tensor, "B S"],
        *,
        real: Bool[Tensor, "B S"] | None = None,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> EncoderStates:
        """Run the recurrence over the sources; padding may stand on either side."""
        if real is None:
            real = torch.ones_like(source, dtype=torch.bool)
        x_BSD = execution.tap("encoder.looked_up", self.enter(self.embed(source)))
        encoder_states, seen = self.recurrence(x_BSD, real)
        return execution.tap("encoder.memory", encoder_states), seen
