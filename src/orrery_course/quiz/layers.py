"""Questions about what stands around attention: stacks, positions, residuals, rates, parameters."""

import math

import torch
from torch import Tensor

from orrery.laws.golden import attention_size, shifted, sinusoid
from orrery.planning.parameters import parameters
from orrery.planning.published.sizes import published
from orrery.training.schedules import noam
from orrery_course.quiz._question import Question, Wrong, holds, number, numbers, question
from orrery_course.quiz.attention import drawn


def seen_by_last(blocks: int, places: int, window: int) -> int:
    """Return from how many places the last one has something after so many blocks that look back by a window."""
    allowed_LS = torch.ones(places, places, dtype=torch.bool).tril().triu(1 - window).double()
    reach_LS = torch.linalg.matrix_power(allowed_LS, blocks)
    return int((reach_LS[-1] > 0).sum())


@question("stacking", "S2", "The various heads")
def stacking() -> Question:
    """Ask how far N blocks see."""
    blocks, places, window = 3, 12, 2
    found = seen_by_last(blocks, places, window)
    wrong = (
        Wrong(str(window), "that is one block; each further one reads what those below have written"),
        Wrong(str(window**blocks), "reach adds up by a window less one for each block, it does not multiply"),
    )
    reached = ", ".join(f"{n} blocks reach {seen_by_last(n, places, window)}" for n in (2, 3, 6))
    why = (
        f"Blocks compose: {reached} places. With full width the reach is there at once, and a second block "
        "can use what a first one found."
    )
    asks = (
        f"Each block of a stack looks at its own place and at the one before. From how many of {places} places "
        "has the last place "
        f"something after {blocks} blocks?"
    )
    return Question(asks, "numbers", (str(found),), wrong, why, "orrery lab forming")


@question("sinusoids", "S2", "Positional encoding")
def sinusoids() -> Question:
    """Ask what sinusoids have that makes them fit for positions."""
    width = 64
    table_LD = sinusoid(10_000.0, width, torch.arange(1000))
    norms_L = table_LD.norm(dim=-1)
    apart = torch.cdist(table_LD, table_LD).fill_diagonal_(math.inf)
    trained = sum(p.numel() for p in torch.nn.ParameterList())
    right, wrong = holds(
        [
            ("every number lies between -1 and 1", float(table_LD.abs().max()) <= 1, ""),
            ("no two of 1,000 places are alike", float(apart.min()) > 0.1, ""),
            ("a shift is one matrix for all places", shifted(10_000.0) < 1e-11, ""),
            ("all places have vectors of one length", float(norms_L.std()) < 1e-12, ""),
            ("they are learned from the text", trained > 0, "they are a formula; a learned table is the other way, "
             "and it ends at its last row"),
            ("later places have larger numbers", bool((table_LD.abs().mean(-1).diff() > 0).all()), "they turn; that is "
             "why they have no end"),
        ]
    )  # fmt: skip
    why = (
        f"The nearest two of 1,000 places are {number(float(apart.min()), 3)} apart, each vector is √(d/2) = "
        f"{number(float(norms_L[0]), 3)} long, and the matrix of a shift misses by {shifted(10_000.0):.0e}. "
        "Others: a learned "
        "table, one-hot places, biases by distance (T5, ALiBi), rotary."
    )
    return Question(
        "Why sinusoids as positions? What holds of them?", "many", right, wrong, why, "orrery lab positions"
    )


def gradient_at_input(depth: int, residual: bool, width: int = 64, size: float = 1.0) -> float:
    """Return the norm of the gradient at the input of random ReLU layers, each adding 1 / sqrt(depth) of its own.

    The weights are drawn with the deviation ``size`` / sqrt(width).
    """
    x_D = drawn(width).requires_grad_()
    h_D: Tensor = x_D
    for n in range(depth):
        change_D = torch.relu(size * drawn(width, width, seed=n + 1) / math.sqrt(width) @ h_D)
        h_D = h_D + change_D / math.sqrt(depth) if residual else change_D
    h_D.sum().backward()
    assert x_D.grad is not None
    return float(x_D.grad.norm())


@question("residuals", "S3", "Why are residual connections helpful?")
def residuals() -> Question:
    """Ask what becomes of the gradient without residuals."""
    found = {(d, r): gradient_at_input(d, r) for d in (10, 50) for r in (False, True)}
    larger = [gradient_at_input(d, False, size=2**0.5) for d in (10, 50)]
    vanishes = found[50, False] < 1e-2 * found[10, False] and found[50, True] > found[50, False]
    right, other = ("it shrinks with every layer", "it grows with every layer")
    wrong = (
        Wrong(
            other if vanishes else right,
            f"after 10 layers it is {number(found[10, False], 2)}, after 50 {found[50, False]:.0e}",
        ),
        Wrong(
            "nothing: depth does not matter",
            f"50 layers leave {found[50, False]:.0e} of it, 10 {number(found[10, False], 2)}",
        ),
    )
    why = (
        f"The gradient at the input of 50 random ReLU layers is {found[50, False]:.0e}, and "
        f"{number(found[50, True], 2)} where each "
        "adds to what it got: a layer learns only the change, and the identity carries the gradient past it. Weights "
        f"√2 as large would do without ({number(larger[0], 2)} after 10 layers, {number(larger[1], 2)} after 50), but "
        "training moves them."
    )
    asks = (
        "ReLU layers of random weights, of variance 1 / width, and no residual connections: what becomes of the "
        "gradient at the input as layers are added?"
    )
    return Question(asks, "one", (right if vanishes else other,), wrong, why, "orrery lab depth")


@question("attention-parameters", "S0", "Parameters of self-attention")
def attention_parameters() -> Question:
    """Ask for the parameters of W_q, W_k and W_v."""
    width, words = 512, 10
    found = attention_size(1, width) - width**2
    wrong = (
        Wrong(
            f"{3 * words * width:,}",
            f"3DK, as the slide has it; but D = {words} counts words, and no matrix has an axis of words",
        ),
        Wrong(f"{width**2:,}", "that is one of the three"),
        Wrong(f"{4 * width**2:,}", "that counts the output matrix too"),
    )
    why = f"Each maps {width} channels to {width}: 3K² = {found:,}, however long the text is."
    asks = f"Self-attention over {words} words of {width} channels: how many numbers do W_q, W_k and W_v have together?"
    return Question(asks, "numbers", (f"{found:,}",), wrong, why, "orrery course S0 parameters")


@question("heads", "S1", "Multi-head attention")
def heads() -> Question:
    """Ask what more heads cost."""
    width = 512
    sizes = {count: attention_size(count, width // count) for count in (1, 8)}
    wrong = (
        Wrong(
            f"{attention_size(8, width):,}",
            "heads of full width, as deck S0 has them, L 3K² + LK²: eight times one head",
        ),
        Wrong(f"{sizes[8] // 4 * 3:,}", "the output matrix has d² of its own"),
    )
    why = f"Heads part the {width} channels among them: 4d² = {sizes[8]:,} with eight heads as with one."
    asks = (
        f"Multi-head attention of {width} channels with 8 heads of {width // 8}, with its output matrix, no "
        "biases: how many parameters?"
    )
    return Question(asks, "numbers", (f"{sizes[8]:,}",), wrong, why, "orrery course S3 heads-in-matrices")


@question("unembedding", "S1", "LM head")
def unembedding() -> Question:
    """Ask what a tied head saves."""
    vocabulary, width = 50_257, 768
    small = parameters(published("GPT-2 small").spec())
    saved = vocabulary * width
    wrong = (
        Wrong(f"{width * width:,}", "that is a matrix inside of a block; this one has a column for each word"),
        Wrong(f"{2 * saved:,}", "that is both tables together"),
    )
    why = (
        f"It maps {width} channels back to {vocabulary:,} words by Eᵀ, hence its name. Tied, it costs nothing; "
        "apart it would be "
        f"{saved:,}, beside {small:,} of the whole model."
    )
    asks = (
        f"GPT-2 small has {vocabulary:,} tokens of {width} channels. How many weights are saved because the "
        "head uses the table's?"
    )
    return Question(asks, "numbers", (f"{saved:,}",), wrong, why, "orrery course S1 unembedding")


@question("noam", "S1", "Noam + Adam")
def schedule() -> Question:
    """Ask for the rate of the original Transformer."""
    width, warmup = 512, 4_000
    steps = (1, warmup, 100_000)
    found = [noam(step, steps=0, warmup=warmup, width=width) for step in steps]
    flat = [width**-0.5 * step**-0.5 for step in steps]
    rising = [width**-0.5 * step * warmup**-1.5 for step in steps]
    wrong = (
        Wrong(
            " ".join(numbers(flat)),
            "that has no warm-up: it takes the falling curve alone, and begins with its largest rate",
        ),
        Wrong(" ".join(numbers(rising)), "that has the warm-up alone: it never falls"),
    )
    why = (
        f"d^-0.5 min(n^-0.5, n w^-1.5): it rises to {number(max(found))} at step {warmup:,}, where both "
        "curves meet, and falls."
    )
    asks = (
        f"The learning rate of the original Transformer (d = {width}, warm-up {warmup:,}): at the steps "
        f"{', '.join(f'{s:,}' for s in steps)}?"
    )
    return Question(asks, "numbers", numbers(found), wrong, why, "orrery lab warmup")
