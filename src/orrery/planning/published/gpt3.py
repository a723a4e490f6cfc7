"""GPT-3's sizes (Table 2.1) beside what our presets count, and its 175 billion numbers by two ways of counting."""

from dataclasses import dataclass, replace

import torch

from orrery.models.decoder import Decoder
from orrery.models.decoding_memory import bytes_per_token
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.block import Block
from orrery.nn.stack import repeat
from orrery.planning.matrices import LECTURE, Convention, Matrix, matrices_of, total
from orrery.planning.parameters import parameters
from orrery.planning.presets import gpt3, preset
from orrery.planning.table import PaperTable

SLIDE = "deck S3, slides of GPT-3"


@dataclass(frozen=True)
class Gpt3Row:
    """A row of Table 2.1 as printed, and our preset of that size."""

    name: str
    printed: str
    layers: int
    width: int
    heads: int
    head_width: int
    batch: str
    rate: str
    preset: str

    @property
    def heads_fit(self) -> bool:
        """Whether the channels of all heads are those of the model."""
        return self.heads * self.head_width == self.width


SIZES = (
    Gpt3Row("GPT-3 Small", "125M", 12, 768, 12, 64, "0.5M", "6.0e-4", "gpt3-125m"),
    Gpt3Row("GPT-3 Medium", "350M", 24, 1024, 16, 64, "0.5M", "3.0e-4", "gpt3-350m"),
    Gpt3Row("GPT-3 Large", "760M", 24, 1536, 16, 96, "0.5M", "2.5e-4", "gpt3-760m"),
    Gpt3Row("GPT-3 XL", "1.3B", 24, 2048, 24, 128, "1M", "2.0e-4", "gpt3-1.3b"),
    Gpt3Row("GPT-3 2.7B", "2.7B", 32, 2560, 32, 80, "1M", "1.6e-4", "gpt3-2.7b"),
    Gpt3Row("GPT-3 6.7B", "6.7B", 32, 4096, 32, 128, "2M", "1.2e-4", "gpt3-6.7b"),
    Gpt3Row("GPT-3 13B", "13.0B", 40, 5140, 40, 128, "2M", "1.0e-4", "gpt3-13b"),
    Gpt3Row("GPT-3 175B", "175.0B", 96, 12_288, 96, 128, "3.2M", "0.6e-4", "gpt3-175b"),
)
"""Brown et al. 2020, Table 2.1, which deck S3 shows; batches in tokens."""


def sizes_table() -> PaperTable:
    """Return Table 2.1 with the parameters that each row has exactly (G3 to G6)."""
    rows = [
        (
            row.name, row.printed, str(row.layers), f"{row.width:,}", str(row.heads), str(row.head_width),
            row.batch, row.rate, f"{parameters(preset(row.preset)):,}",
            "agrees" if row.heads_fit else f"paper differs: {row.heads} x {row.head_width} is not {row.width:,}",
        )
        for row in SIZES
    ]  # fmt: skip
    columns = ("model", "printed", "layers", "width", "heads", "head", "batch", "rate", "parameters", "check")
    return PaperTable(
        "gpt3-sizes",
        "The sizes of GPT-3",
        f"Brown et al. 2020, Table 2.1; {SLIDE}. Parameters: counted on our presets, tied, with biases and norms",
        columns,
        rows,
        (
            f"slide differs, XL: 24 heads of 128 are {24 * 128:,} channels and the width is 2,048. 16 heads, 2,048 "
            f"throughout: {parameters(preset('gpt3-1.3b')):,}, the printed 1.3B; attention of {24 * 128:,} channels: "
            f"{parameters(xl_as_printed()):,}.",
            f"slide differs, 13B: 40 heads do not divide a width of 5,140, and 40 x 128 is 5,120. 5,120 throughout: "
            f"{parameters(preset('gpt3-13b')):,}, the 12.85B of Table D.1; 5,140 throughout: "
            f"{parameters(gpt3(5140, 40, 20)):,}, the printed 13.0B.",
        ),
    )


def xl_as_printed() -> Decoder.Spec:
    """Return the XL model with 24 heads of 128 channels at a width of 2,048."""
    return wide_heads(gpt3(2048, 24, 16), heads=24, head_width=128)


def wide_heads(spec: Decoder.Spec, heads: int, head_width: int) -> Decoder.Spec:
    """Return the spec with other heads: their channels need not add up to the width."""
    block = spec.stack.blocks[0]
    residual = block.residuals["attention"]
    assert isinstance(residual.branch, MultiHeadAttention.Spec)
    branch = replace(residual.branch, heads=heads, kv_heads=heads, head_width=head_width)
    changed = Block.Spec(residuals={**block.residuals, "attention": replace(residual, branch=branch)})
    return replace(spec, stack=replace(spec.stack, blocks=repeat(changed, len(spec.stack.blocks))))


KINDS = {
    "Embedding": "embed.token",
    "Key": "attention.k",
    "Query": "attention.q",
    "Value": "attention.v",
    "Output": "attention.out",
    "Up-projection": "feed_forward.up",
    "Down-projection": "feed_forward.down",
    "Unembedding": "head.vocabulary",
}
"""The names of deck S4, and ours."""


def matrices_table() -> PaperTable:
    """Return the matrices of GPT-3 175B as deck S4 counts them, and what else is a way of counting (G1 to G3, G19)."""
    spec = preset("gpt3-175b")
    listed = matrices_of(spec)
    rows = [_matrix(name, next(one for one in listed if one.kind == kind)) for name, kind in KINDS.items()]
    numbers, count = total(listed, LECTURE)
    per_head = total(listed, replace(LECTURE, output_per_head=True))[1]
    per_token = bytes_per_token(spec, torch.float16)
    context = spec.context
    notes = (
        f"real convention (tied head, biases, norms, positions): {total(listed, Convention())[0]:,} parameters.",
        f"slide differs: it writes the output as 12,288 x 128 x 96 heads x 96 layers, which would make {per_head:,} "
        f"matrices; {count:,} counts it once a layer, and key, query and value once a head.",
        f"keys and values in float16: {per_token:,} bytes a token, {per_token * context:,} at {context:,} tokens.",
    )
    return PaperTable(
        "gpt3-matrices",
        "The 175 billion numbers of GPT-3",
        "deck S4, Total weights: 175,181,291,520, organized into 27,938 matrices (after 3Blue1Brown: no biases, norms "
        "or positions, the un-embedding counted apart). Ours: counted on the preset gpt3-175b",
        ("matrix", "one", "how many", "numbers"),
        [*rows, ("all", "", f"{count:,}", f"{numbers:,}")],
        notes,
    )


def _matrix(name: str, one: Matrix) -> tuple[str, ...]:
    cut = one.heads if one.axis == 0 else 1
    shape = list(one.shape)
    shape[one.axis] //= cut
    return name, " x ".join(f"{size:,}" for size in shape), f"{one.copies * cut:,}", f"{one.numel * one.copies:,}"
