"""Parity of decoders: every way through a model gives the reference's numbers, or the first wrong tap is named.

``tests/parity/encoders.py`` and ``tests/parity/seq2seq.py`` do the same for the other two assemblies.
"""

import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from orrery.checkpoints.rules import to_ours, to_theirs
from orrery.errors import UsageError
from orrery.families import load_family, rules_of, spec_of
from orrery.models.kernel_choice import caps_scores
from orrery.nn.attention.kernels import KERNELS, Kernel
from tests.parity import oracle


@dataclass(frozen=True)
class Pair:
    """A reference and our model with its weights."""

    kind: str
    theirs: Any
    ours: Any
    wide: bool
    config: Mapping[str, Any]

    def reference(self, *ids: Tensor, **kwargs: Any) -> Any:
        """Run the reference, widened where the pair is."""
        with oracle.widened(oracle.modelling(self.kind)) if self.wide else nullcontext():
            return self.theirs(*ids, **kwargs)

    @property
    def rules(self) -> Any:
        """The family's rules for this configuration."""
        return rules_of(load_family(self.kind), self.config)

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        """The kernels that can compute the model."""
        return {name: k for name, k in KERNELS.items() if name == "eager" or not caps_scores(self.ours.spec)}


def pair(
    kind: str,
    *,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    wide: bool = True,
    auto: str = "AutoModelForCausalLM",
    kernel: str = "eager",
    **config: Any,
) -> Pair:
    """Return a random reference and our model loaded from its configuration and the tensors of its file."""
    with oracle.widened(oracle.modelling(kind)) if wide else nullcontext():
        theirs = oracle.reference(kind, seed, dtype, auto=auto, kernel=kernel, **config)
    written = {**theirs.config.to_dict(), "architectures": [type(theirs).__name__]}
    family = load_family(kind)
    ours = spec_of(family, written).build(0).to(dtype).eval()
    load(ours, to_ours(oracle.file_of(theirs), rules_of(family, written), shapes_of(ours)))
    return Pair(kind, theirs, ours, wide, written)


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Return a model's tensors, each storage once under its first name: what a file holds."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def shapes_of(model: nn.Module) -> dict[str, torch.Size]:
    """Return the names and shapes of a model's tensors."""
    return {name: tensor.shape for name, tensor in weights_of(model).items()}


def load(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors into a model's parameters; tied ones have one name."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[name])


def error(a: Tensor, b: Tensor, where: Tensor | None = None) -> float:
    """Return max|a - b| / max(1, max|b|) over the places in ``where``."""
    if where is not None:
        a, b = a[where], b[where]
    return float((a - b).abs().max() / b.abs().max().clamp(min=1))


def assert_close(name: str, pair: Pair, ids: Tensor, a: Tensor, b: Tensor, bound: float, where: Any = None) -> None:
    """Fail with the error and the first tap that differs."""
    assert a.shape == b.shape, f"{pair.kind}: {name} has shape {list(a.shape)}, the reference {list(b.shape)}"
    difference = error(a, b, where)
    assert difference <= bound, (
        f"{pair.kind}: {name} differs by {difference:.2e} > {bound:.0e}; {first_difference(pair, ids)}"
    )


def first_difference(pair: Pair, ids: Tensor, bound: float = 1e-7) -> str:
    """Name the first tap, in the order of computation, at which the two models part."""
    seen: dict[str, Tensor] = {}

    def record(key: str, value: Tensor) -> Tensor:
        seen[key] = value
        return value

    try:
        with torch.no_grad():
            theirs = _reference_taps(pair, ids)
            pair.ours.logits(ids, taps=record)
    except UsageError as reason:  # an encoder-decoder takes two rows of ids: its own helper compares its taps
        return f"no taps were compared ({reason})"
    for key, value in seen.items():
        if key in theirs and error(value, theirs[key]) > bound:
            return f"first at {key}: {error(value, theirs[key]):.2e}"
    return "no tap of the plain forward differs"


PRE_NORM = {"gpt2", "llama", "mistral", "mixtral", "qwen2", "qwen3", "opt", "deepseek_v2", "deepseek_v3"}
"""Families whose attention and feed-forward modules put out exactly what is added to the stream."""


def _reference_taps(pair: Pair, ids: Tensor) -> Mapping[str, Tensor]:
    """Return what the reference's modules put out, under our tap keys; layers are its first list of modules."""
    taps: dict[str, Tensor] = {}
    modules = dict(pair.theirs.named_modules())
    layers = next(name for name, module in modules.items() if isinstance(module, nn.ModuleList))

    def first(value: Any) -> Tensor:
        return value[0] if isinstance(value, tuple) else value

    def keep(key: str) -> Any:
        return lambda module, inputs, output: taps.update({key: first(output)})

    def keep_input(module: nn.Module, args: Any, kwargs: Any) -> None:
        taps["embedded"] = args[0] if args else kwargs["hidden_states"]

    handles = [modules[f"{layers}.0"].register_forward_pre_hook(keep_input, with_kwargs=True)]
    for i, layer in enumerate(modules[layers]):
        handles.append(layer.register_forward_hook(keep(f"blocks.{i}.resid_post")))
        for name, child in layer.named_children() if pair.kind in PRE_NORM else ():
            if role := _role(name):
                handles.append(child.register_forward_hook(keep(f"blocks.{i}.{role}.added")))
    pair.reference(ids)
    for handle in handles:
        handle.remove()
    return taps


def _role(name: str) -> str | None:
    if re.fullmatch(r"(self_)?attn|(self_)?attention", name):
        return "attention"
    return "feed_forward" if re.fullmatch(r"mlp|ffn|feed_forward|block_sparse_moe", name) else None


def random_ids(*shape: int, vocabulary: int = 97, seed: int = 1) -> Tensor:
    """Return random ids that are no control tokens."""
    return torch.randint(3, vocabulary, shape, generator=torch.Generator().manual_seed(seed))


def assert_parity(
    kind: str, bound: float, *, dtype: torch.dtype = torch.float64, wide: bool = True, **config: Any
) -> Pair:
    """Check forward, masks, positions, cache, gradients, greedy tokens and the round trip against the reference."""
    both = pair(kind, dtype=dtype, wide=wide, **config)
    ids = random_ids(3, 14)
    with torch.no_grad():
        expected = both.reference(ids).logits
        for name, kernel in both.kernels.items():
            assert_close(f"forward ({name})", both, ids, both.ours.logits(ids, kernel=kernel), expected, bound)
        check_padding(both, ids, bound)
        if takes_positions(both) and both.kind not in FIRST_AT_ZERO:
            check_positions(both, ids, bound)
            check_holes(both, ids, bound)
        check_cache(both, ids, expected, bound)
        check_greedy(both, ids)
    check_gradients(both, ids, bound)
    check_round_trip(both)
    return both


FIRST_AT_ZERO = {"recurrent_gemma"}
"""Families whose reference takes a token for the first of a recurrence by its position; ours is the first there is."""


def takes_positions(both: Pair) -> bool:
    """Say whether the reference lets a caller name the positions; BLOOM, MPT and openai-gpt's kin do not."""
    return "position_ids" in signature(both.theirs.forward).parameters


def check_padding(both: Pair, ids: Tensor, bound: float) -> None:
    """Pad on either side."""
    sides = [("right", False), ("left", True)]
    if not both.wide and _reference_overflows(both):
        windows = any(mask.window is not None for mask in both.ours.stack.masks.values())
        sides = [] if windows else sides[:1]  # behind a window, padding on the right sees nothing either
    for side, flip in sides:
        real = torch.arange(14) < torch.tensor([[14], [9], [3]])
        real = real.flip(1) if flip else real
        positions = (real.long().cumsum(1) - 1).clamp(min=0)
        extra = {"position_ids": positions} if takes_positions(both) else {}
        masked = _rows_alone if reads_padding(both) else _masked
        expected = masked(both, ids, real, extra)
        for name, kernel in both.kernels.items():
            logits = both.ours.logits(ids, real=real, kernel=kernel)
            assert_close(f"{side} padding ({name})", both, ids, logits, expected, bound, real)


def reads_padding(both: Pair) -> bool:
    """Say whether the reference reads what is masked.

    RWKV's looks at no mask; the short convolutions of Mamba's kin and of RecurrentGemma read the bias of the projection
    before them, which they add to padding too.
    """
    return both.kind in ("rwkv", "recurrent_gemma") or any(
        both.config.get(key) for key in ("use_bias", "mamba_proj_bias", "conv_bias", "add_bias_linear")
    )


def _masked(both: Pair, ids: Tensor, real: Tensor, extra: Mapping[str, Tensor]) -> Tensor:
    logits: Tensor = both.reference(ids, attention_mask=real.long(), **extra).logits
    return logits


def _rows_alone(both: Pair, ids: Tensor, real: Tensor, extra: Mapping[str, Tensor]) -> Tensor:
    """Return the logits of each row's real tokens, which the reference is given without the others."""
    logits = torch.zeros(*ids.shape, both.config["vocab_size"], dtype=next(both.theirs.parameters()).dtype)
    for row, mine in enumerate(real):
        logits[row, mine] = both.reference(ids[row, mine][None]).logits[0]
    return logits


def _reference_overflows(both: Pair) -> bool:
    """Say whether the reference is NaN under left padding: its float64 mask overflows in its float32 softmax."""
    return next(both.theirs.parameters()).dtype == torch.float64


def check_positions(both: Pair, ids: Tensor, bound: float) -> None:
    """Name the positions."""
    positions = torch.arange(14)[None] + torch.tensor([[0], [5], [11]])
    expected = both.reference(ids, position_ids=positions).logits
    assert_close("explicit positions", both, ids, both.ours.logits(ids, positions=positions), expected, bound)


def check_holes(both: Pair, ids: Tensor, bound: float) -> None:
    """Hide tokens inside the rows: with the positions given, a window counts what is hidden, as the reference does."""
    if not both.wide and _reference_overflows(both):
        return
    if both.ours.stack.pasts:  # ours pass over what is hidden; the reference's states fade while it passes
        return
    real = torch.ones(3, 14, dtype=torch.bool)
    real[0, 4:6], real[1, [2, 7, 8, 9]], real[2, :3] = False, False, False
    positions = torch.arange(14).expand(3, -1)
    if both.config.get("alibi"):  # Falcon then counts real tokens, whatever positions it is given
        positions = (real.long().cumsum(1) - 1).clamp(min=0)
    expected = both.reference(ids, attention_mask=real.long(), position_ids=positions).logits
    for name, kernel in both.kernels.items():
        logits = both.ours.logits(ids, real=real, positions=positions, kernel=kernel)
        assert_close(f"holes ({name})", both, ids, logits, expected, bound, real)


def check_cache(both: Pair, ids: Tensor, expected: Tensor, bound: float) -> None:
    """Take one token after the other."""
    logits, session = both.ours.start(ids[:, :4], capacity=14)
    steps = [logits]
    for t in range(4, 14):
        logits = both.ours.step(ids[:, t : t + 1], session)
        steps.append(logits[:, 0])
    assert_close("cache, step by step", both, ids, torch.stack(steps, 1), expected[:, 3:], bound)


def check_greedy(both: Pair, ids: Tensor) -> None:
    """Write sixteen tokens, the reference without a cache, ours with one."""
    theirs = ours = ids[:, :4]
    logits, session = both.ours.start(ours, capacity=20)
    for _ in range(16):
        theirs = torch.cat([theirs, both.reference(theirs).logits[:, -1].argmax(-1, keepdim=True)], 1)
        token = logits.argmax(-1, keepdim=True)
        ours = torch.cat([ours, token], 1)
        if ours.shape[1] < 20:
            stepped = both.ours.step(token, session)
            logits = stepped[:, -1]
    assert torch.equal(ours, theirs), f"{both.kind}: greedy tokens differ"


def check_gradients(both: Pair, ids: Tensor, bound: float, *more: Tensor) -> None:
    """Compare the gradient of every parameter; ``more`` are the target ids of an encoder-decoder."""
    theirs, ours = answer_of(both.reference(ids, **_targets(more))), both.ours.logits(ids, *more)
    weight = torch.randn(ours.shape, generator=torch.Generator().manual_seed(2)).to(ours.dtype)
    (theirs * weight).sum().backward()
    (ours * weight).sum().backward()
    expected = to_ours(oracle.gradients_of(both.theirs), both.rules, shapes_of(both.ours))
    for name, parameter in both.ours.named_parameters():
        if parameter.requires_grad:  # without a gradient (an expert that no token reached) theirs must be zero
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            assert_close(f"gradient of {name}", both, ids, gradient, expected[name], bound)


OF_PAIRS = ("logits_per_image", "image_embeds", "text_embeds")
"""What the reference calls the answers of a dual encoder and of its sides alone."""


def answer_of(output: Any) -> Tensor:
    """Return the reference's main answer, whatever its class calls it, with an axis for the labels as ours has."""
    if "start_logits" in output:
        return torch.stack([output.start_logits, output.end_logits], -1)
    names = ("logits", "prediction_logits", *OF_PAIRS, "pooler_output", "last_hidden_state")
    answer = channels_last(output[next(name for name in names if name in output)], flat="logits" not in output)
    return answer[..., None] if type(output).__name__ == "ElectraForPreTrainingOutput" else answer


def channels_last(answer: Tensor, flat: bool = False) -> Tensor:
    """Return an answer for every place of a picture as ours has it: channels behind, and a stream in a row."""
    if answer.dim() != 4:
        return answer
    moved = answer.movedim(1, -1)
    return moved.flatten(1, 2) if flat else moved


def _targets(more: tuple[Tensor, ...]) -> dict[str, Tensor]:
    return {"decoder_input_ids": more[0]} if more else {}


def check_round_trip(both: Pair) -> None:
    """Compare what we would write with what the reference wrote, byte for byte."""
    theirs = oracle.file_of(both.theirs)
    back = to_theirs(weights_of(both.ours), both.rules)
    assert back.keys() == theirs.keys(), sorted(back.keys() ^ theirs.keys())
    assert all(torch.equal(back[name], theirs[name]) for name in theirs)
