import json
import math
import random

import pytest

from orrery.checkpoints.store import CheckpointStore
from orrery.errors import UsageError
from orrery.page.views._run import RunCurves, RunSeen, Tail, checkpoint, checkpoints, run_of, thinned
from training_toy import toy_parts, toy_recipe, toy_run


def write(path, records, end="\n"):
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(record) + "\n" for record in records).removesuffix("\n") + end)


def test_few_points_stay_and_of_many_no_extreme_is_lost():
    draw = random.Random(0)
    points = [(step, draw.gauss(0, 1)) for step in range(100_000)]
    assert thinned(points[:2000]) == points[:2000]
    kept = thinned(points)
    assert len(kept) <= 2000
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert [step for step, _ in kept] == sorted({step for step, _ in kept})
    assert set(kept) <= set(points)
    for pick in (min, max):
        assert pick(value for _, value in kept) == pick(value for _, value in points)
    spike = [*points[:500], (500, 1e9), *points[501:]]
    assert (500, 1e9) in thinned(spike)


def test_a_file_is_read_as_it_grows_and_a_line_counts_once_it_is_whole(tmp_path):
    path = tmp_path / "metrics.jsonl"
    tail = Tail(path)
    assert not tail.begins_anew()
    assert list(tail.new()) == []
    write(path, [{"step": 1, "a": 2.0}, {"step": 2, "a": 1.5}])
    assert [record["step"] for record in tail.new()] == [1, 2]
    write(path, [{"step": 3, "a": 1.0}], end="")
    assert list(tail.new()) == []
    write(path, [], end="\n")
    assert [record["step"] for record in tail.new()] == [3]
    with path.open("a") as file:
        file.write('no JSON\n{"a": 1}\n{"step": NaN}\n[4]\n')
    write(path, [{"step": 4}])
    assert [record["step"] for record in tail.new()] == [4]


def test_a_large_file_is_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("orrery.page.views._run._CHUNK", 7)
    path = tmp_path / "metrics.jsonl"
    write(path, [{"step": step, "é": step / 2} for step in range(50)])
    assert [record["step"] for record in Tail(path).new()] == list(range(50))


def test_a_run_that_begins_anew_is_told_as_a_whole(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write(path, [{"step": step, "lr": 0.1} for step in range(1, 6)])
    seen = RunSeen(tmp_path)
    assert len(seen.history()["curves"]["lr"]) == 5
    assert seen.news() == []
    write(path, [{"step": 6, "lr": 0.2, "bad": None}])
    assert seen.news() == [{"record": {"step": 6, "lr": 0.2, "bad": None}}]
    fresh = tmp_path / "metrics.jsonl.tmp"
    write(fresh, [{"step": 1, "lr": 0.3}])
    fresh.replace(path)  # as a run that is resumed rewinds its metrics
    assert seen.news() == [{"history": {"curves": {"lr": [[1, 0.3]]}, "samples": [], "checkpoints": []}}]
    assert seen.news() == []


def test_what_is_not_finite_is_no_point():
    curves = RunCurves()
    curves.add({"step": 1, "a": None, "b": 2, "c": "text"})
    assert curves.points() == {"b": [[1, 2.0]]}


def test_a_run_keeps_its_samples_and_a_resumed_one_drops_those_that_come_again(tmp_path):
    count = iter(range(100))
    parts = toy_parts(sample=lambda model: f"text {next(count)}")
    recipe = toy_recipe(training__steps=12, evaluation__every=4, checkpoints__every=8)
    toy_run(tmp_path, recipe, parts)
    seen = RunSeen(tmp_path)
    assert [(one["step"], one["text"]) for one in seen.history()["samples"]] == [
        (4, "text 0"),
        (8, "text 1"),
        (12, "text 2"),
    ]
    steps = CheckpointStore(tmp_path / "checkpoints").steps()
    assert [place.step for place in checkpoints(tmp_path)] == sorted(steps)
    assert [place.step for place in checkpoints(tmp_path) if place.best] == [
        CheckpointStore(tmp_path / "checkpoints").best()
    ]
    from orrery.training.folder import RunFolder

    RunFolder(tmp_path).rewind(9)
    assert [one["step"] for one in seen.news()[0]["history"]["samples"]] == [4, 8]


def test_a_checkpoint_that_is_gone_is_refused_with_those_that_are_there(tmp_path):
    toy_run(tmp_path, toy_recipe(training__steps=4))
    (known,) = [place.step for place in checkpoints(tmp_path)][-1:]
    assert checkpoint(tmp_path, known).is_dir()
    with pytest.raises(UsageError, match="no checkpoint of step 77") as error:
        checkpoint(tmp_path, 77)
    assert str(known) in error.value.hint


def test_the_run_of_a_model_is_the_folder_around_it(tmp_path):
    toy_run(tmp_path / "run", toy_recipe(training__steps=4))
    run = tmp_path / "run"
    step = CheckpointStore(run / "checkpoints").steps()[0]
    assert run_of(run / "final") == run
    assert run_of(checkpoint(run, step)) == run
    assert run_of(run) is None
    assert run_of(tmp_path / "elsewhere" / "final") is None


def test_the_perplexity_of_a_run_is_exp_of_its_loss(tmp_path):
    from orrery.page.views.curves import _perplexity

    toy_run(tmp_path, toy_recipe(training__steps=8))
    curves = RunSeen(tmp_path).history()["curves"]
    (check,) = _perplexity(curves)
    assert check.passed
    curves["val/perplexity"][0][1] *= 1.001
    assert not _perplexity(curves)[0].passed
    assert math.isfinite(check.value)
