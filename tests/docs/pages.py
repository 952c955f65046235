"""Pages of the documentation as scripts: the files that they show, their commands and outputs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.harness.project import PLUGINS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT: Final = Path(__file__).parents[2]
_FENCE: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_FILES: Final = frozenset({"python", "json", "toml", "yaml"})
#: The file that the words before a block name last: "Save this as `test_model.py`:".
_NAMED: Final = re.compile(r"`([\w./-]+\.(?:py|json|toml|yaml))`[^`]*\Z")
#: A file of this repository that a page has its reader save.
_SAVED: Final = re.compile(r"^Save \[`([\w./-]+)`\]\((\S+)\)", re.MULTILINE)
#: The command that was printed to revert a step: the states before and after it are new each time.
_REVERT: Final = re.compile(r"git diff-tree -p --binary [0-9a-f]{12} [0-9a-f]{12}")
#: The page says how wide a terminal its output needs, in a comment that readers do not see.
_WIDE: Final = re.compile(r"<!-- (\d+) columns -->\Z")
#: A page says why a block is not run, in such a comment.
_NOT_RUN: Final = re.compile(r"<!-- not run: .*-->\Z")
#: What sets up an environment is done already where tests run.
_SET_UP: Final = re.compile(r"^(pip install|python3 -m venv)\b")
_RUN: Final = re.compile(r"\b\d{8}T\d{6}Z-[0-9a-f]{6}\b")
_VARIABLE: Final = (
    (_RUN, "RUN"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(T[\d:]+Z)?\b"), "DATE"),
    (re.compile(r"\b[0-9a-f]{7,12}\b(?=\s|\"|$)"), "HASH"),
    (re.compile(r"\{\.\.\.\}|\"environment\": \{.*?\}"), "MORE"),
    (re.compile(r"[<>]?[+-]?\d+(,\d{3})*(\.\d+)?(e-?\d+)?"), "#"),
    (re.compile(r"[-=_]{4,}"), "--"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A file of a page, or a command with the lines of output that the page shows."""

    text: str
    file: str | None = None
    output: tuple[str, ...] = ()
    columns: int = 80


@dataclass(slots=True)
class Reader:
    """Does what a page says, in a folder of its own."""

    folder: Path
    #: Runs ``ttnn-perf``, alone on its line, without a process; None if it is to have one.
    run_here: Callable[[Path, list[str]], str] | None = None
    printed: str = ""

    def follow(self, page: str) -> Iterator[tuple[str, list[str], str]]:
        """Yield each command, the shown lines that it did not print, and what it printed."""
        for step in steps(page):
            if step.file is not None:
                file = self.folder / step.file
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(step.text, encoding="utf-8")
            elif not _SET_UP.match(step.text):
                self.printed = self._run(step.text, step.columns)
                yield step.text, _missing(step.output, self.printed), self.printed

    def _run(self, command: str, columns: int) -> str:
        """Run a command as a reader's shell would, which stays in the folder that it went to."""
        records = self.folder.glob(".ttnn_perf/runs/*.json")
        # Not by their names, which tell runs of the same second in any order.
        newest = max(records, key=lambda file: file.stat().st_mtime_ns, default=None)
        if newest is not None:
            command = _RUN.sub(newest.stem, command)
        revert = _REVERT.search(self.printed)
        if revert is not None:
            command = _REVERT.sub(revert[0], command)
        if self.run_here is not None and command.startswith("ttnn-perf "):
            return self.run_here(self.folder, shlex.split(command)[1:])
        place = self.folder / "went to"
        script = f'{command}\ncode=$?\npwd > "{place}"\nexit $code'
        ran = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env={**os.environ, **_environment(), "COLUMNS": str(columns)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=600,
        )
        self.folder = Path(place.read_text().strip())
        place.unlink()
        return ran.stdout


_AUTHOR: Final = tuple(
    (who, what, value)
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Reader"), ("EMAIL", "reader@example.invalid"))
)


def _environment() -> dict[str, str]:
    commands = Path(sys.executable).parent
    return {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(PLUGINS),
        "PYTHONDONTWRITEBYTECODE": "",  # as a reader has it
        "PYTEST_ADDOPTS": "-p steady_clock -p no:hypothesispytest -p no:randomly",
        **{f"GIT_{who}_{what}": value for who, what, value in _AUTHOR},
    }


def steps(page: str) -> Iterator[Shown]:
    """Yield the files and commands of a page, in their order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    saved = [(match.start(), match) for match in _SAVED.finditer(text)]
    blocks = [(match.start(), match) for match in _FENCE.finditer(text)]
    for _, block in sorted([*saved, *blocks], key=itemgetter(0)):
        if block.re is _SAVED:
            file = (ROOT / page).parent / block[2]
            yield Shown(file.read_text(encoding="utf-8"), file=block[1])
            continue
        indent, kind, body = len(block[1]), block[2], block[3]
        body = "".join(line[indent:] for line in body.splitlines(keepends=True))
        before = text[: block.start()].rstrip().rpartition("\n\n")[2]
        if kind == "console" and not _NOT_RUN.search(before):
            wide = _WIDE.search(before)
            yield from _commands(body, int(wide[1]) if wide else 80)
        elif kind in _FILES:
            named = _NAMED.search(before)
            if named is not None:
                yield Shown(body, file=named[1])


def _commands(body: str, columns: int) -> Iterator[Shown]:
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = command[:-1] + more.removeprefix("> ")
        yield Shown(command, output=tuple(output.splitlines()), columns=columns)


def _missing(shown: tuple[str, ...], output: str) -> list[str]:
    """Return the lines that were not printed in the order shown; numbers may be others."""
    printed = [_plain(line) for line in output.splitlines()]
    missing = []
    for line in shown:
        if _plain(line) in {"", "..."}:
            continue
        try:
            printed = printed[printed.index(_plain(line)) + 1 :]
        except ValueError:
            missing.append(line)
    return missing


def _plain(line: str) -> str:
    for pattern, word in _VARIABLE:
        line = pattern.sub(word, line)
    return line.strip()
