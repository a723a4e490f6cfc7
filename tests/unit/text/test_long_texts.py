import json
import random
import subprocess
import sys
import time

import pytest
import tokenizers

from orrery.text import Tokenizer, chunks, load_tokenizer
from orrery.text.kinds import TOKENIZERS
from orrery.text.train import train_tokenizer

MIXED = (
    "aabeéE1 2²  \t\n\r\x0b\x0c\x1c\x1f\x85\u00a0\u1680\u2003\u2028\u200b\u3000\u0301\u0307İΣß東,.'s_-🦊\ufeff\u180e"
)
WORDS = "the quick brown fox 12345 jumps, over it's lazy dogs' (tails)  and\n\truns   "


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer("byte_bpe", [WORDS * 3, "a" * 1_000_000], 400)


# A process of its own: in one that has run other tests, what is freed and not given back hides what is taken, or adds.
MEMORY = """
import sys
from orrery.text import load_tokenizer

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024

tokenizer, unit = load_tokenizer(sys.argv[1]), sys.argv[2]
short, long = ((unit * (size // len(unit) + 1))[:size] for size in (500_000, 5_000_000))
tokenizer.encode(short)
before = peak()
tokenizer.encode(long)
print(peak() - before)
"""


def megabytes_for_a_long_text(tokenizer, unit, folder):
    tokenizer.save(folder / "tokenizer")
    words = [sys.executable, "-c", MEMORY, str(folder / "tokenizer"), unit]
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def gpt2_like():
    """Old files leave use_regex away."""
    engine = tokenizers.Tokenizer(tokenizers.models.BPE())
    engine.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, show_progress=False)
    engine.train_from_iterator([WORDS * 3], trainer)
    definition = json.loads(engine.to_str())
    del definition["pre_tokenizer"]["use_regex"]
    return Tokenizer(json.dumps(definition))


def bert(tmp_path):
    letters = "abcdefghijklmnopqrstuvwxyzABCDE123東京e"
    pieces = dict.fromkeys(["[UNK]", "the", "jump", "dog", *letters, *("##" + letter for letter in letters)])
    (tmp_path / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    return load_tokenizer(tmp_path / "vocab.txt")


def of_kind(kind, tmp_path):
    if kind in ("gpt2", "bert"):
        return gpt2_like() if kind == "gpt2" else bert(tmp_path)
    name, _, lower = kind.partition(" ")
    return train_tokenizer(name, [WORDS * 3], 400, lowercase=bool(lower))


@pytest.mark.parametrize(
    "kind", [*TOKENIZERS.names(), "unigram lower", "character lower", "word lower", "gpt2", "bert"]
)
def test_cutting_changes_no_id(kind, tmp_path, monkeypatch):
    tokenizer = of_kind(kind, tmp_path)
    assert chunks.cuttable(tokenizer.definition)
    texts = [
        WORDS * 40,
        "  \n\n  " + WORDS * 9,
        "no-place-to-cut" * 30,
        "",
        "don't  stop\u00a0now \u3000 x" * 50,
        "İ I\u0307 the\x0bdog\x85the\x1cdog\u2028dog e\u0301 e \u0301 東 京 \ufffd the\x00 dog \u200d ß ς Σ \U0001f98a"
        * 20,
    ]
    texts += ["".join(random.Random(seed).choices(MIXED, k=300)) for seed in range(40)]
    whole = [tokenizer.encode_batch([text])[0] for text in texts]
    monkeypatch.setattr(chunks, "CHUNK", 3)
    assert sum(len([*chunks.cut(text)]) for text in texts) > 20 * len(texts)
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
def test_long_texts_take_linear_time_and_little_memory(tokenizer, unit, tmp_path):
    """Ten times the text takes about ten times as long; the seconds themselves are benchmarks/text.py's."""
    short, long = ((unit * (size // len(unit) + 1))[:size] for size in (500_000, 5_000_000))
    first = processor_seconds(lambda: tokenizer.encode(short))
    assert processor_seconds(lambda: tokenizer.encode(long)) < 25 * first + 0.1
    assert megabytes_for_a_long_text(tokenizer, unit, tmp_path) < 200
    assert tokenizer.decode_bytes(tokenizer.encode(long)) == long.encode()
