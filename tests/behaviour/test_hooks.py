"""Rules, formats, hardware and reports of others: hooks in a user's conftest, in gated runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import MODEL as TEST
from tests.behaviour.model import counts_of, record_of, refusal_of

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran

MODEL = """
    def test_model(ttnn_perf):
        ttnn_perf.record("latency", [10.0] * 3, unit="ms")
"""
RULES = """
    from pytest_ttnn_perf.hooks import CustomRule, Input, Severity, clean, found

    def fast_enough(subject):
        latency = subject.observation.metrics["latency"].samples[0]
        if latency <= 5:
            return clean(latency, limit=5, unit="ms")
        return found(f"latency is {latency:g} ms", value=latency, limit=5, unit="ms")

    def pytest_ttnn_perf_rules():
        return [
            CustomRule(
                "ACM901", "fast-enough", Severity.ERROR, fast_enough,
                fix="Ask the team for its budget.", needs=(Input.TEST,),
            )
        ]
"""
FORMATS = """
    import json
    from pytest_ttnn_perf.hooks import Artifact, CaptureFormat, capture_metric

    def read(file):
        cycles = json.loads(file.read_text())["cycles"]
        return Artifact((capture_metric("sim_cycles", cycles, kind="count"),))

    def pytest_ttnn_perf_capture_formats():
        return [CaptureFormat("acme trace", lambda head: b'"acme"' in head, read)]
"""
ATTACH = """
    def test_model(ttnn_perf):
        ttnn_perf.attach("trace.json")
"""


HARDWARE = """
    from pytest_ttnn_perf.hooks import Hardware

    def pytest_ttnn_perf_hardware(item, hardware):
        assert hardware is None
        return Hardware("quasar", "lab3", "1x1") if "model" in item.name else None
"""
REPORT = """
    import pathlib

    def pytest_ttnn_perf_report(run, document):
        lines = [
            f"{test} {verdict.metric.name} {verdict.outcome.value}"
            for test, judged in run.tests.items() for verdict in judged.verdicts
        ]
        assert list(document["tests"]) == list(run.tests)
        with pathlib.Path("own.txt").open("a") as file:
            file.write("\\n".join([document["id"], *lines]) + "\\n")
"""


def gate(project: Project, *arguments: str, isolate: str = "inline") -> Ran:
    return project.pytest("--ttnn-perf-update=new", "--ttnn-perf-isolate", isolate, *arguments)


def findings_of(project: Project) -> dict[str, dict[str, object]]:
    found = record_of(project)["tests"][TEST]["findings"]
    return {each["code"]: each for each in found}


def test_a_rule_of_a_conftest_fails_a_test(project: Project) -> None:
    project.write(conftest=RULES, test_model=MODEL)

    ran = gate(project, isolate="process")

    assert (ran.code, counts_of(ran)) == (1, "1 failed")
    assert "ACM901 fast-enough (error): latency is 10 ms (limit: 5 ms)" in ran.text
    assert "fix: Ask the team for its budget." in ran.text
    assert "ttnn-perf rules ACM901" not in ran.text
    assert findings_of(project)["ACM901"]["outcome"] == "FOUND"


def test_it_is_selected_ignored_and_weighed_as_ours_are(project: Project) -> None:
    project.write(conftest=RULES, test_model=MODEL)
    message = refusal_of(gate(project, "--ttnn-perf-select=ABC1"))
    assert message == "select: no rule begins with 'ABC1'; `ttnn-perf rules` lists them"
    assert counts_of(gate(project, "--ttnn-perf-select=ACM")) == "1 failed"
    assert list(findings_of(project)) == ["ACM901"]
    assert counts_of(gate(project, "--ttnn-perf-ignore=ACM")) == "1 passed"
    settings = '[tool.ttnn_perf.rules.ACM901]\nseverity = "warning"\n'
    (project.path / "pyproject.toml").write_text(settings)
    assert counts_of(gate(project)) == "1 passed"
    # The command line loads no conftest: it does not know the rule, and does not mind it.
    assert project.cli("baseline", "list").code == 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "import pytest; pytest.skip('not here')",
            "pytest_ttnn_perf_rules raised Skipped: not here",
        ),
        (
            "return [3]",
            "pytest_ttnn_perf_rules returned something that cannot be used: expected a list of "
            "CustomRule, found 3",
        ),
        (
            "return [CustomRule('TTP001', 'x', Severity.INFO, print)]",
            "pytest_ttnn_perf_rules returned something that cannot be used: TTP001: codes that "
            "begin with TTP are those of ttnn-perf",
        ),
        (
            "return [CustomRule('ACM001', 'x', Severity.INFO, print)] * 2",
            "pytest_ttnn_perf_rules returned two rules ACM001",
        ),
    ],
)
def test_a_mistaken_hook_stops_the_run_before_it_starts(
    project: Project, body: str, message: str
) -> None:
    project.write(
        conftest=f"""
        from pytest_ttnn_perf.hooks import CustomRule, Severity

        def pytest_ttnn_perf_rules():
            {body}
        """,
        test_model=MODEL,
    )
    refused = refusal_of(gate(project))
    assert refused == message
    assert not (project.path / ".ttnn_perf" / "runs").exists()


def test_a_file_of_another_format_is_attached(project: Project) -> None:
    project.write(conftest=FORMATS, test_model=ATTACH)
    # Ours would call this a run record, which is no artifact of a test.
    (project.path / "trace.json").write_text('{"acme": 1, "format": 9, "cycles": [700, 700]}')

    ran = gate(project)

    assert counts_of(ran) == "1 passed"
    metric = record_of(project)["tests"][TEST]["metrics"]["sim_cycles"]
    assert (metric["samples"], metric["kind"], metric["source"]) == ([700, 700], "count", "device")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"acme": 1}', "the reader of 'acme trace' raised KeyError"),
        ('{"acme": 1, "cycles": "many"}', "sim_cycles"),
        ('{"other": 1}', "its format is not known"),
    ],
)
def test_what_a_reader_cannot_read_fails_its_test(
    project: Project, content: str, message: str
) -> None:
    project.write(conftest=FORMATS, test_model=ATTACH)
    (project.path / "trace.json").write_text(content)
    ran = gate(project)
    assert counts_of(ran) == "1 failed"
    assert message in ran.text
    assert TEST in record_of(project)["tests"]


def test_a_report_of_ones_own_is_written_once(project: Project) -> None:
    project.write(conftest=REPORT, test_model=MODEL)

    ran = gate(project, isolate="process")

    assert ran.code == 0
    written = (project.path / "own.txt").read_text().splitlines()
    assert written == [record_of(project)["id"], f"{TEST} latency NO_BASELINE"]


def test_a_report_that_fails_does_not_cost_the_record(project: Project) -> None:
    failing = """
        def pytest_ttnn_perf_report(document):
            document.clear()
            raise ValueError("no disk")
    """
    project.write(conftest=failing, test_model=MODEL)

    ran = gate(project)

    assert (ran.code, counts_of(ran)) == (1, "1 passed")
    assert "not written: pytest_ttnn_perf_report raised ValueError: no disk" in ran.text
    assert record_of(project)["tests"]


def test_hardware_that_we_do_not_know_is_told(project: Project) -> None:
    project.write(conftest=HARDWARE, test_model=MODEL)

    ran = gate(project)

    assert counts_of(ran) == "1 passed"
    assert (project.path / "baselines" / "quasar-lab3-1x1" / "test_model.json").exists()
    told = record_of(project)["tests"][TEST]["hardware"]
    assert told == {"arch": "quasar", "board": "lab3", "mesh": "1x1"}


WRAPPERS = """
    import pytest
    from pytest_ttnn_perf.hooks import CustomRule, Hardware, Severity, clean

    @pytest.hookimpl(wrapper=True)
    def pytest_ttnn_perf_rules():
        return [*(yield), CustomRule("ACM902", "wrapped", Severity.INFO, lambda _: clean())]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_ttnn_perf_hardware(item):
        outcome = yield
        outcome.force_result(Hardware("quasar", "lab4", "1x1"))

    @pytest.hookimpl(wrapper=True)
    def pytest_ttnn_perf_report(run):
        yield
        print("reports written")
"""


def test_wrappers_of_our_hooks_work_as_those_of_pytest(project: Project) -> None:
    project.write(conftest=WRAPPERS, test_model=MODEL)

    ran = gate(project, "-s", "--ttnn-perf-select=ACM902")

    assert counts_of(ran) == "1 passed", ran.text
    assert record_of(project)["tests"][TEST]["hardware"]["board"] == "lab4"
    assert "reports written" in ran.text
