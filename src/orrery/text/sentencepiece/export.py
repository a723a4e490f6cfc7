"""A SentencePiece model as a tokenizer.json.

The file is an ordinary one that the engine runs, and close to SentencePiece: ids differ where two segmentations have
one score, which SentencePiece's float32 sums decide; where a rule for normalisation applies inside a grapheme; and
where a user-defined piece of a text would be normalised, which SentencePiece leaves alone. So the model itself stands
in it too, under a key that the engine passes over, and Orrery encodes and decodes by that.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from orrery.errors import ModelFileError
from orrery.text.sentencepiece.charsmap import rules
from orrery.text.sentencepiece.file import (
    BYTE,
    CONTROL,
    NORMAL,
    SPACE,
    UNIGRAM,
    UNKNOWN,
    USER,
    SentencePieceModel,
    VocabularyPiece,
    read,
)

KEY = "sentencepiece"
"""In the "model" of a tokenizer.json: the SentencePiece model in base64."""
NUMBERED = "sentencepiece_numbered"
"""Beside it where the vocabulary is a list with numbers of its own; ``opening``: a text may open with a language."""

HINT = "take the tokenizer from its origin again, or its SentencePiece model"


def definition(content: bytes) -> str:
    """Return the tokenizer.json of a SentencePiece model.

    Raises `ModelFileError` where the file is damaged, contradicts itself, or is of a kind that cannot be run here.
    """
    model = read(content)
    engine = Tokenizer(_unigram(model) if model.kind == UNIGRAM else _bpe(model))
    engine.normalizer = normalizers.Sequence(_normalizers(model))
    cuts = [_apart(model)] if model.kind == UNIGRAM else []
    if model.kind != UNIGRAM and model.ids(USER):
        cuts = [pre_tokenizers.Split(Regex(_any_of(model.ids(USER))), "isolated"), _apart(model)]
    engine.pre_tokenizer = pre_tokenizers.Sequence(cuts) if cuts else None
    engine.decoder = _decoder(model)
    engine.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in model.ids(CONTROL)])
    made = json.loads(engine.to_str())
    made["model"][KEY] = base64.b64encode(content).decode()
    return json.dumps(made, ensure_ascii=False)


def model_of(definition: Mapping[str, Any]) -> SentencePieceModel | None:
    """Return the SentencePiece model that a tokenizer.json was made of, if it was.

    Raises `ModelFileError` where the two contradict each other.
    """
    content = definition["model"].get(KEY)
    if content is None:
        return None
    try:
        model = read(base64.b64decode(content, validate=True))
    except (TypeError, ValueError, binascii.Error) as error:
        raise ModelFileError(f"the SentencePiece model in tokenizer.json is not base64: {error}", HINT) from None
    vocabulary = definition["model"]["vocab"]
    pairs = (
        vocabulary.items() if isinstance(vocabulary, dict) else ((text, id) for id, (text, _) in enumerate(vocabulary))
    )
    added = definition.get("added_tokens") or []
    in_places = {token["id"]: token["content"] for token in added}  # one may stand for a piece in reserve
    if NUMBERED not in definition["model"] and dict(pairs) != {
        in_places.get(id, piece.text): id for id, piece in enumerate(model.pieces)
    }:
        raise ModelFileError("the vocabulary of tokenizer.json is not that of the SentencePiece model in it", HINT)
    for token in added:
        if not _known(token):
            raise ModelFileError(
                f"the added token {token['content']!r} is a word or takes the spaces before it",
                "SentencePiece has no such",
            )
    return model


def plain(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a tokenizer.json without the model in it, where tokens are added to it that no SentencePiece model has."""
    model = definition["model"]
    if NUMBERED in model or all(map(_known, definition.get("added_tokens") or [])):
        return definition
    return {**definition, "model": {key: value for key, value in model.items() if key != KEY}}


def _known(token: Mapping[str, Any]) -> bool:
    """Say whether SentencePiece has such tokens: it has control tokens alone, which leave the spaces before them."""
    return bool(token.get("special")) and not any(token.get(flag) for flag in ("lstrip", "single_word"))


def _unigram(model: SentencePieceModel) -> models.Unigram:
    # The least score sets what an unknown character costs, and only ordinary pieces count for it.
    best = max(piece.score for piece in model.pieces)

    def score(piece: VocabularyPiece) -> float:
        if piece.kind == USER:
            return 0.1 * (len(piece.text.encode()) - 1)
        return piece.score if piece.kind == NORMAL else best

    return models.Unigram([(p.text, score(p)) for p in model.pieces], model.unknown, bool(model.ids(BYTE)))


def _bpe(model: SentencePieceModel) -> models.BPE:
    """Merge whatever two pieces join to a third, best score first: the merges themselves are not in the file."""
    normal = model.ids(NORMAL)
    merges = [
        (left, right)
        for text in sorted(normal, key=lambda text: -model.pieces[normal[text]].score)
        for left, right in ((text[:place], text[place:]) for place in range(1, len(text)))
        if left in normal and right in normal
    ]
    return models.BPE(
        {piece.text: id for id, piece in enumerate(model.pieces)},
        merges,
        unk_token=model.pieces[model.unknown].text,
        fuse_unk=True,
        byte_fallback=bool(model.ids(BYTE)),
        # A user-defined piece is no merge of others: it is cut out and taken whole.
        ignore_merges=bool(model.ids(USER)),
    )


def _normalizers(model: SentencePieceModel) -> list[normalizers.Normalizer]:
    """Return SentencePiece's order: the rules, superfluous spaces, a space before the text, spaces made visible."""
    # Read here too, so that the engine is given no damaged rules.
    steps: list[normalizers.Normalizer] = (
        [normalizers.Precompiled(model.charsmap)] if model.charsmap and rules(model.charsmap) else []
    )
    if model.squeezed:
        steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Replace(Regex(r"\A | \z"), "")]
    if model.prefixed:
        steps += [normalizers.Prepend(" ")]
    return [*steps, normalizers.Replace(" ", SPACE)]


def _apart(model: SentencePieceModel) -> pre_tokenizers.PreTokenizer:
    """Cut texts that spell a control, byte or unknown piece, which the engine would match."""
    normal = model.ids(NORMAL)
    hidden = model.ids(UNKNOWN, CONTROL, BYTE)
    return pre_tokenizers.Split(Regex("|".join(_cut(text, normal) for text in hidden)), "merged_with_previous")


def _cut(text: str, normal: Mapping[str, int]) -> str:
    """Return the pattern of a text up to a known character: a cut between unknown ones would count them twice."""
    places = range(1, len(text))
    place = next((place for place in places if text[place - 1] in normal or text[place] in normal), 1)
    return f"{re.escape(text[:place])}(?={re.escape(text[place:])})"


def _any_of(texts: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))


def _decoder(model: SentencePieceModel) -> decoders.Decoder:
    unknown = model.pieces[model.unknown].text
    steps = [decoders.Replace(unknown, model.unknown_surface), decoders.ByteFallback(), decoders.Replace(SPACE, " ")]
    return decoders.Sequence([*steps, decoders.Fuse(), *([decoders.Strip(" ", 1, 0)] if model.prefixed else [])])
