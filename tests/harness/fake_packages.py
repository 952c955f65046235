"""Packages that are installed nowhere: written into a folder, and found while a test runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: What public wheels say to the profiler's variable, whatever it holds.
WITHOUT_TRACY = """\
    if "TT_METAL_DEVICE_PROFILER" in os.environ:
        raise RuntimeError(
            "TT_FATAL @ /project/tt_metal/llrt/rtoptions.cpp:1048: false\\ninfo:\\n"
            "TT_METAL_DEVICE_PROFILER requires a Tracy-enabled build of tt-metal.\\n"
            "backtrace:\\n --- tt::llrt::RunTimeOptions::RunTimeOptions()\\n"
        )
"""
TTNN = """\
import enum, os, sys
print("from python")
os.write(1, b"2026-11-16 08:05:27.407 | info | Device | from C++\\n")
class ClusterType(enum.Enum):
    N150 = 1
    T3K = 3
class cluster:
    def get_cluster_type():
        return ClusterType.{cluster}
def get_arch_name():
{tracy}
    return "{arch}"
"""


def write_package(folder: Path, name: str, version: str | None, source: str = "") -> Path:
    """Write a package, with what pip leaves beside it where it has a version."""
    package = folder / name
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(source)
    if version is not None:
        (folder / f"{name}-{version}.dist-info").mkdir(exist_ok=True)
        metadata = folder / f"{name}-{version}.dist-info" / "METADATA"
        metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return package


def write_ttnn(
    folder: Path, *, arch: str = "invalid", cluster: str = "N150", tracy: bool = False
) -> Path:
    """Write a ttnn that answers what a preflight asks, and logs as the real one does."""
    source = TTNN.format(arch=arch, cluster=cluster, tracy="" if tracy else WITHOUT_TRACY)
    return write_package(folder, "ttnn", "0.81.1", source)
