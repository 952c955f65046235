"""A baseline file that is wrong stops ttnn-perf and pytest alike, and is left as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.gate.store import BaselineStore
from tests.faults.damage import ANY_FILE, HUGE, Damage, damage, replaced
from tests.faults.refusals import PYTEST_USAGE, UNREADABLE, assert_refused
from tests.harness.project import run_command

if TYPE_CHECKING:
    from tests.faults.conftest import Scene

METRIC = ("tests", "test_speed", "metrics", "wall_time")
SESSION = (*METRIC, "sessions", 0)
#: What stands where in the stored file, and what is said about it.
WRONG_VALUES: dict[str, tuple[tuple[str | int, ...], str | None, str]] = {
    "no hardware": (("hardware",), None, "['hardware']: expected a value, found nothing"),
    "no tests": (("tests",), None, "['tests']: expected a value, found nothing"),
    "tests of null": (("tests",), "null", "['tests']: expected an object, found null"),
    "no unit": ((*METRIC, "unit"), None, "['unit']: expected a value, found nothing"),
    "unknown kind": ((*METRIC, "kind"), '"speed"', "expected one of 'time', 'throughput', "),
    "negative since": ((*METRIC, "since"), "-1", "expected a whole number of at least 0, found -1"),
    "since past the end": ((*METRIC, "since"), "1", "expected an index into the 1 sessions"),
    "no sessions": ((*METRIC, "sessions"), "[]", "expected at least one session, found a list"),
    "short session": (SESSION, "[1, 2]", "expected a session: [median, MAD, n, run], found a list"),
    "run of a number": ((*SESSION, 3), "7", "expected a string, found 7"),
    "session of words": (SESSION, '["1", 2, 3]', "['sessions'][0]"),
    "session of no samples": ((*SESSION, 2), "0", "expected a whole number of at least 1, found 0"),
    "boolean median": ((*SESSION, 0), "true", "expected a number, found True"),
    "median of zero": ((*SESSION, 0), "0", "expected a time above 0, found 0"),
    "median of NaN": ((*SESSION, 0), "NaN", "expected a finite number, found nan"),
    "huge median": ((*SESSION, 0), HUGE, "expected a finite number, found 1000"),
    "negative spread": ((*SESSION, 1), "-1", "expected a spread of at least 0, found -1"),
    "huge n": ((*SESSION, 2), HUGE, "found 1000"),
}  # fmt: skip


def refused(scene: Scene, wrong: Damage) -> None:
    """Check that the reader refuses the file that holds this."""
    damage(scene.baseline, wrong.content)
    with pytest.raises(InputError) as raised:
        list(BaselineStore(scene.project.path / "baselines").all_files())
    for fragment in (str(scene.baseline), *wrong.says):
        assert fragment in str(raised.value)


def test_what_is_no_baseline_or_holds_a_wrong_value_is_refused_by_its_place(scene: Scene) -> None:
    text = scene.baseline.read_text()
    # As after a merge that kept both sides: one of the two would be dropped without a word.
    member = text[text.index('"test_speed"') : text.rindex("}\n  }\n}")] + "}"
    doubled = text.replace('"test_speed"', f'{member},\n    "test_speed"', 1)
    refused(scene, Damage(doubled, ("test_speed",)))
    for path, literal, says in WRONG_VALUES.values():
        refused(scene, Damage(replaced(text, path, literal), (says,)))
    for wrong in ANY_FILE.values():
        refused(scene, wrong)


def test_a_truncated_baseline_stops_whatever_reads_it_and_is_left_as_it_is(scene: Scene) -> None:
    text = scene.baseline.read_text()
    damage(scene.baseline, text[: len(text) // 2])
    says, before = (f"{scene.baseline}:", "not valid JSON"), scene.on_disk()
    for arguments in (("gate", "run.json"), ("baseline", "list")):
        assert_refused(run_command(*arguments), code=UNREADABLE, says=says)
    ran = scene.project.pytest("--ttnn-perf-update=all", "--ttnn-perf-reason=x")
    assert_refused(ran, code=PYTEST_USAGE, says=says)
    assert scene.on_disk() == before


def test_a_wrong_value_is_found_on_its_line(scene: Scene) -> None:
    text = scene.baseline.read_text()
    number = next(
        n for n, line in enumerate(text.splitlines(), 1) if line.strip().startswith("[1000, 10, 3")
    )
    damage(scene.baseline, text.replace("[1000, 10, 3", '[1000, "10", 3'))
    ran = run_command("gate", "run.json")
    assert_refused(ran, code=UNREADABLE, says=(f"{scene.baseline}:{number}: ['tests']",))


def test_a_baseline_that_became_unreadable_is_left_as_it_is_and_not_called_written(
    scene: Scene,
) -> None:
    scene.project.write(
        test_model=f"""
        import pathlib

        def test_speed(ttnn_perf):
            ttnn_perf.record("wall_time", [500], unit="ns")
            pathlib.Path({str(scene.baseline)!r}).write_text("mine")
        """
    )
    ran = scene.project.pytest("--ttnn-perf-update", "--ttnn-perf-json=second.json")
    assert ran.code == 1
    assert "not written: " in ran.text
    assert "test_model.json:1: not valid JSON" in ran.text
    assert ", accepted" not in ran.text
    assert "1 written" not in ran.text
    assert '"written"' not in (scene.project.path / "second.json").read_text()
    assert scene.baseline.read_text() == "mine"
