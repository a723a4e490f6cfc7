"""Deck S3: ShanghaiTech CS182, Transformer language models: how large, how they are built, fed, trained and asked."""

from orrery_course.course._item import Deck

DECK = Deck(
    "S3",
    "ShanghaiTech CS182, Transformer language models",
    "The sizes of large models, a language model by recurrence and by attention, batches, tokens, ways to write, the "
    "cache, and what comes before and after a training.",
    "swap",
    "Let x1 and x3 change places instead: which line changes? And why may x4 not move: what is made of it?",
)


@DECK.code("llms", "F11 V5", "How large are LLMs?", more="orrery quiz memory --answers")
def llms() -> None:
    """The table of large models, with what follows from it.

    Tokens of training for each parameter, and the memory of the weights in 16 bits. Chinchilla's rule is about twenty
    tokens a parameter; what its makers have not said stays open.
    """
    from orrery.planning.data_table import PUBLISHED

    for model in PUBLISHED:
        ratio = model.tokens_per_parameter
        size = (
            f"{model.parameters / 1e9:,.1f} billion, {2 * model.parameters / 1e9:,.0f} GB" if model.parameters else "?"
        )
        print(f"{model.name:15} {model.year} {size:26} {f'{ratio:.1f} tokens a parameter' if ratio else '?'}")


DECK.command(
    "chatgpt", "P8 V6", "What is ChatGPT?", "A dialogue agent is a language model that was fine-tuned",
    "The question with its computed answer: the same architecture, other data. The training itself is `orrery course "
    "S0 rlhf`.",
    "orrery quiz chatgpt --answers",
)  # fmt: skip


@DECK.code("gpts", "F2 C1", "GPT: Generative Pre-trained Transformer", given=("117M", "1542M", "175000M"),
           slips="the largest GPT-2 has more parameters than are printed.")  # fmt: skip
def gpts() -> None:
    """Three GPTs, counted to the last parameter.

    The table of the slide beside the numbers of the architectures: where a printed size is off by more than half a
    percent, that is said.
    """
    from orrery_course.papers.model_sizes import gpt_table

    table = gpt_table()
    for row in table.rows:
        print(f"{row[0]:13} {row[1]:>3} layers, {row[2]:>7} states, printed {row[5]:8} counted {row[6]:>16} {row[7]}")


@DECK.code(
    "gpt3-sizes", "F2 C1", "GPT-3: sizes and architectures", given=("24 x 128 = 2048", "40 x 128 = 5140"),
    slips="the heads of two rows do not make up the width; both counts are printed.", more="orrery plan --tables",
)  # fmt: skip
def gpt3_sizes() -> None:
    """Eight sizes of GPT-3, of which two rows do not fit themselves.

    Parameters are counted on presets of each size, tied, with biases, norms and positions.
    """
    from orrery.planning.published.gpt3 import sizes_table

    table = sizes_table()
    for row in table.rows:
        print(f"{row[0]:12} printed {row[1]:>6}, counted {row[8]:>15}, {row[9]}")
    print(*table.notes, sep="\n")


@DECK.code(
    "compute", "C1 V5", "Why does efficiency matter? Case study: GPT-3", given=("50 petaflop/s-days",),
    slips="fifty belongs to the model of 3 billion parameters and to RoBERTa-Large, and not to 175 billion.",
    more="orrery plan gpt3-175b --tokens 300e9",
)  # fmt: skip
def compute() -> None:
    """What a training costs: six operations a parameter and token.

    6 N D in petaflop/s-days for the numbers of the slide, and Figure 2.2 of the paper drawn again.
    """
    from orrery.planning.training_compute import PETAFLOP_DAY
    from orrery_course.papers.gpt3_compute import case_study_table, compute_chart

    print(f"a petaflop/s-day: {PETAFLOP_DAY:.3g} operations")
    for name, flops, days in case_study_table().rows:
        print(f"{days:>8} petaflop/s-days, {flops} operations: {name}")
    compute_chart()


@DECK.code("rnn-lm", "R4", "RNN Language Model")
def rnn_lm() -> None:
    """A language model that keeps one vector of fixed length, and one that looks back.

    Both learn the same text by the same objective, and are judged alike: nats a character. The recurrent one carries
    a state of one size from character to character; the Transformer keeps something of each. Before its training
    either guesses: its loss is the logarithm of the number of characters.
    """
    from math import log

    from orrery.data.batches.token_windows import CropBatches
    from orrery.models.initialise import initialise
    from orrery.objectives.causal import CausalLanguageModel
    from orrery.studies.fitting import build, fit, parameters
    from orrery.text.train import train_tokenizer

    text = "the cat sat on the mat . the dog sat on the rug . the cat saw the dog . the dog saw the cat . " * 4
    tokenizer = train_tokenizer("character", [text])
    crops, steps = CropBatches(tokenizer.encode(text), 32, 16, 0), iter(range(1000))
    sizes = {"elman_rnn": {"hidden_size": 48, "num_layers": 1}, "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2}}
    for family, config in sizes.items():
        model = build(family, 0, {"vocab_size": tokenizer.size, **config})
        initialise(model, depth=2, seed=0)
        losses = fit(model, CausalLanguageModel(), lambda rng: crops.batch(next(steps)), 150, 1e-2, 0)
        kept = [model.start(crops.batch(0)["ids"][:1, :tokens], tokens)[1].cache.bytes() for tokens in (16, 32)]
        print(f"{family:9} {parameters(model):6,} parameters, loss {losses[0]:.2f} to {losses[-1]:.2f},", end=" ")
        print(f"keeps {kept[0]:,} bytes of half a row and {kept[1]:,} of a whole one")
    print(f"a guess among {tokenizer.size} characters: {log(tokenizer.size):.2f}")


@DECK.code("growth", "T14", "Transformer Language Model: Important!", more="orrery lab quadratic")
def growth() -> None:
    """The graph of a recurrent model grows in a line, that of a Transformer with the square.

    Operations of whole models are counted while they run; from one length to twice of it the attention's part is four
    times as much.
    """
    from orrery_course.labs.quadratic import LAYERS, operations

    for name, layer in LAYERS.items():
        counts = {length: operations(layer, length, 16) for length in (64, 128, 256)}
        ratios = [counts[128] / counts[64], counts[256] / counts[128]]
        shown = ", ".join(f"{length}: {count:,}" for length, count in counts.items())
        print(f"{name:10} {shown}; each time {ratios[0]:.2f}, {ratios[1]:.2f}")


@DECK.code("residual", "T8", "Residual Connections", more="orrery lab depth")
def residual() -> None:
    """Depth harms a plain network, in what it learned from too; residual connections cure that.

    The same small networks with and without the way past a layer, shallow and deep: the share of words that are said
    wrongly, on the rows of the training and on new ones.
    """
    import torch

    from orrery.objectives.causal import CausalLanguageModel
    from orrery.studies.fitting import fit
    from orrery_course.labs.depth import Delayed, Fixed, error, network, skips

    task = Delayed(2, 8, 12, 64)
    seen, new = (task(torch.Generator().manual_seed(seed)) for seed in (0, 1))
    for name, skip in skips().items():
        for depth in (2, 12):
            model = network(depth, skip, 0)
            fit(model, CausalLanguageModel(), Fixed(seen), 100, 5e-3, 0)
            wrong = [error(model, rows) for rows in (seen, new)]
            print(f"{name:9} {depth:2} layers: wrong {wrong[0]:.2f} of the training, {wrong[1]:.2f} of new rows")


@DECK.code("swap", "T1 V6", "In-Class Poll", given=("[0.1, 0.2, 1.2, 0.1]",), more="orrery quiz swap")
def swap() -> None:
    """The poll: x2 and x3 change places.

    Keys and values belong to the words, so each weight moves with its word and the sum is the same. Weights that
    stayed at their places would give another answer, which stands below it.
    """
    import torch

    from orrery.laws.golden import POLL_WEIGHTS, poll
    from orrery_course.course.attending import numbers

    weights, swapped = torch.tensor(POLL_WEIGHTS, dtype=torch.float64), (0, 2, 1, 3)
    print("x4' before:           ", numbers(poll((0, 1, 2, 3), weights)))
    print("after the swap:       ", numbers(poll(swapped, weights[list(swapped)])))
    print("with weights in place:", numbers(poll(swapped, weights)))


DECK.command(
    "softmax-and-mask", "V6 X5", "How is the softmax applied? Which is the correct matrix?",
    "Row-wise, and nothing above the diagonal",
    "Both questions with what each answer would give: the right one equals computing query by query, and hides the "
    "future exactly.",
    "orrery quiz softmax-axis causal-mask --answers",
)  # fmt: skip


@DECK.code("heads-in-matrices", "T2", "Matrix Version of Multi-Headed (Causal) Attention")
def heads_in_matrices() -> None:
    """Three heads at once, with d_k = d_model / h.

    Each head by the slide's formula, joined and multiplied by W_O: what the program's part gives. The size of the
    output is that of the input for every number of heads that divides it, and so is the number of parameters.
    """
    import torch

    from orrery.nn.attention.multihead import MultiHeadAttention
    from orrery_course.course.attending import attention, built, context, drawn, largest

    x_LD = drawn(4, 12)
    part = built(MultiHeadAttention.Spec(heads=3, kv_heads=3, head_width=4), 12)
    heads = []
    for i in range(3):
        own = slice(4 * i, 4 * i + 4)
        q_LC, k_LC, v_LC = (x_LD @ layer.weight[own].T for layer in (part.q, part.k, part.v))
        heads.append(attention(q_LC, k_LC, v_LC, causal=True)[0])
    print(
        "formula and program differ by",
        largest(torch.cat(heads, -1) @ part.out.weight.T - part(x_LD[None], context())[0]),
    )
    for h in (1, 2, 3, 4, 6, 12):
        other = built(MultiHeadAttention.Spec(heads=h, kv_heads=h, head_width=12 // h), 12)
        print(f"{h:2} heads of {12 // h:2}: {sum(p.numel() for p in other.parameters())} parameters")


@DECK.code(
    "padding", "D6", "Batching: Padding and Truncation",
    given=("2 41 17 19 41 13 42 23 6 16", "1 25 39 6 22 45 0 0 0 0", "4 18 43 20 47 27 37 33 0 0"),
)  # fmt: skip
def padding() -> None:
    """Eight sentences become a rectangle of ids, and then vectors.

    Truncated to ten words first, then numbered, then padded. In the other order the vocabulary would have two words
    more, and other ids.
    """
    import torch

    from orrery.data.batches.padding import pad, truncate, word_vocabulary
    from orrery_course.quiz.text import BLOCK, SENTENCES

    rows = truncate(SENTENCES, BLOCK)
    vocabulary = word_vocabulary(rows)
    ids = pad(rows, vocabulary, BLOCK)
    for row in ids:
        print(*row)
    late = word_vocabulary([sentence.split() for sentence in SENTENCES])
    print(f"{len(vocabulary)} words; numbered before truncation {len(late)}")
    table_VD = torch.randn(len(vocabulary), 4, generator=torch.Generator().manual_seed(0))
    print("vectors:", list(table_VD[torch.tensor(ids)].shape))


@DECK.code("batches", "D7", "Batching")
def batches() -> None:
    """Several texts at once: padded, sorted by length, or packed into one row.

    The loss of texts that share a row, each seeing itself alone, is that of the texts on their own; rows of like
    length waste less.
    """
    import torch

    from orrery.data.batches.token_windows import PackedBatches
    from orrery.laws.models import tiny
    from orrery.objectives.causal import CausalLanguageModel

    model, objective = tiny("gpt2"), CausalLanguageModel()
    rng = torch.Generator().manual_seed(0)
    texts = [torch.randint(61, (length,), generator=rng).tolist() for length in (3, 9, 4, 8, 5, 7, 12, 6)]

    def total(batch: dict[str, torch.Tensor]) -> tuple[float, int]:
        term = objective.loss(model, batch)["next_token"]
        return float(term.sum.detach()), int(term.count)

    alone = [total({"ids": torch.tensor([text[:-1]]), "targets": torch.tensor([text[1:]])}) for text in texts]
    packed = PackedBatches(texts, 32, 1, 0)
    joined = [total(packed.batch(step)) for step in range(len(packed.rows))]
    print(f"alone  {len(alone)} rows, loss {sum(one for one, _ in alone):.6f} over {sum(n for _, n in alone)} words")
    print(f"packed {len(joined)} rows, loss {sum(one for one, _ in joined):.6f} over {sum(n for _, n in joined)} words")
    ordered = sorted(texts, key=len)
    for name, rows in (("in any order", texts), ("by length", ordered)):
        width = sum(2 * max(map(len, rows[i : i + 2])) for i in range(0, 8, 2))
        print(f"two rows a batch, {name}: {width} places for {sum(map(len, rows))} words")


@DECK.code("words", "D1", "Word-based Tokenizer", given=("henry", "<OOV>", "transformers"))
def words() -> None:
    """A table of words has holes: a typo is no word of it.

    The vocabulary of the first sentence, and the sentence with two slips of the pen.
    """
    from orrery.text.algorithms.words import of_words
    from orrery.text.tokenizer import Tokenizer
    from orrery_course.quiz.text import HENRY, KNOWN

    tokenizer = Tokenizer(of_words(["<OOV>", *KNOWN.split()]).to_str())
    for text in (KNOWN, HENRY.lower()):
        print([tokenizer.token(id) for id in tokenizer.encode(text)])


@DECK.code(
    "characters", "D2", "Character-based Tokenizer", given=("'h', 'e', 'n', 'r', 'y', 'i', 's', 'g'",),
    slips="its list leaves the spaces out, and without them a text does not come back as it was.",
)  # fmt: skip
def characters() -> None:
    """Characters have no holes, and make long texts; a text in Chinese characters stays short.

    Every text comes back as it was.
    """
    from orrery.text.train import train_tokenizer
    from orrery_course.quiz.text import HENRY

    for text in (HENRY.lower(), "变换器阅读句子"):
        tokenizer = train_tokenizer("character", [text])
        ids = tokenizer.encode(text)
        print(f"{len(ids)} characters:", [tokenizer.token(id) for id in ids][:16], tokenizer.decode(ids) == text)


@DECK.code(
    "subwords", "D3", "Subword-based Tokenizer", given=("'giv', '##in'", "'lec', '##true'", "'transform', '##ers'")
)
def subwords() -> None:
    """Pieces of words: no word is unknown, for every letter is a piece.

    A WordPiece vocabulary with the pieces of the slide and all letters cuts the sentence as the slide does.
    """
    import string

    from tokenizers import Tokenizer, models, pre_tokenizers

    from orrery_course.quiz.text import HENRY

    known = "henry is giv ##in ' a lec ##true on transform ##ers give ##ing lecture"
    letters = [*string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase)]
    pieces = dict.fromkeys(["[UNK]", *known.split(), *letters])
    cut = Tokenizer(models.WordPiece({piece: id for id, piece in enumerate(pieces)}, unk_token="[UNK]"))
    cut.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    print(cut.encode(HENRY.lower()).tokens)
    print(cut.encode("zebra").tokens)


@DECK.code(
    "learned-pieces", "D4", "Byte-Pair-Encoding, WordPiece, SentencePiece", more='orrery tokenizer compare "a text"'
)
def learned_pieces() -> None:
    """Three ways to learn pieces give three vocabularies.

    BPE joins what is frequent, WordPiece what is more frequent than its parts let expect, and Unigram keeps the
    pieces that make the text likeliest. Trained twice, each is the same.
    """
    from orrery.text.train import train_tokenizer

    text = "low lower lowest new newer newest wide wider widest slow slower slowest " * 3 + "hug hugs pug pugs bun buns"
    for kind in ("char_bpe", "wordpiece", "unigram"):
        first, again = (train_tokenizer(kind, [text], 34) for _ in range(2))
        pieces = [first.token(id) for id in first.encode("slowest hugs")]
        print(f"{kind:10} {pieces}, the same again: {first.encode(text) == again.encode(text)}")


@DECK.code("greedy", "X1 X3", "Greedy Decoding for a Language Model", more="orrery tree MODEL PROMPT")
def greedy() -> None:
    """Greedy search takes the nearest edge, and may miss the best way.

    In a model that is a table, the likelier first word does not begin the likeliest sentence. Two beams find it, and
    a search of full width looks at every sentence. Below, -log p of each edge that two beams looked at, and whether
    they kept it.
    """
    from orrery.generation.row import Limits
    from orrery.generation.search import beam_search, exhaustive
    from orrery.generation.tree import root, with_beams
    from orrery_course.course.bigrams import WORDS, sentences

    model, limits = sentences(), Limits(3, 8, end={6})
    for name, width in (("greedy", 1), ("two beams", 2)):
        best = beam_search(model, [[0]], limits, width)[0][0]
        print(f"{name:10} {' '.join(WORDS[id] for id in best.ids):14} log p {best.log_probability:.4f}")
    every = exhaustive(model, [0], limits)
    best = max(every, key=lambda one: one.log_probability)
    print(f"all {len(every)}      {' '.join(WORDS[id] for id in best.ids):14} log p {best.log_probability:.4f}")
    tree = root()
    with_beams(tree, model, [0], limits, 2)
    for node in tree.sorted():
        after = [f"{WORDS[one.token]} {one.cost:.2f} {one.fate}" for one in node.sorted()]
        print(f"  {WORDS[node.token]} {node.cost:.2f}: {', '.join(after)}")


@DECK.code("sampling", "X2 X3", "Ancestral Sampling", more="orrery generate MODEL PROMPT --temperature 0.8 --top-p 0.9")
def sampling() -> None:
    """Sampling edge by edge draws whole sentences by their probability.

    Two thousand sentences beside their exact probabilities, and how far they are apart by chi-square over its degrees
    of freedom: about 1 where the draws are exact. A temperature below 1 prefers what is likely, and top-k leaves out
    the rest.
    """
    from collections import Counter

    import torch

    from orrery.generation.filters import History, Temperature, TopK
    from orrery.generation.samplers import draw
    from orrery_course.course.bigrams import WORDS, sentences

    log_p_VV, count = sentences().log_p_VV, 2000
    generators = [torch.Generator().manual_seed(seed) for seed in range(count)]
    first_B = draw(log_p_VV[0].expand(count, -1), generators)
    second_B = draw(log_p_VV[first_B], generators)
    drawn = Counter(zip(first_B.tolist(), second_B.tolist(), strict=True))
    exact = {pair: (log_p_VV[0, pair[0]] + log_p_VV[pair]).exp().item() for pair in drawn}
    for pair, p in sorted(exact.items(), key=lambda one: -one[1]):
        print(f"{' '.join(WORDS[id] for id in pair):8} drawn {drawn[pair] / count:.3f}, exact {p:.3f}")
    square = sum((drawn[pair] - count * p) ** 2 / (count * p) for pair, p in exact.items())
    print(f"chi-square over degrees of freedom: {square / (len(exact) - 1):.2f}")
    for filtered in (Temperature(0.5), TopK(2)):
        p_V = filtered(log_p_VV[1:2], History.of([[1]], log_p_VV[1:2]))[0].softmax(-1)
        print(f"{filtered}: {', '.join(f'{WORDS[i]} {p:.3f}' for i, p in enumerate(p_V.tolist()) if p > 0)}")


@DECK.code("cache", "X4 C1", "Key-Value Cache", more="orrery quiz cache what-to-keep --answers")
def cache() -> None:
    """Keys and values are kept; queries, scores and weights are not.

    Word by word with a cache, and all at once without: the same logits, and the cache has bytes for keys and values
    alone. For the model of 175 billion parameters that is what stands last.
    """
    import torch

    from orrery.laws.models import tiny
    from orrery.models.decoding_memory import bytes_per_token
    from orrery.planning.presets import preset
    from orrery_course.course.attending import largest

    model, ids_BL = tiny("gpt2"), torch.tensor([[3, 14, 15, 9, 2, 6]])
    logits_BV, session = model.start(ids_BL[:, :1], 6)
    rows = [logits_BV, *(model.step(ids_BL[:, i : i + 1], session)[:, -1] for i in range(1, 6))]
    print("cached and whole differ by", largest(torch.cat(rows) - model.logits(ids_BL)[0]))
    each = bytes_per_token(model.spec, torch.float64)
    print(f"bytes a word, keys and values alone: {each}; the cache has room for {session.cache.bytes() / each:g} words")
    spec = preset("gpt3-175b")
    per_token = bytes_per_token(spec, torch.float16)
    print(f"GPT-3 in half precision: {per_token:,} bytes a token,", end=" ")
    print(f"{per_token * spec.context:,} for its context of {spec.context:,}")


@DECK.code("pretraining", "P5 F12", "Pre-Training vs. Fine-Tuning; vision models")
def pretraining() -> None:
    """Two ways to pre-train, and a new head that learns from few labels.

    Small pictures of digits. Option A learns to draw them again without labels, option B to tell other things apart
    with labels; then all stays as it is, and a new head learns from twenty labelled pictures. Judged on new ones,
    beside a model that has hardly learned.
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    import orrery
    from orrery_course.course.pictures import learning, write_digits

    with TemporaryDirectory() as folder:
        home = Path(folder)
        many, others = (
            write_digits(home / "many", range(10), 40),
            write_digits(home / "others", range(5, 14), 40, seed=3),
        )
        few, new = write_digits(home / "few", range(5), 4, seed=1), write_digits(home / "new", range(5), 20, seed=2)
        before = {
            "hardly pre-trained": learning("classification", others, 5),
            "A: without labels": learning("autoencoder", many, 150),
            "B: with labels": learning("classification", others, 150),
        }
        for name, recipe in before.items():
            begun = orrery.train(recipe, home / name[0], quiet=True)
            tuned = learning("classification", few, 60, begin=begun.folder, val=new)
            records = orrery.train(tuned, home / f"{name[0]}-tuned", quiet=True).records()
            print(f"{name:18} right of new pictures: {records[-1]['val/accuracy']:.2f}")


@DECK.code("corpora", "D9", "Example: Language Models: The Pile, Dolma")
def corpora() -> None:
    """Large corpora are files of lines; bring your own.

    No corpus comes with the program. It reads plain text, JSON lines, CSV and others, packed or not, and gives each a
    fingerprint, by which a training says what it has read.
    """
    import gzip
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from orrery.data.corpora import corpus_fingerprint, read_corpus

    with TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "a.txt").write_text("A first text.\n", encoding="utf-8")
        (home / "b.jsonl").write_text('{"text": "A second one."}\n{"text": "And a third."}\n', encoding="utf-8")
        (home / "c.csv").write_text("text,from\nA fourth.,somebody\n", encoding="utf-8")
        (home / "d.txt.gz").write_bytes(gzip.compress(b"A fifth, packed.\n"))
        for name in ("a.txt", "b.jsonl", "c.csv", "d.txt.gz"):
            documents = list(read_corpus(home / name))
            print(f"{name:9} {len(documents)}: {documents[0].text.strip()!r}, {corpus_fingerprint(documents)[:12]}")


DECK.command(
    "mixture", "D8 F11", "Training data: the mixture", "Weights of a mixture, and how often each corpus is seen",
    "A weight times the tokens of the training over the tokens of the corpus: epochs elapsed. What rounding explains, "
    "and what it does not, stands in each row.",
    "orrery plan --data", given=("0.44", "2.9", "1.9", "0.43", "3.4"),
    slips="WebText2's number is further off than rounding explains, and the printed weights add up to 101 percent.",
)  # fmt: skip


@DECK.code(
    "benchmarks", "P7", "Example: Language Models: MMLU, MBPP", more="orrery evaluate MODEL mmlu subject-questions"
)
def benchmarks() -> None:
    """Questions with choices, and programs that are run.

    Questions of MMLU's shape about six subjects are made here, and asked as the paper does, with examples before
    them; a model is scored by the likelihood of each letter. A program of MBPP's shape is run with its tests, apart
    from all else.
    """
    import json
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from orrery.errors import MachineError
    from orrery.evaluation.benchmarks.choices import evaluate_choices
    from orrery.evaluation.benchmarks.mmlu import chosen, prompted, read_items, subjects_of
    from orrery.evaluation.benchmarks.programs import read_mbpp
    from orrery.sandbox.run import check
    from orrery_course.course.speaking import speaker

    items, examples = read_items("subject-questions", "test"), read_items("subject-questions", "dev")
    print("subjects:", ", ".join(subjects_of(items)))
    few = chosen(items, [], 2)
    questions, _ = prompted(few, examples, 1, lambda text: True)
    print(questions[0].context)
    print(evaluate_choices(speaker(2000), questions, normalisations=("none",)).scores[0])
    row: dict[str, object] = {
        "text": "Write a function to add two numbers.",
        "code": "def add(a, b):\n    return b + a",
    }
    row |= {"test_list": ["assert add(2, 3) == 5"]}
    with TemporaryDirectory() as folder:
        (Path(folder) / "mbpp.jsonl").write_text(json.dumps(row), encoding="utf-8")
        (task,) = read_mbpp(str(Path(folder) / "mbpp.jsonl"))
        for program in ("def add(a, b):\n    return a + b", "def add(a, b):\n    return a - b"):
            try:
                verdict = check(task.exam(program))
                print(program.partition("return ")[2], verdict.outcome, verdict.detail)
            except MachineError as error:
                print(error.message)
