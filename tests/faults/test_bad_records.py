"""A run record that is wrong is refused with its place; one that is odd is judged as it stands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.readers.detect import read_run
from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.gate.store import BaselineStore
from tests.faults.amender import HARDWARE, appending
from tests.faults.conftest import model
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


def test_a_test_whose_hardware_is_null_is_refused_not_dropped(scene: Scene) -> None:
    own = json.dumps(json.loads(scene.record.read_text())["hardware"])
    text = replaced(scene.record.read_text(), ("hardware",), "null")
    text = replaced(text, (*TEST, "hardware"), own)
    text = replaced(
        text, ("tests", "test_model.py::test_lost"), '{"metrics": {}, "hardware": null}'
    )
    damage(scene.record, text)
    refused(scene, "test_lost", "hardware")


def test_another_unit_is_an_input_of_other_baselines(scene: Scene) -> None:
    damage(scene.record, replaced(scene.record.read_text(), (*METRIC, "unit"), '"ms"'))
    before = scene.on_disk()
    ran = run_command("gate", "run.json", "--missing", "ignore")
    says = ("run.json: test_model.py::test_speed: wall_time", "unit is 'ms', in the baseline 'ns'")
    assert_refused(ran, code=UNREADABLE, says=says)
    assert scene.on_disk() == before
    # Under pytest it fails its test by name.
    scene.project.write(test_model=model(unit="ms"))
    stored = scene.baseline.read_bytes()
    ran = scene.project.pytest("--ttnn-perf-update", "--ttnn-perf-missing=ignore")
    assert_no_traceback(ran)
    assert ran.code == 1
    assert "FAILED test_model.py::test_speed" in ran.text
    assert "unit is 'ms', in the baseline 'ns'" in ran.text
    assert scene.baseline.read_bytes() == stored


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


def test_names_that_only_look_alike_are_different_tests(scene: Scene) -> None:
    names = ["test_é.py::t", "test_e\u0301.py::t", "test_a.py::t", "test_A.py::t", "test_a.py::T"]
    record = {
        "format": 1,
        "hardware": {"arch": HARDWARE.arch, "board": HARDWARE.board},
        "tests": {
            name: {"metrics": {"wall_time": {"unit": "ns", "samples": [1000 * number]}}}
            for number, name in enumerate(names, start=1)
        },
    }
    damage(scene.record, json.dumps(record, ensure_ascii=False))
    BaselineStore(scene.project.path / "baselines").amend(
        HARDWARE, {name: appending(1000 * n) for n, name in enumerate(names, start=1)}
    )
    ran = run_command("gate", "run.json", "--format", "json")
    verdicts = json.loads(ran.text)["verdicts"]
    assert {v["test"]: v["outcome"] for v in verdicts} == dict.fromkeys(names, "WITHIN")


def test_a_name_that_no_terminal_can_print_is_printed_escaped(scene: Scene) -> None:
    # Half a surrogate pair: JSON allows it, and a file name may hold it.
    damage(scene.record, scene.record.read_text().replace("test_speed", r"test_\ud800"))
    for name in ("gate", "show"):
        ran = run_command(name, "run.json")
        assert r"test_\ud800" in ran.text
        assert_no_traceback(ran)


def test_a_finding_of_no_rule_is_refused_by_its_field(scene: Scene) -> None:
    document = json.loads(scene.record.read_text())
    (test,) = document["tests"].values()
    for code in ("", "TTP20", "TTP\u0662\u0660\u0663"):
        finding = {"code": code, "name": "a", "severity": "warning", "outcome": "FOUND"}
        test["findings"] = [finding]
        scene.record.write_text(json.dumps(document))
        says = "['findings'][0]['code']: expected the code of a rule, such as TTP203, found "
        refused(scene, ":1: ", f"{says}{code!r}")
