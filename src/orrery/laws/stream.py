"""The law of the stream: the streamed pieces joined are the full text, for all byte splits."""

from collections.abc import Iterator

from orrery.laws.evidence import Evidence, exactly_equal
from orrery.text.streaming import StreamDecoder
from orrery.text.tokenizer import Tokenizer
from orrery.text.train import train_tokenizer

TEXTS = (
    "The orrery turns.\n\tIts gears are plain to see.",
    "naïve café, Größe, ångström",
    "日本語とにほんご 中文 한국어",
    "flags 🇩🇪🇫🇷, families 👩‍👩‍👧, math ∑∫√, accents e\u0301",
    "\x00\x7f\u200b\ufeff",
)


def check() -> Iterator[Evidence]:
    """Stream texts of many scripts through tokenizers that cut inside characters."""
    for kind, vocabulary in (("byte_bpe", 300), ("character", None)):
        tokenizer = train_tokenizer(kind, TEXTS if kind == "character" else TEXTS[:1], vocabulary)
        encoded = [tokenizer.encode(text) for text in TEXTS]
        differing = sum(streamed(tokenizer, ids) != text for ids, text in zip(encoded, TEXTS, strict=True))
        yield exactly_equal(f"{kind}: texts whose streamed pieces differ", "stream", "", differing)
        cuts = [ids[:end] for ids in encoded for end in range(len(ids) + 1)]
        differing = sum(streamed(tokenizer, ids) != tokenizer.decode(ids) for ids in cuts)
        yield exactly_equal(f"{kind}: beginnings of texts, cut anywhere, that differ", "stream", "", differing)


def streamed(tokenizer: Tokenizer, ids: list[int]) -> str:
    """Return the pieces joined."""
    decoder = StreamDecoder(tokenizer)
    return "".join([*map(decoder.push, ids), decoder.finish()])
