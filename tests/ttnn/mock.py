"""Mock devices: TTNN without hardware, in processes that end with what they have to tell.

A process asks for a cluster once and keeps it, and variables are read once, so each question has a
process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.harness.corpus import corpus

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cluster:
    """A system of boards, by the name of its description, and what TTNN says about it."""

    file: str
    arch: str
    type: str
    chips: int
    grid: tuple[int, int]

    def __str__(self) -> str:
        """Return the name for ids of tests."""
        return self.type


N150: Final = Cluster("wormhole_N150", "wormhole_b0", "N150", 1, (8, 8))
N300: Final = Cluster("wormhole_N300", "wormhole_b0", "N300", 2, (8, 8))
T3K: Final = Cluster("t3k_cluster_desc", "wormhole_b0", "T3K", 8, (8, 8))
P100: Final = Cluster("blackhole_P100", "blackhole", "P100", 1, (11, 10))
P150: Final = Cluster("blackhole_P150", "blackhole", "P150", 1, (11, 10))
P150_X4: Final = Cluster("blackhole_4xP150", "blackhole", "P150_X4", 4, (11, 10))
P150_X8: Final = Cluster("blackhole_8xP150", "blackhole", "P150_X8", 8, (12, 10))
CLUSTERS: Final = (N150, N300, T3K, P100, P150, P150_X4, P150_X8)

#: What every child begins with: stdout belongs to TTNN, so answers go to a file.
_PRELUDE: Final = """\
import json, sys

def tell(**facts):
    with open("answer.json", "w") as file:
        json.dump(facts, file)

def said(function, *args, **kwargs):
    '''Return the error that a call raises, or what it returns.'''
    try:
        return repr(function(*args, **kwargs))
    except Exception as error:
        return f"{type(error).__name__}: {error}"

sys.modules["torch"] = None  # not installed, wherever this runs
import ttnn

def tensor(device, *shape):
    import numpy as np
    ones = ttnn.Tensor(np.ones(shape, dtype=np.float32), ttnn.bfloat16)
    return ones.to(ttnn.TILE_LAYOUT).to(device)
"""


def environment(folder: Path, cluster: Cluster | None, **variables: str) -> dict[str, str]:
    """Return the variables of a process that sees a mock cluster, or no device at all."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TT")}
    described = {}
    if cluster is not None:
        file = corpus(f"cluster_descriptors/{cluster.file}.yaml")
        described["TT_METAL_MOCK_CLUSTER_DESC_PATH"] = str(file)
    return {
        **kept,
        **described,
        "TT_METAL_CACHE": str(folder / "cache"),
        "TT_METAL_LOGS_PATH": str(folder / "logs"),
        **variables,
    }


def ask(folder: Path, cluster: Cluster | None, source: str, **variables: str) -> dict[str, Any]:
    """Run a script in ``folder`` that calls ``tell``; return what it told."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    (home / "script.py").write_text(_PRELUDE + source, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=home,
        env=environment(folder, cluster, **variables),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    told = json.loads((home / "answer.json").read_text(encoding="utf-8"))
    assert isinstance(told, dict)
    return told
