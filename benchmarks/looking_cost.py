"""What it costs to serve with ``--inspect`` where nobody looks: tokens a second, and every bit of the answers.

    python benchmarks/looking_cost.py --json benchmarks/looking_cost.json

The same random model of GPT-2's kind is served three times from this process, once with inspection and twice without,
and the servers take turns: a greedy and a sampled completion with log probabilities each. Before the rounds a pass is
opened on the server that can be looked into, so that what it holds is part of the comparison. A rate is that of the
fastest round, in tokens a second of the processor's time of this process: what other programs take away makes a round
slower and never faster. Two servers without inspection say how much of a ratio is chance. The answers are compared as
JSON, texts and log probabilities, bit for bit.
"""

import argparse
import http.client
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BAR = 0.97
"""The least that the rate with inspection may be, in units of that without."""


def main() -> None:
    options = parse()
    found = measure(options)
    print(f"tokens/s with --inspect over without: {found['ratio']:.3f}, at least {BAR}")
    print(f"without over without: {found['control']:.3f}")
    print(f"answers that differ: {found['different']} of {found['answers']}", flush=True)
    if options.json == "-":
        print(json.dumps(found))
    elif options.json:
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.exit(int(not (found["ratio"] >= BAR and found["different"] == 0)))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--new", type=int, default=64, help="tokens of an answer")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", help="a file, or - for one line at the end")
    return parser.parse_args()


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Serve twice, let the servers take turns, and return rates and differences."""
    from orrery.serving.background import serving

    with (
        tempfile.TemporaryDirectory() as folder,
        serving(made(options, Path(folder)), "m", inspect=True, grace=5) as seen,
        serving(made(options, Path(folder)), "m", inspect=False, grace=5) as unseen,
        serving(made(options, Path(folder)), "m", inspect=False, grace=5) as other,
    ):
        post(seen.url, "/inspect/traces", {"text": "the cat sat on the mat"})
        servers = {"with": seen.url, "without": unseen.url, "other": other.url}
        for url in servers.values():
            answer(url, options, 0)  # the first call warms up
        rates: dict[str, list[float]] = {name: [] for name in servers}
        different = 0
        for number in range(options.rounds):
            order = list(servers.items())
            order = order[number % 3 :] + order[: number % 3]
            now = {name: answer(url, options, number) for name, url in order}
            different += int(now["with"][0] != now["without"][0])
            for name, (_, rate) in now.items():
                rates[name].append(rate)
    best = {name: max(own) for name, own in rates.items()}
    return {
        **{name: getattr(options, name) for name in ("layers", "heads", "width", "new", "rounds")},
        "ratio": round(best["with"] / best["without"], 4),
        "control": round(best["other"] / best["without"], 4),
        "tokens_per_second": {name: round(rate, 1) for name, rate in best.items()},
        "medians": {name: round(statistics.median(own), 1) for name, own in rates.items()},
        "answers": 2 * options.rounds,
        "different": different,
        "machine": {
            "processor": platform.machine(),
            "system": platform.system(),
            "cores": os.cpu_count(),
            "load": round(os.getloadavg()[0], 1),
        },
    }


def made(options: argparse.Namespace, folder: Path) -> Any:
    """Return the model; the same each time."""
    import torch

    from orrery.families import load_family
    from orrery.language_model.load import load
    from orrery.saving.save import save_model
    from orrery.text.train import train_tokenizer

    if not (folder / "m").exists():
        tokenizer = train_tokenizer("byte_bpe", ["the cat sat on the mat\n"] * 3, 290)
        config = {"vocab_size": tokenizer.size, "n_positions": 512, "n_embd": options.width}
        config |= {"n_layer": options.layers, "n_head": options.heads, "eos_token_id": None, "bos_token_id": None}
        torch.manual_seed(0)
        save_model(folder / "m", load_family("gpt2").spec(config).build(0).eval(), "gpt2", config, tokenizer)
    return load(folder / "m", "cpu", "float32", say=lambda line: None)


def answer(url: str, options: argparse.Namespace, seed: int) -> tuple[list[Any], float]:
    """Return two answers without what differs from call to call, and tokens a second of the processor."""
    body = {"prompt": "the cat sat", "max_tokens": options.new, "logprobs": 3, "seed": seed}
    used = time.process_time()
    found = [post(url, "/v1/completions", {**body, "temperature": temperature}) for temperature in (0, 1)]
    used = time.process_time() - used
    written = sum(one["usage"]["completion_tokens"] for one in found)
    return [[one["choices"], one["usage"]] for one in found], written / used


def post(url: str, path: str, body: dict[str, Any]) -> Any:
    """Return the JSON of an answer."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    found = json.loads(response.read())
    connection.close()
    if response.status != 200:
        raise RuntimeError(f"{path}: {found}")
    return found


if __name__ == "__main__":
    main()
