"""Two checkouts over the same captures: every verdict, sum, finding and comparison that differs.

``python tests/contract/differences.py OLD_TREE NEW_TREE [--corpus DIR] [--cache DIR]``. Needs
nothing of this project: each tree runs in its own ``.venv``, or in this Python. A tree is run once
per capture, at most two at a time. With ``--cache``, what the old tree says is kept by its commit.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: What is asked of every file; and of pairs that somebody made by changing one thing.
OF_ONE = ("check", "analyze bottlenecks", "show", "show --ops", "plan")
PAIRS = (
    ("ops_perf/llama70b_functional.csv", "ops_perf/llama70b_final.csv"),
    ("ops_perf/llama70b_mc_baseline.csv", "ops_perf/llama70b_mc_final.csv"),
    ("ops_perf/llama70b_pre_down_tune.csv", "ops_perf/llama70b_final.csv"),
    ("ops_perf/llama70b_pre_grid_tune.csv", "ops_perf/llama70b_pre_down_tune.csv"),
    ("ops_perf/gemma_31b_fused_f4.csv", "ops_perf/gemma_31b_fused_final.csv"),
    ("ops_perf/gemma_sliding_decode_replicated_v1.csv", "ops_perf/gemma_sliding_decode_final.csv"),
    ("ops_perf/qwen27_incumbent_full_attention_ops.csv",
     "ops_perf/qwen27_winner_full_attention_ops.csv"),
    ("ops_perf/segformer_encoder_2024_10.csv", "ops_perf/segformer_encoder_2025_02.csv"),
    ("ops_perf/north_mini_dense_decode_b1_trace.csv",
     "ops_perf/north_mini_dense_decode_b32_trace.csv"),
    ("ops_perf/oft_integral_v1.csv", "ops_perf/oft_2025_09_v2.csv"),
    ("report_db/mlp_bf16/db.sqlite", "report_db/mlp_bfp8/db.sqlite"),
    ("report_db/cnn_2_cores/db.sqlite", "report_db/cnn_8_cores/db.sqlite"),
    ("ttlang/perf_summary_docs_cores.txt", "ttlang/v1_1_1_perf_summary.txt"),
)  # fmt: skip
#: A thing in a list is the same thing as the one with the same names, wherever it stands.
NAMES = ("code", "region", "test", "metric", "key", "analysis", "section", "label", "op", "part",
         "kind", "name", "subject")  # fmt: skip
RELATIVE = 1e-9
#: Reads commands, prints what each of them does; all in one process.
RUN = """
import contextlib, importlib, io, json, sys
module, _, name = sys.argv[1].partition(":")
main = getattr(importlib.import_module(module), name)
done = {}
for words in json.load(sys.stdin):
    out, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = main(words + ["--format", "json"])
        except SystemExit as end:
            code = end.code
        except BaseException as error:
            code, _ = repr(error), None
    texts = []
    for stream in (out, errors):
        stream.seek(0)
        texts.append(stream.read())
    try:
        said = json.loads(texts[0])
    except ValueError:
        said = texts[0]
    done[" ".join(words)] = {"code": code, "said": said, "errors": texts[1]}
print(json.dumps(done))
"""


class Tree:
    """A checkout, as its command."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        text = (self.path / "pyproject.toml").read_text(encoding="utf-8")
        found = re.search(r'^ttnn-perf = "(.*)"$', text, re.MULTILINE)
        if found is None:
            sys.exit(f"{path}: its pyproject.toml names no command ttnn-perf")
        self.main = found[1]
        own = self.path / ".venv" / "bin" / "python"
        self.python = str(own) if own.exists() else sys.executable

    def commit(self) -> str | None:
        """Return the commit, if all files are those of it."""
        git = ["git", "-C", str(self.path)]
        status = subprocess.run(
            [*git, "status", "--porcelain"], capture_output=True, text=True, check=False
        )
        if status.returncode or status.stdout:
            return None
        return subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()

    def run(self, commands: list[list[str]], folder: Path) -> dict[str, Any]:
        """Run commands in a folder, one after another in one process."""
        environment = {**os.environ, "PYTHONPATH": str(self.path), "COLUMNS": "80"}
        done = subprocess.run(
            [self.python, "-c", RUN, self.main], input=json.dumps(commands), cwd=folder, text=True,
            env=environment, stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def outputs_of(tree: Tree, corpus: Path) -> dict[str, Any]:
    """Return what a tree says of the whole corpus, by command."""
    files = sorted(p.relative_to(corpus).as_posix() for p in corpus.rglob("*") if p.is_file())
    jobs = [
        [[*words.split(), file] for words in OF_ONE] for file in files if not file.endswith(".md")
    ]
    jobs += [
        [["compare", *pair]] for pair in PAIRS if all((corpus / file).exists() for file in pair)
    ]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        parts = [pool.submit(tree.run, job, corpus) for job in jobs]
        parts.append(pool.submit(tree.run, write_records(Path(folder)), Path(folder)))
        return {words: said for part in parts for words, said in part.result().items()}


def write_records(folder: Path) -> list[list[str]]:
    """Write records of a few nights and of a change; return the commands that judge them."""
    dice = random.Random(15)
    hardware = {"arch": "wormhole_b0", "board": "n150", "mesh": "1x1"}
    middles = {f"test_{n}": 10 ** dice.uniform(-1, 3) for n in range(40)}
    changes = {test: dice.choice((1, 1, 1.005, 1.02, 1.06, 1.3, 0.9)) for test in middles}

    def write(run: str, *, changed: bool) -> None:
        tests = {}
        for test, middle in middles.items():
            now = middle * dice.gauss(1, 0.004) * (changes[test] if changed else 1)
            times = {"unit": "ms", "samples": [now * dice.gauss(1, 0.003) for _ in range(10)]}
            rate = {"unit": "tok/s", "kind": "throughput", "samples": [1000 / now]}
            reached = dice.uniform(0.97 if changed else 0.99, 1)
            pcc = {"unit": "", "kind": "accuracy", "samples": [reached], "at_least": 0.985}
            metrics = {"latency": times, "rate": rate, "pcc": pcc}
            tests[f"test_model.py::{test}"] = {"metrics": metrics}
        document = {"format": 1, "id": run, "hardware": hardware, "tests": tests}
        (folder / f"{run}.json").write_text(json.dumps(document), encoding="utf-8")

    nights = [f"night-{n}" for n in range(4)]
    for night in nights:
        write(night, changed=False)
    write("same", changed=False)
    write("changed", changed=True)
    files = [f"{night}.json" for night in nights]
    accept = ["baseline", "accept", *files, "--update", "all", "--reason", "start"]
    return [accept, ["gate", "same.json"], ["gate", "changed.json"],
            ["compare", "same.json", "changed.json"]]  # fmt: skip


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of a document with its path; things in lists go by their names."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from leaves(part, f"{path}.{key}")
    elif isinstance(value, list) and value:
        seen: Counter[str] = Counter()
        for part in value:
            named = isinstance(part, dict) and [str(part[n]) for n in NAMES if part.get(n)]
            name = " ".join(named) if named else ""
            seen[name] += 1
            yield from leaves(part, f"{path}[{name}{'#' * bool(name)}{seen[name]}]")
    else:
        yield path, value


def differ(old: Any, new: Any) -> bool:
    """Tell whether two values differ by more than rounding, or in their type."""
    numbers = all(isinstance(v, float | int) and not isinstance(v, bool) for v in (old, new))
    if numbers and type(old) is type(new):
        return not math.isclose(old, new, rel_tol=RELATIVE)
    return type(old) is not type(new) or bool(old != new)


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return command, path, old and new value of all that differs, sorted."""
    found = []
    for words in sorted({*old, *new}):
        before, after = (dict(leaves(said.get(words))) for said in (old, new))
        for path in sorted({*before, *after}):
            one, two = (side.get(path, "(none)") for side in (before, after))
            if differ(one, two):
                found.append((words, path, json.dumps(one), json.dumps(two)))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print the differences; 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    given = os.environ.get("TTNN_PERF_CORPUS")
    parser.add_argument("--corpus", type=Path, default=Path(given) if given else beside)
    parser.add_argument("--cache", type=Path, help="folder for what the old tree says")
    options = parser.parse_args(argv)
    corpus = options.corpus.resolve()
    old = Tree(options.old)
    commit = old.commit() if options.cache else None
    kept = options.cache / f"{commit}.json" if commit else None
    if kept is not None and kept.exists():
        before = json.loads(kept.read_text(encoding="utf-8"))
    else:
        before = outputs_of(old, corpus)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(before), encoding="utf-8")
    found = differences(before, outputs_of(Tree(options.new), corpus))
    for words, path, one, two in found:
        print(f"{words}\n  {path.lstrip('.')}\n    {one}\n    {two}")
    by_command = Counter(words.split()[0] for words, *_ in found)
    asked = Counter(words.split()[0] for words in before)
    for command in sorted(asked):
        print(f"{command}: {asked[command]} outputs, {by_command[command]} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
