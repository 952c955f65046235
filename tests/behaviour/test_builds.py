"""``ab`` and ``bisect`` build each version, and follow a slowdown into submodules."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.harness.git import git_in
from tests.harness.versions import Versions

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

#: The time that the shared object of a version says its model takes, and another test.
TESTS = """
    import ctypes
    from pathlib import Path

    import pytest

    @pytest.mark.ttnn_perf
    @pytest.mark.parametrize("name", ["a", "b"])
    def test_model(ttnn_perf, name):
        kernel = ctypes.CDLL(str(Path(__file__).parent / "build" / "kernel.so"))
        kernel.time_us.restype = ctypes.c_double
        time_us = kernel.time_us() * (1 if name == "a" else 3)
        ttnn_perf.record("latency", [time_us * f for f in (0.998, 1.0, 1.002)], unit="us")
"""
KERNEL = "double time_us(void) {{ return {time_us}; }}\n"
BUILD = """
echo "$PWD" >> "$MACHINE/builds"
! grep -q skip core/kernels/kernel.c || exit 125
mkdir -p build && cc -shared -fPIC -o build/kernel.so core/kernels/kernel.c
"""
NAMED = "test_kernel.py::test_model[a]"


@dataclass
class Nest:
    """A project whose submodule has one itself, in which the kernels are."""

    versions: Versions

    def __post_init__(self) -> None:
        path = self.versions.path
        self.kernels = self._new("kernels")
        (self.kernels / "kernel.c").write_text(KERNEL.format(time_us=100.0))
        self._commit(self.kernels, "Add the kernel")
        core = self._new("core")
        self._add(core, path / "kernels")
        self._commit(core, "Add kernels")
        self.versions.write("test_kernel.py", "\n".join(x[4:] for x in TESTS.splitlines()))
        (self.versions.root / ".gitignore").write_text("__pycache__/\nbuild/\n.ttnn_perf/\n")
        self._add(self.versions.root, core)
        # From here on all is done where the submodules are checked out.
        self.core = self.versions.root / "core"
        git_in(self.versions.root, "-c", "protocol.file.allow=always", "submodule", "update",
               "--init", "--recursive", "--quiet")  # fmt: skip
        self.kernels = self.core / "kernels"
        self.commit("First")

    def _new(self, name: str) -> Path:
        folder = self.versions.path / name
        folder.mkdir()
        git_in(folder, "init", "--quiet", "--initial-branch=work")
        return folder

    def _add(self, folder: Path, other: Path) -> None:
        add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other))
        git_in(folder, *add)

    def _commit(self, folder: Path, subject: str) -> None:
        git_in(folder, "add", "--all")
        git_in(folder, "commit", "--quiet", "--allow-empty", "-m", subject)

    def commit(self, subject: str) -> None:
        for folder in (self.core, self.versions.root):
            self._commit(folder, f"{subject} in {folder.name}")

    def kernel(self, time_us: float | str, subject: str) -> str:
        (self.kernels / "kernel.c").write_text(KERNEL.format(time_us=time_us))
        self._commit(self.kernels, subject)
        return git_in(self.kernels, "rev-parse", "HEAD").strip()

    @property
    def builds(self) -> list[str]:
        return (self.versions.path / "machine" / "builds").read_text().split()


def test_a_slow_kernel_two_submodules_deep_is_found_by_building_each_commit(
    tmp_path: Path,
) -> None:
    nest = Nest(Versions(tmp_path))
    nest.kernel(100.0, "Rename")
    nest.kernel("no C", "Break the build")
    nest.kernel(100.0, "Repair it")
    slow = nest.kernel(120.0, "Sum in float32")
    nest.kernel("'skip'", "Work in progress")
    nest.kernel(120.0, "Rename again")
    nest.kernel(120.000, "Rename back")
    nest.commit("Uplift")
    (nest.versions.root / "build.sh").write_text("exit 1\n")  # no commit's own words are run
    options = ("--rounds=3", "--build", BUILD, "--format=json", "--order-seed=1")

    ran = nest.versions.command("bisect", "HEAD~1", "HEAD", NAMED, *options, python_path=())

    assert ran.code == 0, ran.errors
    outer = json.loads(ran.text)
    core = outer["inside"]
    kernels = core["inside"]
    assert [each["repository"] for each in (outer, core, kernels)] == [
        ".", "core", "core/kernels"
    ]  # fmt: skip
    found = kernels["commit"]
    assert (kernels["outcome"], found["commit"], found["files"]) == ("found", slow, ["kernel.c"])
    assert found["subject"] == "Sum in float32"
    assert "@" in found["author"]
    assert {effect["test"] for effect in kernels["effects"]} == {NAMED}
    assert "asks to skip it (exit code 125); log: " in ran.errors
    assert len(set(nest.builds)) == len(nest.builds), "each is built once"

    count = len(nest.builds)
    ran = nest.versions.command("bisect", "HEAD~1", "HEAD", NAMED, *options, python_path=())
    assert json.loads(ran.text)["inside"]["inside"]["commit"]["commit"] == slow
    assert len(nest.builds) - count == 1, "only what was skipped is tried again"
    assert nest.versions.git("status", "--porcelain").split() == ["??", "build.sh"]


def test_ab_builds_the_commit_and_the_working_tree(tmp_path: Path) -> None:
    nest = Nest(Versions(tmp_path))
    (nest.kernels / "kernel.c").write_text(KERNEL.format(time_us=120.0))
    (nest.versions.root / "ttnn_perf.toml").write_text(f"build = '''{BUILD}'''\nbuilds_gb = 1\n")

    ran = nest.versions.command("ab", "HEAD", NAMED, "--rounds=3", python_path=())

    assert ran.code == 1, ran.errors
    assert "20.0 % slower" in ran.text
    assert nest.builds[-1] == str(nest.versions.root)
    kept = nest.versions.root / ".ttnn_perf" / "builds"
    assert nest.builds[0].startswith(str(kept))

    (nest.kernels / "kernel.c").write_text("no C\n")
    ran = nest.versions.command("ab", "HEAD", NAMED, "--rounds=3", python_path=())
    assert ran.code == 2
    assert "ttnn-perf: the working tree: its build failed (exit code 1); log: " in ran.errors
