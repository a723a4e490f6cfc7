"""A ViT with a GPT-2 (Vinyals et al. 2015; Li et al. 2021 for TrOCR): one sees, the other writes what it shows.

Peculiar to it: two families in one file, each with its own configuration; every block of the decoder has a
cross-attention between its self-attention and its feed-forward network; where the widths differ, a projection brings
the image's vectors to the decoder's, or the cross-attention of TrOCR reads them as wide as they are. The pooler of what
sees comes along unused.

The reference puts any encoder before any decoder; here ViT, DeiT or DINOv2 sees, and GPT-2, BERT or TrOCR's decoder
writes; others are refused by name.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename
from orrery.errors import ModelFileError
from orrery.families import _captioners, deit, dinov2, vit
from orrery.families._config import Config
from orrery.families._keys import token
from orrery.families._seq2seq import start_token
from orrery.models.encoder import Encoder
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.elementwise import Projection
from orrery.nn.residual import Identity

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
_EYES: Mapping[str, tuple[Any, str]] = {
    "vit": (vit, "ViTModel"), "deit": (deit, deit.BARE), "dinov2": (dinov2, dinov2.BARE),
}  # fmt: skip
_STARTS = ("decoder_start_token_id", "bos_token_id")
_HINT = "supported are vit, deit and dinov2 as encoder, and gpt2, bert and trocr with cross-attention as decoder"


def spec(config: Mapping[str, Any]) -> EncoderDecoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    # Encoder and decoder have nothing to tie.
    c = Config("vision_encoder_decoder", config, DEFAULTS, ignored=("tie_word_embeddings",))
    (family, bare), own = _side(c, "encoder", _EYES)
    seeing: Encoder.Spec = family.spec({**own, "architectures": [bare]})
    write, own = _side(c, "decoder", _captioners.WRITERS)
    writer = write(own)
    looks = writer.looks or writer.width
    if writer.looks is not None and writer.looks != seeing.width:
        raise ModelFileError(
            f"{c.family}: decoder.cross_attention_hidden_size = {writer.looks}, and the encoder is {seeing.width} wide",
            "give it the encoder's width, or leave it out for a projection",
        )
    return EncoderDecoder.Spec(
        width=writer.width,
        context=writer.context,
        reader=seeing,
        projection=Identity.Spec() if looks == seeing.width else Projection.Spec(width=looks),
        target=writer.embed,
        decoder=writer.stack,
        head=writer.head,
        start=_start(c, config),
    )


def _start(c: Config, config: Mapping[str, Any]) -> int:
    """Return the token that a target begins with: of the whole file, else of its decoder, as the reference finds it."""
    sides = [{key: side[key] for key in _STARTS if side.get(key) is not None} for side in (c["decoder"], config)]
    said = Config(c.family, {**sides[0], **sides[1]}, {key: DEFAULTS[key] for key in _STARTS})
    return start_token(said, *_STARTS)


def _side(c: Config, key: str, known: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return what reads the configuration of a side, and that without what it must say to be here.

    Raises:
        ModelFileError: it is of another family, or does not look at the image.
    """
    given = dict(c[key])
    kind = given.pop("model_type", None)
    if kind not in known:
        raise ModelFileError(f"{c.family}: {key}.model_type is not {' or '.join(map(repr, known))}", _HINT)
    for name in ("is_decoder", "add_cross_attention") if key == "decoder" else ():
        if given.pop(name, None) is not True:
            raise ModelFileError(f"{c.family}: {key}.{name} is not True", _HINT)
    return known[kind], given


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files, each side's behind its name."""
    encoder, decoder = ({**DEFAULTS[key], **config.get(key, {})} for key in ("encoder", "decoder"))
    family, bare = _EYES[encoder["model_type"]]
    rules = family.WEIGHTS({**encoder, "architectures": [bare]})
    return (
        *_captioners.moved(rules, "encoder.", {"": "reader."}),
        *(rename(f"enc_to_dec_proj.{end}", f"projection.linear.{end}") for end in ("weight", "bias")),
        *_captioners.RULES[decoder["model_type"]](decoder),
    )


LEGACY_NAMES = {r"^decoder\.transformer\.h\.\d+\.(crossattention|attn)\.(masked_)?bias$": None}
