"""What BART and its kin share: two stacks of the original Transformer's sublayers, and the names in their files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.checkpoints.layouts import Reshaped
from orrery.checkpoints.rules import Rule, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _parts
from orrery.families._config import Config
from orrery.families._keys import items, size, token
from orrery.families._seq2seq import STACKS, reader, start_token
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.attention.multihead import MultiHeadAttention, ScoreSettings
from orrery.nn.attention.sources import CrossSource
from orrery.nn.elementwise import FixedBias
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal, Full, Mask
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.scheme import PositionSpec
from orrery.nn.positions.sinusoidal import SinusoidalPositions
from orrery.nn.residual import Chain, Dropout, Identity, Scale
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack, repeat

DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(50265),
    "max_position_embeddings": 1024,
    "encoder_layers": size(12),
    "encoder_ffn_dim": size(4096),
    "encoder_attention_heads": 16,
    "decoder_layers": size(12),
    "decoder_ffn_dim": size(4096),
    "decoder_attention_heads": 16,
    "activation_function": "gelu",
    "d_model": size(1024),
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "scale_embedding": False,
    "decoder_start_token_id": token(None),
    "bos_token_id": token(0),
    "architectures": items(),
}
TINY = {
    "vocab_size": 61, "max_position_embeddings": 48, "d_model": 24, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 3, "decoder_attention_heads": 4, "encoder_ffn_dim": 40, "decoder_ffn_dim": 32,
    "decoder_start_token_id": 2,
}  # fmt: skip
FIXED = {"is_decoder": False, "add_bias_logits": False, "tie_word_embeddings": True}
IGNORED = (
    "init_std", "classifier_dropout", "classif_dropout",
    "extra_pos_embeddings", "activation_dropout", "encoder_layerdrop", "decoder_layerdrop",
)  # fmt: skip
"""The last three concern training alone, which here has dropout on the sublayers and on the patterns."""
ALIASES = {
    "num_hidden_layers": "encoder_layers",
    "hidden_size": "d_model",
    "num_attention_heads": "encoder_attention_heads",
}


@dataclass(frozen=True)
class Norms:
    """Where the norms of a member stand.

    Attributes:
        slot: of each residual, ``out`` (behind the sum) or ``pre`` (before the branch).
        embedding: whether the sum of embedding and position is normalised.
        final: whether a stack ends with a norm.
    """

    slot: str
    embedding: bool
    final: bool

    @property
    def settings(self) -> dict[str, bool]:
        """Return what old configurations say of it; newer ones leave it to the model's type."""
        return {
            "normalize_before": self.slot == "pre",
            "normalize_embedding": self.embedding,
            "add_final_layer_norm": self.final,
        }


def assemble(
    c: Config,
    norms: Norms,
    positions: PositionSpec,
    target: TokenEmbedding.Spec | None = None,
    *,
    cap: ModuleSpec | None = None,
) -> EncoderDecoder.Spec:
    """Return the architecture of a member; ``target`` is the decoder's own vocabulary, ``cap`` follows the logits."""
    shift = Identity.Spec() if is_bare(c["architectures"]) else FixedBias.Spec()
    embed = TokenEmbedding.Spec(vocabulary=c["vocab_size"])
    reads = {"attention": attention(c, "encoder", mask="all")}
    writes = {"attention": attention(c, "decoder"), "cross": attention(c, "decoder", source=CrossSource.Spec())}
    return EncoderDecoder.Spec(
        width=c["d_model"],
        context=c["max_position_embeddings"],
        reader=reader(
            c["d_model"],
            c["max_position_embeddings"],
            embed,
            stack(c, "encoder", reads, norms, {"all": Full()}, positions),
        ),
        decoder=stack(c, "decoder", writes, norms, {"causal": Causal()}, positions),
        head=LanguageModelHead.Spec(
            vocabulary=(target or embed).vocabulary,
            cap=cap or shift,
        ),
        start=start_token(c, "decoder_start_token_id", "bos_token_id"),
        target=target,
    )


def attention(c: Config, side: str, **slots: Any) -> MultiHeadAttention.Spec:
    """Return the attention of a side, with biases everywhere; the keywords are its other fields."""
    heads = c[f"{side}_attention_heads"]
    return MultiHeadAttention.Spec(
        heads=heads,
        kv_heads=heads,
        head_width=c.divide("d_model", f"{side}_attention_heads"),
        biases=_parts.biases(),
        scoring=ScoreSettings(dropout=c["attention_dropout"]),
        **slots,
    )


def stack(
    c: Config,
    side: str,
    attentions: Mapping[str, ModuleSpec],
    norms: Norms,
    masks: Mapping[str, Mask],
    positions: PositionSpec,
) -> Stack.Spec:
    """Return the stack of a side, whose blocks have these attentions and a feed-forward network."""
    norm, empty, dropout = LayerNorm.Spec(), Identity.Spec(), c["dropout"]
    mlp = MLP.Spec(hidden=c[f"{side}_ffn_dim"], activation=c.activation("activation_function"))
    block = _parts.sequential({**attentions, "feed_forward": mlp}, dropout=dropout, **{norms.slot: norm})
    return Stack.Spec(
        blocks=repeat(block, c[f"{side}_layers"]),
        final=norm if norms.final else empty,
        positions={"absolute": positions},
        masks=masks,
        enter=Scale.Spec(factor=c["d_model"] ** 0.5) if c["scale_embedding"] else empty,
        start=Chain.Spec(parts=(norm if norms.embedding else empty, Dropout.Spec(rate=dropout))),
    )


def behind_padding(c: Config) -> SinusoidalPositions.Spec:
    """Return sinusoids that begin behind the padding's id.

    fairseq spreads their wavelengths over one pair less, which is another base.

    Raises:
        ModelFileError: no padding token, behind which they begin, or a width that does not make two pairs.
    """
    if c["pad_token_id"] is None:
        raise ModelFileError(
            f"{c.family}: pad_token_id is null, and positions begin behind it", "give its number, mostly 1"
        )
    pairs, odd = divmod(c["d_model"], 2)
    if odd or pairs < 2:
        raise ModelFileError(
            f"{c.family}: d_model = {c['d_model']} makes no two pairs of sine and cosine", "choose an even one above 2"
        )
    base = 10_000.0 ** (pairs / (pairs - 1))
    return SinusoidalPositions.Spec(base=base, halves=True, offset=c["pad_token_id"] + 1)


_PROJECTIONS = tuple((f"{part}_proj", f"branch.{part}") for part in ("q", "k", "v", "out"))
LEGACY_NAMES: Mapping[str, str | None] = {
    r"\b(encoder|decoder)\.embed_tokens\.weight$": "shared.weight",
    r"^(model\.)?(encoder|decoder)\.version$": None,
}
"""Old names: files of pickles keep copies of the one embedding, and the number of a layout."""

_ROLES = {
    "encoder": {"attention": "self_attn", "feed_forward": "final"},
    "decoder": {"attention": "self_attn", "cross": "encoder_attn", "feed_forward": "final"},
}


def is_bare(architectures: Sequence[str] | None) -> bool:
    """Say whether a file holds the two stacks alone: its names lack a prefix, and its logits a shift (BART base)."""
    return bool({"BartModel", "MBartModel", "PegasusModel", "MarianModel", "M2M100Model"} & set(architectures or ()))


def side_rules(theirs: str, side: str, slot: str) -> list[Rule]:
    """Return the rules of a stack, whose names in the file begin with ``theirs``."""
    ours = STACKS[side]
    rules, layer, block = list[Rule](), f"{theirs}.layers.{{i}}", f"{ours}.blocks.{{i}}"
    for role, name in _ROLES[side].items():
        rules += renames(layer, block, [(f"{name}_layer_norm", f"{role}.{slot}")])
        rules += renames(f"{layer}.{name}", f"{block}.{role}", _PROJECTIONS)
    rules += renames(layer, f"{block}.feed_forward.branch", [("fc1", "up"), ("fc2", "down")])
    rules += renames(theirs, ours, [("layernorm_embedding", "start.0"), ("layer_norm", "final")])
    positions = [f"{ours}.positions.absolute.table{end}" for end in (".weight", "")]
    return [*rules, *(rename(f"{theirs}.embed_positions.weight", name) for name in positions)]


def rules(config: Mapping[str, Any], slot: str) -> tuple[Rule, ...]:
    """Return the rules of a member whose norms stand in this slot of a residual."""
    prefix = "" if is_bare(config.get("architectures")) else "model."
    rules = [rename(f"{prefix}shared.weight", "reader.embed.token.weight")]
    for side in _ROLES:
        rules += side_rules(prefix + side, side, slot)
    rules.append(rename("lm_head.weight", "head.vocabulary.weight"))  # a copy, where a file has one
    return (*rules, Rule("final_logits_bias", ("head.cap.shift",), Reshaped(1)))
