"""``ttnn-perf baseline merge`` and ``install-merge-driver``: two branches, one baseline file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import UsageError
from pytest_ttnn_perf.cli.arguments import add_baselines, add_format, project_settings
from pytest_ttnn_perf.model.merge import Take
from pytest_ttnn_perf.workflow.changing import Changing

if TYPE_CHECKING:
    import argparse

    from pytest_ttnn_perf.model.result import Result


def declare(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the actions."""
    merge = actions.add_parser(
        "merge",
        usage="ttnn-perf baseline merge BASE OURS THEIRS [--path P] [--take SIDE], or "
        "ttnn-perf baseline merge --path P --take SIDE",
        help="merge a baseline file that two branches changed; exit 1 for conflicts",
        description="Merge three versions of a baseline file, by test and session, into OURS. "
        "Without them: those of a file that git has in conflict.",
    )
    merge.add_argument("files", metavar="BASE OURS THEIRS", type=Path, nargs="*", help="versions")
    merge.add_argument("--path", metavar="P", type=Path, help="the file's name in the repository")
    merge.add_argument(
        "--take",
        choices=[side.value for side in Take],
        help="whose baseline to take of a test that both sides accepted (default: report it)",
    )
    add_format(merge)
    merge.set_defaults(run=run_merge)
    install = actions.add_parser(
        "install-merge-driver",
        help="let git merge baselines with this command",
        description="Let git merge baselines with ttnn-perf: writes the settings of this clone and "
        "lines in .gitattributes. Doing it again changes nothing.",
    )
    install.add_argument("--dry-run", action="store_true", help="show it, and write nothing")
    add_baselines(install)
    add_format(install)
    install.set_defaults(run=run_install)


def run_merge(options: argparse.Namespace) -> Result:
    """Return what became of the merge."""
    from pytest_ttnn_perf.workflow.merging import Merging, merge_baselines

    files = options.files
    if len(files) not in {0, 3} or (not files and options.path is None):
        found = f"found {len(files)} files" + ("" if options.path else " and no --path")
        message = f"expected BASE OURS THEIRS, or --path alone for a file in conflict; {found}"
        raise UsageError(message)
    take = Take(options.take) if options.take else None
    versions = (files[0], files[1], files[2]) if files else None
    return merge_baselines(Merging(versions, options.path, take, options.format))


def run_install(options: argparse.Namespace) -> Result:
    """Return what git is told."""
    from pytest_ttnn_perf.workflow.merge_driver import install_merge_driver

    root = options.baselines or project_settings().baselines
    changing = Changing(options.dry_run, options.format, Path.cwd())
    return install_merge_driver(root, changing)
