"""The whole output of ``compare`` on run records, and how two runs are joined."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.harness.golden import assert_golden

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project


def time(*samples: float | None, **more: Any) -> dict[str, Any]:
    """Return a time in milliseconds."""
    return {"unit": "ms", "samples": list(samples), **more}


BEFORE: dict[str, Any] = {
    "format": 1,
    "id": "20261115-100000-1a2b",
    "label": "bfp8 weights",
    "hardware": {"arch": "wormhole_b0", "board": "n150", "mesh": "1x1"},
    "environment": {
        "started_at": "2026-11-15T10:00:00Z", "load_1m": 0.1, "python": "CPython 3.12.1",
        "commit": "abc1234", "dirty": False, "ttnn": "0.81.1",
    },
    "tests": {
        "models/test_resnet.py::test_resnet50[8]": {
            "facts": {"dtype": "bfp8"},
            "metrics": {
                "wall_time": time(2.11, 2.10, 2.09),
                "samples_per_s": {"unit": "samples/s", "samples": [3810.0]},
                "pcc": {"unit": "", "kind": "accuracy", "samples": [0.9991, 0.9987]},
                "programs": {"unit": "", "kind": "count", "better": "equal", "samples": [54]},
            },
        },
        "models/test_resnet.py::test_precision": {
            "configuration": {"fidelity": "HiFi2"},
            "metrics": {"wall_time": time(3.0)},
        },
        "models/test_llama.py::test_decode": {
            "metrics": {
                "latency": time(46.2),
                "kernel_time": {"unit": "us", "samples": [900], "source": "device"},
                "prefill": time(9.1),
                "peak": {"unit": "B", "samples": [1048576]},
            },
        },
        "models/test_llama.py::test_gone": {"metrics": {"latency": time(5.0)}},
        "models/test_llama.py::test_mesh": {"metrics": {"latency": time(7.0)}},
        "models/test_llama.py::test_broken": {"metrics": {"latency": time(8.0)}},
    },
}  # fmt: skip
AFTER: dict[str, Any] = {
    "format": 1,
    "id": "20261116-090000-3c4d",
    "complete": False,
    "hardware": {"arch": "wormhole_b0", "board": "n150", "mesh": "1x1"},
    "environment": {
        "started_at": "2026-11-16T09:00:00Z", "load_1m": 7.5, "python": "CPython 3.12.1",
        "commit": "def5678", "dirty": True, "governor": "powersave",
    },
    "tests": {
        "models/test_resnet.py::test_resnet50[8]": {
            "facts": {"dtype": "bfp8"},
            "metrics": {
                # Measured again: the last pass settles what the run saw at first.
                "wall_time": time(9.0, 9.1, confirmations=[[4.0], [2.51, 2.53, 2.52]]),
                "samples_per_s": {"unit": "samples/s", "samples": [4572.0]},
                "pcc": {"unit": "", "kind": "accuracy", "samples": [0.9991, 0.9987]},
                "programs": {"unit": "", "kind": "count", "better": "equal", "samples": [57]},
            },
        },
        "models/test_resnet.py::test_precision": {
            "configuration": {"fidelity": "HiFi4"},
            "metrics": {"wall_time": time(4.0), "extra": time(1.0)},
        },
        "models/test_llama.py::test_new": {"metrics": {"latency": time(6.0)}},
        "models/test_llama.py::test_decode": {
            "unconfirmed": "confirm pass 2: the test raised RuntimeError: device busy",
            "metrics": {
                "latency": {"unit": "s", "samples": [0.0462]},
                "kernel_time": {"unit": "us", "samples": [950], "source": "realtime"},
                "prefill": time(9.4, confirmations=[[9.3], []]),
                "peak": {"unit": "B", "samples": [None]},
            },
        },
        "models/test_llama.py::test_mesh": {
            "hardware": {"arch": "wormhole_b0", "board": "n300", "mesh": "1x2"},
            "metrics": {"latency": time(4.0)},
        },
        "models/test_llama.py::test_broken": {"metrics": {}, "raised": "ValueError: no weights"},
        "models/test_llama.py::test_crashed": {"metrics": {}, "lost": "was killed by SIGABRT"},
        "models/test_llama.py::test_empty": {"metrics": {}},
    },
}  # fmt: skip


def _written(folder: Path, before: object, after: object) -> tuple[Path, Path]:
    first, second = folder / "before.json", folder / "after.json"
    first.write_text(json.dumps(before))
    second.write_text(json.dumps(after))
    return first, second


def test_everything_that_may_be_said(project: Project) -> None:
    _written(project.path, BEFORE, AFTER)
    ran = project.cli("compare", "before.json", "after.json")
    assert (ran.code, ran.errors) == (0, "")
    assert_golden("compare_runs_table", ran.text)
