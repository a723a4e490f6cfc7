"""Deck S4, its last half: the Transformer by its parts, its three architectures, and what it changed."""

from orrery_course.course.s4 import DECK


@DECK.code("captions", "F12 P3", "NLP Tasks as Sequence to Sequence Modeling: Image to Text")
def captions() -> None:
    """A picture in, a sentence out: an encoder of pictures and a decoder of words.

    A small model learns to name what is in pictures that are drawn here, and describes new ones.
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    import orrery
    from orrery_course.course.pictures import captioning, write_captions

    with TemporaryDirectory() as folder:
        train, val = write_captions(Path(folder))
        run = orrery.train(captioning(train, val, 220), Path(folder) / "run", quiet=True)
        lm = orrery.load(run.folder, device="cpu", say=lambda line: None)
        for picture in sorted((Path(folder) / "new").glob("*.png"))[:4]:
            print(f"{picture.stem:8} {lm.caption(str(picture))}")


@DECK.code(
    "apple", "W9", "Token embedding: I bought an apple and an orange / an apple watch", more="orrery lab contextual"
)
def apple() -> None:
    """One word, two senses: the table has one vector, the encoder two.

    The vector of apple as it stands in the table is the same in both sentences. Behind a small encoder that has read
    about fruit and devices it takes the side of its sentence.
    """
    import torch

    from orrery_course.course.reader import ids, reader

    model, _ = reader()
    fruit, watch = "i bought an apple and an orange .", "i bought an apple watch ."
    with torch.no_grad():
        table = [model.embed.token(ids(text))[0, 3] for text in (fruit, watch)]
        inside = [model.hidden(ids(text))[0, 3] for text in (fruit, watch)]
    print(
        f"cosine of the vectors of the table {torch.cosine_similarity(table[0], table[1], dim=0).item():.3f},", end=" "
    )
    print(f"behind the encoder {torch.cosine_similarity(inside[0], inside[1], dim=0).item():.3f}")


@DECK.code("columns", "T1 X5", "Self-Attention; Single-head attention")
def columns() -> None:
    """One token a column: V softmax(KᵀQ / √d), and the same numbers.

    This deck writes tokens as columns, the others as rows. First without matrices, as the slides begin: weights are
    the softmax of products of the words themselves.
    """
    from orrery_course.course.attending import attention, drawn, largest, numbers

    X_DL = drawn(3, 5)
    weights_L = (X_DL.T @ X_DL[:, 3]).softmax(0)
    print("x4' without matrices:", numbers(X_DL @ weights_L))
    W_q, W_k, W_v = (drawn(3, 3, seed=seed) for seed in (1, 2, 3))
    q_CL, k_CL, v_CL = W_q @ X_DL, W_k @ X_DL, W_v @ X_DL
    by_columns_CL = v_CL @ (k_CL.T @ q_CL / 3**0.5).softmax(0)
    by_rows_LC = attention(q_CL.T, k_CL.T, v_CL.T)[0]
    print("by columns and by rows differ by", largest(by_columns_CL.T - by_rows_LC))


@DECK.code(
    "pronoun", "V1", "Self-Attention and Transformers: in encoding the word \"it\"",
    given=("animal", "tired"), more="orrery see MODEL TEXT --output inside.html",
)  # fmt: skip
def pronoun() -> None:
    """From "it" a head looks at the animal, or at the street: the last word decides.

    A small BERT learns for which noun "it" stands, from generated sentences of the slide's form in which each noun may
    stand in both places. The head is chosen on the sentences of the training, and judged on pairs of nouns that were
    not in it: right is a pair whose two sentences, tired and wide, both have their largest weight on the right noun.
    A second head that looks at "tired", as the slide has one, need not be there: the word also comes by way of others.
    """
    from orrery.reports.figures import heat_map
    from orrery_course.course.pronoun import answers, looks, pairs_right, pronouns, taught

    (old, new), shares = pronouns(), []
    for seed in (2, 1, 0):
        model = taught(old, seed)
        seen, weights = looks(model, old), looks(model, new)
        best = max(seen, key=lambda head: pairs_right(seen[head], old))
        shares.append(pairs_right(weights[best], new))
        print(f"seed {seed}: names the right noun of {answers(model, new):.2f} of new pairs;", end=" ")
        print(f"head {best[1]} of {best[0].rpartition('.')[0]} looks at it in {shares[-1]:.2f}")
    print(f"mean of {len(shares)} seeds: {sum(shares) / len(shares):.2f} of {len(new.ids_NL) // 2} pairs")
    rows, columns = weights[best][:2, :-1].tolist(), [new.words[id] for id in new.ids_NL[0, :-1].tolist()]
    for row, last in zip(rows, (new.words[ids[11]] for ids in new.ids_NL[:2].tolist()), strict=True):
        columns[11] = last
        print(", ".join(f"{word} {weight:.2f}" for word, weight in zip(columns, row, strict=True)))
    columns[11] = "tired, wide"
    heat_map(rows, rows=["it: tired", "it: wide"], columns=columns, title="Where it looks", highest=1.0)


@DECK.code(
    "weights", "C1 V5", "Total weights; Organized into 27,938 matrices", given=("175,181,291,520", "27,938"),
    more="orrery plan gpt3-175b",
)  # fmt: skip
def weights() -> None:
    """Every matrix of GPT-3, by the count of the lecture and by that of the model.

    The lecture counts no biases, norms and positions, and the un-embedding apart; the output is one matrix a layer,
    though the slide writes it by heads. Counted as the model has it, the number is smaller, for the embedding is used
    twice.
    """
    from orrery.planning.published.gpt3 import matrices_table

    table = matrices_table()
    for row in table.rows:
        print("  ".join(f"{cell:>15}" for cell in row))
    print(*table.notes, sep="\n")


@DECK.code("library", "T4", "Analogy for Q, K, V: Library system")
def library() -> None:
    """A library that lends a mean of its books.

    The question is a query, summaries are keys, the books are values. A sharp question gets mostly one book, a vague
    one something of each.
    """
    import torch

    from orrery_course.course.attending import attention, numbers

    summaries = {"cooking": (1.0, 0.0, 0.0), "gardens": (0.3, 0.9, 0.0), "engines": (0.0, 0.1, 1.0)}
    keys_SC = torch.tensor(list(summaries.values()), dtype=torch.float64)
    books_SE = torch.eye(3, dtype=torch.float64)
    for name, size in (("vague", 1.0), ("plain", 4.0), ("sharp", 40.0)):
        question_LC = size * torch.tensor([[0.2, 1.0, 0.0]], dtype=torch.float64)
        lent_LE = attention(question_LC, keys_SC, books_SE)[0]
        print(
            f"{name} question about gardens: {dict(zip(summaries, numbers(lent_LE[0])[1:-1].split(', '), strict=True))}"
        )


@DECK.code("positions", "V3 T10", "Positional encoding: relative positions as linear transform", given=("100000",),
           more="orrery quiz sinusoids --answers")  # fmt: skip
def positions() -> None:
    """Hands of clocks: a step ahead turns each by its own angle, wherever one stands.

    P(k + Δ) = M(Δ) P(k) with one matrix for all k, for the base of this deck and that of the others. The picture has
    a row for each place.
    """
    import torch

    from orrery.laws.golden import shifted, sinusoid
    from orrery.reports.figures import signed_map

    for base in (10_000.0, 100_000.0):
        code_LD = sinusoid(base, 16, torch.arange(200))
        apart_LL = torch.cdist(code_LD, code_LD).fill_diagonal_(torch.inf)
        print(f"base {base:.0f}: a shift by one matrix is off by {shifted(base):.0e},", end=" ")
        print(f"largest number {code_LD.abs().max().item():.3f}, nearest two places {apart_LL.min().item():.2f} apart")
    rows = sinusoid(100_000.0, 16, torch.arange(24)).tolist()
    names = [f"{'sin' if i % 2 == 0 else 'cos'} w{i // 2}" for i in range(16)]
    signed_map(rows, rows=[str(k) for k in range(24)], columns=names, title="Positions by channels, base 100,000")


@DECK.code("figure-1", "V2 T12", "Figure 1: The Transformer - model architecture", more="orrery show transformer-base")
def figure_1() -> None:
    """The figure, drawn from the modules that were built.

    A box for each part of a block of a Transformer that is there, with the shapes that a pass through it had. Nothing
    of the picture is drawn by hand.
    """
    import torch

    from orrery.inspection.trace import trace
    from orrery.laws.models import inner, tiny
    from orrery.reports.flow import Box, flow

    model = inner(tiny("transformer"))
    inside = trace(model, torch.tensor([[5, 9, 2, 17]]), torch.tensor([[1, 7, 4]]))
    boxes = []
    for side in ("encoder.", ""):
        for name in ("attention", "cross", "feed_forward"):
            found = [key for key in inside if key.startswith(f"{side}blocks.0.{name}.")]
            lines = [f"{key.rpartition('.')[2]} {' x '.join(map(str, inside[key].shape[1:]))}" for key in found]
            if lines:
                boxes.append(Box(f"{side or 'decoder.'}{name}", lines))
    boxes.append(Box("head", [f"logits {' x '.join(map(str, inside.logits.shape[1:]))}"]))
    for box in boxes:
        print(f"{box.title:22} {', '.join(box.lines)}")
    flow(boxes, [(0, 1), (1, 3), (2, 3), (3, 4), (4, 5)], title="A block of the encoder and of the decoder")


@DECK.code(
    "encoder-decoders", "F6 P2", "Encoder-Decoder Transformer: T5, BART", more="orrery quiz text-to-text --answers"
)
def encoder_decoders() -> None:
    """T5 and BART learn to mend a text that was broken.

    T5 hides spans and asks for them by name; BART covers, deletes and turns, and asks for the whole text. What is
    read and what is learned, of one sentence.
    """
    import torch

    from orrery.families import load_family
    from orrery.objectives.denoising import Denoising
    from orrery.objectives.span_corruption import SpanCorruption
    from orrery.text.special import framed_tokenizer
    from orrery.text.train import train_tokenizer

    text = "The cat sat on the mat . A dog ran after the cat . It did rain ."
    words = train_tokenizer("word", [text])
    objectives = {"t5": SpanCorruption(probability=0.3), "bart": Denoising()}
    tokenizers = {"t5": framed_tokenizer(words, "t5"), "bart": framed_tokenizer(words, "roberta")}
    for family, objective in objectives.items():
        tokenizer, rules = tokenizers[family], load_family(family)
        ends = {"vocab_size": tokenizer.size, "decoder_start_token_id": tokenizer.special("end")}
        objective.bind(rules.spec({**rules.TINY, **ends}), tokenizer)
        batch = objective.prepare({"ids": torch.tensor([tokenizer.encode(text)])}, torch.Generator().manual_seed(1))
        for name in ("source", "targets"):
            shown = " ".join(tokenizer.token(id) for id in batch[name][0].tolist() if id >= 0)
            print(f"{family:4} {'reads ' if name == 'source' else 'learns'} {shown}")


@DECK.code("deberta", "F4", "Encoder-only Transformer: DeBERTa")
def deberta() -> None:
    """DeBERTa compares words with words, words with distances and distances with words.

    The scores of a head are the sum of the three, each by its own part; they are taken from a pass and added up.
    """
    import torch

    from orrery.inspection.trace import trace
    from orrery.laws.models import inner, tiny
    from orrery_course.course.attending import largest

    inside = trace(inner(tiny("deberta")), torch.tensor([[3, 14, 15, 9, 2]]))
    part = "blocks.0.attention."
    q_BHLC, k_BHSC = inside[f"{part}q"], inside[f"{part}k"]
    terms = {"content to content": q_BHLC @ k_BHSC.mT}
    terms["content to position"] = inside[f"{part}content_to_position"]
    terms["position to content"] = inside[f"{part}position_to_content"]
    for name, term_BHLS in terms.items():
        print(f"{name:20} mean size {term_BHLS.abs().mean().item():.4f}")
    total_BHLS = sum(terms.values()) / (len(terms) * q_BHLC.shape[-1]) ** 0.5
    print("their sum and the scores differ by", largest(total_BHLS - inside[f"{part}scores"]))


@DECK.code("x-bert", "F5", "Encoder-only Transformer: X-BERT", more="orrery finetune many-labels --train train.jsonl")
def x_bert() -> None:
    """Many labels: first the likely clusters, then the labels in them.

    Labels are cut into clusters by a tree of equal halves, an encoder says which clusters are likely, and a ranker
    chooses among their labels. A label here says which animal comes first, which counting words cannot tell: beside
    it stands a linear classifier a label over all words.
    """
    import json
    from itertools import permutations
    from pathlib import Path
    from tempfile import TemporaryDirectory
    from typing import Any

    import orrery
    from orrery.data.many_labels.features import TfIdf
    from orrery.tasks.xbert.baselines import one_versus_rest

    pairs = list(permutations(["ox", "elk", "hen", "cod", "ant", "bee", "owl"], 2))
    texts: Any = {x: [{"text": f"{a} {x} {b}", "labels": [f"{a} {a}_{b}"]} for a, b in pairs] for x in "stuvwxyz"}
    new, old = texts.pop("s"), [row for each in texts.values() for row in each]
    with TemporaryDirectory() as folder:
        home = Path(folder)
        for name, rows in (("train", old), ("val", new)):
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (home / f"{name}.jsonl").write_text(text, encoding="utf-8")
        done = orrery.finetune(
            "many-labels", None, home / "train.jsonl", val=home / "val.jsonl", output=home / "run",
            quiet=True, recipe={"training": {"steps": 150}, "data": {"cluster": 6, "vectors": "names"}},
        )  # fmt: skip
        ask = orrery.pipeline("many-labels", done.load(device="cpu", say=lambda line: None), top_k=1)
        found = [one[0]["label"] for one in ask([row["text"] for row in new])]
    words, labels = TfIdf.learned([row["text"] for row in old]), [row["labels"][0] for row in new]
    counted, asked = (words.rows(row["text"] for row in rows) for rows in (old, new))
    ranked = one_versus_rest(counted, [[labels.index(row["labels"][0])] for row in old], len(labels), asked, 1)
    right = sum(label == one for label, one in zip(labels, found, strict=True))
    by_words = sum(n == best[0][0] for n, best in enumerate(ranked))
    print(f"{len(labels)} labels; the first answer of X-BERT is right for {right} of {len(new)} new texts,", end=" ")
    print(f"of the classifiers over words for {by_words}")
    print(*(f"{row['text']}: {label}" for row, label in list(zip(new, found, strict=True))[:3]), sep="; ")


@DECK.code("decoders", "F7 F8 F2", "Decoder-only Transformer: GPT-X, PaLM, LLaMA, BLOOM")
def decoders() -> None:
    """PaLM's block is parallel, BLOOM's positions are slopes.

    PaLM has no public weights: it is a preset whose parameters are counted and whose block is held to its formula.
    BLOOM takes a slope for each head times the distance from the scores, as the biases of a pass show.
    """
    from typing import Any

    import torch

    from orrery.inspection.trace import trace
    from orrery.laws.models import tiny
    from orrery.nn.positions.alibi import slopes
    from orrery.planning.parameters import parameters
    from orrery.planning.presets import preset
    from orrery_course.course.attending import largest

    for name in ("palm-540b", "gpt3-175b"):
        spec: Any = preset(name)
        print(f"{name}: {parameters(spec):,} parameters, slots of a block: {', '.join(spec.stack.blocks[0].residuals)}")
    inside = trace(tiny("bloom"), torch.tensor([[3, 14, 15, 9]]))
    q_BHLC, k_BHSC = inside["blocks.0.attention.q"], inside["blocks.0.attention.k"]
    bias_HLS = (inside["blocks.0.attention.scores"] - q_BHLC @ k_BHSC.mT / q_BHLC.shape[-1] ** 0.5)[0]
    heads = len(bias_HLS)
    distance_LS = torch.arange(4)[None] - torch.arange(4)[:, None]
    wanted_HLS = torch.tensor(slopes(heads), dtype=torch.float64)[:, None, None] * distance_LS
    apart_HL = (bias_HLS - wanted_HLS).tril()
    print("slopes:", slopes(heads), "; biases less slope times distance, constant along a row:", end=" ")
    print(largest((apart_HL - apart_HL[..., :1]).tril()))


@DECK.code("shared", "T13", "Different parameters for encoder/decoder; Shared parameters", more="orrery lab prefix")
def shared() -> None:
    """One stack for reading and writing, or two.

    A decoder with a prefix that all may read, and an encoder-decoder of about as many parameters, learn the same task
    for as long.
    """
    import torch

    from orrery.objectives.causal import CausalLanguageModel
    from orrery.objectives.seq2seq import SequenceToSequence
    from orrery.studies.fitting import fit, parameters
    from orrery_course.labs.alignment import ReversedPairs
    from orrery_course.labs.alignment import accuracy as of_two
    from orrery_course.labs.prefix import JoinedPairs, accuracy, encoder_decoder, prefix_decoder

    task = ReversedPairs(words=5, rows=32, shortest=2, longest=3)
    two, one = encoder_decoder(task.vocabulary, 0), prefix_decoder(task.vocabulary, 0)
    batch = task.of_length(3, torch.Generator().manual_seed(1))
    fit(two, SequenceToSequence(), task, 250, 5e-3, 0)
    fit(one, CausalLanguageModel(), JoinedPairs(task), 250, 5e-3, 0)
    print(f"different: {parameters(two):,} parameters, right {of_two(two, batch):.2f}")
    print(f"shared:    {parameters(one):,} parameters, right {accuracy(one, batch):.2f}")


@DECK.code(
    "versus", "R11 C1", "Transformers vs. RNNs; Differences in Attention Mechanism", more="orrery lab complexity"
)
def versus() -> None:
    """What a layer costs: n² d or n d².

    Both are equal where the text has as many words as the model has channels. The table of the paper, and real
    lengths and widths.
    """
    from orrery_course.papers.complexity import crossover_table, layers_table

    for row in layers_table().rows[:3]:
        print(f"{row[0]:40} {row[1]:10} in a row {row[2]:6} longest path {row[3]}")
    for name, n, d, attention, recurrence, _, cheaper in crossover_table().rows:
        print(f"{name:30} n {n:>8}, d {d:>7}: {attention:>22} and {recurrence:>22}, cheaper: {cheaper}")
