"""lm_eval over HTTP against lm_eval in the process: the same folder through `orrery serve` and through its `hf` model.

.venv/bin/python benchmarks/lm_eval_server.py --python PYTHON [--model FOLDER] [--output FILE]

PYTHON is an interpreter with `lm_eval[api]` and torch, in an environment of its own. The tasks are written here:
choices between endings, whole texts (some longer than a window), and free answers. Every metric and every sample's log
probability must agree to 1e-4 of its size; the program leaves with 1 where one does not. Without --model a tiny random
Llama serves.
"""

import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from _record import Record, parsed, parser, versions

from served_models import chat_folder
from server_process import ServerProcess

BOUND = 1e-4
WINDOW = 126
"""Tokens of a window of `hf`; over HTTP one more is generated and one more counted, so that has two more."""
WORDS = ["the", "cat", "dog", "sat", "on", "a", "mat", "and", "user", "answer", "is", "what", "why", "hello", "there"]
TASKS = {
    "endings": {
        "output_type": "multiple_choice", "doc_to_text": "{{q}}", "doc_to_target": "{{a}}", "doc_to_choice": "{{c}}",
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
    },
    "texts": {
        "output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{t}}",
        "metric_list": [{"metric": "bits_per_byte"}, {"metric": "word_perplexity"}],
    },
    "answers": {
        "output_type": "generate_until", "doc_to_text": "{{q}}", "doc_to_target": "{{c[0]}}",
        "generation_kwargs": {"until": ["\n\n", "."], "max_gen_toks": 12, "do_sample": False},
        "metric_list": [{"metric": "exact_match"}],
    },
}  # fmt: skip


def main() -> int:
    return told(lambda python, root, folder: compared(over_http(python, root, folder), by_hf(python, root, folder)))


def told(measured: Callable[[Path, Path, Path], dict[str, Any]]) -> int:
    """Measure with the interpreter and on the model that the command line names, print, and say whether all is well."""
    made = parser(sys.modules["__main__"].__doc__)
    made.add_argument("--python", type=Path)
    made.add_argument("--model", type=Path)
    made.add_argument("--lines", type=int, default=24, help="of each task")
    given = parsed(made, {"python": Path(sys.executable), "lines": 3}, needs=["python"])
    record = Record(given, elsewhere={"peers": versions(("lm_eval", "transformers", "torch"), given.python)})
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        write_tasks(root / "tasks", given.lines)
        result = measured(given.python, root, given.model or chat_folder(root / "tiny"))
    print(json.dumps(result, indent=1))
    record.write(result)
    return 0 if result["agree"] and result.get("a fault is found", True) else 1


def over_http(python: Path, root: Path, folder: Path) -> dict[str, Any]:
    """Return what lm_eval finds through the server."""
    with ServerProcess(folder) as server:
        served = f"model={server.model},base_url={server.url}/v1/completions,tokenizer={folder}"
        served += f",tokenizer_backend=huggingface,max_length={WINDOW + 2},num_concurrent=2,max_retries=1"
        return run(python, root, "local-completions", served, batch="4")


def by_hf(python: Path, root: Path, folder: Path) -> dict[str, Any]:
    """Return what lm_eval finds by its own model."""
    return run(python, root, "hf", f"pretrained={folder},dtype=float32,max_length={WINDOW}", "1")


def write_tasks(folder: Path, count: int) -> None:
    """Write the tasks with their lines."""
    folder.mkdir()
    rng = random.Random(7)

    def say(count: int) -> str:
        return " ".join(rng.choices(WORDS, k=count))

    lines = [
        {
            "q": say(6),
            "c": [f" {say(2)}", f" {say(3)}", f" {say(1)}"],
            "a": rng.randrange(3),
            "t": say(12 * (1 + n % 4)),
        }
        for n in range(count)
    ]
    data = folder / "lines.jsonl"
    data.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for name, task in TASKS.items():
        where = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data)}}, "test_split": "test"}
        # JSON is YAML too.
        (folder / f"{name}.yaml").write_text(json.dumps({"task": name, **where, **task}), encoding="utf-8")


def run(
    python: Path,
    root: Path,
    model: str,
    settings: str,
    batch: str,
    module: str = "lm_eval",
    source: Path | str | None = None,
) -> dict[str, Any]:
    """Return the results and the samples of one run of lm_eval; ``source`` is where ``module`` is found."""
    out = root / model
    command = [str(python), "-m", module, "--model", model, "--model_args", settings, "--tasks", ",".join(TASKS)]
    command += ["--device", "cpu"] if model == "hf" else []
    command += [
        "--include_path",
        str(root / "tasks"),
        "--batch_size",
        batch,
        "--log_samples",
        "--output_path",
        str(out),
    ]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(root / "cache"), "TQDM_DISABLE": "1"}
    environment.pop("PYTHONPATH", None)
    environment |= {} if source is None else {"PYTHONPATH": str(source)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise RuntimeError(f"lm_eval with {model}: {done.stderr[-3000:]}")
    (results,) = out.rglob("results_*.json")
    samples = {}
    for name in TASKS:
        (file,) = out.rglob(f"samples_{name}_*.jsonl")
        found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        samples[name] = [one["resps"] for one in sorted(found, key=lambda one: one["doc_id"])]
    return {"results": json.loads(results.read_text(encoding="utf-8"))["results"], "samples": samples}


def compared(ours: dict[str, Any], theirs: dict[str, Any], name_of_ours: str = "server") -> dict[str, Any]:
    """Return both runs' metrics, and the greatest difference of a metric and of a sample."""
    tasks: dict[str, Any] = {}
    for name in TASKS:
        pairs = {
            key: (value, theirs["results"][name][key])
            for key, value in ours["results"][name].items()
            if isinstance(value, float) and math.isfinite(value)
        }
        one, other = leaves(ours["samples"][name]), leaves(theirs["samples"][name])
        both = list(zip(one, other, strict=True))
        numbers = [abs(a - b) / max(1, abs(b)) for a, b in both if isinstance(a, float)]
        tasks[name] = {
            "metrics": {key: {name_of_ours: a, "hf": b} for key, (a, b) in pairs.items()},
            "metric difference": max(abs(a - b) / max(1, abs(b)) for a, b in pairs.values()),
            "samples": len(ours["samples"][name]),
            "log probabilities": len(numbers),
            "sample difference": max(numbers, default=0.0),
            "other answers": sum(a != b for a, b in both if isinstance(a, str)),
        }
    bad = [
        name
        for name, one in tasks.items()
        if max(one["metric difference"], one["sample difference"]) > BOUND or one["other answers"]
    ]
    return {"bound": BOUND, "agree": not bad, "tasks": tasks}


def leaves(value: Any) -> Iterator[Any]:
    """Yield the numbers and texts of nested lists; lm_eval logs log probabilities as texts."""
    if isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
        return
    if isinstance(value, bool):
        yield str(value)
        return
    try:
        yield float(value)
    except ValueError:
        yield value


if __name__ == "__main__":
    sys.exit(main())
