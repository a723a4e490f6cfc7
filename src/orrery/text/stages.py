"""What happens to a text before it is cut into tokens: normalisation, then words."""

import json
from typing import Any

import tokenizers

from orrery.errors import UsageError
from orrery.text.engine import panics_told
from orrery.text.tokenizer import Tokenizer


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
        self._tokenizer = tokenizer
        self._rule = _rule(tokenizer)

    def normalise(self, text: str) -> str:
        """Return the text as the tokenizer sees it (lower case, NFKC, ...)."""
        return self._tokenizer.normalise(text)

    def words(self, text: str) -> list[str]:
        """Return the pieces of the normalised text that no token crosses, in the vocabulary's spelling."""
        normal = self.normalise(text)
        if self._rule is None:
            return [normal] * bool(normal)
        with panics_told():
            return [word for word, _ in self._rule.pre_tokenize_str(normal)]


def _rule(tokenizer: Tokenizer) -> Any:
    """Return what cuts a text into words, without the vocabulary, which takes the engine long to read."""
    alone = {"version": "1.0", "model": {"type": "WordLevel", "vocab": {}, "unk_token": ""}}
    rule = json.dumps({**alone, "pre_tokenizer": tokenizer.definition.get("pre_tokenizer")})
    return tokenizers.Tokenizer.from_str(rule).pre_tokenizer


def surfaces(tokenizer: Tokenizer, text: str) -> list[tuple[int, str]]:
    """Return each id with the part of ``text`` it stands for: none for what the tokenizer itself put in front."""
    spans = tokenizer.spans(text)
    ends = [
        min(end, after) for (_, _, end), after in zip(spans, [*(span[1] for span in spans), len(text)][1:], strict=True)
    ]
    return [(id, text[start:end]) for (id, start, _), end in zip(spans, ends, strict=True)]
