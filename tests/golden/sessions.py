"""The same project run plainly and with workers, and what of the two outputs must be equal."""

from __future__ import annotations

import difflib
import json
import re
import shutil
import warnings
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.harness.project import QUICK

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.harness.project import Project, Ran

#: Plugins that only cost time here.
SLIM = (*QUICK, "-p", "no:benchmark")
#: A gated run as a user gets it; and one in which a test without a baseline passes.
GATED = (*SLIM, "--ttnn-perf", "--ttnn-perf-isolate", "process", "--ttnn-perf-confirm", "2")
IGNORING = (*GATED, "--ttnn-perf-missing", "ignore")

_MODEL = """
    import json
    from pathlib import Path

    import pytest

    NUMBERS = Path(__file__).with_name("numbers.json")

    def now(name):
        '''Return the next number of a test; the last one for ever.'''
        numbers = json.loads(NUMBERS.read_text())
        number, *rest = numbers[name]
        NUMBERS.write_text(json.dumps({**numbers, name: rest or [number]}))
        return number

    @pytest.mark.parametrize("name", sorted(json.loads(NUMBERS.read_text())))
    def test_model(ttnn_perf, name):
        print("measuring", name)
        ttnn_perf.record("latency", now(name), unit="ms")
"""


@dataclass(frozen=True, slots=True)
class Sessions:
    """How the same command ended without and with workers."""

    plain: Ran
    gated: Ran

    def assert_equal(self, amend: Callable[[str], str] = str) -> None:
        """Hold the gated session against the ordinary one, once what the gate says is out."""
        plain, gated = (amend(ordinary(ran.text)) for ran in (self.plain, self.gated))
        different = list(difflib.unified_diff(plain.splitlines(), gated.splitlines(), n=0))
        assert not different, "\n".join(different)
        assert self.gated.code == self.plain.code


def write_numbers(project: Project, **numbers: list[float]) -> None:
    """Write what each test of the model records, one number for each process that runs it."""
    (project.path / "numbers.json").write_text(json.dumps(numbers))


def write_model(project: Project, *names: str, more: str = "") -> None:
    """Write a model with a test of each name, each of which has a baseline of 10 ms."""
    write_numbers(project, **{name: [10.0] for name in names})
    project.write(test_model=_MODEL)
    recorded = project.pytest(*SLIM, "--ttnn-perf-update=new", "-p", "no:cacheprovider")
    assert recorded.code == 0, recorded.text
    shutil.rmtree(project.path / ".ttnn_perf")
    if more:
        project.write(test_more=more)


def run_both(
    project: Project, *arguments: str, after: Callable[[], object] = bool, process: bool = False
) -> Sessions:
    """Run a command without and with workers, each on the same files."""
    run = project.pytest_process if process else project.pytest

    def once(options: tuple[str, ...]) -> Ran:
        with warnings.catch_warnings():
            warnings.resetwarnings()  # those of this project's own tests are errors
            warnings.filterwarnings("ignore", "A plugin raised an exception")  # of pytest 7.4
            ran = run(*options, *arguments)
        after()
        return ran

    return both(project, once)


def both(project: Project, run: Callable[[tuple[str, ...]], Ran]) -> Sessions:
    """Run anything twice, given the options that make the second time a gated run."""
    before = _files(project)
    plain = run(SLIM)
    _restore(project, before)
    return Sessions(plain, run(IGNORING))


def ordinary(text: str) -> str:
    """Take out of an output what the gate says, and what differs between any two sessions."""
    lines: list[str] = []
    ours = False
    for line in text.splitlines():
        bare = re.sub(r"\x1b\[\d+m", "", line)
        ours = bare == "=== ttnn-perf ===" or (ours and not re.match(r"===|!!!|.* in TIME", bare))
        if not ours and not line.startswith("ttnn-perf: "):
            lines.append(line)
    text = _settled("\n".join(lines))
    # The slowest come first, and which those are is another matter each time.
    durations = r"(?:^\d+\.\d\ds (?:setup|call|teardown) .*\n)+"
    return re.sub(durations, lambda found: _without_times(found[0]), text, flags=re.MULTILINE)


def junit(project: Project, file: str = "junit.xml") -> str:
    """Return a JUnit report without times and names of machines, and without our properties."""
    root = ET.parse(project.path / file).getroot()
    for case in root.iter("testcase"):
        for properties in case.findall("properties"):
            for each in properties.findall("property"):
                if each.get("name", "").startswith("ttnn_perf."):
                    properties.remove(each)
            if not len(properties):
                case.remove(properties)
    for element in root.iter():
        for name in ("time", "timestamp", "hostname"):
            element.attrib.pop(name, None)
    return _settled(ET.tostring(root, encoding="unicode").replace("><", ">\n<"))


def _settled(text: str) -> str:
    """Take out addresses, and the numbers of the folders that pytest keeps for its sessions."""
    text = re.sub(r"\b0x[0-9a-f]+\b", "ADDRESS", text)
    return re.sub(r"/pytest-\d+/", "/pytest-N/", text)


def _without_times(lines: str) -> str:
    return "\n".join(sorted(line.split("s ", 1)[1] for line in lines.splitlines())) + "\n"


def _files(project: Project) -> dict[str, bytes]:
    files = (file for file in project.path.rglob("*") if file.is_file())
    return {str(file.relative_to(project.path)): file.read_bytes() for file in files}


def _restore(project: Project, files: dict[str, bytes]) -> None:
    for entry in project.path.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for name, content in files.items():
        file = project.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
