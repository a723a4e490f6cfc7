import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from orrery.checkpoints.lock import folder_lock
from orrery.errors import MachineError

HOLD = "import sys, pathlib, time; from orrery.checkpoints.lock import folder_lock\n"
HOLD += "with folder_lock(pathlib.Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"


def test_the_second_is_told_who_holds_and_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with (
            pytest.raises(MachineError, match=f"process {child.pid} on {socket.gethostname()}"),
            folder_lock(tmp_path),
        ):
            pass
        os.kill(child.pid, signal.SIGKILL)
    with folder_lock(tmp_path):
        assert (tmp_path / "lock").read_text().startswith(f"process {os.getpid()} ")
    with folder_lock(tmp_path):
        pass
