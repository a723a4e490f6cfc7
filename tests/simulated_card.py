"""A GPU that is not there: its tensors say that they are on ``cuda``, and compute on the CPU.

What mixes them with tensors of the CPU is refused as a real card refuses it, so that a machine without one finds what
was left behind on the host. A card's own kernels, its speed and its memory are not simulated.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

CARD = torch.device("cuda", 0)
META = torch.device("meta")
"""What the C++ of torch is told of the tensors: it has no code for a card here, and some for this."""
_aten = torch.ops.aten
_BETWEEN_DEVICES = {_aten._to_copy.default, _aten.copy_.default}
_INDEXED = {_aten.index.Tensor, _aten.index_put_.default, _aten.index_put.default, _aten._index_put_impl_.default}
"""Operations whose numbers of places may be on the CPU while the rest is on the card."""
_AS_WITH_A_CARD: Mapping[str, Callable[..., Any]] = {
    "is_available": lambda: True,
    "device_count": lambda: 1,
    "current_device": lambda: 0,
    "set_device": lambda *_: None,
    "synchronize": lambda *_: None,
    "is_bf16_supported": lambda **_: True,
    "mem_get_info": lambda *_: (80 * 10**9, 80 * 10**9),
    "max_memory_allocated": lambda *_: 0,
    "get_rng_state": lambda *_: torch.zeros(1),
    "set_rng_state": lambda *_: None,
    "_lazy_init": lambda: None,
}
"""What ``torch.cuda`` answers."""


class OnCard(Tensor):
    """A tensor that says it is on the card; ``held`` has its numbers."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "OnCard":
        made: OnCard = Tensor._make_wrapper_subclass(
            cls, held.size(), strides=held.stride(), storage_offset=held.storage_offset(), dtype=held.dtype,
            layout=held.layout, device=META, dispatch_device=True,
        )  # type: ignore[attr-defined]  # fmt: skip
        made.held = held
        return made

    device = property(lambda self: CARD)
    is_cuda = property(lambda self: True)
    is_cpu = property(lambda self: False)
    is_meta = property(lambda self: False)

    def __repr__(self, **_: Any) -> str:
        return f"on the card: {self.held!r}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copy: Tensor = OnCard(self.detach().held.clone())
        if isinstance(self, nn.Parameter):
            copy = nn.Parameter(copy, requires_grad=self.requires_grad)
        memo[id(self)] = copy
        return copy

    def numpy(self, **_: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first")

    __array__ = numpy

    def tolist(self) -> Any:
        return self.detach().held.tolist()

    def data_ptr(self) -> int:
        return self.held.data_ptr()

    def untyped_storage(self) -> Any:
        return self.held.untyped_storage()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


class _Operations(TorchDispatchMode):
    """Makes tensors on the card where ``device`` says so."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


class _Calls(TorchFunctionMode):
    """Replaces calls that torch would answer in C++ by the real device, or by numbers on ``meta``."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (Tensor.to, Tensor.cuda, Tensor.type_as):
            return _moved(func, args, kwargs)
        if func in (torch.tensor, torch.as_tensor, torch.asarray) and _is_card(kwargs.get("device")):
            return func(*args, **{**kwargs, "device": "cpu"}).to(CARD)
        if not any(isinstance(one, OnCard) for one in args):
            return func(*args, **kwargs)
        if func in (torch.where, Tensor.where):  # a number would come as a tensor on ``meta``, without its value
            kind = next((x.dtype for x in args if isinstance(x, Tensor) and x.dtype != torch.bool), None)
            args = tuple(x if isinstance(x, Tensor) else torch.tensor(x, dtype=kind).to(CARD) for x in args)
        elif func is Tensor.__setitem__ and not isinstance(args[2], Tensor):
            args = (*args[:2], torch.tensor(args[2], dtype=args[0].dtype).to(CARD))
        elif func is F.cosine_similarity:
            return _cosine(*args[:2], **kwargs)
        elif func is F.scaled_dot_product_attention:
            return _attention(*args, **kwargs)
        return func(*args, **kwargs)


@contextmanager
def simulated_card() -> Iterator[None]:
    """Let this thread have a GPU; models and tensors that are made on it must not leave the context."""
    swap = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)  # tied weights stay one
    try:
        with ExitStack() as held:
            for name, answer in _AS_WITH_A_CARD.items():
                held.enter_context(patch.object(torch.cuda, name, answer))
            held.enter_context(patch.object(torch.backends.cudnn, "is_acceptable", lambda tensor: False))
            held.enter_context(_Operations())
            held.enter_context(_Calls())
            yield
    finally:
        torch.__future__.set_swap_module_params_on_conversion(swap)


def _is_card(device: Any) -> bool:
    return device is not None and torch.device(device).type == "cuda"


def _moved(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Answer ``to`` and what is like it: ``cuda`` is the first card, and what is there stays there."""
    x, *given = (*args, *kwargs.values())
    if func is Tensor.cuda:
        given = [CARD]
    if given and isinstance(given[0], OnCard):
        given = [CARD, given[0].dtype]
    if not any(isinstance(one, str | torch.device) and _is_card(one) for one in given):
        return func(*args, **kwargs)
    dtype = next((one for one in given if isinstance(one, torch.dtype)), x.dtype)
    if isinstance(x, OnCard):
        return x if dtype == x.dtype else x.to(dtype)
    return Tensor.to(x, CARD, dtype)


def _computed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run an operation on what its tensors hold; refuse tensors of two devices."""
    if func is torch.ops.prim.device.default:
        return META
    if kwargs.get("device") == META and torch._C._current_graph_task_id() != -1:
        kwargs = {**kwargs, "device": CARD}  # the formula of a gradient asks for what C++ was told
    given: list[Tensor] = []
    tree_map(lambda one: given.append(one) if isinstance(one, Tensor) else None, (args, kwargs))
    here, made_here = any(isinstance(one, OnCard) for one in given), _is_card(kwargs.get("device"))
    if here and func not in _BETWEEN_DEVICES:
        _refuse_two_devices(func, [args[0], *args[2:3]] if func in _INDEXED else given)
    generator = kwargs.get("generator")
    if generator is not None and generator.device.type == "cpu" and (here or made_here):
        raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
    bare_args, bare = tree_map(_bare, (args, kwargs))
    computed = func(*bare_args, **(bare | {"device": torch.device("cpu")} if made_here else bare))
    if func is _aten.copy_.default:
        return args[0]
    if not made_here and (not here or kwargs.get("device") is not None):
        return computed
    same = {id(_bare(one)): one for one in given if isinstance(one, OnCard)}  # in place: the very tensor is given back
    return tree_map(lambda one: _wrapped(one, same) if isinstance(one, Tensor) else one, computed)


def _refuse_two_devices(func: Any, given: list[Any]) -> None:
    left = [x for x in given if isinstance(x, Tensor) and not isinstance(x, OnCard) and (x.dim() or x is given[0])]
    if left:
        shapes = [tuple(one.shape) for one in left]
        message = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
        raise RuntimeError(f"{message} ({func}: {shapes} on the CPU)")


def _bare(one: Any) -> Any:
    return one.held if isinstance(one, OnCard) else one


def _wrapped(plain: Tensor, same: Mapping[int, OnCard]) -> OnCard:
    return same[id(plain)] if id(plain) in same else OnCard(plain.resolve_conj().resolve_neg())


def _cosine(a: Tensor, b: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    a, b = (x / x.norm(dim=dim, keepdim=True).clamp(min=eps) for x in (a, b))
    return (a * b).sum(dim)


def _attention(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """Compute attention in plain steps, whose kernels every device has."""
    if enable_gqa:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
    if attn_mask is None:
        return F.dropout(scores.softmax(-1), dropout_p) @ v
    seen = attn_mask if attn_mask.dtype == torch.bool else attn_mask > -torch.inf
    if attn_mask.dtype != torch.bool:
        scores = scores + attn_mask.masked_fill(~seen, 0.0)
    pattern = scores.masked_fill(~seen, torch.finfo(scores.dtype).min).softmax(-1).masked_fill(~seen, 0.0)
    return F.dropout(pattern, dropout_p) @ v
