"""What search, sampling, the server and the page know of a model: how to start, how to step, how to handle rows."""

from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from orrery.models.calls import Numbers

# Not typing.Self: the runtime type checker of the tests cannot resolve it inside a protocol.
AnySession = TypeVar("AnySession", bound="Session")


@runtime_checkable
class Session(Protocol):
    """What a model remembers between steps, each row on its own; ``DecodingSession`` is that of every family.

    A step writes into it in place. Every other operation returns the session to go on with, and the one that it was
    called on is over; ``fork`` alone leaves two.
    """

    @property
    def lengths(self) -> Sequence[int]:
        """Return how many tokens each row has taken."""
        ...

    def select(self: AnySession, rows: Numbers) -> AnySession:
        """Return a session of the given rows: a subset, an order, or repetitions (beams)."""
        ...

    def reorder(self: AnySession, rows: Numbers) -> AnySession:
        """Return the same number of rows, each now the continuation of ``rows[b]``."""
        ...

    def join(self: AnySession, other: AnySession) -> AnySession:
        """Return a session of both sessions' rows, this one's first."""
        ...

    def truncate(self: AnySession, lengths: Numbers) -> AnySession:
        """Return the session with everything beyond ``lengths`` forgotten (speculation, edits)."""
        ...

    def can_take_back(self, tokens: int) -> bool:
        """Return whether so many tokens more could be written into each row and then be forgotten again."""
        ...

    def fork(self: AnySession, rows: Numbers | None = None) -> AnySession:
        """Return an independent session of the given rows, by default of all."""
        ...

    def bytes(self) -> int:
        """Return the memory that it holds."""
        ...


@runtime_checkable
class DecodingModel(Protocol[AnySession]):
    """A model that writes one token after another; every search and every server is written against this."""

    @property
    def first_token(self) -> int | None:
        """Return the token that every row begins with, or ``None`` where a row begins with its prompt."""
        ...

    def start(
        self, source: Int[Tensor, "B L"], capacity: int, lengths: Numbers | None = None
    ) -> tuple[Float[Tensor, "B V"], AnySession]:
        """Read a prompt of right-padded rows and return the logits after each row's last token, and the session.

        ``capacity`` is the number of tokens that a row may reach, prompt and answer together.
        """
        ...

    def step(
        self, tokens: Int[Tensor, "B N"], session: AnySession, lengths: Numbers | None = None
    ) -> Float[Tensor, "B N V"]:
        """Write N more tokens a row into the session (``lengths[b]`` where rows differ); return the logits after each.

        The session is changed in place. Lengths are best given as Python's numbers: those on a device are waited for.
        """
        ...


@runtime_checkable
class ChunkedModel(DecodingModel[AnySession], Protocol[AnySession]):
    """A model of which is known whether a prompt can be read in parts, as the batching engine does."""

    @property
    def reads_at_once(self) -> bool:
        """Return whether a prompt has to be read in one call: a source, or a prefix that sees all of itself."""
        ...
