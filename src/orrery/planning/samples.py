"""Operations by which a machine is measured: products of several sizes, and what else a step of training does."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from orrery.nn.recurrent.engine import computes
from orrery.planning.rehearsal import MAPPED
from orrery.planning.roofline import ACROSS

aten: Any = torch.ops.aten
Sample = Callable[[], Any]
USUAL = ""
"""The name of what stands for every operation that has no sample of its own."""
SMALL, LARGE = (64, 512), (4096, 1024)
"""Rows and channels of what is written: 128 kilobytes, and 16 megabytes, which few caches hold."""


def _factor(*sizes: int) -> Tensor:
    """Return random numbers in the format of products: autocast would cast others at every call, which is one more."""
    narrow = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
    return torch.randn(*sizes, dtype=narrow)


def _linear(rows: int, width: int, out: int) -> Sample:
    x_ND, weight_ED = _factor(rows, width), _factor(out, width)
    return partial(F.linear, x_ND, weight_ED)


def _batched(many: int, length: int, width: int) -> Sample:
    a, b = _factor(many, length, width), _factor(many, width, length)
    return partial(torch.bmm, a, b)


def _attention(heads: int, length: int) -> Sample:
    q, k, v = (_factor(1, heads, length, 64) for _ in range(3))
    return partial(aten._scaled_dot_product_flash_attention_for_cpu, q, k, v, 0.0, True)


def _attention_backward(heads: int, length: int) -> Sample:
    q, k, v, above = (_factor(1, heads, length, 64) for _ in range(4))
    out, sums = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, True)
    return partial(aten._scaled_dot_product_flash_attention_for_cpu_backward, above, q, k, v, out, sums, 0.0, True)


def _lstm_parts(rows: int, width: int) -> tuple[Any, ...]:
    x, state = _factor(32, rows, width), 0 * _factor(rows, width)
    weights = [_factor(4 * width, width) / width for _ in range(2)] + [0 * _factor(4 * width) for _ in range(2)]
    return x, weights, state


def _lstm(rows: int, width: int) -> Sample:
    x, weights, state = _lstm_parts(rows, width)
    return partial(aten.mkldnn_rnn_layer, x, *weights, state, state, False, [], 2, width, 1, True, False, False, True)


def _lstm_backward(rows: int, width: int) -> Sample:
    x, weights, state = _lstm_parts(rows, width)
    with torch.enable_grad():
        out, h, c, kept = aten.mkldnn_rnn_layer(
            x, *weights, state, state, False, [], 2, width, 1, True, False, False, True
        )
    above = torch.randn_like(out)
    made = (*weights, state, state, out, h, c, above, state, state)
    settings: tuple[Any, ...] = (False, 2, width, 1, True, True, False, [], False, kept)
    return partial(aten.mkldnn_rnn_layer_backward, x, *made, *settings)


NARROW = partial(_linear, 2, 2048, 2048)
"""A product for which the processor mostly waits for its weights."""


def filled(new: bool) -> Sample:
    """Return what writes ``2 MAPPED`` bytes, into new pages or into those of a tensor that is there."""
    there = torch.empty(2 * MAPPED, dtype=torch.uint8)
    return lambda: (torch.empty_like(there) if new else there).fill_(1)


LINEAR = tuple(
    partial(_linear, *sizes) for sizes in ((64, 64, 64), (256, 128, 128), (512, 256, 512), (512, 1024, 1024))
)
BATCHED = tuple(partial(_batched, *sizes) for sizes in ((8, 32, 32), (16, 128, 64), (16, 256, 64)))
PRODUCTS: Mapping[str, Sequence[Callable[[], Sample]]] = {
    USUAL: LINEAR,
    "bmm": BATCHED,
    "_scaled_dot_product_flash_attention_for_cpu": [partial(_attention, 4, 64), partial(_attention, 8, 256)],
    "_scaled_dot_product_flash_attention_for_cpu_backward": [
        partial(_attention_backward, 4, 64),
        partial(_attention_backward, 8, 256),
    ],
    "mkldnn_rnn_layer": [partial(_lstm, 8, 128), partial(_lstm, 16, 512)],
    "mkldnn_rnn_layer_backward": [partial(_lstm_backward, 8, 128), partial(_lstm_backward, 16, 512)],
}
"""Samples of each kind of product."""


def products_here() -> Mapping[str, Sequence[Callable[[], Sample]]]:
    """Return the samples of products that this processor computes in the format at hand: few have every LSTM."""
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
    return {name: makes for name, makes in PRODUCTS.items() if "rnn" not in name or computes(dtype)}


def _of(make: Callable[..., Sample]) -> Sequence[Callable[[], Sample]]:
    return [partial(make, *sizes) for sizes in (SMALL, LARGE)]


def _plain(run: Callable[..., Any], tensors: int = 1) -> Sequence[Callable[[], Sample]]:
    def make(rows: int, width: int) -> Sample:
        return partial(run, *(torch.rand(rows, width) + 0.5 for _ in range(tensors)))

    return _of(make)


def _activation(run: Callable[..., Any], tensors: int = 1) -> Sequence[Callable[[], Sample]]:
    """Return samples of what follows a product, in its format."""

    def make(rows: int, width: int) -> Sample:
        return partial(run, *(_factor(rows, width) for _ in range(tensors)))

    return _of(make)


def _turned(rows: int, width: int) -> Sample:
    x = torch.randn(rows // 64, 64, width // 64, 64).transpose(1, 2)
    return partial(x.clone, memory_format=torch.contiguous_format)


def _across(rows: int, width: int) -> Sample:
    return partial(torch.randn(width, rows).t().clone, memory_format=torch.contiguous_format)


def _norm_backward(rows: int, width: int) -> Sample:
    x, above, scale = torch.randn(rows, width), torch.randn(rows, width), torch.ones(width)
    _, mean, deviation = aten.native_layer_norm(x, [width], scale, scale, 1e-5)
    return partial(
        aten.native_layer_norm_backward, above, x, [width], mean, deviation, scale, scale, [True, True, True]
    )


def _norm(rows: int, width: int) -> Sample:
    x, scale = torch.randn(rows, width), torch.ones(width)
    return partial(aten.native_layer_norm, x, [width], scale, scale, 1e-5)


def _adamw(rows: int, width: int) -> Sample:
    tensors = [[torch.rand(rows, width)] for _ in range(4)]
    numbers = {"lr": 1e-5, "beta1": 0.9, "beta2": 0.95, "weight_decay": 0.1, "eps": 1e-8}
    return partial(aten._fused_adamw_, *tensors, [], [torch.ones(())], **numbers, amsgrad=False, maximize=False)


def _table_backward(rows: int, width: int) -> Sample:
    ids = torch.zeros(rows // 4, dtype=torch.long)
    return partial(aten.embedding_dense_backward, torch.randn(rows // 4, width), ids, rows, -1, False)


def _loss_backward(rows: int, width: int) -> Sample:
    x, ids = torch.randn(rows, width), torch.zeros(rows, dtype=torch.long)
    return partial(aten.nll_loss_backward, torch.ones(()), x, ids, None, 2, -100, torch.ones(()))


WRITES: Mapping[str, Sequence[Callable[[], Sample]]] = {
    USUAL: _plain(torch.add, 2),
    "clone": _of(_turned),
    ACROSS: _of(_across),
    "add_": _plain(aten.add_.Tensor, 2),
    "div_": _plain(lambda x: x.div_(1.0)),
    "pow": _plain(lambda x: torch.pow(x, 2)),
    "exp": _plain(torch.exp),
    "gelu": _activation(F.gelu),
    "gelu_backward": _activation(aten.gelu_backward, 2),
    "silu": _activation(F.silu),
    "silu_backward": _activation(aten.silu_backward, 2),
    "tanh": _activation(torch.tanh),
    "sigmoid": _activation(torch.sigmoid),
    "sum": _plain(lambda x: x.sum(0)),
    "mean": _plain(lambda x: x.mean(-1)),
    "_softmax": _plain(lambda x: aten._softmax(x, -1, False)),
    "_safe_softmax": _plain(lambda x: aten._safe_softmax(x, -1)),
    "_softmax_backward_data": _plain(lambda x, y: aten._softmax_backward_data(x, y, -1, torch.float32), 2),
    "_log_softmax": _plain(lambda x: aten._log_softmax(x, -1, False)),
    "_log_softmax_backward_data": _plain(lambda x, y: aten._log_softmax_backward_data(x, y, -1, torch.float32), 2),
    "native_layer_norm": _of(_norm),
    "native_layer_norm_backward": _of(_norm_backward),
    "_fused_adamw_": _of(_adamw),
    "embedding_dense_backward": _of(_table_backward),
    "nll_loss_backward": _of(_loss_backward),
    "bernoulli_": _plain(lambda x: x.bernoulli_(0.9)),
    "random_": _plain(lambda x: x.random_(65536)),
    "_to_copy": _plain(lambda x: x.to(torch.bfloat16)),
}
"""Samples of the other kinds, by torch's names; each sample calls the one operation that it is named after."""
