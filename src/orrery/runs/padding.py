"""The padding that a decoder's classifier is saved with: by its id, transformers finds the end of a row."""

from collections.abc import Mapping
from typing import Any

from orrery.text.tokenizer import Tokenizer

KEY = "pad_token_id"
_ROLES = ("pad", "unknown", "end")


def padding(config: Mapping[str, Any], tokenizer: Tokenizer) -> int | None:
    """Return the token that pads rows: one that ends no text, where there is such a one.

    The configuration's own comes first, then the tokenizer's padding and its unknown token, which many models without a
    padding are padded with. Where nothing but the end token is left it is taken, and the head skips it wherever it
    stands, as the reference does.
    """
    named = config.get("eos_token_id")
    ends = set(named if isinstance(named, list) else [named])
    ids = {role: tokenizer.special(role) for role in _ROLES if role in tokenizer.roles}
    ends |= {ids.get("end")}
    candidates = [config.get(KEY), *ids.values()]
    known = [id for id in candidates if isinstance(id, int) and 0 <= id < tokenizer.size]
    return next((id for id in known if id not in ends), known[-1] if known else None)


def with_padding(config: Mapping[str, Any], tokenizer: Tokenizer) -> tuple[dict[str, Any], Tokenizer]:
    """Return a configuration and a tokenizer that name the same padding."""
    id = padding(config, tokenizer)
    named = tokenizer if id is None else tokenizer.with_role("pad", tokenizer.token(id))
    return {**config, KEY: id}, named
