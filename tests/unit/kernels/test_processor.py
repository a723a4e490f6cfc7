"""What the system tells of the processor: on Intel's and AMD's, on Arm's, and where it tells nothing."""

import pytest

from orrery.kernels import processor
from orrery.kernels.processor import Processor

AMD = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: EPYC: Turin\nflags\t\t: fpu avx2 avx512_bf16\n\n"
ARM = "processor\t: 0\nCPU implementer\t: 0x41\nFeatures\t: fp asimd bf16\n\n"


@pytest.mark.parametrize(
    ("system", "text", "features", "narrow"),
    [
        ("Linux", AMD * 2, Processor("AuthenticAMD", frozenset({"fpu", "avx2", "avx512_bf16"})), True),
        ("Linux", ARM * 2, Processor("", frozenset({"fp", "asimd", "bf16"})), True),
        ("Linux", "", Processor("", frozenset()), False),
        ("Darwin", AMD, Processor("", frozenset()), False),
    ],
)
def test_the_processor_is_as_the_system_tells_it(system, text, features, narrow, tmp_path, monkeypatch):
    (tmp_path / "cpuinfo").write_text(text)
    monkeypatch.setattr(processor.platform, "system", lambda: system)
    monkeypatch.setattr(processor, "Path", lambda path: {"/proc/cpuinfo": tmp_path / "cpuinfo"}[path])
    assert processor.this_processor.__wrapped__() == features
    assert features.multiplies_bfloat16 == narrow
