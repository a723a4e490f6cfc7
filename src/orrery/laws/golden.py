"""Golden numbers of the course that the core can already compute."""

import json
from collections.abc import Iterator

import torch
from torch import Tensor

from orrery.laws.evidence import CannotRunError, Evidence, SlideDiffers, exact, within
from orrery.nn.attention.kernels import eager
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.masks import PLAIN_CAUSAL, BoundMask, Causal, TokenPositions, bind
from orrery.nn.positions.scheme import Added, PositionCall
from orrery.nn.positions.sinusoidal import SinusoidalPositions, rates
from orrery.settings import data_folder

POLL_VALUES = ((1.0, 0, 0, 0), (0, 1.0, 0, 0), (0, 0, 2.0, 0), (0, 0, 0, 1.0))
POLL_WEIGHTS = (0.1, 0.2, 0.6, 0.1)


def check() -> Iterator[Evidence]:
    """Compute what the slides show, with the bricks that models are made of."""
    yield within("G12 poll: x4' = [0.1, 0.2, 1.2, 0.1]", "golden", "", _poll((0, 1, 2, 3), (0, 1, 2, 3)), 1e-12)
    yield within("G12 poll: swapping x2 and x3 changes nothing", "golden", "", _poll((0, 2, 1, 3), (0, 2, 1, 3)), 1e-12)
    for base in (10_000.0, 100_000.0):
        yield within(f"G16 P(k + d) = M(d) P(k), base {base:,.0f}", "golden", "", shifted(base), 1e-12)
    yield exact("G17 causal mask 4x4: entries that differ", "", causal_differences(), 0)
    yield within("G17 softmax rows sum to 1, masked weights are 0.0", "golden", "", causal_rows(), 1e-15)
    yield within("G20 concat(heads) W_O == sum of W_h head_h", "golden", "", summed_heads(), 1e-12)
    yield exact("G20 parameters, d = 512, 8 heads of d / h: 4 d^2", "", attention_size(8, 64), 4 * 512**2)
    full = 8 * 3 * 512**2 + 8 * 512**2
    yield exact("G20 parameters, K = 512, 8 full-width heads: L 3K^2 + L K^2", "", attention_size(8, 512), full)
    yield exact("W1 look-up: bits that differ from one-hot times table", "", look_up_differences(), 0)


def slides() -> Iterator[SlideDiffers]:
    """List what a slide gives otherwise."""
    why = "W_q, W_k and W_v map K channels to K channels; D is no axis of theirs (here D = 10)"
    yield SlideDiffers("G20 parameters of self-attention, K = 512", "3 D K = 15,360", "3 K^2 = 786,432", why)
    why = "deck S0 has 8 heads of full width (L 3K^2 + L K^2); the others have d / h channels a head (4 d^2)"
    yield SlideDiffers("G20 multi-head attention, d = K = 512", "8,388,608", "1,048,576", why)
    why = "weights that stay with the place instead of the content when x2 and x3 are swapped"
    yield SlideDiffers("G12 poll, frozen weights", "[0.1, 0.6, 0.4, 0.1]", "[0.1, 0.2, 1.2, 0.1]", why)


def check_padding() -> Iterator[Evidence]:
    """Turn eight sentences into the slide's rectangle of ids (G11).

    Raises:
        CannotRunError: the slides' strings or the code of the padding are not there.
    """
    path = data_folder() / "course-slides" / "slides.json"
    if not path.is_file():
        raise CannotRunError(f"{path} is not there", "set ORRERY_DATA to the folder of the data sets")
    try:
        from orrery.data.batches.padding import pad, truncate, word_vocabulary
    except ImportError as error:
        raise CannotRunError("orrery.data.batches.padding is not there", "it comes with the data") from error
    example = json.loads(path.read_text())["G11_padding"]
    rows = truncate(example["sentences"], example["block"])
    vocabulary = word_vocabulary(rows)
    yield exact("G11 padding: entries of the vocabulary", "", len(vocabulary), 57)
    ids_BL, expected = torch.tensor(pad(rows, vocabulary, example["block"])), torch.tensor(example["ids"])
    yield exact("G11 padding: ids that differ", "", int((ids_BL != expected).sum()), 0)


def check_noam() -> Iterator[Evidence]:
    """Compute the learning rate of the original Transformer (G13).

    Raises:
        CannotRunError: the schedules are not there.
    """
    try:
        from orrery.training.schedules import noam
    except ImportError as error:
        raise CannotRunError("orrery.training.schedules is not there", "it comes with training") from error
    for step, expected in ((1, 1.746928e-7), (4_000, 6.987712e-4), (100_000, 1.397542e-4)):
        relative = abs(noam(step, steps=0, warmup=4_000, width=512) / expected - 1)
        yield within(f"G13 Noam rate, d = 512, step {step:,}: relative deviation", "golden", "", relative, 5e-7)


def poll(order: tuple[int, ...], weights: Tensor) -> Tensor:
    """Return the weighted mean of the values in this order, through the kernel: scores are log weights."""
    v = torch.tensor(POLL_VALUES, dtype=torch.float64)[list(order)][None, None]
    q = torch.zeros(1, 1, 1, 4, dtype=torch.float64)
    bias = weights.log()[None, None, None]
    free = BoundMask(dense=torch.ones(1, 1, 1, 4, dtype=torch.bool), is_causal=False)
    return eager(q, KeysValues(v, v), Operands(mask=free, bias_BHLS=bias, scale=1.0))[0, 0, 0]


def _poll(order: tuple[int, ...], weights_of: tuple[int, ...]) -> float:
    weights = torch.tensor(POLL_WEIGHTS, dtype=torch.float64)[list(weights_of)]
    expected = torch.tensor([0.1, 0.2, 1.2, 0.1], dtype=torch.float64)
    return float((poll(order, weights) - expected).abs().max())


def sinusoid(base: float, width: int, positions: Tensor) -> Tensor:
    """Return the sinusoidal table of these positions, float64 ``[L, D]``."""
    places = TokenPositions(positions[None])
    bound = (
        SinusoidalPositions.Spec(base=base).build(width).bind(PositionCall(places, {}, len(positions), torch.float64))
    )
    assert isinstance(bound, Added)
    return bound.table_BLD[0]


def shifted(base: float, width: int = 64) -> float:
    """Return the largest error of ``M(d) P(k)``, with one matrix for all k up to 2,000, for several shifts."""
    k = torch.arange(0, 2000, 37)
    worst = 0.0
    for shift in (1, 10, 512):
        angles = shift * rates(base, width, k)
        pairs = sinusoid(base, width, k).unflatten(-1, (-1, 2))
        sine, cosine = pairs[..., 0], pairs[..., 1]
        turned = (angles.cos() * sine + angles.sin() * cosine, angles.cos() * cosine - angles.sin() * sine)
        expected = sinusoid(base, width, k + shift)
        worst = max(worst, float((torch.stack(turned, -1).flatten(-2) - expected).abs().max()))
    return worst


def causal_differences() -> int:
    """Compare the bound and the plain causal mask with the slide's matrix."""
    slide = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]).bool()
    places = TokenPositions(torch.arange(4)[None])
    matrices = (bind(Causal(), places, places).dense, PLAIN_CAUSAL.matrix(4, 4, torch.device("cpu")))
    return sum(int((matrix[0, 0] != slide).sum()) for matrix in matrices if matrix is not None)


def causal_rows() -> float:
    """Return how far the rows of a masked pattern are from 1, plus every weight above the diagonal."""
    seen: dict[str, Tensor] = {}
    q, k, v = torch.randn(3, 1, 2, 4, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def record(name: str, value: Tensor) -> Tensor:
        seen[name] = value
        return value

    eager(q, KeysValues(k, v), Operands(mask=PLAIN_CAUSAL, scale=1.0, tap=record))
    pattern = seen["pattern"]
    return float((pattern.sum(-1) - 1).abs().max() + pattern.triu(1).sum())


def attention_size(heads: int, head_width: int) -> int:
    """Count the weights of a multi-head attention of width 512."""
    spec = MultiHeadAttention.Spec(heads=heads, kv_heads=heads, head_width=head_width)
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in spec.build(512).parameters())


def summed_heads() -> float:
    """Compare both forms of the output projection on random heads."""
    rng = torch.Generator().manual_seed(0)
    heads_HLC = torch.randn(4, 7, 8, dtype=torch.float64, generator=rng)
    out_ED = torch.randn(32, 32, dtype=torch.float64, generator=rng)
    concatenated_LD = heads_HLC.transpose(0, 1).flatten(1) @ out_ED
    summed_LD = sum(head_LC @ part_CD for head_LC, part_CD in zip(heads_HLC, out_ED.split(8), strict=True))
    return float((concatenated_LD - summed_LD).abs().max())


@torch.no_grad()
def look_up_differences() -> int:
    """Count entries in which a look-up differs from the product with one-hot vectors."""
    embedding = TokenEmbedding(61, 24)
    ids = torch.arange(61)
    one_hot = torch.nn.functional.one_hot(ids, 61).float()
    return int((embedding(ids[None])[0] != one_hot @ embedding.token.weight).sum())
