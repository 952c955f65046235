"""Select rules, ask them, and weigh their findings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.finding import (
    OURS,
    RULE_CODE,
    Answer,
    Answers,
    Family,
    Finding,
    Input,
    Rule,
    RuleOutcome,
    Severity,
    Subject,
    UnansweredRules,
    as_configured,
    current_code,
    family_of,
    finding_of,
)
from pytest_ttnn_perf.core.metric import IO_COMPUTE_TIME, KERNEL_TIME
from pytest_ttnn_perf.core.text import did_you_mean, text_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import Saving
    from pytest_ttnn_perf.core.observation import Observation
    from pytest_ttnn_perf.core.settings import RuleSettings, Settings


#: The modules of our rules, by the numbers of their codes.
_MODULES: Final = {
    "analysis.rules.every_test": "001 004 402 908",
    "analysis.rules.validity": "002 007 010 011 012 016",
    "analysis.rules.formats": "101 103 104 105",
    "analysis.rules.layouts": "202 203",
    "analysis.rules.memory": "302 303",
    "analysis.rules.cores": "305 307 308 309 315 317 320 321",
    "analysis.rules.matmul": "310 311 314 316",
    "analysis.rules.host": "401 403 405 406 407 504 505",
    "analysis.rules.conv": "601 603 605 607 608",
    "analysis.rules.mesh": "701 702 703 704",
    "analysis.rules.kernels": "801 803 804 805 806 807 808 809 810 811",
    "gate.rules_on_numbers": "003 006 013 017 404 502 503 901 902 905 906 907 909",
}
#: What they need, as their decorators say: a module is imported for a test that has such an input.
_NEEDS: Final = {
    (): "004 006",
    (Input.OPS,): (
        "002 007 010 011 012 103 104 202 203 305 307 308 309 310 311 314 "
        "315 316 317 320 321 401 403 601 603 605 607 608 703 704"
    ),
    (Input.OPS, Input.KERNELS): "303",
    (Input.OPS, Input.REPORT): "302",
    (Input.OPS, Input.TEST): "402",
    (Input.REPORT, Input.OPS): "101",
    (Input.REPORT,): "016 504 505",
    (Input.KERNELS,): "801 803 804 805 806 807 808 809 810 811",
    (Input.TEST, Input.KERNELS): "001",
    (Input.TEST,): "003 017 404 502 503 901 902 905 906 907 909",
    (Input.DEVICE,): "105 405 406 407 701 702",
    (Input.SWEEP,): "013",
    (Input.HELPERS,): "908",
}
_MODULE_OF: Final = {f"{OURS}{n}": key for key, codes in _MODULES.items() for n in codes.split()}
_NEEDS_OF: Final = {f"{OURS}{n}": key for key, codes in _NEEDS.items() for n in codes.split()}
#: Rules of other projects, by their code.
_REGISTERED: Final[dict[str, Rule]] = {}
#: Whether the rules of other projects are known in this process.
_known = False

#: The beginning of a code that is not ours.
_PREFIX: Final = re.compile(rf"(?!{OURS})[A-Z]{{3}}\d{{0,3}}")
#: What adds less of a step is below what two runs of it differ by, and not worth a line.
_WORTH_A_LINE: Final = 0.01


@cache  # until other rules are registered
def codes() -> tuple[str, ...]:
    """Return the codes of all rules in their order."""
    return tuple(sorted((*_MODULE_OF, *_REGISTERED)))


def rule_of(code: str) -> Rule:
    """Return the rule of a code, one of ``codes``."""
    return _REGISTERED.get(code) or _rules_in(_MODULE_OF[code])[code]


@cache
def _rules_in(module: str) -> dict[str, Rule]:
    found = vars(import_module(f"pytest_ttnn_perf.{module}")).values()
    return {each.code: each for each in found if isinstance(each, Rule)}


def all_rules() -> tuple[Rule, ...]:
    """Return all rules in the order of their codes."""
    return tuple(map(rule_of, codes()))


class CustomRule(Struct, frozen=True):
    """A rule of a project, asked for tests with its inputs.

    ``code`` is three letters of your own and three digits, the first of which is the step of
    optimizing a model that the rule belongs to, as in our codes. ``fix`` is a sentence of advice.
    """

    code: str
    name: str
    severity: Severity
    check: Callable[[Subject], Answer]
    fix: str = ""
    needs: tuple[Input, ...] = ()

    def problem(self) -> str | None:
        code = str(self.code)
        severity: object = self.severity  # all of these are what somebody else has given
        check: object = self.check
        needs: object = self.needs
        if not RULE_CODE.fullmatch(code):
            return f"a code is three capital letters and three digits, found {self.code!r}"
        if code.startswith(OURS):
            return f"{code}: codes that begin with {OURS} are those of ttnn-perf"
        if not str(self.name).strip():
            return f"{code}: expected a name, found {self.name!r}"
        if not isinstance(severity, Severity):
            return f"{code}: expected a severity, found {severity!r}"
        if not callable(check):
            return f"{code}: expected a function of a subject as check, found {check!r}"
        if not isinstance(needs, tuple) or not all(isinstance(each, Input) for each in needs):
            return f"{code}: expected a tuple of Input as needs, found {needs!r}"
        return None


def use_custom_rules(rules: Sequence[CustomRule] | None) -> None:
    """Register rules of other plugins.

    None: rules of others are not known in this process, or not yet. Codes that may be theirs are
    not refused then.
    """
    global _known  # noqa: PLW0603 (a process has one set of rules, as it has one registry)
    _known = rules is not None
    _REGISTERED.clear()
    _REGISTERED.update((rule.code, _as_rule(rule)) for rule in rules or ())
    codes.cache_clear()


def may_be_custom(code: str) -> bool:
    """Return whether a code or prefix may be of an unknown plugin."""
    if _known or not _PREFIX.fullmatch(code):
        return False
    return not any(known.startswith(code) for known in codes())


def _as_rule(custom: CustomRule) -> Rule:
    """Wrap a rule of others, whose mistakes fail the test."""

    def look(subject: Subject) -> Answer:
        try:
            answer: object = custom.check(subject)
        except Exception as error:  # noqa: BLE001 (a rule of others may raise anything)
            wrong = f"raised {type(error).__name__}: {text_of(error)}"
        else:
            if isinstance(answer, Answer):
                return answer
            wrong = f"returned {type(answer).__name__} instead of an Answer"
        return Answer(RuleOutcome.FOUND, f"the rule {wrong}", severity=Severity.ERROR)

    look.__doc__ = f"A rule of another plugin.\n\n## What to do\n\n{custom.fix}"
    return Rule(custom.code, custom.name, custom.severity, custom.needs, look, ("subject",), {})


#: Whether a rule is asked, by its code and needs.
_Asked = Callable[[str, tuple[Input, ...]], bool]


class Group(NamedTuple):
    """Rules that need the same, imported when a test has it."""

    needs: tuple[Input, ...]
    codes: tuple[str, ...]
    settings: Mapping[str, RuleSettings]

    def only(self, wanted: _Asked) -> Group:
        """Return the rules that are wanted, by code and needs."""
        return self._replace(codes=tuple(code for code in self.codes if wanted(code, self.needs)))

    @property
    def rules(self) -> Iterator[Rule]:
        """The rules, with the limits that the project sets."""
        for code in self.codes:
            own = self.settings.get(code)
            yield rule_of(code).with_limits(**own.limits) if own else rule_of(code)


def select_rules(
    select: Sequence[str], ignore: Sequence[str], settings: Mapping[str, RuleSettings]
) -> tuple[Group, ...]:
    """Return the selected rules, all without a selection, grouped by needs.

    Raises:
        UsageError: a code that no rule begins with, a limit that a rule does not have, or no rule
            is left.
    """
    known = codes()
    # Before their plugins are loaded, and on the command line, rules of others are not known.
    chosen = tuple(current_code(code) for code in select if not may_be_custom(code))
    if select and not chosen:
        return ()
    left_out = tuple(current_code(code) for code in ignore if not may_be_custom(code))
    for option, named in (("select", chosen), ("ignore", left_out)):
        for code in named:
            if not any(each.startswith(code) for each in known):
                message = f"{option}: no rule begins with {code!r}; `ttnn-perf rules` lists them"
                raise UsageError(message + did_you_mean(code, known))
    for code, own in settings.items():
        if code not in known and not may_be_custom(code):
            message = f"rules.{code}: there is no such rule; `ttnn-perf rules` lists them"
            raise UsageError(message + did_you_mean(code, known))
        if code in known and own.limits:
            rule_of(code).with_limits(**own.limits)
    groups: dict[tuple[Input, ...], list[str]] = {}
    for code in known:
        if code.startswith(chosen or "") and not code.startswith(left_out):
            needs = _REGISTERED[code].needs if code in _REGISTERED else _NEEDS_OF[code]
            groups.setdefault(needs, []).append(code)
    if not groups:
        some = "none of the rules that select names"
        none = "no rule; to do without the checklist, use --ttnn-perf-checklist off"
        message = f"ignore: {', '.join(left_out)} leaves {some if chosen else none}"
        raise UsageError(message)
    return tuple(Group(needs, tuple(alike), settings) for needs, alike in groups.items())


def run_rules(
    rules: Iterable[Rule], subject: Subject, waived: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Return a finding per rule; ``waived`` rules claim no saving."""
    listed = list(rules)
    answers: dict[str, tuple[Rule, Answer]] = {}
    # Rules on what others claim come last.
    for rule in sorted(listed, key=lambda rule: rule.looks_at_others):
        absent = subject.why_absent(*rule.needs)
        seen = _with_claims(subject, answers.values()) if rule.looks_at_others else subject
        answer = Answer.not_measured(absent) if absent else rule.check(seen)
        answers[rule.code] = (rule, answer)
    return _findings([answers[rule.code] for rule in listed], subject, waived)


def ask_rules(groups: Iterable[Group], subject: Subject, waived: Collection[str] = ()) -> Answers:
    """Return the findings, and the reasons of rules without an answer."""
    without: dict[tuple[RuleOutcome, str], tuple[str, ...]] = defaultdict(tuple)
    rules: list[Rule] = []
    for group in groups:
        if absent := subject.why_absent(*group.needs):
            without[RuleOutcome.NOT_MEASURED, absent] += group.codes
        else:
            rules += group.rules
    told: list[Finding] = []
    for finding in run_rules(rules, subject, waived):
        if finding.outcome in {RuleOutcome.FOUND, RuleOutcome.CLEAN}:
            told.append(finding)
        else:
            without[finding.outcome, finding.reason or ""] += (finding.code,)
    region = subject.region
    unanswered = (UnansweredRules(*why, codes, region) for why, codes in without.items() if codes)
    return Answers(tuple(told), tuple(unanswered))


def run_in_regions(
    rules: Sequence[Rule], subject: Subject, waived: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Return findings: of rules on ops by region, of others once."""
    return tuple(
        finding
        for part, asked in _parts(subject)
        for finding in run_rules([one for one in rules if asked(one.code, one.needs)], part, waived)
    )


def ask_in_regions(
    groups: Sequence[Group], subject: Subject, waived: Collection[str] = ()
) -> Answers:
    """Ask rules on ops for each region, the others once."""
    answered = [
        ask_rules([group.only(asked) for group in groups], part, waived)
        for part, asked in _parts(subject)
    ]
    return Answers(
        tuple(chain.from_iterable(one.findings for one in answered)),
        tuple(chain.from_iterable(one.unanswered for one in answered)),
    )


def _parts(subject: Subject) -> list[tuple[Subject, _Asked]]:
    """Return the parts of a subject, with the rules asked of each."""
    regions = in_regions(subject)
    if regions == (subject,):
        return [(subject, lambda *_: True)]
    once = (subject, lambda code, needs: not _looks_at_regions(code, needs))
    return [once, *((region, _looks_at_regions) for region in regions)]


def _looks_at_regions(code: str, needs: tuple[Input, ...]) -> bool:
    # Whether a capture is valid is asked of it as a whole.
    return Input.OPS in needs and not Family.VALIDITY.has(code)


def find(subject: Subject, settings: Settings) -> Answers:
    """Ask the selected rules on captures; the gate asks those on numbers."""
    groups = [
        group.only(lambda code, _: _MODULE_OF.get(code) != "gate.rules_on_numbers")
        for group in select_rules(settings.select, settings.ignore, settings.rules)
    ]
    waived = subject.observation.waived if subject.observation else {}
    by_project = {code for code, rule in settings.rules.items() if rule.waive}
    answered = ask_in_regions(groups, subject, by_project | waived.keys())
    return answered._replace(findings=as_configured(answered.findings, settings.rules, waived))


def check_observation(
    observation: Observation, subject: Subject, settings: Settings
) -> Observation:
    """Add findings, the bottleneck and the kind of model."""
    findings, unanswered = find(subject, settings)
    checked = replace(observation, findings=findings, unanswered=unanswered)
    timed = not observation.metrics.keys().isdisjoint({KERNEL_TIME, IO_COMPUTE_TIME})
    if subject.ops is None and subject.kernels is None and not timed:
        return checked  # a time alone does not tell what it is made of
    from pytest_ttnn_perf.analysis.checklist.bottleneck import held_back

    bottleneck, kind = held_back(subject, settings.rules)
    return replace(checked, bottleneck=bottleneck, model_kind=kind.value if kind else None)


def trusted(subject: Subject) -> Subject:
    """Return a subject without an op table that is invalid."""
    if subject.ops is None:
        return subject
    from pytest_ttnn_perf.analysis.ops.regions import why_invalid

    flaw = why_invalid(subject.ops)
    if flaw is None:
        return subject
    why = f"no number of the op table can be trusted: {flaw}"
    return replace(subject, ops=None, absent={**subject.absent, Input.OPS: why})


def in_regions(subject: Subject) -> tuple[Subject, ...]:
    """Return a subject for each region of its op table."""
    subject = trusted(subject)
    if subject.ops is None or subject.region:
        return (subject,)
    from pytest_ttnn_perf.analysis.ops.regions import Basis, region_tables, regions_of

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


def _with_claims(subject: Subject, answers: Iterable[tuple[Rule, Answer]]) -> Subject:
    """Return a subject with what findings would save of its ops."""
    listed = list(answers)
    if not any(_advises(rule) for rule, _ in listed):
        return subject
    claimed: dict[int, float] = {}
    for _, answer in listed:
        for row, ns in answer.savings.items():
            claimed[row] = max(claimed.get(row, 0.0), ns)
    return replace(subject, claimed=claimed)


def _advises(rule: Rule) -> bool:
    return Input.OPS in rule.needs and family_of(rule.code).is_advice


def _findings(
    answers: Sequence[tuple[Rule, Answer]], subject: Subject, waived: Collection[str]
) -> tuple[Finding, ...]:
    found = [(rule, answer) for rule, answer in answers if answer.outcome is RuleOutcome.FOUND]
    savings: Mapping[str, Saving] = {}
    kernels_ns = gaps_ns = 0.0
    if found and (subject.ops is not None or any(one.arithmetic for _, one in found)):
        from pytest_ttnn_perf.analysis.checklist.savings import (
            Claim,
            critical_ns,
            rank_savings,
            told_gaps_ns,
        )
        from pytest_ttnn_perf.analysis.ops.regions import step_of

        times_ns = {} if subject.ops is None else critical_ns(step_of(subject.ops))
        kernels_ns = sum(times_ns.values())
        gaps_ns = told_gaps_ns(subject) or 0.0
        claims = {
            rule.code: Claim(
                one.savings, one.waiting_ns, one.at_most or rule.code in waived, one.always_told
            )
            for rule, one in found
            if one.arithmetic is not None
        }
        savings = rank_savings(claims, times_ns, gaps_ns)
    step_ns = kernels_ns + gaps_ns if kernels_ns else None
    region = subject.region
    told = tuple(
        _weighed(finding_of(rule, one, region=region), savings.get(rule.code), step_ns)
        for rule, one in answers
    )
    if not kernels_ns:
        return told
    may_fold = {
        rule.code
        for rule, one in found
        if _advises(rule) and not rule.looks_at_others and not one.always_told
    }
    return _folded(told, may_fold, savings, kernels_ns)


def _weighed(finding: Finding, saving: Saving | None, step_ns: float | None) -> Finding:
    if saving is None:
        return finding
    saved = saving._asdict()
    del saved["taken_ns"]
    return replace(finding, **saved, step_ns=step_ns)


def _folded(
    findings: Sequence[Finding],
    may_fold: Collection[str],
    savings: Mapping[str, Saving],
    kernels_ns: float,
) -> tuple[Finding, ...]:
    """Mark findings that add too little for a line.

    One that would save what another saves of the same ops is named in the line of that other.
    """
    order = {code: place for place, code in enumerate(savings)}
    told_with: dict[str, str] = {}
    folded: dict[str, str | None] = {}
    for finding in sorted(findings, key=lambda one: order.get(one.code, len(order))):
        code, saving = finding.code, savings.get(finding.code)
        if code not in may_fold:
            continue
        # A finding is worth a line by its own limit, if that is of a step.
        limit = finding.limit if finding.unit == "of a step" else None
        worth_ns = max(_WORTH_A_LINE, limit or 0.0) * kernels_ns
        if finding.fails or (saving is not None and saving.adds_ns >= worth_ns):
            told_with[code] = code
            continue
        folded[code] = None
        if saving is not None and saving.saving_ns >= worth_ns:
            taken_ns: dict[str, float] = defaultdict(float)
            for other, ns in saving.taken_ns.items():
                if other in told_with:
                    taken_ns[told_with[other]] += ns
            if taken_ns:
                told_with[code] = folded[code] = max(taken_ns, key=taken_ns.__getitem__)
    also: dict[str, list[str]] = defaultdict(list)
    for code in sorted(folded):
        also[folded[code] or ""].append(code)
    return tuple(
        replace(
            finding,
            quiet=finding.code in folded,
            covered_by=folded.get(finding.code),
            also=tuple(also.get(finding.code, ())),
        )
        for finding in findings
    )
