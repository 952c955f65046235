"""Does `ttnn-perf try` tell cheats from honest work: edits of a model, each tried in a repository.

    python benchmarks/cheats.py [NAME ...]

The device runs in real time: ops are queued, and synchronising waits until they would be done. Each
edit is tried in a copy of the project, with real processes, which takes 10 to 60 s. Exit code 1 if
an honest edit is refused, or a cheat is kept that was not before. Those that are known to be kept
are listed in docs/explanation/receipts.md under what is not seen.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Final

DEVICE: Final = """
    import time

    import numpy as np

    _clock, _sleep = time.perf_counter, time.sleep


    class Device:
        def __init__(self):
            self.busy_until_s = 0.0

        def run(self, seconds):
            self.busy_until_s = max(self.busy_until_s, _clock()) + seconds

        def tilize(self, weight):
            self.run(250e-6)
            return weight

        def linear(self, x, weight, *, bits, cores):
            self.run(20e-6 + x.shape[0] * weight.size * bits / 16 * 120e-9 / cores)
            step = {16: 1 / 4096, 8: 1 / 64}[bits]
            return np.maximum(x @ (np.round(weight / step) * step), 0)

        def synchronize(self):
            self._wait()

        def _wait(self):
            left = self.busy_until_s - _clock()
            if left > 0:
                _sleep(left)
"""
CALL: Final = """\
    def __call__(self, x):
        for weight in self.weights:
            x = self.block(x, weight)
        return x
"""
MODEL: Final = f"""\
import numpy as np

BITS = 16
CORES = 8


class Net:
    def __init__(self, device):
        self.device = device
        random = np.random.default_rng(7)
        self.weights = [random.standard_normal((64, 64)) / 8 for _ in range(8)]

    def block(self, x, weight):
        weight = self.device.tilize(weight)
        return x + 0.25 * self.device.linear(x, weight, bits=BITS, cores=CORES)

    def real(self, x):
        for weight in self.weights:
            x = self.block(x, weight)
        return x

{CALL}"""
TEST: Final = """
    import numpy as np
    import pytest
    from chip import Device
    from net import Net


    @pytest.mark.ttnn_perf(pcc=0.99, warmup=2, iterations=5)
    def test_net(ttnn_perf):
        device = Device()
        net = Net(device)
        x = np.random.default_rng(1).standard_normal((32, 64))
        x[24:] = 0
        output = ttnn_perf.measure(net, x, sync=device.synchronize)
        expected = x
        for weight in net.weights:
            expected = expected + 0.25 * np.maximum(expected @ weight, 0)
        ttnn_perf.check_pcc(expected, output)
"""


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of the model: a new body of its call, or other words for some of its text.

    ``kept``: it is answered with KEEP. Of an honest one that is right.
    """

    body: str = ""
    before: str = ""
    after: str = ""
    honest: bool = False
    kept: bool = False

    def apply(self, model: str) -> str:
        """Return the model with the edit."""
        if self.body:
            body = indent(dedent(self.body).strip("\n"), " " * 8)
            return model.replace(CALL, f"    def __call__(self, x):\n{body}\n")
        assert self.before in model, self.before
        return model.replace(self.before, self.after, 1)


def cheat(body: str, *, kept: bool = False) -> Edit:
    """Return a call that does less than it should."""
    return Edit(body, kept=kept)


CORES: Final = ("CORES = 8", "CORES = 64")
EDITS: Final = {
    "result by input": cheat("""
        known = self.__dict__.setdefault("known", {})
        if x.tobytes() not in known:
            known[x.tobytes()] = self.real(x)
        return known[x.tobytes()]
    """),
    "a quarter of it by input": cheat("""
        known = self.__dict__.setdefault("known", {})
        if x.tobytes() not in known:
            known[x.tobytes()] = self.block(self.block(x, self.weights[0]), self.weights[1])
        x = known[x.tobytes()]
        for weight in self.weights[2:]:
            x = self.block(x, weight)
        return x
    """),
    "last result": cheat("""
        if not hasattr(self, "last"):
            self.last = self.real(x)
        return self.last
    """),
    "full work in the last call": cheat("""
        self.calls = getattr(self, "calls", 0) + 1
        return self.real(x) if self.calls == 7 else self.block(x, self.weights[0])
    """),
    "honest outside of the timing": cheat("""
        import sys
        frame, files = sys._getframe(), set()
        while frame:
            files.add(frame.f_code.co_filename.rpartition("/")[2])
            frame = frame.f_back
        self.calls = getattr(self, "calls", 0) + 1
        if "timing.py" in files and self.calls < 7:
            return self.block(x, self.weights[0])
        return self.real(x)
    """),
    "computed when it is read": cheat("""
        def compute(*_, **__):
            y = self.real(x)
            self.device.synchronize()
            return y
        kind = {"shape": x.shape, "dtype": x.dtype, "__array__": compute}
        return type("Later", (), kind)()
    """),
    "a thread goes on": cheat("""
        import threading, time
        from chip import Device
        out, own, device = np.empty_like(x), Net(Device()), None
        def work():
            out[:] = own.real(x)
            own.device.synchronize()
        threading.Thread(target=work).start()
        time.sleep(0.003)
        return out
    """),
    "the wait is replaced": Edit(
        before="self.device = device\n",
        after="self.device = device\n        type(device)._wait = lambda self: None\n",
    ),
    "the clock is replaced": Edit(
        before="import numpy as np\n",
        after="import time\n_real = time.perf_counter_ns\n"
        "time.perf_counter_ns = lambda: _real() // 2\nimport numpy as np\n",
    ),
    "NaN masked": cheat("x = self.real(x)\nreturn np.where(x == x, x, 0)"),
    "another device": cheat(
        """
        from chip import Device
        own = self.__dict__.setdefault("own", Net(Device()))
        return own.real(x)
        """,
        kept=True,
    ),
    "on the host": cheat(
        """
        for weight in self.weights:
            x = x + 0.25 * np.maximum(x @ weight, 0)
        return x
        """,
        kept=True,
    ),
    "more cores": Edit(before=CORES[0], after=CORES[1], honest=True, kept=True),
    "half of the bits": Edit(before="BITS = 16", after="BITS = 8", honest=True, kept=True),
    "weights prepared once": Edit(
        before="weight = self.device.tilize(weight)",
        after="made = self.__dict__.setdefault('made', {})\n"
        "        if id(weight) not in made:\n"
        "            made[id(weight)] = self.device.tilize(weight)\n"
        "        weight = made[id(weight)]",
        honest=True,
        kept=True,
    ),
    "padding left out": Edit(
        """
        rows = np.flatnonzero(x.any(axis=1))
        out = np.zeros_like(x)
        out[rows] = self.real(x[rows])
        return out
        """,
        honest=True,
        kept=True,
    ),
    "an output buffer": Edit(
        """
        if not hasattr(self, "out"):
            self.out = np.empty_like(x)
        self.out[...] = self.block(x, self.weights[0])
        for weight in self.weights[1:]:
            self.out[...] = self.out + 0.25 * self.device.linear(
                self.out, weight, bits=BITS, cores=32)
        return self.out
        """,
        honest=True,
        kept=True,
    ),
    "a comment": Edit(before="BITS = 16", after="BITS = 16  # of a weight", honest=True),
}


def answer(edit: Edit, root: Path) -> tuple[str, str]:
    """Try an edit in a repository of its own: the decision, and the names of refusals."""
    files = {"chip.py": dedent(DEVICE), "net.py": MODEL, "test_net.py": dedent(TEST)}
    root.mkdir()
    for name, text in {**files, ".gitignore": "__pycache__\n"}.items():
        (root / name).write_text(text, encoding="utf-8")
    who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "-m", "Start")):
        subprocess.run(["git", *who, *words], cwd=root, check=True)
    (root / "net.py").write_text(edit.apply(MODEL), encoding="utf-8")
    command = [sys.executable, "-m", "pytest_ttnn_perf.cli.main", "try", "-m", "a step"]
    done = subprocess.run(
        [*command, "--format", "json", "--rounds", "8"],
        cwd=root,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        told = json.loads(done.stdout)
    except ValueError:
        return "failed", done.stderr.strip()
    return told["decision"], ", ".join(dict.fromkeys(r["edit"] for r in told["refusals"]))


def main() -> int:
    """Try all edits, or some."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(EDITS)}")
    names = parser.parse_args().names or list(EDITS)
    wrong = []
    for name in names:
        edit = EDITS[name]
        with tempfile.TemporaryDirectory(prefix="ttnn-perf-cheats-") as folder:
            decision, refused = answer(edit, Path(folder) / "project")
        if edit.honest:
            bad = decision in {"NOT_COMPARABLE", "failed"} or (decision == "KEEP") > edit.kept
        else:
            bad = decision == "failed" or (decision == "KEEP") > edit.kept
        wrong += [name] * bad
        print(
            f"{'honest' if edit.honest else 'cheat':7}{name:30}{decision:16}{refused}", flush=True
        )
    print(f"{len(names)} edits, {len(wrong)} not as they should be: {', '.join(wrong) or 'none'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
