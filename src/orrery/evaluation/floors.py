"""What a general-purpose compressor reaches on a text: a floor without any model of language."""

import lzma

from orrery.errors import DataError

SMALLEST_DICTIONARY = 1 << 16


def compression_floor(content: bytes, primed_with: bytes | None = None) -> float:
    """Return the bits per byte that xz (preset 9, extreme) needs for ``content``.

    Primed, it has seen another text before, as a trained model has: the size of both together less the size
    of the first alone. The dictionary is as long as both, so that nothing seen is forgotten.
    """
    if not content:
        raise DataError("an empty text has no bits per byte", "give it a text that is not empty")
    before = primed_with or b""
    dictionary = max(len(before) + len(content), SMALLEST_DICTIONARY)
    added = _size(before + content, dictionary) - (_size(before, dictionary) if before else 0)
    return 8 * added / len(content)


def _size(content: bytes, dictionary: int) -> int:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": dictionary}]
    return len(lzma.compress(content, format=lzma.FORMAT_RAW, filters=filters))
