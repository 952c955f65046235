"""The whole output of the commands that change baselines."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.baseline import Acceptance
from tests.harness.baselines import ops, stored, timed, times
from tests.harness.golden import assert_golden
from tests.harness.project import clean

if TYPE_CHECKING:
    from tests.harness.baselines import Desk

RESNET, BERT = "models/test_cnn.py::test_resnet50[8]", "models/test_llm.py::test_bert"
GONE, RENAMED = "models/test_cnn.py::test_vgg", "models/test_cnn.py::test_unet"
PCC = {"unit": "", "kind": "accuracy", "samples": [0.95], "at_least": 0.99}


@pytest.fixture
def lived_in(desk: Desk) -> Desk:
    """Baselines of three tests, and the record of a run after which one is worse and two gone."""
    desk.store(RESNET, stored(times(12.0, 12.1, 12.05), table=ops("Conv2d", "Matmul")))
    desk.store(GONE, stored(times(90.0)))
    desk.store(RENAMED, stored(times(40.0, 40.2), table=ops("Conv2d", "Upsample")))
    desk.record(
        tests={
            RESNET: timed([14.0, 14.1, 13.9], [14.1, 14.0], [14.0, 14.2]),
            BERT: {"metrics": {"latency": {"unit": "ms", "samples": [5.0]}, "pcc": PCC}},
            "models/test_cnn.py::test_unet_small": [40.1, 40.3],
        },
        collected={"places": [""], "others": []},
    )
    return desk


def test_accept(lived_in: Desk) -> None:
    words = ("--update", "all", "--reason", "bfloat16 accumulation")
    ran = lived_in.run("accept", "run.json", *words)
    assert (ran.code, ran.errors) == (1, "")
    assert_golden("baseline/accept_table", clean(ran.text))


def test_prune(lived_in: Desk) -> None:
    ran = lived_in.run("prune", "run.json")
    assert (ran.code, ran.errors) == (0, "")
    assert_golden("baseline/prune_table", clean(ran.text))


def test_merge(desk: Desk) -> None:
    sides = {
        "base": (Acceptance("2026-11-15T10:00:00Z", "abc1234", "first"), (12.0,)),
        "ours": (Acceptance("2026-11-16T10:00:00Z", "aaa1111", "bfp8 weights"), (12.0, 14.0)),
        "theirs": (Acceptance("2026-11-17T10:00:00Z", "bbb2222", "float32 sums"), (12.0, 13.0)),
    }
    for name, (accepted, medians) in sides.items():
        since = len(medians) - 1
        desk.store(RESNET, stored(times(*medians, since=since), accepted=accepted))
        file = desk.root / "wormhole_b0-n150-1x1" / "models" / "test_cnn.json"
        shutil.copy(file, desk.path / f"{name}.json")
    files = ("base.json", "ours.json", "theirs.json")
    ran = desk.run("merge", *files, "--path", "baselines/models/test_cnn.json")
    assert (ran.code, ran.errors) == (1, "")
    assert_golden("baseline/merge_table", clean(ran.text))
