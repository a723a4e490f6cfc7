"""Retrieval, similarity and reranking have the numbers of sentence-transformers' evaluators."""

import functools
import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.cross_encoder.evaluation import (
    CrossEncoderCorrelationEvaluator,
    CrossEncoderRerankingEvaluator,
)
from sentence_transformers.sentence_transformer.evaluation import (
    EmbeddingSimilarityEvaluator,
    InformationRetrievalEvaluator,
)
from sentence_transformers.sentence_transformer.modules import Pooling

import orrery
from orrery.cli.program import run
from orrery.data.rows.retrieval_sets import read_retrieval
from orrery.errors import DataError
from orrery.evaluation.benchmarks import retrieval
from orrery.evaluation.benchmarks.reranking import evaluate_reranking, read_candidates
from orrery.evaluation.benchmarks.retrieval import evaluate_retrieval
from orrery.evaluation.benchmarks.similarity import evaluate_similarity, read_judged
from orrery.scores.retrieval import average_precision_of_scores, hit_at, ndcg_of_ranks, precision_at
from tests.parity.test_cross_encoders import WORDS, long, published, theirs
from tests.parity.test_sentence_transformers import folder

RNG = random.Random(0)
TEXTS = [" ".join(RNG.choices(WORDS.split(), k=RNG.randint(1, 12))) for _ in range(150)]
QUERIES = {f"q{n}": TEXTS[n] for n in range(12)}
CORPUS = {f"d{n}": text for n, text in enumerate(TEXTS[12:140])} | {"same": TEXTS[20], "twin": TEXTS[20]}
RIGHT = {name: set(RNG.sample(sorted(CORPUS), RNG.randint(1, 5))) for name in list(QUERIES)[:-1]}
BOUND = 1e-6


def embedder(place: Path, **said: Any) -> SentenceTransformer:
    """Return a model of theirs over a folder of ours, saved beside as ``folder``."""
    reader = Transformer(str(folder(place / "bare")))
    pool = Pooling(reader.get_embedding_dimension(), pooling_mode="mean")
    model = SentenceTransformer(modules=[reader, pool], device="cpu", **said)
    model.save(str(place / "folder"))
    return model


def beir(place: Path) -> Path:
    """Write the queries, the corpus and the relevances as BEIR has them."""
    (place / "qrels").mkdir(parents=True)
    for name, texts in (("queries", QUERIES), ("corpus", CORPUS)):
        lines = [{"_id": key, "text": text, "metadata": {}} for key, text in texts.items()]
        (place / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows = [(query, name, 1) for query, names in RIGHT.items() for name in sorted(names)]
    rows += [(query, "d1", 0) for query in RIGHT if "d1" not in RIGHT[query]] + [("nobody", "d2", 1)]
    head = "query-id\tcorpus-id\tscore\n"
    (place / "qrels" / "test.tsv").write_text(head + "".join("\t".join(map(str, row)) + "\n" for row in rows))
    return place


@pytest.mark.parametrize(
    "said", [{}, long({"similarity_fn_name": "dot"}), long({"similarity_fn_name": "manhattan"}),
             {"similarity_fn_name": "euclidean", "prompts": {"query": "the dog: ", "passage": "mat "}}],
    ids=["cosine", "dot", "manhattan", "euclidean with prompts"],
)  # fmt: skip
def test_retrieval_has_their_numbers(said: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = embedder(tmp_path, **said)
    monkeypatch.setattr(retrieval, "CHUNK", 50)
    # Theirs takes distances from products, and what is left of the digits decides the order of near texts.
    exact = functools.partial(torch.cdist, compute_mode="donot_use_mm_for_euclid_dist")
    monkeypatch.setattr("sentence_transformers.util.similarity.torch.cdist", exact)
    expected = InformationRetrievalEvaluator(
        QUERIES, CORPUS, RIGHT, precision_recall_at_k=[1, 3, 5, 10, 100], write_csv=False
    )(model)
    lm = orrery.load(tmp_path / "folder", "cpu", say=str)
    evaluated = evaluate_retrieval(lm, read_retrieval(beir(tmp_path / "beir")))
    assert {"1 names in qrels are no query and no document, and passed over: nobody"} < set(evaluated.notes)
    kind = said.get("similarity_fn_name", "cosine")
    names = {"hit": "accuracy", "MRR": "mrr", "nDCG": "ndcg", "MAP": "map"}
    for score in evaluated.scores:
        name, _, k = score.name.partition("@")
        assert score.score == pytest.approx(expected[f"{kind}_{names.get(name, name)}@{k}"], abs=BOUND), score.name
    ranks = [detail["found"] for detail in evaluated.details]
    right = [set(detail["right"]) for detail in evaluated.details]
    for k in (1, 3, 10):
        assert precision_at(k, ranks, right).score == pytest.approx(expected[f"{kind}_precision@{k}"], abs=BOUND)


def test_similarity_has_their_numbers(tmp_path: Path) -> None:
    rows = [{"sentence1": TEXTS[n], "sentence2": TEXTS[n + 40], "score": RNG.choice([0, 1.5, 2, 5])} for n in range(40)]
    (tmp_path / "sts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = ["a\tb\tscore", *("\t".join(map(str, row.values())) for row in rows)]
    (tmp_path / "sts.tsv").write_text("\n".join(lines) + "\n")
    sides = [[row[key] for row in rows] for key in ("sentence1", "sentence2", "score")]
    for kind in ("cosine",):
        place = tmp_path / kind
        # In float64: vectors of random models are nearly equal, and rounding is much of what parts them.
        model = embedder(place, similarity_fn_name=kind).double()
        expected = EmbeddingSimilarityEvaluator(*sides, write_csv=False)(model)
        lm = orrery.load(place / "folder", "cpu", "float64", say=str)
        for name in ("sts.jsonl", "sts.tsv"):
            ranks, straight = evaluate_similarity(lm, read_judged(tmp_path / name, (None, None, None))).scores
            assert ranks.score == pytest.approx(expected[f"spearman_{kind}"], abs=BOUND)
            assert straight.score == pytest.approx(expected[f"pearson_{kind}"], abs=BOUND)
    cross = published(tmp_path / "cross")
    expected = CrossEncoderCorrelationEvaluator(list(zip(*sides[:2], strict=True)), sides[2], write_csv=False)(
        theirs(cross)
    )
    evaluated = evaluate_similarity(
        orrery.load(cross, "cpu", say=str), read_judged(tmp_path / "sts.jsonl", (None,) * 3)
    )
    assert [score.score for score in evaluated.scores] == pytest.approx(
        [expected["spearman"], expected["pearson"]], abs=1e-5
    )


def samples(place: Path, key: str) -> list[dict[str, Any]]:
    """Write queries with candidates; one has no right document among them."""
    rows: list[dict[str, Any]] = []
    for n in range(10):
        right, wrong = TEXTS[20 + n : 20 + n + n % 4], TEXTS[60 + 3 * n : 66 + 3 * n]
        mixed = RNG.sample(right[:2] + wrong, len(right[:2] + wrong))
        rows.append({"query": TEXTS[n], "positive": right, key: wrong if key == "negative" else mixed})
    place.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


@pytest.mark.parametrize("key", ["negative", "documents"])
def test_reranking_has_their_numbers(key: str, tmp_path: Path) -> None:
    rows = samples(tmp_path / "rows.jsonl", key)
    place = published(tmp_path / "cross")
    expected = CrossEncoderRerankingEvaluator(rows, write_csv=False)(theirs(place))
    evaluated = evaluate_reranking(orrery.load(place, "cpu", say=str), read_candidates(tmp_path / "rows.jsonl"))
    wanted = [expected[name] for name in ("map", "mrr@10", "ndcg@10")]
    assert [score.score for score in evaluated.scores] == pytest.approx(wanted, abs=BOUND)
    if key == "documents":
        before = [float(note.rpartition(" ")[2]) for note in evaluated.notes[1:]]
        assert before == pytest.approx([expected[f"base_{name}"] for name in ("map", "mrr@10", "ndcg@10")], abs=1e-4)
    vectors = orrery.load(folder(tmp_path / "bare"), "cpu", say=str)
    assert 0 < evaluate_reranking(vectors, read_candidates(tmp_path / "rows.jsonl")).scores[0].score <= 1


def test_formulas_beside_scikit_learn_and_by_hand() -> None:
    from sklearn.metrics import average_precision_score

    rng = np.random.default_rng(0)
    gains = rng.integers(0, 2, (20, 9))
    gains[:, 0] = 1
    scores = rng.integers(0, 5, (20, 9)).astype(float)  # with many that are equal
    theirs = np.mean([average_precision_score(g, s) for g, s in zip(gains, scores, strict=True)])
    assert average_precision_of_scores(scores, gains).score == pytest.approx(theirs, abs=1e-12)
    assert average_precision_of_scores([[1.0, 2.0]], [[0, 0]]).score == 0
    ideal = 3 + 1 / math.log2(3)
    assert ndcg_of_ranks(5, [["b", "x", "a"]], [{"a": 3, "b": 1}]).score == pytest.approx((1 + 3 / 2) / ideal)
    assert hit_at(2, [["x", "a"], ["y", "x"]], [{"a"}, {"b"}]).score == 0.5


def test_the_verbs_print_and_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, data = folder(tmp_path / "bare"), beir(tmp_path / "beir")
    rows = samples(tmp_path / "rows.jsonl", "negative")
    (tmp_path / "pairs.tsv").write_text(
        "query\tpassage\n" + "".join(f"{a}\t{b}\n" for a, b in zip(TEXTS[:9], TEXTS[50:59], strict=True))
    )
    (tmp_path / "sts.csv").write_text(
        "sentence1,sentence2,score\n"
        + "".join(f"{a},{b},1.{n}\n" for n, (a, b) in enumerate(zip(TEXTS[:9], TEXTS[50:59], strict=True)))
    )
    model = str(place)
    assert run(["evaluate", model, "retrieval", str(data), "-o", str(tmp_path / "out.json")]) == 0
    out = capsys.readouterr().out
    assert "nDCG@10" in out
    assert "11 queries, 130 documents, compared by cosine" in out
    assert json.loads((tmp_path / "out.json").read_text())["items"][0]["found"]
    assert run(["evaluate", model, "retrieval", str(tmp_path / "pairs.tsv"), "--first", "4"]) == 0
    assert "4 queries, 9 documents" in capsys.readouterr().out
    assert run(["evaluate", model, "similarity", str(tmp_path / "sts.csv")]) == 0
    assert "Spearman" in capsys.readouterr().out
    assert run(["evaluate", model, "reranking", str(tmp_path / "rows.jsonl")]) == 0
    assert f"{len(rows)} queries" in capsys.readouterr().out


def wrong(place: Path, change: str) -> Path:
    data = beir(place)
    match change:
        case "no corpus":
            (data / "corpus.jsonl").unlink()
        case "another split":
            (data / "qrels" / "test.tsv").rename(data / "qrels" / "dev.tsv")
        case "a name twice":
            (data / "queries.jsonl").write_text('{"_id": "a", "text": "x"}\n{"_id": "a", "text": "y"}\n')
        case "no name":
            (data / "queries.jsonl").write_text('{"text": "x"}\n')
        case "a grade in words":
            (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\thigh\n")
        case "two fields":
            (data / "qrels" / "test.tsv").write_text("q1\td1\n")
        case "nothing right":
            (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t0\n")
        case "no text":
            (data / "corpus.jsonl").write_text('{"_id": "d1", "text": 3}\n')
    return data


@pytest.mark.parametrize(
    "change",
    [
        "no corpus", "another split", "a name twice", "no name", "a grade in words", "two fields", "nothing right",
        "no text",
    ],
)  # fmt: skip
def test_a_damaged_set_is_refused_by_what_is_wrong(change: str, tmp_path: Path) -> None:
    data = wrong(tmp_path / "beir", change)
    with pytest.raises(DataError) as refused:
        read_retrieval(data)
    assert refused.value.hint
    assert str(data) in refused.value.message


@pytest.mark.parametrize("line", ['{"query": "a"}', '{"positive": ["a"]}', '{"query": "a", "positive": ["a"]}',
                                  '{"query": "a", "positive": [1], "negative": []}',
                                  '{"query": "a", "positive": [], "negative": []}'])  # fmt: skip
def test_candidates_that_are_none_are_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(line + "\n")
    with pytest.raises(DataError, match=r"rows\.jsonl:1"):
        read_candidates(tmp_path / "rows.jsonl")


def test_scores_of_pairs_and_entailment_are_no_relevance(tmp_path):
    scored = tmp_path / "sts.jsonl"
    scored.write_text(
        '{"sentence1": "a", "sentence2": "b", "score": 1}\n{"sentence1": "c", "sentence2": "d", "score": 0.2}\n'
    )
    with pytest.raises(DataError, match=r"sts\.jsonl:2: the grade 0\.2, and a grade is a whole number"):
        read_retrieval(scored)
    (tmp_path / "nli.jsonl").write_text('{"premise": "a", "hypothesis": "b", "label": 2}\n')
    with pytest.raises(DataError, match="no columns are known to hold a query and a document"):
        read_retrieval(tmp_path / "nli.jsonl")
