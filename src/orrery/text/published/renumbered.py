"""SentencePiece models whose families number their pieces otherwise: XLM-R, CamemBERT, mBART, mBART-50 and PEGASUS.

fairseq put four tokens of its own in front of the pieces, and languages and a mask behind them; the files of these
families hold the SentencePiece model as it was, and the classes of their tokenizers know the rest. PEGASUS has the
tokens of its pre-training in front.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orrery.errors import ModelFileError
from orrery.text.frames import Rule, class_of, of_slots

_FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")
_MBART = """
ar-AR cs-CZ de-DE en-XX es-XX et-EE fi-FI fr-XX gu-IN hi-IN it-IT ja-XX kk-KZ ko-KR lt-LT lv-LV my-MM ne-NP nl-XX
ro-RO ru-RU si-LK tr-TR vi-VN zh-CN
"""
_MBART50 = """
af-ZA az-AZ bn-IN fa-IR he-IL hr-HR id-ID ka-GE km-KH mk-MK ml-IN mn-MN mr-IN pl-PL ps-AF pt-XX sv-SE sw-KE ta-IN
te-IN th-TH tl-XX uk-UA ur-PK xh-ZA gl-ES sl-SI
"""
"""The languages of either, which the files spell with a stroke below."""


def _languages(text: str) -> tuple[str, ...]:
    return tuple(text.replace("-", "_").split())


@dataclass(frozen=True)
class Numbering:
    """How a family numbers: tokens before the pieces, those behind, and the frame of a text.

    Attributes:
        before: tokens with the first ids.
        left_out: pieces of the model, the first ones, that get no id behind those.
        behind: tokens with the last ids.
        single: the frame of a text, ``{language}`` for that of the source.
        pair: the frame of two.
    """

    before: tuple[str, ...]
    left_out: int
    behind: tuple[str, ...]
    single: tuple[str, ...]
    pair: tuple[str, ...]


_ROBERTA = (("<s>", "A", "</s>"), ("<s>", "A", "</s>", "</s>", "B", "</s>"))
_LANGUAGE = "{language}"
_ENGLISH = _languages(_MBART)[3]
NUMBERINGS: Mapping[str, Numbering] = {
    "XLMRoberta": Numbering(_FAIRSEQ, 3, ("<mask>",), *_ROBERTA),
    "Camembert": Numbering(("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"), 1, ("<mask>",), *_ROBERTA),
    "MBart": Numbering(
        _FAIRSEQ, 3, (*_languages(_MBART), "<mask>"), ("A", "</s>", _LANGUAGE), ("A", "B", "</s>", _LANGUAGE)
    ),
    "MBart50": Numbering(
        _FAIRSEQ, 3, (*_languages(_MBART + _MBART50), "<mask>"), (_LANGUAGE, "A", "</s>"), (_LANGUAGE, "A", "B", "</s>")
    ),
    "Pegasus": Numbering(
        ("<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{number}>" for number in range(2, 103))),
        2,
        (),
        ("A", "</s>"),
        ("A", "B", "</s>"),
    ),
}
"""By the class of a tokenizer_config.json, without "Tokenizer" or "Fast"."""


def renumbered(made: dict[str, Any], numbering: Numbering, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokenizer.json of a SentencePiece model with a family's own numbers and frame.

    Args:
        made: the tokenizer.json of the model itself.
        numbering: the family's.
        config: what tokenizer_config.json says; ``src_lang`` is the language of the sources.

    Raises:
        ModelFileError: a model without scores, whose pieces these families do not have, an unknown language, or other
            places of the pieces than the family's.
    """
    model = made["model"]
    if model["type"] != "Unigram":
        raise ModelFileError(
            "the SentencePiece model has merges; this family's has scores", "take the file from its origin again"
        )
    moved = len(numbering.before) - numbering.left_out
    if config.get("offset") not in (None, moved):
        raise ModelFileError(
            f"tokenizer_config.json puts the pieces {str(config['offset'])[:20]} places further, not {moved}",
            "put the tokenizer.json of the model into the folder: it holds the numbers",
        )
    best = max(score for _, score in model["vocab"])
    own = [[token, best] for token in numbering.before]
    pieces = model["vocab"][numbering.left_out :]
    vocabulary = [*own, *pieces, *([token, best] for token in numbering.behind)]
    ids = {token: id for id, (token, _) in enumerate(vocabulary)}
    unknown = ids["<unk>"]
    # The model itself, which another key holds, has other numbers: the engine's are these.
    plain = {"type": "Unigram", "unk_id": unknown, "vocab": vocabulary, "byte_fallback": False}
    control = [token for token in (*numbering.before, "<s>", "</s>", *numbering.behind) if token in ids]
    added = [_added(token, ids[token]) for token in sorted(set(control), key=ids.__getitem__)]
    frame = _frame(numbering, config, ids)
    return {**made, "model": plain, "added_tokens": added, "post_processor": frame}


def in_its_language(content: str, config: Mapping[str, Any]) -> str:
    """Return a tokenizer.json whose frame is that of its class: mBART's and NLLB's take the language of ``src_lang``.

    As in transformers, it counts for more than the frame that stands in the file, which may be of an earlier version.

    Raises:
        ModelFileError: the file has no such language.
    """
    behind = config.get("legacy_behaviour") is True
    like = {"MBart": "MBart", "MBart50": "MBart50", "Nllb": "MBart" if behind else "MBart50"}.get(class_of(config))
    if like is None:
        return content
    try:
        definition = json.loads(content)
        ids = {token["content"]: token["id"] for token in definition.get("added_tokens") or []}
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return content  # what is wrong with it is said where it is read
    usual = next((language for language in (_ENGLISH, "eng_Latn") if language in ids), _ENGLISH)
    language = config.get("src_lang") or usual
    if language not in ids:
        raise ModelFileError(
            f"src_lang = {language!r} is no language of tokenizer.json", "name one of its added tokens"
        )
    rule = _frame(NUMBERINGS[like], {"src_lang": language}, ids)
    return json.dumps({**definition, "post_processor": rule}, ensure_ascii=False)


def _added(token: str, id: int) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": token == "<mask>", "rstrip": False, "normalized": False, "special": True}
    return {"id": id, "content": token, **flags}


def _frame(numbering: Numbering, config: Mapping[str, Any], ids: Mapping[str, int]) -> Rule | None:
    """Return the post-processor, with the language of the sources where the family has one."""
    language = config.get("src_lang") or _ENGLISH
    if _LANGUAGE in numbering.single and language not in ids:
        known = [token for token in numbering.behind if token != "<mask>"]
        raise ModelFileError(f"src_lang = {language!r} is no language of this family", f"known: {', '.join(known)}")
    templates = (
        [language if slot == _LANGUAGE else slot for slot in slots] for slots in (numbering.single, numbering.pair)
    )
    single, pair = templates
    return of_slots(single, pair, ids.get)
