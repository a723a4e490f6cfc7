"""What a layer costs by its length n and width d, and what the parameters of an attention block are."""

from orrery.planning.table import PaperTable

CONTEXTS = (
    ("a sentence, Transformer base", 70, 512),
    ("GPT-3 175B at its context", 2048, 12_288),
    ("Llama 3.1 405B at its context", 131_072, 16_384),
)
"""Lengths n and widths d: a sentence shorter than d is the usual case of Vaswani et al. 2017, section 4; Brown et al.
2020, Table 2.1; Dubey et al. 2024, Table 3 and section 3.4.2."""


def layers_table() -> PaperTable:
    """Return the complexity of each kind of layer (G22)."""
    rows = (
        ("self-attention", "O(n^2 d)", "O(1)", "O(1)", "complexity, quadratic, bottleneck"),
        ("projections of attention, feed-forward", "O(n d^2)", "O(1)", "no path between tokens", "complexity"),
        ("recurrent", "O(n d^2)", "O(n)", "O(n)", "complexity, quadratic, bottleneck"),
        ("convolution, k wide", "O(k n d^2)", "O(1)", "O(log_k n), dilated", "none"),
        ("self-attention restricted to r neighbours", "O(r n d)", "O(1)", "O(n / r)", "none"),
        ("gated linear attention, chunks of c", "O(n d^2 + n c d)", "O(n / c)", "O(n / c)", "complexity, quadratic"),
    )
    return PaperTable(
        "complexity",
        "The cost of a layer: length n, width d",
        "Vaswani et al. 2017, Table 1, rows 1 and 3 to 5; Yang et al. 2023 for gated linear attention; deck S4, "
        "Transformers vs. RNNs: RNN O(n d^2), Transformer O(n^2 d)",
        ("layer", "operations", "sequential operations", "longest path", "measured by orrery lab"),
        rows,
        (
            "deck S3: the graph of an RNN-LM grows linearly with the tokens, that of a Transformer-LM quadratically; "
            "orrery lab quadratic fits the exponents 1 and 2 to counted operations.",
        ),
    )


def crossover_table() -> PaperTable:
    """Return what attention and a recurrence multiply at lengths and widths of real models."""
    rows = []
    for name, n, d in CONTEXTS:
        attention, recurrence, projections = 2 * n * n * d, 2 * n * d * d, 4 * n * d * d
        cheaper = "attention" if attention < recurrence else "recurrence"
        rows.append((name, f"{n:,}", f"{d:,}", f"{attention:,}", f"{recurrence:,}", f"{projections:,}", cheaper))
    return PaperTable(
        "crossover",
        "Where attention costs as much as a recurrence: n = d",
        "deck S4, Transformers vs. RNNs. Multiplications: attention 2 n^2 d (scores, weighted sum), a recurrence 2 n "
        "d^2 (input, state), the four projections of attention 4 n d^2",
        ("model", "n", "d", "attention", "recurrence", "projections", "cheaper"),
        rows,
        (
            "slide differs: it says that a Transformer is cheaper where n << d and that this is not true for "
            "real-world LLMs. It is true for GPT-3 (2,048 < 12,288), and no longer for Llama 3.1 405B (131,072).",
            "slide differs: O(n^2 d) leaves out the projections, 4 n d^2 of 2 n^2 d + 4 n d^2; they are more than half "
            "up to n = 2 d. orrery lab complexity counts both.",
        ),
    )


SLIDE_WIDTH, SLIDE_HEADS, SLIDE_ROWS = 512, 8, 10
"""The sizes at which both are compared: K, L of deck S0, and its D, which the slide does not define."""


def attention_block_table() -> PaperTable:
    """Return the parameters of self-attention by each deck (G20)."""
    k, heads, d = SLIDE_WIDTH, SLIDE_HEADS, SLIDE_ROWS
    rows = (
        ("one head, as printed on the slide", "S0", "3 D K", f"{3 * d * k:,}"),
        ("one head, W_q, W_k, W_v of K x K", "S0", "3 K^2", f"{3 * k * k:,}"),
        (f"{heads} heads of full width, summed", "S0", "L 3 K^2 + L K^2", f"{heads * 4 * k * k:,}"),
        (f"{heads} heads of d / h, concatenated, with W_O", "S1, S3, S4", "4 d^2", f"{4 * k * k:,}"),
    )
    return PaperTable(
        "attention-block",
        "The parameters of a self-attention block",
        f"decks S0 (Computing Self-Attention; Multi-Head Attention), S1, S3, S4; at K = d = {k}, L = h = {heads}, "
        f"D = {d}, without biases",
        ("block", "deck", "formula", "parameters"),
        rows,
        (
            f"slide differs: 3 D K = {3 * d * k:,} where the three matrices are K x K as the deck defines them: "
            f"3 K^2 = {3 * k * k:,}. D is no axis of theirs.",
            "concatenated heads times W_O equal the sum over heads of W_l h_l: orrery verify holds it (G20).",
        ),
    )
