"""Training speed beside nanoGPT and transformers: 6 layers, 384 wide, context 256, batch 12, no dropout.

    git clone https://github.com/karpathy/nanoGPT ../nanoGPT && git -C ../nanoGPT checkout 3adf61e
    .venv/bin/python benchmarks/training.py --nanogpt ../nanoGPT

Every contender starts from the same weights, sees the same batches and takes one step in turn, so that a change of the
machine's speed meets all of them; a ratio is the median over rounds of the ratio within a round. The last rows relate
our step to the plain matrix products of the model, measured alone at the model's own shapes, forward and backward.
"""

import argparse
import importlib.util
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from orrery.checkpoints.rules import to_ours
from orrery.families import load_family
from orrery.kernels.processor import this_processor
from orrery.objectives.causal import CausalLanguageModel
from orrery.training.building import training_kernel
from orrery.training.distributed import Alone
from orrery.training.precision import choose_precision
from orrery.training.step import accumulate

LAYERS, HEADS, WIDTH, CONTEXT, BATCH, VOCABULARY = 6, 6, 384, 256, 12, 65
TOKENS = BATCH * CONTEXT
RATE, BETAS, DECAY, CLIP = 1e-3, (0.9, 0.99), 0.1, 1.0
CONFIG = {
    "vocab_size": VOCABULARY, "n_positions": CONTEXT, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS,
    "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "activation_function": "gelu",
}  # fmt: skip
Step = Callable[[Tensor, Tensor], float]


def adamw(parameters: list[nn.Parameter], fused: bool) -> torch.optim.AdamW:
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": DECAY},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=RATE, betas=BETAS, fused=fused)


def ours(weights: dict[str, Tensor], requested: str) -> Step:
    """Our training loop's own step, in the precision that it chooses."""
    family = load_family("gpt2")
    spec = family.spec(CONFIG)
    model = spec.build(0)
    model.kernel = training_kernel(spec, "cpu")
    shapes = {name: p.shape for name, p in model.named_parameters()}
    named = to_ours(weights, family.WEIGHTS, shapes)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(named[name])
    optimizer = adamw(list(model.parameters()), fused=True)
    precision = choose_precision(requested, "cpu", this_processor(), torch.get_num_threads())
    objective, calls = CausalLanguageModel(), [0]

    def step(x: Tensor, y: Tensor) -> float:
        calls[0] += 1
        optimizer.zero_grad(set_to_none=True)
        loss = accumulate(
            model, objective, {"ids": x, "targets": y}, micro_batch=None, seed=(1, calls[0]), ranks=Alone(),
            precision=precision,
        )  # fmt: skip
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        return loss.loss

    return step


def nanogpt(folder: Path, weights: dict[str, Tensor], narrow: bool, compiled: bool = False) -> Step:
    """The model and optimizer of nanoGPT, with its autocast context where ``narrow``."""
    module_spec = importlib.util.spec_from_file_location("nanogpt_model", folder / "model.py")
    assert module_spec is not None
    assert module_spec.loader is not None
    module = sys.modules["nanogpt_model"] = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    config = module.GPTConfig(CONTEXT, VOCABULARY, LAYERS, HEADS, WIDTH, 0.0, True)
    model: Any = module.GPT(config)
    turned = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    model.load_state_dict({n: (w.T if n.endswith(turned) else w) for n, w in weights.items()}, strict=False)
    optimizer = model.configure_optimizers(DECAY, RATE, BETAS, "cpu")
    run = torch.compile(model) if compiled else model

    def step(x: Tensor, y: Tensor) -> float:
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            _, loss = run(x, y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss)

    return step


def transformers_default(weights: dict[str, Tensor]) -> Step:
    """The reference library as it comes: float32, its own loss, torch's AdamW."""
    import transformers

    model: Any = transformers.GPT2LMHeadModel(transformers.GPT2Config(**CONFIG))
    model.load_state_dict(weights, strict=False)
    optimizer = adamw(list(model.parameters()), fused=False)

    def step(x: Tensor, y: Tensor) -> float:
        loss = F.cross_entropy(model(x).logits.view(-1, VOCABULARY), y.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss)

    return step


def initial_weights() -> dict[str, Tensor]:
    """Return one random initialisation under the published names, as GPT-2 draws it."""
    rng = torch.Generator().manual_seed(1)

    def normal(*shape: int, deviation: float = 0.02) -> Tensor:
        return torch.randn(shape, generator=rng) * deviation

    into = 0.02 / math.sqrt(2 * LAYERS)
    weights = {"transformer.wte.weight": normal(VOCABULARY, WIDTH), "transformer.wpe.weight": normal(CONTEXT, WIDTH)}
    for i in range(LAYERS):
        at = f"transformer.h.{i}"
        shapes = {"attn.c_attn": (WIDTH, 3 * WIDTH), "attn.c_proj": (WIDTH, WIDTH)}
        shapes |= {"mlp.c_fc": (WIDTH, 4 * WIDTH), "mlp.c_proj": (4 * WIDTH, WIDTH)}
        for name, shape in shapes.items():
            weights[f"{at}.{name}.weight"] = normal(*shape, deviation=into if name.endswith("c_proj") else 0.02)
            weights[f"{at}.{name}.bias"] = torch.zeros(shape[1])
        for norm in ("ln_1", "ln_2"):
            weights[f"{at}.{norm}.weight"], weights[f"{at}.{norm}.bias"] = torch.ones(WIDTH), torch.zeros(WIDTH)
    weights["transformer.ln_f.weight"], weights["transformer.ln_f.bias"] = torch.ones(WIDTH), torch.zeros(WIDTH)
    return weights


def product_seconds(dtype: torch.dtype) -> float:
    """Return the seconds that a step's linear products take alone: forward, to the input, to the weight."""
    shapes = [(WIDTH, WIDTH)] * 4 + [(WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
    total = 0.0
    for inputs, outputs in shapes:
        x, w, g = (torch.randn(s, dtype=dtype) for s in ((TOKENS, inputs), (outputs, inputs), (TOKENS, outputs)))
        for product in (lambda x=x, w=w: F.linear(x, w), lambda g=g, w=w: g @ w, lambda g=g, x=x: g.T @ x):
            product()
            times = []
            for _ in range(7):
                start = time.perf_counter()
                product()
                times.append(time.perf_counter() - start)
            total += statistics.median(times)
    return total * LAYERS


def batches(text: Path, count: int) -> list[tuple[Tensor, Tensor]]:
    """Return random crops of a text, one character a token."""
    content = text.read_text()
    known = {c: i for i, c in enumerate(sorted(set(content)))}
    ids, rng = torch.tensor([known[c] for c in content]), torch.Generator().manual_seed(2)
    starts = torch.randint(len(ids) - CONTEXT - 1, (count, BATCH), generator=rng)
    crops = torch.stack([torch.stack([ids[s : s + CONTEXT + 1] for s in row]) for row in starts])
    return [(crop[:, :-1].contiguous(), crop[:, 1:].contiguous()) for crop in crops]


def compare(steps: dict[str, Step], data: list[tuple[Tensor, Tensor]]) -> tuple[dict, dict]:
    """Take one step of each contender in turn; return their times, without the warm-up, and their losses."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    losses: dict[str, list[float]] = {name: [] for name in steps}
    for round_, (x, y) in enumerate(data):
        for name, step in steps.items():
            start = time.perf_counter()
            losses[name].append(step(x, y))
            if round_ >= 2:
                times[name].append(time.perf_counter() - start)
        print(f"\rround {round_ + 1} of {len(data)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return times, losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nanogpt", type=Path, required=True, help="a checkout of nanoGPT")
    parser.add_argument("--text", type=Path, required=True, help="tiny Shakespeare's input.txt")
    parser.add_argument("--rounds", type=int, default=14)
    parser.add_argument("--compiled", action="store_true", help="also nanoGPT under torch.compile; needs g++")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    weights = initial_weights()
    steps = {
        "orrery float32": ours(weights, "float32"),
        "nanoGPT float32": nanogpt(options.nanogpt, weights, narrow=False),
        "orrery bfloat16": ours(weights, "bfloat16"),
        "nanoGPT bfloat16": nanogpt(options.nanogpt, weights, narrow=True),
        "transformers float32": transformers_default(weights),
    }
    if options.compiled:
        steps["nanoGPT compiled bfloat16"] = nanogpt(options.nanogpt, weights, narrow=True, compiled=True)
    times, losses = compare(steps, batches(options.text, options.rounds))
    default = f"orrery {choose_precision('auto', 'cpu', this_processor(), torch.get_num_threads()).dtype}"
    pairs = [
        ("float32", "orrery float32", "nanoGPT float32", 1.7),
        ("bfloat16", "orrery bfloat16", "nanoGPT bfloat16", 1.2),
        ("defaults", default, "nanoGPT float32", 2.5),
        ("defaults", default, "transformers float32", 2.5),
    ]
    result: dict[str, Any] = {"tokens_per_second": {n: TOKENS / statistics.median(t) for n, t in times.items()}}
    for name, rate in result["tokens_per_second"].items():
        print(f"{name:28}{rate:8,.0f} tokens/s   loss {losses[name][0]:.4f} -> {losses[name][-1]:.4f}")
    result["ratios"] = {}
    for kind, mine, peer, goal in pairs:
        ratios = sorted(b / a for a, b in zip(times[mine], times[peer], strict=True))
        middle = statistics.median(ratios)
        result["ratios"][f"{kind}: {mine} / {peer}"] = middle
        print(f"{kind:10}{mine} / {peer}: {middle:.2f}x  [{ratios[0]:.2f} to {ratios[-1]:.2f}]  goal {goal}x")
    for dtype, name in ((torch.float32, "orrery float32"), (torch.bfloat16, "orrery bfloat16")):
        share = product_seconds(dtype) / statistics.median(times[name])
        result["ratios"][f"products' share of the step, {name}"] = share
        print(f"{name}: the linear products alone are {share:.0%} of the step")
    for a, b in (("orrery float32", "nanoGPT float32"), ("orrery bfloat16", "nanoGPT bfloat16")):
        worst = max(abs(x - y) for x, y in zip(losses[a], losses[b], strict=True))
        result["ratios"][f"largest loss difference, {a} and {b}"] = worst
        print(f"largest difference of the loss, {a} and {b}: {worst:.1e}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
