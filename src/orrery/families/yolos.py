"""YOLOS (Fang et al. 2021): you only look at one sequence, a ViT that finds the things in a picture.

Peculiar to it: learned tokens at the end of the row, each of which answers with the class of one thing and its box, by
networks of three layers; the last class says that there is nothing. Positions are added before the first block and,
in most models, after every block but the last, and both tables are interpolated to the size of each picture.

The heads are ``classes`` (labels, and behind them "nothing") and ``boxes`` (centre and size in shares of the picture:
x, y, width, height). The keys of the loss (costs and coefficients) change no answer.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.checkpoints.layouts import Layered, Reshaped
from orrery.checkpoints.rules import Rule, rename
from orrery.errors import ModelFileError
from orrery.families import _heads, _vit
from orrery.families._config import Config
from orrery.families._keys import items, plain, size
from orrery.models.encoder import Encoder
from orrery.nn.block import Block
from orrery.nn.elementwise import Activation, Projection
from orrery.nn.heads import LastTokensHead, Pooler, TokenHead
from orrery.nn.patches import AppendedTokens, PatchEmbedding
from orrery.nn.positions.between import PositionsBetween
from orrery.nn.residual import Chain, Residual
from orrery.nn.spec import ModuleSpec

ARCHITECTURE, BARE = "YolosForObjectDetection", "YolosModel"
DEFAULTS: Mapping[str, Any] = {
    **_vit.BODY,
    "image_size": items([512, 864]),
    "num_detection_tokens": size(100),
    "use_mid_position_embeddings": True,
    **_heads.DEFAULTS,
}
TINY: Mapping[str, Any] = {**_vit.TINY, "image_size": [12, 16], "num_detection_tokens": 5}
NOTHING = "nothing"
"""What the last class is called where the file names the others."""
_IGNORED = ("auxiliary_loss", "*_cost", "*_coefficient")
_TABLE = "stack.blocks.{}.positions.branch.table.weight"


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("yolos", config, DEFAULTS, ignored=_IGNORED)
    embed = PatchEmbedding.Spec(
        image=_sides(c),
        patch=(c["patch_size"], c["patch_size"]),
        channels=c["num_channels"],
        last=AppendedTokens.Spec(tokens=c["num_detection_tokens"]),
    )
    stack = _vit.stack(c, embed)
    if c["use_mid_position_embeddings"]:
        between = Residual.Spec(branch=PositionsBetween.Spec(grid=embed.grid))
        block = Block.Spec(residuals={**_vit.residuals(c), "positions": between})
        stack = replace(stack, blocks=(*(block,) * (len(stack.blocks) - 1), stack.blocks[-1]))
    return Encoder.Spec(width=c["hidden_size"], context=embed.tokens, embed=embed, stack=stack, heads=_answers(c))


def _sides(c: Config) -> tuple[int, int]:
    """Return the rows and columns of the pictures that the positions were trained on.

    Raises:
        ModelFileError: they are not two whole numbers.
    """
    found = tuple(c["image_size"])
    if len(found) != 2 or not all(type(side) is int and side > 0 for side in found):
        raise ModelFileError(f"{c.family}: image_size = {str(found)[:60]}", "give rows and columns: [512, 864]")
    return found[0], found[1]


def _answers(c: Config) -> Mapping[str, ModuleSpec]:
    """Return the heads: three layers with relu between them, on the detection tokens alone."""
    width, tokens, labels = c["hidden_size"], c["num_detection_tokens"], _heads.named(c)
    relu = Activation.Spec(activation="relu")
    layers = Chain.Spec(parts=(Projection.Spec(width=width), relu, Projection.Spec(width=width), relu))
    names = (*labels["names"], NOTHING) if labels["names"] else ()
    classes = TokenHead.Spec(labels=labels["labels"] + 1, names=names, transform=layers)
    boxes = TokenHead.Spec(labels=4, transform=layers)
    known: Mapping[str, Mapping[str, ModuleSpec]] = {
        ARCHITECTURE: {
            "classes": LastTokensHead.Spec(tokens=tokens, head=classes),
            "boxes": LastTokensHead.Spec(tokens=tokens, head=boxes, after=Activation.Spec(activation="sigmoid")),
        },
        BARE: {"pooled": Pooler.Spec(transform=_heads.transform(width, "tanh"))},
    }
    return _vit.chosen(c, ARCHITECTURE, known)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; a bare model's names begin without ``vit``."""
    base, c = _vit.base(config, BARE, "vit."), {**plain(DEFAULTS), **config}
    tables = tuple(_TABLE.format(depth) for depth in range(c["num_hidden_layers"] - 1))
    between = (Rule(f"{base}encoder.mid_position_embeddings", tables, Layered()),)
    places = ((0, "transform.0.linear"), (1, "transform.2.linear"), (2, "labels"))
    return (
        *_vit.rules(base, ""),
        Rule(f"{base}embeddings.detection_tokens", ("embed.last.learned.weight",), Reshaped(1)),
        *(between if tables and c["use_mid_position_embeddings"] else ()),
        *(
            rename(f"{theirs}.layers.{number}.{end}", f"heads.{ours}.head.{place}.{end}")
            for theirs, ours in (("class_labels_classifier", "classes"), ("bbox_predictor", "boxes"))
            for number, place in places
            for end in _vit.ENDS
        ),
    )


def LEGACY_NAMES(config: Mapping[str, Any]) -> Mapping[str, str | None]:  # noqa: N802 - the name of a family's names
    """Return what is left: a model of one layer has a table for no place between blocks."""
    single = {**plain(DEFAULTS), **config}["num_hidden_layers"] == 1
    return {r"^(vit\.)?encoder\.mid_position_embeddings$": None} if single else {}
