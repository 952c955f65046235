"""``ttnn-perf ab`` measures until it knows, and says so if it does not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.harness.versions import Versions

if TYPE_CHECKING:
    from pathlib import Path

#: Differs from process to process by more than a few rounds can tell.
MOVING = "ttnn_perf.record('latency', 10 + number * 7 % 5, unit='ms')"


@pytest.fixture
def versions(tmp_path: Path) -> Versions:
    return Versions(tmp_path)


def test_what_is_known_after_the_first_look_takes_no_more_rounds(versions: Versions) -> None:
    """On a machine that gets slower by 1 % with every process."""
    versions = Versions(versions.path / "slower", drift=0.01)
    versions.model(a={"latency": 10.0})
    versions.commit("Start")
    versions.model(a={"latency": 10.1})

    ran = versions.ab("HEAD")

    assert ran.text.splitlines()[-1] == "1 test compared in 4 rounds; metrics: 1 WITHIN"
    assert ran.errors.splitlines()[-1] == "look after 4 rounds: 1 test decided"
    assert (ran.code, len(versions.processes())) == (0, 8)


def test_what_is_not_known_after_the_last_round_is_no_pass(versions: Versions) -> None:
    """Of two versions with other targets: the test that runs on does so in both of them."""
    source = (versions.root / "test_model.py").read_text()
    named = source.replace('"name", list(TESTS)', '"name, expected_fps", [(n, 100) for n in TESTS]')
    named = named.replace("(ttnn_perf, name)", "(ttnn_perf, name, expected_fps)")
    versions.write("test_model.py", named)
    versions.model(a=MOVING, b={"latency": 10.0})
    versions.commit("Start")
    versions.write("test_model.py", named.replace("100", "120"))

    ran = versions.ab("HEAD", "--rounds", "5", "--format", "json")

    told = json.loads(ran.text)
    outcomes = [(each["test"][-3:], each["outcome"], each["rounds"]) for each in told["verdicts"]]
    assert outcomes == [("[a]", "INCONCLUSIVE", 5), ("[b]", "WITHIN", 4)]
    assert (told["failed"], told["inconclusive"], told["rounds"]) == (False, True, 5)
    assert ran.code == 7
    moving, still = told["verdicts"]
    assert moving["low"] < -0.03 < 0.03 < moving["high"]
    assert (len(moving["rounds_after"]), len(still["rounds_after"])) == (5, 4)
