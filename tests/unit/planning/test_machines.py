"""Machines by name and by file."""

import math
import re

import pytest

from orrery.errors import UsageError
from orrery.planning.machines import MACHINES, load_machine, machine_of

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


SHEETS = {
    "v100": (32, 900, 15.7),
    "a100-40gb": (40, 1555, 19.5),
    "a100-80gb": (80, 2039, 19.5),
    "h100": (80, 3350, 66.9),
    "h200": (141, 4800, 66.9),
    "tpu-v3": (32 * 1.024**3, 900, None),
    "tpu-v4": (32 * 1.024**3, 1200, None),
}
"""Gigabytes, gigabytes a second, and tera-operations a second in float32, where the machine has that."""


@pytest.mark.parametrize("name", SHEETS)
def test_memory_bandwidth_and_float32_are_of_the_data_sheet(name):
    machine, (memory, bandwidth, float32) = load_machine(name), SHEETS[name]
    assert machine.memory == pytest.approx(memory * 1e9, rel=1e-12)
    assert machine.bandwidth == bandwidth * 1e9
    assert machine.rates.get("fp32") == (None if float32 is None else pytest.approx(float32 * 1e12))
    assert machine.latency == pytest.approx(5e-6)


@pytest.mark.parametrize("name", MACHINES)
def test_tensor_cores_halve_their_rate_with_twice_the_bits(name):
    rates = load_machine(name).rates
    for narrow, wide in (("fp8", "bf16"), ("fp8", "fp16"), ("bf16", "tf32"), ("fp16", "tf32")):
        if {narrow, wide} <= rates.keys():
            assert rates[narrow] == pytest.approx(2 * rates[wide], rel=1e-3)
    if {"bf16", "fp16"} <= rates.keys():
        assert rates["bf16"] == rates["fp16"]


@pytest.mark.parametrize("name", MACHINES)
def test_networks_and_nodes_are_those_that_the_source_states(name):
    machine = load_machine(name)
    for pattern, number in (
        (r"\((\d+) GB/s of NVLink in both directions\)", 2e-9 * machine.node_bandwidth),
        (r"network: (\d+) Gb/s a device", 8e-9 * machine.network_bandwidth),
        (r"network: (\d+) Gb/s for eight", 8 * 8e-9 * machine.network_bandwidth),
        (r"four links of (\d+) GB/s", machine.node_bandwidth / 4e9),
        (r"six links of (\d+) GB/s", machine.node_bandwidth / 6e9),
        (r"pods of ([\d,]+) chips", machine.node),
    ):
        if stated := re.search(pattern, machine.source):
            assert number == pytest.approx(float(stated[1].replace(",", "")))
    if "NVIDIA" in machine.source:
        assert machine.node == 8
    else:  # 81 Tb/s for 6,144 chips
        assert machine.network_bandwidth == pytest.approx(81e12 / 8 / 6144, rel=0.01)


def test_what_machines_share_is_equal():
    for one, other in (("a100-40gb", "a100-80gb"), ("h100", "h200")):
        first, second = load_machine(one), load_machine(other)
        for name in ("rates", "node", "node_bandwidth", "network_bandwidth", "efficiency"):
            assert getattr(first, name) == getattr(second, name)


def test_prices_are_an_eighth_of_the_instance_that_the_source_names():
    dollars = {"v100": 31.22, "a100-40gb": 32.77, "a100-80gb": 40.97, "h100": 98.32}
    assert {name: round(price / 8, 2) for name, price in dollars.items()} == {
        name: load_machine(name).price for name in dollars
    }
    assert {name: load_machine(name).price for name in MACHINES.keys() - dollars.keys()} == {
        "h200": None,
        "tpu-v3": 8.00 / 4,
        "tpu-v4": 3.22,
    }


def test_a_name_may_be_in_capitals():
    assert load_machine("H100") is MACHINES["h100"]


def test_a_file_of_the_users_own(tmp_path):
    path = tmp_path / "lab.yaml"
    path.write_text(OWN)
    machine = load_machine(path)
    assert (machine.name, machine.rate("bf16"), machine.memory, machine.node) == ("lab", 1e14, 24e9, 4)
    assert (machine.efficiency.matmul, machine.efficiency.network, machine.price) == (0.5, 0.8, None)
    with pytest.raises(UsageError, match="lab has no rate for 'fp8'"):
        machine.rate("fp8")


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
