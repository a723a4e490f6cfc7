"""Follows a program that a traced test starts: its lines are written when it ends, under the name of the test."""

import os

if os.environ.get("ORRERY_TRACED_INTO"):
    import atexit
    import json
    import uuid

    import coverage

    _TRACED = coverage.Coverage(data_file=None, include=["*/src/orrery*/*"], config_file=False)

    def _write() -> None:
        _TRACED.stop()
        data = _TRACED.get_data()
        lines = {file: data.lines(file) for file in data.measured_files()}
        target = os.path.join(os.environ["ORRERY_TRACED_INTO"], uuid.uuid4().hex)
        with open(target, "w") as stream:
            json.dump({"context": os.environ["ORRERY_TRACED_FOR"], "lines": lines}, stream)
        os.rename(target, f"{target}.json")

    _TRACED.start()
    atexit.register(_write)
