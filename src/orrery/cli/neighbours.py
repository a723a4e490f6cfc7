"""``orrery neighbours``: what is near a word, in word vectors or in the table a model reads its tokens from."""

import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from orrery.cli.numbers import COUNT
from orrery.cli.places import MODEL
from orrery.cli.tables import print_table
from orrery.errors import DataError, UsageError

if TYPE_CHECKING:
    from orrery.models.word2vec.concordance import Occurrence
    from orrery.models.word2vec.vectors import Vectors


def neighbours(
    vectors: Annotated[str, MODEL],
    /,
    *words: str,
    n: Annotated[int, COUNT] = 10,
    similarity: tuple[str, str] | None = None,
    analogy: tuple[str, str, str] | None = None,
    map: Path | None = None,
    concordance: str | None = None,
    evaluate: bool = False,
    overwrite: bool = False,
) -> None:
    """Print the nearest words of each word, by the cosine of their vectors.

    With a model, the vectors are the rows of the table it reads its tokens from, in the vocabulary's own spelling.

    Args:
        vectors: A word2vec file, text or binary, or a run of word vectors; or a model: a run, a checkpoint, a Hugging
            Face folder.
        words: The words.
        n: How many of each: nearest words, answers, places.
        similarity: Print the cosine of two words.
        analogy: A B C: print what is to C as B is to A.
        map: Write an SVG map of the words and their nearest.
        concordance: Print places of the words in a text: a file, a folder or a named set.
        evaluate: Print right answers of Google's analogies and the rank correlation with WordSim-353.
        overwrite: Replace the file of --map.
    """
    from orrery.checkpoints.outputs import OutputFile
    from orrery.exchange.reading.word_vectors import read_word_vectors

    if not words and (map or concordance or not (similarity or analogy or evaluate)):
        raise UsageError("no word is given", "orrery neighbours VECTORS WORD ...; see also --analogy, --evaluate")
    picture = OutputFile.shown("svg", map, inputs=[vectors, concordance], overwrite=overwrite) if map else None
    word_vectors = read_word_vectors(vectors, lambda line: print(line, file=sys.stderr))
    if similarity:
        one, other = (spelling(word_vectors, word) for word in similarity)
        print(f"{one} {other}  {word_vectors.similarity(one, other):.4f}")
    if analogy:
        a, b, c = (spelling(word_vectors, word) for word in analogy)
        print_table((f"{a} : {b} = {c} :", "cosine"), _rows(word_vectors.analogy(a, b, c, n)))
    if evaluate:
        print_measures(word_vectors)
    known = [spelling(word_vectors, word) for word in words]
    if picture:
        picture.write(draw_map(word_vectors, known, n))
        print(picture.given)
    if concordance:
        print_places(concordance, words, n)
    if not (map or concordance):
        for word in known:
            print_table((word, "cosine"), _rows(word_vectors.neighbours(word, n)))


def spelling(vectors: "Vectors", word: str) -> str:
    """Return how the vectors spell a word: as it is, or with a tokenizer's mark of the space before it.

    Raises:
        DataError: it has no vector.
    """
    from difflib import get_close_matches

    for mark in ("", "\u0120", "\u2581"):
        if mark + word in vectors:
            return mark + word
    close = get_close_matches(word, vectors.words[:50_000], 3, 0.75)
    hint = f"close to it: {', '.join(close)}" if close else "it was too rare, or is spelt otherwise (case counts)"
    raise DataError(f"{word!r} has no vector", hint)


def print_measures(vectors: "Vectors") -> None:
    """Print both measures of word vectors, section by section, and how much of each could not be asked."""
    from orrery.evaluation.benchmarks.word_vectors import measure
    from orrery.settings import data_folder

    measures = measure(vectors, data_folder())
    rows = [
        (part.section, f"{part.right / part.asked:.4f}" if part.asked else "-", f"{part.right:,} of {part.asked:,}",
         f"{part.skipped:,}")
        for part in measures.analogies
    ]  # fmt: skip
    answerable, skipped = (sum(getattr(part, name) for part in measures.analogies) for name in ("asked", "skipped"))
    right = sum(part.right for part in measures.analogies)
    rows.append(("all analogies", f"{measures.accuracy:.4f}", f"{right:,} of {answerable:,}", f"{skipped:,}"))
    rows.append(
        ("WordSim-353 (Spearman)", f"{measures.similarity:.4f}", f"{measures.pairs:,} pairs", f"{measures.skipped:,}")
    )
    print_table(("measure", "value", "of", "skipped"), rows)


def draw_map(vectors: "Vectors", words: Sequence[str], n: int) -> str:
    """Return the words, each with its nearest in one hue, on the plane of their largest variance, as SVG."""
    from orrery.reports.figures import scatter

    groups: dict[str, list[str]] = {}
    placed: set[str] = set()
    for word in words:
        near = [word, *(other for other, _ in vectors.neighbours(word, n))]
        groups[word] = [other for other in near if other not in placed]
        placed.update(near)
    names = [word for group in groups.values() for word in group]
    places = dict(zip(names, vectors.map2d(names), strict=True))
    points = {name: {word: (float(places[word][0]), float(places[word][1])) for word in group}
              for name, group in groups.items()}  # fmt: skip
    title = f"{', '.join(words)}: the nearest words"
    return scatter(points, title=title, x_label="first principal component", y_label="second")


def print_places(source: str, words: Sequence[str], n: int) -> None:
    """Print up to ``n`` places of each word in a text, the words below one another.

    Raises:
        DataError: the text cannot be read.
    """
    from orrery.cli.progress import watched
    from orrery.data.corpora import read_corpus
    from orrery.models.word2vec.concordance import concordance
    from orrery.models.word2vec.sentences import CutText

    for word in words:
        # A word in small letters is looked for in any case, as the words with vectors were.
        texts = CutText(lambda: (document.text for document in watched(read_corpus(source))), "paragraphs",
                        lowercase=word == word.lower())  # fmt: skip
        _print_concordance(islice(concordance(texts, word), n), word, source)


def _print_concordance(places: "Iterable[Occurrence]", word: str, source: str) -> None:
    rows = [(" ".join(place.before), place.word, " ".join(place.after)) for place in places]
    if not rows:
        print(f"{word!r} does not stand in {source}", file=sys.stderr)
        return
    width = max(len(before) for before, _, _ in rows)
    for before, match, after in rows:
        print(f"{before:>{width}}  {match}  {after}")


def _rows(neighbours: list[tuple[str, float]]) -> list[tuple[str, str]]:
    return [(word, f"{cosine:.4f}") for word, cosine in neighbours]
