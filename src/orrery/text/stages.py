"""What happens to a text before it is cut into tokens: normalisation, then words."""

import json

import tokenizers

from orrery.errors import UsageError
from orrery.text.tokenizer import Tokenizer, refuse_surrogates


class Stages:
    """The first two steps of a tokenizer, each on its own."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Refuse, with `UsageError`, a tokenizer that takes added words out of a text before these steps."""
        added = [token["content"] for token in tokenizer.definition.get("added_tokens", []) if not token.get("special")]
        if added:
            raise UsageError(
                f"this tokenizer takes {len(added)} added words out of a text first, {added[0]!r} among them",
                "its steps cannot be taken one at a time: use encode()",
            )
        self._engine = _engine(tokenizer)

    def normalise(self, text: str) -> str:
        """Return the text as the tokenizer sees it (lower case, NFKC, ...)."""
        refuse_surrogates(text)
        return text if self._engine.normalizer is None else self._engine.normalizer.normalize_str(text)

    def words(self, text: str) -> list[str]:
        """Return the pieces of the normalised text that no token crosses, in the vocabulary's spelling."""
        normal = self.normalise(text)
        rule = self._engine.pre_tokenizer
        return [normal] * bool(normal) if rule is None else [word for word, _ in rule.pre_tokenize_str(normal)]


def surfaces(tokenizer: Tokenizer, text: str) -> list[tuple[int, str]]:
    """Return each id with the part of ``text`` it stands for: none for what the tokenizer itself put in front."""
    refuse_surrogates(text)
    found = _engine(tokenizer).encode(text, add_special_tokens=False)
    starts = [start for start, _ in found.offsets]
    ends = [min(end, after) for (_, end), after in zip(found.offsets, [*starts, len(text)][1:], strict=True)]
    return [(id, text[start:end]) for id, start, end in zip(found.ids, starts, ends, strict=True)]


def _engine(tokenizer: Tokenizer) -> tokenizers.Tokenizer:
    engine = tokenizers.Tokenizer.from_str(json.dumps(tokenizer.definition))
    engine.encode_special_tokens = True
    engine.no_padding()
    engine.no_truncation()
    return engine
