"""Names of a trace that are shown and take no edit."""

from fnmatch import fnmatchcase

SHOWN = {"*.load": "router_logits", "*.stepwise": "gates"}
"""What takes no edit, with what to edit instead."""
OF_MEMORY = {"blocks.*.cross.v": "gates"}
"""The same in a recurrent decoder, whose values are the encoder's states."""
RECURRENT_DECODERS = {"luong", "rnnenc", "rnnsearch"}


def only_shown(family: str, key: str) -> str | None:
    """Return what to edit in the place of a name that is only shown; nothing for any other name."""
    patterns = SHOWN | (OF_MEMORY if family in RECURRENT_DECODERS else {})
    return next((instead for name, instead in patterns.items() if fnmatchcase(key, name)), None)
