"""``orrery evaluate MODEL mmlu FOLDER``.

MMLU from the authors' folder of CSV files, or subject-questions, which is made here: accuracy by subject and in all.
--shots 5 from dev, --split test, --subjects A,B; --first, --batch-size; --contamination TRAIN; -o FILE, --overwrite;
--confidence, --samples, --seed; --device, --dtype.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from orrery.cli.evaluate._items import ALL, Items, carry_out
from orrery.cli.evaluate._trust import PLAIN, Trust
from orrery.cli.numbers import COUNT_OR_NONE
from orrery.cli.places import MODEL

if TYPE_CHECKING:
    from orrery.evaluation.evaluated import Done, Evaluated
    from orrery.language_model.model import LanguageModel


def mmlu(
    model: Annotated[str, MODEL],
    data: str,
    /,
    *,
    shots: Annotated[int, COUNT_OR_NONE] = 5,
    split: Literal["dev", "val", "test"] = "test",
    subjects: Annotated[str, Parameter(help="Names of subjects, with commas between; all by default.")] = "",
    items: Items = ALL,
    trust: Trust = PLAIN,
) -> None:
    """Answer questions of many subjects with the letter of a choice, behind examples of the same subject.

    Args:
        model: A decoder.
        data: A folder with dev/SUBJECT_dev.csv and test/SUBJECT_test.csv, or with dev.jsonl and test.jsonl; or the name
            subject-questions.
        shots: Examples of dev before each question; fewer where they do not fit the context.
        split: Which questions are asked.
        subjects: Which subjects.
        items: Which items, with what, and where the result goes.
        trust: How far the scores can be trusted.
    """
    from orrery.evaluation.benchmarks.choices import evaluate_choices
    from orrery.evaluation.benchmarks.mmlu import chosen, prompted, read_items

    names = [name.strip() for name in subjects.split(",") if name.strip()]
    items_chosen = chosen(read_items(data, split), names, items.first)
    examples = read_items(data, "dev") if shots else []

    def evaluate(lm: "LanguageModel", done: "Done") -> "Evaluated":
        room = lm.context
        fits = lambda text: len(lm.tokenizer.frame(text).ids) <= room  # noqa: E731
        questions, fewer = prompted(items_chosen, examples, shots, fits)
        facts = {"task": "mmlu", "template": "letters", "shots": shots, "split": split}
        evaluated = evaluate_choices(
            lm, questions, batch_size=items.batch_size, normalisations=("none",), done=done, **facts
        )
        notes = [f"{fewer:,} questions have fewer than {shots} examples, for the context is {room:,} tokens"]
        return replace(evaluated, notes=[*evaluated.notes, *notes * bool(fewer)])

    carry_out(model, [data], items, trust, evaluate)
