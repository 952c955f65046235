"""What other repositories drop in: an action, a component and a hook; inputs are never executed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_ttnn_perf.cli.baseline import run_check
from pytest_ttnn_perf.cli.main import parse
from pytest_ttnn_perf.core.options import OPTIONS, option_of

ROOT = Path(__file__).parents[2]
ACTION: Any = yaml.safe_load((ROOT / "action.yml").read_text())
SPEC, COMPONENT = yaml.safe_load_all((ROOT / "templates" / "ttnn-perf.yml").read_text())
(JOB,) = COMPONENT.values()
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
#: Runs pytest by name only: it writes down what it was given.
PYTHON = f"""#!{sys.executable}
import json, sys
print(json.dumps(sys.argv[1:]))
"""
HOSTILE = ["$(touch pwned)", "`touch pwned`", '"; touch pwned; "', "a b[x-*]", "$HOME", "--x=\\n'"]


def test_no_input_is_part_of_a_script() -> None:
    scripts = [step["run"] for step in STEPS.values() if "run" in step] + JOB["script"]
    assert len(scripts) == 5
    assert not [script for script in scripts if "${{" in script or "$[[" in script]
    assert all(step["shell"] == "bash" for step in STEPS.values() if "run" in step)


def test_inputs_are_declared_and_used() -> None:
    text = (ROOT / "action.yml").read_text()
    assert set(re.findall(r"inputs\.([a-z]+)", text)) == set(ACTION["inputs"])
    text = (ROOT / "templates" / "ttnn-perf.yml").read_text()
    assert set(re.findall(r"\$\[\[ inputs\.([a-z]+) \]\]", text)) == set(SPEC["spec"]["inputs"])


@pytest.mark.parametrize(("system", "shell"), [("github", "bash"), ("gitlab", "sh")])
def test_hostile_words_reach_pytest_as_they_are(tmp_path: Path, system: str, shell: str) -> None:
    python = tmp_path / "py thon"
    python.write_text(PYTHON)
    python.chmod(0o755)
    script = STEPS["Measure and gate"]["run"] if system == "github" else JOB["script"][1]
    prefix = "" if system == "github" else "PERF_"
    given = {"PYTHON": str(python), "TESTS": "\n".join(HOSTILE), "ARGUMENTS": "-k\n$(touch pwned)",
             "ARTIFACTS": "$(touch pwned)"}  # fmt: skip
    done = subprocess.run(
        [shell, "-e", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={"PATH": "/usr/bin:/bin", **{prefix + name: value for name, value in given.items()}},
    )  # fmt: skip

    words = json.loads(done.stdout)
    assert words[:3] == ["-m", "pytest", "--ttnn-perf"]
    assert words[-len(HOSTILE) - 3 :] == ["-k", "$(touch pwned)", "--", *HOSTILE]
    used = {word for word in words[2 : -len(HOSTILE)] if word.startswith("--ttnn-perf")}
    assert used <= {option_of(name) for name, *_ in OPTIONS}
    assert len(used) >= 4
    assert not (tmp_path / "pwned").exists()


@pytest.mark.long
@pytest.mark.parametrize("system", ["github", "gitlab"])
def test_they_run_with_what_they_install_and_nothing_else(tmp_path: Path, system: str) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    test = "def test_model(ttnn_perf):\n    ttnn_perf.record('latency', 1.0, unit='ms')\n"
    (tmp_path / "test_model.py").write_text(test)
    shell, prefix = ("bash", "") if system == "github" else ("sh", "PERF_")
    scripts = [STEPS[name]["run"] for name in ("Install", "Measure and gate")]
    given = {"PYTHON": str(environment / "bin" / "python"), "PACKAGE": str(ROOT),
             "ARTIFACTS": "artifacts", "ARGUMENTS": "--ttnn-perf-missing=warn"}  # fmt: skip
    for script in scripts if system == "github" else JOB["script"]:
        variables = {prefix + name: value for name, value in {"TESTS": "", **given}.items()}
        subprocess.run(
            [shell, "-e", "-c", script], cwd=tmp_path, check=True,
            env={**os.environ, **variables},
        )  # fmt: skip
    written = {file.name for file in (tmp_path / "artifacts").iterdir() if file.is_file()}
    assert written >= {"run.json", "report.md", "report.html", "junit.xml"}


#: Answers for a list of comments, and writes down what else it was asked for.
GH = """#!/bin/bash
if [ "$2" = --paginate ]; then printf '%s\\n' "$COMMENTS"; exit; fi
printf '%s\\n' "$@" > asked
"""


@pytest.mark.parametrize(
    ("comments", "asked"),
    [
        ("", ["pr", "comment", "7"]),
        ("11 Coverage: 93 %\n12 <!-- ttnn-perf: perf-n300 -->", ["pr", "comment", "7"]),
        ("11 <!-- ttnn-perf: perf-n150 -->\r\n12 Coverage: 93 %",
         ["api", "--silent", "--method", "PATCH", "repos/o/r/issues/comments/11"]),
    ],
)  # fmt: skip
def test_a_comment_replaces_that_of_the_same_name_and_no_other(
    tmp_path: Path, comments: str, asked: list[str]
) -> None:
    gh = tmp_path / "gh"
    gh.write_text(GH)
    gh.chmod(0o755)
    (tmp_path / "perf").mkdir()
    (tmp_path / "perf" / "report.md").write_text("## all passed\n")
    given = {"ARTIFACTS": "perf", "NAME": "perf-n150", "NUMBER": "7", "REPOSITORY": "o/r",
             "RUNNER_TEMP": str(tmp_path), "COMMENTS": comments}  # fmt: skip
    subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", STEPS["Comment"]["run"]], cwd=tmp_path, check=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", **given},
    )  # fmt: skip
    assert (tmp_path / "asked").read_text().splitlines()[: len(asked)] == asked
    text = (tmp_path / "ttnn-perf-comment.md").read_text()
    assert text == "<!-- ttnn-perf: perf-n150 -->\n## all passed\n"


def test_the_hook_is_a_command_that_there_is() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    program, *words = hook["entry"].split()
    assert program == "ttnn-perf"
    assert parse([*words, "baselines/n150/test_m.json"]).run is run_check
    assert re.search(hook["files"], "baselines/n150/test_m.json")
    assert not re.search(hook["files"], "docs/x.json")
