"""Control tokens for a tokenizer that was trained without them, and what a family puts around its texts."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

import tokenizers

from orrery.errors import UsageError
from orrery.text import frames
from orrery.text.frames import Rule
from orrery.text.kinds import Frame
from orrery.text.tokenizer import Tokenizer
from orrery.text.train import train_tokenizer

SENTINELS = 100
"""T5's: one for each span that a text may lose."""

TOKENS: Mapping[Frame, Mapping[str, str]] = {
    "bert": {"pad": "[PAD]", "class": "[CLS]", "separator": "[SEP]", "mask": "[MASK]"},
    "roberta": {
        "start": "<s>",
        "end": "</s>",
        "pad": "<pad>",
        "mask": "<mask>",
        "class": "<s>",
        "separator": "</s>",
    },
    "t5": {"pad": "<pad>", "end": "</s>"},
}
"""The control tokens of a family, by their role."""

_RULES: Mapping[Frame, Callable[[frames.Find], Rule | None]] = {
    "bert": frames.of_bert,
    "roberta": frames.of_roberta,
    "t5": lambda find: frames.of_sentencepiece({"tokenizer_class": "T5Tokenizer"}, find),
}


def tokens_of(frame: Frame) -> list[str]:
    """Return the control tokens that a family's texts need, in the order of their ids."""
    sentinels = (f"<extra_id_{number}>" for number in range(SENTINELS if frame == "t5" else 0))
    return list(dict.fromkeys((*TOKENS[frame].values(), *sentinels)))


def framed_tokenizer(tokenizer: Tokenizer, frame: Frame) -> Tokenizer:
    """Return a tokenizer with the control tokens of a family behind its vocabulary, and around texts as the family has.

    ``bert``: ``[CLS] A [SEP] B [SEP]``; ``roberta``: ``<s> A </s></s> B </s>``; ``t5``: ``A </s> B </s>``, and a
    hundred sentinels ``<extra_id_0>``. What is written in a text stays text.

    Raises:
        UsageError: the tokenizer puts tokens around texts already.
    """
    if tokenizer.frame("a", "a").ids != 2 * tokenizer.encode("a"):
        raise UsageError("the tokenizer puts special tokens around texts already", "leave tokenizer.frame out")
    added = _added(tokenizer, tokens_of(frame))
    content = dict(added.definition)
    rule = _RULES[frame](added.id)
    own = content.get("post_processor")
    content["post_processor"] = rule if own is None else {"type": "Sequence", "processors": [own, rule]}
    return tokenizer.defined_by(json.dumps(content, ensure_ascii=False), TOKENS[frame])


def with_control(tokenizer: Tokenizer, tokens: Sequence[str]) -> Tokenizer:
    """Return a tokenizer with control tokens behind its vocabulary, where it has no entry spelt like them."""
    lacking = [token for token in tokens if tokenizer.id(token) is None]
    return _added(tokenizer, lacking) if lacking else tokenizer


def _added(tokenizer: Tokenizer, tokens: Sequence[str]) -> Tokenizer:
    engine = tokenizers.Tokenizer.from_str(json.dumps(tokenizer.definition))
    engine.add_special_tokens([tokenizers.AddedToken(token, special=True, normalized=False) for token in tokens])
    return tokenizer.defined_by(engine.to_str())


def train_framed(
    kind: str,
    texts: Iterable[str],
    vocabulary: int | None,
    frame: Frame | None,
    *,
    lowercase: bool = False,
    control: Sequence[str] = (),
) -> Tokenizer:
    """Train on texts as `train_tokenizer` does, and give the tokenizer a family's control tokens where one is named.

    ``control`` are further ones, such as those of a chat format; ``vocabulary`` counts all of them too.

    Raises:
        DataError: there is no text.
        UsageError: the vocabulary is too small or too large.
    """
    added = len(dict.fromkeys([*([] if frame is None else tokens_of(frame)), *control]))
    if vocabulary is not None and vocabulary <= added:
        what = f"the {added:,} control tokens{'' if frame is None else f' of {frame}'}"
        message = f"a vocabulary of {vocabulary:,} ids has no room beside {what}"
        raise UsageError(message, "give a vocabulary of 4096, for example")
    own = None if vocabulary is None else vocabulary - added
    trained = train_tokenizer(kind, texts, own, lowercase=lowercase)
    return with_control(trained if frame is None else framed_tokenizer(trained, frame), control)
