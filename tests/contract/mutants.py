"""Small faults put into the package one by one: which of them do the tests near them catch?

``python -m tests.contract.mutants`` puts those of ``mutants.json`` in again, and prints which were
caught then and are missed now. A fault is known by its function and the text of its line, so that
it is found again wherever that function lives now. ``--seed N`` makes a new list.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.harness.corpus import ROOT, corpus_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

PACKAGE = "pytest_ttnn_perf"
LIST = Path(__file__).with_name("mutants.json")


class Room(NamedTuple):
    """Where faults are put, and what should catch them: patterns of files."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


#: The only place that knows where code and tests are: edit it when they move. Of a room whose tests
#: have a fault's module in their names (a rule's code is enough), those are run, and the last two.
ROOMS = {
    "gate": Room(
        ("gate/judg*.py", "gate/machine_shift.py", "gate/ratios.py", "gate/confirm.py",
         "experiments/paired.py"),
        (
            "gate/test_*.py",
            "properties/test_gate_on_*.py", "properties/test_paired.py",
            "behaviour/test_outcomes.py", "behaviour/test_shifted.py",
        ),
    ),
    "store": Room(
        ("gate/store.py", "gate/store.py", "core/baseline.py"),
        (
            "core/test_baseline.py", "gate/test_accept.py",
            "faults/test_bad_baselines.py", "cli/test_baseline_merge_laws.py",
            "cli/test_baseline_[cmr]*.py", "behaviour/test_remedies.py",
            "options/test_update_*.py",
        ),
    ),
    "readers": Room(
        (
            "analysis/readers/ops_csv.py", "analysis/readers/report_db.py",
            "analysis/readers/device_csv.py", "analysis/readers/graph.py",
            "analysis/readers/ttlang*.py",
        ),
        (
            "analysis/readers/test_*.py", "properties/test_ops_csv.py",
            "behaviour/test_attach.py", "behaviour/test_static_captures.py",
        ),
    ),
    "rules": Room(
        ("analysis/checklist/*.py", "analysis/rules/*.py", "gate/rules_on_numbers.py"),
        (
            "gate/test_rules.py", "analysis/rules/test_*.py", "behaviour/test_findings.py",
            "behaviour/test_waivers.py",
        ),
    ),
}  # fmt: skip

_SWAPPED = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "in": "not in",
    "not in": "in", "is": "is not", "is not": "is", "and": "or", "or": "and",
    "+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*",
}  # fmt: skip
#: What is said is no behaviour: a fault there would only show in goldens.
_WORDS = re.compile(r"log|warn|print|message|sentence|remark|words|said|text|repr|str$|explain")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One line of a function, and what it is changed to; ``nth`` counts equal lines."""

    room: str
    module: str
    function: str
    kind: str
    before: str
    after: str
    nth: int = 0
    outcome: str = ""
    by: str = ""


def mutants_of(room: str, file: Path, tree: Path) -> Iterator[Mutant]:
    """Yield all faults that could be put into a module, one line each."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    module = file.relative_to(tree / PACKAGE).as_posix()
    for name, function in _functions(ast.parse(text)):
        if _WORDS.search(function.name) or ast.unparse(function.returns or function) == "str":
            continue
        first = function.body[0].lineno - 1
        for node in _behaviour(function):
            for kind, line, start, end, new in _changes(node, lines):
                whole = lines[line]
                if not whole.isascii():  # columns are counted in bytes
                    continue
                changed = whole[:start] + new + whole[end:]
                nth = [own.strip() for own in lines[first:line]].count(whole.strip())
                yield Mutant(room, module, name, kind, whole.strip(), changed.strip(), nth)


def _functions(
    node: ast.AST, within: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield within + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{within}{child.name}.")
        elif isinstance(child, ast.If | ast.Try):
            yield from _functions(child, within)


def _behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """Walk through a function without its types, defaults, docstrings and wording."""
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "args", "decorator_list"} and not isinstance(
            node, ast.Call
        ):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.Raise | ast.JoinedStr):
                continue
            if isinstance(child, ast.Call) and _WORDS.search(ast.unparse(child.func)):
                continue
            yield child
            yield from _behaviour(child)


def _changes(node: ast.AST, lines: list[str]) -> Iterator[tuple[str, int, int, int, str]]:
    """Yield kind, line, columns and new text of each change to one node; one line only."""
    if isinstance(node, ast.Compare):
        ends = zip([node.left, *node.comparators], node.comparators, strict=False)
        yield from (_swapped("comparison", left, right, lines) for left, right in ends)
    elif isinstance(node, ast.BoolOp):
        ends = zip(node.values, node.values[1:], strict=False)
        yield from (_swapped("boolean", left, right, lines) for left, right in ends)
    elif isinstance(node, ast.BinOp) and not _is_text(node):
        yield _swapped("arithmetic", node.left, node.right, lines)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        line, start = node.lineno - 1, node.col_offset
        gone = re.compile(r"not\s*").match(lines[line], start)
        yield "not", line, start, gone.end() if gone else start, ""
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        new = repr(not node.value if isinstance(node.value, bool) else node.value + 1)
        kind = "constant"
        yield kind, node.lineno - 1, node.col_offset, node.end_col_offset or 0, new
    elif isinstance(node, ast.Return) and not isinstance(node.value, ast.Constant | None):
        start, end = node.value.col_offset, node.value.end_col_offset or 0
        if node.lineno == node.end_lineno:
            yield "return", node.lineno - 1, start, end, "None"


def _swapped(
    kind: str, left: ast.expr, right: ast.expr, lines: list[str]
) -> tuple[str, int, int, int, str]:
    line, start, end = right.lineno - 1, left.end_col_offset or 0, right.col_offset
    found = None
    if left.end_lineno == right.lineno:
        words = "|".join(re.escape(word) for word in sorted(_SWAPPED, key=len, reverse=True))
        found = re.search(rf"(?:(?<=[\s)])|^)(?:{words})(?=[\s(]|$)", lines[line][start:end])
    if found is None:
        return kind, line, 0, 0, ""  # over several lines: changes nothing, and is left out
    return kind, line, start + found.start(), start + found.end(), _SWAPPED[found[0]]


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(part, ast.JoinedStr)
        or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        for part in ast.walk(node)
    )


def choose(tree: Path, seed: int, count: int) -> list[Mutant]:
    """Choose as many faults of each room and, as far as there are any, of each kind."""
    chosen: list[Mutant] = []
    dice = random.Random(seed)
    for room, (patterns, _) in ROOMS.items():
        files = sorted({f for pattern in patterns for f in (tree / PACKAGE).glob(pattern)})
        found = [m for file in files for m in mutants_of(room, file, tree) if m.before != m.after]
        dice.shuffle(found)
        kinds = sorted({mutant.kind for mutant in found})
        places: set[tuple[str, str]] = set()
        for number in range(count // len(ROOMS)):
            kind = kinds[number % len(kinds)]
            mutant = next(
                m for m in found if m.kind == kind and (m.module, m.function) not in places
            )
            places.add((mutant.module, mutant.function))
            chosen.append(mutant)
    return chosen


def place_of(mutant: Mutant, tree: Path) -> tuple[Path, int] | None:
    """Return where a fault's line is now: its function by whole name, else by its last part."""
    found: list[tuple[tuple[bool, bool], Path, int]] = []
    last = mutant.function.rpartition(".")[2]
    for file in sorted((tree / PACKAGE).rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if mutant.before not in text:
            continue
        lines = text.splitlines()
        for name, function in _functions(ast.parse(text)):
            if name.rpartition(".")[2] != last:
                continue
            numbers = range(function.body[0].lineno - 1, function.end_lineno or 0)
            equal = [number for number in numbers if lines[number].strip() == mutant.before]
            if equal:
                here = file == tree / PACKAGE / mutant.module
                line = equal[min(mutant.nth, len(equal) - 1)]
                found.append(((name == mutant.function, here), file, line))
    if not found:
        return None
    return max(found, key=lambda place: place[0])[1:]


def tests_of(mutant: Mutant, tree: Path) -> list[str]:
    """Return the test files to run for a fault, those of its own module first."""
    found = [
        file.relative_to(tree).as_posix()
        for pattern in ROOMS[mutant.room].tests
        for file in sorted((tree / "tests").glob(pattern))
    ]
    stem = Path(mutant.module).stem
    code = re.match(r"ttp\d+", stem)
    named = [file for file in found if (code[0] if code else stem) in Path(file).stem]
    more = found[-2:] if code and named else found
    return list(dict.fromkeys([*named, *more]))


class Bench:
    """A copy of the tree in which faults are put, and taken out again."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self._stamp = int(time.time()) - 1_000_000  # bytecode knows a file by seconds and size
        ignored = shutil.ignore_patterns(".git", ".venv*", "__pycache__", ".*_cache", ".ttnn_perf")
        shutil.copytree(ROOT, tree, ignore=ignored, symlinks=True)

    def run(self, tests: Sequence[str], limit_s: float) -> tuple[str, str]:
        """Run tests up to the first that fails; return ``survived`` or what became of them."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
        environment = {**kept, "PYTHONPATH": str(self.tree), "TTNN_PERF_CORPUS": _corpus()}
        options = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no")
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests], cwd=self.tree, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            text, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return "timeout", ""
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
        if process.returncode == 0:
            return "survived", ""
        return "killed", failed[1] if failed else text.strip().splitlines()[-1][:80]

    def outcome(self, mutant: Mutant, limit_s: float) -> Mutant:
        """Put a fault in, run its tests, take it out."""
        place = place_of(mutant, self.tree)
        if place is None:
            return replace(mutant, outcome="gone", by="")
        file, number = place
        text = file.read_text(encoding="utf-8")
        lines = text.splitlines(keepends=True)
        lines[number] = lines[number].replace(mutant.before, mutant.after)
        try:
            self._write(file, "".join(lines))
            outcome, by = self.run(tests_of(mutant, self.tree), limit_s)
        finally:
            self._write(file, text)
        return replace(mutant, outcome=outcome, by=by)

    def _write(self, file: Path, text: str) -> None:
        file.write_text(text, encoding="utf-8")
        self._stamp += 1
        os.utime(file, (self._stamp, self._stamp))


def _corpus() -> str:
    return str(corpus_folder())


def _store(mutants: Iterable[Mutant], out: Path) -> None:
    text = json.dumps([asdict(mutant) for mutant in mutants], indent=1, ensure_ascii=False)
    out.write_text(text + "\n", encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the faults; 1 if one that was caught is missed now."""
    parser = argparse.ArgumentParser(prog="python -m tests.contract.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, help="make new ones")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--out", type=Path, help="write outcomes; default: nowhere")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one, default 300")
    parser.add_argument("--only", help="a room")
    parser.add_argument("--unchecked", action="store_true", help="the tests are known to pass")
    options = parser.parse_args(argv)
    if options.seed is None:
        known = [Mutant(**each) for each in json.loads(LIST.read_text(encoding="utf-8"))]
    else:
        known = choose(ROOT, options.seed, options.count)
    known = [mutant for mutant in known if options.only in {None, mutant.room}]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder, "tree"))
        if not options.unchecked and not _pass_without(known, bench, 4 * options.limit):
            return 2
        return _run_all(known, bench, options.limit, options.out)


def _pass_without(known: list[Mutant], bench: Bench, limit_s: float) -> bool:
    for room in sorted({mutant.room for mutant in known}):
        outcome, by = bench.run(tests_of(Mutant(room, "", "", "", "", ""), bench.tree), limit_s)
        if outcome != "survived":
            print(f"{room}: its tests fail without a fault ({outcome} {by}): mend them first")
            return False
    return True


def _run_all(known: list[Mutant], bench: Bench, limit_s: float, out: Path | None) -> int:
    now: list[Mutant] = []
    for mutant in known:
        now.append(bench.outcome(mutant, limit_s))
        last = now[-1]
        print(f"{last.outcome:8} {last.room:7} {last.module} {last.function}: {last.before}")
        print(f"{'':16} {last.after}  {last.by}", flush=True)
        if out is not None:
            _store([*now, *known[len(now) :]], out)
    for room in ROOMS:
        print(room, dict(Counter(m.outcome for m in now if m.room == room)))
    caught = {"killed", "timeout"}
    missed = [
        new
        for old, new in zip(known, now, strict=True)
        if old.outcome in caught and new.outcome == "survived"
    ]
    for mutant in missed:
        print(f"caught before, missed now: {mutant.module} {mutant.function}: {mutant.after}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
