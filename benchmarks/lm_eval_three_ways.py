"""lm_eval three ways on one folder: its `hf` model, our server (`local-completions`), and our own model class.

.venv/bin/python benchmarks/lm_eval_three_ways.py --python PYTHON [--model FOLDER] [--data FOLDER] [--output FILE]

PYTHON is an interpreter with `lm_eval[api]`, torch and what Orrery needs. The tasks are those of lm_eval_server.py:
choices between endings, texts (some longer than a window), and free answers, or with --data five of real texts. Every
metric and every sample's log probability must agree to 1e-4 of its size with `hf`; the program leaves with 1 where one
does not. A copy of our class whose log probabilities are a thousandth too low must be found out.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from lm_eval_server import by_hf, compared, over_http, run, told

SOURCE = Path(__file__).parents[1] / "src"
MODULE = "orrery.evaluation.lm_eval"
BROKEN = '''"""Our model class with a fault: each log likelihood is a thousandth too low."""

from orrery.evaluation import lm_eval

right = lm_eval.Answers.likelihoods
lm_eval.Answers.likelihoods = lambda self, pairs: [(1.001 * n, g) for n, g in right(self, pairs)]
lm_eval.main()
'''


def three_ways(python: Path, root: Path, folder: Path, window: int) -> dict[str, Any]:
    """Return how the server and our class compare with `hf`, and whether a fault in our class is found."""
    hf, http = by_hf(python, root, folder, window), over_http(python, root, folder, window)
    settings = f"pretrained={folder},max_length={window}"
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
    sys.exit(told(three_ways))
