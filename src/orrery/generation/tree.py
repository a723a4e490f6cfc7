"""The decoding tree: what greedy decoding, beams and samples followed behind a text, and what beams dropped."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, final

import torch
from torch import Tensor

from orrery.generation.beams import Beam, Hypothesis, NarrowingBeam
from orrery.generation.filters import VocabularyLimit
from orrery.generation.reading import DraftSession
from orrery.generation.row import Limits
from orrery.generation.search import USUAL, Penalty, beam_search
from orrery.models.calls import Numbers
from orrery.models.protocols import DecodingModel

Fate = Literal["kept", "pruned", "ended"]


@dataclass
class TreeNode:
    """One token behind those of its parents.

    Attributes:
        token: its id.
        cost: ``-log p(token | before)``, in nats.
        total: the costs of the way here, this one's too.
        fate: of a beam search: ``kept`` at its step, ``pruned`` or ``ended``; where no beam looked, ``kept``.
        ways: which searches went through it: ``greedy``, ``beam 1`` and so on for the answers, ``sample 1`` ...
        children: what follows, by id.
    """

    token: int
    cost: float
    total: float
    fate: Fate = "kept"
    ways: list[str] = field(default_factory=list)
    children: dict[int, "TreeNode"] = field(default_factory=dict)

    def plain(self, spell: Callable[[int], str]) -> dict[str, Any]:
        """Return the node and what follows as JSON holds it; ``spell`` gives the text of an id."""
        own = {"token": self.token, "text": spell(self.token), "cost": self.cost, "total": self.total}
        below = [child.plain(spell) for child in self.sorted()]
        return {**own, "fate": self.fate, "ways": self.ways, "children": below}

    def sorted(self) -> list["TreeNode"]:
        """Return what follows, the most probable first."""
        return sorted(self.children.values(), key=lambda child: child.cost)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, "TreeNode"]]:
        """Yield every node below, with its depth."""
        for child in self.sorted():
            yield depth, child
            yield from child.walk(depth + 1)


@final
class StartedOnce:
    """A model that has read a prompt once: who starts with the same goes on from a copy of what it has left."""

    def __init__(self, model: DecodingModel[Any]) -> None:
        self._model = model
        self._begun: dict[tuple[object, ...], tuple[Tensor, Any]] = {}

    @property
    def first_token(self) -> int | None:
        """Return the model's."""
        return self._model.first_token

    def start(self, source: Tensor, capacity: int, lengths: Numbers | None = None) -> tuple[Tensor, Any]:
        """Read a prompt as the model does, or copy what it had read."""
        given = [int(length) for length in (lengths if lengths is not None else [source.shape[1]] * len(source))]
        asked = (source.shape, tuple(source.flatten().tolist()), capacity, tuple(given))
        if asked not in self._begun:
            self._begun[asked] = self._model.start(source, capacity, lengths)
        logits_BV, session = self._begun[asked]
        return logits_BV.clone(), session.fork()

    def step(self, tokens: Tensor, session: Any, lengths: Numbers | None = None) -> Tensor:
        """Write tokens as the model does."""
        return self._model.step(tokens, session, lengths)


def root() -> TreeNode:
    """Return a tree without branches: the text that everything stands behind."""
    return TreeNode(-1, 0.0, 0.0)


def with_beams(
    tree: TreeNode,
    model: DecodingModel,
    prompt: Sequence[int],
    limits: Limits,
    width: int,
    *,
    penalty: Penalty = USUAL,
    vocabulary: int | None = None,
    device: torch.device | None = None,
) -> list[Hypothesis]:
    """Add what a beam search looked at, and return its answers, the best first."""
    watch = partial(_WatchedBeam, tree)
    answers = beam_search(
        model, [prompt], limits, width, penalty=penalty, answers=width, vocabulary=vocabulary, device=device, beam=watch
    )[0]
    for number, answer in enumerate(answers, start=1):
        _mark(tree, answer.ids, f"beam {number}")
    return answers


@torch.no_grad()
def with_answer(
    tree: TreeNode,
    model: DecodingModel,
    prompt: Sequence[int],
    answer: Sequence[int],
    way: str,
    *,
    capacity: int,
    vocabulary: int | None = None,
    device: torch.device | None = None,
) -> None:
    """Add the way of one answer, its costs read from the model; ``vocabulary`` as ``with_beams`` takes it."""
    reading, node = DraftSession(model, prompt, capacity, device), tree
    logits_V = reading.first_V
    for place, token in enumerate(answer):
        if token not in node.children:
            cost = -float(_log_probabilities(logits_V, vocabulary)[token])
            node.children[token] = TreeNode(token, cost, node.total + cost)
        node = node.children[token]
        if place < len(answer) - 1:
            logits_V = reading.read([token])[-1]
    _mark(tree, answer, way)


def _log_probabilities(logits_V: Tensor, vocabulary: int | None) -> Tensor:
    if vocabulary is not None:
        logits_V = VocabularyLimit(vocabulary)(logits_V[None])[0]
    return logits_V.to(torch.promote_types(logits_V.dtype, torch.float32)).log_softmax(-1)


def _mark(tree: TreeNode, ids: Iterable[int], way: str) -> None:
    node = tree
    for token in ids:
        node = node.children[token]
        node.ways.append(way)


@final
class _WatchedBeam(Beam):
    """A beam whose every step is written into a tree."""

    def __init__(self, tree: TreeNode, limits: Limits, penalty: Penalty, width: int, remaining: int) -> None:
        super().__init__(limits, penalty, width, remaining)
        self._inner = NarrowingBeam(limits, penalty, width, remaining)
        self._tree = tree

    @property
    def reach(self) -> int:
        """One more than grow, so that something is dropped at every step."""
        return self.width + 1

    def extend(self, values: list[list[float]], tokens: list[list[int]]) -> list[tuple[int, int]]:
        """Take the best continuations, and write down all that were looked at."""
        before = [ids for _, ids in self.growing]
        looked = self.candidates(values, tokens)
        ended = len(self.ended)
        kept = self._inner.extend(values, tokens)
        self.growing, self.ended = self._inner.growing, self._inner.ended
        went_on = set(kept)
        stopped = {tuple(answer.ids) for answer in self.ended[ended:]}
        for total, parent, token in looked:
            node = self._node(before[parent])
            over = (*before[parent], token) in stopped
            fate: Fate = "ended" if over else "kept" if (parent, token) in went_on else "pruned"
            node.children[token] = TreeNode(token, -total - node.total, -total, fate)
        return kept

    def settled(self, wanted: int) -> bool:
        """Whether nothing that still grows can enter the best."""
        return self._inner.settled(wanted)

    def _node(self, ids: Sequence[int]) -> TreeNode:
        node = self._tree
        for token in ids:
            node = node.children[token]
        return node
