"""Is the apple that is eaten the apple that is switched on?

A table gives a word one vector wherever it stands. The vectors of a small BERT, trained to fill in the words of
sentences about fruit and about devices, take the sense of the sentence. Papers: Peters et al. 2018; Devlin et al. 2019.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.models.inputs import Batch
from orrery.nn.cross_entropy import IGNORED
from orrery.objectives.causal import CausalLanguageModel
from orrery.reports.figures import bar_chart
from orrery.studies.fitting import build, fit
from orrery_course.labs._lab import Numbers

WORD = "apple"
EATEN, SWITCHED_ON = "i bought an apple and an orange .", "i bought an apple watch ."
"""The sentences of the slides."""
FRUITS, MAKERS = ("orange", "apricot", "olive"), ("acer", "asus", "ibm")
EATING, USING = ("i bought", "i ate", "she peeled", "we shared"), ("i bought", "we repaired", "she charged", "he lost")
DEVICES = ("watch", "phone", "laptop")
PADDING, MASK = "[PAD]", "[MASK]"

ROWS, RATE, STEPS, QUICK_STEPS = 64, 3e-3, 800, 400
MASKED, REPLACED = 0.6, 0.8
"""Of the words asked for, 60% are masked and 20% exchanged for another, so that no word's own vector can be trusted."""
CONFIG = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": 16, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
APART, NEARER = 0.8, 0.1


def sentences() -> list[str]:
    """Return every sentence of the two topics; only apples occur in both."""
    pairs = permutations((WORD, *FRUITS), 2)
    eaten = [f"{begin} an {one} and an {other} ." for begin, (one, other) in product(EATING, pairs)]
    used = [f"{begin} an {maker} {device} ." for begin, maker, device in product(USING, (WORD, *MAKERS), DEVICES)]
    return [*eaten, *used]


@dataclass(frozen=True)
class SentenceRows:
    """The sentences as rows of tokens, padded on the right."""

    words: tuple[str, ...]
    ids_NL: Int[Tensor, "N L"]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "SentenceRows":
        """Number the words of the texts."""
        split = [text.split() for text in texts]
        words = (PADDING, MASK, *sorted({word for row in split for word in row}))
        longest = max(map(len, split))
        rows = [[words.index(word) for word in row] + [0] * (longest - len(row)) for row in split]
        return cls(words, torch.tensor(rows))

    def __call__(self, rng: torch.Generator) -> Batch:
        """Draw a batch: one word of each sentence is asked for, and mostly not there (Devlin et al. 2019, 3.1)."""
        ids_BL = self.ids_NL[torch.randint(len(self.ids_NL), (ROWS,), generator=rng)]
        real_BL, row_B = ids_BL != 0, torch.arange(ROWS)
        place_B = (torch.rand(ids_BL.shape, generator=rng) * real_BL).argmax(1)
        targets_BL = torch.full_like(ids_BL, IGNORED)
        targets_BL[row_B, place_B] = ids_BL[row_B, place_B]
        kind_B, other_B = torch.rand(ROWS, generator=rng), torch.randint(2, len(self.words), (ROWS,), generator=rng)
        shown_B = torch.where(kind_B < REPLACED, other_B, ids_BL[row_B, place_B]).masked_fill(kind_B < MASKED, 1)
        return {"ids": ids_BL.index_put((row_B, place_B), shown_B), "targets": targets_BL, "real": real_BL}


def run(seed: int, quick: bool = False) -> Numbers:
    """Train the model and return the cosines between apples, fruits and makers."""
    corpus = SentenceRows.of(sentences())
    model = build("bert", seed, {**CONFIG, "vocab_size": len(corpus.words)})
    fit(model, CausalLanguageModel(), corpus, QUICK_STEPS if quick else STEPS, RATE, seed)

    def vector(text: str, word: str, static: bool = False) -> Float[Tensor, "D"]:
        ids_1L = torch.tensor([[corpus.words.index(other) for other in text.split()]])
        found_1LD = model.embed.token(ids_1L) if static else model.hidden(ids_1L)
        return found_1LD[0, text.split().index(word)]

    return measure(vector)


@torch.no_grad()
def measure(vector: Any) -> Numbers:
    """Return the cosines; a fruit and a maker are taken from sentences that share no word of meaning with apple's."""
    fruits = [vector(f"we shared an {fruit} and an {other} .", fruit) for fruit, other in permutations(FRUITS, 2)]
    makers = [vector(f"he lost an {maker} {device} .", maker) for maker, device in product(MAKERS, DEVICES[1:])]
    eaten, used = vector(EATEN, WORD), vector(SWITCHED_ON, WORD)
    return {
        "static: apple, apple": cosine(vector(EATEN, WORD, static=True), [vector(SWITCHED_ON, WORD, static=True)]),
        "contextual: apple, apple": cosine(eaten, [used]),
        "eaten apple, fruits": cosine(eaten, fruits),
        "eaten apple, makers": cosine(eaten, makers),
        "apple watch, fruits": cosine(used, fruits),
        "apple watch, makers": cosine(used, makers),
    }


def cosine(one_D: Float[Tensor, "D"], others: Sequence[Float[Tensor, "D"]]) -> float:
    """Return the mean cosine with the others."""
    return float(torch.cosine_similarity(one_D.double(), torch.stack(list(others)).double(), dim=-1).mean())


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold that one vector is the same twice, and that the other takes sides."""
    return {
        "the static vector is the same in both sentences": 1e-6 - abs(numbers["static: apple, apple"] - 1),
        f"the contextual ones have a cosine below {APART}": APART - numbers["contextual: apple, apple"],
        f"the eaten apple is nearer to fruits by {NEARER}": numbers["eaten apple, fruits"]
        - numbers["eaten apple, makers"]
        - NEARER,
        f"the apple of a watch is nearer to makers by {NEARER}": numbers["apple watch, makers"]
        - numbers["apple watch, fruits"]
        - NEARER,
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw the mean over the seeds."""
    means = {name: sum(numbers[name] for numbers in runs) / len(runs) for name in runs[0]}
    return bar_chart(means, title="An apple, and an apple watch", x_label="cosine")
