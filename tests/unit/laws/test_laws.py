"""Each law passes on both families and is shown to fail on a machine with one broken part."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from orrery.errors import OrreryError, RunError
from orrery.families import gpt2, names
from orrery.laws import (
    accumulation,
    adapter,
    branching,
    cache,
    checkpoint,
    compiled,
    golden,
    kernel,
    lectures,
    mixtures,
    models,
    packing,
    padding,
    recurrence,
    registry,
    resume,
    runs,
    sight,
    sizes,
    transcript,
)
from orrery.laws import step as law_of_steps
from orrery.laws.evidence import CannotRunError, deviation, within
from orrery.models.session import DecodingSession, Read
from orrery.nn import stack
from orrery.nn.attention import kernels
from orrery.nn.cache.pages import PagePool
from orrery.nn.cache.row_buffer import RowBuffer
from orrery.nn.cache.rows import RowCache
from orrery.nn.cache.slots import SlotStore
from orrery.nn.cache.states import StateStore
from orrery.nn.context import Context
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.masks import PLAIN_FULL, Causal
from orrery.objectives.causal import CausalLanguageModel
from orrery.training import step
from orrery.tuning.lora import AdaptedLinear
from tiny_models import inputs_for, smallest

LAWS = {
    "cache": cache,
    "branching": branching,
    "padding": padding,
    "packing": packing,
    "accumulation": accumulation,
    "kernel": kernel,
    "checkpoint": checkpoint,
    "sight": sight,
    "adapter": adapter,
}


@pytest.mark.parametrize("law", LAWS)
def test_holds(law):
    evidence = list(LAWS[law].check("llama"))
    assert evidence
    assert [e for e in evidence if not e.passed] == []
    assert {(e.law, e.family) for e in evidence} == {(law, "llama")}
    assert len({e.name for e in evidence}) == len(evidence)


INAPPLICABLE = [
    (cache, "bert", cache.NO_CACHE),
    (kernel, "lstm", "it has no attention that a kernel computes"),
    (kernel, "gemma2", "its scores are capped, and only the definition computes that"),
    (law_of_steps, "bert", "it writes nothing"),
    (law_of_steps, "mixtral", "no instruction computes a MoE"),
    (recurrence, "llama", "no recurrence, or one that attends to a source"),
]


@pytest.mark.parametrize(("law", "family", "why"), INAPPLICABLE)
def test_a_law_that_says_nothing_of_a_family_says_why(law, family, why):
    with pytest.raises(CannotRunError, match="inapplicable") as error:
        list(law.check(family))
    assert why in error.value.hint


@pytest.mark.parametrize("family", names())
def test_a_kernel_is_tried_where_the_model_asks_one_and_nowhere_else(family):
    """What no kernel computes is equal under all of them, and would say nothing."""
    asked = []

    def counted(q_BHLC, kv, operands):
        asked.append(len(q_BHLC))
        return kernels.eager(q_BHLC, kv, operands)

    model = smallest(family)
    with torch.no_grad():
        getattr(model, "logits" if model.spec.head_names else "hidden")(*inputs_for(model), kernel=counted)
    assert bool(models.kernels_of(family)) == bool(asked)
    ways = models.ways_of(family).values()
    assert any("scan" not in way for way in ways), "the form that the model chooses is one of the ways"
    assert all(asked or "kernel" not in way for way in ways)


def test_what_this_installation_cannot_check_says_what_is_lacking(monkeypatch, tmp_path):
    monkeypatch.setattr(compiled.shutil, "which", lambda name: None)
    with pytest.raises(CannotRunError, match=r"g\+\+ is not there") as error:
        list(compiled.check(compiled.COMPILED[0]))
    assert error.value.hint == "install g++ and Python's headers"
    with pytest.raises(CannotRunError, match="not compiled") as error:
        list(compiled.check("elman_rnn"))
    assert compiled.COMPILED[0] in error.value.hint


def test_golden_numbers_hold():
    assert [e for e in golden.check() if not e.passed] == []


def test_sizes_hold_and_a_wrong_one_is_seen(monkeypatch):
    small, right = sizes.SIZES[0], 124_439_808
    wrong = replace(small, name="wrong", parameters=right - 1)
    monkeypatch.setattr(sizes, "SIZES", (replace(small, name="right", parameters=right), wrong))
    monkeypatch.setattr(sizes, "PRESETS", {})
    assert [e.name for e in sizes.check() if not e.passed] == ["parameters of wrong"]


def broken(law, family="llama"):
    return {e.name for e in law.check(family) if not e.passed}


def test_cache_sees_a_forgotten_position(monkeypatch):
    monkeypatch.setattr(
        RowCache, "next_positions", lambda self, n, device: torch.arange(n)[None].repeat(len(self.lengths_B), 1)
    )
    assert "growing: token by token" in broken(cache)


def test_cache_sees_rows_that_share_one_length(monkeypatch):
    monkeypatch.setattr(SlotStore, "forget", lambda self, lengths, lengths_B: None)
    monkeypatch.setattr(RowCache, "refuse_to_forget", lambda self, lengths: self.lengths)
    failed = broken(cache)
    assert "static: select, join, truncate" in failed
    assert "growing: token by token" not in failed


def test_every_ragged_row_of_the_cache_is_once_the_longest(monkeypatch):
    """A fault of the longest row, or of the others' padding, then meets every row."""
    lengths = []
    step = transcript.Transcript.step

    def noted(self, rows):
        lengths.append([len(row) for row in self.rows])
        step(self, rows)
        lengths.append([len(row) for row in self.rows])

    monkeypatch.setattr(transcript.Transcript, "step", noted)
    cache.ragged(models.tiny("llama"), cache.growing)
    assert {max(range(len(rows)), key=rows.__getitem__) for rows in lengths} == set(range(len(lengths[0])))
    assert all(len(set(rows)) == len(rows) for rows in lengths), "no two rows are of one length"


def test_the_law_of_recurrence_packs_every_token_of_a_document():
    layouts = recurrence.layouts()
    assert layouts["whole"] is None
    padded, packed = layouts["padded"], layouts["packed"]
    assert padded.real_BL.sum(1).tolist() == [11, 9, 0]
    assert packed.real_BL.sum(1).tolist() == [11, 9, 11]
    assert packed.lengths == (5, 1, 5, 9, 4, 3, 4)


def test_a_run_of_the_law_of_resume_fails_at_its_step_alone():
    source = runs.FailingSource("gpt2", fail_at=3)
    assert source.batch(2).keys() == source.batch(4).keys()
    with pytest.raises(RunError, match="told to fail") as error:
        source.batch(3)
    assert error.value.hint == "it is a test"


def unheld(family="llama"):
    """Return what of the law of branching fails, in the place of what it crashes on."""
    (check,) = [check for check in registry.CHECKS if check.law == "branching"]
    return {e.name for e in check.run(family) if not e.passed}


OVER = "{}: uses of a session that is over which are answered"
WHOLE = {"llama": ("growing", "static"), "mistral": ("growing", "static", "sliding"), "t5": ("growing", "static")}


@pytest.mark.parametrize("family", ["mistral", "deepseek_v2", "lstm", "nplm", "t5", "rnnsearch"])
def test_branching_holds_for_every_kind_of_store(family):
    assert broken(branching, family) == set()


@pytest.mark.parametrize("family", WHOLE)
def test_branching_sees_a_fork_that_shares_keys(monkeypatch, family):
    def shared(self, rows=None):
        new = RowBuffer()
        for depth, x in self.depths.items():
            new.put(depth, x)
        return new

    monkeypatch.setattr(RowBuffer, "copy", shared)
    failed = unheld(family)
    for kind in WHOLE[family]:
        assert f"{kind}: numbers of a session that change when its fork steps" in failed
        assert f"{kind}: numbers of a fork that change when its session goes on" in failed
        assert OVER.format(kind) not in failed


def test_branching_sees_a_fork_that_writes_into_shared_pages(monkeypatch):
    monkeypatch.setattr(PagePool, "own", lambda self, page: page)
    failed = unheld()
    assert "paged: numbers of a session that change when its fork steps" in failed
    assert "paged: numbers of a fork that change when its session goes on" in failed
    assert not any(name.startswith("growing") for name in failed)


def test_branching_sees_a_fork_that_shares_states(monkeypatch):
    monkeypatch.setattr(StateStore, "copy", lambda self, rows=None: self)
    failed = unheld("lstm")
    assert "recurrent: numbers of a session that change when its fork steps" in failed
    assert "recurrent: numbers of a session that change when its fork has its rows reordered" in failed


def test_branching_sees_a_fork_that_is_no_fork(monkeypatch):
    monkeypatch.setattr(DecodingSession, "fork", lambda self, rows=None: self)
    assert "growing: numbers of a session that change when its fork steps" in unheld()


@pytest.mark.parametrize("family", ["llama", "lstm", "t5"])
def test_branching_sees_handles_that_do_not_know_that_they_are_over(monkeypatch, family):
    monkeypatch.setattr(DecodingSession, "_end", lambda self, why: None)
    kind = "recurrent" if family == "lstm" else "growing"
    assert OVER.format(kind) in unheld(family)


def test_padding_sees_padding_that_is_not_hidden(monkeypatch):
    from orrery.nn.cache.contract import Uncached

    monkeypatch.setattr(Uncached, "reserve", lambda self, places, real, masks, counts: dict.fromkeys(masks, places))
    assert "left-padded == unpadded, sdpa" in broken(padding, "gpt2")


def test_packing_sees_documents_that_are_not_apart(monkeypatch):
    monkeypatch.setattr(stack, "SameDocument", Causal)
    assert "packed == separate, eager" in broken(packing)


def test_kernel_sees_a_missing_scale(monkeypatch):
    right = models.KERNELS["sdpa"]

    def unscaled(q_BHLC, kv, operands):
        return right(q_BHLC, kv, operands._replace(scale=1.0))

    monkeypatch.setattr(models, "KERNELS", {"eager": kernels.eager, "sdpa": unscaled})
    assert {"sdpa == eager, logits, float32", "sdpa == eager, random masks and biases"} <= broken(kernel)


def test_adapter_sees_a_merge_that_forgets_the_scale(monkeypatch):
    matrix = AdaptedLinear.matrix
    monkeypatch.setattr(AdaptedLinear, "matrix", lambda self: 2 * matrix(self) - self.stored())
    assert len(broken(adapter)) == 6  # three cases, in float64 and float32


def test_adapter_sees_a_part_that_multiplies_with_a_matrix_without_its_linear(monkeypatch):
    def past_the_linear(self, x_BLD, ctx):
        matrix = getattr(self.gate, "stored", lambda: self.gate.weight)()
        return self.down(self.activation(x_BLD @ matrix.mT) * self.up(x_BLD))

    monkeypatch.setattr(GatedMLP, "forward", past_the_linear)
    assert len(broken(adapter)) == 6  # three cases, in float64 and float32


def test_sight_sees_a_recorder_that_touches(monkeypatch):
    right = Context.tap

    def touching(self, owner, name, value):
        return right(self, owner, name, value) * (1.0 if self.taps is None else 1.000001)

    monkeypatch.setattr(Context, "tap", touching)
    assert "numbers that a recorder changes, sdpa" in broken(sight)


def test_checkpoint_sees_a_rule_that_forgets_to_turn(monkeypatch):
    rules = [rule for rule in gpt2.WEIGHTS if "c_fc.weight" not in rule.theirs]
    monkeypatch.setattr(gpt2, "WEIGHTS", tuple(rules))
    with pytest.raises(OrreryError, match=r"up\.weight"):
        broken(checkpoint, "gpt2")


def test_accumulation_sees_a_mean_of_means(monkeypatch):
    class MeanOfMeans(CausalLanguageModel):
        def counts(self, batch):
            return dict.fromkeys(super().counts(batch), 1)

        def loss(self, model, batch):
            return {name: replace(term, sum=term.sum / term.count) for name, term in super().loss(model, batch).items()}

    monkeypatch.setattr(accumulation, "objective_of", lambda family: MeanOfMeans())
    assert "micro-batches of 3 == whole batch, float64" in broken(accumulation)


def test_accumulation_sees_a_fault_in_the_step_that_training_calls(monkeypatch):
    monkeypatch.setattr(step, "share", lambda term, count: term.sum * (term.weight / max(1, int(term.count))))
    failed = broken(accumulation)
    assert {"micro-batches of 3 == whole batch, float64", "two ranks == one, float64"} <= failed
    assert "whole batch == mean over all targets, float64" not in failed


def test_padding_sees_sources_whose_padding_is_read(monkeypatch):
    monkeypatch.setattr(Read, "mask", property(lambda self: PLAIN_FULL))
    failed = broken(padding, "bart")
    assert {"left-padded sources == unpadded, sdpa", "right-padded sources == unpadded, eager"} <= failed
    assert "tokens written to padded sources == unpadded, step by step" in failed


def test_resume_sees_batches_that_depend_on_history(monkeypatch):
    def counted(self, step):
        self.calls = getattr(self, "calls", 0) + 1
        return right(self, step if self.fail_at == step else self.calls)

    right = runs.FailingSource.batch
    monkeypatch.setattr(runs.FailingSource, "batch", counted)
    assert broken(resume) == {"files of weights and optimizer whose bytes differ"}


def test_numbers_that_are_not_finite_never_pass():
    nan = torch.tensor([float("nan")])
    for value in (deviation(nan, nan), float("inf"), deviation(torch.zeros(2), torch.zeros(3))):
        evidence = within("name", "law", "family", value, 1.0)
        assert not evidence.passed
        assert evidence.value is None


def test_what_is_no_number_is_not_lost_among_numbers(monkeypatch):
    assert max(0.0, deviation(torch.tensor([float("nan")]), torch.zeros(1))) == float("inf")
    whole = GatedMLP.forward

    def last_row_is_no_number(self, x, *rest):
        y = whole(self, x, *rest)
        return torch.cat([y[:-1], y[-1:] * float("nan")]) if len(y) > 1 else y

    monkeypatch.setattr(GatedMLP, "forward", last_row_is_no_number)
    assert "left-padded == unpadded, eager" in broken(padding)


def test_every_cache_is_compared_with_full_forwards_that_are_made_once(monkeypatch):
    asked = []
    made = transcript.FullForwards.logits

    def counted(self, rows):
        known = len(self._seen)
        made_rows = made(self, rows)
        asked.append(len(self._seen) > known)
        return made_rows

    monkeypatch.setattr(transcript.FullForwards, "logits", counted)
    kinds = len(cache.kinds(models.tiny("llama")))
    assert broken(cache) == set()
    assert sum(asked) * kinds == len(asked)


def test_a_crash_is_a_failed_check_and_does_not_stop_the_rest(monkeypatch):
    def crash(family):
        raise RuntimeError("gone")
        yield

    def refuse(family):
        raise CannotRunError("no tool", "get one")
        yield

    monkeypatch.setattr(cache, "check", crash)
    monkeypatch.setattr(padding, "check", refuse)
    checks = [c for c in registry.CHECKS if c.law in ("cache", "padding", "packing")]
    monkeypatch.setattr(registry, "CHECKS", tuple(checks))
    report = registry.verify("gpt2")
    assert not report.passed
    assert [e.name for e in report.checks if not e.passed] == ["cache:check raised RuntimeError: gone"]
    assert report.not_run["padding (gpt2)"] == "no tool; get one"
    assert {e.law for e in report.checks} == {"cache", "packing"}
    assert not {e["law"] for e in report.as_json()["checks"]} & {"padding"}
    assert set(report.as_json()["seconds"]["by check"]) == {"cache", "padding", "packing"}
    assert set(report.as_json()["seconds"]["by family"]) == {"gpt2"}


def test_every_golden_number_of_the_course_is_checked(data_set: Callable[[str], Path]) -> None:
    """G3 and G4 stand in the sizes of published models, under their names."""
    data_set("course-slides/slides.json")
    checks = (golden.check, golden.check_padding, golden.check_noam, mixtures.check, sizes.check, lectures.check)
    named = [evidence.name for check in checks for evidence in check()]
    named += [slide.name for part in (golden, mixtures, sizes, lectures) for slide in part.slides()]
    found = {name.partition(" ")[0] for name in named}
    assert {f"G{n}" for n in range(1, 23)} - found == {"G3", "G4"}
    assert {"parameters of gpt3-175b", "parameters of gpt3-125m"} <= set(named)


def test_a_number_of_a_lecture_that_differs_is_told(monkeypatch) -> None:
    monkeypatch.setattr(lectures, "SECOND", (*lectures.SECOND[:-1], 0.5))
    assert {e.name.partition(":")[0] for e in lectures.check() if not e.passed} == {
        "G14 product of the two dense vectors", "G14 their cosine",
    }  # fmt: skip
