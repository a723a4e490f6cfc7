"""Machines: what one device computes, holds and sends, from data sheets, or from a file of the user's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pydantic import Field

from orrery.errors import UsageError
from orrery.schema.numbers import AboveZero, Factor, NotNegative, Positive
from orrery.schema.section import Section

MICROSECOND = 1e-6


@dataclass(frozen=True)
class Efficiency:
    """The shares of a machine's peaks that a training reaches.

    Attributes:
        matmul: of the rate, in the products of a layer and its weights.
        attention: of the rate, in the products of queries, keys and values.
        network: of the bandwidth, in collectives of large messages.
        source: where they come from.
    """

    matmul: int | float
    attention: int | float
    network: int | float
    source: str


@dataclass(frozen=True)
class Machine:
    """One kind of device and what connects them.

    Attributes:
        name: by which it is asked for.
        rates: operations a second by number format, dense.
        bandwidth: bytes a second of its memory.
        memory: bytes that it holds.
        node: devices that the fast network joins.
        node_bandwidth: bytes a second that a device sends inside its node, in one direction.
        network_bandwidth: bytes a second that a device sends to another node.
        latency: seconds before the first byte of a message arrives.
        efficiency: what a training reaches of these.
        price: dollars an hour of one device; nothing where it has none.
        source: where the numbers come from.
    """

    name: str
    rates: Mapping[str, int | float]
    bandwidth: int | float
    memory: int | float
    node: int
    node_bandwidth: int | float
    network_bandwidth: int | float
    latency: int | float
    efficiency: Efficiency
    price: int | float | None
    source: str

    def rate(self, number_format: str) -> int | float:
        """Return the operations a second in a number format.

        Raises:
            UsageError: the machine does not compute in it.
        """
        if number_format not in self.rates:
            hint = f"it has rates for {', '.join(self.rates)}"
            raise UsageError(f"the machine {self.name} has no rate for {number_format[:40]!r}", hint)
        return self.rates[number_format]


_NCCL = "network: what nccl-tests report for large messages, about 230 of 300 GB/s on eight A100, 360 of 450 on H100"
_FITTED = "matmul: from one run on one node or device, which is then met exactly (published.benchmarks)"
_A100 = Efficiency(
    matmul=0.654,
    attention=0.6,
    network=0.8,
    source=f"{_FITTED}; attention: Dao 2023, FlashAttention-2, forward and backward; {_NCCL}",
)
_H100 = Efficiency(
    matmul=0.488,
    attention=0.35,
    network=0.8,
    source=f"{_FITTED}; attention: Shah et al. 2024, abstract, of FlashAttention-2 on an H100; {_NCCL}",
)
_V100 = Efficiency(matmul=0.662, attention=0.662, network=0.8, source=f"{_FITTED}; attention: alike; {_NCCL}")
_TPU = Efficiency(
    matmul=0.76,
    attention=0.76,
    network=0.8,
    source="matmul and attention: Pope et al. 2022, abstract, 76 % of the rate in the forward pass of PaLM 540B on 64 "
    f"TPU v4; {_NCCL}, taken for this network too",
)

MACHINES: Mapping[str, Machine] = {
    machine.name: machine
    for machine in (
        Machine(
            "v100",
            {"fp16": 125e12, "fp32": 15.7e12},
            bandwidth=900e9,
            memory=32e9,
            node=8,
            node_bandwidth=150e9,
            network_bandwidth=6.25e9,
            latency=5 * MICROSECOND,
            efficiency=_V100,
            price=3.90,
            source="NVIDIA V100 SXM data sheet (300 GB/s of NVLink in both directions); network: 400 Gb/s for eight, "
            "as Microsoft said of OpenAI's cluster (May 2020); price: an eighth of AWS p3dn.24xlarge on demand",
        ),
        Machine(
            "a100-40gb",
            {"bf16": 312e12, "fp16": 312e12, "tf32": 156e12, "fp32": 19.5e12},
            bandwidth=1555e9,
            memory=40e9,
            node=8,
            node_bandwidth=300e9,
            network_bandwidth=25e9,
            latency=5 * MICROSECOND,
            efficiency=_A100,
            price=4.10,
            source="NVIDIA A100 SXM data sheet (600 GB/s of NVLink in both directions); network: 200 Gb/s a device, as "
            "in DGX A100; price: an eighth of AWS p4d.24xlarge on demand",
        ),
        Machine(
            "a100-80gb",
            {"bf16": 312e12, "fp16": 312e12, "tf32": 156e12, "fp32": 19.5e12},
            bandwidth=2039e9,
            memory=80e9,
            node=8,
            node_bandwidth=300e9,
            network_bandwidth=25e9,
            latency=5 * MICROSECOND,
            efficiency=_A100,
            price=5.12,
            source="NVIDIA A100 SXM data sheet (600 GB/s of NVLink in both directions); network: 200 Gb/s a device, as "
            "in DGX A100; price: an eighth of AWS p4de.24xlarge on demand",
        ),
        Machine(
            "h100",
            {"bf16": 989.4e12, "fp16": 989.4e12, "fp8": 1978.9e12, "tf32": 494.7e12, "fp32": 66.9e12},
            bandwidth=3350e9,
            memory=80e9,
            node=8,
            node_bandwidth=450e9,
            network_bandwidth=50e9,
            latency=5 * MICROSECOND,
            efficiency=_H100,
            price=12.29,
            source="NVIDIA H100 SXM data sheet, without sparsity (900 GB/s of NVLink in both directions); network: 400 "
            "Gb/s a device, as in DGX H100 and in Dubey et al. 2024; price: an eighth of AWS p5.48xlarge, 2023",
        ),
        Machine(
            "h200",
            {"bf16": 989.4e12, "fp16": 989.4e12, "fp8": 1978.9e12, "tf32": 494.7e12, "fp32": 66.9e12},
            bandwidth=4800e9,
            memory=141e9,
            node=8,
            node_bandwidth=450e9,
            network_bandwidth=50e9,
            latency=5 * MICROSECOND,
            efficiency=_H100,
            price=None,
            source="NVIDIA H200 SXM data sheet, without sparsity; network as in DGX H200; efficiency as of the H100",
        ),
        Machine(
            "tpu-v3",
            {"bf16": 123e12},
            bandwidth=900e9,
            memory=32 * 2**30,
            node=1024,
            node_bandwidth=4 * 70e9,
            network_bandwidth=1.65e9,
            latency=5 * MICROSECOND,
            efficiency=_TPU,
            price=2.00,
            source="Jouppi et al. 2023, Table 4: four links of 70 GB/s, pods of 1,024 chips; between pods as for "
            "TPU v4; price: a quarter of v3-8 on demand",
        ),
        Machine(
            "tpu-v4",
            {"bf16": 275e12},
            bandwidth=1200e9,
            memory=32 * 2**30,
            node=4096,
            node_bandwidth=6 * 50e9,
            network_bandwidth=1.65e9,
            latency=5 * MICROSECOND,
            efficiency=_TPU,
            price=3.22,
            source="Jouppi et al. 2023, Table 4: six links of 50 GB/s, pods of 4,096 chips; between pods: Chowdhery et "
            "al. 2022, section 4, 81 Tb/s for 6,144 chips; price: Google Cloud on demand",
        ),
    )
}


class EfficiencyFile(Section):
    """The shares of its peaks that a machine reaches, as a file gives them."""

    matmul: Factor
    attention: Factor
    network: Factor = 0.8
    source: str = "the user's"


class MachineFile(Section):
    """A machine as a file describes it."""

    name: str = Field(min_length=1)
    rates: dict[str, AboveZero] = Field(min_length=1)
    bandwidth: AboveZero
    memory: AboveZero
    node: Positive
    node_bandwidth: AboveZero
    network_bandwidth: AboveZero
    latency: NotNegative = 5 * MICROSECOND
    efficiency: EfficiencyFile
    price: NotNegative | None = None
    source: str = "the user's"


def load_machine(name_or_file: str | Path) -> Machine:
    """Return a known machine by its name, or the one that a YAML file describes.

    Raises:
        UsageError: there is no such machine and no such file, or the file is no machine: what is wrong, by its key.
    """
    name = str(name_or_file)
    if name.lower() in MACHINES:
        return MACHINES[name.lower()]
    path = Path(name_or_file)
    if not path.is_file():
        close = get_close_matches(name.lower(), MACHINES, n=1)
        advice = f"did you mean {close[0]!r}? " if close else ""
        hint = f"{advice}known: {', '.join(MACHINES)}; or give a YAML file with the keys of a machine"
        raise UsageError(f"no machine and no file {name[:200]!r}", hint)
    # Read here: of a package that reads recipes, only the reader of files is needed, and torch is not.
    from orrery.recipes.read import read_yaml

    return machine_of(read_yaml(path), str(path))


def machine_of(values: Mapping[str, object], where: str) -> Machine:
    """Return the machine that plain values describe.

    Raises:
        UsageError: a key is missing or unknown, or a number is none that a machine can have; the key is named.
    """
    from pydantic import ValidationError

    try:
        described = MachineFile.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        context = first.get("ctx", {})
        key = ".".join([*map(str, first["loc"]), *([str(context["key"])] if "key" in context else [])])
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        message = f"{where}: {key[:200] or 'the machine'}: {first['msg']}{more}"
        hint = "a machine has name, rates, bandwidth, memory, node, node_bandwidth, network_bandwidth, efficiency"
        raise UsageError(message, f"{hint}; bytes, bytes a second and operations a second, above zero") from error
    return Machine(
        name=described.name,
        rates=described.rates,
        bandwidth=described.bandwidth,
        memory=described.memory,
        node=described.node,
        node_bandwidth=described.node_bandwidth,
        network_bandwidth=described.network_bandwidth,
        latency=described.latency,
        efficiency=Efficiency(**described.efficiency.model_dump()),
        price=described.price,
        source=described.source,
    )
