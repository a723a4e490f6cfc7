"""An attention that writes another number of channels than it reads."""

from torch import nn

from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.spec import ModuleSpec, spec


@spec
class Narrowed(ModuleSpec):
    """The attention, and how many channels come out (Zamba: half of those that go in)."""

    attention: MultiHeadAttention.Spec
    written: int

    def build(self, width: int) -> MultiHeadAttention:
        """Return the attention with its output matrix replaced."""
        attention = self.attention.build(width)
        attention.out = nn.Linear(attention.out.in_features, self.written, bias=self.attention.biases.out)
        return attention

    def out_width(self, width: int) -> int:
        """Return the channels that come out."""
        return self.written
