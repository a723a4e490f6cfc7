"""Questions about attention: its weights, its scores, its masks."""

import math

import torch
from torch import Tensor

from orrery.laws.golden import POLL_VALUES, POLL_WEIGHTS, poll, sinusoid
from orrery.nn.attention.alignment_score import Additive, Dot
from orrery_course.quiz._question import Question, Wrong, holds, number, numbers, question

SCORES = (2.0, 1.0, 0.0, -1.0)
PLACES, WIDTH = 4, 8
HEAT = {
    "European": (0.02, 0.03, 0.15, 0.80),
    "Economic": (0.02, 0.08, 0.75, 0.15),
    "Area": (0.05, 0.85, 0.06, 0.04),
}
"""Weights of three words of "the European Economic Area" over the French ones, invented in the manner of figure 3 of
Bahdanau et al. 2015; their order is that of the figure."""
FRENCH = ("la", "zone", "économique", "européenne")


def drawn(*shape: int, seed: int = 0) -> Tensor:
    """Return numbers of the normal distribution, in float64."""
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def row(values: Tensor) -> str:
    """Return a vector as a lecture writes it."""
    return f"[{', '.join(number(value, 3) for value in values.tolist())}]"


def matrix(allowed_LS: Tensor) -> str:
    """Return an additive mask, row by row: 0 where a score stays."""
    return "; ".join(" ".join("0" if seen else "-inf" for seen in one) for one in allowed_LS.tolist())


@question("softmax-weights", "S2", "Attention Overview")
def softmax_weights() -> Question:
    """Ask what follows from the softmax for the weights."""
    scores = torch.tensor(SCORES, dtype=torch.float64)
    weights, sharper = scores.softmax(0), (10 * scores).softmax(0)
    moved = float(((scores + 100).softmax(0) - weights).abs().max())
    ratio = float(weights[0] / weights[1])
    right, wrong = holds(
        [
            ("they sum to 1", math.isclose(float(weights.sum()), 1), ""),
            ("each lies between 0 and 1, and none is 0", 0 < float(weights.min()) < float(weights.max()) < 1, ""),
            ("adding 100 to every score leaves them as they are", moved < 1e-15, ""),
            ("twice the score gives twice the weight", math.isclose(ratio, SCORES[0] / SCORES[1]),
             f"scores {SCORES[0]:g} and {SCORES[1]:g} give weights that are {number(ratio)} = e apart: "
             "differences count"),
            ("the largest score takes all the weight", float(weights[0]) == 1,
             f"it takes {number(float(weights[0]))}; only with scores ten times as large {sharper[0]:.5f}"),
        ]
    )  # fmt: skip
    why = (
        f"Scores {', '.join(f'{s:g}' for s in SCORES)} give the weights {row(weights)}: the context is a mean "
        "of the states."
    )
    asks = "What does the softmax tell us about the weights of attention?"
    return Question(asks, "many", right, wrong, why, "orrery course S1 soft-dictionary")


@question("heat-map", "S2", "Attention Example")
def heat_map() -> Question:
    """Ask which source word a target word was made from."""
    sources = {word: FRENCH[max(range(len(FRENCH)), key=weights.__getitem__)] for word, weights in HEAT.items()}
    place = list(HEAT).index("European") + 1
    wrong = [
        Wrong(FRENCH[place], "that is the word at the same place, as if both languages had one order"),
        Wrong(sources["Economic"], 'that is where "Economic" looks'),
    ]  # fmt: skip
    table = "; ".join(f"{word} {list(weights)}" for word, weights in HEAT.items())
    asks = (
        f'A heat map has the weights of each English word over {", ".join(FRENCH)}: {table}. '
        "From which French word was \"European\" made?"
    )  # fmt: skip
    why = (
        "The greatest weight of a row says where a word looked. Here "
        + ", ".join(f"{word} looks at {source}" for word, source in sources.items())
        + ": a cross instead of a diagonal, for noun and adjectives change places."
    )
    return Question(asks, "one", (sources["European"],), tuple(wrong), why, "orrery lab alignment")


@question("dot-product", "S2", "Different kinds of attention")
def dot_product() -> Question:
    """Ask for the benefit and the price of scoring by a product."""
    width, places = 512, 128
    with torch.device("meta"):
        additive, dot = (
            sum(p.numel() for p in part.parameters())
            for part in (Additive.Spec(encoder_width=width, hidden=width).build(width), Dot.Spec().build(width))
        )
    spreads = {d: float((drawn(4000, d) * drawn(4000, d, seed=1)).sum(-1).std()) for d in (4, 64, 512)}
    q_LC, k_SC = drawn(places, width), drawn(places, width, seed=1)
    one_by_one = torch.stack([Dot()(q[None], k_SC[None])[0] for q in q_LC])
    right, wrong = holds(
        [
            ("it has no parameters", dot == 0, ""),
            (f"all {places} x {places} scores are one matrix product", torch.allclose(q_LC @ k_SC.T, one_by_one), ""),
            ("its scores keep their size in wide heads", spreads[512] < 2 * spreads[4],
             "they grow as the square root of the width: "
             f"{', '.join(f'{d} channels {number(s, 3)}' for d, s in spreads.items())}; "
             "hence the division by it"),
            ("it can compare vectors of different widths", fits(drawn(1, 4), drawn(2, 8)), "a product needs "
                                                                                           "equal widths; the "
                                                                                           "additive score does not"),
        ]
    )  # fmt: skip
    why = (
        f"The additive score has {additive:,} parameters at {width} channels, the product {dot}. For {places} "
        "queries and keys it takes "
        f"{places**2 * width:,} multiplications and additions, and the additive one as many values of tanh, one by one."
    )
    asks = "What holds of dot-product attention, beside the additive score?"
    return Question(asks, "many", right, wrong, why, "orrery lab scores")


def fits(q_LC: Tensor, k_SC: Tensor) -> bool:
    """Say whether queries and keys have a product."""
    return q_LC.shape[-1] == k_SC.shape[-1]


@question("order", "S2", "Attention is all you need")
def order() -> Question:
    """Ask how order and parallel training go together."""
    x_LD, places_L = drawn(PLACES, WIDTH), torch.tensor([2, 0, 3, 1])
    plain = float((attended(x_LD[places_L]) - attended(x_LD)[places_L]).abs().max())
    position_LD = sinusoid(10_000.0, WIDTH, torch.arange(PLACES))
    placed = float((attended(x_LD[places_L] + position_LD) - attended(x_LD + position_LD)[places_L]).abs().max())
    wrong = (
        Wrong("read the words one after the other", "then step n waits for step n - 1: nothing is parallel"),
        Wrong(
            "the order of the rows says it",
            f"permuted rows give the same results, permuted (they differ by {plain:.0e})",
        ),
        Wrong("mask the future, and no more", "a mask says what may be read; among these words order is still unknown"),
    )
    why = (
        f"Without positions, permuted words give permuted results: the difference is {plain:.0e}. With sinusoids it is "
        f"{number(placed, 2)}. All places are then one product, and a mask stands for the future that has not "
        "been read."
    )
    return Question(
        "How can we keep the order of words, and still train on all places at once?", "one",
        ("give each word its position, and mask the future",), wrong, why, "orrery lab positions",
    )  # fmt: skip


def attended(x_LD: Tensor) -> Tensor:
    """Return self-attention of one head whose matrices are the identity."""
    return (x_LD @ x_LD.T / math.sqrt(x_LD.shape[-1])).softmax(-1) @ x_LD


@question("swap", "S3", "In-Class Poll")
def swap() -> Question:
    """Ask the poll: two inputs change places."""
    weights, swapped = torch.tensor(POLL_WEIGHTS, dtype=torch.float64), [0, 2, 1, 3]
    before = poll((0, 1, 2, 3), weights)
    after = poll(tuple(swapped), weights[swapped])
    frozen = poll(tuple(swapped), weights)
    values = ", ".join(f"x{n} = {row(torch.tensor(x))}" for n, x in enumerate(POLL_VALUES, 1))
    asks = (
        f"{values}; x4 attends to them with the weights {', '.join(f'{w:g}' for w in POLL_WEIGHTS)}, and W_v is "
        "the identity. "
        f"Its result is {row(before)}. Now x2 and x3 change places. What are the four numbers of the new result?"
    )
    wrong = (Wrong(" ".join(numbers(frozen.tolist(), 3)), "this keeps the weights at their places; but each key "
                                                          "is made "
                   "of its own word, so a weight moves with the word"),)  # fmt: skip
    why = (
        "Keys and values move together, so the sum has the same terms in another order. This is why positions "
        "are needed."
    )
    return Question(asks, "numbers", numbers(after.tolist(), 3), wrong, why, "orrery course S3 swap")


@question("softmax-axis", "S3", "Matrix version")
def softmax_axis() -> Question:
    """Ask along which axis the softmax of QKᵀ goes."""
    q_LC, k_SC, v_SC = drawn(PLACES, WIDTH), drawn(PLACES, WIDTH, seed=1), drawn(PLACES, WIDTH, seed=2)
    scores_LS = q_LC @ k_SC.T / math.sqrt(WIDTH)
    one_by_one = torch.stack([(q @ k_SC.T / math.sqrt(WIDTH)).softmax(0) @ v_SC for q in q_LC])
    apart = {axis: float((scores_LS.softmax(axis) @ v_SC - one_by_one).abs().max()) for axis in (0, 1)}
    names = {0: "column-wise", 1: "row-wise"}
    best = min(apart, key=apart.__getitem__)
    other = 1 - best
    sums = row(scores_LS.softmax(other).sum(1))
    wrong = (Wrong(names[other], f"then the weights of the queries sum to {sums}, and the result is off by "
                   f"{number(apart[other], 2)}"),)  # fmt: skip
    why = (
        f"A row of QKᵀ holds the scores of one query. {names[best].capitalize()} equals computing query by "
        "query (they differ "
        f"by {apart[best]:.0e}). With one token a column, softmax(KᵀQ), it is column-wise, and the result is the same."
    )
    return Question(
        "softmax(QKᵀ / √d) V, one token a row: how is the softmax applied?", "one", (names[best],), wrong, why,
        "orrery course S4 columns",
    )  # fmt: skip


def masks() -> dict[str, Tensor]:
    """Return matrices that a lecture could show, true where a score stays."""
    full_LS = torch.ones(PLACES, PLACES, dtype=torch.bool)
    return {"lower": full_LS.tril(), "upper": full_LS.triu(), "diagonal": full_LS.tril().triu()}


def masked(allowed_LS: Tensor, axis: int = -1) -> Tensor:
    """Return the weights of random scores under a mask."""
    return drawn(PLACES, PLACES).masked_fill(~allowed_LS, -math.inf).softmax(axis)


@question("causal-mask", "S3", "Masking")
def causal_mask() -> Question:
    """Ask for the mask of a language model."""
    future = {name: float(masked(allowed).triu(1).sum()) for name, allowed in masks().items()}
    past = {name: float(masked(allowed).tril(-1).sum()) for name, allowed in masks().items()}
    fitting = [name for name in masks() if future[name] == 0 and past[name] > 0]
    (best,) = fitting
    because = {
        "upper": f"this masks the past: {number(future['upper'], 3)} of {PLACES} lie on the future, and the "
        "last word sees only itself",
        "diagonal": "nothing is leaked, but each word sees only itself: attention does nothing",
    }
    wrong = tuple(Wrong(matrix(masks()[name]), why) for name, why in because.items())
    hidden = {n: n * (n - 1) // 2 for n in (PLACES, 1024)}
    why = (
        f"0 on and below the diagonal: the weights of the future are exactly {future[best]:.1f}, and the rows "
        "sum to 1. "
        f"Masked are n(n - 1) / 2 scores: {hidden[PLACES]} of {PLACES**2}, {hidden[1024]:,} of {1024**2:,}."
    )
    asks = "For a causal language model, which matrix is added to the scores? Rows are queries."
    return Question(asks, "one", (matrix(masks()[best]),), wrong, why, "orrery course S1 mask")


@question("masked-scores", "S3", "Masking, how many")
def masked_scores() -> Question:
    """Ask how many scores a causal mask hides."""
    length = 1024
    hidden = int((~torch.ones(length, length, dtype=torch.bool).tril()).sum())
    wrong = (
        Wrong(f"{length**2 // 2:,}", "half of the square hides half of the diagonal too, and that stays"),
        Wrong(f"{length * (length + 1) // 2:,}", "that many are kept"),
    )
    why = (
        f"Above the diagonal lie n(n - 1) / 2 = {hidden:,} of {length**2:,}: nearly half of the work of a "
        "plain kernel is for nothing."
    )
    return Question(
        f"How many of the scores of {length:,} words does a causal mask hide?", "numbers", (f"{hidden:,}",), wrong, why,
        "orrery course S1 mask",
    )  # fmt: skip


@question("mask-function", "S1", "Masking out the future")
def mask_function() -> Question:
    """Ask what the mask does to a score."""
    leaked = float(masked(masks()["lower"]).triu(1).sum())
    zeroed_LS = drawn(PLACES, PLACES).masked_fill(~masks()["lower"], 0.0).softmax(-1)
    sums = row(masked(masks()["lower"], axis=0).sum(1))
    wrong = (
        Wrong("it sets scores of later words to 0", f"exp(0) is 1: {number(float(zeroed_LS.triu(1).sum()), 3)} "
                                                    f"of {PLACES} would "
              "still lie on the future"),
        Wrong("it sets weights of later words to 0 after the softmax", "then the rows no longer sum to 1"),
    )  # fmt: skip
    why = (
        f"exp(-inf) = 0 exactly: the weight on the future is {leaked:.1f}. Along columns the same mask leaks "
        "nothing either, but the "
        f"weights of the queries sum to {sums}."
    )
    asks = "What does the mask do to the scores before the softmax?"
    return Question(asks, "one", ("it sets scores of later words to -inf",), wrong, why, "orrery course S1 mask")


@question("shapes", "S2", "What are V, K and Q?")
def shapes() -> Question:
    """Ask for the shape of the scores."""
    queries, keys, width, values = 3, 5, 8, 2
    scores_LS = drawn(queries, width) @ drawn(keys, width).T
    result_LE = scores_LS.softmax(-1) @ drawn(keys, values)
    wrong = (
        Wrong(f"{keys} {queries}", "that is KQᵀ: one row a key"),
        Wrong(f"{width} {width}", "QᵀK would have these; it sums over words, and needs as many queries as keys"),
    )
    asks = (
        f"{queries} queries and {keys} keys of {width} channels, {keys} values of {values}. How many rows and "
        "columns does the matrix of scores have?"
    )
    why = (
        f"One score for each query and key, {tuple(scores_LS.shape)}; the result has a row a query, "
        f"{tuple(result_LE.shape)}."
    )
    return Question(asks, "numbers", numbers(tuple(scores_LS.shape)), wrong, why, "orrery lab dictionary")


@question("what-model", "S3", "So what is this model?")
def what_model() -> Question:
    """Ask what a stack without a mask is."""
    weights_LS, causal_LS = masked(torch.ones(PLACES, PLACES, dtype=torch.bool)), masked(masks()["lower"])
    wrong = (
        Wrong(
            "a decoder, a language model",
            f"its first word already looks at the second with {number(float(weights_LS[0, 1]), 3)}",
        ),
        Wrong("a recurrent network", "no place waits for the one before"),
    )
    why = (
        f"Every word reads every other. With a causal mask the first row becomes {row(causal_LS[0])}, and the "
        "same block is that of "
        "a language model."
    )
    asks = "Self-attention and feed-forward with residuals and norms, and no mask: what is it?"
    return Question(asks, "one", ("an encoder, as BERT has it",), wrong, why, "orrery plan bert")


@question("quadratic", "S4", "Complexity per layer")
def quadratic() -> Question:
    """Ask when attention is cheaper than recurrence."""
    length, width = 2048, 12_288
    attention, recurrence = length**2 * width, length * width**2
    shorter = attention < recurrence
    right = "shorter than the width" if shorter else "longer than the width"
    wrong = (
        Wrong("longer than the width" if shorter else "shorter than the width", "n²d < nd² divided by nd says n < d"),
        Wrong(
            "never, for it is quadratic",
            f"at {length:,} words of width {width:,} it is {number(attention / recurrence, 3)} of it",
        ),
    )
    why = f"n²d against nd²: {attention:.3g} against {recurrence:.3g} at {length:,} words and {width:,} channels."
    asks = "When is a layer of self-attention cheaper than a recurrent one? When the text is"
    return Question(asks, "one", (right,), wrong, why, "orrery lab complexity")
