"""What all tasks share: they are found by name, read lists and generators, and say which input is wrong."""

import io
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch

import orrery
from orrery.cli.verbs import VERBS
from orrery.data.batches.framing import longest_first
from orrery.data.batches.windows import windows
from orrery.errors import ModelFileError, UsageError
from orrery.exchange.reading.read import Stored
from orrery.language_model.model import LanguageModel
from orrery.serving.app import routers
from orrery.tasks import TASKS, InputRow, Pipeline, PipelineSettings, register
from orrery.tasks.pipelines._make import to_ask
from orrery.tasks.pipelines._spans import best_spans, ends_of
from served_models import headed_folder, last_head
from tiny_models import TOKENIZER, saved, tiny

NAMES = (
    "embedding", "feature-extraction", "fill-mask", "ner", "question-answering", "sentiment-analysis", "summarization",
    "text2text-generation", "text-classification", "text-generation", "token-classification", "translation",
    "zero-shot-classification",
)  # fmt: skip


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    return headed_folder(tmp_path_factory.mktemp("classifier"), mood=last_head("bad", "fine", "good"))


def test_names_and_aliases(tmp_path):
    assert [to_ask(name)[1] for name in NAMES] == [*NAMES]
    for learned, asked in {"regression": "text-classification", "sft": "text-generation", "tagging": "ner"}.items():
        assert to_ask(learned)[0] is to_ask(asked)[0]
    lm = orrery.load(saved(tmp_path / "llama", "llama"), "cpu", say=str)
    assert orrery.pipeline("feature-extraction", lm).kind == orrery.pipeline("feature_extraction", lm).kind
    with pytest.raises(UsageError, match="no pipeline for 'no-such-task'") as refused:
        orrery.pipeline("no-such-task", lm)
    assert "sentiment-analysis" in refused.value.hint
    with pytest.raises(UsageError, match="belong to a folder"):
        orrery.pipeline("text-generation", lm, device="cpu")
    with pytest.raises(ModelFileError):
        orrery.pipeline("ner", tmp_path / "missing")
    rnn = orrery.load(saved(tmp_path / "rnn", "rnnsearch"), "cpu", say=str)
    pairs = orrery.pipeline("translation_en_to_de", rnn, max_new_tokens=3)
    assert pairs.kind == "translation"
    assert [list(one) for one in pairs(["the cat", "a log"])] == [["translation_text"]] * 2
    assert len(orrery.pipeline("feature-extraction", rnn)("the cat")[0]) == len(rnn.tokenizer.encode("the cat"))


def test_every_name_is_of_one_task_and_none_of_a_program_may_take_it():
    tasks = [TASKS.find(name) for name in TASKS.names()]
    names = [name for task in tasks for name in (task.kind, *task.names)]
    assert len(names) == len(set(names))
    paths = {route.path for router in routers() for route in router.routes}
    assert {task.verb for task in tasks} - {""} <= VERBS.keys()
    assert {task.route for task in tasks} - {""} <= paths
    for own in ({"kind": "ner"}, {"kind": "made_up", "names": ("text_classification",)}):
        with pytest.raises(UsageError, match="is taken: it is a name of the task"):
            register(type("Own", (Pipeline,), own))


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_an_embedding_is_one_vector_a_text_the_mean_of_those_of_its_tokens(tmp_path, name):
    lm = orrery.load(saved(tmp_path / name, name), "cpu", say=str)
    texts = ["the cat", "the dog sat on the log", "a"]
    tokens = orrery.pipeline("feature-extraction", lm, return_tensors=True)(texts)
    ask = orrery.pipeline("embedding", lm, batch_size=2)
    found = ask(texts)
    torch.testing.assert_close(torch.tensor(found), torch.stack([x_1LD[0].mean(0) for x_1LD in tokens]))
    torch.testing.assert_close(torch.tensor(found), lm.embed(texts))
    assert ask(texts[0]) == pytest.approx(found[0], abs=1e-6)
    assert list(ask(iter(texts))) == [pytest.approx(one, abs=1e-6) for one in found]
    unit = ask(texts, normalise=True)
    torch.testing.assert_close(torch.tensor(unit), torch.nn.functional.normalize(torch.tensor(found)))
    long = "the cat sat " * 100
    assert len(ask(long, truncation=True)) == len(found[0])
    for wrong, said in (({"prompt": "x"}, "no prompt is called 'x'"), ({"head": "x"}, "embedding: head")):
        with pytest.raises(UsageError, match=said):
            orrery.pipeline("embedding", lm, **wrong)
    for texts, said in (([long], "input 1: a text of"), (["a", 3], "input 2: embedding reads texts")):
        with pytest.raises(UsageError, match=said):
            ask(texts)


@pytest.mark.parametrize(
    ("route", "said"),
    [
        ("/v1/embeddings", "is answered by one of the server's own: /v1/embeddings"),
        ("/v1/models/mine", "is answered by one of the server's own: /v1/models/"),
        ("/v1/tasks/earlier", "is answered by the task earlier: /v1/tasks/earlier"),
        ("mine", "does not begin with /"),
    ],
)
def test_a_task_whose_route_another_answers_is_refused_by_name(route, said):
    own = {"rows": None, "ask": None, "answer": None}
    for kind, more in {"earlier": {}, "later": {"route": route}}.items():
        register(type(kind.title(), (Pipeline,), {"kind": kind, **own, **more}))
    try:
        with pytest.raises(UsageError, match=f"the route {route} of the task later {said}") as found:
            list(routers())
        assert "such as /v1/tasks/NAME" in found.value.hint
        TASKS.find("later").route = "/v1/tasks/later"
        assert "/v1/tasks/later" in {route.path for router in routers() for route in router.routes}
    finally:
        for kind in ("earlier", "later"):
            TASKS._parts.pop(kind)


def test_a_decoder_with_a_head_for_classes_pools_its_last_token(classifier):
    pipe = orrery.pipeline("text-classification", classifier, device="cpu", top_k=None)
    model, tokenizer = pipe.lm.model, pipe.lm.tokenizer
    texts = ["the cat", "the dog sat on the log", "äöü 日本"]
    for size in (1, 3):
        for text, scored in zip(texts, pipe(texts, batch_size=size), strict=True):
            with torch.no_grad():
                stream = model.hidden(torch.tensor([tokenizer.encode(text)]))[0, -1]
                expected = model.heads["mood"].labels(stream).softmax(-1).tolist()
            by_name = {one["label"]: one["score"] for one in scored}
            assert [by_name[name] for name in ("bad", "fine", "good")] == pytest.approx(expected, abs=1e-6)
    assert pipe(texts, head="mood") == pipe(texts)
    with pytest.raises(UsageError, match="no head 'token'"):
        orrery.pipeline("ner", classifier)("the cat")


def test_generators_are_read_as_they_are_asked(classifier):
    pipe = orrery.pipeline("text-classification", classifier, device="cpu", batch_size=2)
    read = []

    def texts():
        for text in ("the cat", "a dog", "a log", "a mat"):
            read.append(text)
            yield text

    answers = pipe(texts())
    assert read == []
    first = next(answers)
    assert len(read) == 2
    assert [first, *answers] == pipe(["the cat", "a dog", "a log", "a mat"])
    with pytest.raises(UsageError, match="input 3: "):
        list(pipe(iter(["a", "b", 3])))


def test_progress_is_told_and_shown_on_a_terminal_alone(classifier, monkeypatch, capsys):
    pipe = orrery.pipeline("text-classification", classifier, device="cpu", batch_size=2)
    told = []
    pipe(["the cat"] * 5, done=lambda count, total: told.append((count, total)))
    assert told == [(2, 5), (4, 5), (5, 5)]
    monkeypatch.setattr("orrery.reports.status.PATIENCE", 0.0)
    pipe(["the cat"] * 5)
    assert capsys.readouterr().err == ""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    slow = pipe.ask
    monkeypatch.setattr(pipe, "ask", lambda *words: (__import__("time").sleep(0.3), slow(*words))[1])
    pipe(["the cat"] * 5)
    assert "text-classification" in terminal.getvalue()


def test_a_task_of_a_program(classifier):
    class Length(Pipeline):
        """Tokens of a text."""

        kind = "length"
        Settings = PipelineSettings

        def rows(self, item, settings):
            ids = self.lm.tokenizer.encode(item)
            return [InputRow(ids, [0] * len(ids), [0] * len(ids))]

        def ask(self, rows, settings):
            return [len(row.ids) for row in rows]

        def answer(self, item, rows, outputs, settings):
            return outputs[0]

    register(Length)
    try:
        pipe = orrery.pipeline("length", classifier, device="cpu")
        assert pipe(["the cat", ""]) == [len(TOKENIZER.encode("the cat")), 0]
        with pytest.raises(UsageError, match="top_k"):
            pipe("a", top_k=3)
    finally:
        TASKS._parts.pop("length")


@pytest.mark.parametrize("tokens", [0, 1, 7, 8, 20])
@pytest.mark.parametrize(("size", "overlap"), [(8, 0), (8, 3), (4, 3), (1, 0)])
def test_windows_hold_every_token_and_share_so_many(tokens, size, overlap):
    bounds = list(windows(tokens, size, overlap))
    assert {n for start, end in bounds for n in range(start, end)} == set(range(tokens))
    assert all(end - start <= size for start, end in bounds)
    assert all(a[1] - b[0] == overlap for a, b in pairwise(bounds))
    with pytest.raises(UsageError):
        list(windows(tokens, size, size))


def test_the_longer_text_is_cut_first():
    for first in range(12):
        for second in range(12):
            for room in range(1, 14):
                kept = longest_first(first, second, room)
                assert sum(kept) == min(first + second, room)
                assert kept[0] <= first
                assert kept[1] <= second


def test_spans_are_the_best_of_all_that_may_be():
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(9, 2, generator=rng, dtype=torch.float64).numpy() * 3
    allowed = torch.tensor([1, 0, 0, 1, 1, 1, 1, 1, 0]).bool().numpy()
    start, end = ends_of(logits, allowed)
    assert start[~allowed].max() == 0
    spans = [(start[i] * end[j], i, j) for i in range(9) for j in range(i, min(i + 3, 9)) if allowed[i] and allowed[j]]
    spans_found = best_spans(start, end, allowed, 5, 3)
    assert [(one.start, one.end) for one in spans_found] == [(i, j) for _, i, j in sorted(spans, reverse=True)[:5]]


@pytest.mark.parametrize(("tokens", "asked", "kept"), [(3, 8, 3), (40, 8, 40), (41, 8, 40), (90, 8, 40), (90, 47, 1)])
def test_a_text_too_long_loses_its_beginning_where_the_answer_is_given_room(tokens, asked, kept):
    lm = LanguageModel(Stored(Path("tiny"), tiny("gpt2"), tokenizer=TOKENIZER))
    assert lm.context == 48
    ask = orrery.pipeline("text-generation", lm)
    settings = ask.chosen({"handle_long_generation": "hole", "max_new_tokens": asked})
    text = "abcdefghij" * 9
    ids = TOKENIZER.encode(text)[:tokens]
    (row,) = ask.rows(TOKENIZER.decode(ids), settings)
    assert row.ids == ids[-kept:]
    assert len(row.ids) == len(row.token_types) == len(row.texts) == kept
    with pytest.raises(UsageError, match="an answer of 48 tokens leaves no room in the context of 48") as error:
        ask.rows(text, ask.chosen({"handle_long_generation": "hole", "max_new_tokens": 48}))
    assert error.value.hint == "lower max_new_tokens"
