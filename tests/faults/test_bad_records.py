"""A run record that is wrong is refused with its place; one that is odd is judged as it stands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.readers.detect import read_run
from pytest_ttnn_perf.core.errors import InputError
from tests.faults.damage import ANY_FILE, DEEP, HUGE, damage, replaced
from tests.faults.refusals import UNREADABLE, assert_no_traceback, assert_refused
from tests.harness.project import run_command

if TYPE_CHECKING:
    from tests.faults.conftest import Scene

TEST = ("tests", "test_model.py::test_speed")
METRIC = (*TEST, "metrics", "wall_time")
WRONG_VALUES: dict[str, tuple[tuple[str | int, ...], str | None, str]] = {
    "samples of words": ((*METRIC, "samples"), '["fast"]', "[0]: expected a number, found 'fast'"),
    "boolean among samples": ((*METRIC, "samples", 1), "true", "expected a number, found True"),
    "one sample bare": ((*METRIC, "samples"), "7", "expected a list, found 7"),
    "confirmations bare": ((*METRIC, "confirmations"), "[7]", "[0]: expected a list, found 7"),
    "limit of words": ((*METRIC, "tolerance"), '"5 %"', "expected a number, found '5 %'"),
    "no metrics": ((*TEST, "metrics"), None, "expected a value, found nothing: the field is miss"),
    "no tests": (("tests",), None, "['tests']: expected a value, found nothing"),
    "no hardware": (("hardware",), None, "['hardware']: expected a value, found nothing"),
    "no arch": (("hardware", "arch"), None, "['hardware']['arch']: expected a value"),
    "facts of lists": ((*TEST, "facts"), '{"x": []}', "expected a string, a number, true, false"),
    "unknown outcome": ((*TEST, "verdicts", "wall_time", "outcome"), '"FINE"', "one of 'WITHIN', "),
}  # fmt: skip


def refused(scene: Scene, *says: str) -> None:
    """Check that the reader refuses the record as it is now."""
    with pytest.raises(InputError) as raised:
        read_run(scene.record)
    for fragment in ("run.json", *says):
        assert fragment in str(raised.value)


def test_what_is_no_record_or_holds_a_wrong_value_is_refused_by_its_place(scene: Scene) -> None:
    text = scene.record.read_text()
    for path, literal, says in WRONG_VALUES.values():
        damage(scene.record, replaced(text, path, literal))
        refused(scene, says)
    line = next(line for line in text.splitlines() if "test_speed" in line)
    damage(scene.record, text.replace(line, f"{line},\n{line}"))
    refused(scene, "test_speed")
    damage(scene.record, f'{{"format": 1, "journal": true}}\n{DEEP}\n{{}}\n')
    refused(scene, ":2: expected one test of the run's journal")
    for wrong in ANY_FILE.values():
        damage(scene.record, wrong.content)
        refused(scene, *wrong.says)


def test_a_wrong_sample_is_found_on_its_line_and_nothing_is_changed(scene: Scene) -> None:
    text = replaced(scene.record.read_text(), (*METRIC, "samples", 2), '"fast"')
    damage(scene.record, text)
    number = next(n for n, line in enumerate(text.splitlines(), 1) if '"fast"' in line)
    before = scene.on_disk()
    for name in ("gate", "show"):
        says = (f"run.json:{number}: ['tests']",)
        assert_refused(run_command(name, "run.json"), code=UNREADABLE, says=says)
    assert scene.on_disk() == before


def test_another_unit_is_an_input_of_other_baselines(scene: Scene) -> None:
    damage(scene.record, replaced(scene.record.read_text(), (*METRIC, "unit"), '"ms"'))
    before = scene.on_disk()
    ran = run_command("gate", "run.json", "--missing", "ignore")
    says = ("run.json: test_model.py::test_speed: wall_time", "unit is 'ms', in the baseline 'ns'")
    assert_refused(ran, code=UNREADABLE, says=says)
    assert scene.on_disk() == before


def test_samples_that_are_not_finite_are_no_data_and_extreme_ones_are_judged(scene: Scene) -> None:
    record = scene.record.read_text()
    for literal in ("NaN", "null", HUGE):
        damage(scene.record, replaced(record, (*METRIC, "samples", 1), literal))
        ran = run_command("gate", "run.json", "--format", "json")
        (verdict,) = json.loads(ran.text)["verdicts"]
        assert (ran.code, verdict["outcome"]) == (1, "NO_DATA")
        assert run_command("show", "run.json").code == 0
    for samples in (f"[{10**308}, {10**308}]", "[1e-300]"):
        damage(scene.record, replaced(record, (*METRIC, "samples"), samples))
        for name in ("gate", "show"):
            ran = run_command(name, "run.json")
            assert_no_traceback(ran)
            assert ran.code in {0, 1}
            assert "inf" not in ran.text.lower()


def test_a_finding_of_no_rule_is_refused_by_its_field(scene: Scene) -> None:
    document = json.loads(scene.record.read_text())
    (test,) = document["tests"].values()
    for code in ("", "TTP20", "TTP\u0662\u0660\u0663"):
        finding = {"code": code, "name": "a", "severity": "warning", "outcome": "FOUND"}
        test["findings"] = [finding]
        scene.record.write_text(json.dumps(document))
        says = "['findings'][0]['code']: expected the code of a rule, such as TTP203, found "
        refused(scene, ":1: ", f"{says}{code!r}")
