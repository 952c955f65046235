"""The errors a user can meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.core.text import visible

if TYPE_CHECKING:
    from pathlib import Path


class TtnnPerfError(Exception):
    """Base of all errors raised on purpose; its text is one line."""


class UsageError(TtnnPerfError):
    """An option, a marker or a fixture call that makes no sense."""


class RuleError(TtnnPerfError):
    """A rule of the checklist that raised: never a pass."""

    def __init__(self, code: str, cause: Exception) -> None:
        super().__init__(code, cause)
        self.code = code
        self.cause = cause

    def __str__(self) -> str:
        raised = f"{type(self.cause).__name__}: {self.cause}"
        return f"rule {self.code} raised {raised}: a defect of ttnn-perf; ignore the rule to go on"


class AccuracyError(TtnnPerfError, AssertionError):
    """A result below its accuracy limit, in a run without the gate."""


# Shown, and imported, by their public path.
for _public in (TtnnPerfError, UsageError, AccuracyError):
    _public.__module__ = "pytest_ttnn_perf"


class DecodeError(TtnnPerfError):
    """A wrong value in a JSON document, at ``path``: keys and indices."""

    def __init__(self, path: tuple[str | int, ...], expected: str, found: str) -> None:
        super().__init__(path, expected, found)
        self.path = path
        self.expected = expected
        self.found = found

    def below(self, step: str | int) -> DecodeError:
        """Return the error for the document that holds this one's at ``step``."""
        return DecodeError((step, *self.path), self.expected, self.found)

    def __str__(self) -> str:
        place = "".join(f"[{step!r}]" for step in self.path) or "the document"
        return visible(f"{place}: expected {self.expected}, found {self.found}")


class InputError(TtnnPerfError):
    """A file that cannot be read as expected; ``line`` counts from 1."""

    def __init__(self, file: Path, problem: str, *, line: int | None = None) -> None:
        super().__init__(file, problem)
        self.file = file
        self.problem = problem
        self.line = line

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line is not None else str(self.file)
        return visible(f"{place}: {self.problem}")


class EmptyReportError(InputError):
    """A report of a program that called no op."""


class WriteError(TtnnPerfError):
    """A file that cannot be written or removed; the old one stays."""

    def __init__(self, file: Path, cause: OSError, *, doing: str = "write") -> None:
        super().__init__(file, cause)
        self.file = file
        self.cause = cause
        self.doing = doing

    def __str__(self) -> str:
        return visible(f"{self.file}: cannot {self.doing}: {self.cause.strerror or self.cause}")
