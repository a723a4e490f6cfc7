"""English words cut to their stems, so that "connected" and "connections" count as one word.

Paper: Porter 1980, "An algorithm for suffix stripping". Differs from it as the widely used Python library NLTK does, so
that ROUGE with stems is comparable: a few irregular words, short words in -ies and -ied, words of two letters, -y only
behind a consonant, and three more endings (bli, fulli, logi).
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

_IRREGULAR = {
    **{word: word for word in ("sky", "news", "howe", "proceed", "exceed", "succeed", "inning", "outing", "canning")},
    **{"skies": "sky", "dying": "die", "lying": "lie", "tying": "tie"},
    **{"innings": "inning", "outings": "outing", "cannings": "canning"},
}
_STEP_2 = {
    **{"ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al"},
    **{"entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al"},
    **{"iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble"},
    **{"fulli": "ful"},
}
_STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate"),
    *("iti", "ous", "ive", "ize"),
)

Rule = tuple[str, str, Callable[[str], bool]]
"""An ending, what stands in its place, and whether the stem before it allows that."""


@lru_cache(maxsize=100_000)
def porter_stem(word: str) -> str:
    """Return the stem of an English word in small letters."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    for step in (_plural, _past, _final_y, _double_suffix, _single_suffix, _long_suffix, _final_e):
        word = step(word)
    return word


def _is_consonant(word: str, place: int) -> bool:
    """A y is a consonant at the beginning and behind a vowel."""
    if word[place] == "y":
        return place == 0 or not _is_consonant(word, place - 1)
    return word[place] not in "aeiou"


def _measure(stem: str) -> int:
    """Return m of [C](VC)^m[V]: how often a consonant follows a vowel."""
    kinds = [_is_consonant(stem, place) for place in range(len(stem))]
    return sum(after and not before for before, after in pairwise(kinds))


def _has_vowel(stem: str) -> bool:
    return not all(_is_consonant(stem, place) for place in range(len(stem)))


def _is_positive(stem: str) -> bool:
    return _measure(stem) > 0


def _ends_short(word: str) -> bool:
    """Say whether it ends consonant, vowel, consonant other than w, x, y; or is a vowel and a consonant."""
    kinds = [_is_consonant(word, place) for place in range(len(word))][-3:]
    return (kinds == [True, False, True] and word[-1] not in "wxy") or (len(word) == 2 and kinds == [False, True])


def _replaced(word: str, rules: Sequence[Rule]) -> str:
    """Apply the first rule whose ending the word has; where its stem does not allow it, none."""
    for ending, other, allowed in rules:
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            return stem + other if allowed(stem) else word
    return word


def _plural(word: str) -> str:
    if len(word) == 4 and word.endswith("ies"):
        return word[:-1]
    always = lambda stem: True  # noqa: E731
    return _replaced(word, [(end, new, always) for end, new in (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", ""))])


def _past(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _is_positive(word[:-3]) else word
    ending = next((end for end in ("ed", "ing") if word.endswith(end) and _has_vowel(word.removesuffix(end))), None)
    if ending is None:
        return word
    stem = word.removesuffix(ending)
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if len(stem) > 1 and stem[-1] == stem[-2] and _is_consonant(stem, len(stem) - 1):
        return stem if stem[-1] in "lsz" else stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _ends_short(stem) else stem


def _final_y(word: str) -> str:
    return _replaced(word, [("y", "i", lambda stem: len(stem) > 1 and _is_consonant(stem, len(stem) - 1))])


def _double_suffix(word: str) -> str:
    if word.endswith("alli") and _is_positive(word.removesuffix("alli")):
        return _double_suffix(word[:-2])
    logical: Rule = ("logi", "log", lambda stem: _is_positive(f"{stem}l"))
    return _replaced(word, [*((end, new, _is_positive) for end, new in _STEP_2.items()), logical])


def _single_suffix(word: str) -> str:
    return _replaced(word, [(end, new, _is_positive) for end, new in _STEP_3.items()])


def _long_suffix(word: str) -> str:
    def allowed(ending: str) -> Callable[[str], bool]:
        return lambda stem: _measure(stem) > 1 and (ending != "ion" or stem[-1] in "st")

    return _replaced(word, [(end, "", allowed(end)) for end in _STEP_4])


def _final_e(word: str) -> str:
    if word.endswith("e"):
        stem = word[:-1]
        if _measure(stem) > 1 or (_measure(stem) == 1 and not _ends_short(stem)):
            word = stem
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
