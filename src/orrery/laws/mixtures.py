"""Golden numbers of data: GPT-3's mixture (G10), and that the batches of such a mixture keep its weights."""

from collections.abc import Iterator

from orrery.data.batches.mixtures import Shares
from orrery.laws.evidence import Evidence, SlideDiffers, exact, within
from orrery.planning.data_table import BILLION, GPT3, agrees, gpt3_epochs, rounding_explains

EPOCHS = {
    "Common Crawl (filtered)": 0.439,
    "WebText2": 3.474,
    "Books1": 2.0,
    "Books2": 0.436,
    "Wikipedia": 3.0,
}


def check() -> Iterator[Evidence]:
    """Compute the table of GPT-3's mixture, and draw from a mixture with its weights."""
    yield exact("G10 tokens of the mixture, in billions", "", round(sum(row.tokens for row in GPT3) / BILLION), 499)
    yield exact("G10 weights of the mixture, in percent", "", round(sum(row.weight for row in GPT3)), 101)
    for row in GPT3:
        difference = abs(gpt3_epochs(row) - EPOCHS[row.name])
        yield within(f"G10 epochs of {row.name}: {EPOCHS[row.name]:.3f}", "golden", "", difference, 5e-4)
    shares = Shares([row.weight for row in GPT3], seed=1337)
    counts = shares.counts(101_000)
    wrong = sum(int(count != 1000 * row.weight) for count, row in zip(counts, GPT3, strict=True))
    yield exact("G10 corpora whose draws, of 101,000, are not exactly their weight", "", wrong, 0)


def slides() -> Iterator[SlideDiffers]:
    """List the epochs elapsed that the slide gives otherwise."""
    for row in GPT3:
        if not agrees(row):
            why = "weight x 300 billion / tokens, as the slide prints them"
            why += "; their rounding explains it" if rounding_explains(row) else "; more than their rounding explains"
            yield SlideDiffers(f"G10 epochs of {row.name}", str(row.printed), f"{gpt3_epochs(row):.3f}", why)
