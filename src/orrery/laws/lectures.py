"""Golden numbers of the lectures beside attention and sizes: matrices, compute, word vectors, the cache, tables."""

from collections.abc import Iterator

import numpy as np
import torch

from orrery.laws.evidence import Evidence, SlideDiffers, exact, within
from orrery.models.decoding_memory import bytes_per_token
from orrery.models.word2vec.draws import reach, skip_gram
from orrery.models.word2vec.negatives import NoiseTable
from orrery.models.word2vec.vocabulary import Vocabulary, WordCorpus
from orrery.nn.embeddings import TokenEmbedding
from orrery.planning.data_table import NEURONS, PUBLISHED, SYNAPSES
from orrery.planning.log_line import log_line
from orrery.planning.matrices import LECTURE, matrices_of, total
from orrery.planning.presets import preset
from orrery.planning.training_compute import PETAFLOP_DAY, attention_flops, petaflop_days, training_flops

BILLION = 10**9
BANKING = (0.286, 0.792, -0.177, -0.107, 0.109, -0.542, 0.349, 0.271)
SECOND = (0.413, 0.582, -0.007, 0.247, 0.216, -0.718, 0.147, 0.051)
"""The two dense vectors of deck S4."""
WAMPIMUK = ["Marco", "saw", "a", "furry", "little", "wampimuk", "hiding", "in", "the", "tree"]
OTHERS = ["Australia", "cyber", "the", "1985"]
"""The sentence of deck S4, and the words that it shows as negatives."""
ROWS = (5, 4000, 10_532, 2224)
"""The ids of "Thanks for all the" in deck S1."""
LENGTHS = (256, 1024, 4096)


def check() -> Iterator[Evidence]:
    """Compute what the slides show."""
    spec = preset("gpt3-175b")
    numbers, count = total(matrices_of(spec), LECTURE)
    yield exact("G1 numbers of GPT-3 as deck S4 counts them", "", numbers, 175_181_291_520)
    yield exact("G2 matrices of GPT-3", "", count, 27_938)
    yield exact("G8 operations of a petaflop/s-day", "", PETAFLOP_DAY, 864 * 10**17)
    for parameters, tokens, days in ((175, 300, 3645.8), (175, 500, 6076.4), (2.65, 300, 55.2), (0.355, 2000, 49.3)):
        found = float(petaflop_days(training_flops(parameters * BILLION, tokens * BILLION)))
        name = f"G9 petaflop/s-days of {parameters:g} billion parameters x {tokens:,} billion tokens: {days:,}"
        yield within(name, "golden", "", abs(found - days), 0.05)
    yield from _vectors()
    yield from _pairs()
    yield exact("G18 rows of the table that differ from those of its ids", "", _rows_that_differ(), 0)
    per_token = bytes_per_token(spec, torch.float16)
    yield exact("G19 bytes a token in GPT-3's cache, float16", "", per_token, 4_718_592)
    yield exact("G19 bytes at 2,048 tokens", "", per_token * spec.context, 9_663_676_416)
    yield exact("G21 models of the table", "", len(PUBLISHED), 10)
    yield exact("G21 synapses of a brain for each parameter of GPT-3", "", int(SYNAPSES / (175 * BILLION)), 571)
    yield exact("G21 neurons of a brain, in billions", "", round(NEURONS / BILLION), 85)
    yield from _complexity()


def slides() -> Iterator[SlideDiffers]:
    """List what a slide gives otherwise."""
    why = "50 belongs to models of 3 billion parameters, or to RoBERTa-Large; the slide stands it beside 175 billion"
    yield SlideDiffers("G9 petaflop/s-days of GPT-3 175B", "50", "3,645.8 at 300 billion tokens", why)


def _vectors() -> Iterator[Evidence]:
    first, second = (torch.tensor(one, dtype=torch.float64) for one in (BANKING, SECOND))
    dot = float(first @ second)
    cosine = dot / float(first.norm() * second.norm())
    yield within("G14 product of the two dense vectors: 1.031696", "golden", "", abs(dot - 1.031696), 5e-7)
    yield within("G14 their cosine: 0.857049", "golden", "", abs(cosine - 0.857049), 5e-7)
    motel, hotel = torch.eye(2, dtype=torch.float64)
    yield within("G14 product of two one-hot vectors: 0", "golden", "", float(motel @ hotel), 0)


def paired(words: list[str], word: str, window: int) -> list[str]:
    """Return the words that skip-gram pairs with one of them, of a draw with the whole window."""
    vocabulary = Vocabulary.count([words], min_count=1)
    corpus, centre = WordCorpus.of([words], vocabulary), words.index(word)
    key = next(np.uint64(k) for k in range(100) if reach(window, np.uint64(k), centre) == window)
    drawn = skip_gram(corpus.tokens, corpus.starts, window, key)
    own = vocabulary.ids()[word]
    return [vocabulary.words[i] for i, c in zip(drawn.inputs, drawn.words, strict=True) if c == own]


def _pairs() -> Iterator[Evidence]:
    """Draw the pairs of the sentence with the largest window, and negatives for its centre."""
    vocabulary = Vocabulary.count([WAMPIMUK, OTHERS], min_count=1)
    seen = paired(WAMPIMUK, "wampimuk", 2)
    wrong = len(set(seen) ^ {"furry", "little", "hiding", "in"}) + abs(len(seen) - 4)
    yield exact("G15 pairs of wampimuk, window 2, that differ from the slide's", "", wrong, 0)
    avoid = {vocabulary.ids()[each] for each in (*seen, "wampimuk")}
    noise = NoiseTable(vocabulary.counts)
    taken = sum(len(avoid & set(noise.draw(4, np.random.default_rng(seed), avoid))) for seed in range(20))
    yield exact("G15 negatives of 80 that are observed pairs", "", taken, 0)


@torch.no_grad()
def _rows_that_differ() -> int:
    embedding = TokenEmbedding(max(ROWS) + 1, 8)
    found = embedding(torch.tensor([ROWS]))[0]
    return sum(int(not torch.equal(one, embedding.token.weight[row])) for one, row in zip(found, ROWS, strict=True))


def _complexity() -> Iterator[Evidence]:
    """Fit the exponents of the operations by the length, and find where attention and recurrence cost the same."""
    attention = [length * attention_flops(1, 1, 64, length) for length in LENGTHS]
    recurrence = [training_flops(64 * 64, length) for length in LENGTHS]
    for name, costs, exponent in (("attention", attention, 2), ("recurrence", recurrence, 1)):
        slope = log_line(LENGTHS, costs)[0]
        yield within(f"G22 exponent of {name} in the length: {exponent}", "golden", "", abs(slope - exponent), 1e-9)
    width = 512
    longest = max(n for n in range(1, 2 * width) if n**2 * width <= n * width**2)
    yield exact("G22 longest text of which attention costs no more than recurrence, width 512", "", longest, width)
