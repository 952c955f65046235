"""The whole output of ``ttnn-perf``, in every shape."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.harness.golden import assert_golden

if TYPE_CHECKING:
    from tests.harness.project import Project

RECORD = {
    "format": 1,
    "hardware": {"arch": "wormhole_b0", "board": "n150", "mesh": "1x1"},
    "environment": {"python": "CPython 3.12.1", "commit": "abc1234", "dirty": True},
    "label": "bfp8 weights",
    "tests": {
        "models/test_resnet.py::test_resnet50[8]": {
            "metrics": {
                "wall_time": {"unit": "ns", "samples": [2_100_000, 2_110_000, 2_090_000]},
                "pcc": {"unit": "", "kind": "accuracy", "samples": [0.9987], "at_least": 0.99},
            },
        },
        "models/test_resnet.py::test_new": {
            "metrics": {"tokens": {"unit": "tok/s", "kind": "throughput", "samples": [21.4]}},
        },
    },
}
BASELINE = """\
{
  "format": 1,
  "hardware": {"arch": "wormhole_b0", "board": "n150", "mesh": "1x1"},
  "tests": {
    "test_resnet50[8]": {
      "accepted": {"at": "2026-11-15T10:00:00Z", "commit": "abc1234", "reason": "bfp8 weights", "ttnn": "0.81.1"},
      "configuration": {},
      "metrics": {
        "pcc": {
          "better": "higher", "kind": "accuracy", "sessions": [
            [0.999, 0.0, 1]
          ], "since": 0, "source": "wall", "unit": ""
        },
        "wall_time": {
          "better": "lower", "kind": "time", "sessions": [
            [1834211, 2113, 20],
            [1829004, 1987, 20]
          ], "since": 0, "source": "wall", "unit": "ns"
        }
      }
    }
  }
}
"""  # noqa: E501 (the layout of the file)


@pytest.fixture
def recorded(project: Project) -> Project:
    (project.path / "run.json").write_text(json.dumps(RECORD))
    folder = project.path / "baselines" / "wormhole_b0-n150-1x1" / "models"
    folder.mkdir(parents=True)
    (folder / "test_resnet.json").write_text(BASELINE)
    return project


@pytest.mark.parametrize("shape", ["table", "json"])
@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("gate", ("gate", "run.json", "--baselines", "baselines"), 1),
        ("show", ("show", "run.json"), 0),
        ("baseline_list", ("baseline", "list"), 0),
    ],
)
def test_command_in_every_shape(
    recorded: Project, name: str, arguments: tuple[str, ...], code: int, shape: str
) -> None:
    ran = recorded.cli(*arguments, "--format", shape)
    assert (ran.code, ran.errors) == (code, "")
    assert_golden(f"{name}_{shape}", ran.text)
