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


@pytest.mark.long
def test_what_is_not_known_after_the_last_round_is_no_pass(versions: Versions) -> None:
    """Of two versions with other targets: the test that runs on does so in both of them."""
    source = (versions.root / "test_model.py").read_text()
    named = source.replace('"name", list(TESTS)', '"name, expected_fps", [(n, 100) for n in TESTS]')
    named = named.replace("(ttnn_perf, name)", "(ttnn_perf, name, expected_fps)")
    versions.write("test_model.py", named)
    versions.model(a=MOVING, b={"latency": 10.0})
    versions.commit("Start")
    versions.write("test_model.py", named.replace("100", "120"))

    ran = versions.command("ab", "HEAD", "--rounds", "3", "--format", "json")

    told = json.loads(ran.text)
    outcomes = [(each["test"][-3:], each["outcome"], each["rounds"]) for each in told["verdicts"]]
    assert outcomes == [("[a]", "INCONCLUSIVE", 3), ("[b]", "WITHIN", 3)]
    assert (told["failed"], told["inconclusive"], told["rounds"]) == (False, True, 3)
    assert ran.code == 7
