"""The decoding tree of a text, as a user meets it: lines, JSON and a picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from orrery.errors import UsageError
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import device_of, tokenizer_of, writer
from orrery.generation.generate import generate
from orrery.generation.samplers import sampler
from orrery.generation.search import LengthPenalty
from orrery.generation.tree import StartedOnce, TreeNode, root, with_answer, with_beams
from orrery.language_model.generate import sampler_of
from orrery.language_model.search import Beams
from orrery.language_model.sources import Source, one_source
from orrery.language_model.texts import Truncate, limits_of, prompts, spell
from orrery.reports.tree import tree_picture

DEEPEST = 100
"""Tokens behind a text that a tree shows."""


@final
@dataclass(frozen=True)
class DecodingTree:
    """What greedy decoding, a beam search and samples followed behind a text, and what the beams dropped.

    Attributes:
        text: what stands before the tree.
        root: its nodes, ``root.children``.
    """

    text: str
    root: TreeNode
    _spelled: Mapping[int, str]

    def plain(self) -> dict[str, Any]:
        """Return the tree as JSON holds it."""
        return {"prompt": self.text, "tree": [child.plain(self._spelled.__getitem__) for child in self.root.sorted()]}

    def lines(self) -> list[str]:
        """Return the tree as lines: the cost of each token, of the way to it, and who went there."""
        text_lines = [f"{'-log p':>8}  {'total':>8}  {_on_one_line(self.text)}"]
        for depth, node in self.root.walk():
            about = ", ".join((*(["pruned"] if node.fate == "pruned" else []), *node.ways))
            indent = "  " * (depth + 1)
            note = f"  ({about})" if about else ""
            text_lines.append(
                f"{node.cost:8.4f}  {node.total:8.4f}  {indent}{_on_one_line(self._spelled[node.token])}{note}"
            )
        return text_lines

    def figure(self) -> str:
        """Draw the tree as an SVG element, with the totals."""
        branches = self.plain()["tree"]
        return tree_picture(self.text, branches, title="Decoding tree: -log p of the way to each token, in nats")


def _on_one_line(text: str) -> str:
    return text.replace("\n", "\\n").replace("\t", "\\t")


def one_beam(stored: Stored, ids: Sequence[int], *, max_new_tokens: int, length_penalty: float | int) -> Sequence[int]:
    """Return what a beam search of one beam writes behind tokens."""
    penalty, size, device = LengthPenalty(length_penalty), tokenizer_of(stored).size, device_of(stored)
    limits = limits_of(stored, max_new_tokens)
    prompt = prompts(stored, [ids], None, max_new_tokens)[0]
    hypotheses = with_beams(root(), writer(stored), prompt, limits, 1, penalty=penalty, vocabulary=size, device=device)
    return hypotheses[0].ids


def grown(
    stored: Stored,
    text: Source,
    *,
    max_new_tokens: int,
    beams: Beams,
    samples: int,
    seed: int,
    truncate: Truncate,
    sampling: Mapping[str, Any],
) -> DecodingTree:
    """Return the decoding tree of a text; see ``LanguageModel.tree``."""
    model, tokenizer, device = writer(stored), tokenizer_of(stored), device_of(stored)
    if max_new_tokens > DEEPEST:
        raise UsageError(f"a tree of {max_new_tokens:,} tokens cannot be looked at", f"ask for {DEEPEST} at most")
    drawn, plain = sampler_of(stored, sampling), sampler(vocabulary=tokenizer.size)
    limits = limits_of(stored, max_new_tokens)
    read = one_source(stored, text, truncate, max_new_tokens)
    model, prompt = StartedOnce(read.before(model)), read.rows[0]
    shown = "a picture" if read.pictures else text if isinstance(text, str) else tokenizer.decode(prompt, special=True)
    tree = root()
    size = tokenizer.size
    with_beams(tree, model, prompt, limits, beams.width, penalty=beams.penalty, vocabulary=size, device=device)
    ways = {"greedy": (plain, seed)} | {f"sample {n + 1}": (drawn, seed + n) for n in range(samples)}
    for way, (chosen, own) in ways.items():
        answer = generate(model, [prompt], tokenizer, limits, sampler=chosen, seed=own, device=device)[0]
        with_answer(tree, model, prompt, answer.ids, way, capacity=limits.context, vocabulary=size, device=device)
    spelled = {node.token: spell(stored, node.token) for _, node in tree.walk()}
    return DecodingTree(shown, tree, spelled)
