"""The whole output of the commands that change baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
