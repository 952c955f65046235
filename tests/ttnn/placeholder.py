"""Installs a compiler that compiles nothing, so that TTNN's mock devices open and ops run on them.

Run it with the Python of an environment that has ttnn and nothing else to lose: it adds files to
the installed package.

TTNN comes with built firmware, found by a key that the compiler's version is part of: a compiler
that names another version has to build the firmware first. Kernels are always compiled. A mock
device never runs them, so any program that the loader takes will do.
"""

from __future__ import annotations

import importlib.util
import re
import struct
import sys
from pathlib import Path
from typing import Final

#: Where TTNN looks for its compiler, in its own package.
_COMPILER: Final = "runtime/sfpi/compiler/bin/riscv-tt-elf-g++"
#: What every file that GCC has built says about it.
_BUILT_BY: Final = re.compile(rb"GCC: (\([^)\0]+\) [0-9.]+)\0")
_SCRIPT: Final = """\
#!/bin/sh
# Stands in for TTNN's compiler: names the version of the real one, and writes empty programs.
if [ "$1" = --version ]; then
  echo 'riscv-tt-elf-g++ {version}'
  exit 0
fi
while [ $# -gt 0 ]; do
  case "$1" in
    -o) out=$2; cp "${{0%/*}}/empty.elf" "$out" ;;
    -MF) echo "$out: $0" >"$2" ;;  # a kernel is kept only with what it depends on
  esac
  shift
done
"""


def install(package: Path) -> None:
    """Put the placeholder into the folder of the package ttnn."""
    compiler = package / _COMPILER
    compiler.parent.mkdir(parents=True, exist_ok=True)
    compiler.with_name("empty.elf").write_bytes(empty_program())
    compiler.write_text(_SCRIPT.format(version=_version(package)), encoding="utf-8")
    compiler.chmod(0o755)


def empty_program() -> bytes:
    """Return a program that returns at once, as an ELF file for RISC-V.

    The loader wants its text first, a table of symbols, and relocations, of which there are none.
    """
    start, header, segment, section, symbol = 0x10000, 52, 32, 40, 16
    text = struct.pack("<4I", *[0x00008067] * 4)  # ret
    names = b"\0.text\0.rela.text\0.symtab\0.strtab\0".ljust(40, b"\0")
    text_at = header + segment
    symbols_at = text_at + len(text)
    names_at = symbols_at + symbol
    sections_at = names_at + len(names)
    sections = (
        (0,) * 10,
        (names.index(b".text"), 1, 6, start, text_at, len(text), 0, 0, 4, 0),
        (names.index(b".rela"), 4, 0, 0, text_at, 0, 3, 1, 4, 12),
        (names.index(b".symtab"), 2, 0, 0, symbols_at, symbol, 4, 1, 4, symbol),
        (names.index(b".strtab"), 3, 0, 0, names_at, len(names), 0, 0, 1, 0),
    )
    kind = (2, 243, 1, start, header, sections_at, 0)  # executable, RISC-V
    sizes = (header, segment, 1, section, len(sections), 4)
    return b"".join([
        b"\x7fELF\1\1\1".ljust(16, b"\0") + struct.pack("<HHIIIIIHHHHHH", *kind, *sizes),
        struct.pack("<8I", 1, text_at, start, start, len(text), len(text), 5, 4),
        text + bytes(symbol) + names,
        *(struct.pack("<10I", *each) for each in sections),
    ])  # fmt: skip


def _version(package: Path) -> str:
    """Return the version of the compiler that the package's firmware was built with."""
    for firmware in sorted(package.glob("tt_metal/pre-compiled/*/brisc/brisc.elf")):
        found = _BUILT_BY.search(firmware.read_bytes())
        if found:
            return found[1].decode()
    sys.exit(f"no firmware in {package} tells which compiler built it")


if __name__ == "__main__":
    spec = importlib.util.find_spec("ttnn")
    if spec is None or spec.origin is None:
        sys.exit("ttnn is not installed here")
    install(Path(spec.origin).parent)
