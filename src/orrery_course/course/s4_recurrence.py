"""Deck S4, in the middle: recurrences, attention between them, and the three challenges that led to Transformers."""

from orrery_course.course.s4 import DECK


@DECK.code("rnn", "R1", "(Vanilla) Recurrent Neural Networks; Computational Graph for an RNN")
def rnn() -> None:
    """An RNN unrolled: the same weights at every step.

    h_t = tanh(W_hh h_{t-1} + W_xh x_t), step by step, beside the program's recurrence; and the graph of four steps.
    """
    import torch

    from orrery.nn.recurrent.rnn import ElmanRNN
    from orrery.reports.flow import Box, flow
    from orrery_course.course.attending import built, drawn, largest

    part, x_LD = built(ElmanRNN.Spec(), 6), drawn(4, 6)
    w = dict(part.engine.named_parameters())
    h_D, states = torch.zeros(6, dtype=torch.float64), []
    for x_D in x_LD:
        h_D = torch.tanh(w["weight_hh_l0"] @ h_D + w["weight_ih_l0"] @ x_D + w["bias_hh_l0"] + w["bias_ih_l0"])
        states.append(h_D)
    begin = (torch.zeros(1, 6, dtype=torch.float64),)
    stepped_BLD, _ = part.compute("step", x_LD[None], None, begin)
    print("formula and program differ by", largest(torch.stack(states) - stepped_BLD[0]))
    print(f"numbers of the recurrence, for any length: {sum(p.numel() for p in part.engine.parameters())}")
    boxes = [
        Box(f"step {t}", (f"x{t} of {len(x_LD[0])} channels", f"h{t} of {len(h_D)}", "the same weights"))
        for t in (1, 2, 3, 4)
    ]
    flow(boxes, [(0, 1), (1, 2), (2, 3)], title="A recurrence, unrolled along time")


@DECK.code("hello", "R2", "Example: Character-level Language Model", given=("hello",), more="orrery quiz next-letters")
def hello() -> None:
    """Four letters, and a network that spells: what it writes is fed back to it.

    Trained to say e, l, l, o behind h, e, l, l; then it begins with h and reads its own letters.
    """
    import torch

    from orrery.objectives.causal import CausalLanguageModel
    from orrery.studies.fitting import build, fit

    letters = "helo"
    ids_BL = torch.tensor([[letters.index(letter) for letter in "hello"]])
    model = build("elman_rnn", 0, {"vocab_size": 4, "hidden_size": 8, "num_layers": 1})
    batch = {"ids": ids_BL[:, :-1], "targets": ids_BL[:, 1:]}
    losses = fit(model, CausalLanguageModel(), lambda rng: batch, 100, 0.05, 0)
    logits_BV, session = model.start(ids_BL[:, :1], 10)
    written = letters[0]
    for _ in range(4):
        token = logits_BV.argmax(-1)
        written += letters[int(token)]
        logits_BV = model.step(token[:, None], session)[:, -1]
    print(f"loss {losses[0]:.2f} to {losses[-1]:.2f}; written: {written}")


@DECK.code("lstm", "R3", "Long Short-Term Memory (LSTM)")
def lstm() -> None:
    """Gates that can be read: what is let in, what is kept, what is said.

    Every gate of every step of an LSTM, and the cell that they make by the formula; a GRU has two gates.
    """
    import torch

    from orrery.inspection.trace import trace
    from orrery.laws.models import tiny
    from orrery_course.course.attending import largest

    for family in ("lstm", "gru"):
        inside = trace(tiny(family), torch.tensor([[3, 14, 15, 9]]))
        part = "blocks.0.recurrence."
        gates = [key.removeprefix(part) for key in inside if key.startswith(part) and "gate" in key]
        print(f"{family}: {', '.join(gates)}")
        if family == "lstm":
            i_LD, f_LD, g_LD, c_LD = (
                inside[part + name][0] for name in ("input_gate", "forget_gate", "candidate", "cell")
            )
            print("  mean of the forget gate by step:", [round(value, 3) for value in f_LD.mean(-1).tolist()])
            before_LD = torch.cat((torch.zeros_like(c_LD[:1]), c_LD[:-1]))
            print("  c_t = f c_{t-1} + i g, off by", largest(f_LD * before_LD + i_LD * g_LD - c_LD))


@DECK.code("fixed-context", "R5", "Sequence to Sequence Learning: RNN encoder-decoder (RNNenc)")
def fixed_context() -> None:
    """A whole sentence in one vector of fixed length.

    The encoder-decoder without attention learns to write short sentences backwards; what its decoder knows of the
    source is a vector of one size, however long the source is.
    """
    import torch

    from orrery.inspection.trace import trace
    from orrery.objectives.seq2seq import SequenceToSequence
    from orrery.studies.fitting import build, fit
    from orrery_course.labs.alignment import ReversedPairs, accuracy, translator

    task = ReversedPairs(words=8, rows=32, shortest=2, longest=4)
    model = build("rnnenc", 0, translator("rnnenc", task.vocabulary, 32))
    fit(model, SequenceToSequence(), task, 350, 0.01, 0)
    for length in (2, 4, 6):
        batch = task.of_length(length, torch.Generator().manual_seed(1))
        memory_BSM = trace(model, batch["source"], batch["ids"])["encoder.memory"]
        kept = memory_BSM[0].numel()
        print(f"{length} words: right {accuracy(model, batch):.2f}, numbers that the decoder has of the source: {kept}")


@DECK.code("by-length", "R8 R6", "RNN + attention: RNNsearch", more="orrery lab length")
def by_length() -> None:
    """One vector forgets long sentences, attention does not.

    RNNenc and RNNsearch of about equal size translate from a language of free word order; the share of words in their
    places, by the length of the sentence. Lengths beyond six were not in the training.
    """
    import torch

    from orrery.objectives.seq2seq import SequenceToSequence
    from orrery.reports.figures import line_chart
    from orrery.studies.fitting import build, fit, parameters
    from orrery_course.labs.alignment import accuracy, translator
    from orrery_course.labs.length import WIDTHS, FreeOrder

    task, curves = FreeOrder(24, 48, 2, 6, parts=12), {}
    for family, width in WIDTHS.items():
        model = build(family, 0, translator(family, task.vocabulary, width))
        fit(model, SequenceToSequence(), task, 300, 0.01, 0)
        rng = torch.Generator().manual_seed(1)
        curves[family] = [(n, accuracy(model, task.of_length(n, rng))) for n in (2, 4, 6, 8, 10)]
        print(
            f"{family:9} {parameters(model):,} parameters:",
            ", ".join(f"{n}: {right:.2f}" for n, right in curves[family]),
        )
    line_chart(curves, title="Words in their places", x_label="words of the sentence", y_label="share right")


@DECK.code("distance", "R10", "Challenge 1: Long Interaction Distances", more="orrery lab recall")
def distance() -> None:
    """How far back can a word be found?

    Each model must say the word of k steps ago. The way between two words is k steps long in a recurrence, and one
    step in attention.
    """
    from orrery.objectives.causal import CausalLanguageModel
    from orrery.studies.fitting import build, fit
    from orrery_course.labs.recall import MODELS, Delayed, accuracy

    for name in ("RNN", "Transformer"):
        family, config = MODELS[name]
        found = []
        for k in (2, 12):
            model = build(family, 0, config)
            fit(model, CausalLanguageModel(), Delayed(k), 200, 0.01, 0)
            found.append(f"{k} steps ago {accuracy(model, Delayed(k), 1):.2f}")
        print(f"{name:11} finds the word of", ", ".join(found))


@DECK.code("gradients", "R9", "Challenge 2: Backpropagation through Time", more="orrery lab gradients")
def gradients() -> None:
    """By what the gradient is multiplied for each step back.

    Small recurrent weights let it vanish, large ones let it explode; an LSTM whose gates are open and a Transformer
    keep it. Clipping bounds its length.
    """
    import torch

    from orrery.inspection.gradient_distance import gradient_by_distance
    from orrery.reports.figures import line_chart
    from orrery_course.labs.gradients import factor, models

    ids_BL = torch.randint(8, (4, 33), generator=torch.Generator().manual_seed(0))
    curves = {}
    for name, model in models(0).items():
        norms = gradient_by_distance(model.eval(), ids_BL)
        curves[name] = [(distance, max(norm, 1e-12)) for distance, norm in enumerate(norms, 1)]
        print(f"{name:40} {factor(norms):.2f} a step")
    long_D = torch.nn.Parameter(torch.zeros(4))
    long_D.grad = torch.full((4,), 50.0)
    before = torch.nn.utils.clip_grad_norm_([long_D], 1.0)
    print(f"a gradient of length {before.item():g} is clipped to {long_D.grad.norm().item():.3f}")
    line_chart(curves, title="Length of the gradient", x_label="steps back", y_label="length", log_y=True)


@DECK.code("bottleneck", "R11", "Challenge 3: Parallelizability", more="orrery lab bottleneck")
def bottleneck() -> None:
    """How many operations must wait for each other.

    The longest chain of operations of a whole model: it grows with the text in a recurrence, and is as long for any
    text in a Transformer.
    """
    import torch

    from orrery.nn.attention.kernels import eager
    from orrery.studies.fitting import build
    from orrery_course.labs.bottleneck import MODELS, longest_chain

    lengths = (8, 16, 32)
    for name, (family, config) in MODELS.items():
        model, chains = build(family, 0, config), []
        for length in lengths:
            ids_BL = torch.zeros(1, length, dtype=torch.long)
            chains.append(longest_chain(model.logits(ids_BL, kernel=eager, scan="step")))
        print(f"{name:11} {chains} operations in a row for {lengths} words")


@DECK.code(
    "progress",
    "R12",
    "Caveating this discussion: S4, Mamba, Linear Attention, GLA, Based",
    more="orrery lab associative",
)
def progress() -> None:
    """Recurrences that train in parallel, and write with a state of one size.

    Each computes the same step by step and all at once, its state has as many bytes after many words as after few,
    and it learns from a text better than counting words does.
    """
    import math
    from collections import Counter

    import torch

    from orrery.laws.models import tiny
    from orrery.models.initialise import initialise
    from orrery.objectives.causal import CausalLanguageModel
    from orrery.studies.fitting import fit
    from orrery_course.course.attending import largest

    text = torch.tensor(list(b"the cat sat on the mat and the dog sat on the rug and"))
    ids_BL = ((text - 97) % 61).repeat(4)[None, :192].reshape(6, 32)
    counts = Counter(ids_BL.flatten().tolist())
    unigram = -sum(n / 192 * math.log(n / 192) for n in counts.values())
    batch = {"ids": ids_BL[:, :-1], "targets": ids_BL[:, 1:]}
    print(f"counting words alone: {unigram:.2f} nats")
    for family in ("s4", "mamba", "linear_transformer", "gla", "based"):
        model = tiny(family)
        apart = largest(model.logits(ids_BL[:1], scan="step") - model.logits(ids_BL[:1], scan="parallel"))
        sizes = [model.start(ids_BL[:1, :n], 32)[1].bytes() for n in (4, 32)]
        initialise(model, depth=2, seed=0, std=0.2)
        losses = fit(model, CausalLanguageModel(), lambda rng: batch, 120, 0.02, 0)
        print(f"{family:18} forms differ by {apart}, loss {losses[-1]:.2f} nats,", end=" ")
        print(f"bytes after few and after many words: {sizes[0]:,}, {sizes[1]:,}")
