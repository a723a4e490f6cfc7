"""What may write beside a picture: GPT-2, BERT and TrOCR's decoder, each with a cross-attention in every block.

BLIP's writer is BERT's without token types: ``causal_bert`` and ``bert_rules``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.families import _bart, _bert, _heads, bert, gpt2
from orrery.families._config import Config
from orrery.families._keys import items, size, token
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.attention.sources import CrossSource
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding, TokenTypeEmbedding
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack, repeat

Rules = tuple[Rule, ...]


@dataclass(frozen=True)
class WritingSide:
    """One side of a captioner.

    Attributes:
        width: that of its stream.
        context: the length it is meant for.
        embed: of its tokens.
        stack: with a cross-attention in every block.
        head: over its vocabulary.
        looks: how wide the vectors are that its cross-attention reads, where not as its own.
    """

    width: int
    context: int
    embed: TokenEmbedding.Spec | TokenTypeEmbedding.Spec
    stack: Stack.Spec
    head: LanguageModelHead.Spec
    looks: int | None = None


def _crossed(block: Block.Spec, looks: int | None = None) -> Block.Spec:
    """Return a block with a cross-attention whose norm and dropout are those of its self-attention."""
    first = block.residuals["attention"]
    assert isinstance(first.branch, MultiHeadAttention.Spec)
    cross = replace(first, branch=replace(first.branch, source=CrossSource.Spec(width=looks)))
    return Block.Spec(residuals={"attention": first, "cross": cross, "feed_forward": block.residuals["feed_forward"]})


def _gpt2(given: Mapping[str, Any]) -> WritingSide:
    """Return GPT-2 with a cross-attention."""
    spec = gpt2.spec(given)
    assert isinstance(spec.head, LanguageModelHead.Spec)
    stack = replace(spec.stack, blocks=repeat(_crossed(spec.stack.blocks[0]), len(spec.stack.blocks)))
    return WritingSide(spec.width, spec.context, spec.embed, stack, spec.head)


def _bert_writer(given: Mapping[str, Any]) -> WritingSide:
    """Return BERT that sees no later token; each of its tokens is of the first type."""
    fixed = {key: value for key, value in _bert.FIXED.items() if key not in ("is_decoder", "add_cross_attention")}
    c = Config("vision_encoder_decoder: decoder", given, bert.DEFAULTS, fixed=fixed, ignored=_bert.IGNORED)
    return causal_bert(c, _bert.embed(c))


def causal_bert(
    c: Config, embed: TokenEmbedding.Spec | TokenTypeEmbedding.Spec, looks: int | None = None
) -> WritingSide:
    """Return BERT's blocks that see no later token, each with a cross-attention to vectors ``looks`` wide."""
    stack, width = _bert.stack(c), c["hidden_size"]
    first = stack.blocks[0].residuals["attention"]
    assert isinstance(first.branch, MultiHeadAttention.Spec)
    causal = replace(first, branch=replace(first.branch, mask="causal"))
    block = _crossed(Block.Spec(residuals={**stack.blocks[0].residuals, "attention": causal}), looks)
    return WritingSide(
        width=width,
        context=c["max_position_embeddings"],
        embed=embed,
        stack=replace(stack, blocks=repeat(block, len(stack.blocks)), masks={"causal": Causal()}),
        head=_heads.masked(c, width, c.activation("hidden_act"), _bert.norm(c)),
        looks=looks,
    )


_TROCR: Mapping[str, Any] = {
    **{key: value for key, value in _bart.DEFAULTS.items() if not key.startswith("encoder_")},
    "max_position_embeddings": 512,
    "use_learned_position_embeddings": True,
    "layernorm_embedding": True,
    "cross_attention_hidden_size": size(None),
    "pad_token_id": token(1),
    "tie_word_embeddings": True,
    "architectures": items(),
}
_TROCR_ALIASES = {
    "hidden_size": "d_model", "num_hidden_layers": "decoder_layers", "num_attention_heads": "decoder_attention_heads",
}  # fmt: skip


def _trocr(given: Mapping[str, Any]) -> WritingSide:
    """Return TrOCR's decoder (Li et al. 2021): BART's, with positions and a norm of the embeddings as its file says."""
    c = Config("vision_encoder_decoder: decoder", given, _TROCR, ignored=_bart.IGNORED, aliases=_TROCR_ALIASES)
    looks, length = c["cross_attention_hidden_size"], c["max_position_embeddings"]
    attentions: dict[str, ModuleSpec] = {
        "attention": _bart.attention(c, "decoder"),
        "cross": _bart.attention(c, "decoder", source=CrossSource.Spec(width=looks)),
    }
    learned = LearnedPositions.Spec(length=length, offset=2)
    positions = learned if c["use_learned_position_embeddings"] else _bart.behind_padding(c)
    norms = _bart.Norms(slot="out", embedding=c["layernorm_embedding"], final=False)
    return WritingSide(
        width=c["d_model"],
        context=length,
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=_bart.stack(c, "decoder", attentions, norms, {"causal": Causal()}, positions),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
        looks=looks,
    )


WRITERS: Mapping[str, Callable[[Mapping[str, Any]], WritingSide]] = {
    "gpt2": _gpt2, "bert": _bert_writer, "trocr": _trocr,
}  # fmt: skip
"""By the family of the decoder."""
_OURS = {"embed.": "target.", "stack.": "decoder.", "heads.masked.": "head."}
_BLOCK = "decoder.blocks.{i}.cross"


def moved(rules: Rules, theirs: str, ours: Mapping[str, str]) -> Rules:
    """Return the rules of a model that is a part: their names behind ``theirs``, ours with other beginnings."""

    def renamed(name: str) -> str:
        old = next((old for old in ours if name.startswith(old)), "")
        return ours.get(old, "") + name.removeprefix(old)

    return tuple(Rule(theirs + rule.theirs, tuple(map(renamed, rule.ours)), rule.layout) for rule in rules)


def _of_gpt2(given: Mapping[str, Any]) -> Rules:
    """Return the rules of GPT-2's files; of its cross-attention keys and values are one matrix."""
    theirs = "decoder.transformer.h.{i}"
    cross = (
        rule
        for end, turned in (("weight", True), ("bias", False))
        for rule in (
            rename(f"{theirs}.ln_cross_attn.{end}", f"{_BLOCK}.pre.{end}"),
            rename(f"{theirs}.crossattention.q_attn.{end}", f"{_BLOCK}.branch.q.{end}", transpose=turned),
            fused(
                f"{theirs}.crossattention.c_attn.{end}",
                (f"{_BLOCK}.branch.k.{end}", f"{_BLOCK}.branch.v.{end}"),
                transpose=turned,
            ),
            rename(f"{theirs}.crossattention.c_proj.{end}", f"{_BLOCK}.branch.out.{end}", transpose=turned),
        )
    )
    return (*moved(gpt2.WEIGHTS, "decoder.", _OURS), *cross)


def _of_bert(given: Mapping[str, Any]) -> Rules:
    """Return the rules of BERT's files."""
    return (*moved(bert.WEIGHTS({**given, "architectures": ["BertForMaskedLM"]}), "decoder.", _OURS), *crossed_rules())


def bert_rules(theirs: str, *, tied: bool) -> Rules:
    """Return the rules of BERT's blocks with a cross-attention, without token types, behind ``theirs``."""
    rules = (
        *_bert.embedding_rules("bert."),
        *_bert.block_rules("bert."),
        *_heads.masked_rules("cls.predictions", "transform.dense", "transform.LayerNorm", tied=tied),
    )
    kept = tuple(rule for rule in rules if rule.ours != ("embed.segment.weight",))
    return (*moved(kept, theirs, _OURS), *crossed_rules(theirs))


def crossed_rules(theirs: str = "decoder.") -> Rules:
    """Return the rules of the cross-attentions of BERT's blocks."""
    cross = (
        ("self.query", "branch.q"),
        ("self.key", "branch.k"),
        ("self.value", "branch.v"),
        ("output.dense", "branch.out"),
        ("output.LayerNorm", "out"),
    )
    return renames(f"{theirs}bert.encoder.layer.{{i}}.crossattention", _BLOCK, cross)


def _of_trocr(given: Mapping[str, Any]) -> Rules:
    """Return the rules of the files of TrOCR's decoder."""
    theirs = "decoder.model.decoder"
    return (
        rename(f"{theirs}.embed_tokens.weight", "target.token.weight"),
        *_bart.side_rules(theirs, "decoder", "out"),
        rename("decoder.output_projection.weight", "head.vocabulary.weight"),
    )


RULES: Mapping[str, Callable[[Mapping[str, Any]], Rules]] = {"gpt2": _of_gpt2, "bert": _of_bert, "trocr": _of_trocr}
"""The rules of each family's files, given the configuration of the side."""
