"""Start-up, the first token of a GPT-2 with 124 million weights from a cold start, and prompts read, beside peers.

.venv/bin/python benchmarks/first_token.py [PAIRS] [MODEL]

Prompts of 512 tokens are read by llama-430m in bfloat16, or by a MODEL that `orrery bench generate` knows.

Fresh processes in turns; medians of the ratios of pairs, and of the processor seconds, disturbed less.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

PEER = """
import sys
from transformers import AutoModelForCausalLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
found = model.generate(**tokenizer(sys.argv[2], return_tensors="pt"), max_new_tokens=1, do_sample=False)
print(tokenizer.decode(found[0]))
"""
PROMPT = "The list method sorts"
STARTS = {"orrery --help": ["-m", "orrery", "--help"], "import orrery": ["-c", "import orrery"], "pass": ["-c", "pass"]}


def run(words: Sequence[str]) -> tuple[float, float]:
    """Return the seconds of a fresh process on the clock, and on processors."""
    before, start = os.times(), time.perf_counter()
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "ORRERY_KERNEL": os.environ.get("ORRERY_KERNEL", "auto")}
    subprocess.run([sys.executable, *words], check=True, capture_output=True, env=environment)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - start, used


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    start_up()
    first_token(pairs)
    reading(sys.argv[2] if len(sys.argv) > 2 else "llama-430m", pairs)


def first_token(pairs: int) -> None:
    with tempfile.TemporaryDirectory() as aside:
        folder = Path(aside) / "gpt2"
        make = "import sys; from pathlib import Path; import torch; from orrery.bench.shapes import make_model; "
        make += "make_model('gpt2-124m', Path(sys.argv[1]), torch.float32, print)"
        subprocess.run([sys.executable, "-c", make, str(folder)], check=True)
        ours = ["-m", "orrery", "generate", str(folder), PROMPT, "--max-new-tokens", "1", "--temperature", "0"]
        theirs = ["-c", PEER, str(folder), PROMPT]
        run(ours), run(theirs)
        found = [(run(ours), run(theirs)) for _ in range(pairs)]
    for number, name in enumerate(("clock", "processors")):
        mine, other = ([pair[who][number] for pair in found] for who in (0, 1))
        ratios = [a / b for a, b in zip(mine, other, strict=True)]
        print(
            f"first token, seconds of {name}: orrery {statistics.median(mine):.2f}, transformers "
            f"{statistics.median(other):.2f}; ratio {statistics.median(ratios):.2f} [{min(ratios):.2f} "
            f"{max(ratios):.2f}], goal 0.60",
            flush=True,
        )


def start_up() -> None:
    for name, words in STARTS.items():
        taken = [run(words) for _ in range(9)]
        clock, used = (statistics.median(one[number] for one in taken) for number in (0, 1))
        goal = "the floor" if name == "pass" else "goal 0.100"
        print(f"{name}: {clock:.3f} s, of processors {used:.3f} s; {goal}", flush=True)


def reading(model: str, rounds: int) -> None:
    from orrery.bench import report
    from orrery.bench.generating import bench_generate
    from orrery.bench.machine import measure_machine
    from orrery.bench.rounds import Case

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    peers, case = ("transformers", "llama.cpp"), Case(1, 512, 1)
    found = bench_generate(model, "bfloat16", [case], peers, (), rounds, measure_machine, say)
    for one in found.series[0]:
        ratios = found.series[0][0].faster_than(one, "prefill")
        goal = {"transformers": ", goal 1.00", "llama.cpp bf16": ", goal 1.30"}.get(one.subject, "")
        print(
            f"{case.name} in bfloat16: {one.subject} {one.median('prefill'):,.0f} tokens/s; orrery is faster by "
            f"{statistics.median(ratios):.2f} [{min(ratios):.2f} {max(ratios):.2f}]{goal}"
        )
    print(*report.notes(found), sep="\n")


if __name__ == "__main__":
    main()
