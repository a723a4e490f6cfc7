"""ViT with GPT-2 (Vinyals et al. 2015; Li et al. 2021 for TrOCR): one sees an image, the other writes what it shows.

Peculiar to it: two families in one file, each with its own configuration; every block of the decoder has a pre-norm
cross-attention between its self-attention and its feed-forward network, in whose files keys and values are one matrix;
where the widths differ, a projection brings the image's vectors to the decoder's. The ViT's pooler comes along unused.

The reference puts any encoder before any decoder; here they are ViT and GPT-2, and others are refused by name.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.checkpoints.rules import Rule, fused, rename
from orrery.errors import ModelFileError
from orrery.families import _vit, gpt2, vit
from orrery.families._config import Config
from orrery.families._keys import token
from orrery.families._seq2seq import start_token
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.attention.sources import CrossSource
from orrery.nn.block import Block
from orrery.nn.elementwise import Projection
from orrery.nn.heads import LanguageModelHead
from orrery.nn.residual import Identity
from orrery.nn.stack import repeat

MODEL_TYPE = "vision-encoder-decoder"
ARCHITECTURE = "VisionEncoderDecoderModel"
DEFAULTS: Mapping[str, Any] = {
    "encoder": {"model_type": "vit"},
    "decoder": {"model_type": "gpt2", "is_decoder": True, "add_cross_attention": True},
    "decoder_start_token_id": token(None),
    "bos_token_id": token(50256),
}
"""Of the two sides the reference has no default that fits; these are ViT base and GPT-2 small."""

TINY: Mapping[str, Any] = {
    "encoder": {**vit.TINY, "model_type": "vit"},
    "decoder": {
        "vocab_size": 61, "n_positions": 48, "n_embd": 32, "n_layer": 2, "n_head": 4, "model_type": "gpt2",
        "is_decoder": True, "add_cross_attention": True,
    },
    "decoder_start_token_id": 1,
}  # fmt: skip


def spec(config: Mapping[str, Any]) -> EncoderDecoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    # Encoder and decoder have nothing to tie.
    c = Config("vision_encoder_decoder", config, DEFAULTS, ignored=("tie_word_embeddings",))
    seeing = vit.spec({**_part(c, "encoder"), "architectures": ["ViTModel"]})
    writer = gpt2.spec(_part(c, "decoder"))
    block = writer.stack.blocks[0]
    assert isinstance(writer.head, LanguageModelHead.Spec)
    same = seeing.width == writer.width
    return EncoderDecoder.Spec(
        width=writer.width,
        context=writer.context,
        reader=seeing,
        projection=Identity.Spec() if same else Projection.Spec(width=writer.width),
        target=writer.embed,
        decoder=replace(writer.stack, blocks=repeat(_crossed(block), len(writer.stack.blocks))),
        head=writer.head,
        start=start_token(c, "decoder_start_token_id", "bos_token_id"),
    )


def _part(c: Config, key: str) -> dict[str, Any]:
    """Return one side's configuration, without what it must say to be here.

    Raises:
        ModelFileError: it is of another family, or does not look at the image.
    """
    given = dict(c[key])
    for name, value in DEFAULTS[key].items():
        if given.pop(name, None) != value:
            raise ModelFileError(
                f"{c.family}: {key}.{name} is not {value!r}",
                "supported are a ViT as encoder and a GPT-2 with cross-attention as decoder",
            )
    return given


def _crossed(block: Block.Spec) -> Block.Spec:
    """Return GPT-2's block with a cross-attention, whose norm and dropout are those of its self-attention."""
    first = block.residuals["attention"]
    assert isinstance(first.branch, MultiHeadAttention.Spec)
    cross = replace(first, branch=replace(first.branch, source=CrossSource.Spec()))
    return Block.Spec(residuals={"attention": first, "cross": cross, "feed_forward": block.residuals["feed_forward"]})


_BLOCK, _THEIRS = "decoder.blocks.{i}.cross", "decoder.transformer.h.{i}"
_OURS = {"embed.": "target.", "stack.": "decoder."}


def _moved(rule: Rule) -> Rule:
    """Return GPT-2's rule for the decoder's names."""
    ours = rule.ours
    for old, new in _OURS.items():
        ours = tuple(new + name.removeprefix(old) if name.startswith(old) else name for name in ours)
    return Rule(f"decoder.{rule.theirs}", ours, rule.layout)


WEIGHTS: tuple[Rule, ...] = (
    *_vit.rules("encoder.", "reader."),
    *(rename(f"enc_to_dec_proj.{end}", f"projection.linear.{end}") for end in ("weight", "bias")),
    *map(_moved, gpt2.WEIGHTS),
    *(
        rule
        for end, turned in (("weight", True), ("bias", False))
        for rule in (
            rename(f"{_THEIRS}.ln_cross_attn.{end}", f"{_BLOCK}.pre.{end}"),
            rename(f"{_THEIRS}.crossattention.q_attn.{end}", f"{_BLOCK}.branch.q.{end}", transpose=turned),
            fused(
                f"{_THEIRS}.crossattention.c_attn.{end}",
                (f"{_BLOCK}.branch.k.{end}", f"{_BLOCK}.branch.v.{end}"),
                transpose=turned,
            ),
            rename(f"{_THEIRS}.crossattention.c_proj.{end}", f"{_BLOCK}.branch.out.{end}", transpose=turned),
        )
    ),
)
LEGACY_NAMES = {r"^decoder\.transformer\.h\.\d+\.(crossattention|attn)\.(masked_)?bias$": None}
