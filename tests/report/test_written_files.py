"""Files that a run writes where options or settings say: record, reports, page, code quality."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.behaviour.model import MODEL, configure, counts_of, record_of, write_latency

if TYPE_CHECKING:
    import pytest

    from tests.harness.project import Project


def test_each_file_is_written_where_its_option_says(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_latency(project, 10.0)
    project.pytest("--ttnn-perf-update=new")
    write_latency(project, 20.0)
    configure(project, 'label = "nightly"', 'json = "out/run.json"', 'html = "out/page.html"')
    out = project.path / "out"
    out.mkdir()
    (out / "page.html").write_text("of an earlier run")
    summary = project.path / "summary.md"
    summary.write_text("of another step\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("CI_PROJECT_DIR", str(project.path.parent))

    ran = project.pytest(
        "--ttnn-perf",
        "--ttnn-perf-label=mine",
        "--ttnn-perf-markdown=out/report.md",
        "--ttnn-perf-gitlab=out/quality.json",
    )

    assert ran.code == 1
    run = json.loads((out / "run.json").read_text())
    assert run == record_of(project)
    assert (run["label"], run["tests"][MODEL]["metrics"]["latency"]["samples"]) == ("mine", [20.0])

    headline = "## ❌ ttnn-perf: 1 of 1 test failed\n"
    report = (out / "report.md").read_text()
    assert report.startswith(headline)
    assert f"| `{MODEL}` | `latency` | 10.00 ms | 20.00 ms | +100.0 % |" in report
    (record,) = [name for name in project.files() if name in report and ".ttnn_perf" in name]
    assert report.splitlines()[-1].startswith(f"<sub>run record `{record}`")
    before, _, after = summary.read_text().partition(headline)
    assert (before, after.count("<sub>")) == ("of another step\n", 1)
    gated = project.cli("gate", "out/run.json", "--format", "markdown")
    assert (gated.code, gated.text.partition("\n")[0]) == (1, headline.strip())
    assert f'ttnn-perf baseline accept out/run.json --reason "why" -- {MODEL}\n' in gated.text

    assert "1 of 1 test regressed" in (out / "page.html").read_text(encoding="utf-8")
    assert [line for line in ran.text.splitlines() if "page.html" in line] == [
        "page: out/page.html"
    ]
    issues = json.loads((out / "quality.json").read_text())
    (issue,) = [each for each in issues if each["check_name"] == "ttnn-perf/REGRESSED"]
    source = (project.path / "test_model.py").read_text().splitlines()
    line = source.index("@pytest.mark.ttnn_perf") + 1
    path = f"{project.path.name}/test_model.py"
    assert issue["location"] == {"path": path, "lines": {"begin": line}}


def test_what_could_not_be_written_is_named_once_and_fails_the_run(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_latency(project, 12.5)
    names = ["run.json", "page.html"]
    (project.path / "conftest.py").write_text(
        "import pathlib\n"
        "def pytest_runtest_teardown():\n"
        f"    for name in {names}: pathlib.Path(name).mkdir()\n"
    )
    nowhere = project.path / "nowhere" / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(nowhere))

    ran = project.pytest(
        "--ttnn-perf-update=new", "--ttnn-perf-json=run.json", "--ttnn-perf-html=page.html"
    )

    assert (ran.code, counts_of(ran)) == (1, "1 passed")
    told = [line for line in ran.text.splitlines() if line.startswith("not written: ")]
    assert len(told) == 3
    assert f"not written: {project.path}/run.json: cannot write: Is a directory" in told
    assert f"not written: {nowhere}: cannot write: No such file or directory" in told
    assert sum("page.html" in line for line in ran.text.splitlines()) == 1


def test_nothing_wrong_is_an_empty_list_of_issues(project: Project) -> None:
    project.write(test_plain="def test_plain(): pass")
    (project.path / "quality.json").write_text("earlier")

    project.pytest("--ttnn-perf", "--ttnn-perf-gitlab=quality.json")

    assert json.loads((project.path / "quality.json").read_text()) == []
