"""Pieces of a SentencePiece model with the numbers of a list beside it: Marian's and M2M-100's vocab.json.

A piece that the list lacks is unknown; a run of characters that no piece spells has a number where the list has it.
Marian's list holds the pieces of both of its models; the source's cuts texts.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from orrery.errors import ModelFileError
from orrery.text.frames import of_slots
from orrery.text.sentencepiece import export
from orrery.text.sentencepiece.file import read

UNKNOWN, END, PAD = "<unk>", "</s>", "<pad>"
LANGUAGES = {
    "m2m100": "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr "
    "ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps "
    "pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu",
    "wmt21": "en ha is ja cs ru zh de",
}
"""The languages of M2M-100 by ``language_codes``, whose tokens stand behind the list in this order."""
_HINT = "take the folder's vocabulary from its origin again"


def marian(content: bytes, numbers: Mapping[str, int], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokenizer.json of Marian: ``A </s>``; a text may open with the language it is put into, ``>>fra<<``.

    Args:
        content: the SentencePiece model of the source.
        numbers: the list.
        config: what tokenizer_config.json says.

    Raises:
        ModelFileError: the two sides have lists of their own, or the list lacks a number.
    """
    if config.get("separate_vocabs"):
        raise ModelFileError(
            "separate_vocabs: source and target have lists of their own, and there is one tokenizer",
            "lm.logits takes the ids that transformers gives",
        )
    return _made(content, numbers, [END, UNKNOWN, PAD], [], ["A", END], opening=True)


def m2m_100(content: bytes, numbers: Mapping[str, int], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokenizer.json of M2M-100: ``__en__ A </s>``, the language being that of ``src_lang``.

    Raises:
        ModelFileError: an unknown set of languages or language, or the list lacks a number.
    """
    codes = LANGUAGES.get(said := config.get("language_codes") or "m2m100", "").split()
    source = config.get("src_lang") or "en"
    if source not in codes:
        known = f"known: {' '.join(codes)}" if codes else f"known sets: {', '.join(LANGUAGES)}"
        raise ModelFileError(f"src_lang = {source!r} is no language of {str(said)[:40]!r}", known)
    behind = [f"__{code}__" for code in codes]
    return _made(content, numbers, ["<s>", PAD, END, UNKNOWN], behind, [f"__{source}__", "A", END], opening=False)


def _made(
    content: bytes,
    numbers: Mapping[str, int],
    control: Sequence[str],
    behind: Sequence[str],
    single: Sequence[str],
    *,
    opening: bool,
) -> dict[str, Any]:
    pieces = sorted(numbers, key=numbers.__getitem__)
    ids = {piece: id for id, piece in enumerate([*pieces, *behind])}
    if any(numbers[piece] != ids[piece] for piece in pieces) or not {UNKNOWN, END} <= numbers.keys():
        raise ModelFileError("vocab.json lacks a number, <unk> or </s>", _HINT)
    made, model = json.loads(export.definition(content)), read(content)
    scores = {piece.text: piece.score for piece in model.pieces}
    least = min(scores.values(), default=0.0)
    vocabulary = [[piece, scores.get(piece, least)] for piece in ids]
    # Another program that reads the file comes close: it takes the pieces of the target for the source's too.
    made["model"] = {
        "type": "Unigram",
        "unk_id": ids[UNKNOWN],
        "vocab": vocabulary,
        "byte_fallback": False,
        export.KEY: made["model"][export.KEY],
        export.NUMBERED: {"opening": opening},
    }
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    special = sorted({ids[token] for token in (*control, *behind) if token in ids})
    names = [*ids]
    made["added_tokens"] = [{"id": id, "content": names[id], **flags, "special": True} for id in special]
    place = single.index("A") + 1
    made["post_processor"] = of_slots(single, [*single[:place], "B", *single[place:]], ids.get)
    return made
