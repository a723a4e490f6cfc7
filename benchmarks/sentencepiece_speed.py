"""Our Unigram training and our running of SentencePiece models beside the `sentencepiece` library, in turns.

.venv/bin/python benchmarks/sentencepiece_speed.py [train] [encode] [--sets NAME ...] [--text FILE --held FILE]
    [--rounds 5] [--output FILE]

`train` fits both on the same lines and measures lines that were held back: eltec-novels (20 MB with 8,192 ids; all
54 MB with 32,000), the German side of multi30k (8,000 ids), or a text of your own; one thread each, median seconds,
tokens and nats a word of the best cuts. SentencePiece gets every character (`character_coverage=1`), as ours does.

`encode` runs the published models of tokenizer-reference over botchan.txt and 1 MB of novels, as lines and as one
text, with one thread, and checks that the ids are equal: median MB/s. `plain` is ours without numba.
"""

import io
import json
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest import mock

import sentencepiece
from _record import Record, parsed, parser

from orrery.data.corpora import read_corpus
from orrery.settings import data_folder
from orrery.text import Tokenizer, load_tokenizer
from orrery.text.sentencepiece import codec
from orrery.text.train import train_tokenizer

MODELS = ("test_model", "test_ja_model")


def main() -> None:
    made = parser(__doc__)
    made.add_argument("what", nargs="*", default=[], help="train, encode, or nothing for both")
    made.add_argument("--rounds", type=int, default=1)
    made.add_argument("--sets", nargs="*", choices=SETS)
    made.add_argument("--text", type=Path)
    made.add_argument("--held", type=Path)
    made.add_argument("--vocabulary", type=int, default=8_000, help="ids of a text of your own")
    given = parsed(made, {})
    record = Record(given, ["sentencepiece", "numba"])
    result: dict[str, Any] = {}
    for what in given.what or ("train", "encode"):
        result[what] = encodings(given) if what == "encode" else trainings(given)
    print(json.dumps(result, indent=1))
    record.write(result)


def encodings(given: Any) -> dict[str, Any]:
    """Return the speed of the published models."""
    return {name: encoding(name, given.rounds) for name in MODELS[: 1 if given.small else None]}


def trainings(given: Any) -> dict[str, Any]:
    """Return what training costs and gives, on the sets or on a text of one's own."""
    if given.small:
        lines = [f"a text of {n} lines, of which {n % 7} are like the others" for n in range(300)]
        return {"a made text, 60 ids": training(lines, lines[::10], 60, given.rounds)}
    if given.text:
        texts = map(lines_of, (given.text, given.held))
        return {given.text.name: training(*texts, given.vocabulary, given.rounds)}
    return {name: training(*SETS[name](), given.rounds) for name in given.sets or SETS}


def novels(part: str, most: float) -> list[str]:
    """Return the paragraphs of the first novels, about so many bytes."""
    lines: list[str] = []
    size = 0
    for document in read_corpus(f"eltec-novels{part}"):
        if size < most:
            lines += filter(None, document.text.splitlines())
            size += len(document.text.encode())
    return lines


def captions(split: str) -> list[str]:
    (document,) = read_corpus(data_folder() / f"multi30k-en-de/{split}.de.gz")
    return list(filter(None, document.text.splitlines()))


SETS: dict[str, Callable[[], tuple[list[str], list[str], int]]] = {
    "eltec-novels, 20 MB, 8192 ids": lambda: (novels("", 20e6), novels("/val", 1e9), 8_192),
    "eltec-novels, whole, 32000 ids": lambda: (novels("", 1e9), novels("/val", 1e9), 32_000),
    "multi30k, German, 8000 ids": lambda: (captions("train"), captions("val"), 8_000),
}


def lines_of(file: Path) -> list[str]:
    return list(filter(None, file.read_text(encoding="utf-8").splitlines()))


def training(train: list[str], held: list[str], vocabulary: int, rounds: int) -> dict[str, Any]:
    """Train both in turns, and measure what each makes of the lines held back."""
    trained: dict[str, Any] = {}

    def by_orrery() -> None:
        trained["orrery"] = train_tokenizer("unigram", (line + "\n" for line in train), vocabulary)

    def by_sentencepiece() -> None:
        made = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(train),
            model_writer=made,
            vocab_size=vocabulary,
            model_type="unigram",
            character_coverage=1.0,
            max_sentence_length=1_000_000,
            num_threads=1,
            minloglevel=2,
        )
        trained["sentencepiece"] = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())

    seconds = in_turns({"orrery": by_orrery, "sentencepiece": by_sentencepiece}, rounds)
    words = sum(len(line.split()) for line in held)
    ours, theirs = trained["orrery"], trained["sentencepiece"]
    scores = {
        "orrery": dict(enumerate(score for _, score in ours.definition["model"]["vocab"])),
        "sentencepiece": {id: theirs.get_score(id) for id in range(3, len(theirs))},
    }
    result: dict[str, Any] = {"bytes": sum(len(line.encode()) for line in train), "words held back": words}
    for name, engine in (("orrery", ours), ("sentencepiece", theirs)):
        result[name] = {"seconds": seconds[name], **quality(engine.encode, scores[name], held, words)}
    return result


def quality(ids: Callable[[str], list[int]], scores: dict[int, float], held: list[str], words: int) -> dict[str, float]:
    """Return tokens and nats a word; an unknown character costs ten nats more than the rarest piece."""
    unknown = 0
    worst = min(score for id, score in scores.items() if id != unknown) - 10
    ids_of_text = [id for line in held for id in ids(line)]
    nats = -sum(worst if id == unknown else scores[id] for id in ids_of_text)
    return {"tokens a word": round(len(ids_of_text) / words, 4), "nats a word": round(nats / words, 4)}


def encoding(name: str, rounds: int) -> dict[str, Any]:
    """Return the speed of one model on two texts, as lines and whole."""
    folder = data_folder() / "tokenizer-reference/sentencepiece"
    library = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.model"))
    tokenizer = load_tokenizer(folder / f"{name}.model")
    with mock.patch.object(codec, "HAVE_NUMBA", False):
        plain = load_tokenizer(folder / f"{name}.model")
    texts = {
        "botchan": lines_of(folder / "botchan.txt"),
        "novels": novels("/val", 1e6),
        "reference texts": [text for text in references(name) if text],
    }
    result: dict[str, Any] = {}
    for text, lines in texts.items():
        for form, parts in (("lines", lines), ("whole", ["\n".join(lines)])):
            result[f"{text}, {form}"] = speeds(parts, library, tokenizer, plain, rounds)
    return result


def references(name: str) -> Iterable[str]:
    file = data_folder() / f"tokenizer-reference/parity/sentencepiece_{name}.jsonl"
    return [json.loads(line)["text"] for line in file.read_text(encoding="utf-8").splitlines()]


def speeds(
    parts: list[str],
    library: sentencepiece.SentencePieceProcessor,
    tokenizer: Tokenizer,
    plain: Tokenizer,
    rounds: int,
) -> dict[str, Any]:
    tokenizer.encode("a" * codec.SOON)  # from here on compiled
    ids_by_program: dict[str, list[list[int]]] = {}

    def by(name: str, encode: Callable[[str], list[int]]) -> Callable[[], None]:
        def work() -> None:
            ids_by_program[name] = [encode(part) for part in parts]

        return work

    def without_numba() -> None:
        with mock.patch.object(codec, "HAVE_NUMBA", False):
            by("plain", plain.encode)()

    works = {"sentencepiece": by("sentencepiece", library.encode), "orrery": by("orrery", tokenizer.encode)}
    seconds = in_turns(works, rounds) | in_turns({"plain": without_numba}, 1)
    megabytes = sum(len(part.encode()) for part in parts) / 1e6
    equal = ids_by_program["orrery"] == ids_by_program["sentencepiece"] == ids_by_program["plain"]
    return {"megabytes": round(megabytes, 3), "equal ids": equal} | {
        f"{name}, MB/s": round(megabytes / spent, 2) for name, spent in seconds.items()
    }


def in_turns(works: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Do each work in turns; return median processor seconds, so that neighbours on the machine count little."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds):
        for name in sorted(works, reverse=bool(turn % 2)):
            start = time.process_time()
            works[name]()
            seconds[name].append(time.process_time() - start)
    return {name: round(statistics.median(column), 4) for name, column in seconds.items()}


if __name__ == "__main__":
    main()
