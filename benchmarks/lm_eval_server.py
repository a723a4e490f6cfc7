"""lm_eval over HTTP against lm_eval in the process: the same folder through `orrery serve` and through its `hf` model.

.venv/bin/python benchmarks/lm_eval_server.py --python PYTHON [--model FOLDER] [--data FOLDER] [--output FILE]

PYTHON is an interpreter with `lm_eval[api]` and torch, in an environment of its own. The tasks are written here:
choices between endings, whole texts (some longer than a window), and free answers; with --data, the folder of the data
sets, five of real texts. Every metric and every sample's log probability must agree to 1e-4 of its size; the program
leaves with 1 where one does not. Without --model a tiny random Llama serves.
"""

import json
import lzma
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from _record import Record, parsed, parser, versions

from served_models import chat_folder
from server_process import ServerProcess

BOUND = 1e-4
WINDOW = 126
"""Tokens of a window of `hf`; over HTTP one more is generated and one more counted, so that has two more."""
REAL_WINDOW = 510
"""The same for real texts."""
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
REAL_TASKS = {
    "blimp": {
        "output_type": "multiple_choice", "doc_to_text": "", "doc_to_target": 0, "target_delimiter": "",
        "doc_to_choice": "{{[good, bad]}}", "metric_list": [{"metric": "acc"}],
    },
    "sst2": {
        "output_type": "multiple_choice",
        "doc_to_text": "{{text}}\nQuestion: Is this sentence positive or negative?\nAnswer:",
        "doc_to_target": "{{label}}", "doc_to_choice": ["negative", "positive"], "metric_list": [{"metric": "acc"}],
    },
    "scitldr": {
        "output_type": "multiple_choice", "doc_to_text": "{{text}}\nIn one sentence:", "doc_to_target": "{{label}}",
        "doc_to_choice": "{{choices}}", "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
    },
    "shakespeare": {**TASKS["texts"], "doc_to_target": "{{text}}"},
    "gsm8k": {
        **TASKS["answers"], "doc_to_text": "Question: {{question}}\nAnswer:", "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": ["\n\n", "Question:"], "max_gen_toks": 48, "do_sample": False},
    },
}  # fmt: skip


def main() -> int:
    def measured(python: Path, root: Path, folder: Path, window: int) -> dict[str, Any]:
        return compared(over_http(python, root, folder, window), by_hf(python, root, folder, window))

    return told(measured)


def told(measured: Callable[[Path, Path, Path, int], dict[str, Any]]) -> int:
    """Measure with the interpreter and on the model that the command line names, print, and say whether all is well."""
    made = parser(sys.modules["__main__"].__doc__)
    made.add_argument("--python", type=Path)
    made.add_argument("--model", type=Path)
    made.add_argument("--data", type=Path, help="the folder of the data sets: five tasks of real texts")
    made.add_argument("--lines", type=int, default=24, help="of each task")
    given = parsed(made, {"python": Path(sys.executable), "lines": 3}, needs=["python"])
    record = Record(given, elsewhere={"peers": versions(("lm_eval", "transformers", "torch"), given.python)})
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        sets = made_up(given.lines) if given.data is None else real(given.data, given.lines)
        write_tasks(root / "tasks", TASKS if given.data is None else REAL_TASKS, sets)
        window = WINDOW if given.data is None else REAL_WINDOW
        result = measured(given.python, root, given.model or chat_folder(root / "tiny"), window)
    print(json.dumps(result, indent=1))
    record.write(result)
    return 0 if result["agree"] and result.get("a fault is found", True) else 1


def over_http(python: Path, root: Path, folder: Path, window: int) -> dict[str, Any]:
    """Return what lm_eval finds through the server."""
    with ServerProcess(folder) as server:
        served = f"model={server.model},base_url={server.url}/v1/completions,tokenizer={folder}"
        served += f",tokenizer_backend=huggingface,max_length={window + 2},num_concurrent=2,max_retries=1"
        return run(python, root, "local-completions", served, batch="4")


def by_hf(python: Path, root: Path, folder: Path, window: int) -> dict[str, Any]:
    """Return what lm_eval finds by its own model."""
    return run(python, root, "hf", f"pretrained={folder},dtype=float32,max_length={window}", "1")


def write_tasks(folder: Path, tasks: Mapping[str, Any], sets: Mapping[str, list[dict[str, Any]]]) -> None:
    """Write the tasks, each with its lines."""
    folder.mkdir()
    for name, task in tasks.items():
        data = folder / f"{name}.jsonl"
        data.write_text("".join(json.dumps(line) + "\n" for line in sets[name]), encoding="utf-8")
        where = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data)}}, "test_split": "test"}
        # JSON is YAML too.
        (folder / f"{name}.yaml").write_text(json.dumps({"task": name, **where, **task}), encoding="utf-8")


def made_up(count: int) -> dict[str, list[dict[str, Any]]]:
    """Return lines of random words, the same for every task."""
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
    return dict.fromkeys(TASKS, lines)


def real(data: Path, count: int) -> dict[str, list[dict[str, Any]]]:
    """Return lines of the data sets, drawn with one seed."""
    rng = random.Random(7)

    def rows(name: str) -> list[dict[str, Any]]:
        with lzma.open(data / name, "rt", encoding="utf-8") as file:
            return rng.sample([json.loads(line) for line in file], count + 2)

    sentences = [line.rsplit("\t", 1) for line in (data / "sst2/dev.tsv").read_text("utf-8").splitlines()]
    papers = [{"text": " ".join(row["source"]), "short": row["target"][0]} for row in rows("scitldr/dev.jsonl.xz")]
    plays = (data / "tiny-shakespeare/input.txt").read_text("utf-8")
    texts = {
        "blimp": rows("blimp/pairs.jsonl.xz"),
        "sst2": [{"text": text, "label": int(label)} for text, label in rng.sample(sentences, count)],
        "scitldr": [
            {"text": row["text"], "choices": [other["short"] for other in papers[n : n + 3]], "label": 0}
            for n, row in enumerate(papers[:count])
        ],
        # From 300 to 3,900 characters: the longer ones are read in several windows.
        "shakespeare": [
            {"text": plays[at : at + 300 * (1 + n % 13)]} for n, at in enumerate(rng.sample(range(10**6), count))
        ],
        "gsm8k": rows("gsm8k/test.jsonl.xz"),
    }  # fmt: skip
    return {name: lines[:count] for name, lines in texts.items()}


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
    names = sorted(path.stem for path in (root / "tasks").glob("*.yaml"))
    command = [str(python), "-m", module, "--model", model, "--model_args", settings, "--tasks", ",".join(names)]
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
    for name in names:
        (file,) = out.rglob(f"samples_{name}_*.jsonl")
        samples_read = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        samples[name] = [one["resps"] for one in sorted(samples_read, key=lambda one: one["doc_id"])]
    return {"results": json.loads(results.read_text(encoding="utf-8"))["results"], "samples": samples}


def compared(ours: dict[str, Any], theirs: dict[str, Any], name_of_ours: str = "server") -> dict[str, Any]:
    """Return both runs' metrics, and the greatest difference of a metric and of a sample."""
    tasks: dict[str, Any] = {}
    for name in ours["samples"]:
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
