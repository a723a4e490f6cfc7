"""``orrery distil``: a teacher and prompts in, its answers as data to learn from out."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from cyclopts import Parameter

from orrery.cli.numbers import COUNT, NOT_NEGATIVE, NUMBER, SEED
from orrery.cli.places import DATA, MODEL, MODEL_IF_PATH, TEMPLATE

if TYPE_CHECKING:
    from orrery.tasks.finetuning.answers_as_data import Kept


def distil(
    model: Annotated[str, MODEL],
    *,
    prompts: Annotated[str, DATA],
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    reward: Annotated[tuple[str, ...], MODEL_IF_PATH, Parameter(negative=())] = (),
    samples: Annotated[int, COUNT] = 1,
    least: Annotated[float | None, NUMBER] = None,
    column: Annotated[str | None, Parameter(name=("--column", "--prompt"))] = None,
    template: Annotated[str | None, TEMPLATE] = None,
    max_new_tokens: Annotated[int, COUNT] = 128,
    temperature: Annotated[float, NOT_NEGATIVE] = 1.0,
    seed: Annotated[int, SEED] = 1337,
    overwrite: bool = False,
) -> None:
    """Write a model's answers to prompts as JSON lines, for orrery sft to teach another model, or itself, with.

    With --samples 8 --reward NAME the best of eight answers is kept (rejection sampling). Answers without an end token
    are left out and counted. Distillation by logits is the objective distillation of a recipe.

    Args:
        model: The teacher: a run, a checkpoint, a Hugging Face folder, a GGUF file.
        prompts: The prompts, with the columns that rewards read: JSON lines, CSV, Parquet, or a named set.
        output: The .jsonl file to write: prompt, completion and reward in each line, or messages.
        reward: What an answer is worth: arithmetic, code, exact, or the folder of a reward model; may be given several
            times, and their sum counts.
        samples: Answers to each prompt, of which the best is kept.
        least: Leave out answers that are worth less.
        column: The column of the prompts; by default found by its name.
        template: The chat format in which prompts are said, plain for bare texts; by default the model's own.
        max_new_tokens: The most tokens of an answer.
        temperature: Divides the logits before an answer is drawn; 0 takes the likeliest tokens.
        seed: Of the draws.
        overwrite: Replace the file that is there.
    """
    from orrery.checkpoints.outputs import OutputFile
    from orrery.data.rows.prompts import read_prompts
    from orrery.language_model.load import load
    from orrery.reports.status import waiting
    from orrery.runs.assemble import judge
    from orrery.tasks.finetuning._answering import template_for
    from orrery.tasks.finetuning.answering_recipe import reward_settings
    from orrery.tasks.finetuning.answers_as_data import best_answers

    target = OutputFile(output, inputs=[model, prompts], overwrite=overwrite)
    judged = judge([reward_settings(each) for each in reward])
    prompts_read = list(read_prompts(prompts, column))
    lm = load(model)
    how: dict[str, Any] = {"samples": samples, "temperature": temperature, "seed": seed}
    how["max_new_tokens"] = max_new_tokens
    answers = best_answers(lm, prompts_read, template_for(lm, template), judged, **how)
    with waiting() as line, target.lines() as stream:
        kept, unended, below = _write(
            answers, least, stream, lambda n: line.now(f"answered {n:,} of {len(prompts_read):,}")
        )
    message = f"{output}: {kept:,} of {len(prompts_read):,} prompts"
    message += f"; {unended:,} without an answer that ends" if unended else ""
    print(message + (f"; {below:,} worth less than {least:g}" if below else ""))


def _write(
    answers: Iterable["Kept | None"], least: float | None, stream: TextIO, say: Callable[[int], None]
) -> tuple[int, int, int]:
    """Write the answers; return how many were written, had no end, and were worth too little."""
    kept = unended = below = 0
    for number, answer in enumerate(answers, start=1):
        say(number)
        if answer is None:
            unended += 1
        elif least is not None and answer.reward < least:
            below += 1
        else:
            kept += 1
            print(json.dumps(answer.row, ensure_ascii=False), file=stream)
    return kept, unended, below
