"""lm_eval three ways on one folder: its `hf` model, our server (`local-completions`), and our own model class.

.venv/bin/python benchmarks/lm_eval_three_ways.py --python PYTHON [--model FOLDER] [-o FILE.json]

PYTHON is an interpreter with `lm_eval[api]`, torch and what Orrery needs. The tasks are those of lm_eval_server.py:
choices between endings, texts (some longer than a window), and free answers. Every metric and every sample's log
probability must agree to 1e-4 of its size with `hf`; the program leaves with 1 where one does not. A copy of our class
whose log probabilities are 0.001 too high must be found out.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from lm_eval_server import WINDOW, compared, run, write_tasks

from served_models import chat_folder
from server_process import ServerProcess

SOURCE = Path(__file__).parents[1] / "src"
MODULE = "orrery.tasks.lm_eval"
BROKEN = '''"""Our model class with a fault: each log likelihood is 0.001 too high."""

from orrery.tasks import lm_eval

right = lm_eval.Answers.likelihoods
lm_eval.Answers.likelihoods = lambda self, pairs: [(n + 1e-3, g) for n, g in right(self, pairs)]
lm_eval.main()
'''


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--model", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        folder = given.model or chat_folder(root / "tiny")
        result = three_ways(given.python, root, folder)
    print(json.dumps(result, indent=1))
    if given.output:
        given.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if result["agree"] and result["a fault is found"] else 1


def three_ways(python: Path, root: Path, folder: Path) -> dict[str, Any]:
    """Return how the server and our class compare with `hf`, and whether a fault in our class is found."""
    write_tasks(root / "tasks")
    hf = run(python, root, "hf", f"pretrained={folder},dtype=float32,max_length={WINDOW}", "1")
    with ServerProcess(folder) as server:
        served = f"model={server.model},base_url={server.url}/v1/completions,tokenizer={folder}"
        served += f",tokenizer_backend=huggingface,max_length={WINDOW + 2},num_concurrent=2,max_retries=1"
        http = run(python, root, "local-completions", served, batch="4")
    settings = f"pretrained={folder},max_length={WINDOW}"
    own = run(python, root, "orrery", settings, "4", MODULE, SOURCE)
    (root / "broken").mkdir()
    (root / "broken" / "broken_class.py").write_text(BROKEN, encoding="utf-8")
    for old in (root / "orrery").rglob("*.json*"):
        old.unlink()
    faulty = run(python, root, "orrery", settings, "4", "broken_class", f"{SOURCE}:{root / 'broken'}")
    ways = {"server": compared(http, hf, "server"), "orrery": compared(own, hf, "orrery")}
    agree = all(way["agree"] for way in ways.values())
    return {"agree": agree, "a fault is found": not compared(faulty, hf)["agree"], **ways}


if __name__ == "__main__":
    sys.exit(main())
