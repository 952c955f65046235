"""Writes the pages that follow from the code; ``--check`` fails when one is stale."""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.runner import all_rules, run_rules
from pytest_ttnn_perf.analysis.readers.detect import ArtifactKind, kind_of
from pytest_ttnn_perf.analysis.readers.ops_csv import read_ops_csv
from pytest_ttnn_perf.analysis.readers.report_db import read_report_db
from pytest_ttnn_perf.cli.captures import rule_lines
from pytest_ttnn_perf.cli.main import command_parser
from pytest_ttnn_perf.core.finding import MERGED, RuleOutcome, Subject
from pytest_ttnn_perf.core.options import OPTIONS, option_of
from tests.harness.corpus import captures, corpus_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

DOCS: Final = Path(__file__).parent
OPTIONS_PAGE: Final = Path("reference", "options.md")
RULES_FOLDER: Final = Path("rules")
CORPUS_PAGE: Final = RULES_FOLDER / "corpus.md"
COMMANDS_PAGE: Final = Path("reference", "cli.md")

INTRODUCTION: Final = """\
# Options

Generated from the code by `make docs`.

Every option has a twin in `[tool.ttnn_perf]`; see [configuration](configuration.md).
`--ttnn-perf-all`, `--ttnn-perf-update` and `--ttnn-perf-replay` turn the gate on by themselves.

| option | twin | meaning |
|---|---|---|
"""

COMMANDS_INTRODUCTION: Final = """\
# Command line

Generated from the code by `make docs`.

Results go to stdout, everything else to stderr. Tables fit the terminal; piped output has no
colours, and each sentence is one line. `--format json` and `csv` have all columns:
[their fields](json.md). [Exit codes](exit-codes.md) has a table.

`check`, `analyze`, `plan`, `show` and `compare` detect the format of a file by its content.
A folder stands for its `db.sqlite`, or for the newest `ops_perf_results` CSV in it.

| command | does |
|---|---|
"""

RULES_INTRODUCTION: Final = """\
# Rules

Generated from the code by `make docs`.

The rules of the optimization checklist, by what they are about. Each has a page: what it finds, why
that matters, what to do, when it is no problem, and its limits.
`ttnn-perf rules CODE` prints the same.

[Optimize a model](../how-to/optimize.md) shows how to run them, change their limits and waive them,
[the checklist](../explanation/checklist.md) what their answers mean. How often each
answers what, over real captures, is in [Rules over the corpus](corpus.md).
"""

CORPUS_INTRODUCTION: Final = """\
# Rules over the corpus

Generated from the code by `make docs`, where the corpus is.

How often each rule has each [outcome](../explanation/checklist.md#four-outcomes) over the corpus of
real captures: {tables} op tables and {reports} report databases, each checked alone, from end to
end, with the default limits. What only a test or the output of tt-lang can tell is `NOT_MEASURED`
here.

"""


def options_page() -> str:
    """Return the table of options."""
    rows = []
    for name, kind, values, description in OPTIONS:
        value = values if isinstance(values, str) else "\\|".join(values)
        value = "[=WHAT]" if kind == "choice, bare" else f" {value}"
        rows.append(f"| `{(option_of(name) + value).strip()}` | `{name}` | {description} |")
    return INTRODUCTION + "\n".join(rows) + "\n"


def commands_page() -> str:
    """Return what each command does, and its arguments."""
    parsers = dict(sorted(subparsers(command_parser())))
    lines = [
        f"| [`{name}`](#{name.replace(' ', '-')}) | {summary} |"
        for name, (summary, _) in parsers.items()
    ]
    text = COMMANDS_INTRODUCTION + "\n".join(lines) + "\n"
    for name, (_, parser) in parsers.items():
        text += f"\n## {name}\n\n{inspect.cleandoc(parser.description or '')}\n"
        if rows := [_argument_row(a) for a in parser._actions if a.help not in HIDDEN]:
            text += "\n| argument | meaning |\n|---|---|\n" + "\n".join(rows) + "\n"
    return text


#: The help of what has no row: options that another command explains, and help itself.
HIDDEN: Final = frozenset({argparse.SUPPRESS, "show this help message and exit"})


def subparsers(
    parser: argparse.ArgumentParser, group: str = ""
) -> Iterator[tuple[str, tuple[str, argparse.ArgumentParser]]]:
    """Yield the name, the summary and the parser of each command; those of a group after it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, command in action.choices.items():
                if command.description:
                    yield f"{group}{name}", (helps[name], command)
                yield from subparsers(command, f"{group}{name} ")


def _argument_row(action: argparse.Action) -> str:
    """Return the row of an option or of words."""
    value = action.metavar or action.dest.upper()
    if action.choices:
        value = "|".join(map(str, action.choices))
    value = value if isinstance(value, str) else " ".join(value)
    if action.option_strings:
        takes_none = action.nargs == 0
        words = ", ".join(action.option_strings) + ("" if takes_none else f" {value}")
    else:
        words = f"{value}..." if action.nargs in {"*", "+"} else value
    meaning = (action.help or "") % {"default": action.default}
    return "| `{}` | {} |".format(*(text.replace("|", "\\|") for text in (words, meaning)))


MERGED_INTRODUCTION = """\
A rule that says what another one says too is part of that. The severity, the limits and the entry
in JSON are those of the other rule, which answers to the old code in `select`, `ignore`, settings,
waivers and `ttnn-perf rules CODE`.
"""


def rules_index() -> str:
    """Return the list of all rules, those of one step together."""
    lines = [RULES_INTRODUCTION]
    for step, rules in groupby(all_rules(), key=lambda rule: rule.step):
        lines += [f"## {step.capitalize()}", ""]
        lines += ["| code | name | severity | step | finds |", "|---|---|---|---|---|"]
        lines += [
            f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.severity.value} | {rule.step} "
            f"| {rule.page.partition(chr(10))[0]} |"
            for rule in rules
        ]
        lines.append("")
    lines += ["## Merged", "", MERGED_INTRODUCTION]
    lines += ["| code | is part of |", "|---|---|"]
    lines += [f"| {old} | [{new}]({new}.md) |" for old, new in MERGED.items()]
    return "\n".join(lines) + "\n"


def corpus_subjects() -> Iterator[Subject]:
    """Read every op table and report database of the list."""
    files = (corpus_folder() / name for name in captures("*"))
    for file in (each for each in files if each.name != "graph_capture.json"):
        match kind_of(file):
            case ArtifactKind.OPS_CSV:
                yield Subject(ops=read_ops_csv(file))
            case ArtifactKind.REPORT_DB:
                yield Subject(report=read_report_db(file))


def corpus_page() -> str:
    """Count the outcomes of every rule over the corpus."""
    subjects = list(corpus_subjects())
    rules = all_rules()
    found = Counter(
        (finding.code, finding.outcome)
        for subject in subjects
        for finding in run_rules(rules, subject)
    )
    tables = sum(subject.ops is not None for subject in subjects)
    text = CORPUS_INTRODUCTION.format(tables=tables, reports=len(subjects) - tables)
    rows = (_corpus_row(rule.code, rule.name, found) for rule in rules)
    names = " | ".join(outcome.value for outcome in RuleOutcome)
    head = f"| rule | name | {names} |\n|---|---|{'---:|' * len(RuleOutcome)}\n"
    return text + head + "\n".join(rows) + "\n"


def _corpus_row(code: str, name: str, found: Mapping[tuple[str, RuleOutcome], int]) -> str:
    counts = " | ".join(str(found[code, outcome]) for outcome in RuleOutcome)
    return f"| [{code}]({code}.md) | {name} | {counts} |"


def missing_capture() -> Path | None:
    """Return the first capture of the list that is not there."""
    files = (corpus_folder() / name for name in captures("*"))
    return next((file for file in files if not file.exists()), None)


def generated_pages() -> dict[Path, str]:
    """Return every page that follows from the code, by its place; the corpus's if all of it is."""
    pages = {
        OPTIONS_PAGE: options_page(),
        COMMANDS_PAGE: commands_page(),
        RULES_FOLDER / "index.md": rules_index(),
    }
    for rule in all_rules():
        pages[RULES_FOLDER / f"{rule.code}.md"] = "".join(f"{line}\n" for line in rule_lines(rule))
    if missing_capture() is None:
        pages[CORPUS_PAGE] = corpus_page()
    return pages


def main(arguments: Sequence[str] | None = None, *, docs: Path = DOCS) -> int:
    """Write or check every generated page, and check every link."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args(arguments).check
    pages = generated_pages()
    if CORPUS_PAGE not in pages:
        done = "checked" if check else "written"
        where = f"no {missing_capture()}; TTNN_PERF_CORPUS names another folder of captures"
        print(f"docs/{CORPUS_PAGE.as_posix()} was not {done}: {where}")
    problems = stale(pages, docs) if check else write(pages, docs)
    problems += broken_links(docs)
    for problem in problems:
        print(problem, file=sys.stderr)
    print("documentation: " + ("not current" if problems else "current, all links resolve"))
    return 1 if problems else 0


def write(pages: Mapping[Path, str], docs: Path) -> list[str]:
    """Write all pages, and delete those of rules that are gone."""
    for place, text in pages.items():
        (docs / place).parent.mkdir(exist_ok=True)
        (docs / place).write_text(text, encoding="utf-8")
    for file in _without_rule(pages, docs):
        file.unlink()
    return []


def stale(pages: Mapping[Path, str], docs: Path) -> list[str]:
    """Name the pages that are not as the code has them."""
    return [
        *(
            f"docs/{place.as_posix()} is {_state(docs / place)}: run make docs"
            for place, text in pages.items()
            if not (docs / place).exists() or (docs / place).read_text(encoding="utf-8") != text
        ),
        *(
            f"docs/{file.relative_to(docs).as_posix()} is of no rule: run make docs"
            for file in _without_rule(pages, docs)
        ),
    ]


def _state(file: Path) -> str:
    return "stale" if file.exists() else "missing"


def _without_rule(pages: Mapping[Path, str], docs: Path) -> list[Path]:
    found = (docs / RULES_FOLDER).glob("TTP*.md")
    return sorted(file for file in found if file.relative_to(docs) not in pages)


def broken_links(docs: Path) -> list[str]:
    """Name every link to a file that is not there."""
    pages = [*docs.rglob("*.md"), *docs.parent.glob("*.md")]
    return [
        f"{page.relative_to(docs.parent)}: broken link {target}"
        for page in sorted(pages)
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]


if __name__ == "__main__":
    sys.exit(main())
