import json
import resource
import time

import pytest
import tokenizers

from orrery.text import Tokenizer, chunks
from orrery.text.train import train_tokenizer

WORDS = "the quick brown fox 12345 jumps, over it's lazy dogs' (tails)  and\n\truns   "


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer("byte_bpe", [WORDS * 3, "a" * 1_000_000], 400)


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def gpt2_like():
    """Old files leave use_regex away."""
    engine = tokenizers.Tokenizer(tokenizers.models.BPE())
    engine.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, show_progress=False)
    engine.train_from_iterator([WORDS * 3], trainer)
    definition = json.loads(engine.to_str())
    del definition["pre_tokenizer"]["use_regex"]
    return Tokenizer(json.dumps(definition))


@pytest.mark.parametrize("kind", ["byte_bpe", "character", "gpt2"])
def test_cutting_changes_no_id(kind, monkeypatch):
    tokenizer = gpt2_like() if kind == "gpt2" else train_tokenizer(kind, [WORDS * 3], 400)
    assert chunks.cuttable(tokenizer.definition)
    texts = [
        WORDS * 40,
        "  \n\n  " + WORDS * 9,
        "no-place-to-cut" * 30,
        "",
        "don't  stop\u00a0now \u3000 x" * 50,
    ]
    whole = [tokenizer.encode(text) for text in texts]
    monkeypatch.setattr(chunks, "CHUNK", 7)
    assert [tokenizer.encode(text) for text in texts] == whole
    assert all("".join(chunks.cut(text)) == text for text in texts)


def processor_seconds(work):
    """Seconds of all threads, so that neighbours on the machine do not count; the least of three."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


@pytest.mark.alone
@pytest.mark.parametrize("unit", [WORDS.replace("\n", " "), "a"], ids=["words in one line", "one letter"])
def test_long_texts_take_linear_time_and_little_memory(tokenizer, unit):
    """Ten times the text takes about ten times as long; the seconds themselves are benchmarks/text.py's."""
    short, long = ((unit * (size // len(unit) + 1))[:size] for size in (500_000, 5_000_000))
    first = processor_seconds(lambda: tokenizer.encode(short))
    before = peak_megabytes()
    assert processor_seconds(lambda: tokenizer.encode(long)) < 25 * first + 0.1
    assert peak_megabytes() - before < 200
    assert tokenizer.decode_bytes(tokenizer.encode(long)) == long.encode()
