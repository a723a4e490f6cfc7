"""Whom does "it" stand for? Sentences in which the last word alone says so, and a small BERT that learns it.

Every noun may stand in both places. Were there animals that cross and streets that are crossed, a model could look at
both nouns and take the one of the right kind; as it is, it must choose where to look. So some sentences make no sense.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.inspection.trace import trace
from orrery.models.inputs import Batch
from orrery.nn.cross_entropy import IGNORED
from orrery.objectives.causal import CausalLanguageModel
from orrery.studies.fitting import build, fit

NOUNS = ("animal", "street", "dog", "road", "cat", "river", "horse", "truck", "cow", "bridge", "fox", "cart")
VERBS = (
    ("cross", "crossed", "tired", "wide"), ("carry", "carried", "weak", "heavy"),
    ("see", "seen", "blind", "small"), ("hear", "heard", "deaf", "quiet"),
)  # fmt: skip
"""A verb, its passive form, and what is said of the one who does not do it, and of the one to whom it is not done."""
SLIDE, HELD_OUT = ("animal", "street"), 24
"""The pair of the slide, and how many pairs of nouns, with that one, are not learned from."""
CONFIG: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8,
    "max_position_embeddings": 16, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
"""Narrow feed-forwards leave the choice to attention: with wide ones some models are right and have no such head."""
ROWS, STEPS, RATE = 64, 600, 1e-2


@dataclass(frozen=True)
class Pronouns:
    """Sentences with their ``it``: two in a row differ in the last word, and so in the noun that it stands for.

    ``it_N`` and ``noun_N`` are the places of both in the rows of ``ids_NL``, where 0 fills up.
    """

    words: tuple[str, ...]
    ids_NL: Int[Tensor, "N L"]
    it_N: Int[Tensor, "N"]
    noun_N: Int[Tensor, "N"]

    def __call__(self, rng: torch.Generator) -> Batch:
        """Draw a batch in which each ``it`` asks for its noun."""
        row_B = torch.randint(len(self.ids_NL), (ROWS,), generator=rng)
        ids_BL, place_B = self.ids_NL[row_B], torch.arange(ROWS)
        targets_BL = torch.full_like(ids_BL, IGNORED)
        targets_BL[place_B, self.it_N[row_B]] = ids_BL[place_B, self.noun_N[row_B]]
        return {"ids": ids_BL, "targets": targets_BL, "real": ids_BL != 0}


def pronouns() -> tuple[Pronouns, Pronouns]:
    """Return the sentences to learn from and those of pairs that are new; the slide's two are the first of these."""
    order = torch.randperm(len(NOUNS) * (len(NOUNS) - 1), generator=torch.Generator().manual_seed(0)).tolist()
    pairs = list(permutations(NOUNS, 2))
    drawn = [SLIDE, *(pairs[place] for place in order if pairs[place] != SLIDE)]
    said = [[row for pair in part for row in _said(*pair)] for part in (drawn[HELD_OUT:], drawn[:HELD_OUT])]
    words = ("[PAD]", *sorted({word for rows in said for text, _ in rows for word in text}))
    old, new = (_numbered(words, rows) for rows in said)
    return old, new


def _said(one: str, other: str) -> list[tuple[list[str], str]]:
    """Return the sentences about two nouns, each with the noun that its ``it`` stands for."""
    rows = []
    for (verb, passive, doing, done), active in product(VERBS, (True, False)):
        begin = f"the {one} did not {verb} the {other}" if active else f"the {other} was not {passive} by the {one}"
        for last, noun in ((doing, one), (done, other)):
            rows.append((f"{begin} because it was too {last} .".split(), noun))
    return rows


def _numbered(words: tuple[str, ...], rows: Sequence[tuple[list[str], str]]) -> Pronouns:
    longest = max(len(text) for text, _ in rows)
    ids = [[words.index(word) for word in text] + [0] * (longest - len(text)) for text, _ in rows]
    it, noun = [text.index("it") for text, _ in rows], [text.index(noun) for text, noun in rows]
    return Pronouns(words, torch.tensor(ids), torch.tensor(it), torch.tensor(noun))


def taught(old: Pronouns, seed: int) -> Any:
    """Return a BERT that has learned for which noun each ``it`` stands."""
    model = build("bert", seed, {**CONFIG, "vocab_size": len(old.words)})
    fit(model, CausalLanguageModel(), old, STEPS, RATE, seed)
    return model.eval()


def answers(model: Any, of: Pronouns) -> float:
    """Return the share of pairs of sentences in both of which the model names the right noun."""
    row_N = torch.arange(len(of.ids_NL))
    with torch.no_grad():
        said_NL = model.logits(of.ids_NL, real=of.ids_NL != 0).argmax(-1)
    return _both(said_NL[row_N, of.it_N] == of.ids_NL[row_N, of.noun_N])


def looks(model: Any, of: Pronouns) -> dict[tuple[str, int], Float[Tensor, "N S"]]:
    """Return of each head, by its layer and number, the weights of each ``it`` on the words of its sentence."""
    inside = trace(model, of.ids_NL, keep=["*.pattern"], real=of.ids_NL != 0)
    row_N, heads = torch.arange(len(of.ids_NL)), range(CONFIG["num_attention_heads"])
    return {(key, head): inside[key][row_N, head, of.it_N] for key in inside for head in heads}


def pairs_right(weights_NS: Float[Tensor, "N S"], of: Pronouns) -> float:
    """Return the share of pairs of sentences in both of which the largest of all weights is the right noun's."""
    return _both(weights_NS.argmax(-1) == of.noun_N)


def _both(right_N: Tensor) -> float:
    return float(right_N.view(-1, 2).all(1).double().mean())
