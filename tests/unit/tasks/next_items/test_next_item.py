"""The task next-item, whole: fine-tuned on a file, scored, asked, with new items, over HTTP; and what it refuses."""

import json
import random

import numpy as np
import pytest
import torch

import orrery
from orrery.checkpoints.tensors import read_tensors, write_tensors
from orrery.data.rows.histories import spelt
from orrery.data.sources.interactions import InteractionSource
from orrery.errors import DataError, ModelFileError, UsageError
from orrery.exchange.exporting.export import export_hf
from orrery.families import load_family, spec_of
from orrery.models.next_items import scores_of
from orrery.recipes.read import load_recipe
from orrery.scores.ranks import ranks_of
from orrery.tasks.finetuning.conclude import SCORES
from orrery.tasks.finetuning.recipe import Request, recipe_for
from orrery.tasks.next_items.baselines import BACKED, GAPS, MarkovGaps, candidates
from orrery.tasks.next_items.counts import FILE, FLOOR, Counts
from orrery.tasks.next_items.counts import load as load_counts
from orrery.tasks.next_items.ranking import Judge, drawn, items_of, names_of, ranked
from orrery.tasks.next_items.scoring import Problem, findings

ITEMS = 30


def name(item):
    return f"film {item % ITEMS}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Users who go round 30 films one after another, each from a film of its own; film 7 is new."""
    place = tmp_path_factory.mktemp("films")
    rng = random.Random(0)
    lines = ["user,item,time"]
    for user in range(150):
        first, count = rng.randrange(ITEMS), rng.randrange(5, 12)
        taken = [first + n for n in range(count + 1) if (first + n) % ITEMS != 7 or n == count]
        lines += [f"u{user},{name(item)},{time}" for time, item in enumerate(taken)]
    (place / "acts.csv").write_text("\n".join(lines) + "\n")
    texts = [f"{name(n)},number {n} of the films behind {n - 1}" for n in range(ITEMS)] + [
        "film X,number 9 of the films"
    ]
    (place / "films.csv").write_text("item,text\n" + "\n".join(texts) + "\n")
    return place


@pytest.fixture(scope="module", params=["causal", "masked", "gru"])
def run(request, folder):
    """A model of each kind, trained for some seconds; the recurrence has counts beside it."""
    acts = {"kind": "interactions", "train": str(folder / "acts.csv"), "items": str(folder / "films.csv"), "sampled": 5}
    own = {
        "causal": {},
        "masked": {
            "objective": "masked",
            "batches": {"kind": "whole", "length": 16, "size": 64},
            "tokenizer": {"kind": "word", "frame": "bert"},
            "model": {"family": "bert", "config": {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
                                                   "intermediate_size": 64, "max_position_embeddings": 16}},
        },
        "gru": {"model": {"family": "gru", "config": {"hidden_size": 32, "num_layers": 1, "max_position_embeddings": 16,
                                                      "tie_word_embeddings": True}},
                "data": {**acts, "counts": 0.3}},
    }[request.param]  # fmt: skip
    base = {
        "name": "films", "task": "next_item", "seed": 1,
        "model": {"family": "gpt2", "config": {"n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 16}},
        "tokenizer": {"kind": "word"},
        "data": acts,
        "batches": {"kind": "shifted", "length": 16, "size": 64},
        "training": {"steps": 120, "optimizer": {"kind": "adamw", "rate": 1e-2}, "precision": "float32"},
        "evaluation": {"every": 60, "metrics": ["ndcg"], "best": "ndcg"},
        "checkpoints": {"every": 60, "keep": 1},
    }  # fmt: skip
    place = folder / request.param
    file = folder / f"{request.param}.yaml"
    file.write_text(json.dumps({**base, **own}))
    done = orrery.finetune(str(file), output=place, quiet=True)
    return request.param, place, done


def logs_of_counts(place, source, ids, asked, size):
    """The logarithms of what followed what, counted in plain loops with the decay that the file has."""
    learned = [[ids[item] for item in each.learned] for each in source.histories]
    decay = read_tensors(place / "final" / FILE)["numbers"][1].item()
    found = np.zeros(size)
    for item in (item for each in learned for item in each):
        found[item] += BACKED / sum(map(len, learned))
    for gap in range(1, min(GAPS, len(asked)) + 1):
        after = [each[t + gap] for each in learned for t in range(len(each) - gap) if each[t] == asked[-gap]]
        for item in after:
            found[item] += decay ** (gap - 1) / len(after)
    return np.log(found / found.sum() + FLOOR)


def test_the_scores_are_those_of_all_items_by_brute_force(run):
    kind, place, done = run
    lm = done.load(device="cpu")
    source = InteractionSource.read(load_recipe(place / "config.yaml").data)
    ids = names_of(lm)
    assert len(ids) == ITEMS + 1
    table, right, kept = [], [], []
    for history in source.held_back:
        asked = [ids[item] for item in history.items[:-1]]
        if kind == "masked":
            row = lm.tokenizer.around([*asked[-13:], lm.tokenizer.special("mask")]).ids
            place_of = len(row) - 2
        else:
            row, place_of = asked[-16:], len(asked[-16:]) - 1
        head = "masked" if kind == "masked" else "language_model"
        with torch.no_grad():
            table.append(lm.model({"ids": torch.tensor([row])}, [head])[head][0, place_of].double().numpy())
        if kind == "gru":
            table[-1] = 0.7 * table[-1] + 0.3 * logs_of_counts(place, source, ids, asked, len(table[-1]))
        right.append(ids[history.items[-1]])
        kept.append([n in ids.values() and n not in asked for n in range(len(table[-1]))])
    ranks = ranks_of(np.array(table), right, np.array(kept))
    found = {score.name: score.score for score in done.findings[0].scores}
    assert found["HR@10"] == pytest.approx((ranks <= 10).mean(), abs=1e-9)
    assert found["NDCG@10"] == pytest.approx(np.where(ranks <= 10, 1 / np.log2(ranks + 1), 0).mean(), abs=1e-6)
    assert found["MRR"] == pytest.approx((1 / ranks).mean(), abs=1e-6)
    assert found["NDCG@10"] > 0.4


def test_sampled_scores_stand_beside_the_full_ones_with_a_warning(run):
    _, _, done = run
    scores = {score.name: score for score in done.findings[0].scores}
    assert scores["HR@10 sampled"].score == 1.0  # one of six is always among the first ten
    assert "Krichene and Rendle" in scores["NDCG@10 sampled"].signature
    assert list(scores).index("HR@10") < list(scores).index("HR@10 sampled")


def test_new_items_are_found_by_their_texts(run):
    kind, _, done = run
    scores = {score.name: score for score in done.findings[0].scores}
    assert "ranked by their texts" in scores["HR@10 unseen"].signature
    others = {name: score.score for name, score in done.findings[0].others if score.name == "HR@10 unseen"}
    assert others["popularity"] == 0.0
    if kind == "causal":
        assert scores["HR@10 unseen"].score >= others["the model without their texts"]


def test_what_is_written_and_shown(run):
    _, place, done = run
    found = json.loads((place / SCORES).read_text())
    assert [each["name"] for each in found["scores"]][:2] == ["NDCG@10", "HR@10"]
    assert {each["method"].split(",")[0].split(" over")[0] for each in found["floors"]} >= {
        "popularity",
        "item-kNN",
        "Markov",
    }
    page = (place / "report.html").read_text()
    assert "31 items ranked, without those of the history" in page
    assert "film" in page
    assert "items ranked|seen:left out" in done.findings[0].scores[0].signature


def test_recommendations_leave_out_the_history_and_are_sure_of_what_comes_next(run):
    kind, place, _ = run
    pipe = orrery.pipeline("next-item", place, device="cpu")
    history = ["film 12", "film 13", "film 14"]
    found = pipe(history)
    assert len(found) == 10
    assert not {one["item"] for one in found} & set(history)
    assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)
    if kind != "masked":
        assert found[0]["item"] == "film 15"
    assert pipe("film 12\nfilm 13\nfilm 14") == pipe("film 12, film 13,film 14") == found
    several = pipe([history, ["film 1"], ["film 2", "film 3"]], batch_size=3)
    assert [one["item"] for one in several[0]] == [one["item"] for one in found]
    assert len(several) == 3
    everything = pipe(history, top_k=1000, seen=True)
    assert len(everything) == ITEMS + 1
    assert sum(one["score"] for one in everything) == pytest.approx(1.0)
    assert len(pipe(history, top_k=1000)) == ITEMS + 1 - 3


def test_a_history_that_takes_everything_leaves_nothing(run):
    _, place, _ = run
    pipe = orrery.pipeline("recommendation", place, device="cpu")
    assert pipe([*map(name, range(ITEMS)), "film X"]) == []


def test_refused_histories(run):
    _, place, _ = run
    pipe = orrery.pipeline("next-item", place, device="cpu")
    with pytest.raises(UsageError, match="does not know the item 'film 99'; it knows 31") as error:
        pipe(["film 1", "film 99"])
    assert "film 9" in error.value.hint
    assert pipe(["film 1", "film 99"], skip_unknown=True) == pipe(["film 1"])
    for empty in ([], "", " \n "):
        with pytest.raises(UsageError, match="the history has no item"):
            pipe(empty) if empty else pipe.several([empty])
    with pytest.raises(UsageError, match="none of its 1 is known"):
        pipe(["film 99"], skip_unknown=True)
    with pytest.raises(UsageError, match="reads histories of items"):
        pipe.several([3.5])
    with pytest.raises(UsageError, match="the head nothing scores no items"):
        pipe(["film 1"], head="nothing")


def test_new_items_are_recommended_once_their_texts_are_given(run):
    kind, place, _ = run
    lm = orrery.load(place, "cpu")
    texts = {name(n): f"number {n} of the films behind {n - 1}" for n in range(ITEMS)}
    pipe = orrery.pipeline("next-item", lm, top_k=100).with_new({**texts, "film 15 again": texts[name(15)]})
    found = [one["item"] for one in pipe(["film 12", "film 13", "film 14"])]
    assert len(found) == ITEMS + 1 - 3 + 1
    if kind == "causal":
        assert found.index("film 15 again") < 5
    with pytest.raises(UsageError, match="all 30 items with a text are known"):
        orrery.pipeline("next-item", lm).with_new(texts)
    with pytest.raises(UsageError, match="0 items that the model knows have a text"):
        orrery.pipeline("next-item", lm).with_new({"other": "a text"})


def test_an_encoder_makes_the_vectors_where_one_is_given(run):
    _, place, _ = run
    lm = orrery.load(place, "cpu")
    texts = {name(n): spelt(name(n)) for n in range(ITEMS)}  # the model over items reads words too
    pipe = orrery.pipeline("next-item", lm, top_k=100).with_new({**texts, "like 3": spelt(name(3))}, lm)
    assert "like 3" in [one["item"] for one in pipe(["film 1"])]


def test_the_order_of_a_batch_changes_no_score(run):
    _, _, done = run
    lm = done.load(device="cpu")
    ids = names_of(lm)
    histories = [
        [ids[name(n)] for n in range(start, start + size)] for start, size in ((0, 3), (5, 12), (2, 1), (9, 7))
    ]
    right = [ids[name(20)]] * 4
    judge = Judge(items_of(lm), seen=False)
    together = ranked(lm, histories, right, judge, 16)
    alone = [ranked(lm, [one], right[:1], judge, 16)[0] for one in histories]
    assert [one.rank for one in together] == [one.rank for one in alone]


def test_counts_stand_beside_the_final_model_and_are_missed_elsewhere(run, tmp_path):
    kind, place, done = run
    names = [name for name, _ in done.findings[0].others]
    assert ("the model without counts" in names) == (place / "final" / FILE).is_file() == (kind == "gru")
    if kind != "gru":
        return
    pipe, alone = (orrery.pipeline("next-item", place, device="cpu", top_k=100) for _ in range(2))
    alone.counted = (None,)
    history = ["film 12", "film 13", "film 14"]
    pipe_before = pipe(history)
    assert pipe_before[0]["score"] != alone(history)[0]["score"]
    new = {name(n): f"number {n} of the films behind {n - 1}" for n in range(ITEMS)} | {"film 15 b": "number 15"}
    assert "film 15 b" in [one["item"] for one in pipe.with_new(new)(history)]
    assert export_hf(alone.lm.stored, tmp_path / "out").notes == ()
    alone.lm.save(tmp_path / "whole", layout="own")
    assert orrery.pipeline("next-item", tmp_path / "out", device="cpu", top_k=100)(history) == pipe_before
    for folder in ("out", "whole"):
        assert (tmp_path / folder / FILE).read_bytes() == (place / "final" / FILE).read_bytes()
    Counts(MarkovGaps.counted([[0, 1, 2]], 4, 0.5), 0.25).save(tmp_path / "out")
    with pytest.raises(ModelFileError, match="counts 4 items, and the model has 33 tokens"):
        orrery.pipeline("next-item", tmp_path / "out", device="cpu")(history)
    orrery.load(checkpoint := next((place / "checkpoints").glob("step-*")), "cpu").save(tmp_path / "out")
    assert not (tmp_path / "out" / FILE).exists()  # what a model before had there is none of this one's
    with pytest.raises(ModelFileError, match=r"has no counts.safetensors, which its run asks for \(data.counts\)"):
        orrery.pipeline("next-item", checkpoint, device="cpu")(history)


@pytest.mark.parametrize("part", ["starts_1", "items_2", "counts_5", "popularity", "numbers"])
def test_damaged_counts_are_refused_by_their_file(tmp_path, part):
    counts = Counts(MarkovGaps.counted([[0, 1, 2, 1, 0, 3], [2, 0]], 4, 0.5), 0.25)
    counts.save(tmp_path)
    history, logits = [0, 1], np.zeros((1, 6))
    assert (load_counts(tmp_path).beside(logits, [history]) == counts.beside(logits, [history])).all()
    found = read_tensors(tmp_path / FILE)
    for broken in (found[part] - 5, found[part][:-1], found[part].float()[None]):
        write_tensors(tmp_path / FILE, {**found, part: broken.contiguous()})
        with pytest.raises(ModelFileError, match="holds no sound counts"):
            load_counts(tmp_path)
    del found[part]
    write_tensors(tmp_path / FILE, found)
    with pytest.raises(ModelFileError, match="holds no sound counts"):
        load_counts(tmp_path)


def of_the_model(found):
    return dict(found.others).get("the model without counts", found.main).score


def test_a_broken_model_has_other_scores(run):
    _, place, _ = run
    lm = orrery.load(place, "cpu")
    source = InteractionSource.read(load_recipe(place / "config.yaml").data)
    whole = of_the_model(findings(lm, source, 16))
    with torch.no_grad():
        for parameter in lm.model.stack.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    assert of_the_model(findings(lm, source, 16)) < whole - 0.1


def test_drawn_candidates_hold_the_right_one_and_are_always_the_same():
    kept = np.array([True] * 20 + [False] * 5)
    found = drawn(kept, 3, 6, seed=1)
    assert found.sum() == 7
    assert found[3]
    assert not found[20:].any()
    assert (found == drawn(kept, 3, 6, seed=1)).all()
    assert (found != drawn(kept, 3, 6, seed=2)).any()
    assert drawn(kept, 3, 100, seed=1).sum() == 20


def test_scores_of_new_rows_are_products_with_the_final_stream():
    torch.manual_seed(0)
    model = spec_of(load_family("gpt2"), {"vocab_size": 11, "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 6})
    built = model.build().double().eval()
    asked, ends, place = torch.tensor([[1, 2, 3], [4, 5, 0]]), torch.tensor([3, 2]), torch.tensor([2, 1])
    rows = torch.randn(4, 8, dtype=torch.double)
    with torch.no_grad():
        found = scores_of(built, asked, ends, place, (rows, 0.5))
        x = built({"ids": asked}, ["hidden"])["hidden"][torch.arange(2), place]
        whole = built({"ids": asked}, ["language_model"])["language_model"][torch.arange(2), place]
    assert torch.allclose(found[:, :11], whole, atol=1e-12)
    assert torch.allclose(found[:, 11:], x @ rows.T + 0.5, atol=1e-12)


def test_a_model_is_made_for_the_data_where_none_is_named(folder):
    recipe = recipe_for(Request("next-item", train=str(folder / "acts.csv")), ["--training.steps", "60"])
    assert (recipe.task, recipe.model.family, recipe.tokenizer.kind) == ("next_item", "gpt2", "word")
    assert recipe.batches.length == recipe.model.config["n_positions"] == 10
    assert recipe.evaluation.every == 6
    with pytest.raises(UsageError, match="reads no file to validate on"):
        recipe_for(Request("next-item", train=str(folder / "acts.csv"), val="other.csv"))
    with pytest.raises(UsageError, match="say how a model that exists learns"):
        recipe_for(Request("next-item", train=str(folder / "acts.csv"), mode="frozen"))
    with pytest.raises(UsageError, match="from which model, with which data"):
        recipe_for(Request("classification", train=str(folder / "acts.csv")))
    with pytest.raises(DataError, match="no such file"):
        recipe_for(Request("next-item", train=str(folder / "none.csv")))


def test_one_item_and_one_user_are_learned_and_answered(tmp_path):
    (tmp_path / "one.csv").write_text("user,item\n" + "u,a\n" * 5)
    done = orrery.finetune("next-item", train=tmp_path / "one.csv", output=tmp_path / "run", quiet=True,
                           recipe={"training": {"steps": 2}, "data": {"seen": True}})  # fmt: skip
    assert done.findings[0].main.score == 1.0
    pipe = orrery.pipeline("next-item", tmp_path / "run", device="cpu")
    assert pipe(["a"]) == []
    assert pipe(["a"], seen=True) == [{"item": "a", "score": 1.0}]


def test_a_problem_asks_for_all_but_the_last_item(run):
    _, place, done = run
    source = InteractionSource.read(load_recipe(place / "config.yaml").data)
    problem = Problem(done.load(device="cpu"), source)
    assert [len(each) for each in problem.asked] == [len(each.items) - 1 for each in source.held_back]
    assert [len(each) for each in problem.learned] == [len(each.items) - 2 for each in source.histories]
    assert candidates(problem.judge.items, problem.asked[:1], False).sum() == ITEMS + 1 - len(set(problem.asked[0]))
