"""The run command: any command, gated as a test is."""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import shlex
import shutil
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytest_ttnn_perf.cli.common import add_argument, number_within
from pytest_ttnn_perf.core.baseline import SCRIPT_FACT
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.settings import Missing, Update, find_root
from pytest_ttnn_perf.machine.chips import visible_chips
from pytest_ttnn_perf.machine.environment import TTLANG_LOGS, devices_of, installed_version
from pytest_ttnn_perf.machine.inspection import conflicts, conflicts_with
from pytest_ttnn_perf.measure.profilers import (
    SCRIPT_VARIABLES,
    Script,
    ScriptPass,
    called_name,
    operations_in,
)
from pytest_ttnn_perf.report.tables import Line, Result, json_text, printed, stdout_style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.report.run import RunResult
    from pytest_ttnn_perf.report.tables import Block

_AUTO: Final = "auto"
#: Processes whose times are the samples of one run; what is counted takes one.
_USUAL_RUNS: Final = {ScriptPass.TTLANG: 5, ScriptPass.NONE: 5}
_MAX_RUNS: Final = 50
_NEITHER: Final = (
    "--profiler auto: there is no device with tt-lang, and no tt-lang-sim; --profiler none times "
    "any command"
)


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "ttnn-perf run [--profiler P] [--name N] [--fact K=V] [--runs N] [--anyway]\n"
        "                     [--update [WHAT]] [--reason TEXT] [options] -- COMMAND"
    )
    add_script(parser)
    add = partial(add_argument, parser)
    choices = [each.value for each in Update]
    add("--update", "write results into the baselines: new, improved (when bare) or all",
        choices=choices, nargs="?", const="improved")  # fmt: skip
    add("--reason TEXT", "why a result is accepted, stored with it")
    add("--missing", "what a script without a comparable baseline does (default: fail)",
        choices=[each.value for each in Missing])  # fmt: skip
    add("--baselines DIR", "folder of the baselines (default: baselines)")
    add("-v --verbose", "print every number, and findings with their fixes")
    add("--format", "output format (default: table)", choices=("table", "json"), default="table")
    parser.allow_abbrev = False
    parser.set_defaults(passes_on=True)


def add_script(parser: argparse.ArgumentParser, *, shown: bool = True) -> None:
    """Add the options of a script; ``run`` alone shows them."""

    def add(names: str, text: str, **settings: Any) -> None:
        add_argument(parser, names, text if shown else argparse.SUPPRESS, **settings)

    add("--profiler", "run with the profile of tt-lang, its cycles by line, its simulator, or a "
        "clock alone (default: auto, ttlang or sim)",
        choices=(_AUTO, *(each.value for each in ScriptPass)), default=_AUTO)  # fmt: skip
    add("--name N", "name of this case, part of the name of its baseline")
    add("--fact K=V", "a setting that its baseline is compared under, such as "
        "production_shape=8192x8192", action="append", default=[])  # fmt: skip
    add("--runs N", "number of processes that are its samples (default: 5 for times, else 1)",
        type=number_within(1, _MAX_RUNS))  # fmt: skip
    add("--anyway", "also profile a script that calls several operations")


def run_run(options: argparse.Namespace) -> Result:
    """Run a script with a profiler, and gate it as a test.

    Its baseline is filed under FILE::OPERATION. All other options, such as --ttnn-perf-confirm, are
    those of the pytest plugin. Exit code 1: the script or the gate failed; 2: refused.
    """
    from pytest_ttnn_perf.plugin.script import run_session

    argv = script_arguments(options, options.ids)
    for name in ("update", "reason", "missing", "baselines"):
        value = getattr(options, name)
        argv += [] if value is None else [f"--ttnn-perf-{name}={value}"]
    as_json = options.format == "json"
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        code, result = run_session([*argv, *options.rest])
    if result is None or not result.run.tests:
        sys.exit(2 if code == _PYTEST_REFUSED else 1)  # pytest has said why
    if as_json:
        return Result(json_text(_document(result, code)), failed=code != 0)
    found = sum(len(judged.verdicts) for judged in result.run.tests.values())
    lines: list[Block] = [*result.summary(verbosity=int(options.verbose or found <= _FEW))]
    lines += [Line(f"not written: {error}", bad=True) for error in result.errors]
    for judged in result.run.tests.values():
        lines += [f"more: ttnn-perf show {file}" for file in judged.observation.attached[:1]]
    text = "".join(f"{line}\n" for line in printed([*lines, *result.closing()], stdout_style()))
    return Result(text, failed=code != 0)


_PYTEST_REFUSED: Final = 4
#: So many numbers are printed though nothing is wrong with them.
_FEW: Final = 12


def _document(result: RunResult, code: int) -> object:
    from pytest_ttnn_perf.cli.records import Gate

    gated = Gate(result.context.settings, result.store).summarize(result.run, result.records)
    return {**gated.listing().document, "failed": code != 0}  # type: ignore[dict-item]


def script_arguments(options: argparse.Namespace, words: Sequence[str]) -> list[str]:
    """Return pytest's arguments for a command; nothing of it has run yet.

    Raises:
        UsageError: it cannot be measured so, in this environment or at all.
    """
    from pytest_ttnn_perf.plugin.script import arguments_of

    if not words:
        message = "name the command after two dashes: ttnn-perf run -- python kernel.py"
        raise UsageError(message)
    program = shutil.which(words[0])
    if program is None:
        message = f"{words[0]}: no such command: expected a program, and what it is given"
        raise UsageError(message)
    root, kind = find_root(Path.cwd()), _pass_of(options.profiler)
    files = [n for n, word in enumerate(words) if Path(word).is_file()]
    place = min(files, key=lambda n: not words[n].endswith(".py"), default=0)
    command = tuple(_from_here(word) for word in words)
    look = _look_at(Path(command[place])) if kind is not ScriptPass.NONE else None
    if look and kind in {ScriptPass.TTLANG, ScriptPass.LINES}:
        _refuse_several(look, command[place], options)
    _check_environment(kind)
    if kind is ScriptPass.SIM:
        command = (_simulator_beside(program), *command[place:])
    file = Path(command[place] if kind is not ScriptPass.SIM else command[1]).absolute()
    inside = file.is_relative_to(root)
    label = "-".join(filter(None, (options.name, "lines" if kind is ScriptPass.LINES else "")))
    name = (look.name if look else None) or ("command" if look is None else file.stem)
    test = f"{file.relative_to(root).as_posix() if inside else file.name}::{name}"
    version = {ScriptPass.SIM: "tt-lang-sim", ScriptPass.NONE: ""}.get(kind, "tt-lang")
    facts = {
        SCRIPT_FACT: shlex.join(command[1 if kind is ScriptPass.SIM else place :]),
        "profiler": kind.value,
        version.replace("-", "_"): installed_version(version) if version else None,
        "compiler_options": os.environ.get("TTLANG_COMPILER_OPTIONS"),
    }
    known = {key: value for key, value in facts.items() if key and value}
    script = Script(
        f"{test}[{label}]" if label else test,
        command,
        kind,
        (*_typed(options), "--", *words),
        options.runs or _USUAL_RUNS.get(kind, 1),
        {**known, **dict(map(_fact, options.fact))},
    )
    return arguments_of(script, root)


def _typed(options: argparse.Namespace) -> Iterator[str]:
    if options.profiler != _AUTO:
        yield from ("--profiler", options.profiler)
    if options.name:
        yield from ("--name", options.name)
    for fact in options.fact:
        yield from ("--fact", fact)
    yield from ("--anyway",) if options.anyway else ()


def _from_here(word: str) -> str:
    """Return a path as another version has it, too."""
    path, here = Path(word), Path.cwd()
    return str(path.relative_to(here)) if path.is_absolute() and path.is_relative_to(here) else word


def _fact(text: str) -> tuple[str, str | float]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        message = f"--fact: expected NAME=VALUE, found {text!r}"
        raise UsageError(message)
    with contextlib.suppress(ValueError):
        return name, float(value) if "." in value else int(value)
    return name, value


def _pass_of(asked: str) -> ScriptPass:
    if asked != _AUTO:
        return ScriptPass(asked)
    if visible_chips(os.environ, devices_of(os.environ)) and installed_version("tt-lang"):
        return ScriptPass.TTLANG
    if installed_version("tt-lang-sim") or shutil.which("tt-lang-sim"):
        return ScriptPass.SIM
    raise UsageError(_NEITHER)


def _simulator_beside(program: str) -> str:
    """Return the simulator of the same environment as an interpreter."""
    if Path(program).name.startswith("tt-lang-sim"):
        return program
    beside = Path(program).with_name("tt-lang-sim")
    found = str(beside) if beside.exists() else shutil.which("tt-lang-sim")
    if found is None:
        message = f"no tt-lang-sim beside {program}: pip install tt-lang-sim, on Python 3.11"
        raise UsageError(f"{message} or newer")
    return found


def _check_environment(kind: ScriptPass) -> None:
    own, environment = SCRIPT_VARIABLES[kind], os.environ
    if kind is ScriptPass.SIM:
        return  # it reads none of them
    found = conflicts_with(own, environment) if own else conflicts(environment)
    if found:
        raise UsageError("; ".join(dict.fromkeys(map(str, found))))
    if not own or (kind is ScriptPass.LINES and environment.get("TTLANG_PROFILE_CSV")):
        return
    home = environment.get("TT_METAL_HOME")
    if not home:
        message = f"--profiler {kind.value}: TT_METAL_HOME is not set: tt-lang looks there for "
        raise UsageError(f"{message}what the profiler writes; set it to the folder of tt-metal")
    logs = Path(home, TTLANG_LOGS)
    if not logs.is_dir():
        message = f"--profiler {kind.value}: expected the folder {logs}, found none"
        raise UsageError(f"{message}: mkdir -p {shlex.quote(str(logs))}")


# The source, before any time of a device is spent: how often operations are called.


class Look(NamedTuple):
    """The operations of a file, and the lines of their calls."""

    operations: tuple[str, ...]
    calls: dict[str, list[tuple[int, str | None]]]

    @property
    def name(self) -> str | None:
        """The only operation that is called, or that there is."""
        for names in (tuple(self.calls), self.operations):
            if len(names) == 1:
                return names[0]
        return None


_LOOPS: Final = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _look_at(file: Path) -> Look:
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError) as error:
        message = f"{file}: expected a Python script, {type(error).__name__}: {error}"
        raise UsageError(message) from None
    functions = {f.name: f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)}
    operations = operations_in(tree)
    calls: dict[str, list[tuple[int, str | None]]] = {}

    def follow(node: ast.AST, line: int, through: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
                continue
            for _ in range(2 if isinstance(child, _LOOPS) else 1):
                follow(child, line, through)
            name = called_name(child.func) if isinstance(child, ast.Call) else None
            at = line or getattr(child, "lineno", 0)
            if name in operations:
                calls.setdefault(name, []).append((at, through[0] if through else None))
            elif name in functions and name not in through:
                follow(functions[name], at, (*through, name))

    follow(tree, 0, ())
    return Look(tuple(operations), calls)


def _refuse_several(look: Look, file: str, options: argparse.Namespace) -> None:
    """Refuse a script that calls operations more than once."""
    if options.anyway or options.name or sum(map(len, look.calls.values())) <= 1:
        return
    found = []
    for name, places in look.calls.items():
        lines = Counter(places)
        through = next((via for _, via in places if via), None)
        where = f"line{'s' * (len(lines) > 1)} {', '.join(str(line) for line, _ in lines)}"
        where += f" through {through}" if through else ""
        often = {1: "called", 2: "called twice"}.get(len(places), f"called {len(places)} times")
        if max(lines.values()) > 1:
            often = "called in a loop"
        found.append(f"{name} is {often} ({where})")
    message = f"{file}: {', '.join(found)}; a profile holds one call"
    raise UsageError(f"{message}: comment one out, or --name, or --anyway")
