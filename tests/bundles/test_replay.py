"""Bundles of ``ttnn-perf hardware-check``, judged again without the board that they are of."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.cli.hardware_check import BUNDLE_FORMAT, page_of

if TYPE_CHECKING:
    from tests.harness.project import Project

BUNDLES = sorted(Path(__file__).parent.glob("*.json"))
TEST = "test_check.py::test_three_ops"


@pytest.fixture(params=BUNDLES, ids=lambda file: file.stem)
def bundle(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(request.param.read_text())
    return found


def test_a_bundle_names_no_place_and_no_machine(bundle: dict[str, Any]) -> None:
    assert bundle["format"] == BUNDLE_FORMAT
    text = json.dumps(bundle)
    assert not re.search(r"(?<![\w.])/(?:home|root|tmp|usr|opt|work)/", text)
    assert not re.search(r'"(?:runner|host|host_hash|branch)":', text)


def test_records_get_the_verdicts_that_they_had(bundle: dict[str, Any], project: Project) -> None:
    for name, text in bundle["files"].items():
        file = project.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    codes = {}
    for name in ("again", "slow"):
        record = bundle["records"][name]
        (project.path / f"{name}.json").write_text(json.dumps(record))
        judged = project.cli("gate", f"{name}.json", "--format", "json")
        codes[name] = judged.code
        then = {n: v["outcome"] for n, v in record["tests"][TEST]["verdicts"].items()}
        now = {v["metric"]: v["outcome"] for v in json.loads(judged.text)["verdicts"]}
        assert now == then
    assert codes == {"again": 0, "slow": 1}


def test_its_page_says_what_held(bundle: dict[str, Any]) -> None:
    rows = [line for line in page_of(bundle).splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(bundle["steps"])
    assert not any("DID NOT HOLD" in row for row in rows)
