"""Machines by name and by file."""

import math

import pytest

from orrery.accounting.machines import MACHINES, load_machine, machine_of
from orrery.errors import UsageError

OWN = """
name: lab
rates: {bf16: 100.0e+12}
bandwidth: 1.0e+12
memory: 24.0e+9
node: 4
node_bandwidth: 32.0e+9
network_bandwidth: 1.25e+9
efficiency: {matmul: 0.5, attention: 0.4}
"""
VALUES = {
    "name": "lab",
    "rates": {"bf16": 1e14},
    "bandwidth": 1e12,
    "memory": 24e9,
    "node": 4,
    "node_bandwidth": 32e9,
    "network_bandwidth": 1.25e9,
    "efficiency": {"matmul": 0.5, "attention": 0.4},
}


def test_data_sheets():
    rates = {name: next(iter(machine.rates.values())) / 1e12 for name, machine in MACHINES.items()}
    assert rates == {
        "v100": 125,
        "a100-40gb": 312,
        "a100-80gb": 312,
        "h100": 989.4,
        "h200": 989.4,
        "tpu-v3": 123,
        "tpu-v4": 275,
    }
    for machine in MACHINES.values():
        assert machine.source
        assert machine.efficiency.source
        assert machine.network_bandwidth < machine.node_bandwidth < machine.bandwidth


def test_a_name_may_be_in_capitals():
    assert load_machine("H100") is MACHINES["h100"]


def test_a_file_of_the_users_own(tmp_path):
    path = tmp_path / "lab.yaml"
    path.write_text(OWN)
    found = load_machine(path)
    assert (found.name, found.rate("bf16"), found.memory, found.node) == ("lab", 1e14, 24e9, 4)
    assert (found.efficiency.matmul, found.efficiency.network, found.price) == (0.5, 0.8, None)
    with pytest.raises(UsageError, match="lab has no rate for 'fp8'"):
        found.rate("fp8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memory": 0}, "memory: Input should be greater than 0"),
        ({"memory": None}, "memory"),
        ({"memory": True}, "memory: true is no number"),
        ({"memory": math.nan}, "memory"),
        ({"bandwidth": math.inf}, "bandwidth"),
        ({"rates": {}}, "rates"),
        ({"rates": {"bf16": 0}}, "rates.bf16"),
        ({"rates": {"bf16": math.nan}}, "rates.bf16"),
        ({"node": 0}, "node"),
        ({"node": 1.5}, "node"),
        ({"efficiency": {"matmul": 1.5, "attention": 0.4}}, "efficiency.matmul"),
        ({"efficiency": {"matmul": 0.5}}, "efficiency.attention: Field required"),
        ({"memry": 5}, "memry: unknown key; did you mean 'memory'"),
        ({"latency": -1}, "latency"),
        ({"name": ""}, "name"),
    ],
)
def test_what_is_no_machine_is_refused_by_what_is_wrong(change, message):
    with pytest.raises(UsageError, match=r"lab\.yaml: ") as error:
        machine_of({**VALUES, **change}, "lab.yaml")
    assert message in error.value.message
    assert "a machine has name, rates" in error.value.hint


def test_a_machine_without_memory_is_refused():
    with pytest.raises(UsageError, match=r"lab\.yaml: memory: Field required"):
        machine_of({name: value for name, value in VALUES.items() if name != "memory"}, "lab.yaml")


def test_an_unknown_name_is_refused_with_those_that_are_near(tmp_path):
    with pytest.raises(UsageError, match="no machine and no file 'h1000'") as error:
        load_machine("h1000")
    assert "did you mean 'h100'?" in error.value.hint
    empty = tmp_path / "empty.yaml"
    empty.write_text("")
    with pytest.raises(UsageError, match="holds no mapping"):
        load_machine(empty)
