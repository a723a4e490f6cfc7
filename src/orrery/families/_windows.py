"""Reading which layers look back a window only, and how far."""

from collections.abc import Mapping, Sequence

from orrery.errors import ModelFileError
from orrery.families import _decoders, _rotary
from orrery.families._config import Config
from orrery.nn.masks import Causal, Mask, Window
from orrery.nn.positions.rotary import Rotary

FULL, SLIDING = "full_attention", "sliding_attention"
"""How transformers spells the two kinds of layers in ``layer_types``."""

_NAMES = {FULL: "causal", SLIDING: "local"}
"""How a decoder's masks are called here."""


def causal(c: Config, window: int | None) -> Mask:
    """Return the causal mask, bounded by a window where there is one.

    Raises:
        ModelFileError: a window in which not even the token itself stands.
    """
    if window is None:
        return Causal()
    if window < 1:
        raise ModelFileError(f"{c.family}: a window of {window} tokens sees nothing", "use null for no window")
    return Causal() & Window(length=window)


def kinds_of(c: Config, usual: Sequence[str]) -> tuple[str, ...]:
    """Return the kind of every layer: as ``layer_types`` lists them, else the ``usual`` ones.

    Raises:
        ModelFileError: another kind of layer, or another number of layers.
    """
    kinds = c["layer_types"] or usual
    if unknown := sorted(set(kinds) - set(_NAMES)):
        raise ModelFileError(
            f"{c.family}: layer_types has the unknown {', '.join(map(repr, unknown))}", f"known: {', '.join(_NAMES)}"
        )
    if len(kinds) != c["num_hidden_layers"]:
        raise ModelFileError(
            f"{c.family}: layer_types lists {len(kinds)} layers, num_hidden_layers is {c['num_hidden_layers']}",
            "list every layer once",
        )
    return tuple(kinds)


def by_layer(c: Config, usual: Sequence[str], window: int | None) -> tuple[tuple[str, ...], Mapping[str, Mask]]:
    """Return the name of the mask at every depth, and the masks; ``usual`` counts where no ``layer_types`` are listed.

    Raises:
        ModelFileError: another kind of layer, another number of layers, or a window of no length.
    """
    return by_kind(c, kinds_of(c, usual), window)


def by_kind(c: Config, kinds: Sequence[str], window: int | None) -> tuple[tuple[str, ...], Mapping[str, Mask]]:
    """Return the same for layers of these kinds.

    Raises:
        ModelFileError: a window of no length.
    """
    if SLIDING in kinds and window is None:
        raise ModelFileError(f"{c.family}: layer_types has windows, the configuration no length", "set sliding_window")
    rules = {_NAMES[kind]: causal(c, window if kind == SLIDING else None) for kind in dict.fromkeys(kinds)}
    return tuple(_NAMES[kind] for kind in kinds), rules


def positions(c: Config, bases: Mapping[str, float]) -> Mapping[str, Rotary.Spec]:
    """Return a rotary scheme for each kind of layers under the name of its mask; an older file rescales full ones.

    Args:
        c: the configuration; ``rope_parameters`` holds settings by the kind of layers.
        bases: the base of each kind, where its settings name none.

    Raises:
        ModelFileError: settings of no kind, or such that the reference does not look for among those of a kind.
    """
    given = {key: value or {} for key, value in (c["rope_parameters"] or {}).items()}
    if unknown := sorted(set(given) - set(bases)):
        raise ModelFileError(
            f"{c.family}: rope_parameters has the unknown keys {', '.join(unknown)}",
            f"there is one set of settings for {' and one for '.join(bases)}",
        )
    given[FULL] = {**given.get(FULL, {}), **(c.values.get("rope_scaling") or {})}
    for settings in given.values():
        _rotary.check_nested(c.family, settings)
    width, context = _decoders.head_width(c), c["max_position_embeddings"]
    return {
        _NAMES[kind]: _rotary.from_settings(c.family, given.get(kind, {}), base, width, context)
        for kind, base in bases.items()
    }


def from_some_layer_on(c: Config) -> tuple[tuple[str, ...], Mapping[str, Mask]]:
    """Return the same for Qwen 2 and 3, where windows usually stand from layer ``max_window_layers`` on."""
    window, layers = c["sliding_window"] if c["use_sliding_window"] else None, range(c["num_hidden_layers"])
    usual = [FULL if window is None or i < c["max_window_layers"] else SLIDING for i in layers]
    return by_layer(c, usual, window)
