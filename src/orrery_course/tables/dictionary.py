r"""A bilingual dictionary from line-aligned texts, and the words it puts where a word model wrote unknown (WDict).

Papers: Brown et al. 1993, section 4.1 (IBM model 1); Jean et al. 2015, section 3.3 (replacing unknown words).

t(f|e) says how probable target word f is as the translation of source word e. Each round gives every f of a pair
to the words e beside it in proportion to t(f|e), and counts again:

    c(f|e) = \sum_{pairs} t(f|e) / \sum_{e' in source} t(f|e'),    t(f|e) = c(f|e) / \sum_{f'} c(f'|e)

Differs from the paper: a word counts once a sentence, and there is no empty source word.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from orrery.errors import DataError

Table = Mapping[tuple[str, str], float]
"""t(target | source) for each (source, target) that stood in one pair of sentences."""

UNKNOWN = "UNK"
ROUNDS = 5


def learn(pairs: Iterable[tuple[Sequence[str], Sequence[str]]], rounds: int = ROUNDS) -> dict[tuple[str, str], float]:
    """Return t(target | source) after so many rounds from a uniform start; sentences are lists of words.

    Raises:
        DataError: no pair has words on both sides.
    """
    sources: dict[str, int] = {}
    targets: dict[str, int] = {}
    blocks: list[np.ndarray] = []
    slots = 0
    for source, target in pairs:
        left = np.array([sources.setdefault(word, len(sources)) for word in dict.fromkeys(source)], dtype=np.int64)
        right = np.array([targets.setdefault(word, len(targets)) for word in dict.fromkeys(target)], dtype=np.int64)
        if left.size and right.size:
            # One row a link: source word, target word, and the place in the corpus that the target word has.
            place = np.repeat(np.arange(slots, slots + right.size), left.size)
            blocks.append(np.stack([np.tile(left, right.size), np.repeat(right, left.size), place]))
            slots += right.size
    if not blocks:
        raise DataError("the parallel corpus has no pair with words on both sides", "give two line-aligned texts")
    source_ids, target_ids, places = np.concatenate(blocks, axis=1)
    seen, kind = np.unique(source_ids * len(targets) + target_ids, return_inverse=True)
    probabilities = np.ones(len(seen))
    for _ in range(rounds):
        beside = np.bincount(places, weights=probabilities[kind], minlength=slots)
        counts = np.bincount(kind, weights=probabilities[kind] / beside[places])
        probabilities = counts / np.bincount(seen // len(targets), weights=counts)[seen // len(targets)]
    left_words, right_words = list(sources), list(targets)
    cells = zip(*divmod(seen, len(targets)), probabilities, strict=True)
    return {(left_words[s], right_words[t]): float(p) for s, t, p in cells}


def back_off(table: Table) -> dict[str, str]:
    """Return the most probable translation of each source word; of equals the first in code point order."""
    best: dict[str, tuple[float, str]] = {}
    for (source, target), probability in table.items():
        candidate = (-probability, target)
        best[source] = min(best.get(source, candidate), candidate)
    return {source: target for source, (_, target) in best.items()}


def align(source: Sequence[str], target: Sequence[str], table: Table) -> list[int]:
    """Return for each target word the place of its most probable source word.

    A target word that never stood beside any of them goes to the source word nearest to its own relative place
    that no other target word has taken, or, where all are taken, nearest of all.
    """
    scores = [[table.get((other, word), 0.0) for other in source] for word in target]
    best = [max(range(len(source)), key=row.__getitem__) if any(row) else None for row in scores]
    free = [place for place in range(len(source)) if place not in best] or range(len(source))

    def nearest(place: int) -> int:
        return min(free, key=lambda other: abs(other / len(source) - place / len(target)))

    return [nearest(place) if place_found is None else place_found for place, place_found in enumerate(best)]


def hide(words: Iterable[str], shortlist: Iterable[str]) -> list[str]:
    """Return what a model of whole words can write: ``UNK`` for every word outside its shortlist."""
    known = frozenset(shortlist)
    return [word if word in known else UNKNOWN for word in words]


def restore(
    output: Sequence[str], source: Sequence[str], places: Sequence[int], dictionary: Mapping[str, str]
) -> list[str]:
    """Put for each ``UNK`` the translation of the source word it is aligned to, or that word itself."""
    return [
        dictionary.get(source[place], source[place]) if word == UNKNOWN else word
        for word, place in zip(output, places, strict=True)
    ]
