"""What one GPU does with Orrery: laws, training, decoding, memory, mixers, a run that goes on with the same bytes.

    python benchmarks/gpu.py --output benchmarks/gpu.json                (eight minutes on one card)
    python benchmarks/gpu.py --parts training decoding --seconds 60

Each part runs in a process of its own, with a time that it may take: what one breaks, and the memory that it leaves,
does not touch the next. Speeds stand beside what the card does at its best, measured here too: a copy in its memory,
and a product of bfloat16 matrices.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from _record import Record, parsed, parser

GPT2 = ("gpt2", {"vocab_size": 50_304, "n_positions": 1024, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0})
LLAMA_1B = (
    "llama",
    {
        "vocab_size": 32_000, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22,
        "num_attention_heads": 32, "num_key_value_heads": 4, "max_position_embeddings": 2048,
    },
)  # fmt: skip
TINY = ("gpt2", {"vocab_size": 128, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2})
TRAINED: Mapping[str, tuple[Any, int, int]] = {
    "gpt2-124m": (GPT2, 16, 1024),
    "llama-1.1b": (LLAMA_1B, 4, 2048),
    "tiny": (TINY, 2, 64),
}
"""Architecture, rows and tokens of a row."""


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    made.add_argument("--seconds", type=float, default=150, help="that each part may take")
    made.add_argument("--device", default="cuda")
    made.add_argument("--part", help="only this one, in this process; its findings are printed as JSON")
    options = parsed(made, {"device": "cpu"})
    if options.part:
        print("FOUND " + json.dumps(PARTS[options.part](options.device, options.small)), flush=True)
        return
    record, measured = Record(options), {}
    for name in options.parts:
        begin = time.perf_counter()
        measured[name] = apart(name, options.device, options.small, options.seconds)
        print(f"{name}: {time.perf_counter() - begin:.0f} s: {json.dumps(measured[name], indent=1)}", flush=True)
        record.write(measured)


def apart(name: str, device: str, small: bool, seconds: float) -> Any:
    """Return what a part finds in a process of its own, or how it ended."""
    command = [sys.executable, __file__, "--part", name, "--device", device, *["--small"] * small]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        said, ended = done.stdout, done.returncode
        last = (done.stdout + done.stderr)[-1500:]
    except subprocess.TimeoutExpired as late:
        said = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
        ended, last = f"took longer than {seconds:.0f} s", said[-800:]
    lines = [line for line in said.splitlines() if line.startswith("FOUND ")]
    if lines:
        return json.loads(lines[-1].removeprefix("FOUND "))
    return {"ended": ended, "last": last}


def settled(device: str) -> None:
    """Wait until the card has done what it was asked for."""
    if device != "cpu":
        torch.cuda.synchronize()


def timed(run: Callable[[], Any], device: str, rounds: int, warm: int = 3) -> float:
    """Return the median of the seconds that a call takes."""
    for _ in range(warm):
        run()
    seconds = []
    for _ in range(rounds):
        settled(device)
        begin = time.perf_counter()
        run()
        settled(device)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def best(device: str, small: bool) -> dict[str, Any]:
    """What the card is, and what it does at its best: bytes copied, and products."""
    size, side = (2**20, 256) if small else (2**31, 8192)
    x = torch.empty(size, dtype=torch.uint8, device=device)
    y = torch.empty_like(x)
    seconds = timed(lambda: y.copy_(x), device, 10)
    a, b = (torch.randn(side, side, dtype=torch.bfloat16, device=device) for _ in range(2))
    product = timed(lambda: a @ b, device, 10)
    return {
        "card": "cpu" if device == "cpu" else torch.cuda.get_device_name(),
        "copied_gb_s": round(2 * size / seconds / 1e9, 1),
        "bfloat16_tflops": round(2 * side**3 / product / 1e12, 1),
    }


def training(device: str, small: bool) -> dict[str, Any]:
    """Steps of training by our loop's own step: share of the card's products, tokens, memory beside the plan."""
    return trainings(device, small, "plain")


def compiled(device: str, small: bool) -> dict[str, Any]:
    """The same with each block compiled by torch, which no recipe asks for yet."""
    return trainings(device, small, "blocks compiled")


def trainings(device: str, small: bool, way: str) -> dict[str, Any]:
    """Time the steps of every model, one way."""
    highest = best(device, small)["bfloat16_tflops"]
    by_name: dict[str, Any] = {}
    for name in ["tiny"] if small else ["gpt2-124m", "llama-1.1b"]:
        try:
            by_name[name] = train(name, device, way, highest)
        except Exception as error:
            by_name[name] = {"failed": f"{type(error).__name__}: {str(error)[-300:]}"}
        print(f"FOUND {json.dumps(by_name)}", flush=True)
        if device != "cpu":
            torch.cuda.empty_cache()
    return by_name


def train(name: str, device: str, way: str, highest: float) -> dict[str, Any]:
    """Time the steps of one model."""
    from orrery.families import load_family
    from orrery.kernels.processor import this_processor
    from orrery.models.initialise import initialise
    from orrery.objectives.causal import CausalLanguageModel
    from orrery.planning.plan import plan
    from orrery.runs.building import training_kernel
    from orrery.training.distributed import Alone
    from orrery.training.precision import choose_precision
    from orrery.training.step import accumulate

    (family, config), rows, length = TRAINED[name]
    spec = load_family(family).spec(config)
    model = spec.build(0)
    initialise(model, depth=len(model.stack.blocks), seed=1)
    model.kernel = training_kernel(spec, device)
    model.to(device).train()
    if way == "blocks compiled":
        for block in model.stack.blocks:
            block.compile()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    precision = choose_precision("bfloat16", device, this_processor(), torch.get_num_threads())
    ids = torch.randint(spec.vocabulary, (rows, length + 1)).to(device)
    batch, objective = {"ids": ids[:, :-1].contiguous(), "targets": ids[:, 1:].contiguous()}, CausalLanguageModel()
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        accumulate(
            model, objective, batch, micro_batch=None, seed=(1, 1), ranks=Alone(), precision=precision
        )  # fmt: skip
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    seconds = timed(step, device, 10, warm=5)
    planned = plan(spec, rows=rows, length=length)
    rate = planned.cost.training.total / seconds / 1e12
    measured = {
        "seconds": round(seconds, 4),
        "tokens_s": round(rows * length / seconds),
        "tflops": round(rate, 1),
        "of_the_best_product": round(rate / highest, 3),
        "planned_gb": round(planned.memory / 1e9, 2),
    }
    if device != "cpu":
        measured["peak_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
        measured["busy"] = busiest(step)
    return measured


def busiest(run: Callable[[], Any]) -> dict[str, Any]:
    """Return how much of a step the card computes, and the kernels that take most of it."""
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    begin = time.perf_counter()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        run()
        torch.cuda.synchronize()
    whole = time.perf_counter() - begin
    rows = sorted(seen.key_averages(), key=lambda row: -row.self_device_time_total)
    total = sum(row.self_device_time_total for row in rows) / 1e6
    most = {row.key[:60]: [row.count, round(row.self_device_time_total / 1e3, 2)] for row in rows[:10]}
    return {"kernels_s": round(total, 4), "with_profiler_s": round(whole, 4), "kernels": most}


def decoding(device: str, small: bool) -> dict[str, Any]:
    """One row of a Llama of 430 million parameters in bfloat16, and more, beside transformers."""
    from orrery.exchange.reading.placement import place
    from orrery.exchange.reading.read import read
    from orrery.studies.bench.generating import step_bytes
    from orrery.studies.bench.rounds import Case
    from orrery.studies.bench.shapes import make_model
    from orrery.studies.bench.subjects import Orrery

    bandwidth = best(device, small)["copied_gb_s"]
    shape, new = ("gpt2-tiny", 4) if small else ("llama-430m", 64)
    by_name: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = make_model(shape, Path(made), torch.bfloat16, lambda line: None)
        stored = read(folder)
        place(stored.model, torch.device(device), "bfloat16")
        for kernel in ("eager", "compiled"):
            for rows in (1, 8, 64):
                subject = Orrery(replace(stored, kernel=kernel))
                prompts = Case(rows, 32, new).prompts(290)
                name, size = f"{kernel}, {rows} rows", step_bytes(stored.model, Case(rows, 32, new))
                try:
                    subject.write(prompts, 4)
                    seconds = timed(lambda s=subject, p=prompts: s.write(p, new), device, 3, warm=1)
                except Exception as error:
                    by_name[name] = {"failed": f"{type(error).__name__}: {str(error)[-300:]}"}
                    continue
                by_name[name] = {
                    "tokens_s": round(rows * new / seconds),
                    "of_the_bandwidth": round(size * new / seconds / 1e9 / bandwidth, 3),
                }
        try:
            by_name["transformers, 1 rows"] = peer(folder, device, new)
        except Exception as error:
            by_name["transformers, 1 rows"] = {"failed": f"{type(error).__name__}: {str(error)[-300:]}"}
    return by_name


def peer(folder: Path, device: str, new: int) -> dict[str, Any]:
    """The same by transformers as it comes."""
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).to(device).eval()
    ids = torch.arange(32, device=device)[None]
    how = {"max_new_tokens": new, "min_new_tokens": new, "do_sample": False, "pad_token_id": 0}
    seconds = timed(lambda: model.generate(ids, attention_mask=torch.ones_like(ids), **how), device, 3, warm=1)
    return {"tokens_s": round(new / seconds)}


def laws(device: str, small: bool) -> dict[str, Any]:
    """Every law of `orrery verify`, with the models on the card."""
    from orrery.laws.registry import verify
    from orrery.laws.workers import cores

    begin = time.perf_counter()
    chosen = {"family": "gpt2"} if small else {"workers": min(8, cores())}
    report = verify(device=device, **chosen)
    wrong = [one for one in report.checks if not one.passed]
    by_name: dict[str, list[str]] = {}
    for one in wrong:
        by_name.setdefault(f"{one.law}: {one.name}"[:300], []).append(one.family)
    return {
        "checks": len(report.checks),
        "failed": len(wrong),
        "seconds": round(time.perf_counter() - begin, 1),
        "which": dict(sorted(by_name.items(), key=lambda item: -len(item[1]))[:40]),
    }


def mixers(device: str, small: bool) -> dict[str, Any]:
    """Attention and what came after it, by the length of the row: seconds forward, and of training."""
    import mixer_lengths as of_lengths

    models = {
        name: of_lengths.one_block(name, config).to(device)
        for name, config in {"llama": of_lengths.ATTENTION, **of_lengths.STATES}.items()
    }
    by_length: dict[str, Any] = {}
    for length in (64,) if small else (1024, 4096, 16384, 32768):
        ids = torch.randint(of_lengths.VOCABULARY, (1, length)).to(device)
        for name, model in models.items():
            for way, run in (("forward", of_lengths.forward), ("training", of_lengths.training)):
                try:
                    seconds = timed(lambda r=run, m=model, i=ids: r(m, i), device, 3, warm=1)
                    by_length.setdefault(f"{way} {length}", {})[name] = round(1000 * seconds, 2)
                except Exception as error:
                    by_length.setdefault("failed", {})[f"{name} {way} {length}"] = str(error)[-200:]
        print(f"FOUND {json.dumps(by_length)}", flush=True)
    return by_length


def going_on(device: str, small: bool) -> dict[str, Any]:
    """A run that is begun again in its middle beside one that is not: whether the weights are the same bytes."""
    text = "".join(f"{n} and {n * n} are said.\n" for n in range(3000))
    lines = (
        "name: again\nseed: 1\nmodel:\n  family: llama\n  config: {hidden_size: 64, intermediate_size: 128,"
        " num_hidden_layers: 2, num_attention_heads: 4, max_position_embeddings: 64}\n  dropout: 0.1\n"
        "tokenizer: {kind: character}\ndata: {train: text.txt}\nbatches: {kind: crops, length: 64, size: 8}\n"
        "objective: {kind: causal}\ntraining: {steps: 40, device: DEVICE,"
        " optimizer: {kind: adamw, rate: 0.003}, schedule: {kind: constant}}\n"
        "checkpoints: {every: 20}\n"
    )
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "text.txt").write_text(text, encoding="utf-8")

        recipe = folder / "again.yaml"
        recipe.write_text(lines.replace("DEVICE", device), encoding="utf-8")

        def run(*words: str) -> str:
            command = [sys.executable, "-m", "orrery", "train", *words]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            return "" if done.returncode == 0 else (done.stdout + done.stderr)[-700:]

        said = [
            run("again.yaml", "--output", "whole"),
            run("again.yaml", "--output", "twice"),
            run("again.yaml", "--output", "parts", "--training.steps", "20"),
            run("parts", "--resume", "--training.steps", "40"),
        ]
        if any(said):
            return {"ended": [one for one in said if one]}
        weights = {name: weights_of(folder / name) for name in ("whole", "parts", "twice")}
        return {
            "resumed_equal": weights["parts"] == weights["whole"],
            "repeated_equal": weights["twice"] == weights["whole"],
        }


def weights_of(folder: Path) -> str:
    """Return a sum over the bytes of the weights of a run."""
    import hashlib

    files = sorted(folder.rglob("*.safetensors"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files[-1:])).hexdigest()


PARTS: Mapping[str, Callable[[str, bool], Any]] = {
    "best": best,
    "laws": laws,
    "training": training,
    "compiled": compiled,
    "decoding": decoding,
    "mixers": mixers,
    "going_on": going_on,
}

if __name__ == "__main__":
    main()
