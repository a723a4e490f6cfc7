"""What is measured: Orrery and its peers, each reading the same files and writing on the same threads."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, final, runtime_checkable

import torch

from orrery.errors import MachineError, UsageError
from orrery.exchange.reading.read import Stored
from orrery.generation.row import Limits
from orrery.language_model.generate import continued
from orrery.language_model.sources import of_ids

Rows = Sequence[Sequence[int]]


@runtime_checkable
class PeerProgram(Protocol):
    """A program that continues rows of ids greedily."""

    name: str

    def write(self, rows: Rows, new: int) -> list[list[int]]:
        """Return exactly ``new`` tokens for each row, the most probable ones, all rows at once."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...


@final
class Orrery:
    """This program, as its ``generate`` writes.

    Args:
        stored: the model, with its tokenizer.
    """

    name = "orrery"

    def __init__(self, stored: Stored) -> None:
        self._stored = stored

    def write(self, rows: Rows, new: int) -> list[list[int]]:
        """Return the tokens, their text made beside them as for every user."""
        limits = Limits(new, self._stored.model.spec.context)
        answers = continued(self._stored, lambda: of_ids(self._stored, rows), limits, 0, None, {"temperature": 0})
        return [answer.ids for answer in answers]

    def close(self) -> None:
        """Hold nothing."""


@final
class Transformers:
    """``generate`` of the library transformers, with its defaults.

    Args:
        folder: in the Hugging Face layout.
        dtype: of the weights.
        how: more arguments of ``generate``.
    """

    name = "transformers"

    def __init__(self, folder: Path, dtype: torch.dtype, **how: Any) -> None:
        self._how = how
        transformers: Any = __import__("transformers")
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        self._model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()

    @torch.no_grad()
    def write(self, rows: Rows, new: int) -> list[list[int]]:
        """Return the tokens; its ``generate`` makes no text of them."""
        ids = torch.tensor([list(row) for row in rows])
        limits = {"max_new_tokens": new, "min_new_tokens": new, "do_sample": False, "pad_token_id": 0, **self._how}
        ids_BL = self._model.generate(ids, attention_mask=torch.ones_like(ids), **limits)
        return [[int(id) for id in row] for row in ids_BL[:, ids.shape[1] :]]

    def close(self) -> None:
        """Forget the model."""
        del self._model


PEERS = {
    "transformers": ("transformers", "pip install transformers"),
    "llama.cpp": ("xllamacpp", "pip install xllamacpp gguf"),
}
"""The package that each needs, and how to get it."""
FILE = "of the file"
"""The kind of the matrices of a GGUF file that is given, which llama.cpp reads itself."""


def check_peers(names: Sequence[str]) -> None:
    """Refuse peers that are unknown or not installed, before anything is measured.

    Raises:
        UsageError: there is no such peer.
        MachineError: its package is missing.
    """
    for name in names:
        if name not in PEERS:
            raise UsageError(f"no peer {name!r}", f"peers: {', '.join(PEERS)}")
        package, remedy = PEERS[name]
        if find_spec(package) is None:
            raise MachineError(f"the peer {name} needs the package {package}, which is not installed", remedy)


def open_peer(name: str, stored: Stored, kind: str, most_rows: int, aside: Path) -> PeerProgram:
    """Start a peer on the weights of a model.

    Args:
        name: one of ``PEERS``.
        stored: the model, whose folder has the Hugging Face layout; the GGUF file itself where the kind is that of it.
        kind: of the matrices in llama.cpp's file: f32, bf16, q8_0, q4_0 or ``FILE``.
        most_rows: the most that it will be asked for at once.
        aside: a folder for its files.
    """
    if name == "transformers":
        return Transformers(stored.folder, stored.model.dtype)
    from orrery.exchange.exporting.export import export_gguf
    from orrery.studies.bench.llama_cpp import LlamaCpp

    path = stored.folder if kind == FILE else aside / f"{kind}.gguf"
    if not path.exists():
        export_gguf(stored, path, kind)
    context, exact = stored.model.spec.context, kind == "f32"
    return LlamaCpp(path, kind, most_rows, context, torch.get_num_threads(), exact=exact)
