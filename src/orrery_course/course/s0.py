"""Deck S0: UMass COMPSCI 589, lecture 9: from one-hot vectors to a stack of blocks, and what is done after that."""

from orrery_course.course._item import Deck

DECK = Deck(
    "S0",
    "UMass COMPSCI 589, lecture 9",
    "Words become vectors, positions are added, attention mixes them, a block is built, blocks are stacked, and the "
    "stack learns the next word.",
    "self-attention",
    "Multiply the queries by 10, then by 0: the weights become one word's alone, and then those of a mean.",
)


@DECK.code("one-hot", "W1", "Word Representation")
def one_hot() -> None:
    """Every word is equally far from every other.

    Two one-hot vectors have the product 0 and the distance √2, whichever words they are; and a row of a table that is
    looked up is the product with a one-hot vector, bit for bit.
    """
    import torch

    from orrery.nn.embeddings import TokenEmbedding

    words = ["a", "able", "about", "zoo"]
    vectors_VN = torch.eye(len(words), dtype=torch.float64)
    for first, second in ((0, 1), (0, 3), (2, 3)):
        a_N, b_N = vectors_VN[first], vectors_VN[second]
        distance = (a_N - b_N).norm().item()
        print(f"{words[first]:5} {words[second]:5}: product {(a_N @ b_N).item():g}, distance {distance:.6f}")
    embedding = TokenEmbedding(len(words), 8).double()
    looked_up_LD, table_VD = embedding(torch.arange(len(words))[None])[0], embedding.token.weight
    print("looked up = one-hot times table:", torch.equal(looked_up_LD, vectors_VN @ table_VD))
    pair_bytes = 2 * torch.zeros(500_000, dtype=torch.float64).nbytes
    print(f"bytes of two one-hot vectors where the vocabulary has half a million words: {pair_bytes:,}")


@DECK.code("cbow", "W2", "Learned Word Embeddings: Word2Vec")
def cbow() -> None:
    """CBOW: the middle word of five, from the mean of the four around it.

    The loss by the slide's formula, written out, beside the loss that the program's CBOW with a full softmax
    computes; and its gradient beside a finite difference.
    """
    import math

    import torch

    from orrery.models.word2vec.definition import full_softmax, hidden
    from orrery_course.course.attending import drawn

    words = ["the", "cat", "sat", "on", "a", "mat"]
    inner_VD, outer_VD = drawn(6, 4).requires_grad_(), drawn(6, 4, seed=1)
    around, middle = torch.tensor([0, 1, 3, 4]), 2
    z_D = sum(inner_VD[w] for w in around.tolist()) / 4
    powers = [torch.exp(outer_VD[w] @ z_D).item() for w in range(6)]
    by_hand = -math.log(powers[middle] / sum(powers))
    loss = full_softmax(hidden(inner_VD, around), outer_VD, torch.tensor(middle))
    print(f"P({words[middle]} | the cat _ on a) = {powers[middle] / sum(powers):.6f}")
    print(f"loss by hand {by_hand:.6f}, by the program {loss.item():.6f}")
    (gradient_VD,) = torch.autograd.grad(loss, inner_VD)
    step_VD = torch.zeros(6, 4, dtype=torch.float64)
    step_VD[1, 0] = 1e-6
    above, below = (
        full_softmax(hidden(inner_VD + s, around), outer_VD, torch.tensor(middle)) for s in (step_VD, -step_VD)
    )
    print(f"a number of the gradient {gradient_VD[1, 0].item():.6f}, by trying {(above - below).item() / 2e-6:.6f}")


@DECK.code("positions", "T10", "Positional Encodings")
def positions() -> None:
    """Without positions a sentence is a bag of words; a one-hot position ends that.

    Attention gives permuted results for permuted words. With the place of each word beside it, as a one-hot vector,
    it does not.
    """
    import torch

    from orrery_course.course.attending import attention, drawn, largest

    x_LD, order_L = drawn(4, 6), torch.tensor([2, 0, 3, 1])
    places_LN = torch.eye(4, dtype=torch.float64)

    def read(words_LD: torch.Tensor) -> torch.Tensor:
        return attention(words_LD, words_LD, words_LD)[0]

    print("without positions, permuted:", largest(read(x_LD)[order_L] - read(x_LD[order_L])))
    placed_LD = torch.cat((x_LD, places_LN), dim=1)
    moved_LD = torch.cat((x_LD[order_L], places_LN), dim=1)
    print(f"channels with the position beside the word: {placed_LD.shape[1]}")
    print("with one-hot positions, permuted:", largest(read(placed_LD)[order_L] - read(moved_LD)))


@DECK.code("self-attention", "T1", "Computing Self-Attention")
def self_attention() -> None:
    """Self-attention, query by query as the slide writes it, and as the program runs it.

    Each weight is a softmax of scaled products; each result is a weighted sum of values. The loop over i and j, the
    matrix form and the fused kernel give the same numbers, for all words and for earlier words alone.
    """
    import torch

    from orrery.nn.attention.kernels import sdpa
    from orrery.nn.attention.operands import KeysValues, Operands
    from orrery.nn.masks import PLAIN_CAUSAL
    from orrery_course.course.attending import attention, drawn, largest

    x_LD = drawn(5, 8)
    q_LC, k_LC, v_LC = (x_LD @ drawn(8, 8, seed=seed) / 8**0.5 for seed in (1, 2, 3))
    for causal in (False, True):
        rows = []
        for i in range(5):
            seen = range(i + 1) if causal else range(5)
            powers = [torch.exp(q_LC[i] @ k_LC[j] / 8**0.5) for j in seen]
            weights_S = torch.stack(powers) / sum(powers)
            rows.append(weights_S @ v_LC[seen.start : seen.stop])
        mixed_LC, weights_LS = attention(q_LC, k_LC, v_LC, causal=causal)
        name = "masked" if causal else "full"
        print(f"{name:6}: loop and matrices differ by {largest(torch.stack(rows) - mixed_LC)};", end=" ")
        print(f"weights of the second word: {[round(w, 4) for w in weights_LS[1].tolist()]}")
    keys = KeysValues(k_LC[None, None], v_LC[None, None])
    fused_LC = sdpa(q_LC[None, None], keys, Operands(mask=PLAIN_CAUSAL, scale=8**-0.5))[0, 0]
    print(f"the fused kernel differs by {largest(fused_LC - mixed_LC)}")


@DECK.code(
    "parameters", "C1", "Computing Self-Attention: parameter count", given=("3DK",),
    slips="the matrices are K x K, so a block has 3K² numbers; D is no axis of theirs.",
)  # fmt: skip
def parameters() -> None:
    """How many numbers a block of self-attention has.

    Counted in the module that is built, beside the formulas of the decks. The number does not depend on the length of
    the text.
    """
    from orrery_course.papers.complexity import attention_block_table

    table = attention_block_table()
    for block, deck, formula, count in table.rows:
        print(f"{deck:10}  {formula:16}  {count:>9}  {block}")
    print(table.notes[0])


@DECK.code("multi-head", "T2", "Multi-Head Attention")
def multi_head() -> None:
    """Heads that are summed are heads that are concatenated.

    This deck gives each head a matrix on the full width and adds the heads up; the others join the heads and multiply
    once. Both are the same numbers. A width that the heads do not divide is refused.
    """
    import torch

    from orrery.errors import ModelFileError
    from orrery.families import load_family
    from orrery_course.course.attending import drawn, largest

    heads_HLC, out_DD = drawn(4, 7, 8), drawn(32, 32, seed=1)
    joined_LD = torch.cat(list(heads_HLC), dim=-1) @ out_DD
    summed_LD = sum(head_LC @ part_CD for head_LC, part_CD in zip(heads_HLC, out_DD.split(8), strict=True))
    print("joined and summed differ by", largest(joined_LD - summed_LD))
    try:
        load_family("gpt2").spec({"n_layer": 1, "n_head": 5, "n_embd": 32, "n_positions": 8, "vocab_size": 9})
    except ModelFileError as error:
        print(error.message)


@DECK.code("layer-norm", "T6", "Aside: Layer Norm")
def layer_norm() -> None:
    """Layer norm: mean 0 and variance 1, then gain and bias.

    The slide divides by the deviation alone, with the variance over K; the program does that with epsilon 0, and adds
    a small epsilon otherwise. LLaMA's norm leaves the mean and the bias out.
    """
    import torch

    from orrery.nn.norms import LayerNorm, RMSNorm
    from orrery_course.course.attending import built, drawn, largest

    x_LD = 3 + 2 * drawn(4, 8)
    mean_L1 = x_LD.sum(-1, keepdim=True) / 8
    sigma_L1 = (((x_LD - mean_L1) ** 2).sum(-1, keepdim=True) / 8).sqrt()
    slide_LD = (x_LD - mean_L1) / sigma_L1
    print("slide and program differ by", largest(slide_LD - built(LayerNorm.Spec(eps=0.0), 8)(x_LD)))
    print(f"mean {largest(slide_LD.mean(-1))}, variance {float(slide_LD.var(-1, unbiased=False).mean()):.6f}")
    rms_LD = x_LD / (x_LD**2).mean(-1, keepdim=True).sqrt()
    print("LLaMA's norm and its formula differ by", largest(rms_LD - built(RMSNorm.Spec(eps=0.0), 8)(x_LD)))
    print("it keeps a mean:", torch.round(rms_LD.mean(-1), decimals=3).tolist())


@DECK.code("feed-forward", "T5", "Transformer Blocks: the MLP")
def feed_forward() -> None:
    """The part of a block that is not linear.

    Without the softmax attention would be a linear map; the MLP works on each word alone. ReLU as on the slide, and
    the GELU and SwiGLU of later models, each beside its formula.
    """
    from torch.nn.functional import gelu, silu

    from orrery.nn.feedforward.gated import GatedMLP
    from orrery.nn.feedforward.mlp import MLP
    from orrery_course.course.attending import built, context, drawn, largest

    x_LD, ctx = drawn(5, 8), context()
    plain = built(MLP.Spec(hidden=16, activation="relu", bias=False), 8)
    smooth = built(MLP.Spec(hidden=16, activation="gelu", bias=False), 8)
    gated = built(GatedMLP.Spec(hidden=16, activation="silu"), 8)
    slide_LD = (x_LD @ plain.up.weight.T).clamp(min=0) @ plain.down.weight.T
    print("ReLU:  ", largest(plain(x_LD[None], ctx)[0] - slide_LD))
    print(
        "GELU:  ",
        largest(
            smooth(x_LD[None], ctx)[0] - gelu(x_LD @ smooth.up.weight.T, approximate="none") @ smooth.down.weight.T
        ),
    )
    gate_LF = silu(x_LD @ gated.gate.weight.T) * (x_LD @ gated.up.weight.T)
    print("SwiGLU:", largest(gated(x_LD[None], ctx)[0] - gate_LF @ gated.down.weight.T))
    whole, alone = plain(x_LD[None], ctx)[0, 2], plain(x_LD[None, 2:3], ctx)[0, 0]
    print("a word alone gives what it gives among others:", largest(whole - alone))


@DECK.code("block", "T12", "Transformer Blocks")
def block() -> None:
    """A block as in the original paper, and a stack of them.

    The four lines of the slide, written with the parts of a block that was built, give what the block gives: the norm
    stands after the addition. Encoder, decoder and both together are stacks of the one block class.
    """
    from orrery.laws.models import tiny
    from orrery.nn.attention.multihead import MultiHeadAttention
    from orrery.nn.block import Block
    from orrery.nn.feedforward.mlp import MLP
    from orrery.nn.norms import LayerNorm
    from orrery.nn.residual import Residual
    from orrery_course.course.attending import built, context, drawn, largest

    attention = Residual.Spec(branch=MultiHeadAttention.Spec(heads=2, kv_heads=2, head_width=4), out=LayerNorm.Spec())
    mlp = Residual.Spec(branch=MLP.Spec(hidden=32, activation="relu"), out=LayerNorm.Spec())
    one = built(Block.Spec(residuals={"attention": attention, "feed_forward": mlp}), 8)
    x_BLD, ctx = drawn(1, 5, 8), context()
    h_BLD = one.attention.branch(x_BLD, ctx)
    u_BLD = one.attention.out(x_BLD + h_BLD)
    inner_BLD = one.feed_forward.branch(u_BLD, ctx)
    z_BLD = one.feed_forward.out(u_BLD + inner_BLD)
    print("the slide's lines and the block differ by", largest(z_BLD - one(x_BLD, ctx)))
    for family in ("bert", "gpt2", "transformer"):
        model = tiny(family)
        blocks = [module for module in model.modules() if type(module) is Block]
        print(f"{family:11} has {len(blocks)} blocks of the class {Block.__name__}")


@DECK.code("next-word", "P1", "Generative Pre-Training")
def next_word() -> None:
    """The loss of a language model: the mean negative log likelihood of the next word.

    Computed by hand from the logits, beside the program's objective; words that only fill up a row change nothing.
    Then a small GPT learns a sentence by Adam: at first it guesses among the words of its vocabulary, and its
    perplexity, e to the power of the loss, is about their number.
    """
    import math

    import torch

    from orrery.laws.models import tiny
    from orrery.models.initialise import initialise
    from orrery.nn.cross_entropy import IGNORED
    from orrery.objectives.causal import CausalLanguageModel
    from orrery.studies.fitting import build, fit

    model = tiny("gpt2")
    ids_BL, targets_BL = torch.tensor([[7, 3, 9, 3, 11]]), torch.tensor([[3, 9, 3, 11, 2]])
    log_p_LV = model.logits(ids_BL)[0].log_softmax(-1)
    by_hand = -sum(log_p_LV[i, word].item() for i, word in enumerate(targets_BL[0].tolist())) / 5
    fill, nothing = torch.zeros(1, 3, dtype=torch.long), torch.full((1, 3), IGNORED)
    filled = {"ids": torch.cat((ids_BL, fill), 1), "targets": torch.cat((targets_BL, nothing), 1)}
    objective = CausalLanguageModel()
    for name, batch in {"alone": {"ids": ids_BL, "targets": targets_BL}, "padded": filled}.items():
        term = objective.loss(model, batch)["next_token"]
        print(f"{name:6}: by hand {by_hand:.6f}, by the program {(term.sum / term.count).item():.6f}")
    small = {"vocab_size": 9, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 8}
    sentence = {"ids": torch.arange(8)[None], "targets": torch.arange(1, 9)[None]}
    gpt = build("gpt2", 0, small)
    initialise(gpt, depth=1, seed=0)
    losses = fit(gpt, objective, lambda rng: sentence, 200, 0.01, 0)
    print(f"a sentence of 8 words: {losses[0]:.3f} nats a word at first, {losses[-1]:.3f} after {len(losses)} steps")
    print(f"perplexity {math.exp(losses[0]):.2f} at first, {math.exp(losses[-1]):.2f} at last;", end=" ")
    print(f"a guess among {small['vocab_size']} words costs {math.log(small['vocab_size']):.3f} nats")


@DECK.code("sizes", "V5 F11", "Text Transformer Model Parameters", given=("1.5 trillion",),
           slips="deck S3 has 1.76 trillion for the same model, and neither number was published.")  # fmt: skip
def sizes() -> None:
    """Sizes by year, and the brain.

    The chart is drawn again from data, where every size that can be counted is counted from the architecture.
    """
    from orrery.planning.data_table import NEURONS, SYNAPSES
    from orrery_course.papers.model_sizes import MODELS, sizes_chart

    largest = max((model for model in MODELS if model.counted), key=lambda model: model.parameters)
    print(f"{len(MODELS)} models; the largest that is counted: {largest.name}, {largest.parameters:,} parameters")
    print(f"a brain: {NEURONS / 1e9:.0f} billion neurons, {SYNAPSES / 1e12:.0f} trillion synapses,", end=" ")
    print(f"{SYNAPSES / largest.parameters:,.0f} for each parameter")
    sizes_chart()


@DECK.code("rlhf", "P8", "Post-Training and RLHF")
def rlhf() -> None:
    """From imitation to reward, in three trainings of seconds.

    A small model learns to answer sums by imitation (SFT), a reward model learns which of two answers is better, and
    the policy learns from its own answers (GRPO, then PPO by that reward model). Only the way is shown: so few steps
    answer nothing well. What must hold does: the first ratio is 1 and the divergence is not negative.
    """
    from pathlib import Path
    from statistics import mean
    from tempfile import TemporaryDirectory

    import orrery
    from orrery_course.course.stages import RIGHT, stage, write_sums

    with TemporaryDirectory() as folder:
        home = Path(folder)
        write_sums(home)
        for task, steps in (("sft", 40), ("reward", 60)):
            records = orrery.train(stage(home, task, steps), home / task, quiet=True).records()
            print(f"{task:6} loss {records[0]['train/loss']:.3f} at first, {records[-1]['train/loss']:.3f} at last")
        learned = {"kind": "reward_model", "model": str(home / "reward")}
        for task, rewards in (("grpo", RIGHT), ("ppo", [learned])):
            records = orrery.train(stage(home, task, 60, rewards), home / task, quiet=True).records()
            rewarded = [record["train/reward"] for record in records]
            print(f"{task:6} mean reward {mean(rewarded[:10]):.3f} in the first ten steps,", end=" ")
            print(f"{mean(rewarded[-10:]):.3f} in the last ten")
            least = min(record["train/kl_k3"] for record in records)
            print(f"       first ratio {records[0]['train/ratio']:.6f}, least divergence {least:.1e}")
