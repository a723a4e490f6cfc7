"""Draw the README's pictures from the run of countries.yaml: ``python docs/examples/pictures.py OUT``."""

import json
import sys
from pathlib import Path

import orrery
from orrery.reports.figures import heat_map, line_chart

RUN = "runs/countries"


def curve() -> str:
    """Return the loss by step, of the training text and of the text held back."""
    lines = [json.loads(line) for line in Path(RUN, "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    names = {"train/loss": "training text", "val/loss": "held-back text"}
    series = {name: [(line["step"], line[key]) for line in lines if key in line] for key, name in names.items()}
    return line_chart(series, title="Loss of the example model", x_label="step", y_label="nats a token")


def pattern() -> str:
    """Return the attention pattern of one head over a sentence."""
    inside = orrery.load(RUN).trace("The capital of France is Paris . People in Paris speak French .")
    tokens, values = list(inside.tokens), inside["blocks.0.attention.pattern"][0, 3].tolist()
    return heat_map(values, rows=tokens, columns=tokens, title="Attention, block 0, head 3", highest=1.0)


if __name__ == "__main__":
    out = Path(sys.argv[1])
    (out / "countries-loss.svg").write_text(curve(), encoding="utf-8")
    (out / "countries-attention.svg").write_text(pattern(), encoding="utf-8")
