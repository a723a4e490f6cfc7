"""Texts whose label says which of two concepts comes first: word order and synonyms matter, and labels are many."""

from collections.abc import Iterator
from random import Random

from orrery.data.generated import GeneratedSet, register

PAIRS, KEYS, CONCEPTS = 200, 50, 15
"""Ordered pairs of concepts, of which there are 210, and keys in each: 10,000 labels."""
SYNONYMS, SPELLINGS, FILLERS = 5, 3, 60
HELD_BACK = 4_000
_SEED = 20
_STARTS, _VOWELS, _ENDS = "bdfgklmnprstvz", "aeiou", "bdgklmnprstz"


@register
class ConceptOrders(GeneratedSet):
    """10,000 labels such as ``zem zem_tol kip``: the first concept, the first with the second, the key."""

    kind = "concept_orders"
    what = "made texts and which of two concepts comes first in each, with a key word: 10,000 labels"
    made_from = "random draws with a fixed seed"
    how = (
        "a text names two of 15 concepts, each by one of five synonyms, and a key in one of three spellings, with "
        "random words before, between and behind; equal words in another order have another label; `train` has 1 to 7 "
        "texts a label, `val` 4,000 of labels drawn evenly"
    )
    columns = ("text", "label")
    text, label = "text", "label"

    def records(self, part: str) -> Iterator[dict[str, str]]:
        """Yield the rows of a part."""
        made = words()
        concepts = [made[start : start + SYNONYMS] for start in range(0, CONCEPTS * SYNONYMS, SYNONYMS)]
        made = made[CONCEPTS * SYNONYMS :]
        keys = [made[start : start + SPELLINGS] for start in range(0, KEYS * SPELLINGS, SPELLINGS)]
        fillers = made[KEYS * SPELLINGS :][:FILLERS]
        pairs = [(one, other) for one in concepts for other in concepts if one is not other][:PAIRS]
        labels = [(*pair, key) for pair in pairs for key in keys]
        rng = Random(f"{_SEED} {part}")
        if part == "val":
            drawn = [rng.choice(labels) for _ in range(HELD_BACK)]
        else:
            drawn = [label for label in labels for _ in range(rng.randint(1, 7))]
            rng.shuffle(drawn)
        for first, second, key in drawn:
            parts = [rng.choice(first), rng.choice(second)]
            parts.insert(rng.randrange(3), rng.choice(key))
            text = rng.choices(fillers, k=rng.randint(1, 2))
            for word in parts:
                text += [word, *rng.choices(fillers, k=rng.randint(1, 2))]
            yield {"text": " ".join(text), "label": f"{first[0]} {first[0]}_{second[0]} {key[0]}"}


def words() -> list[str]:
    """Return different made words of one syllable or two, in a fixed random order."""
    syllables = [start + vowel + end for start in _STARTS for vowel in _VOWELS for end in _ENDS]
    Random(_SEED).shuffle(syllables)
    return syllables
