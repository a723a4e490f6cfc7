"""``orrery evaluate MODEL humaneval``.

HumanEval: pass@k of the functions that a model writes behind their docstrings, run in the sandbox.
--file FILE in the place of the named set; --k 1,10, --programs, --temperature, --top-p, --max-new-tokens; --seconds,
--memory; --first, --batch-size; --contamination TRAIN; -o FILE, --overwrite; --confidence, --samples, --seed; --device,
--dtype.
"""

from typing import Annotated

from orrery.cli.evaluate._items import ALL, Items
from orrery.cli.evaluate._programs import GREEDY, Programs, run_programs
from orrery.cli.evaluate._trust import PLAIN, Trust
from orrery.cli.places import DATA, MODEL


def humaneval(
    model: Annotated[str, MODEL],
    /,
    *,
    file: Annotated[str, DATA] = "humaneval",
    programs: Programs = GREEDY,
    items: Items = ALL,
    trust: Trust = PLAIN,
) -> None:
    """Write the bodies of functions, and run them with their tests.

    Args:
        model: A model that writes.
        file: Rows with task_id, prompt, entry_point, canonical_solution and test.
        programs: How programs are drawn and run.
        items: Which items, with what, and where the result goes.
        trust: How far the scores can be trusted.
    """
    from orrery.evaluation.benchmarks.programs import read_humaneval

    tasks = read_humaneval(file, items.first)
    run_programs(model, [file], tasks, programs, items, trust, task="humaneval", template="prompt", shots=0)
