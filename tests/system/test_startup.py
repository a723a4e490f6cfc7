"""What answers at once: nothing that only parses, lists or refuses may import torch."""

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
        "import orrery.training.word_vectors",
        "from orrery.cli.program import VERBS, run; [run([verb, '--no-such-flag']) for verb in VERBS]",
    ],
)
def test_torch_stays_out(program: str) -> None:
    modules = _modules_after(program)
    assert "orrery" in modules
    assert not modules & {"torch", "transformers"}
