"""Decoded texts without the blanks before punctuation, where a folder asks for that: ``Hello , world`` loses one."""

from collections.abc import Mapping
from typing import Any

_KEY = "clean_up_tokenization_spaces"
_BPE_KEY = f"{_KEY}_for_bpe_even_though_it_will_corrupt_output"
"""What is asked for a BPE besides: its pieces hold the blanks of the text itself."""
_WITHOUT = (" .", " ?", " !", " ,", " ' ", " n't", " 'm", " 's", " 've", " 're")
"""What loses its blanks, one after the other, as in transformers."""
_GOING_ON = " 'nvr"
"""Every character of these but a last one."""


def tidies(config: Mapping[str, Any], definition: Mapping[str, Any]) -> bool:
    """Return whether a tokenizer_config.json has the blanks taken out for a tokenizer.json; unsaid it has not."""
    return bool(config.get(_KEY)) and (definition["model"].get("type") != "BPE" or bool(config.get(_BPE_KEY)))


def said(tidy: bool, definition: Mapping[str, Any]) -> dict[str, bool]:
    """Return what a tokenizer_config.json says, from which `tidies` reads the same."""
    return {_KEY: tidy} | ({_BPE_KEY: True} if tidy and definition["model"].get("type") == "BPE" else {})


def tidied(text: str) -> str:
    """Return a text without the blanks before punctuation and English endings."""
    for found in _WITHOUT:
        text = text.replace(found, found.replace(" ", ""))
    return text


def certain(text: str) -> int:
    """Return how much of the beginning of a text is tidied alike, whatever follows.

    Only blanks are taken out. So what is taken out across a border begins with a blank before it, behind which nothing
    else stands than characters that go on.
    """
    blank = text.find(" ", len(text.rstrip(_GOING_ON)))
    return len(text) if blank < 0 else blank
