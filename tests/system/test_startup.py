"""What answers at once: parsing, lists and refusals import no torch, and reading weights imports no compiler."""

import subprocess
import sys

import pytest


def _modules_after(program: str) -> set[str]:
    """Run a program in a fresh interpreter, whatever its exit code, and return the modules it imported."""
    code = f"import sys\ntry:\n    {program}\nfinally:\n    print('MODULES', *sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("MODULES")]
    return set(line.split())


@pytest.mark.parametrize(
    "program",
    [
        "import orrery; dir(orrery); orrery.settings.data_folder()",
        "from orrery.cli.program import run; run(['--help'])",
        "from orrery.cli.program import run; run(['--version'])",
        "from orrery.cli.program import run; run(['no-such-verb'])",
        "from orrery.cli.program import VERBS, run; [run([verb, '--help']) for verb in VERBS]",
        "import orrery.runs.word_vectors",
        "from orrery.cli.program import VERBS, run; [run([verb, '--no-such-flag']) for verb in VERBS]",
    ],
)
def test_torch_stays_out(program: str) -> None:
    modules = _modules_after(program)
    assert "orrery" in modules
    assert not modules & {"torch", "transformers"}


def test_the_list_of_verbs_needs_no_parser() -> None:
    assert not _modules_after("from orrery.cli.program import run; run(['--help'])") & {"cyclopts", "rich"}


@pytest.mark.parametrize(
    "layout", ["ROWS", "TURNED", "GroupInterleaved(2)", "Stacked(2)", "Stacked(2, interleaved=True, turned=True)"]
)
def test_what_compiles_stays_out_of_reading_weights(layout: str) -> None:
    program = (
        "from orrery.checkpoints.layouts import *; from orrery.checkpoints.rules import Rule; import torch; "
        f"rule = Rule('theirs', ('a', 'b', 'c', 'd'), {layout}); parts = [torch.ones(4, 4)] * 4; "
        "rule.split(rule.join(parts), [part.shape for part in parts])"
    )
    modules = _modules_after(program)
    assert "torch" in modules
    assert "torch._dynamo" not in modules
