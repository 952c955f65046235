"""Two versions of a project, and the workers that measure each of them."""

from __future__ import annotations

import os
import secrets
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.processes.worker import finds_modules_in
from pytest_ttnn_perf.records.messages import ComparedVersions
from pytest_ttnn_perf.run.workers import WorkerFactory, WorkerLauncher

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_ttnn_perf.records.settings import ProfilerKind, Settings


#: Options of pytest whose value may be the name of a file, which then is no test to run.
_WITH_PATH: Final = frozenset({
    "-c", "--config-file", "--rootdir", "--confcutdir", "--ignore", "--deselect", "--basetemp",
    "-k", "-m", "-p", "-o", "-W", "-n", "-r", "--junitxml", "--junit-xml", "--log-file",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Moved:
    """Words for the other side. ``narrowed``: some tests that were asked for are not there."""

    argv: tuple[str, ...]
    narrowed: bool


@dataclass(frozen=True, slots=True)
class Move:
    """From the project in ``root`` to the one in ``tree``; the user stands in ``cwd``.

    Both are the same for the version that the user has.
    """

    root: Path
    tree: Path
    cwd: Path

    @property
    def is_users(self) -> bool:
        """Whether it is the version that the user has."""
        return self.tree == self.root

    @property
    def there(self) -> Path:
        """Where the user would stand in the other project."""
        return self.tree / self.cwd.relative_to(self.root)

    def path(self, text: str) -> str:
        """Return a text that begins with a path into the project, as a path into the other."""
        root = str(self.root)
        after = text[len(root) : len(root) + 1]
        inside = text.startswith(root) and after in {"", os.sep, ":"}
        return f"{self.tree}{text[len(root) :]}" if inside else text

    def argv(self, argv: Sequence[str], *, chooses: bool = False) -> Moved:
        """Return pytest's arguments; a file or test that only this project has is left out.

        pytest would refuse all for the sake of one that is not there. The tests of a file are then
        chosen by their ids: those that another version collects. The one that ``chooses`` keeps the
        ids that were given.

        Raises:
            UsageError: none of the files that were asked for is there.
        """
        if self.is_users:
            return Moved(tuple(argv), narrowed=False)
        kept, missing, named = [], [], False
        for before, word in zip(("", *argv), argv, strict=False):
            file, of_test, _ = word.partition("::")
            option = word.startswith("-") or before in _WITH_PATH
            if option or not file or not (self.cwd / file).exists():
                name, equals, value = word.partition("=")
                kept.append(f"{name}={self.path(value)}" if equals else self.path(word))
            elif not Path(self.path(str(self.cwd / file))).exists():
                missing.append(word)
            else:
                kept.append(self.path(word if chooses else file))
                named = named or bool(of_test)
        is_test = [word for word in kept if (self.cwd / word.partition("::")[0]).exists()]
        if missing and not is_test:
            message = f"nothing to compare: the commit does not have {', '.join(missing)}"
            raise UsageError(message)
        return Moved(tuple(kept), named or bool(missing))

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the environment, with modules looked for in the other project."""
        moved = dict(variables)
        if self.is_users:
            return moved
        places = moved.get("PYTHONPATH", "").split(os.pathsep)
        if places != [""]:
            moved["PYTHONPATH"] = os.pathsep.join(map(self.path, places))
        if "PWD" in moved:
            moved["PWD"] = str(self.there)
        return moved


def experiment_workers(
    command: str,
    settings: Settings,
    cwd: Path,
    argv: Callable[[], Sequence[str]],
    *,
    label: str = "",
) -> WorkerLauncher:
    """Return the workers of an experiment; all that they write is in folders of their own."""
    run = f"{command}-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}{label}"
    return WorkerLauncher(
        arguments=lambda folder: [
            "-m", "pytest", "--ttnn-perf", "-o", f"cache_dir={folder / 'cache'}", *argv(),
        ],
        cwd=cwd,
        folder=settings.artifacts.absolute() / "passes" / run,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measuring:
    """What holds for all versions that a command measures.

    ``argv`` are pytest's arguments as the user gave them, ``shared`` what all take from the
    working tree. ``receipts``: it is recorded how times are taken.
    """

    command: str
    argv: Sequence[str]
    settings: Settings
    profiler: ProfilerKind
    print_line: Callable[[str], None]
    shared: tuple[str, ...] = ()
    receipts: bool = False


@dataclass(slots=True)
class Version:
    """A version that is measured: how people call it, where it is, and its workers.

    ``other`` is a folder whose code it must not run. ``tests`` are those to run at first; None for
    all that are collected. ``rootdir`` is pytest's root folder, once it is known.
    """

    name: str
    label: str
    move: Move
    other: Path
    measuring: Measuring
    tests: Sequence[str] | None = None
    rootdir: str | None = None

    def workers(self, *, chooses: bool) -> WorkerFactory:
        """Return what starts its workers; what one that ``chooses`` collects, the other runs too.

        Raises:
            UsageError: it has none of the tests, or not the folder that the user stands in.
        """
        if not self.move.there.is_dir():
            message = f"{self.name} has no folder {self.move.cwd.name}: nothing to compare"
            raise UsageError(message)
        chooses = chooses and self.tests is None
        argv = self.move.argv(self.measuring.argv, chooses=chooses).argv
        given = any(word.startswith("--rootdir") for word in argv)

        def arguments() -> tuple[str, ...]:
            known = [] if given or self.rootdir is None else [f"--rootdir={self.rootdir}"]
            return (*known, *argv)

        measuring, label = self.measuring, f"-{self.label}"
        workers = experiment_workers(
            measuring.command, measuring.settings, self.move.there, arguments, label=label
        )
        asked = measuring.receipts
        workers.versions = ComparedVersions(self.move.tree, self.other, self.shared, receipts=asked)
        workers.cwd_on_path = finds_modules_in(self.move.cwd)
        workers.environment = self.move.environment(workers.environment)
        return WorkerFactory(measuring.settings, measuring.profiler, workers, measuring.print_line)

    @property
    def shared(self) -> tuple[str, ...]:
        """What it takes from the working tree."""
        return () if self.move.is_users else self.measuring.shared

    @property
    def is_narrowed(self) -> bool:
        """Whether the words that it is given choose more tests than were asked for."""
        return self.move.argv(self.measuring.argv).narrowed
