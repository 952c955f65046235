"""Other plugins beside the gate: each is loaded alone with it, and runs in workers as well."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, entry_of, failure_of, outcomes, record_of
from tests.behaviour.turns import id_of, latencies, write_turns

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran


@dataclass(frozen=True, slots=True)
class Beside:
    """A project with one more plugin in it."""

    project: Project
    plugins: tuple[str, ...]

    def gate(self, *arguments: str) -> Ran:
        """Run the gate in workers, with two confirm passes."""
        return self.run("--ttnn-perf", *arguments)

    def run(self, *arguments: str) -> Ran:
        """Run pytest with these plugins."""
        names = ("ttnn_perf", *self.plugins)
        loaded = [word for name in names for word in ("-p", name)]
        return self.project.run(sys.executable, "-m", "pytest", *loaded, *arguments)

    def executed(self, *names: str) -> list[int]:
        """Return how often each test was executed since it was written."""
        files = [self.project.path / f"{name}.turn" for name in names]
        return [int(file.read_text()) if file.exists() else 0 for file in files]


@pytest.fixture
def beside(
    request: pytest.FixtureRequest, project: Project, monkeypatch: pytest.MonkeyPatch
) -> Beside:
    """Return a project with the plugins that a test names; skip the test without them."""
    module, *plugins = request.param
    pytest.importorskip(module, reason=f"{module} is not installed")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    # A run that knows of another around it does less: pytest-benchmark saves nothing.
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"):
        monkeypatch.delenv(name, raising=False)
    return Beside(project, tuple(plugins))


def plugin(module: str, *names: str) -> pytest.MarkDecorator:
    """Let a test run beside a plugin of this module; ``names`` are those of its entry points."""
    return pytest.mark.parametrize("beside", [(module, *names)], indirect=True, ids=[module])


def write_slower(beside: Beside, *names: str) -> None:
    """Write tests that have become slower, all of them, and one that has not."""
    project = beside.project
    write_turns(project, fine=latencies(10), **{name: latencies(10) for name in names})
    project.pytest("-p", "ttnn_perf", "--ttnn-perf-update=new")
    write_turns(project, fine=latencies(10), **{name: latencies(20) for name in names})


@plugin("pytest_timeout", "timeout")
def test_timeout_is_the_tests_and_not_the_runs(beside: Beside) -> None:
    project = beside.project
    write_turns(project, hangs=["time.sleep(600)"], next=latencies(10))

    limit = ("--timeout=3", "--timeout-method=signal", "--ttnn-perf-missing=ignore")
    ran = beside.gate(*limit)

    assert counts_of(ran) == "1 failed, 1 passed"
    assert "Timeout (>3.0s) from pytest-timeout" in failure_of(ran, "test_model[hangs]")
    assert outcomes(project, id_of("next")) == {"latency": "NO_BASELINE"}


@plugin("pytest_split", "pytest-split")
def test_selection_is_split_once(beside: Beside) -> None:
    names = ("a", "b", "c")
    write_slower(beside, *names)

    ran = beside.gate("--splits=2", "--group=2")

    assert counts_of(ran) == "2 failed, 2 deselected"
    assert beside.executed("fine", *names) == [0, 0, 5, 5]
    assert record_of(beside.project)["environment"]["shard"] == "2/2"


@plugin("pytest_rerunfailures", "rerunfailures")
def test_test_that_is_run_again_counts_as_it_ends(beside: Beside) -> None:
    write_turns(beside.project, flaky=["assert False", *latencies(10)], broken=["assert False"])

    ran = beside.gate("--reruns=2", "--ttnn-perf-missing=ignore")

    assert counts_of(ran) == "1 failed, 1 passed, 3 rerun"
    assert entry_of(beside.project, id_of("flaky"))["metrics"]["latency"]["samples"] == [10]
    assert outcomes(beside.project, id_of("broken")) == {"-": "NO_DATA"}


@plugin("pytest_cov", "pytest_cov")
def test_coverage_is_left_out_and_demands_nothing(beside: Beside) -> None:
    started = "import coverage; assert coverage.Coverage.current() is None"
    write_turns(beside.project, model=[f"{started}; ttnn_perf.record('latency', 10.0, unit='ms')"])

    arguments = ("--cov=test_model", "--cov-fail-under=90", "--ttnn-perf-missing=ignore")
    ran = beside.gate(*arguments)

    assert (ran.code, counts_of(ran)) == (0, "1 passed")
    said = "ttnn-perf: no coverage: it would slow down what is measured"
    assert said in ran.text.splitlines()
    assert "overage" not in ran.text.replace(said, "") + ran.errors


@plugin("pytest_html", "html", "metadata")
def test_html_report_has_the_verdict(beside: Beside) -> None:
    write_slower(beside, "slow")

    beside.gate("--html=report.html", "--self-contained-html")

    text = (beside.project.path / "report.html").read_text()
    assert len(re.findall(r"REGRESSED: latency 100.0 % slower", text)) == 1
    assert "1 Failed" in text
    assert "1 Passed" in text


@plugin("pytest_randomly", "randomly")
def test_all_processes_have_the_seed_that_is_shown(beside: Beside) -> None:
    write_slower(beside, "slow")
    note = "open('seeds', 'a').write(f'{item.config.option.randomly_seed}\\n')"
    (beside.project.path / "conftest.py").write_text(f"def pytest_runtest_setup(item): {note}\n")

    ran = beside.gate()

    (shown,) = re.findall(r"--randomly-seed=(\d+)", ran.text)
    seeds = (beside.project.path / "seeds").read_text().split()
    assert seeds == [shown] * 10  # what is fine is measured again beside what is slow


@plugin("pytest_sugar", "sugar")
def test_progress_is_shown_once_and_whole(beside: Beside) -> None:
    write_slower(beside, "slow")

    ran = beside.gate("--force-sugar", "-s")

    assert ran.code == 1
    assert "100%" in ran.text
    assert ran.text.count("Results (") == 1


@plugin("pytest_github_actions_annotate_failures", "pytest_github_actions_annotate_failures")
def test_failures_are_annotated_once(beside: Beside, monkeypatch: pytest.MonkeyPatch) -> None:
    write_slower(beside, "slow", "broken")
    broken = ["assert False, 'on its own'"]
    write_turns(beside.project, fine=latencies(5), slow=latencies(20), broken=broken)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")

    ran = beside.gate("-s")

    notes = [line for line in ran.errors.splitlines() if line.startswith("::error")]
    assert len(notes) == 2
    assert "on its own" in notes[0]
    assert "REGRESSED: latency 100.0 %25 slower" in notes[1]
    assert not re.search(r"^::", ran.text, re.MULTILINE), "ours"


@plugin("pytest_benchmark", "benchmark")
def test_benchmarks_are_saved_once(beside: Beside) -> None:
    write_slower(beside, "slow")
    source = beside.project.path / "test_model.py"
    text = source.read_text().replace("(ttnn_perf, name):", "(ttnn_perf, name, benchmark):")
    source.write_text(text + "\n    benchmark.pedantic(int, rounds=2)\n")

    ran = beside.gate("--benchmark-json=saved.json")

    assert counts_of(ran) == "1 failed, 1 passed"
    saved = json.loads((beside.project.path / "saved.json").read_text())["benchmarks"]
    assert [each["name"] for each in saved] == ["test_model[fine]", "test_model[slow]"]
