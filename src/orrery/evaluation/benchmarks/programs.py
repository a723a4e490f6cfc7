"""HumanEval (Chen et al. 2021) and MBPP (Austin et al. 2021): programs that a model writes, run in the sandbox."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from orrery.data.corpora import read_placed_rows
from orrery.errors import DataError, UsageError
from orrery.evaluation.evaluated import Done, Evaluated, answers
from orrery.language_model.model import LanguageModel
from orrery.sandbox import Exam, SandboxLimits, Verdict, check_all, isolation
from orrery.scores.pass_at_k import pass_at
from orrery.scores.programs import HUMANEVAL_STOPS, MBPP_STOPS, code_of, humaneval_exam, mbpp_exam

T = TypeVar("T")

MBPP_PROMPT = (
    "You are an expert Python programmer, and here is your task: {text} Your code should pass these tests:\n\n"
    "{tests}\n[BEGIN]\n"
)
"""Austin et al. 2021, section 3.1, as lm_eval has it."""


@dataclass(frozen=True)
class ProgrammingTask:
    """A problem: what the model reads, and how what it writes becomes a program and its tests."""

    where: str
    prompt: str
    item: str
    right: str
    row: dict[str, Any]

    def exam(self, answer: str) -> Exam:
        """Return the program that an answer makes, with its tests."""
        row = self.row
        if "entry_point" in row:
            return humaneval_exam(row["prompt"], answer, row["test"], row["entry_point"])
        setup = "\n".join([str(row.get("test_setup_code") or ""), *(row.get("test_imports") or [])])
        return mbpp_exam(code_of(answer), row["test_list"], row["code"], setup)


@dataclass(frozen=True)
class ProgramSampling:
    """How programs are drawn: ``samples`` for each problem, each with a seed of its own."""

    samples: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    max_new_tokens: int = 512
    seed: int = 1337
    batch_size: int = 16


def read_humaneval(source: str = "humaneval", first: int | None = None) -> list[ProgrammingTask]:
    """Return the problems of rows with ``task_id``, ``prompt``, ``entry_point``, ``canonical_solution`` and ``test``.

    Raises:
        DataError: a row is none, with its file and line.
    """
    problems: list[ProgrammingTask] = []
    columns = ("task_id", "prompt", "entry_point", "canonical_solution", "test")
    for where, row in read_placed_rows(source, columns):
        if first is not None and len(problems) == first:
            break
        _refuse_no_texts(where, row, columns)
        problems.append(ProgrammingTask(where, row["prompt"], row["prompt"], row["canonical_solution"], row))
        _refuse_no_exam(problems[-1])
    return _refuse_none(problems, source)


def read_mbpp(source: str, first: int | None = None) -> list[ProgrammingTask]:
    """Return the problems of rows with ``text`` (or ``prompt``), ``code`` and ``test_list``.

    ``test_setup_code`` and ``test_imports`` are run before the tests where they are given.

    Raises:
        DataError: a row is none, with its file and line.
    """
    problems: list[ProgrammingTask] = []
    for where, row in read_placed_rows(source):
        if first is not None and len(problems) == first:
            break
        row = {**row, "text": row.get("text", row.get("prompt"))}
        _refuse_no_texts(where, row, ("text", "code"))
        row = {name: value for name, value in row.items() if name != "entry_point"}
        tests = row.get("test_list")
        if not isinstance(tests, list) or not tests or not all(isinstance(test, str) for test in tests):
            raise DataError(f"{where}: `test_list` is no list of asserts", 'give ["assert f(1) == 2", "..."]')
        prompt = MBPP_PROMPT.format(text=row["text"], tests="\n".join(tests[:3]))
        problems.append(ProgrammingTask(where, prompt, row["text"], row["code"].replace("\r\n", "\n"), row))
        _refuse_no_exam(problems[-1])
    return _refuse_none(problems, source)


def with_examples(tasks: Sequence[ProgrammingTask], examples: Sequence[ProgrammingTask]) -> list[ProgrammingTask]:
    """Return MBPP's problems behind examples, each with its code and ``[DONE]``."""
    before = "".join(f"{one.prompt}{one.right}\n[DONE]\n\n" for one in examples)
    return [ProgrammingTask(one.where, before + one.prompt, one.item, one.right, one.row) for one in tasks]


def evaluate_programs(
    lm: LanguageModel,
    tasks: Sequence[ProgrammingTask],
    *,
    ks: Sequence[int] = (1,),
    drawing: ProgramSampling = ProgramSampling(),  # frozen
    limits: SandboxLimits = SandboxLimits(),  # noqa: B008  # frozen
    done: Done | None = None,
    **facts: object,
) -> Evaluated:
    """Draw programs for each problem, run each with its tests in a sandbox of its own, and estimate pass@k.

    Raises:
        MachineError: this machine cannot isolate generated code; nothing is drawn or run.
        UsageError: fewer samples than some k, or several greedy ones, which are all the same.
    """
    layers = isolation()
    _refuse_drawing(ks, drawing)
    prompts = [one.prompt for one in tasks for _ in range(drawing.samples)]
    seeds = [drawing.seed + number for number in range(len(prompts))]
    stops = HUMANEVAL_STOPS if "entry_point" in tasks[0].row else MBPP_STOPS
    sampling = (
        {"temperature": drawing.temperature, "top_p": drawing.top_p} if drawing.temperature else {"temperature": 0}
    )
    programs = answers(
        lm, prompts, seeds=seeds, stop=stops, max_new_tokens=drawing.max_new_tokens, batch_size=drawing.batch_size,
        done=done, **sampling,
    )  # fmt: skip
    exams = [tasks[number // drawing.samples].exam(answer) for number, answer in enumerate(programs)]
    verdicts = check_all(exams, limits, done=_told(done, len(exams)))
    per_task = _parts(verdicts, drawing.samples)
    passed = [sum(verdict.passed for verdict in own) for own in per_task]
    facts_of_run = {
        **facts, "temperature": drawing.temperature, "top_p": drawing.top_p, "tokens": drawing.max_new_tokens,
        "seed": drawing.seed, "seconds": limits.seconds, "MiB": limits.memory >> 20,
    }  # fmt: skip
    scores = [pass_at(k, passed, drawing.samples, **facts_of_run) for k in ks]
    details = [_detail(*each) for each in zip(tasks, _parts(programs, drawing.samples), per_task, strict=True)]
    outcomes = [verdict.outcome for verdict in verdicts]
    counts = ", ".join(f"{outcomes.count(name):,} {name}" for name in sorted(set(outcomes)))
    return Evaluated(scores, [one.item for one in tasks], details, notes=[f"programs: {counts}", f"sandbox: {layers}"])


def _parts(values: Sequence[T], size: int) -> list[Sequence[T]]:
    """Return the values of each problem."""
    return [values[start : start + size] for start in range(0, len(values), size)]


def _detail(task: ProgrammingTask, programs: Sequence[str], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    outcomes = [[verdict.outcome, verdict.detail] for verdict in verdicts]
    return {"where": task.where, "answers": list(programs), "outcomes": outcomes}


def _told(done: Done | None, count: int) -> Any:
    return None if done is None else lambda number: done(f"{number:,} of {count:,} programs run")


def _refuse_drawing(ks: Sequence[int], drawing: ProgramSampling) -> None:
    if not ks or max(ks) > drawing.samples:
        message = f"pass@{max(ks, default=0)} from {drawing.samples} samples of each problem"
        raise UsageError(message, f"--programs {max(ks, default=1)} --temperature 0.8")
    if drawing.samples > 1 and not drawing.temperature:
        raise UsageError(f"{drawing.samples} greedy samples are the same program", "--temperature 0.8, or --programs 1")


def _refuse_no_texts(where: str, row: dict[str, Any], columns: Sequence[str]) -> None:
    for name in columns:
        if not isinstance(row.get(name), str) or not row[name]:
            raise DataError(f"{where}: no text `{name}`", f"a problem has {', '.join(columns)}")


def _refuse_no_exam(task: ProgrammingTask) -> None:
    """Refuse a problem that no answer could solve, with its line."""
    try:
        task.exam(task.right)
    except DataError as error:
        raise DataError(f"{task.where}: {error.message}", error.hint) from None


def _refuse_none(problems: list[ProgrammingTask], source: str) -> list[ProgrammingTask]:
    if not problems:
        raise DataError(f"{source}: no problems", "check that the file was written whole")
    return problems
