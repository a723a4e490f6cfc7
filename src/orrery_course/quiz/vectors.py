"""Questions about words as vectors."""

import math
from itertools import product

import torch

from orrery.laws.lectures import BANKING, SECOND, WAMPIMUK, paired
from orrery_course.quiz._question import Question, Wrong, holds, number, numbers, question
from orrery_course.tables.onehot import one_hot

CENTRE, WINDOW = "wampimuk", 2


@question("skip-gram-probability", "S4", "Objective function")
def skip_gram_probability() -> Question:
    """Ask for the softmax of skip-gram."""
    out_VD = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    centre_D = torch.tensor([1.0, 0.5], dtype=torch.float64)
    logits_V = out_VD @ centre_D
    found_V = logits_V.softmax(0)
    vocabulary, width, negatives = 500_000, 300, 5
    full, sampled = vocabulary * width, (1 + negatives) * width
    wrong = (
        Wrong(
            " ".join(numbers((logits_V / logits_V.sum()).tolist(), 3)),
            "products over their sum: the exponential is missing",
        ),
        Wrong(" ".join(numbers(logits_V.sigmoid().tolist(), 3)), "each through a sigmoid: they do not sum to 1"),
    )
    why = (
        f"exp(u·v) over the sum of all words. At {vocabulary:,} words of {width} channels a pair costs {full:,} "
        "multiplications; "
        f"with {negatives} drawn negatives {sampled:,}, {full / sampled:,.0f} times fewer."
    )
    asks = (
        "Output vectors u1 = [1, 0], u2 = [0, 1], u3 = [1, 1], the centre's v = [1, 0.5]: what are P(w1), "
        "P(w2), P(w3) given the centre?"
    )
    return Question(asks, "numbers", numbers(found_V.tolist(), 3), wrong, why, "orrery course S4 skip-gram")


@question("one-hot-distance", "S0", "One-hot vectors")
def one_hot_distance() -> Question:
    """Ask how far two one-hot vectors are apart."""
    vectors = torch.from_numpy(one_hot(range(5), 5)).double()
    apart = {round(float((vectors[a] - vectors[b]).norm()), 12) for a, b in product(range(5), repeat=2) if a < b}
    (distance,) = apart
    wrong = (
        Wrong(
            number(float((vectors[0] - vectors[1]).square().sum())),
            "two numbers differ, and their squares sum to 2; the distance is the root of it",
        ),
        Wrong(
            number(float(vectors[0] @ vectors[1])), "that is their product: it says that they have nothing in common"
        ),
        Wrong(number(float(vectors[0].norm())), "that is how long each of them is"),
    )
    why = (
        f"Every pair is √2 = {distance:.5f} apart, so no word is nearer to one than to another: that is what "
        "learned vectors mend."
    )
    asks = "How far are two different one-hot vectors apart?"
    return Question(asks, "numbers", numbers((distance,), 6), wrong, why, "orrery course S0 one-hot")


@question("dense-similarity", "S4", "WordNet or vectors")
def dense_similarity() -> Question:
    """Ask for the cosine of two dense vectors."""
    first, second = (torch.tensor(one, dtype=torch.float64) for one in (BANKING, SECOND))
    dot = float(first @ second)
    cosine = dot / float(first.norm() * second.norm())
    hot = one_hot([0, 1], 2)
    wrong = (
        Wrong(number(dot, 7), "that is their product; it grows with the length of the vectors"),
        Wrong(number(float((first - second).norm()), 6), "that is their distance"),
    )
    why = (
        f"The product is {dot:.6f}, over both lengths {cosine:.6f}. As one-hot vectors the two words have "
        f"{hot[0] @ hot[1]:.0f}, as "
        "any two have; WordNet's synonyms are incomplete and know no degree."
    )
    asks = f"Two words have the vectors {list(BANKING)} and {list(SECOND)}. What is their cosine similarity?"
    return Question(asks, "numbers", numbers((cosine,), 6), wrong, why, "orrery course S4 dense")


@question("word2vec-kinds", "S4", "What is Word2vec?")
def word2vec_kinds() -> Question:
    """Ask how many algorithms word2vec is."""
    kinds = list(product(("CBOW", "skip-gram"), ("full softmax", "negative sampling", "hierarchical softmax")))
    wrong = (
        Wrong("1", "it is a family: what is predicted, and how the sum over all words is avoided, are chosen apart"),
        Wrong("2", "CBOW and skip-gram, each with three ways to the probabilities"),
    )
    why = f"{'; '.join(f'{one} with {other}' for one, other in kinds)}."
    asks = (
        "Two ways to predict (CBOW, skip-gram), three ways to the probabilities: how many algorithms are "
        "called word2vec?"
    )
    return Question(asks, "numbers", (str(len(kinds)),), wrong, why, "orrery course S4 hierarchical")


@question("skip-gram-pairs", "S4", "Skip-gram")
def skip_gram_pairs() -> Question:
    """Ask for the pairs of a window."""
    wrong = (
        Wrong(" ".join(paired(WAMPIMUK, CENTRE, 1)), f"that is a window of 1; {WINDOW} words on each side count"),
        Wrong(" ".join(paired(WAMPIMUK, CENTRE, WINDOW)[:WINDOW]), "those behind the word count too"),
    )
    found = paired(WAMPIMUK, CENTRE, WINDOW)
    why = (
        f"Each of {', '.join(found)} is to be predicted from {CENTRE}: {len(found)} pairs, and negatives are "
        "drawn from all other words."
    )
    asks = f'"{" ".join(WAMPIMUK)}." With which words is {CENTRE} paired, window {WINDOW}? Type them in their order.'
    return Question(asks, "words", tuple(found), wrong, why, "orrery course S4 negative-sampling")


@question("what-similar", "S4", "Vectors")
def what_similar() -> Question:
    """Ask what a query of one-hot words finds."""
    seattle, motel, hotel = torch.from_numpy(one_hot([0, 1, 2], 3)).double()
    right, wrong = holds(
        [
            ("their one-hot vectors have the product 0", float(motel @ hotel) == 0, ""),
            ("they are as far apart as Seattle and motel", math.isclose(float((motel - hotel).norm()),
             float((motel - seattle).norm())), ""),
            ("their one-hot vectors are alike, for the words mean the same", bool(torch.equal(motel, hotel)),
             "each word has a place of its own, whatever it means"),
        ]
    )  # fmt: skip
    why = 'A search for "Seattle motel" finds no more in "Seattle hotel" than in "Seattle zebra".'
    asks = "What holds of motel and hotel as one-hot vectors?"
    return Question(asks, "many", right, wrong, why, "orrery course S4 retrieval")
