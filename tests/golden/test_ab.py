"""The whole output of ``ttnn-perf ab``: one story in real processes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.harness.golden import assert_golden
from tests.harness.versions import Versions

if TYPE_CHECKING:
    from pathlib import Path

SAME = {"latency": 20.0}
COUNT = {"unit": "", "kind": "count"}
RATE = {"unit": "tok/s", "kind": "throughput"}
#: Writes how often a model is called, which the settings say; then it has no result.
CALLS = """
calls = []
ttnn_perf.measure(calls.append, 1)
with (MACHINE / "calls").open("a") as file: file.write(f"{len(calls)} ")
pytest.skip("looked")
"""
#: Differs from process to process by more than a few rounds can tell.
MOVING = "ttnn_perf.record('latency', 10 + number * 7 % 5, unit='ms')"


@pytest.fixture
def versions(tmp_path: Path) -> Versions:
    """A project whose last commit is as installed, with changes that are not committed."""
    versions = Versions(tmp_path, drift=0.002)
    versions.write("pyproject.toml", "[tool.ttnn_perf]\nwarmup = 1\niterations = 3\n")
    versions.model(
        decode={
            "latency": 10.0,
            "rate": {"value_or_samples": 100.0, **RATE},
            "ops": {"value_or_samples": 7, **COUNT},
        },
        encode={"latency": 5.0},
        same=SAME,
        old=SAME,
        raises=SAME,
        calls=CALLS,
        noisy=MOVING,
        dies="ttnn_perf.record('t', 5.0, unit='ms')\nif number == 2: os.kill(os.getpid(), 9)",
    )
    versions.commit("Add the model")
    versions.git("tag", "v1")
    versions.write("pyproject.toml", "[tool.ttnn_perf]\nwarmup = 0\niterations = 5\n")
    versions.git("add", "pyproject.toml")
    versions.model(
        decode={
            "latency": 10.6,
            "rate": {"value_or_samples": 92.0, **RATE},
            "ops": {"value_or_samples": 8, **COUNT},
        },
        encode={"latency": 4.5},
        same=SAME,
        raises="raise RuntimeError('no device')",
        new=SAME,
        calls=CALLS,
        noisy=MOVING,
        dies="ttnn_perf.record('t', 5.0, unit='ms')",
    )
    versions.write("notes.txt", "untracked\n")
    return versions


def test_the_whole_story(versions: Versions) -> None:
    """Four rounds, with an editable install that each side's own folder comes before."""
    state = versions.state()
    found_first = ("src", versions.installed_editable())

    ran = versions.command(
        "ab", "v1", "--rounds=4", "--order-seed=1", "--log-file=user.log", python_path=found_first
    )

    text = re.sub(r"\b[0-9a-f]{7,8}\b", "COMMIT", ran.text)
    text = re.sub(r"log: \S*/passes/ab-RUN-ID", "log: FOLDER", text)
    assert_golden("ab_table", text)
    assert ran.code == 1
    assert [re.sub(r", up to .* left$", "", line) for line in ran.errors.splitlines()] == [
        "round 1, working tree, test 8 of 8",
        "round 1, v1, test 8 of 8",
        "round 2, working tree, test 4 of 4",
        "round 3, working tree, test 4 of 4",
        "round 3, v1, test 4 of 4",
        "round 4, v1, test 4 of 4",
        "round 4, working tree, test 4 of 4",
        "look after 4 rounds: 1 of 4 tests undecided, and it was the last",
    ]
    # The last of a round is the first of the next; one died and was followed by none.
    order = "".join("W" if ours else "R" for _, ours in versions.processes())
    assert order == "WRRW" * 2
    calls = (versions.path / "machine" / "calls").read_text()
    assert calls == "5 5 ", "both sides are measured with the settings of the working tree"
    assert versions.state() == state, "nothing of the user's was touched"
    assert versions.left_behind() == []
    assert not (versions.root / "baselines").exists()
    assert not (versions.root / "user.log").exists(), "of so many runs, none is the user's"
