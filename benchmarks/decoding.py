"""Decoding speed on a CPU beside transformers and llama.cpp: the same random weights, threads and prompts.

    .venv/bin/python benchmarks/decoding.py --minutes 12

A Llama-like model of 430 million parameters (24 layers, 1,024 wide, 16 heads over 4, 4,096 hidden, vocabulary 32,000,
untied) in bfloat16 and GPT-2 124M in both precisions, one row and batches. Contenders take turns within a round, and so
does a probe of the memory's bandwidth, so that a change of the machine's speed meets all of them; a ratio is the median
over rounds of the ratio within a round. Rates are end to end: new tokens over the time of the call, prompt and all.

The share of the bandwidth counts the bytes of the matrices that a token reads, over the best probe of the same rounds.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

PROMPT, NEW = 32, 48
LLAMA = {
    "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
    "num_key_value_heads": 4, "vocab_size": 32000, "max_position_embeddings": 2048, "tie_word_embeddings": False,
}  # fmt: skip
GPT2: dict[str, Any] = {"vocab_size": 50257, "n_positions": 1024}
SERVER = """
import sys, xllamacpp
s = xllamacpp.CommonParams()
s.model.path, s.n_ctx, s.n_parallel, s.verbosity = sys.argv[1], 1024, 1, 0
s.warmup, s.fit_params, s.cache_prompt = True, False, False
s.cpuparams.n_threads = s.cpuparams_batch.n_threads = int(sys.argv[2])
server = xllamacpp.Server(s)
print(f"\\n{server.listening_address}", flush=True)
sys.stdin.read()
"""
Contender = Callable[[], float]
"""Takes a turn and returns its new tokens a second."""


def made(folder: Path, family: str, dtype: torch.dtype) -> Path:
    """Save a random model in the Hugging Face layout, with a byte-level tokenizer, and return its folder."""
    from orrery.families import load_family
    from orrery.saving.save import save_model

    config = {**(LLAMA if family == "llama" else GPT2), "bos_token_id": 0, "eos_token_id": 0}
    torch.manual_seed(1)
    model = load_family(family).spec(config).build(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.02)
    save_model(folder, model.to(dtype), family, config, tokenizer(config["vocab_size"]))
    return folder


def tokenizer(size: int) -> Any:
    """A byte-level tokenizer of so many tokens: all bytes, and pairs of them."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers

    from orrery.text.tokenizer import Tokenizer

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = [(a, b) for a in alphabet for b in alphabet][: size - len(alphabet)]
    vocabulary = {piece: id for id, piece in enumerate([*alphabet, *(a + b for a, b in pairs)])}
    made = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return Tokenizer(made.to_str())


def prompts(rows: int) -> list[list[int]]:
    rng = torch.Generator().manual_seed(7)
    return torch.randint(0, 290, (rows, PROMPT), generator=rng).tolist()


def timed(call: Callable[[], Any], tokens: int) -> float:
    begin = time.perf_counter()
    call()
    return tokens / (time.perf_counter() - begin)


def ours(folder: Path, rows: int, kernel: str, transform: Any = None) -> Contender:
    """Our generation loop, end to end."""
    from orrery.generation.compiled_step import stepping
    from orrery.generation.generate import generate
    from orrery.generation.row import Limits
    from orrery.language_model.load import load

    lm = load(folder, "cpu", "stored", say=lambda line: None)
    model = lm.model if transform is None else transform.apply(lm.model)
    writer, tokenizer, limits = stepping(model, kernel), lm.tokenizer, Limits(NEW, 1024)
    return lambda: timed(lambda: generate(writer, prompts(rows), tokenizer, limits), rows * NEW)


def transformers_model(folder: Path, rows: int, compiled: bool = False) -> Contender:
    """``generate`` of transformers, by default or with a static cache and ``torch.compile``."""
    import transformers

    transformers.logging.set_verbosity_error()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()
    ids = torch.tensor(prompts(rows))
    how: dict[str, Any] = {"max_new_tokens": NEW, "min_new_tokens": NEW, "do_sample": False, "pad_token_id": 0}
    if compiled:
        config = transformers.CompileConfig(fullgraph=True, dynamic=False)
        config._compile_all_devices = True
        how |= {"cache_implementation": "static", "compile_config": config}

    @torch.no_grad()
    def call() -> Any:
        return model.generate(ids, attention_mask=torch.ones_like(ids), **how)

    return lambda: timed(call, rows * NEW)


@contextlib.contextmanager
def llama_cpp(file: Path, threads: int) -> Iterator[Contender]:
    """llama.cpp's server in a process of its own, asked over HTTP."""
    command = [sys.executable, "-c", SERVER, str(file), str(threads)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        address = next(line.decode().strip() for line in process.stdout if line.startswith(b"http"))
        body = {
            "prompt": prompts(1)[0], "n_predict": NEW, "temperature": 0, "ignore_eos": True, "cache_prompt": False,
        }  # fmt: skip

        def call() -> float:
            request = urllib.request.Request(
                f"{address}/completion", json.dumps(body).encode(), {"content-type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=300) as answer:
                found = json.load(answer)
            assert found["timings"]["predicted_n"] == NEW
            return NEW

        try:
            yield lambda: timed(call, NEW)
        finally:
            process.kill()


def exported(folder: Path, kind: str) -> Path:
    from orrery.exporting.export import export_gguf
    from orrery.reading.read import read

    return export_gguf(read(folder), folder / f"{kind}.gguf", kind).path


def probe(threads: int) -> float:
    """Return the bytes a second that a sum reads, the best of a few."""
    torch.set_num_threads(threads)
    best = 0.0
    for _ in range(3):
        begin = time.perf_counter()
        _LARGE.sum()
        best = max(best, _LARGE.nbytes / (time.perf_counter() - begin))
    return best


_LARGE = torch.ones(2**28)


def matrix_bytes(folder: Path) -> int:
    """Return the bytes of the matrices that a token reads: a tied table once, tables of positions not."""
    from orrery.reading.read import read

    model = read(folder).model
    seen = {p.data_ptr(): p.nbytes for name, p in model.named_parameters() if p.dim() > 1 and "positions" not in name}
    table = model.get_parameter("embed.token.weight")
    if model.head.vocabulary.weight.data_ptr() != table.data_ptr():
        del seen[table.data_ptr()]
    return sum(seen.values())


def race(name: str, contenders: dict[str, Contender], seconds: float, threads: int, size: dict[str, int]) -> Any:
    """Let contenders take turns until the time is over; print and return what they reached."""
    for contender in contenders.values():
        contender()
    begin, rounds, reads = time.perf_counter(), [], []
    while len(rounds) < 3 or time.perf_counter() - begin < seconds:
        reads.append(probe(threads))
        rounds.append({who: contender() for who, contender in contenders.items()})
        if len(rounds) >= 3 and time.perf_counter() - begin > 3 * seconds:
            break
    first = next(iter(contenders))
    found: dict[str, Any] = {"rounds": len(rounds), "bandwidth_GB_s": round(max(reads) / 1e9, 1), "contenders": {}}
    best, usual = max(reads) / 1e9, statistics.median(reads) / 1e9
    print(f"\n{name}: {len(rounds)} rounds, bandwidth {best:.1f} GB/s (median {usual:.1f})")
    for who in contenders:
        rates = sorted(one[who] for one in rounds)
        row: dict[str, Any] = {
            "tokens_per_second": round(statistics.median(rates), 1), "range": [round(rates[0], 1), round(rates[-1], 1)],
            f"{first} over it": round(statistics.median(one[first] / one[who] for one in rounds), 2),
        }  # fmt: skip
        if who in size:
            row["share of bandwidth"] = round(statistics.median(rates) * size[who] / max(reads), 3)
        found["contenders"][who] = row
        print(f"  {who:34s} {row}", flush=True)
    return found


def attempt(contenders: dict[str, Contender], name: str, make: Callable[[], Contender]) -> None:
    """Add a contender if it can be made and takes a first turn."""
    try:
        contender = make()
        contender()
        contenders[name] = contender
        print(f"  {name} is ready", flush=True)
    except Exception as error:
        print(f"  {name} did not run: {type(error).__name__}: {str(error)[:200]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=12.0, help="of the races together, about")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="a race whose name holds this")
    parser.add_argument("--compile", action="store_true", help="also the compiled static cache of transformers")
    parser.add_argument("--json", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    found: dict[str, Any] = {"threads": arguments.threads, "torch": torch.__version__, "races": {}}
    races = {
        "llama 430M bfloat16": llama_race,
        "gpt2 float32": gpt2_race,
        "gpt2 bfloat16": gpt2_race,
        "gpt2 batches": batches,
    }
    chosen = {name: run for name, run in races.items() if arguments.only in name}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        for name, run in chosen.items():
            share = 60 * arguments.minutes * (0.3 if "llama" in name else 0.15)
            found["races"] |= run(Path(folder), name, share, arguments, stack)
            arguments.json.write_text(json.dumps(found, indent=2) + "\n")


def llama_race(folder: Path, name: str, seconds: float, arguments: Any, stack: contextlib.ExitStack) -> Any:
    own = made(folder / "llama", "llama", torch.bfloat16)
    contenders = {"orrery compiled": ours(own, 1, "compiled")}
    size = dict.fromkeys(["orrery compiled", "llama.cpp bf16", "transformers", "orrery eager"], matrix_bytes(own))
    from orrery.tuning.quantise import Quantise

    for bits in (8, 4):
        whole = Quantise(bits=bits, targets=("*.blocks.*", "head.vocabulary"))
        attempt(contenders, f"orrery int{bits}", lambda whole=whole: ours(own, 1, "compiled", whole))
    for kind in ("bf16", "q8_0", "q4_0"):
        file = exported(own, kind)
        attempt(
            contenders, f"llama.cpp {kind}", lambda file=file: stack.enter_context(llama_cpp(file, arguments.threads))
        )
    attempt(contenders, "transformers", lambda: transformers_model(own, 1))
    if arguments.compile:
        attempt(contenders, "transformers compiled", lambda: transformers_model(own, 1, compiled=True))
    contenders["orrery eager"] = ours(own, 1, "eager")
    result = {name: race(name, contenders, seconds, arguments.threads, size)}
    stack.close()
    return result


def gpt2_race(folder: Path, name: str, seconds: float, arguments: Any, stack: contextlib.ExitStack) -> Any:
    dtype, kind = (torch.float32, "f32") if "float32" in name else (torch.bfloat16, "bf16")
    own = made(folder / f"gpt2-{kind}", "gpt2", dtype)
    contenders = {"orrery compiled": ours(own, 1, "compiled")}
    file = exported(own, kind)
    attempt(contenders, f"llama.cpp {kind}", lambda: stack.enter_context(llama_cpp(file, arguments.threads)))
    attempt(contenders, "transformers", lambda: transformers_model(own, 1))
    contenders["orrery eager"] = ours(own, 1, "eager")
    size = dict.fromkeys(contenders, matrix_bytes(own))
    result = {name: race(name, contenders, seconds, arguments.threads, size)}
    stack.close()
    return result


def batches(folder: Path, name: str, seconds: float, arguments: Any, stack: contextlib.ExitStack) -> Any:
    found = {}
    for dtype in (torch.float32, torch.bfloat16):
        own = made(folder / f"batches-{dtype}", "gpt2", dtype)
        for rows in (8, 32):
            contenders = {
                f"orrery compiled, {rows} rows": ours(own, rows, "compiled"),
                "orrery compiled, 1 row": ours(own, 1, "compiled"),
                f"orrery eager, {rows} rows": ours(own, rows, "eager"),
            }
            attempt(contenders, f"transformers, {rows} rows", lambda own=own, rows=rows: transformers_model(own, rows))
            title = f"gpt2 {dtype} batch {rows}".replace("torch.", "")
            found[title] = race(title, contenders, seconds / 3, arguments.threads, {})
    return found


if __name__ == "__main__":
    main()
