"""What the program prints of layouts, and what it refuses."""

import re
from dataclasses import replace

import pytest

from orrery.cli.plan_layouts import LayoutOptions, layouts
from orrery.cli.program import run
from orrery.errors import UsageError
from orrery.families import load_family, spec_of
from orrery.planning.layouts.work import work_of
from orrery.planning.presets import preset

SPEC = preset("gpt3-1.3b")
SMALL = work_of(SPEC, "gpt3-1.3b")
BATCH = 1_048_576


def test_a_layout_in_its_parts(capsys):
    layouts(SPEC, SMALL, LayoutOptions(machine="a100-80gb", layout="data=2,tensor=4", batch=BATCH), tokens=300e9)
    printed = capsys.readouterr().out
    assert "gpt3-1.3b on a100-80gb: 512 sequences of 2,048 tokens a step, 300,000,000,000 tokens in all" in printed
    assert re.search(r"weights +1,315,723,264", printed)
    assert "2(t-1)/t 2sbh a branch and pass" in printed
    assert (
        "torchrun --nnodes 1 --nproc-per-node 8 -m orrery train RECIPE --parallel.data 2 --parallel.tensor 4" in printed
    )


@pytest.mark.parametrize(
    ("family", "layout", "said"),
    [
        ("llama", "tensor=2", "a run refuses it: parallel.tensor 2 does not divide the 1 heads of"),
        ("olmo2", "tensor=2", "a run refuses it: parallel.tensor 2: .*q_norm is a RMSNorm"),
        ("llama", "fsdp=2", "the keys parallel.* are those of a recipe"),
        ("llama", "pipeline=2,tensor=2", r"a recipe refuses parallel.pipeline \(with tensor 2"),
    ],
)
def test_what_a_run_refuses_is_said_below_the_line(family, layout, said, capsys):
    rules = load_family(family)
    heads = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4}
    heads["num_key_value_heads"] = 1 if family == "llama" else 4
    spec = spec_of(rules, {**rules.TINY, **heads})
    layouts(spec, replace(work_of(spec, family), length=16), LayoutOptions(layout=layout, batch=128))
    assert re.match(said, capsys.readouterr().out.splitlines()[-1])


def test_the_best_for_one_number_of_devices_and_for_several(capsys):
    layouts(SPEC, SMALL, LayoutOptions(machine="a100-80gb", devices=(8,), batch=BATCH))
    assert "8 devices" in capsys.readouterr().out
    layouts(SPEC, SMALL, LayoutOptions(machine="v100", devices=(1, 8), batch=BATCH))
    printed = capsys.readouterr().out
    assert "dollars" in printed
    assert len([line for line in printed.splitlines() if line.startswith(("1 ", "8 "))]) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"machine": "h1000"}, "no machine and no file 'h1000'"),
        ({"layout": "tensor=5"}, "tensor=5 does not divide the 16 heads"),
        ({"layout": "data=2,tensor=4", "devices": (16,)}, "is of 8 devices, and --devices says 16"),
        ({"layout": "data=1", "memory": 1e9}, "needs 24.7 GB a device, and 1.0 GB are there"),
        ({"devices": (8,), "memory": 1e6}, "fits 8 devices of 0.0 GB"),
        ({"layout": "data=1", "batch": 100}, "a batch of 100 tokens holds no sequence"),
    ],
)
def test_what_cannot_be_is_refused(options, message, capsys):
    with pytest.raises(UsageError) as error:
        layouts(SPEC, SMALL, LayoutOptions(**{"batch": BATCH, **options}))
    assert message in error.value.message
    assert error.value.hint
    assert not capsys.readouterr().out


def test_a_machine_and_devices_ask_for_layouts():
    assert LayoutOptions().asked == []
    for name, value in {"machine": "h100", "devices": (8,), "layout": "data=1", "memory": 1e9, "batch": BATCH}.items():
        assert LayoutOptions(**{name: value}).asked == [f"--{name}"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--published", "--machine", "h100"], "--machine is of the layout of a model"),
        (["--tables", "--devices", "8"], "--devices is of the layout of a model"),
        (["gpt3-1.3b", "--published"], "each is a plan of its own"),
        (["--published", "--data"], "each is a plan of its own"),
        (["gpt3-1.3b", "--machine", "h100", "--rows", "4"], "--rows is of a step on one device"),
        (["gpt3-1.3b", "--devices", "8", "--dtype", "float32"], "--dtype is of a step on one device"),
        (["gpt3-1.3b", "--overwrite"], "--output is the folder"),
    ],
)
def test_nothing_is_passed_over_in_silence(words, said, capsys):
    assert run(["plan", *words]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert not shown.out


def test_the_program_plans_layouts(capsys):
    words = ["plan", "gpt3-1.3b", "--machine", "a100-80gb", "--layout", "data=2,tensor=4", "--tokens", "300e9"]
    assert run([*words, "--batch", str(BATCH)]) == 0
    assert "300,000,000,000 tokens in all" in capsys.readouterr().out
    assert run(["plan", "gpt3-1.3b", "--devices", "1", "8", "--batch", str(BATCH), "--length", "1024"]) == 0
    assert "1,024 sequences of 1,024 tokens a step" in capsys.readouterr().out
    assert run(["plan", "gpt3-1.3b", "--layout", "tensor=5"]) == 2
    assert "would fit" in capsys.readouterr().err


def test_published_runs_are_printed_with_their_sources(capsys):
    assert run(["plan", "--published"]) == 0
    printed = capsys.readouterr().out
    assert "PaLM 540B" in printed
    assert "- Dubey et al. 2024, Table 4" in printed
