"""What search, sampling, the server and the page know of a model: how to start, how to step, how to handle rows."""

from typing import Protocol, TypeVar, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

# Not typing.Self: the runtime type checker of the tests cannot resolve it inside a protocol.
State = TypeVar("State", bound="DecodingState")


@runtime_checkable
class DecodingState(Protocol):
    """What a model remembers between steps: a cache, an (h, c), a recurrence. Each row stands on its own."""

    @property
    def lengths(self) -> Int[Tensor, "B"]:
        """Return how many tokens each row has taken."""
        ...

    def select(self: State, rows: Int[Tensor, "N"]) -> State:
        """Return a state of the given rows: a subset, an order, or repetitions (beams)."""
        ...

    def reorder(self: State, rows: Int[Tensor, "B"]) -> State:
        """Return the same number of rows, each now the continuation of ``rows[b]``."""
        ...

    def join(self: State, other: State) -> State:
        """Return a state of both states' rows, this one's first."""
        ...

    def truncate(self: State, lengths: Int[Tensor, "B"]) -> State:
        """Return the state with everything beyond ``lengths`` forgotten (speculation, edits)."""
        ...

    def bytes(self) -> int:
        """Return the memory it holds."""
        ...


@runtime_checkable
class DecodingModel(Protocol[State]):
    """A model that writes one token after another; every search and every server is written against this."""

    @property
    def first(self) -> int | None:
        """Return the token that every row begins with, or ``None`` where a row begins with its prompt."""
        ...

    def start(
        self, source: Int[Tensor, "B L"], capacity: int, lengths: Int[Tensor, "B"] | None = None
    ) -> tuple[Float[Tensor, "B V"], State]:
        """Read a prompt of right-padded rows and return the logits after each row's last token.

        ``capacity`` is the number of tokens that a row may reach, prompt and answer together.
        """
        ...

    def step(
        self, tokens: Int[Tensor, "B N"], state: State, lengths: Int[Tensor, "B"] | None = None
    ) -> tuple[Float[Tensor, "B N V"], State]:
        """Take N more tokens a row (``lengths[b]`` of them where rows differ) and return the logits after each."""
        ...
