"""Deck S2: COMP 4630, Transformers and large language models: attention before and in the Transformer, and its kin."""

from orrery_course.course._item import Deck

DECK = Deck(
    "S2",
    "COMP 4630, Transformers and large language models",
    "Attention between an encoder and a decoder, the original Transformer, and the families that came of it.",
    "sinusoids",
    "Give the part another base, `SinusoidalPositions.Spec(base=1.0)`: how near do two places come, and why?",
)


@DECK.code("context", "R6", "Attention Overview; the math version")
def context() -> None:
    """The context is a weighted mean of the encoder's states, another one at each step.

    Bahdanau's score and softmax by the slide's formula, beside the part that RNNsearch has; the weights of two
    decoder states each sum to 1, and give two contexts.
    """
    import torch

    from orrery.nn.attention.alignment_score import Additive
    from orrery_course.course.attending import built, drawn, largest, numbers

    score, y_SM = built(Additive.Spec(encoder_width=6, hidden=5), 4), drawn(3, 6)
    for t in (1, 2):
        state_D = drawn(4, seed=t)
        e_S = score(state_D[None], score.keys(y_SM[None]))[0]
        hidden_SE = torch.tanh(state_D @ score.q.weight.T + y_SM @ score.k.weight.T)
        alpha_S = e_S.softmax(0)
        print(f"step {t}: weights {numbers(alpha_S)}, sum {alpha_S.sum().item():.6f},", end=" ")
        print(f"context {numbers(alpha_S @ y_SM, 3)},", "by the formula:", largest(e_S - hidden_SE @ score.v.weight[0]))


@DECK.code("heat-map", "V1", "Attention Example", more="orrery lab alignment")
def heat_map() -> None:
    """Where attention looks, as a heat map: backwards, and nobody told it.

    RNNsearch learns in seconds to write words in reverse order. Each row of the picture is a word that is written,
    each column a word of the source.
    """
    import torch

    from orrery.inspection.trace import trace
    from orrery.objectives.seq2seq import SequenceToSequence
    from orrery.reports.figures import heat_map
    from orrery.studies.fitting import build, fit
    from orrery_course.labs.alignment import ReversedPairs, accuracy, near_antidiagonal, translator

    task = ReversedPairs(words=8, rows=32, shortest=2, longest=5)
    model = build("rnnsearch", 0, translator("rnnsearch", task.vocabulary, 24))
    fit(model, SequenceToSequence(), task, 350, 0.01, 0)
    batch = task.of_length(5, torch.Generator().manual_seed(1))
    pattern_BLS = trace(model, batch["source"], batch["ids"], keep=("*.pattern",))["blocks.0.cross.pattern"][:, 0]
    print(f"words in their places: {accuracy(model, batch):.2f};", end=" ")
    print(f"weight within one place of the anti-diagonal: {near_antidiagonal(pattern_BLS[:, :-1]):.2f}")
    words = [str(word) for word in batch["source"][0].tolist()]
    rows = pattern_BLS[0, :-1].tolist()
    heat_map(rows, rows=words[::-1], columns=words, title="Written word by source word", highest=1.0)


@DECK.code("kinds-of-attention", "R7", "Different kinds of attention", more="orrery lab scores")
def kinds_of_attention() -> None:
    """Additive, or a product: the same job, and another price.

    Luong's dot score is the product of the current state and an encoder state; it has no parameters, and all scores
    are one matrix product. The additive one takes a tanh of a hidden layer for each pair.
    """
    import time

    import torch

    from orrery.nn.attention.alignment_score import Additive, Dot, General
    from orrery_course.course.attending import built, drawn, largest

    width, states_SM, q_BD = 256, drawn(64, 256), drawn(64, 256, seed=1)
    specs = {"additive": Additive.Spec(encoder_width=width, hidden=width), "general": General.Spec(encoder_width=width)}
    seconds = {}
    for name, spec in (specs | {"dot": Dot.Spec()}).items():
        score = built(spec, width)
        with torch.no_grad():
            keys_BSE = score.keys(states_SM[None]).expand(64, -1, -1)
            begin = time.perf_counter()
            e_BS = score(q_BD, keys_BSE)
        seconds[name] = time.perf_counter() - begin
        print(f"{name:8} {sum(parameter.numel() for parameter in score.parameters()):7,} parameters")
    print("the dot score and its formula differ by", largest(e_BS - q_BD @ states_SM.T))
    print("it is faster than the additive score:", seconds["dot"] < seconds["additive"])


@DECK.code("original", "F1 P3", "Figure 16-8: the original 2017 transformer architecture")
def original() -> None:
    """The original Transformer learns to translate.

    A small one learns to write words in reverse order, with teacher forcing, label smoothing and a warm-up; a beam
    search writes. Its first loss is far above that of a guess, for its embeddings are drawn large, and label smoothing
    keeps the last one above 0. Below stands the size of the paper's base model, counted from its architecture.
    """
    import torch

    from orrery.generation.row import Limits
    from orrery.generation.search import beam_search
    from orrery.objectives.seq2seq import SequenceToSequence
    from orrery.planning.parameters import parameters
    from orrery.planning.presets import preset
    from orrery.studies.fitting import fit, warmed_up
    from orrery_course.labs.alignment import ReversedPairs, accuracy
    from orrery_course.labs.prefix import encoder_decoder

    task = ReversedPairs(words=6, rows=32, shortest=2, longest=4)
    model = encoder_decoder(task.vocabulary, 0)
    losses = fit(model, SequenceToSequence(label_smoothing=0.1), task, 400, 5e-3, 0, schedule=warmed_up(0.1))
    batch = task.of_length(4, torch.Generator().manual_seed(1))
    print(
        f"loss {losses[0]:.2f} at first, {losses[-1]:.2f} at last; words in their places: {accuracy(model, batch):.3f}"
    )
    source = batch["source"][0].tolist()
    (answer,) = beam_search(model, [source], Limits(8, 16, end={2}), 4)[0][:1]
    print("reads", source, "and writes by a beam of four", answer.ids)
    base = preset("transformer-base")
    print(f"the base model with a vocabulary of {base.vocabulary:,}: {parameters(base):,} parameters")


@DECK.code("three-uses", "T3", "What are V, K, and Q? The various attention heads")
def three_uses() -> None:
    """Three uses of attention in one model, each with weights of its own shape.

    The encoder reads itself, the decoder reads what it has written, and the decoder reads the encoder: queries by
    keys.
    """
    import torch

    from orrery.inspection.trace import trace
    from orrery.laws.models import inner, tiny

    model, source_BS, target_BL = (
        inner(tiny("transformer")),
        torch.tensor([[5, 9, 2, 17, 30]]),
        torch.tensor([[1, 7, 4]]),
    )
    inside = trace(model, source_BS, target_BL)
    for key in inside:
        if key.endswith(".pattern") and "blocks.0" in key:
            pattern_LS = inside[key][0, 0]
            future = pattern_LS.triu(1).sum().item()
            print(f"{key:32} {len(pattern_LS)} queries x {pattern_LS.shape[1]} keys, above the diagonal {future:.3f}")


@DECK.code("sinusoids", "T10", "Positional encoding", given=("10000",), more="orrery lab positions")
def sinusoids() -> None:
    """Sinusoids, by the slide's formula and by the program.

    The base of this deck stands in the spec of a part; another deck has another base. How near two places come shows
    whether a base tells them apart. Then what each code of positions can do: bounded numbers, no two places alike, any
    length, and a shift that is one linear map.
    """
    import math

    import torch

    from orrery.laws.golden import sinusoid
    from orrery.nn.positions.sinusoidal import SinusoidalPositions
    from orrery_course.course.attending import largest
    from orrery_course.labs.positions import MARKS, marks

    base, width = SinusoidalPositions.Spec().base, 8
    rows = [
        [f(p / base ** (2 * i / width)) for i in range(width // 2) for f in (math.sin, math.cos)] for p in range(50)
    ]
    slide_LD = torch.tensor(rows, dtype=torch.float64)
    print(f"base {base:.0f}: slide and program differ by", largest(slide_LD - sinusoid(base, width, torch.arange(50))))
    table_LD = sinusoid(base, width, torch.arange(1000))
    apart_LL = torch.cdist(table_LD, table_LD).fill_diagonal_(torch.inf)
    print(f"the nearest two of {len(table_LD):,} places are {apart_LL.min():.4f} apart")
    for code in ("one-hot", "index", "sinusoidal", "learned", "rotary"):
        numbers = marks(code)
        held = [mark for mark in MARKS if numbers[mark]]
        print(f"{code:10} {', '.join(held) or 'none of them'}")


@DECK.code("interpretability", "V1", "Interpretability: Figure 5", more="orrery course S4 pronoun")
def interpretability() -> None:
    """Two heads of an encoder look at different words.

    A small BERT learns to fill in words, and two of its heads are drawn on one sentence. Every weight of every head
    of any model is there to look at, in Python and on a page.
    """
    import torch

    from orrery.inspection.trace import trace
    from orrery.reports.figures import heat_map
    from orrery.reports.stack import stacked
    from orrery_course.course.reader import ids, reader

    text = "i bought an apple watch ."
    model, words = reader()[0], text.split()
    pattern_HLS = trace(model, ids(text), keep=["*.pattern"])["blocks.1.attention.pattern"][0]
    for head in (0, 1):
        most = pattern_HLS[head].argmax(-1).tolist()
        print(f"head {head}:", ", ".join(f"{word} > {words[place]}" for word, place in zip(words, most, strict=True)))
    sums_HL = pattern_HLS.sum(-1)
    print("each row sums to 1:", torch.allclose(sums_HL, torch.ones_like(sums_HL)))
    maps = [
        heat_map(pattern_HLS[h].tolist(), rows=words, columns=words, title=f"Head {h}", highest=1.0) for h in (0, 1)
    ]
    stacked(maps, title="Two heads of the second block")


@DECK.code("bert", "F3 P2", "BERT (2018)")
def bert() -> None:
    """BERT fills in words that are hidden; RoBERTa hides others each time.

    Of a hundred words fifteen are asked for; of these 80 become [MASK], 10 another word and 10 stay. The shares are
    measured, on two draws that differ, as in RoBERTa.
    """
    import torch

    from orrery.families import load_family
    from orrery.nn.cross_entropy import IGNORED
    from orrery.objectives import OBJECTIVES
    from orrery.text.special import framed_tokenizer
    from orrery.text.train import train_tokenizer

    words = " ".join(f"w{number}" for number in range(50))
    tokenizer = framed_tokenizer(train_tokenizer("word", [words]), "bert")
    rules = load_family("bert")
    objective = OBJECTIVES.find("masked")()
    objective.bind(rules.spec({**rules.TINY, "vocab_size": tokenizer.size}), tokenizer)
    ids_BL = torch.tensor([tokenizer.encode(words)] * 400)
    draws = [objective.prepare({"ids": ids_BL}, torch.Generator().manual_seed(seed)) for seed in (0, 1)]
    asked_BL = draws[0]["targets"] != IGNORED
    read_N, was_N = draws[0]["ids"][asked_BL], ids_BL[asked_BL]
    masked_N, same_N = read_N == tokenizer.special("mask"), read_N == was_N
    shares = [asked_BL, masked_N, ~masked_N & ~same_N, same_N]
    named = zip(("asked for", "masked", "another", "the same"), shares, strict=True)
    print(", ".join(f"{name} {100 * share.double().mean().item():.1f} %" for name, share in named))
    print("the next draw hides other words:", not torch.equal(asked_BL, draws[1]["targets"] != IGNORED))


@DECK.code("next-sentence", "F3", "BERT (2018): the second task", more="orrery plan bert-base-uncased")
def next_sentence() -> None:
    """BERT's other task: does this sentence follow that one?

    Half of the pairs stand in their order, the others are drawn from elsewhere; RoBERTa left the task out.
    """
    from orrery.data.batches.sentence_pairs import SentencePairs, sentences
    from orrery.data.records import Document
    from orrery.planning.published.sizes import published
    from orrery.text.special import framed_tokenizer
    from orrery.text.train import train_tokenizer

    texts = ["The cat sat. It slept. It woke. It ate.", "A dog ran. It barked. It dug. It stopped."]
    tokenizer = framed_tokenizer(train_tokenizer("word", texts), "bert")
    documents = sentences(tokenizer, [Document(str(place), text) for place, text in enumerate(texts)])
    pairs = SentencePairs(documents, tokenizer, 24, 4, seed=1, label="follows", swap=False)
    batch = pairs.batch(0)
    for ids, real, label in zip(batch["ids"], batch["real"], batch["follows"], strict=True):
        words = " ".join(tokenizer.token(id) for id in ids[real].tolist())
        print("follows " if label else "does not", words)
    for name in ("BERT base, uncased", "RoBERTa base"):
        print(f"{name}: {published(name).parameters:,} parameters")


@DECK.code("llama", "F9 T6", "Llama (2023)", more="orrery plan llama-3.1-405b")
def llama() -> None:
    """Three generations of Llama from one file: root-mean-square norm, rotary positions, a gated feed-forward.

    Sizes are counted from the architectures; the second and third share keys and values among heads, and the cache of
    a token shrinks.
    """
    from typing import Any

    import torch

    from orrery.models.decoding_memory import bytes_per_token
    from orrery.planning.parameters import parameters
    from orrery.planning.published.sizes import published

    for name in ("Llama 65B", "Llama 2 70B", "Llama 3.1 405B"):
        spec: Any = published(name).spec()
        attention = spec.stack.blocks[0].residuals["attention"].branch
        print(
            f"{name:14} {parameters(spec):15,} parameters, {attention.heads} heads, {attention.kv_heads} of keys,",
            end=" ",
        )
        print(f"{bytes_per_token(spec, torch.float16):,} bytes a token in the cache")


@DECK.code("deepseek", "F10", "DeepSeek (2024)")
def deepseek() -> None:
    """DeepSeek caches one short vector a token, and routes each token to few experts.

    What its latent attention keeps, beside plain attention of as many heads; measured in a cache that is filled,
    beside the formula. And a student that learns from a teacher's probabilities instead of from text.
    """
    from typing import Any

    import torch

    from orrery.laws.models import tiny
    from orrery.models.decoding_memory import bytes_per_token
    from orrery.objectives.distillation import Distillation
    from orrery.planning.published.sizes import published
    from orrery.studies.fitting import build, fit

    spec: Any = published("DeepSeek-V3").spec()
    attention = spec.stack.blocks[0].residuals["attention"].branch
    widths, layers = attention.widths, len(spec.stack.blocks)
    plain = 2 * layers * attention.heads * (widths.plain + widths.rotated + widths.value)
    print(f"a token in the cache, in half precision: {bytes_per_token(spec, torch.bfloat16):,} bytes,", end=" ")
    print(f"by the formula {2 * layers * (attention.latent + widths.rotated):,}, of plain attention {plain:,}")
    teacher = tiny("gpt2", torch.float32)
    config = {"vocab_size": 61, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 16}
    student, objective = build("gpt2", 0, config), Distillation("teacher")
    objective.bind(student.spec, None)
    objective.take({"teacher": teacher})
    objective.modules(student)
    ids_BL = torch.randint(61, (16, 8), generator=torch.Generator().manual_seed(0))
    losses = fit(student, objective, lambda rng: {"ids": ids_BL, "targets": ids_BL.roll(-1, 1)}, 100, 0.01, 0)
    print(f"nats between teacher and student: {losses[0]:.3f} at first, {losses[-1]:.3f} at last")


@DECK.code("pipeline", "P9", "Hugging Face")
def pipeline() -> None:
    """The pipeline of the slide, with a model that was made here.

    A small BERT learns the sentiment of a few dozen sentences that are written by a rule; then it is asked as on the
    slide.
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    import orrery
    from orrery_course.course.stages import sentiment

    with TemporaryDirectory() as folder:
        run = orrery.train(sentiment(Path(folder)), Path(folder) / "run", quiet=True)
        nlp = orrery.pipeline("sentiment-analysis", run.folder, device="cpu")
        print(nlp("Cats are fickle creatures"))
        print(nlp(["Dogs are lovely creatures", "Birds are cruel pets"]))
