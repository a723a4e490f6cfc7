"""The first token of a GPT-2 with 124 million weights from a cold start, and prompts read, beside peers.

.venv/bin/python benchmarks/first_token.py [--pairs 5] [--model llama-430m] [--output FILE]

Prompts of 512 tokens are read by the model, a name that `orrery bench generate` knows, in bfloat16 and in float32:
a ratio beside a peer is told against the faster of its two.

Fresh processes in turns; medians of the ratios of pairs, and of the processor seconds, disturbed less.
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _record import Record, parsed, parser
from startup import run

PEER = """
import sys
from transformers import AutoModelForCausalLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
found = model.generate(**tokenizer(sys.argv[2], return_tensors="pt"), max_new_tokens=1, do_sample=False)
print(tokenizer.decode(found[0]))
"""
PROMPT = "The list method sorts"
MAKE = "import sys; from pathlib import Path; import torch; from orrery.studies.bench.shapes import make_model; "
MAKE += "make_model(sys.argv[2], Path(sys.argv[1]), torch.float32, print)"


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--pairs", type=int, default=5, help="of processes, and rounds of prompts")
    made.add_argument("--shape", default="gpt2-124m", help="of the model whose first token is timed")
    made.add_argument("--model", default="llama-430m", help="what reads the prompts; - for none")
    made.add_argument("--tokens", type=int, default=512, help="of a prompt")
    options = parsed(made, {"pairs": 1, "shape": "gpt2-tiny", "model": "gpt2-tiny", "tokens": 16})
    record = Record(options, ("transformers", "xllamacpp"))
    measured: dict[str, Any] = {"first token": first_token(options.shape, options.pairs)}
    record.write(measured)
    if options.model != "-":
        kinds = ("bfloat16", "float32")
        measured["prompts"] = {kind: reading(options.model, kind, options.tokens, options.pairs) for kind in kinds}
        measured["our bfloat16 over a peer's best"] = beside_the_best(measured["prompts"])
        print(measured["our bfloat16 over a peer's best"])
        record.write(measured)


def first_token(shape: str, pairs: int) -> dict[str, Any]:
    """Return seconds until the first token from a cold start, by both, and our time over theirs."""
    with tempfile.TemporaryDirectory() as aside:
        folder = Path(aside) / "model"
        subprocess.run([sys.executable, "-c", MAKE, str(folder), shape], check=True)
        ours = ["-m", "orrery", "generate", str(folder), PROMPT, "--max-new-tokens", "1", "--temperature", "0"]
        theirs = ["-c", PEER, str(folder), PROMPT]
        run(ours), run(theirs)
        seen = [(run(ours), run(theirs)) for _ in range(pairs)]
    measured: dict[str, Any] = {"shape": shape, "pairs": pairs}
    for number, name in enumerate(("clock", "processors")):
        mine, other = ([pair[who][number] for pair in seen] for who in (0, 1))
        ratios = [a / b for a, b in zip(mine, other, strict=True)]
        seconds = {"orrery": round(statistics.median(mine), 3), "transformers": round(statistics.median(other), 3)}
        middle = round(statistics.median(ratios), 3)
        measured[name] = {"seconds": seconds, "ratio": middle, "ratios": [round(ratio, 3) for ratio in ratios]}
        print(f"first token, seconds of {name}: {seconds}; ratio {middle}, goal 0.60", flush=True)
    return measured


def reading(model: str, dtype: str, tokens: int, rounds: int) -> dict[str, Any]:
    """Return the tokens of a prompt that each program reads a second, and how much faster we are."""
    from orrery.studies.bench import report
    from orrery.studies.bench.generating import bench_generate
    from orrery.studies.bench.machine import measure_machine
    from orrery.studies.bench.rounds import Case

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    peers, case = ("transformers", "llama.cpp"), Case(1, tokens, 1)
    speed = bench_generate(model, dtype, [case], peers, (), rounds, measure_machine, say)
    rows = {}
    for one in speed.series[0]:
        ratios = speed.series[0][0].faster_than(one, "prefill")
        rows[one.subject] = {
            "tokens_per_second": round(one.median("prefill"), 1),
            "orrery over it": round(statistics.median(ratios), 3),
            "ratios": [round(ratio, 3) for ratio in ratios],
        }
        print(f"{case.name} in {dtype}: {one.subject} {rows[one.subject]}")
    notes = report.notes(speed)
    print(*notes, sep="\n")
    return {"contenders": rows, "notes": list(notes)}


def beside_the_best(prompts: dict[str, Any]) -> dict[str, float]:
    """Return our bfloat16 over the faster kind of numbers of each peer, a user's own choice."""
    rates: dict[str, list[float]] = {}
    for kind in ("bfloat16", "float32"):
        for name, row in prompts[kind]["contenders"].items():
            rates.setdefault(name.rpartition(" ")[0] or name, []).append(row["tokens_per_second"])
    mine = next(iter(prompts["bfloat16"]["contenders"].values()))["tokens_per_second"]
    return {name: round(mine / max(own), 3) for name, own in rates.items() if not name.startswith("orrery")}


if __name__ == "__main__":
    main()
