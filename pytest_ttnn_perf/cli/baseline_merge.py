"""``ttnn-perf baseline merge`` and ``install-merge-driver``: two branches, one baseline file."""

from __future__ import annotations

import os
import shlex
import sys
from enum import Enum
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.cli.common import add_argument, add_baselines, plain
from pytest_ttnn_perf.core.baseline import (
    MAX_SESSIONS,
    BaselineFile,
    MetricBaseline,
    TestBaseline,
    decode_file,
    encode_text,
    key_folder,
)
from pytest_ttnn_perf.core.errors import InputError, UsageError, WriteError
from pytest_ttnn_perf.core.files import no_file_at, parse_json, read_text, write_text
from pytest_ttnn_perf.core.settings import project_settings
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.gate.ratios import centre_of
from pytest_ttnn_perf.gate.store import BaselineStore
from pytest_ttnn_perf.machine.git import Git, stored_version, top_level
from pytest_ttnn_perf.report.sentences import command_line, place_of
from pytest_ttnn_perf.report.tables import Result, format_value

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from pytest_ttnn_perf.core.baseline import Acceptance, Session


class Take(Enum):
    """The side whose baseline wins where changes cannot be joined."""

    OURS = "ours"
    THEIRS = "theirs"


def add_merge(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "ttnn-perf baseline merge BASE OURS THEIRS [--path P] [--take SIDE]\n"
        "       ttnn-perf baseline merge --path P --take SIDE"
    )
    add = partial(add_argument, parser)
    add("files BASE OURS THEIRS", "the three versions of the file", type=Path, nargs="*")
    add("--path P", "the path of the file in the repository", type=Path)
    add("--take", "which side to take for a test that both sides accepted (default: report a "
        "conflict)", choices=[side.value for side in Take])  # fmt: skip


def run_merge(options: argparse.Namespace) -> Result:
    """Merge three versions of a baseline file into OURS.

    They are merged by test and session. Without files: merge the versions of a file that is in
    conflict in git.
    """
    files, path = options.files, options.path
    if len(files) not in {0, 3} or (not files and path is None):
        found = f"found {len(files)} files" + ("" if path else " and no --path")
        message = f"expected BASE OURS THEIRS, or --path alone for a file in conflict; {found}"
        raise UsageError(message)
    take = Take(options.take) if options.take else None
    if files:
        # Of a file that both sides added, git's base is empty, or not there.
        texts = ["" if not os.path.lexists(files[0]) else read_text(files[0])]
        texts += map(read_text, files[1:])
    else:
        texts, files = _staged(path), [path] * 3
    name = str(path or files[1])
    base, ours, theirs = (
        parse_json(text, decode_file, file=file) if text.strip() else None
        for text, file in zip(texts, files, strict=True)
    )
    if ours is None or theirs is None:
        raise InputError(files[1 if ours is None else 2], "the file is empty")
    if ours.hardware != theirs.hardware:
        keys = f"{ours.hardware.key} and {theirs.hardware.key}"
        raise InputError(files[1], f"the two sides are of different hardware: {keys}")
    merged = merge_files(base, ours, theirs, take=take)
    text = encode_text(merged.file)
    if options.files:
        write_text(files[1], text)
    else:
        # The folder of baselines is the one with the folder of the key.
        key = key_folder(Path(), merged.file.hardware).name
        root = next((each.parent for each in path.parents if each.name == key), path.parent)
        with BaselineStore(root).locked():
            write_text(path, text)
    return plain(_conflict_lines(name, merged), failed=bool(merged.unsettled))


def _staged(file: Path) -> list[str]:
    base, ours, theirs = (stored_version(file, f":{stage}:") for stage in (1, 2, 3))
    if ours is None or theirs is None:
        message = f"git does not have two versions of {file}: expected a file in conflict"
        raise UsageError(f"{message}; git status lists them")
    _refuse_elsewhere(file, file.parent)
    return [base or "", ours, theirs]


def _refuse_elsewhere(file: Path, folder: Path) -> None:
    found = no_file_at(file, within=folder)
    if found is not None:
        raise InputError(file, f"expected a file in {folder}, found {found}")


class Conflict(Struct, frozen=True):
    """A test that both sides changed, or removed (None).

    ``taken`` is the side that was kept; ``settled``: the user had chosen it.
    """

    test: str
    ours: TestBaseline | None
    theirs: TestBaseline | None
    taken: Take
    settled: bool = False


class MergeResult(Struct, frozen=True):
    """The file, and its conflicts."""

    file: BaselineFile
    conflicts: tuple[Conflict, ...] = ()

    @property
    def unsettled(self) -> tuple[Conflict, ...]:
        return tuple(conflict for conflict in self.conflicts if not conflict.settled)


def merge_files(
    base: BaselineFile | None, ours: BaselineFile, theirs: BaselineFile, *, take: Take | None = None
) -> MergeResult:
    """Merge two versions of a file with their common ``base``.

    The same whichever side is called ours, but for tests in conflict: without ``take`` those keep
    ours. Both sides are of one hardware.
    """
    before: Mapping[str, TestBaseline] = base.tests if base else {}
    tests: dict[str, TestBaseline] = {}
    conflicts = []
    for name in sorted({*before, *ours.tests, *theirs.tests}):
        then, mine, other = before.get(name), ours.tests.get(name), theirs.tests.get(name)
        if other in (mine, then):
            merged = mine
        elif mine == then:
            merged = other
        else:
            merged = _reconcile(then, mine, other)
            if merged is None:
                taken = take or Take.OURS
                conflicts.append(Conflict(name, mine, other, taken, settled=take is not None))
                merged = mine if taken is Take.OURS else other
        if merged is not None:
            tests[name] = merged
    file = replace(ours, tests=tests, test_file=ours.test_file or theirs.test_file)
    return MergeResult(file, tuple(conflicts))


def _reconcile(
    base: TestBaseline | None, ours: TestBaseline | None, theirs: TestBaseline | None
) -> TestBaseline | None:
    """Merge two changes of one test; None if they contradict each other."""
    if ours is None or theirs is None:
        return None
    if (ours.metrics, ours.configuration) == (theirs.metrics, theirs.configuration):
        # The same numbers, say of one record, accepted twice.
        return max(ours, theirs, key=lambda test: (*_moment(test.accepted), test.ops or ""))
    if base is None:
        return None
    added = _appended(base, ours), _appended(base, theirs)
    if added == (True, True):
        metrics = {
            name: replace(
                stored,
                sessions=_union(stored, ours.metrics[name].sessions, theirs.metrics[name].sessions),
            )
            for name, stored in base.metrics.items()
        }
        return replace(base, metrics=metrics, ops=max(ours.ops or "", theirs.ops or "") or None)
    # Sessions of the numbers that the other side has replaced tell nothing of the new ones.
    if added == (False, True) and ours.accepted != base.accepted:
        return ours
    if added == (True, False) and theirs.accepted != base.accepted:
        return theirs
    return None


def _appended(base: TestBaseline, now: TestBaseline) -> bool:
    """Return whether nothing but sessions was added to a test."""
    same = (base.accepted, base.configuration) == (now.accepted, now.configuration)
    if not same or base.metrics.keys() != now.metrics.keys():
        return False
    pairs = [(stored, now.metrics[name]) for name, stored in base.metrics.items()]
    return all(
        (stored.metric, stored.since) == (later.metric, later.since)
        and later.sessions[: len(stored.sessions)] == stored.sessions
        for stored, later in pairs
    )


def _union(
    base: MetricBaseline, ours: tuple[Session, ...], theirs: tuple[Session, ...]
) -> tuple[Session, ...]:
    """Join the sessions of both sides, at most ``MAX_SESSIONS``.

    What both added first is the same, say by a cherry-pick. Nothing shows which of the others is
    newer; sorted, both directions give the same file.
    """
    known = len(base.sessions)
    first, second = sorted([ours[known:], theirs[known:]])
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second)))  # noqa: B905 (the common part)
    added = (*first, *second[shared:])
    return (*base.sessions, *added[: max(MAX_SESSIONS - len(base.current), 0)])


def _moment(accepted: Acceptance) -> tuple[str, ...]:
    """Order accepts by time, then in a way that both sides share."""
    rest = (accepted.commit, accepted.reason, accepted.ttnn, sorted(accepted.environment.items()))
    return accepted.at, repr(rest)


def _conflict_lines(path: str, merged: MergeResult) -> Iterator[str]:
    for conflict in merged.conflicts:
        head = "resolved" if conflict.settled else "conflict"
        how = "was changed on one side and removed on the other"
        if conflict.ours and conflict.theirs:
            how = "was accepted on both sides"
        yield f"{head} in {path}: {conflict.test} {how}; {conflict.taken.value} is in it"
        ours, theirs = (s.metrics if s else {} for s in (conflict.ours, conflict.theirs))
        for name in sorted({*ours, *theirs}):
            first, second = map(_value, (ours.get(name), theirs.get(name)))
            yield f"  {name}: ours {first}, theirs {second}"
        yield f"  ours: {_provenance(conflict.ours)}"
        yield f"  theirs: {_provenance(conflict.theirs)}"
    if merged.unsettled:
        add = command_line("git", "add", place_of(path))
        take = ("--path", place_of(path), "--take", "theirs")
        theirs_command = command_line("ttnn-perf", "baseline", "merge", *take)
        yield f"  take theirs with: {theirs_command} && {add}"
        yield f"  keep ours with: {add}"


def _value(stored: MetricBaseline | None) -> str:
    if stored is None:
        return "none"
    sessions = counted(len(stored.current), "session")
    return f"{format_value(stored.metric, centre_of(stored))} ({sessions})"


def _provenance(side: TestBaseline | None) -> str:
    if side is None:
        return "removed"
    accepted = side.accepted
    commit = f" at {accepted.commit}" if accepted.commit else ""
    return f"accepted {accepted.at}{commit}, {accepted.reason or 'no reason given'}"


def add_install(parser: argparse.ArgumentParser) -> None:
    add_baselines(parser)


#: Takes the folder that git works in out of the path: a module of the project's is none of ours.
_MAIN: Final = (
    "import sys; sys.path = [folder for folder in sys.path if folder]; "
    "from pytest_ttnn_perf.cli.main import main; sys.exit(main())"
)


def run_install(options: argparse.Namespace) -> Result:
    """Make git merge baselines with ttnn-perf.

    It writes the settings of this clone and lines in .gitattributes. Running it again changes
    nothing.
    """
    baselines = options.baselines or project_settings().baselines
    root = top_level(baselines.absolute())
    if root is None:
        raise UsageError(
            f"{baselines} is in no git repository, or git is not installed: git init makes one"
        )
    attributes = root / ".gitattributes"
    _refuse_elsewhere(attributes, root)
    before = read_text(attributes) if attributes.exists() else ""
    folder = os.path.relpath(baselines.absolute(), root)
    wanted = [
        f"{folder}/**/*.json merge=ttnn-perf",
        # An op table belongs to one run: git asks for a side, and mixes none.
        f"{folder}/**/*.ops/*.csv -merge",
    ]
    # The driver as this Python runs it, whatever is on the PATH then.
    command = shlex.join([sys.executable, "-c", _MAIN]).replace("%", "%%")
    settings = {
        "merge.ttnn-perf.name": "baselines of ttnn-perf, by test and session",
        "merge.ttnn-perf.driver": f"{command} baseline merge %O %A %B --path %P",
    }
    for name, value in settings.items():
        if Git(root).ask("config", "--local", name, value) is None:
            raise WriteError(root / ".git" / "config", OSError("git config refused"))
    new_lines = [line for line in wanted if line not in before.splitlines()]
    if new_lines:
        ended = before if not before or before.endswith("\n") else f"{before}\n"
        write_text(attributes, ended + "".join(f"{line}\n" for line in new_lines))
    shown = [f"git config: {name} = {value}" for name, value in settings.items()]
    shown += [f".gitattributes: {line}" for line in wanted]
    return plain([*shown, "commit .gitattributes; git config applies to this clone only"])
