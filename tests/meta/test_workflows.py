"""The workflows of templates and pages are valid, and use only what there is."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from pytest_ttnn_perf.cli.main import command_parser
from pytest_ttnn_perf.core.options import OPTIONS, option_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]


def blocks() -> Iterator[tuple[str, str]]:
    """Yield every piece of YAML with its place."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        found = re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        for number, text in enumerate(found):
            yield f"{page.name}:{number}", text
    for file in sorted((ROOT / "templates" / "github").glob("*.yml")):
        yield file.name, file.read_text()


BLOCKS = dict(blocks())
WORKFLOWS = {name: text for name, text in BLOCKS.items() if "\njobs:\n" in text}
assert len(WORKFLOWS) >= 4


def commands(program: str) -> list[tuple[str, list[str]]]:
    """Return how a program is called, with the place of each call."""
    found = []
    for name, text in BLOCKS.items():
        # The lines of a folded scalar are one command.
        joined = re.sub(r"\n +(?=--|\.venv/bin/pytest|ttnn-perf )", " ", text)
        for line in joined.splitlines():
            call = re.search(rf"(?:^|[ /]){program} (?!install)(.*)", line.split(" # ")[0])
            if call and not line.lstrip().startswith(("#", "- run: pip", ".venv/bin/pip", "group")):
                words = shlex.split(re.split(r" [|>]{1,2} | \|\| ", call[1])[0])
                found.append((name, words))
    return found


def parser_of(words: list[str]) -> argparse.ArgumentParser | None:
    """Return the parser of a command of ttnn-perf; None if there is no such command."""
    parser: argparse.ArgumentParser | None = command_parser()
    for word in words:
        actions = parser._actions if parser else ()
        nested = [each for each in actions if isinstance(each, argparse._SubParsersAction)]
        if not nested:
            break
        parser = nested[0].choices.get(word)
    return parser


@pytest.mark.parametrize("name", BLOCKS)
def test_yaml_parses(name: str) -> None:
    assert yaml.safe_load(BLOCKS[name])


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_others_write_is_no_part_of_a_command(name: str) -> None:
    text = WORKFLOWS[name]
    assert set(yaml.safe_load(text)) >= {"name", "permissions", "jobs"}
    scripts = re.findall(r"run: .*?(?=\n +- |\Z)", text, re.DOTALL)
    assert not any("${{ github." in script.partition("env:")[0] for script in scripts)


def test_actions_are_pinned_and_checkouts_keep_no_credentials() -> None:
    used = [re.findall(r"uses: (\S+)(.*)", text) for text in BLOCKS.values()]
    foreign = [name for found in used for name, note in found if "yours" not in note]
    assert foreign
    assert not [name for name in foreign if not re.search(r"@[0-9a-f]{40}$", name)]
    for text in BLOCKS.values():
        assert text.count("actions/checkout@") == text.count("persist-credentials: false")
        assert "--edit-last" not in text


def test_options_of_pytest_exist() -> None:
    found = [(name, word) for name, words in commands("pytest") for word in words]
    used = {(name, word.partition("=")[0]) for name, word in found if "--ttnn-perf" in word}
    assert used
    assert {word for _, word in used} <= {option_of(name) for name, *_ in OPTIONS}


def test_commands_and_their_options_exist() -> None:
    found = commands("ttnn-perf")
    assert {words[0] for _, words in found} >= {"gate", "calibrate", "doctor"}
    for name, words in found:
        parser = parser_of(words)
        if parser is None and words[:2] == ["baseline", "accept"]:
            continue
        assert parser is not None, (name, words)
        known = {option for action in parser._actions for option in action.option_strings}
        used = {word for word in words if word.startswith("--")}
        assert used <= known, (name, words)


@pytest.mark.parametrize(("run", "code"), [("", 1), ("17", 0)])
def test_only_the_record_of_a_run_of_that_commit_is_accepted(
    tmp_path: Path, run: str, code: int
) -> None:
    """Without the id of a run, ``gh run download`` takes what any other run has left."""
    (text,) = [text for text in WORKFLOWS.values() if "gh run download" in text]
    steps = yaml.safe_load(text)["jobs"]["accept"]["steps"]
    (script,) = [step["run"] for step in steps if "gh run download" in step.get("run", "")]
    gh = tmp_path / "gh"
    gh.write_text(f'#!/bin/sh\n[ "$2" = list ] && echo "{run}" || echo "$@" > downloaded\n')
    gh.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=tmp_path, env={"PATH": path, "HEAD_SHA": "abc1234"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert (tmp_path / "downloaded").exists() is bool(run)
    assert ("no completed run of abc1234" in done.stdout) is not bool(run)
