"""``orrery evaluate MODEL mbpp FILE``.

MBPP: pass@k of programs that a model writes for a sentence and three asserts, run in the sandbox. The rows have text,
code and test_list: the authors' file, or python-functions/val, which is made here.
--shots 0 of --examples FILE; --k 1,10, --programs, --temperature, --top-p, --max-new-tokens; --seconds, --memory;
--first, --batch-size; --contamination TRAIN; -o FILE, --overwrite; --confidence, --samples, --seed; --device, --dtype.
"""

from typing import Annotated

from orrery.cli.evaluate._items import ALL, Items
from orrery.cli.evaluate._programs import GREEDY, Programs, run_programs
from orrery.cli.evaluate._trust import PLAIN, Trust
from orrery.cli.numbers import COUNT_OR_NONE
from orrery.cli.places import MODEL
from orrery.errors import UsageError


def mbpp(
    model: Annotated[str, MODEL],
    data: str,
    /,
    *,
    shots: Annotated[int, COUNT_OR_NONE] = 0,
    examples: str | None = None,
    programs: Programs = GREEDY,
    items: Items = ALL,
    trust: Trust = PLAIN,
) -> None:
    """Write programs for tasks in a sentence, and run them with their asserts.

    Args:
        model: A model that writes.
        data: Rows with text (or prompt), code and test_list.
        shots: Examples before each task.
        examples: Where they come from: its first ones; no part of the tasks.
        programs: How programs are drawn and run.
        items: Which items, with what, and where the result goes.
        trust: How far the scores can be trusted.
    """
    from orrery.evaluation.benchmarks.programs import read_mbpp, with_examples

    if bool(shots) != (examples is not None):
        raise UsageError("give --shots and --examples, or neither", "--shots 3 --examples FILE")
    tasks = read_mbpp(data, items.first)
    shown = read_mbpp(examples, shots) if examples is not None else []
    sources = [data, *([examples] if examples else [])]
    run_programs(
        model, sources, with_examples(tasks, shown), programs, items, trust, task="mbpp", template="lm_eval-1.0",
        shots=len(shown),
    )  # fmt: skip
