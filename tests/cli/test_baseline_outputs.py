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
PCC = {"unit": "", "kind": "accuracy", "samples": [0.95], "at_least": 0.99}


@pytest.fixture
def lived_in(desk: Desk) -> Desk:
    """A baseline, and the record of a run that is worse, and in which two are new."""
    desk.store(RESNET, stored(times(12.0, 12.1, 12.05), table=ops("Conv2d", "Matmul")))
    desk.record(
        tests={
            RESNET: timed([14.0, 14.1, 13.9], [14.1, 14.0], [14.0, 14.2]),
            BERT: {"metrics": {"latency": {"unit": "ms", "samples": [5.0]}, "pcc": PCC}},
            "models/test_cnn.py::test_unet_small": [40.1, 40.3],
        },
    )
    return desk


def test_accept(lived_in: Desk) -> None:
    words = ("--update", "all", "--reason", "bfloat16 accumulation")
    ran = lived_in.run("accept", "run.json", *words)
    assert (ran.code, ran.errors) == (1, "")
    assert_golden("baseline/accept_table", clean(ran.text))
