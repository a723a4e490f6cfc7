"""ViT-MAE (He et al. 2022): a ViT that learns by painting the hidden patches of pictures.

Peculiar to it: three of four patches are hidden and cost the encoder nothing; a narrow decoder, in which one learned
vector stands for each of them, gives their points. Both sides have fixed sinusoids of row and column in place of
learned positions, which the file carries.

The head ``pixels`` gives the points of every patch. Which are hidden follows from the field ``noise`` of a batch;
without it, nothing is hidden, where the reference draws. The class ``ViTMAEModel``, which hides patches too and paints
nothing, is not built: the encoder is the reader here.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.checkpoints.layouts import Reshaped
from orrery.checkpoints.rules import Rule, rename
from orrery.errors import ModelFileError
from orrery.families import _heads, _vit
from orrery.families._config import Config
from orrery.families._keys import number, positive, size
from orrery.models.encoder import Encoder
from orrery.models.masked_autoencoder import MaskedAutoencoder
from orrery.nn.block import Block
from orrery.nn.elementwise import Projection
from orrery.nn.heads import BehindFirstHead, TokenHead
from orrery.nn.masks import Full
from orrery.nn.positions.grid import PatchGrid
from orrery.nn.positions.sinusoidal_grid import SinusoidalGrid
from orrery.nn.residual import Identity
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "ViTMAEForPreTraining"
DEFAULTS: Mapping[str, Any] = {
    **_vit.BODY,
    "layer_norm_eps": positive(1e-12),
    "decoder_num_attention_heads": size(16),
    "decoder_hidden_size": size(512),
    "decoder_num_hidden_layers": size(8),
    "decoder_intermediate_size": size(2048),
    "mask_ratio": number(0.75),
    "norm_pix_loss": False,
    "architectures": _heads.DEFAULTS["architectures"],
}
TINY: Mapping[str, Any] = {
    **_vit.TINY, "decoder_hidden_size": 16, "decoder_num_hidden_layers": 2, "decoder_num_attention_heads": 2,
    "decoder_intermediate_size": 20, "mask_ratio": 0.5,
}  # fmt: skip


def spec(config: Mapping[str, Any]) -> MaskedAutoencoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("vit_mae", config, DEFAULTS, ignored=("num_labels",))
    _check(c)
    embed = _vit.embed(c)
    stack = replace(
        _vit.stack(c, embed), positions={"sinusoids": SinusoidalGrid.Spec(grid=embed.grid)}, start=Identity.Spec()
    )
    reader = Encoder.Spec(width=c["hidden_size"], context=embed.tokens, embed=embed, stack=stack, heads={})
    pixels = BehindFirstHead.Spec(head=TokenHead.Spec(labels=c["patch_size"] ** 2 * c["num_channels"]))
    heads = _vit.chosen(c, ARCHITECTURE, {ARCHITECTURE: {"pixels": pixels}})
    return MaskedAutoencoder.Spec(
        width=c["decoder_hidden_size"],
        context=embed.tokens,
        reader=reader,
        projection=Projection.Spec(width=c["decoder_hidden_size"]),
        decoder=_decoder(c, embed.grid),
        masked=float(c["mask_ratio"]),
        normed=c["norm_pix_loss"],
        heads=heads,
    )


def _check(c: Config) -> None:
    """Refuse a share that is none, and widths without sine and cosine of row and column.

    Raises:
        ModelFileError: there is such.
    """
    if not 0 <= c["mask_ratio"] <= 1:
        raise ModelFileError(f"{c.family}: mask_ratio = {c['mask_ratio']}", "give a share between 0 and 1")
    for key in ("hidden_size", "decoder_hidden_size"):
        if c[key] % 4:
            raise ModelFileError(
                f"{c.family}: {key} = {c[key]} has no sine and cosine of row and column", "choose a multiple of four"
            )


def _decoder(c: Config, grid: PatchGrid) -> Stack.Spec:
    """Return the stack that paints; for other sizes its positions are resampled as one row, as the reference does."""
    row = PatchGrid(rows=1, columns=grid.rows * grid.columns)
    return Stack.Spec(
        blocks=repeat(Block.Spec(residuals=_vit.residuals(c, "decoder_")), c["decoder_num_hidden_layers"]),
        final=_vit.norm(c),
        positions={"sinusoids": SinusoidalGrid.Spec(grid=grid, resampled=row)},
        masks={"all": Full()},
    )


_AROUND = (
    ("decoder_embed", "projection.linear"),
    ("decoder_norm", "decoder.final"),
    ("decoder_pred", "heads.pixels.head.labels"),
)

WEIGHTS: tuple[Rule, ...] = (
    *_vit.rules("vit.", "reader.", table="sinusoids.table"),
    *_vit.layers("decoder.decoder_encoder.layer", "decoder.blocks"),
    *(rename(f"decoder.{a}.{end}", f"{b}.{end}") for a, b in _AROUND for end in _vit.ENDS),
    Rule("decoder.mask_token", ("restore.hidden.weight",), Reshaped(1)),
    Rule("decoder.decoder_pos_embed", ("decoder.positions.sinusoids.table",), Reshaped(1)),
)
