"""The labs about depth, norms, positions, cost and scale keep their claims, and fail where their subject is broken."""

import math

import pytest
import torch

from orrery.nn.masks import Causal, Full
from orrery.studies.fitting import falling, warmed_up
from orrery_course.labs import (
    _codes,
    complexity,
    depth,
    dictionary,
    forming,
    induction,
    positions,
    prefix,
    quadratic,
    scaling,
    steps,
    warmup,
)
from orrery_course.labs import _curves as curves
from orrery_course.labs import _lab as lab
from orrery_course.labs import _operations as operations
from orrery_course.labs._pairs import START, FreeOrder


def failed(name: str, seed: int = 0) -> list[str]:
    """Return the claims that the quick lab does not keep."""
    outcome = lab.carry_out(name, [seed], quick=True)
    assert outcome.figure.startswith("<svg")
    return outcome.failed


def test_exponents_and_means_are_those_of_known_curves() -> None:
    assert curves.exponent({str(n): 3.0 * n**1.7 for n in (2, 5, 11)}) == pytest.approx(1.7)
    runs = [{"a": {"b": {"1": 2.0, "4": 0.0}}}, {"a": {"b": {"1": 4.0, "4": 1.0}}}]
    assert curves.mean(runs, "a", "b") == [(1.0, 3.0), (4.0, 0.5)]


def test_a_warm_up_rises_to_the_rate_and_falls_from_it() -> None:
    def rates(schedule) -> list[float]:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
        steps, rates_taken = schedule(optimizer, 10), []
        for _ in range(10):
            rates_taken.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            steps.step()
        return rates_taken

    warm, cold = rates(warmed_up(0.4)), rates(falling)
    assert warm[:5] == pytest.approx([0.5, 1.0, 1.5, 2.0, 2.0])
    assert warm[4:] == sorted(warm[4:], reverse=True)
    assert cold[0] == 2.0
    assert cold == sorted(cold, reverse=True)
    assert min(warm[-1], cold[-1]) > 2 * 0.05


# -- dictionary


def test_a_soft_dictionary_becomes_hard() -> None:
    for seed in range(8):
        assert failed("dictionary", seed) == []


def test_a_dictionary_that_never_hardens_is_found(monkeypatch) -> None:
    original = dictionary.look_up
    monkeypatch.setattr(dictionary, "look_up", lambda q, k, v, temperature: original(q, k, v, max(temperature, 0.3)))
    assert any("exactly" in claim for claim in failed("dictionary"))


# -- quadratic, complexity


def test_the_costs_have_the_exponents_of_the_table() -> None:
    assert failed("complexity") == []
    assert failed("quadratic") == []


def test_layers_in_each_others_place_are_found(monkeypatch) -> None:
    for module in (quadratic, complexity):
        monkeypatch.setattr(module, "LAYERS", {**module.LAYERS, "attention": operations.recur})
    assert any("attention" in claim for claim in failed("complexity"))
    assert any("exponent 2" in claim for claim in failed("quadratic"))


def test_operations_are_counted_by_hand() -> None:
    # All with all, and the mean: two products of n n d, two operations each. A step: two products of a vector.
    assert operations.operations(operations.attend, 6, 10) == 4 * 6 * 6 * 10
    assert operations.operations(operations.recur, 6, 10) == 4 * 6 * 10 * 10
    assert operations.operations(operations.project, 6, 10) == 8 * 6 * 10 * 10
    assert operations.operations(operations.remember, 6, 10) == 2 * 6 * 10 * 10


def test_the_layers_do_what_they_say() -> None:
    x_LD = torch.randn(5, 4)
    pattern_LL = torch.softmax(x_LD @ x_LD.T / 2, -1)
    assert torch.allclose(operations.attend(x_LD), pattern_LL @ x_LD, atol=1e-6)
    torch.manual_seed(0)
    cell = torch.nn.RNNCell(4, 4)
    torch.manual_seed(0)
    recurrent, h_1D = operations.recur(x_LD), torch.zeros(1, 4)
    for place, x_D in enumerate(x_LD):
        h_1D = torch.tanh(x_D @ cell.weight_ih.T + cell.bias_ih + h_1D @ cell.weight_hh.T + cell.bias_hh)
        assert torch.allclose(recurrent[place], h_1D[0], atol=1e-6)
    age_LL = (torch.arange(5)[:, None] - torch.arange(5)).clamp(min=0)
    read_LD = ((x_LD @ x_LD.T) * torch.exp(-0.1 * age_LL)).tril() @ x_LD
    assert torch.allclose(operations.remember(x_LD), read_LD, atol=1e-5)


def test_both_cost_the_same_where_n_is_d(monkeypatch) -> None:
    assert [complexity.crossing(width) for width in (16, 40)] == pytest.approx([16, 40])
    monkeypatch.setitem(complexity.LAYERS, "recurrence", operations.project)
    assert complexity.crossing(16) == pytest.approx(32)


def test_where_two_powers_cross() -> None:
    sizes = ("8", "32", "128")
    one, other = {n: 2.0 * int(n) ** 2 for n in sizes}, {n: 80.0 * int(n) for n in sizes}
    assert quadratic.equal_at(one, other) == pytest.approx(40)


# -- positions


def test_the_marks_are_computed_from_the_codes() -> None:
    held = {name: [positions.marks(name)[mark] for mark in positions.MARKS] for name in _codes.CODES if name != "none"}
    assert held == {
        "one-hot": [1, 1, 0, 0],
        "index": [0, 1, 1, 0],
        "normalised index": [1, 1, 0, 0],
        "sinusoidal": [1, 1, 1, 1],
        "learned": [0, 1, 0, 0],
        "rotary": [1, 1, 1, 1],
        "ALiBi": [0, 1, 1, 0],
        "T5": [0, 0, 1, 0],
    }


def test_the_codes_are_what_their_papers_say() -> None:
    assert torch.equal(_codes.vectors("one-hot", 3)[:, -64:-61], torch.eye(3, dtype=torch.float64))
    assert _codes.vectors("index", 4)[:, 0].tolist() == [0, 1, 2, 3]
    assert _codes.vectors("normalised index", 5)[:, 0].tolist() == [0, 0.25, 0.5, 0.75, 1]
    sines = _codes.vectors("sinusoidal", 3)
    assert sines[2, :2].tolist() == pytest.approx([math.sin(2), math.cos(2)])
    assert _codes.vectors("ALiBi", 3)[:, 0].tolist() == [0, -0.25, -0.5]  # the slope of the first of four heads
    assert _codes.vectors("rotary", 3).norm(dim=-1).tolist() == pytest.approx([2.0] * 3)


def test_order_and_begin_move_what_they_should() -> None:
    for name in _codes.CODES:
        assert (positions.moved_by_order(name, 5) < 1e-9) == (name == "none")
        assert (positions.moved_by_begin(name, 5) < 1e-9) == (name in ("none", *positions.BY_DISTANCE))
    masks = [_codes.model_spec("rotary", mask, 8, 1).stack.masks["causal"] for mask in (Causal(), Full())]
    assert masks == [Causal(), Full()]


@pytest.mark.slow
def test_positions_keep_their_claims() -> None:
    assert failed("positions") == []


@pytest.mark.slow
def test_a_code_that_is_not_used_is_found(monkeypatch) -> None:
    monkeypatch.setattr(positions, "QUICK_STEPS", 2)
    monkeypatch.setitem(positions.CODES, "sinusoidal", positions.CODES["none"])
    monkeypatch.setattr(positions, "marks", lambda name: dict.fromkeys(positions.MARKS, 1.0))
    claims = failed("positions")
    assert any("with any code" in claim for claim in claims)
    assert any("all marks" in claim for claim in claims)


# -- depth


@pytest.mark.slow
def test_depth_harms_the_plain_network_alone() -> None:
    assert failed("depth") == []


@pytest.mark.slow
def test_a_residual_network_in_the_plain_ones_place_is_found(monkeypatch) -> None:
    monkeypatch.setattr(depth, "skips", lambda: dict.fromkeys((depth.PLAIN, depth.RESIDUAL)))
    assert len(failed("depth")) == 2


def test_a_plain_network_has_no_way_around_its_layers() -> None:
    ids_BL = torch.randint(depth.VOCABULARY, (2, depth.LENGTH))
    for name, skip in depth.skips().items():
        model = depth.network(2, skip, 0).eval()
        with torch.no_grad():
            for block in model.stack.blocks:
                for part in block.children():
                    for parameter in part.branch.parameters():
                        parameter.zero_()
            changes = not torch.equal(model.hidden(ids_BL), model.hidden(ids_BL.roll(1, 0)))
        assert changes == (name == depth.RESIDUAL)


# -- warmup


@pytest.mark.slow
def test_post_ln_needs_a_warm_up_and_pre_ln_does_not() -> None:
    assert failed("warmup") == []


def test_what_the_warm_up_lab_holds() -> None:
    def kept(**losses: tuple[float, float]) -> list[bool]:
        names = {"pre": "pre-LN, without warm-up", "saved": "pre-LN, with warm-up"}
        names |= {"post": "post-LN, without warm-up", "warm": "post-LN, with warm-up"}
        by_name = {names[name]: {"6": two[0], "48": two[1]} for name, two in losses.items()}
        return [margin > 0 for margin in warmup.margins({"loss": by_name}).values()]

    good = {"pre": (0.1, 2.0), "saved": (0.1, 0.1), "post": (2.0, 2.0), "warm": (0.2, 2.0)}
    assert kept(**good) == [True] * 5
    worse = [{"warm": (1.3, 2.0)}, {"post": (0.6, 2.0)}, {"pre": (2.0, 2.0)}]
    for place, change in enumerate([*worse, {"saved": (0.1, 2.0)}, {"post": (2.0, 1.0)}]):
        assert kept(**{**good, **change}) == [other != place for other in range(5)]


def test_the_loss_of_a_depth_is_the_mean_of_its_last_steps(monkeypatch) -> None:
    last = [1.0 + step for step in range(warmup.LAST)]
    asked = []

    def fit(model, objective, task, steps, rate, seed, schedule):
        asked.append((len(model.stack.blocks), schedule))
        return [100.0] * (steps - warmup.LAST) + last

    monkeypatch.setattr(warmup, "fit", fit)
    monkeypatch.setattr(warmup, "QUICK_DEPTHS", (1, 2))
    losses = warmup.run(0, quick=True)["loss"]
    assert losses == {f"{norm}, {start}": {"1": 5.5, "2": 5.5} for norm in warmup.NORMS for start in warmup.STARTS}
    assert asked == [(depth, start) for _ in warmup.NORMS for start in warmup.STARTS.values() for depth in (1, 2)]


def test_glorots_rule() -> None:
    model = warmup.glorot(torch.nn.Sequential(torch.nn.Linear(300, 100)), 0)
    bound = math.sqrt(6 / 400)
    assert model[0].weight.abs().max() <= bound
    assert float(model[0].weight.detach().std()) == pytest.approx(bound / math.sqrt(3), rel=0.02)
    assert model[0].bias.abs().max() == 0
    assert torch.equal(model[0].weight, warmup.glorot(torch.nn.Linear(300, 100), 0).weight)


# -- prefix


@pytest.mark.slow
def test_one_set_of_parameters_learns_what_two_do() -> None:
    assert failed("prefix") == []


def test_both_translators_are_of_one_size() -> None:
    for task in (prefix.TASK, prefix.QUICK_TASK):
        models = [build(task.vocabulary, 0) for build in (prefix.encoder_decoder, prefix.prefix_decoder)]
        one, two = map(prefix.parameters, models)
        assert abs(one / two - 1) < prefix.EQUAL


def test_a_pair_as_one_text() -> None:
    task = FreeOrder(12, 4, 3, 3, parts=6)
    batch = prefix.joined(task(torch.Generator().manual_seed(0)))
    assert batch["prefix"].tolist() == [3] * 4
    assert batch["ids"][:, 3].tolist() == [START] * 4
    assert batch["targets"][:, :3].unique().tolist() == [-100]
    assert torch.equal(batch["targets"][:, 3:-1], batch["ids"][:, 4:])


def test_the_prefix_decoder_writes_what_its_full_pass_says() -> None:
    model = prefix.prefix_decoder(15, 0).eval()
    pairs = FreeOrder(12, 4, 3, 3, parts=6)(torch.Generator().manual_seed(0))
    text = pairs["source"], pairs["ids"][:, :1]
    written = []
    for _ in range(pairs["targets"].shape[1]):
        ids_BL = torch.cat([*text, *written], 1)
        logits_BLV = model.logits(ids_BL, prefix=torch.full((4,), 3))
        written.append(logits_BLV[:, -1:].argmax(-1))
    right = float((torch.cat(written, 1) == pairs["targets"]).double().mean())
    assert prefix.accuracy(model, pairs) == right
    assert prefix.accuracy(model, {**pairs, "targets": torch.cat(written, 1)}) == 1


# -- forming


@pytest.mark.slow
def test_induction_heads_form_as_the_loss_falls() -> None:
    assert failed("forming") == []


@pytest.mark.slow
def test_without_a_second_layer_none_form(monkeypatch) -> None:
    def shallow(seed, **more):
        return original(seed, n_layer=1)

    original = induction.attention_only
    monkeypatch.setattr(forming, "attention_only", shallow)
    monkeypatch.setattr(forming, "QUICK_STEPS", 120)
    assert len(failed("forming")) >= 2


def test_half_of_a_change() -> None:
    assert forming.half_way([0.0, 0.0, 0.2, 0.8, 1.0]) == pytest.approx(2.5)
    assert forming.half_way([4.0, 4.0, 1.0, 0.0]) == pytest.approx(1 + 2 / 3)
    assert forming.half_way([0.0, 0.6, 0.4, 1.0]) == pytest.approx(2 + 1 / 6)  # not before it is done for good


# -- scaling


@pytest.mark.slow
def test_the_losses_lie_on_lines() -> None:
    # So few steps give lines that are less straight than those of the whole lab.
    assert [claim for claim in failed("scaling") if "falls" in claim or "exponent" in claim] == []


def test_a_line_tells_what_lies_on_it() -> None:
    losses = {str(n): 5.0 * n**-0.08 for n in (100, 300, 1000, 4000)}
    line = scaling.extended(losses)
    assert line["exponent"] == pytest.approx(0.08)
    assert line["told"] == pytest.approx(losses["4000"])
    off = scaling.margins({"parameters": scaling.extended({**losses, "4000": 2.0})})
    assert [claim for claim, margin in off.items() if margin < 0] == [
        "it tells the loss of the most parameters, not trained before, within 5%",
        "it is off by less than 50% of what no change is",
    ]


def test_letters_that_are_rare_are_one() -> None:
    text = scaling.letters()
    assert len(text) == scaling.TEXT
    rare, seldom = (int((text == place).sum()) for place in (scaling.LETTERS, scaling.LETTERS - 1))
    assert rare > seldom > 0  # all others together
    batch = scaling.Crops(text, rows=2)(torch.Generator().manual_seed(0))
    assert torch.equal(batch["ids"][:, 1:], batch["targets"][:, :-1])


# -- steps


@pytest.mark.slow
def test_a_transformer_needs_fewer_steps_from_afar_alone() -> None:
    assert failed("steps") == []


@pytest.mark.slow
def test_a_recurrent_network_in_the_transformers_place_is_found(monkeypatch) -> None:
    monkeypatch.setattr(steps, "QUICK_STEPS", 60)
    monkeypatch.setattr(steps, "MODELS", {**steps.MODELS, "Transformer": steps.MODELS["RNN"]})
    assert any("the Transformer knows" in claim for claim in failed("steps"))


def test_what_the_steps_lab_holds() -> None:
    def kept(near: tuple[int, int], far: int, best: float) -> list[bool]:
        needed_steps = {
            "4": dict(zip(("RNN", "Transformer"), near, strict=True)),
            "8": {"RNN": 300, "Transformer": far},
        }
        curves = {"8": {"RNN": {"0": 0.1, "300": best}, "Transformer": {"0": 0.1, "300": 1.0}}}
        numbers = {"steps needed": needed_steps, "accuracy": curves, "steps": 300}
        return [margin > 0 for margin in steps.margins(numbers).values()]

    assert kept((40, 100), 120, 0.6) == [True, True, True, True]
    assert kept((100, 40), 60, 0.6) == [False, True, True, True]
    assert kept((40, 100), 190, 0.95) == [True, False, False, True]
    assert kept((40, 100), 210, 0.6) == [True, False, True, False]


def test_the_steps_needed_are_those_to_the_first_that_is_known() -> None:
    assert steps.needed({"0": 0.1, "10": 0.95, "20": 0.85, "30": 0.99}) == 10
    assert steps.needed({"0": 0.1, "10": 0.5}) == 10
