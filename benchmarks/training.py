"""Training speed beside nanoGPT and transformers: 6 layers, 384 wide, context 256, batch 12, no dropout.

    git clone https://github.com/karpathy/nanoGPT ../nanoGPT && git -C ../nanoGPT checkout 3adf61e
    .venv/bin/python benchmarks/training.py --nanogpt ../nanoGPT --text INPUT.TXT --output benchmarks/training.json

Every program is a process of its own, as when it is started alone, so that what one asks of the C library for its
memory is nobody else's. It starts from the same weights, sees the same batches and takes one step in turn, so that a
change of the machine's speed meets all of them; a ratio is the median over rounds of the ratio within a round. The
last rows relate our step to the plain matrix products of the model, measured alone at the model's own shapes, forward
and backward.

Each peer stands twice: as it comes (float32, the AdamW that torch makes where nothing is said, nanoGPT's own), and
alike (the same numbers as ours and the fused AdamW that our recipes choose), so that what is our arithmetic and what is
only our default can be told apart. The losses of all steps are compared.
"""

import argparse
import importlib.util
import math
import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from _apart import Apart
from _record import Record, parsed, parser
from torch import Tensor, nn

from orrery.checkpoints.rules import to_ours
from orrery.families import load_family
from orrery.kernels.bfloat16_linear import take_fast_products
from orrery.kernels.processor import this_processor
from orrery.nn.joined_linear import join_layers
from orrery.objectives.causal import CausalLanguageModel
from orrery.runs.building import training_kernel
from orrery.training.compiled_blocks import compile_blocks
from orrery.training.distributed import Alone
from orrery.training.freed_memory import keep_freed_memory
from orrery.training.precision import choose_precision
from orrery.training.step import accumulate

LAYERS, HEADS, WIDTH, CONTEXT, BATCH, VOCABULARY = 6, 6, 384, 256, 12, 65
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


def ours(weights: dict[str, Tensor], requested: str, compiled: bool = False) -> Step:
    """Our training loop's own step, in the precision that it chooses, with `parallel.compile` where asked for."""
    family = load_family("gpt2")
    spec = family.spec(CONFIG)
    model = spec.build(0)
    model.kernel = training_kernel(spec, "cpu")
    shapes = {name: p.shape for name, p in model.named_parameters()}
    named = to_ours(weights, family.WEIGHTS, shapes)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(named[name])
    keep_freed_memory()
    join_layers(model, "cpu")
    take_fast_products(model, "cpu", this_processor())
    if compiled:
        compile_blocks(model, "cpu")
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


def nanogpt(folder: Path, weights: dict[str, Tensor], narrow: bool, fused: bool, compiled: bool = False) -> Step:
    """The model of nanoGPT, with its autocast context where ``narrow``; its own optimizer where that is not fused."""
    module_spec = importlib.util.spec_from_file_location("nanogpt_model", folder / "model.py")
    assert module_spec is not None
    assert module_spec.loader is not None
    module = sys.modules["nanogpt_model"] = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    config = module.GPTConfig(CONTEXT, VOCABULARY, LAYERS, HEADS, WIDTH, 0.0, True)
    model: Any = module.GPT(config)
    turned = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    model.load_state_dict({n: (w.T if n.endswith(turned) else w) for n, w in weights.items()}, strict=False)
    own = adamw(list(model.parameters()), fused=True) if fused else None
    optimizer = own or model.configure_optimizers(DECAY, RATE, BETAS, "cpu")
    run = torch.compile(model) if compiled else model

    def step(x: Tensor, y: Tensor) -> float:
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            _, loss = run(x, y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step


def by_transformers(weights: dict[str, Tensor], narrow: bool, fused: bool) -> Step:
    """The model of the reference library, in float32 or under autocast, its own loss, torch's AdamW."""
    import transformers

    model: Any = transformers.GPT2LMHeadModel(transformers.GPT2Config(**CONFIG))
    model.load_state_dict(weights, strict=False)
    optimizer = adamw(list(model.parameters()), fused=fused)

    def step(x: Tensor, y: Tensor) -> float:
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            logits = model(x).logits
        loss = F.cross_entropy(logits.float().view(-1, VOCABULARY), y.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

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


def product_seconds(dtype: torch.dtype, tokens: int) -> float:
    """Return the seconds that a step's linear products take alone: forward, to the input, to the weight."""
    shapes = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
    total = 0.0
    for inputs, outputs in shapes:
        x, w, g = (torch.randn(s, dtype=dtype) for s in ((tokens, inputs), (outputs, inputs), (tokens, outputs)))
        for product in (lambda x=x, w=w: F.linear(x, w), lambda g=g, w=w: g @ w, lambda g=g, x=x: g.T @ x):
            product()
            times = []
            for _ in range(7):
                start = time.perf_counter()
                product()
                times.append(time.perf_counter() - start)
            total += statistics.median(times)
    return total * LAYERS


def batches(text: str, count: int, rows: int) -> list[tuple[Tensor, Tensor]]:
    """Return random crops of a text, one character a token."""
    known = {c: i for i, c in enumerate(sorted(set(text))[:VOCABULARY])}
    ids, rng = torch.tensor([known.get(c, 0) for c in text]), torch.Generator().manual_seed(2)
    starts = torch.randint(len(ids) - CONTEXT - 1, (count, rows), generator=rng)
    crops = torch.stack([torch.stack([ids[s : s + CONTEXT + 1] for s in row]) for row in starts])
    return [(crop[:, :-1].contiguous(), crop[:, 1:].contiguous()) for crop in crops]


def compare(made: Mapping[str, Callable[[], Step]], data: list[tuple[Tensor, Tensor]]) -> tuple[dict, dict]:
    """Take one step of each program in turn; return their times, without the warm-up, and their losses."""
    times: dict[str, list[float]] = {name: [] for name in made}
    losses: dict[str, list[float]] = {name: [] for name in made}
    with ExitStack() as stack:
        steps = {name: stack.enter_context(Apart(partial(on_arrays, each))) for name, each in made.items()}
        for round_, batch in enumerate(data):
            for name, program in steps.items():
                loss, seconds = program.step(*(each.numpy() for each in batch))
                losses[name].append(loss)
                if round_ >= 2:
                    times[name].append(seconds)
            print(f"\rround {round_ + 1} of {len(data)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return times, losses


def on_arrays(make: Callable[[], Step]) -> Callable[..., float]:
    """Return what takes a step on arrays, as another process gets them."""
    step = make()
    return lambda x, y: step(torch.from_numpy(x), torch.from_numpy(y))


def contenders(options: argparse.Namespace) -> dict[str, Callable[[], Step]]:
    """Return what makes each that takes steps, by name; those alike name the AdamW that is not theirs."""
    weights = initial_weights()
    made: dict[str, Callable[[], Step]] = {
        "orrery float32": partial(ours, weights, "float32"),
        "orrery bfloat16": partial(ours, weights, "bfloat16"),
        "transformers float32": partial(by_transformers, weights, narrow=False, fused=False),
        "transformers float32, fused": partial(by_transformers, weights, narrow=False, fused=True),
        "transformers bfloat16, fused": partial(by_transformers, weights, narrow=True, fused=True),
    }
    if options.nanogpt is not None:
        peer = partial(nanogpt, options.nanogpt, weights)
        for kind, narrow in (("float32", False), ("bfloat16", True)):
            for name, fused in (("", False), (", fused", True)):
                made[f"nanoGPT {kind}{name}"] = partial(peer, narrow, fused)
    if options.compiled:
        for kind in ("float32", "bfloat16"):
            made[f"orrery {kind}, compiled"] = partial(ours, weights, kind, compiled=True)
    if options.compiled and options.nanogpt is not None:
        made["nanoGPT compiled bfloat16"] = partial(peer, narrow=True, fused=False, compiled=True)
    return made


def ratios_of(times: dict[str, list[float]]) -> dict[str, dict[str, Any]]:
    """Return how many times as fast we are: alike, in the same numbers and with the same AdamW, and as it comes."""
    default = f"orrery {choose_precision('auto', 'cpu', this_processor(), torch.get_num_threads()).dtype}"
    pairs = {}
    for name in times:
        kind = "bfloat16" if "bfloat16" in name else "float32"
        if not name.startswith("orrery"):
            pairs[f"alike: {name}" if "fused" in name else f"same numbers: {name}"] = (f"orrery {kind}", name)
        if name.endswith(", compiled"):
            pairs[f"compiled: {kind}"] = (name, f"orrery {kind}")
        elif not name.startswith("orrery"):
            pairs[f"compiled, beside {name}"] = (f"orrery {kind}, compiled", name)
        if not name.startswith("orrery") and name.endswith(" float32"):
            pairs[f"as it comes: {name}"] = (default, name)
    by_title = {}
    for title, (mine, peer) in pairs.items():
        if mine not in times:
            continue
        ratios = sorted(b / a for a, b in zip(times[mine], times[peer], strict=True))
        middle = statistics.median(ratios)
        by_title[title] = {"of": f"{mine} / {peer}", "ratio": middle, "lowest": ratios[0], "highest": ratios[-1]}
        print(f"{title}: {mine} is {middle:.2f} times as fast  [{ratios[0]:.2f} to {ratios[-1]:.2f}]")
    return by_title


def apart(losses: dict[str, list[float]]) -> dict[str, float]:
    """Return the largest difference between a peer's losses and ours in the same numbers, over all steps."""
    differences = {}
    for name, own in losses.items():
        mine = losses.get("orrery bfloat16" if "bfloat16" in name else "orrery float32", own)
        if own is not mine:
            differences[name] = max(abs(x - y) for x, y in zip(mine, own, strict=True))
    return differences


def shares(times: dict[str, list[float]], tokens: int) -> dict[str, float]:
    """Return which share of our step the plain matrix products are."""
    kinds = {"orrery float32": torch.float32, "orrery bfloat16": torch.bfloat16}
    return {
        name: product_seconds(kind, tokens) / statistics.median(times[name])
        for name, kind in kinds.items()
        if name in times
    }


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--nanogpt", type=Path, help="a checkout of nanoGPT")
    made.add_argument("--text", type=Path, help="tiny Shakespeare's input.txt")
    made.add_argument("--rounds", type=int, default=14)
    made.add_argument("--rows", type=int, default=BATCH, help="of a batch")
    made.add_argument("--only", default="", help="the steps whose names hold these words, as a regular expression")
    made.add_argument("--compiled", action="store_true", help="also ours and nanoGPT's under torch.compile; needs g++")
    options = parsed(made, {"rounds": 3, "rows": 1}, needs=("text",))
    record = Record(options, ["transformers"])
    text = options.text.read_text(encoding="utf-8") if options.text else "to be or not to be, " * 100
    programs = {name: each for name, each in contenders(options).items() if re.search(options.only, name)}
    times, losses = compare(programs, batches(text, options.rounds, options.rows))
    tokens = options.rows * CONTEXT
    numbers: dict[str, Any] = {"rounds": options.rounds, "rows": options.rows}
    numbers["tokens_per_second"] = {name: tokens / statistics.median(own) for name, own in times.items()}
    for name, rate in numbers["tokens_per_second"].items():
        print(f"{name:28}{rate:8,.0f} tokens/s   loss {losses[name][0]:.4f} -> {losses[name][-1]:.4f}")
    numbers["ratios"] = ratios_of(times)
    numbers["products' share of the step"] = shares(times, tokens)
    numbers["losses"] = {name: [own[0], own[1], own[-1]] for name, own in losses.items()}
    numbers["largest loss difference"] = apart(losses)
    print(f"largest difference of the loss over all steps: {numbers['largest loss difference']}")
    record.write(numbers)


if __name__ == "__main__":
    main()
