"""The rules there are, ours and those of other projects: selects them, and asks about a test."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import RuleError, UsageError
from pytest_ttnn_perf._base.text import did_you_mean, text_of
from pytest_ttnn_perf.analysis.checklist import rules
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Rule
from pytest_ttnn_perf.records.finding import Input, RuleOutcome, Severity, Unanswered
from pytest_ttnn_perf.records.region import Basis
from pytest_ttnn_perf.records.settings import RuleSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from pytest_ttnn_perf.records.finding import Finding, Subject


#: The beginning of the codes of rules that ask whether a capture can be trusted.
_VALIDITY: Final = "TTP0"
#: The first digit of a code tells its step.
_CODE: Final = re.compile(r"[A-Z]{3}[0-9]{3}")
#: Rules that are not ours, by their code.
_REGISTERED: Final[dict[str, Rule]] = {}


@cache  # until other rules are registered
def codes() -> tuple[str, ...]:
    """Return the codes of all rules in their order."""
    return tuple(sorted((*_modules(), *_REGISTERED)))


def rule_of(code: str) -> Rule:
    """Return the rule of a code, one of ``codes``."""
    if code in _REGISTERED:
        return _REGISTERED[code]
    name, _ = _modules()[code]
    module = import_module(f"{rules.__name__}.{name}")
    found: Rule = getattr(module, name.partition("_")[2])
    return found


def needs_of(code: str) -> tuple[Input, ...]:
    """Return what the rule of a code needs, without importing it."""
    return _REGISTERED[code].needs if code in _REGISTERED else _modules()[code].needs


def all_rules() -> tuple[Rule, ...]:
    """Return all rules in the order of their codes."""
    return tuple(map(rule_of, codes()))


class _Module(NamedTuple):
    name: str
    needs: tuple[Input, ...]


@cache
def _modules() -> Mapping[str, _Module]:
    """Return the modules of our rules by code: ``ttp203_layout_conversions`` has TTP203."""
    return {
        name.partition("_")[0].upper(): _Module(name, needs)
        for needs, names in rules.BY_NEEDS.items()
        for name in names
    }


#: Our own codes; nobody else's begin so.
OURS: Final = "TTP"
#: The beginning of a code that is not ours.
_PREFIX: Final = re.compile(r"(?!TTP)[A-Z]{3}\d{0,3}")


@dataclass(frozen=True, slots=True)
class CustomRule:
    """A rule of one's own. ``check`` is called for each test that has one of the inputs needed.

    ``code`` is three letters of your own and three digits, the first of which is the step of
    optimizing a model that the rule belongs to, as in our codes. ``fix`` says in a sentence what to
    do about a finding.
    """

    code: str
    name: str
    severity: Severity
    check: Callable[[Subject], Answer]
    fix: str = ""
    needs: tuple[Input, ...] = ()

    def problem(self) -> str | None:
        """Return what is wrong with the rule itself; None if nothing is."""
        code: object = self.code
        if not isinstance(code, str) or not _CODE.fullmatch(code):
            return f"a code is three capital letters and three digits, found {code!r}"
        if code.startswith(OURS):
            return f"{code}: codes that begin with {OURS} are those of ttnn-perf"
        parts: tuple[tuple[str, object, bool], ...] = (
            ("a name", self.name, isinstance(self.name, str) and bool(self.name.strip())),
            ("a severity", self.severity, isinstance(self.severity, Severity)),
            ("a function of a subject as check", self.check, callable(self.check)),
            (
                "a tuple of Input as needs",
                self.needs,
                isinstance(self.needs, tuple)
                and all(isinstance(needed, Input) for needed in self.needs),
            ),
        )
        for expected, value, right in parts:
            if not right:
                return f"{code}: expected {expected}, found {value!r}"
        return None


_known = False


def use_custom_rules(rules: Sequence[tuple[CustomRule, str]] | None) -> None:
    """Ask these rules and ours; each with its plugin. Their codes were checked, and differ.

    None: rules of others are not known in this process, or not yet. Codes that may be theirs are
    not refused then.
    """
    global _known  # noqa: PLW0603 (a process has one set of rules, as it has one registry)
    _known = rules is not None
    _REGISTERED.clear()
    _REGISTERED.update((rule.code, _as_rule(rule, owner)) for rule, owner in rules or ())
    codes.cache_clear()
    _select_rules.cache_clear()


def may_be_custom(code: str) -> bool:
    """Tell whether a code, or the beginning of one, may be that of a rule not known here."""
    if _known or not _PREFIX.fullmatch(code):
        return False
    return not any(known.startswith(code) for known in codes())


def _as_rule(custom: CustomRule, owner: str) -> Rule:
    """Return a rule in the shape of ours. What it does wrong is a finding, not an error of ours."""

    def look(subject: Subject) -> Answer:
        try:
            answer: object = custom.check(subject)
        except Exception as error:  # noqa: BLE001 (a rule of others may raise anything)
            raised = f"{type(error).__name__}: {text_of(error)}"
            return _broken(f"the rule, which is of {owner}, raised {raised}")
        if isinstance(answer, Answer):
            return answer
        found = type(answer).__name__
        return _broken(f"the rule, which is of {owner}, returned {found} instead of an Answer")

    look.__doc__ = f"A rule of {owner}.\n\n## What to do\n\n{custom.fix}"
    return Rule(custom.code, custom.name, custom.severity, custom.needs, look, ("subject",), {})


def _broken(reason: str) -> Answer:
    """Fail the test: the rule could not tell."""
    return Answer(RuleOutcome.FOUND, reason, severity=Severity.ERROR)


_USUAL: Final = RuleSettings()
#: The limits of a rule that are other than usual.
_Limits = tuple[tuple[str, float], ...]


class Group:
    """Rules that need the same, imported when a test has it."""

    def __init__(
        self, needs: tuple[Input, ...], codes: tuple[str, ...], limits: Mapping[str, _Limits]
    ) -> None:
        self.needs = needs
        self.codes = codes
        self._limits = limits

    def only(self, wanted: Callable[[str, tuple[Input, ...]], bool]) -> Group:
        """Return the rules that are wanted, by their code and what they need."""
        codes = tuple(code for code in self.codes if wanted(code, self.needs))
        return Group(self.needs, codes, self._limits)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, with the limits that the project sets."""
        return tuple(
            rule_of(code).with_limits(**dict(self._limits.get(code, ()))) for code in self.codes
        )


class Answered(NamedTuple):
    """What rules say, and why some say nothing."""

    findings: tuple[Finding, ...]
    unanswered: tuple[Unanswered, ...]


def run_rules(
    rules: Iterable[Rule], subject: Subject, waived: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Return the finding of every rule; those of ``waived`` rules save nothing of the others.

    Raises:
        RuleError: one raised.
    """
    from pytest_ttnn_perf.analysis.checklist.folding import beside, findings_of

    answers: dict[str, tuple[Rule, Answer]] = {}
    listed = list(rules)
    for rule in sorted(listed, key=lambda rule: rule.looks_at_others):
        seen = beside(subject, answers.values()) if rule.looks_at_others else subject
        answers[rule.code] = (rule, _answer(rule, seen))
    return findings_of([answers[rule.code] for rule in listed], subject, waived)


def run_in_regions(
    rules: Sequence[Rule], subject: Subject, waived: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Return the findings of rules that look at ops for each region, and of the others once.

    Raises:
        RuleError: one raised.
    """
    regions = in_regions(subject)
    if regions == (subject,):
        return run_rules(rules, subject, waived)
    once = [rule for rule in rules if not _looks_at_regions(rule.code, rule.needs)]
    each = [rule for rule in rules if _looks_at_regions(rule.code, rule.needs)]
    in_each = (run_rules(each, region, waived) for region in regions)
    return (*run_rules(once, subject, waived), *chain.from_iterable(in_each))


def ask_in_regions(
    groups: Sequence[Group], subject: Subject, waived: Collection[str] = ()
) -> Answered:
    """Return the same as ``ask_rules``, of rules that look at ops for each region.

    Raises:
        RuleError: one raised.
    """
    regions = in_regions(subject)
    if regions == (subject,):
        return ask_rules(groups, subject, waived)
    once = [group.only(lambda code, needs: not _looks_at_regions(code, needs)) for group in groups]
    each = [group.only(_looks_at_regions) for group in groups]
    in_each = (ask_rules(each, region, waived) for region in regions)
    answered = [ask_rules(once, subject, waived), *in_each]
    return Answered(
        tuple(chain.from_iterable(one.findings for one in answered)),
        tuple(chain.from_iterable(one.unanswered for one in answered)),
    )


def trusted(subject: Subject) -> Subject:
    """Return a subject without an op table of which no number can be trusted.

    Only the rules of validity look at such a table.
    """
    if subject.ops is None:
        return subject
    from pytest_ttnn_perf.analysis.captures.validity import why_invalid

    flaw = why_invalid(subject.ops)
    if flaw is None:
        return subject
    why = f"no number of the op table can be trusted: {flaw}"
    return replace(subject, ops=None, absent={**subject.absent, Input.OPS: why})


def in_regions(subject: Subject) -> tuple[Subject, ...]:
    """Return a subject for each region of its op table; one where it has none, or is invalid."""
    subject = trusted(subject)
    if subject.ops is None or subject.region:
        return (subject,)
    from pytest_ttnn_perf.analysis.ops.regions import region_tables, regions_of

    regions, outside = regions_of(subject.ops).regions, regions_of(subject.ops).outside
    if not regions or (regions[0].basis is Basis.WHOLE and not outside.ops):
        return (subject,)
    tables = region_tables(subject.ops)
    replays = chain.from_iterable(table.columns.replay for table in tables)
    counts_gaps = all(replay is None for replay in replays)
    return tuple(
        replace(subject, ops=table, region=region.name, counts_gaps=counts_gaps)
        for region, table in zip(regions, tables, strict=True)
    )


def _looks_at_regions(code: str, needs: tuple[Input, ...]) -> bool:
    """Tell whether a rule is about ops; whether a capture is valid is asked of it as a whole."""
    return Input.OPS in needs and not code.startswith(_VALIDITY)


def ask_rules(groups: Iterable[Group], subject: Subject, waived: Collection[str] = ()) -> Answered:
    """Return the findings of the rules that have an answer, and why the others have none.

    Raises:
        RuleError: one raised.
    """
    from pytest_ttnn_perf.analysis.checklist.folding import beside, findings_of

    answers: list[tuple[Rule, Answer]] = []
    without: dict[tuple[RuleOutcome, str], tuple[str, ...]] = {}

    def leave(outcome: RuleOutcome, why: str, codes: tuple[str, ...]) -> None:
        without[outcome, why] = (*without.get((outcome, why), ()), *codes)

    def ask(rule: Rule, seen: Subject) -> None:
        answer = _ask_rule(rule, seen)
        if answer.outcome is RuleOutcome.FOUND or answer.outcome is RuleOutcome.CLEAN:
            answers.append((rule, answer))
        else:
            leave(answer.outcome, answer.reason or "", (rule.code,))

    later: list[Rule] = []
    for group in groups:
        if group.needs and not any(map(subject.has, group.needs)):
            leave(RuleOutcome.NOT_MEASURED, _why_absent(group.needs, subject), group.codes)
            continue
        for rule in group.rules:
            if rule.looks_at_others:
                later.append(rule)
            else:
                ask(rule, subject)
    for rule in later:
        ask(rule, beside(subject, answers))
    region = subject.region
    unanswered = (Unanswered(*why, codes, region) for why, codes in without.items() if codes)
    return Answered(findings_of(answers, subject, waived), tuple(unanswered))


def _answer(rule: Rule, subject: Subject) -> Answer:
    if rule.needs and not any(map(subject.has, rule.needs)):
        return Answer.not_measured(_why_absent(rule.needs, subject))
    return _ask_rule(rule, subject)


def _ask_rule(rule: Rule, subject: Subject) -> Answer:
    try:
        return rule.check(subject)
    except Exception as cause:
        raise RuleError(rule.code, cause) from cause


def _why_absent(needs: Sequence[Input], subject: Subject) -> str:
    known = [subject.absent[needed] for needed in needs if needed in subject.absent]
    return known[0] if known else f"needs {' or '.join(needed.value for needed in needs)}"


def as_configured(
    findings: tuple[Finding, ...],
    rules: Mapping[str, RuleSettings],
    waived: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """Apply the severities and waivers that the project and the test configure."""
    if not rules and not waived:
        return findings
    configured: list[Finding] = []
    for finding in findings:
        rule = rules.get(finding.code, _USUAL)
        waiver = (waived or {}).get(finding.code) or rule.waive
        if finding.outcome is not RuleOutcome.FOUND:
            waiver = None
        severity = rule.severity or finding.severity
        told = replace(finding, severity=severity, waived=waiver)
        # What fails a test is never left out.
        configured.append(replace(told, quiet=False) if told.quiet and told.fails else told)
    return tuple(configured)


def select_rules(
    select: Sequence[str], ignore: Sequence[str], settings: Mapping[str, RuleSettings]
) -> tuple[Group, ...]:
    """Return the rules of some codes, or prefixes of codes, all if none is named, by their needs.

    Raises:
        UsageError: a code that no rule begins with, a limit that a rule does not have, or no rule
            is left.
    """
    limits = tuple((code, tuple(rule.limits.items())) for code, rule in settings.items())
    # Before their plugins are loaded, and on the command line, rules of others are not known.
    named = tuple(code for code in select if not may_be_custom(code))
    if select and not named:
        return ()
    left_out = tuple(code for code in ignore if not may_be_custom(code))
    limits = tuple(each for each in limits if not may_be_custom(each[0]))
    return _select_rules(codes(), named, left_out, limits)


@lru_cache(maxsize=2)  # every test of a process asks for the same, and some for one rule more
def _select_rules(
    known: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    limits: tuple[tuple[str, _Limits], ...],
) -> tuple[Group, ...]:
    for option, named in (("select", select), ("ignore", ignore)):
        for code in named:
            if not any(each.startswith(code) for each in known):
                message = f"{option}: no rule begins with {code!r}; `ttnn-perf rules` lists them"
                raise UsageError(message + did_you_mean(code, known))
    for code, values in limits:
        if code not in known:
            message = f"rules.{code}: there is no such rule; `ttnn-perf rules` lists them"
            raise UsageError(message + did_you_mean(code, known))
        if values:
            rule_of(code).with_limits(**dict(values))
    groups: dict[tuple[Input, ...], list[str]] = {}
    for code in known:
        if code.startswith(select or "") and not code.startswith(ignore):
            groups.setdefault(needs_of(code), []).append(code)
    if not groups:
        some = "none of the rules that select names"
        none = "no rule; to do without the checklist, use --ttnn-perf-checklist off"
        message = f"ignore: {', '.join(ignore)} leaves {some if select else none}"
        raise UsageError(message)
    given = dict(limits)
    return tuple(Group(needs, tuple(alike), given) for needs, alike in groups.items())
