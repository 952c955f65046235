"""How busy the host is: one file of a few bytes, read in microseconds right after samples."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.model.hardware import Scalar

#: Names the folder that holds ``proc`` and ``sys`` of the host, where a container has them.
ROOT: Final = "TTNN_PERF_HOST"
_LOAD: Final = "proc/loadavg"
_GOVERNOR: Final = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
_MOST_BYTES: Final = 4096


def host_load(environment: Mapping[str, str]) -> Mapping[str, Scalar]:
    """Return the load, its processors and their governor; what the host does not tell is left out.

    ``load_1m`` counts what the test itself did in the last minute, such as computing what it
    expects. ``runnable_threads``, of this moment, are all others: while it asks, a test does
    nothing else.
    """
    root = environment.get(ROOT) or "/"
    words = _text(os.path.join(root, _LOAD)).split()  # noqa: PTH118 (a tenth of the time)
    try:
        load: dict[str, Scalar] = {
            "load_1m": float(words[0]),
            "runnable_threads": int(words[3].partition(b"/")[0]) - 1,
        }
    except (IndexError, ValueError):
        load = {}
    return {**load, **_processors(root)}


@lru_cache(maxsize=4)
def _processors(root: str) -> Mapping[str, Scalar]:
    """Return what stays as it is while a process runs."""
    # All that there are, not those that this process may use: the load is of all as well.
    count = os.cpu_count()
    governor = _text(os.path.join(root, _GOVERNOR)).decode(errors="replace").strip()  # noqa: PTH118
    found: dict[str, Scalar] = {"cpu_count": count, "governor": governor or None}
    return {name: value for name, value in found.items() if value is not None}


def _text(file: str) -> bytes:
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(descriptor, _MOST_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
