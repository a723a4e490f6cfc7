"""GSM8K (Cobbe et al. 2021): word problems whose worked answer ends in ``#### number``."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.data.corpora import read_placed_rows
from orrery.errors import DataError
from orrery.evaluation.evaluated import Done, Evaluated, answers
from orrery.language_model.model import LanguageModel
from orrery.scores import final_number
from orrery.scores.resampled import mean_of
from orrery.scores.signature import signature

STOPS = ("Question:", "</s>", "<|im_end|>")


@dataclass(frozen=True)
class Problem:
    """A problem with its worked answer."""

    where: str
    question: str
    answer: str

    @property
    def asked(self) -> str:
        """The problem up to its answer."""
        return f"Question: {self.question}\nAnswer:"


def read_problems(source: str, first: int | None = None) -> list[Problem]:
    """Return the problems of rows with ``question`` and ``answer``.

    Raises:
        DataError: a row is none, or its answer has no ``#### number``, with its file and line.
    """
    problems: list[Problem] = []
    for where, row in read_placed_rows(source, ("question", "answer")):
        if first is not None and len(problems) == first:
            break
        question, answer = row["question"], row["answer"]
        if not isinstance(question, str) or not isinstance(answer, str):
            raise DataError(f"{where}: question or answer is no text", "give both as texts")
        if final_number.strict(answer) == final_number.INVALID:
            raise DataError(f"{where}: the answer has no `#### number`", "end each answer with #### and its number")
        problems.append(Problem(where, question, answer))
    if not problems:
        raise DataError(f"{source}: no problems", "check that the file was written whole")
    return problems


def evaluate_gsm8k(
    lm: LanguageModel,
    problems: Sequence[Problem],
    examples: Sequence[Problem],
    *,
    max_new_tokens: int = 256,
    batch_size: int = 16,
    done: Done | None = None,
) -> Evaluated:
    """Have the model answer greedily behind worked examples, and compare the number, strictly and flexibly found.

    Template, stops and filters are those of lm_eval's task ``gsm8k``; its examples are drawn, ours are the first.
    """
    before = "".join(f"{one.asked} {one.answer}\n\n" for one in examples)
    prompts = [before + one.asked for one in problems]
    answers_written = answers(
        lm, prompts, seeds=[0] * len(prompts), stop=STOPS, max_new_tokens=max_new_tokens, batch_size=batch_size,
        done=done, temperature=0,
    )  # fmt: skip
    facts = {"task": "gsm8k", "template": "lm_eval-3.0", "shots": len(examples), "tokens": max_new_tokens}
    scores, details = (
        [],
        [{"where": one.where, "answer": said} for one, said in zip(problems, answers_written, strict=True)],
    )
    for name, find in (("strict", final_number.strict), ("flexible", final_number.flexible)):
        right = [
            float(final_number.equal(find(said), one.answer))
            for one, said in zip(problems, answers_written, strict=True)
        ]
        scores.append(mean_of(f"exact match, {name}", signature(**facts, filter=name), right))
    return Evaluated(scores, [one.question for one in problems], details)
