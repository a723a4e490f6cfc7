"""Tasks that transformers 5 no longer has: what transformers 4.57 answers, recorded, and the script that records it.

``pip install --target FOLDER --no-deps 'transformers==4.57.*' 'tokenizers<0.23' 'huggingface_hub<1'``, then
``python -m tests.parity.recorded_pipelines FOLDER [CASE ...]``, from the checkout. Models are not stored: both the
script and the tests draw them from their seeds, and a sum over the weights and the tokenizer says whether they are
the same.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

DATA = Path(__file__).parents[1] / "data" / "pipelines"
CONTEXT = (
    "Ada Lovelace wrote to Charles Babbage in London about his engine. The cat sat near Berlin, while nobody in 日本 "
    "was looking; a naïve café owner sold Öl for 3 Euro. A long winter followed a short summer."
)
QUESTIONS = ["Who wrote to Charles?", "Where did the cat sit", "What cost 3 Euro?"]
ASKED = [{"question": question, "context": CONTEXT} for question in QUESTIONS]
SHORT = {"question": "Who?", "context": "Ada wrote"}
TEXTS = ["The cat sat near London.", "Ada wrote", "Öl in 日本 🙂", "A long winter followed a short summer"]


@dataclass(frozen=True)
class Case:
    """One model and what it is asked: settings of each call beside its inputs."""

    name: str
    task: str
    kind: str
    auto: str
    calls: list[tuple[Any, dict[str, Any]]]
    context: int = 512
    config: dict[str, Any] = field(default_factory=dict)


def cases() -> Iterator[Case]:
    """Yield every case."""
    asked: list[tuple[Any, dict[str, Any]]] = [
        (ASKED[0], {}),
        (ASKED, {}),
        (ASKED, {"top_k": 4}),
        (SHORT, {"top_k": 3, "max_answer_len": 2}),
        (ASKED, {"max_seq_len": 40, "doc_stride": 8, "top_k": 3}),
        (ASKED, {"max_seq_len": 50, "align_to_words": False, "max_answer_len": 6, "top_k": 2}),
        (ASKED, {"max_seq_len": 48, "doc_stride": 4, "handle_impossible_answer": True, "top_k": 3}),
        (ASKED, {"handle_impossible_answer": True, "max_answer_len": 1}),
    ]
    for kind in ("bert", "roberta", "distilbert", "electra", "deberta-v2", "modernbert"):
        yield Case(f"answers-{kind}", "question-answering", kind, "AutoModelForQuestionAnswering", asked)
    greedy = {"num_beams": 1, "max_new_tokens": 12}
    written: list[tuple[Any, dict[str, Any]]] = [
        (TEXTS[0], greedy),
        (TEXTS, greedy),
        (TEXTS, {**greedy, "min_length": 6, "no_repeat_ngram_size": 2}),
        (TEXTS, {"num_beams": 3, "max_new_tokens": 8}),
        (TEXTS, {"num_beams": 2, "max_new_tokens": 10, "length_penalty": 2.0, "num_return_sequences": 2}),
        (TEXTS, {"num_beams": 4, "max_new_tokens": 12, "early_stopping": True}),
        (TEXTS, {"max_new_tokens": 16}),
    ]
    # The reference fills short rows with the first end token, which decoding must leave out.
    ends = {"max_new_tokens": 12, "no_repeat_ngram_size": 1, "eos_token_id": [1, *range(7, 150, 4)]}
    for early in (True, False, "never"):
        for penalty in (0.0, 1.0, 2.5):
            beams = {"num_beams": 3, "num_return_sequences": 2, "early_stopping": early, "length_penalty": penalty}
            written.append((TEXTS, {**ends, **beams}))
    tasks = {"t5": "text2text-generation", "bart": "summarization", "marian": "translation_en_to_de"}
    for kind, task in tasks.items():
        own = {"max_new_tokens": 13, "min_length": 3, "prefix": "summarize: ", "num_beams": 2}
        params = {"task_specific_params": {task: own}} if kind == "bart" else {}
        # Where no file says how long, 256 tokens are written, and those of a random model end in ties.
        calls = [*written, (TEXTS, {})] if params else written
        yield Case(f"writes-{kind}", task, kind, "AutoModelForSeq2SeqLM", calls, config=params)


def made(case: Case, place: Path) -> Path:
    """Return the folder of a case's model, drawn from its seed."""
    from tests.parity.pipelines import edit_config, folder

    folder(place, case.kind, case.auto, context=case.context)
    _sharpen(place / "model.safetensors")
    if case.config:
        edit_config(place, **case.config)
    return place


def _sharpen(file: Path) -> None:
    """Make the ends of answers probable: random ones are all alike, and their order would be one of rounding."""
    tensors = load_file(file)
    if "qa_outputs.weight" in tensors:
        save_file({**tensors, "qa_outputs.weight": tensors["qa_outputs.weight"] * 40}, file, {"format": "pt"})


def fingerprint(place: Path) -> str:
    """Return what tells whether a model and its tokenizer are those that were recorded."""
    tensors = load_file(place / "model.safetensors")
    total = sum(float(tensor.double().abs().sum()) for tensor in tensors.values())
    content = json.loads((place / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = json.dumps(content["model"], sort_keys=True)
    return f"{total:.3f} {hashlib.sha256(vocabulary.encode()).hexdigest()[:12]}"


def recorded(case: Case) -> dict[str, Any]:
    """Return what was recorded of a case."""
    answers: dict[str, Any] = json.loads((DATA / f"{case.name}.json").read_text(encoding="utf-8"))
    return answers


def record(library: Path, names: Sequence[str]) -> None:
    """Write the answers of every case, or of those that are named."""
    from tests.parity import trained_tokenizers

    DATA.mkdir(parents=True, exist_ok=True)
    for name, tokenizer in trained_tokenizers.all_of_them().items():
        if not (DATA / f"{name}.json").exists():
            tokenizer.save(str(DATA / f"{name}.json"), pretty=False)
    for case in (case for case in cases() if not names or case.name in names):
        with tempfile.TemporaryDirectory() as place:
            made(case, Path(place))
            words = [sys.executable, __file__, "--answer", case.name, place]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(library), str(Path(__file__).parents[2])])}
            answer = subprocess.run(words, env=environment, capture_output=True, text=True)
            if answer.returncode:
                raise SystemExit(answer.stderr)
            content = {"transformers": "4.57", "model": fingerprint(Path(place)), **json.loads(answer.stdout)}
        text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
        (DATA / f"{case.name}.json").write_text(text, encoding="utf-8")


def answer(name: str, place: str) -> None:
    """Print what the old library's pipeline gives for one case: it is the one that is imported here."""
    import warnings

    import transformers

    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    case = next(case for case in cases() if case.name == name)
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(place)
    pipe = transformers.pipeline(case.task, model=place, tokenizer=tokenizer, device="cpu")
    answers = [
        pipe(**given, **settings) if _named(given) else pipe(given, **settings) for given, settings in case.calls
    ]
    print(json.dumps({"answers": answers}))


def _named(given: Any) -> bool:
    return isinstance(given, dict)


if __name__ == "__main__":
    answer(*sys.argv[2:]) if sys.argv[1] == "--answer" else record(Path(sys.argv[1]).resolve(), sys.argv[2:])
