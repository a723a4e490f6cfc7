"""Deck S1: UMass CS 685, Transformers II: one block in detail, in matrices, with its inputs, outputs and training."""

from orrery_course.course._item import Deck

DECK = Deck(
    "S1",
    "UMass CS 685, Transformers II",
    "Attention for one word and for all at once, the residual stream, the mask, embeddings in and out, the optimizer, "
    "and subwords.",
    "quadratic",
    "Double every length: which counts are twice as many, and which four times?",
)


@DECK.code("third-value", "T1", "Figure 9.4: calculating the value of a_3")
def third_value() -> None:
    """The third output of a causal head, step by step.

    Three scores, three weights that sum to 1, and their sum of values; the same row of the matrix form. The fourth
    and fifth word have no part in it.
    """
    import torch

    from orrery_course.course.attending import attention, drawn, largest, numbers

    x_LD = drawn(5, 8)
    q_LC, k_LC, v_LC = (x_LD @ drawn(8, 4, seed=seed) / 8**0.5 for seed in (1, 2, 3))
    score_S = torch.stack([q_LC[2] @ k_LC[j] / 4**0.5 for j in range(3)])
    alpha_S = score_S.softmax(0)
    a_C = sum(alpha_S[j] * v_LC[j] for j in range(3))
    print("scores", numbers(score_S), "weights", numbers(alpha_S), f"sum {alpha_S.sum().item():g}")
    mixed_LC, weights_LS = attention(q_LC, k_LC, v_LC, causal=True)
    print("row 3 of the matrix form differs by", largest(a_C - mixed_LC[2]))
    print("its weights on words 4 and 5:", weights_LS[2, 3:].tolist())


@DECK.code(
    "soft-dictionary", "T4", "Associative array, but soft; kernel functions, but learned", more="orrery lab dictionary"
)
def soft_dictionary() -> None:
    """Attention is a dictionary that is looked up softly.

    A query that is like one key gives mostly that key's value. The larger the factor on the scores, the nearer to the
    stored value, until it is exactly that one. With exp(q·k) as a kernel, the same numbers are a weighted mean of
    values.
    """
    import torch

    from orrery_course.course.attending import attention, drawn, largest

    k_SC, v_SC = torch.eye(6, 8, dtype=torch.float64), drawn(6, 3)
    query_LC = k_SC[2:3]
    for factor in (0.0, 1.0, 10.0, 100.0, 1000.0):
        found_LC, weights_LS = attention(query_LC, k_SC, v_SC, scale=factor)
        off = (found_LC[0] - v_SC[2]).abs().max().item()
        print(f"factor {factor:6g}: weight of the key {weights_LS[0, 2].item():.4f}, off its value by {off:.1e}")
    kernel_S = torch.exp(k_SC @ query_LC[0])
    by_kernel_C = (kernel_S[:, None] * v_SC).sum(0) / kernel_S.sum()
    print("as a kernel it differs by", largest(by_kernel_C - attention(query_LC, k_SC, v_SC, scale=1.0)[0][0]))


@DECK.code("automaton", "T15", "Sequence automaton (choosing, copying)", more="orrery lab forming")
def automaton() -> None:
    """Heads that copy: after a text that comes a second time, a model goes on as it did before.

    Two layers of attention alone learn rows whose end repeats their beginning. The best induction head of the trained
    model is found by its score and drawn: from a word it looks at what came after that word before.
    """
    import torch

    from orrery.inspection.trace import trace
    from orrery.objectives.causal import CausalLanguageModel
    from orrery.reports.figures import heat_map
    from orrery.studies.compare.probes.repeated import Repeated
    from orrery.studies.fitting import fit
    from orrery_course.labs.induction import accuracy, attention_only, looks

    model, task = attention_only(0), Repeated(new=10, again=8, rows=32)
    losses = fit(model, CausalLanguageModel(), task, 500, 0.01, 0)
    rows = task(torch.Generator().manual_seed(1))
    _, scores = looks(model, rows["ids"], task.new)
    best = max(scores, key=scores.__getitem__)
    print(f"loss {losses[0]:.2f} at first, {losses[-1]:.2f} at last;", end=" ")
    print(f"right where the text repeats: {accuracy(model.logits(rows['ids']), rows['targets']):.2f}")
    print(f"the best head is {best}, its score {scores[best]:.2f}")
    place, _, head = best.rpartition(".")
    pattern_LS = trace(model, rows["ids"][:1], keep=["*.pattern"])[f"{place}.pattern"][0, int(head)]
    words = [str(token) for token in rows["ids"][0].tolist()]
    heat_map(pattern_LS.tolist(), rows=words, columns=words, title="Where the induction head looks", highest=1.0)


@DECK.code("residual-stream", "T7", "Figure 8.6: the residual stream")
def residual_stream() -> None:
    """The stream is a sum of what each part adds.

    The embedding, each head and each feed-forward of a tiny GPT-2 add up to the stream after the last block; so a
    logit can be taken apart into what each part adds to it.
    """
    import torch

    from orrery.inspection.trace import trace
    from orrery.laws.models import tiny
    from orrery.reports.figures import bar_chart

    inside = trace(tiny("gpt2"), torch.tensor([[3, 14, 15, 9, 2]]))
    parts = inside.parts()
    print(f"{len(parts.names)} parts sum to the stream, off by {parts.check.value:.0e}: {parts.check.passed}")
    attribution = inside.logit_attribution(7)
    logit, total = inside.logits[0, -1, 7].item(), attribution.logit_BP.item()
    print(f"the logit of token 7 is {logit:.6f}, its parts sum to {total:.6f}")
    bar_chart(dict(attribution.top(8)), title="What each part adds to a logit", x_label="added")


@DECK.code("chains", "T9", "t1 to t5, and T1 to T5")
def chains() -> None:
    """Two orders of the same parts: the norm before the branch, or after the addition.

    Both chains of the slides, written line by line with the parts of a block, give what the block of that order
    gives.
    """
    from orrery.nn.attention.multihead import MultiHeadAttention
    from orrery.nn.block import Block
    from orrery.nn.feedforward.mlp import MLP
    from orrery.nn.norms import LayerNorm
    from orrery.nn.residual import Residual
    from orrery_course.course.attending import built, context, drawn, largest

    x_BLD, ctx, norm = drawn(1, 5, 8), context(), LayerNorm.Spec()
    branches = {
        "attention": MultiHeadAttention.Spec(heads=2, kv_heads=2, head_width=4),
        "feed_forward": MLP.Spec(hidden=16, activation="relu"),
    }
    pre = Block.Spec(residuals={name: Residual.Spec(branch=one, pre=norm) for name, one in branches.items()})
    post = Block.Spec(residuals={name: Residual.Spec(branch=one, out=norm) for name, one in branches.items()})
    one, two = built(pre, 8), built(post, 8)
    t1 = one.attention.pre(x_BLD)
    t3 = one.attention.branch(t1, ctx) + x_BLD
    t5 = one.feed_forward.branch(one.feed_forward.pre(t3), ctx)
    print("norm first (t1 to t5): differs by", largest(t5 + t3 - one(x_BLD, ctx)))
    T2 = x_BLD + two.attention.branch(x_BLD, ctx)
    T3 = two.attention.out(T2)
    T5 = two.feed_forward.branch(T3, ctx) + T3
    print("norm last (T1 to T5):  differs by", largest(two.feed_forward.out(T5) - two(x_BLD, ctx)))


@DECK.code("all-at-once", "X5", "Parallelizing computation using X")
def all_at_once() -> None:
    """All queries at once: one product instead of a loop.

    The rows of X are the words. softmax(mask(QKᵀ/√d))V gives what the loop over the words gives; only the time
    differs.
    """
    import time

    import torch

    from orrery_course.course.attending import attention, drawn, largest

    q_LC, k_LC, v_LC = (drawn(256, 32, seed=seed) for seed in range(3))
    begin = time.perf_counter()
    rows = [attention(q_LC[i : i + 1], k_LC[: i + 1], v_LC[: i + 1])[0] for i in range(256)]
    middle = time.perf_counter()
    whole_LC = attention(q_LC, k_LC, v_LC, causal=True)[0]
    end = time.perf_counter()
    print("they differ by", largest(torch.cat(rows) - whole_LC))
    print("at once is faster:", end - middle < middle - begin)


@DECK.code("mask", "T1", "Masking out the future")
def mask() -> None:
    """The future is hidden by -∞ above the diagonal.

    The matrix that the program adds for four words; behind the softmax every weight on the future is exactly 0, and
    each row sums to 1.
    """
    import math

    import torch

    from orrery.nn.masks import PLAIN_CAUSAL
    from orrery_course.course.attending import drawn, numbers

    allowed_LS = PLAIN_CAUSAL.matrix(4, 4, torch.device("cpu"))[0, 0]
    added_LS = torch.zeros(4, 4, dtype=torch.float64).masked_fill(~allowed_LS, -math.inf)
    for row_S in added_LS:
        print(numbers(row_S))
    weights_LS = (drawn(4, 4) + added_LS).softmax(-1)
    print("weights on the future:", weights_LS.triu(1).sum().item(), "; sums of the rows:", numbers(weights_LS.sum(-1)))


@DECK.code("quadratic", "T14", "Attention is quadratic in length", more="orrery lab quadratic")
def quadratic() -> None:
    """Twice the words, four times the work.

    The operations of a layer of attention and of a recurrence are counted while they run, and exponents fitted.
    """
    from orrery.planning.log_line import log_line
    from orrery_course.labs.quadratic import LAYERS, operations

    lengths = (64, 128, 256, 512)
    for name in ("attention", "recurrence"):
        counts = [operations(LAYERS[name], length, 8) for length in lengths]
        print(f"{name:10} {counts}: exponent {log_line(lengths, counts)[0]:.2f}")


@DECK.code("rows", "D4 T11", "Token Embeddings", given=("5", "4000", "10532", "2224"))
def rows() -> None:
    """Ids select rows of E.

    The ids of the slide select these rows of a table. A byte pair encoding that is trained here on a few words finds
    its own ids: the most frequent pairs are joined first, and nothing is lost.
    """
    import torch

    from orrery.laws.lectures import ROWS
    from orrery.nn.embeddings import TokenEmbedding
    from orrery.text.train import train_tokenizer

    embedding = TokenEmbedding(max(ROWS) + 1, 8)
    found_LD = embedding(torch.tensor([ROWS]))[0]
    same = [torch.equal(found_LD[i], embedding.token.weight[row]) for i, row in enumerate(ROWS)]
    print("rows", ", ".join(map(str, ROWS)), "are what is looked up:", same)
    text = "Thanks for all the fish, and thanks for all the shoes."
    tokenizer = train_tokenizer("byte_bpe", [text] * 2, 280)
    ids = tokenizer.encode("Thanks for all the")
    print("pieces here:", [tokenizer.decode([id]) for id in ids], "ids:", ids)
    print("given back as it was:", tokenizer.decode(tokenizer.encode(text)) == text)


@DECK.code(
    "position-table", "T10", "Position Embeddings", given=("[1 x N]",),
    slips="a table with a vector for each of N positions is N x d, as the sum with the token's vector needs it.",
)  # fmt: skip
def position_table() -> None:
    """Learned positions: a vector for each place, added to the word's.

    The tables of a tiny GPT-2 and their sum, which is what its first block reads. A text that is longer than the
    table has no vector left, and is refused.
    """
    import torch

    from orrery.errors import UsageError
    from orrery.inspection.trace import trace
    from orrery.laws.models import tiny

    model = tiny("gpt2")
    words_VD, places_ND = model.embed.token.weight, model.stack.positions["learned"].table.weight
    print("E has the shape", list(words_VD.shape), "and the positions", list(places_ND.shape))
    ids_BL = torch.tensor([[3, 14, 15, 9]])
    read_BLD = trace(model, ids_BL)["blocks.0.resid_pre"]
    print("the sum is what block 0 reads:", torch.equal(words_VD[ids_BL[0]] + places_ND[:4], read_BLD[0]))
    try:
        model.logits(torch.zeros(1, len(places_ND) + 1, dtype=torch.long))
    except UsageError as error:
        print(error.message)


@DECK.code("unembedding", "T11", "Language modeling head; weight tying")
def unembedding() -> None:
    """The way out is the way in, turned round.

    Tied weights are one tensor: logits are h Eᵀ, and the gradient of E is the sum of what both uses give.
    """
    import torch

    from orrery.inspection.trace import trace
    from orrery.laws.models import tiny
    from orrery_course.course.attending import largest

    model, ids_BL = tiny("gpt2"), torch.tensor([[3, 14, 15, 9]])
    E_VD = model.embed.token.weight
    print("one storage:", model.head.vocabulary.weight.data_ptr() == E_VD.data_ptr())
    inside = trace(model, ids_BL)
    h_BLD = model.stack.final(inside["blocks.1.resid_post"])
    print("h Eᵀ and the logits differ by", largest(h_BLD @ E_VD.T - inside.logits))
    probabilities_V = inside.logits[0, -1].softmax(-1)
    print(f"{len(probabilities_V)} probabilities, their sum {probabilities_V.sum().item():.6f}")


@DECK.code("noam", "P4", "Optimizer", given=("0.9", "0.98", "1e-09", "4,000"), more="orrery quiz noam --answers")
def noam() -> None:
    """The learning rate of the original Transformer: up in a line, down with the root.

    The slide's formula beside the program's schedule, at the first step, at the peak and far behind it; and Adam's
    three numbers as a recipe has them.
    """
    from orrery.recipes.config import AdamSettings
    from orrery.reports.figures import line_chart
    from orrery.training.schedules import noam

    def slide(step: int, width: int = 512, warmup: int = 4000) -> float:
        return float(width**-0.5 * min(step**-0.5, step * warmup**-1.5))

    peak = max(range(1, 20_000), key=slide)
    for step in (1, peak, 100_000):
        program = noam(step, steps=0, warmup=4_000, width=512)
        print(f"step {step:7,}: slide {slide(step):.6e}, program {program:.6e}")
    adam = AdamSettings(rate=1.0)
    print("Adam:", *adam.betas, adam.eps)
    curve = [(step, slide(step)) for step in range(100, 20_001, 100)]
    line_chart({"rate": curve}, title="Noam's rate", x_label="step", y_label="learning rate")


@DECK.code("instability", "T9 P4", "Training instability is a notorious issue", more="orrery lab warmup")
def instability() -> None:
    """With the norm last a deep model does not learn at a high rate; with the norm first it does.

    Six layers, the same task and rate, with and without a warm-up. And what is told when a number is no longer
    finite: the first tensor by its name.
    """
    import torch

    from orrery.objectives.causal import CausalLanguageModel
    from orrery.studies.fitting import build, fit
    from orrery.training.distributed import Alone
    from orrery.training.state import first_bad_tensor
    from orrery_course.labs.recall import Delayed
    from orrery_course.labs.warmup import CONFIG, NORMS, STARTS, glorot

    for norm, family in NORMS.items():
        for start, schedule in STARTS.items():
            model = glorot(build(family, 0, {**CONFIG, "n_layer": 6}), 0)
            losses = fit(model, CausalLanguageModel(), Delayed(1, 8, 16, 16), 100, 0.01, 0, schedule=schedule)
            print(f"{norm:7} {start:15}: loss {sum(losses[-10:]) / 10:.2f} nats a word")
    with torch.no_grad():
        model.stack.blocks[3].attention.branch.q.weight[0, 0] = torch.nan
    print("not finite:", first_bad_tensor(model, Alone()))


@DECK.code("bpe-table", "D5", "Byte pair encoding (BPE)", more="orrery tokenizer compare --parallel SOURCE TARGET")
def bpe_table() -> None:
    """Rare words by pieces: the four systems of the table.

    A dictionary that puts in words, pairs of characters, BPE of each language, and joint BPE, trained on a few pairs
    of number words; on a pair that none of them has seen. On the right of the arrow stands the reference as each
    would write it.
    """
    from itertools import product

    from orrery_course.tables.parallel import train_systems

    tens = {"twenty": "zwanzig", "thirty": "dreissig", "forty": "vierzig", "fifty": "fuenfzig", "sixty": "sechzig"}
    ones = {"two": "zwei", "three": "drei", "four": "vier", "five": "fuenf", "six": "sechs"}
    pairs = [(f"{ten} {one}", f"{ones[one]}und{tens[ten]}") for ten, one in product(tens, ones)]
    unseen = ("sixty six", "sechsundsechzig")
    systems = train_systems([pair for pair in pairs if pair != unseen], 60, lambda name: None)
    for name, row in systems.table(unseen).items():
        print(f"{name:12} {row}")
