"""The record of a run on disk: a journal while it runs, one document when it ends."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from pytest_ttnn_perf._support.atomic import write_text
from pytest_ttnn_perf._support.errors import WriteError
from pytest_ttnn_perf.model.encoding.runs import encode_heading, encode_test
from pytest_ttnn_perf.report.sentences import sentence

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.model.observation import JudgedTest, Run


@dataclass(slots=True)
class Journal:
    """One line per test, written before the test is judged: a killed run keeps what it has."""

    file: Path
    _stream: TextIO | None = None

    def open(self, heading: Run) -> None:
        """Start the journal with what is known of the run."""
        ignore_folder(self.file.parent.parent)
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self.file.open("w", encoding="utf-8")
        except OSError as cause:
            raise WriteError(self.file, cause) from cause
        try:
            self._line({**encode_heading(heading), "journal": True})
        except WriteError:
            self.file.unlink(missing_ok=True)
            raise

    def add(self, test: str, observed: dict[str, object]) -> None:
        """Append what one test observed."""
        self._line({test: observed})

    def close(self) -> None:
        """Remove the journal: the run's document has taken its place."""
        if self._stream is not None:
            self._abandon()
            self.file.unlink(missing_ok=True)

    def _line(self, document: dict[str, object]) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(json.dumps(document) + "\n")
            self._stream.flush()
        except OSError as cause:
            self._abandon()
            raise WriteError(self.file, cause) from cause

    def _abandon(self) -> None:
        """Close the file, which writes again what could not be written, in vain."""
        stream, self._stream = self._stream, None
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()


def write_run(run: Run, file: Path) -> None:
    """Write a run record with the sentence of every verdict in it."""
    write_text(file, run_text(run) + "\n")


def run_text(run: Run) -> str:
    """Return a run record as text, one line per test."""
    heading = json.dumps(encode_heading(run))
    tests = (f"  {json.dumps(name)}: {_test_text(judged)}" for name, judged in run.tests.items())
    return heading[:-1] + ', "tests": {\n' + ",\n".join(tests) + "\n}}"


def _test_text(judged: JudgedTest) -> str:
    """Return one test of the record, every verdict with its sentence."""
    sentences = {v.metric.name: {"sentence": sentence(v)} for v in judged.verdicts}
    encoded = encode_test(judged, verdicts_with=sentences)
    return json.dumps(encoded)


def ignore_folder(folder: Path) -> None:
    """Make a folder that git ignores by itself."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        write_text(ignore, "*\n")
