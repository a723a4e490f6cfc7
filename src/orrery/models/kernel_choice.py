"""Which attention kernel can compute an architecture."""

from orrery.nn.attention.kernels import Kernel, eager, sdpa
from orrery.nn.attention.multihead import MultiHeadAttention, NoSinks, ScoreSettings
from orrery.nn.spec import ModuleSpec, Value, traverse


def default_kernel(spec: Value) -> Kernel:
    """Return the fused kernel, or the definition where an attention caps its scores, which the fused one cannot."""
    return eager if caps_scores(spec) else sdpa


def caps_scores(spec: Value) -> bool:
    """Say whether an attention of this architecture caps its scores."""
    return any(isinstance(part, ScoreSettings) and part.cap is not None for _, part in traverse(spec))


def keeps_pattern(spec: Value) -> bool:
    """Say whether the kernel that keeps the pattern can compute it: no caps, sinks or learned biases."""
    sinks = any(isinstance(p, MultiHeadAttention.Spec) and p.sinks != NoSinks.Spec() for _, p in traverse(spec))
    biases = any(isinstance(part, ModuleSpec) and part.learns_bias for _, part in traverse(spec))
    return not (caps_scores(spec) or sinks or biases)
