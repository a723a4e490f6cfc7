"""What the recurrent encoder-decoders share: their configuration, and how a reader and a decoder become a model."""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename
from orrery.families._config import Config
from orrery.families._keys import size, token
from orrery.families._seq2seq import start_token
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.models.recurrent_encoder import RecurrentEncoder
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import RecurrentPast
from orrery.nn.residual import Dropout, NoSkip, Residual
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack

DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(30000),
    "hidden_size": size(1000),
    "dropout": 0.0,
    "tie_word_embeddings": False,
    "max_position_embeddings": 512,
    "decoder_start_token_id": token(1),
}
TINY = {"vocab_size": 61, "hidden_size": 12, "max_position_embeddings": 48}


def assemble(c: Config, recurrence: ModuleSpec, decoder: ModuleSpec) -> EncoderDecoder.Spec:
    """Return the model: one embedding for both languages, the decoder's recurrence as its only block."""
    attending = Residual.Spec(branch=decoder, skip=NoSkip.Spec(), dropout=c["dropout"])
    return EncoderDecoder.Spec(
        width=c["hidden_size"],
        context=c["max_position_embeddings"],
        reader=RecurrentEncoder.Spec(
            width=c["hidden_size"],
            embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
            recurrence=recurrence,
            enter=Dropout.Spec(rate=c["dropout"]),
        ),
        decoder=Stack.Spec(
            blocks=(Block.Spec(residuals={"cross": attending}),),
            positions={},
            masks={"past": RecurrentPast()},
            start=Dropout.Spec(rate=c["dropout"]),
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"], bias=True),
        start=start_token(c, "decoder_start_token_id"),
    )


BRANCH = "decoder.blocks.0.cross.branch"


def same(*names: str, ends: tuple[str, ...] = ("weight", "bias")) -> tuple[Rule, ...]:
    """Return the rules that files carry our names, as no other ``model_type`` is like these."""
    return tuple(rename(f"{name}.{end}", f"{name}.{end}") for name in names for end in ends)


def read_by(*names: str) -> tuple[Rule, ...]:
    """Return the rules of the reader's parts, which files call ``reader.`` alone."""
    return tuple(rename(f"reader.{name}", f"reader.recurrence.{name}") for name in names)


def engine(name: str = "engine", layers: int = 1, both_ways: bool = False) -> tuple[Rule, ...]:
    """Return the rules of a reader that is one of torch's recurrent engines."""
    ways = ("", "_reverse") if both_ways else ("",)
    parts = [f"{part}_{side}" for part in ("weight", "bias") for side in ("ih", "hh")]
    names = [f"{name}.{part}_l{layer}{way}" for layer in range(layers) for way in ways for part in parts]
    return read_by(*names)


SHARED = (
    *same("head.vocabulary"),
    *(rename(f"embed.token.{end}", f"reader.embed.token.{end}") for end in ("weight", "bias")),
)
