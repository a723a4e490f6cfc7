"""Deck S4, CUHK IERG5050, its beginning: language models, and words as vectors."""

from orrery_course.course._item import Deck

DECK = Deck(
    "S4",
    "CUHK IERG5050, Transformers part I",
    "From words as symbols to words as vectors, recurrences and what is hard for them, and the Transformer by its "
    "parts and its three architectures.",
    "library",
    "Ask about engines, with a question of other numbers; and let two summaries be alike.",
)


@DECK.code("cloze", "P10", "NLP & Language Modeling: I was eating __", given=("an apple", "a banana", "popcorns"))
def cloze() -> None:
    """What fits into the gap, by the probability of the whole text.

    A small model that has read where people eat what. Candidates of several words are compared by their exact
    probability; with the text behind the gap another place wins.
    """
    from orrery_course.course.speaking import eater

    lm = eater()
    eaten, places = ("an apple", "a banana", "popcorns"), ("house", "mansion", "movie theater")
    for text, candidates in (("I was in a house . I was eating __ .", eaten), ("I was in a __ .", places)):
        print(text)
        for one in lm.cloze(text, candidates, both_sides=False):
            print(f"  {one.candidate:14} {one.log_probability:.2f} nats")
    text = "I was in a __ . I was eating popcorns ."
    print(text)
    for one in lm.cloze(text, places, both_sides=True):
        print(f"  {one.candidate:14} {one.score:.2f} nats")


@DECK.code("tasks", "P6", "NLP tasks: translation, question answering, recommendation, completion")
def tasks() -> None:
    """One way to every task: a model, labelled rows, a head of its own.

    The tasks that can be fine-tuned, by name; and one of them, tagging, from a file of words and labels to entities
    and their F1. Labels belong to words, whatever pieces the tokenizer cuts them into.
    """
    import json
    from itertools import product
    from pathlib import Path
    from tempfile import TemporaryDirectory

    import orrery
    from orrery.tasks._task import learned
    from orrery_course.course.stages import sentiment

    print("tasks:", ", ".join(learned()))
    with TemporaryDirectory() as folder:
        home = Path(folder)
        base = orrery.train(sentiment(home), home / "base", quiet=True)
        rows = [
            {"words": [who, "are", word, what], "tags": ["B-animal", "O", "B-quality", "O"]}
            for who, word, what in product(("Cats", "Dogs", "Birds"), ("warm", "cruel", "dull"), ("pets", "animals"))
        ]
        (home / "tags.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows * 6), encoding="utf-8")
        done = orrery.finetune(
            "tagging", base.folder, home / "tags.jsonl", output=home / "tags", quiet=True,
            recipe={"training": {"steps": 80, "precision": "float32", "device": "cpu"}},
        )  # fmt: skip
        print(done.findings[0].lines()[0])
        tag = orrery.pipeline("ner", done.load(device="cpu", say=lambda line: None))
        print([(entity["entity"], entity["word"]) for entity in tag("Dogs are cruel pets")])


DECK.command(
    "retrieval", "W8 W1", "Problem with Words as Discrete Symbols", "Seattle motel, Seattle hotel",
    "By one-hot vectors every document is equally relevant; by short vectors, made of the words around each word, the "
    "hotel comes first.",
    "orrery lab retrieval --quick --seeds 0 --output runs/course/retrieval --overwrite",
)  # fmt: skip


@DECK.code("dense", "W1 W7", "Word Vectors (aka Word Embeddings)", given=("0.286", "0.792", "-0.177"))
def dense() -> None:
    """Two dense vectors are alike, two one-hot vectors are not.

    The vectors of the slide: their product and their cosine, and those of two words of a vocabulary.
    """
    import torch

    from orrery.laws.lectures import BANKING, SECOND
    from orrery_course.course.attending import numbers

    first_D, second_D = (torch.tensor(one, dtype=torch.float64) for one in (BANKING, SECOND))
    print("banking", numbers(first_D))
    for name, a_D, b_D in (("dense", first_D, second_D), ("one-hot", *torch.eye(8, dtype=torch.float64)[:2])):
        print(f"{name:7} product {float(a_D @ b_D):.6f}, cosine {float(a_D @ b_D / a_D.norm() / b_D.norm()):.6f}")


@DECK.code("skip-gram", "W3", "Word2vec: Objective Function; Prediction Function")
def skip_gram() -> None:
    """Skip-gram with two vectors a word: P(o | c), and the mean negative log likelihood J.

    J of a sentence by the slide's sums, beside the program's loss; and one number of its gradient by autograd and by
    trying.
    """
    import math

    import torch

    from orrery.models.word2vec.definition import full_softmax
    from orrery_course.course.attending import drawn

    text, window = [0, 1, 2, 0, 3], 2
    v_VD, u_VD = drawn(4, 3).requires_grad_(), drawn(4, 3, seed=1)
    pairs = [(c, text[t + j]) for t, c in enumerate(text) for j in range(-window, window + 1)
             if j and 0 <= t + j < len(text)]  # fmt: skip

    def p(o: int, c: int) -> float:
        powers = [math.exp(sum(a * b for a, b in zip(u, v_VD[c].tolist(), strict=True))) for u in u_VD.tolist()]
        return powers[o] / sum(powers)

    def cost(v_VD: torch.Tensor) -> torch.Tensor:
        return torch.stack([full_softmax(v_VD[c], u_VD, torch.tensor(o)) for c, o in pairs]).sum() / len(text)

    print(f"sum of P(o | c) over all words: {sum(p(o, 0) for o in range(4)):.6f}")
    print(
        f"J by hand {-sum(math.log(p(o, c)) for c, o in pairs) / len(text):.6f}, by the program {cost(v_VD).item():.6f}"
    )
    (gradient_VD,) = torch.autograd.grad(cost(v_VD), v_VD)
    step_VD = torch.zeros(4, 3, dtype=torch.float64)
    step_VD[1, 2] = 1e-6
    slope = (cost(v_VD + step_VD) - cost(v_VD - step_VD)).item() / 2e-6
    print(f"gradient by autograd {gradient_VD[1, 2].item():.6f}, by trying {slope:.6f}")


@DECK.code(
    "negative-sampling", "W4", "Skip-Grams with Negative Sampling (SGNS)", given=("furry", "little", "hiding", "in")
)
def negative_sampling() -> None:
    """Pairs that were seen against pairs that were drawn.

    The pairs of the wampimuk, the objective in both forms of the slide, and the frequencies of drawn words beside
    counts to the power of 3/4. No drawn pair is one that was seen.
    """
    import numpy as np

    from orrery.laws.lectures import OTHERS, WAMPIMUK, paired
    from orrery.models.word2vec.negatives import NoiseTable
    from orrery.models.word2vec.vocabulary import Vocabulary

    seen = paired(WAMPIMUK, "wampimuk", 2)
    vocabulary = Vocabulary.count([WAMPIMUK, OTHERS], min_count=1)
    rng, ids = np.random.default_rng(0), vocabulary.ids()
    noise, avoid = NoiseTable(vocabulary.counts), {ids[word] for word in (*seen, "wampimuk")}
    print("wampimuk with:", ", ".join(seen))
    print("and against: ", ", ".join(vocabulary.words[id] for id in noise.draw(4, rng, avoid)))
    x = rng.normal(size=5)
    forms = [np.log(1 - 1 / (1 + np.exp(-x))), np.log(1 / (1 + np.exp(x)))]
    print(f"log(1 - s(x)) and log s(-x) of the logistic s differ by {np.abs(forms[0] - forms[1]).max():.0e}")
    counts = np.array([100, 10, 1])
    drawn = np.bincount(NoiseTable(counts).draw(20_000, rng), minlength=3) / 20_000
    for count, share, wanted in zip(counts, drawn, counts**0.75 / (counts**0.75).sum(), strict=True):
        print(f"count {count:3}: drawn {share:.3f}, by the power {wanted:.3f}")


@DECK.code("hierarchical", "W5", "What is Word2vec? Hierarchical Softmax")
def hierarchical() -> None:
    """A tree of yes and no instead of a sum over all words.

    The Huffman tree gives frequent words short ways. All probabilities sum to 1, and the lengths of the ways fill
    Kraft's inequality exactly.
    """
    import math

    import numpy as np

    from orrery.models.word2vec.huffman import HuffmanPaths

    words, counts = ["the", "cat", "sat", "on", "mat"], np.array([9, 4, 3, 2, 1])
    paths = HuffmanPaths(counts)
    scores = np.random.default_rng(0).normal(size=len(words) - 1)
    total, ends = 0.0, [0, *paths.ends.tolist()]
    for word, begin, end in zip(words, ends, ends[1:], strict=False):
        way = zip(paths.nodes[begin:end].tolist(), paths.turns[begin:end].tolist(), strict=True)
        p = math.prod(1 / (1 + math.exp(-scores[node] if turn else scores[node])) for node, turn in way)
        total += p
        print(f"{word:4} {end - begin} turns, P = {p:.4f}")
    print(f"sum of P: {total:.6f}; Kraft's sum: {sum(2.0 ** -int(length) for length in paths.lengths):g}")


@DECK.code("preprocessing", "W6", "What is Word2vec? A rich preprocessing pipeline")
def preprocessing() -> None:
    """Windows that vary, frequent words thinned, rare words left out.

    The size of a window is drawn evenly up to the largest; a frequent word is kept with the rate of the formula; and
    words that occur too seldom are no words.
    """
    from collections import Counter

    import numpy as np

    from orrery.models.word2vec.draws import reach, subsample
    from orrery.models.word2vec.vocabulary import Vocabulary, WordCorpus

    sizes = Counter(int(reach(5, np.uint64(7), place)) for place in range(10_000))
    print("windows of five:", ", ".join(f"{size}: {count / 10_000:.3f}" for size, count in sorted(sizes.items())))
    text = [["the"] * 900 + ["cat"] * 90 + ["wampimuk"] * 9 + ["hapax"]] * 10
    vocabulary = Vocabulary.count(text, min_count=20)
    print("words that occur twenty times:", ", ".join(vocabulary.words))
    corpus, rates = WordCorpus.of(text, vocabulary), vocabulary.keep_rates(0.05)
    kept, _ = subsample(corpus.tokens, corpus.starts, rates, np.uint64(3))
    for id, word in enumerate(vocabulary.words):
        share = (kept == id).sum() / vocabulary.counts[id]
        print(f"{word:9} kept {share:.3f}, by the formula {min(1, rates[id]):.3f}")


@DECK.code("embeddings", "W7 V4", "Throw away the classifier code and keep the embeddings; Embedding Space",
           more="orrery neighbours VECTORS cat --map map.svg")  # fmt: skip
def embeddings() -> None:
    """The classifier is thrown away, the embeddings stay.

    Vectors of a small language in which animals, food and places stand in the same places: the nearest words are of
    one kind, pairs of one kind are nearer than others, and a map shows it. They are written as word2vec's text, and
    read again.
    """
    from itertools import combinations
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from orrery.models.word2vec.files import read_text, write_text
    from orrery.reports.figures import scatter
    from orrery_course.course.vectors import KINDS, small_vectors

    vectors = small_vectors()
    for word in ("dog", "bread", "barn"):
        print(f"{word:5}", ", ".join(f"{other} {cosine:.2f}" for other, cosine in vectors.neighbours(word, 3)))
    kind_of = {word: kind for kind, words in KINDS.items() for word in words}
    pairs = [(kind_of[a] == kind_of[b], vectors.similarity(a, b)) for a, b in combinations(kind_of, 2)]
    for same, name in ((True, "one kind"), (False, "two kinds")):
        found = [cosine for alike, cosine in pairs if alike == same]
        print(f"{len(found)} pairs of {name}: mean cosine {sum(found) / len(found):.2f}")
    with TemporaryDirectory() as folder:
        write_text(vectors, Path(folder) / "vectors.txt")
        again = read_text(Path(folder) / "vectors.txt")
    print("written and read again:", bool(abs(again.matrix - vectors.matrix).max() < 1e-4))
    places = dict(zip(kind_of, vectors.map2d(kind_of).tolist(), strict=True))
    groups = {kind: {word: tuple(places[word]) for word in words} for kind, words in KINDS.items()}
    scatter(groups, title="Words by the company they keep", x_label="first direction", y_label="second")
