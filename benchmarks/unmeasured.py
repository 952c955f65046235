"""What ``--ttnn-perf`` costs where most tests are not measured: instructions, counted.

Bar: 10,000 tests that are not measured take at most 2 × what they take without the option, all
processes together. Counted for few and for some more: what each costs follows, and so do 10,000,
which would take an hour to count. Needs valgrind, and the package installed.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path

from benchmarks.startup import instructions, run_pytest

BAR = 2.0
FEW, MORE, MANY = 100, 400, 10_000


def main() -> int:
    if shutil.which("valgrind") is None:
        print("unmeasured: NOT MEASURED: valgrind is not installed", file=sys.stderr)
        return 1
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = ""
    others = [name for name in entry_points(group="pytest11").names if name != "ttnn_perf"]
    blocked = [f"-pno:{name}" for name in others]
    plain_each, plain = _counted([*blocked, "-pno:ttnn_perf"])
    gated_each, gated = _counted([*blocked, "--ttnn-perf"])
    ratio = gated / plain
    print(f"each: {gated_each / 1e6:.2f} M instructions, plain pytest {plain_each / 1e6:.2f} M")
    print(f"{MANY:,} unmeasured tests: ratio {ratio:.2f} (bar: {BAR})")
    return 0 if ratio <= BAR else 1


def _counted(arguments: list[str]) -> tuple[float, float]:
    """Return the instructions that each test costs, and those of many."""
    counts = []
    for number in (FEW, MORE):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for file in range(10):
                tests = (f"def test_{test}(): pass\n" for test in range(number // 10))
                (folder / f"test_{file}.py").write_text("".join(tests))
            run_pytest(folder, [], arguments)  # once uncounted, to write the bytecode
            counts.append(instructions(folder, arguments))
    each = (counts[1] - counts[0]) / (MORE - FEW)
    return each, counts[0] + each * (MANY - FEW)


if __name__ == "__main__":
    sys.exit(main())
