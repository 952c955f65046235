"""Asking pytest which tests there are, in a process of its own."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.errors import DecodeError, InputError, UsageError
from pytest_ttnn_perf._base.files import read_json
from pytest_ttnn_perf.processes.commands import run_batch
from pytest_ttnn_perf.processes.worker import interpreter
from pytest_ttnn_perf.records.json import decode
from pytest_ttnn_perf.records.observation import Coverage

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.settings import Settings


#: Names the file that the collecting process writes what it found to.
COLLECTED: Final = "TTNN_PERF_COLLECTED"
#: The module that does so. What pytest prints depends on its options: it is not read.
_PLUGIN: Final = "pytest_ttnn_perf.plugin.collecting"
_HINT: Final = (
    "where collecting needs the hardware, give the record of a full run: "
    "ttnn-perf baseline prune RUN.json"
)


def collect(settings: Settings, cwd: Path) -> Coverage:
    """Return the tests that ``pytest --collect-only`` finds.

    Raises:
        UsageError: it could not collect them all.
    """
    with tempfile.TemporaryDirectory(prefix="ttnn-perf-") as folder:
        answer, log = Path(folder, "collected.json"), Path(folder, "log")
        command = [*interpreter(), "-m", "pytest", "--collect-only", "-q", "-p", _PLUGIN]
        environment = {**os.environ, COLLECTED: str(answer)}
        ending = run_batch(
            command, cwd=cwd, environment=environment, log=log, timeout_s=settings.timeout
        )
        if not answer.exists():
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            said = f": {lines[-1]}" if lines else ""
            message = f"pytest --collect-only {ending}{said}; {_HINT}"
            raise UsageError(message)
        try:
            found = read_json(answer, partial(decode, Coverage))
        except (DecodeError, InputError) as error:
            message = f"pytest --collect-only told what cannot be read: {error}"
            raise UsageError(message) from error
    if not any("::" in test for test in found.others):
        message = f"pytest --collect-only finds no test here: all baselines would go; {_HINT}"
        raise UsageError(message)
    if not found.places:
        message = f"the configuration of pytest selects tests or leaves files out; {_HINT}"
        raise UsageError(message)
    return found
