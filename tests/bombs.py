"""Files made to take all time or memory, read in a process of their own that tells what each of them took."""

import sys
from collections.abc import Iterable
from pathlib import Path

import programs

SECONDS, KILOBYTES = 5, 1 << 20
"""What a refusal may take: the processor's seconds of one file, and the memory of all."""
_READ = """
import resource, sys, time
from pathlib import Path
{needs}
def read(path):
    {read}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for name in sys.argv[1:]:
    began = time.process_time()
    try:
        read(Path(name))
        told = "read"
    except Exception as error:
        told = f"{{type(error).__name__}} {{error}}"
    print(f"{{time.process_time() - began:.3f}}", told.replace("\\n", " "))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def refusals(needs: str, read: str, files: Iterable[Path]) -> list[tuple[str, str]]:
    """Return the class and the message of the error behind each file, none of which may take long or much.

    Args:
        needs: an import.
        read: what reads ``path``, in one line.
        files: what is read, in one process.
    """
    names = [str(file) for file in files]
    command = [sys.executable, "-c", _READ.format(needs=needs, read=read), *names]
    said = programs.run(command, capture_output=True, text=True)
    *told, peak = said.stdout.splitlines()
    assert len(told) == len(names), said
    kinds_and_messages = []
    for name, line in zip(names, told, strict=True):
        seconds, kind, message = f"{line} ".split(" ", 2)
        assert float(seconds) < SECONDS, name
        kinds_and_messages.append((kind, message))
    assert int(peak) < KILOBYTES
    return kinds_and_messages
