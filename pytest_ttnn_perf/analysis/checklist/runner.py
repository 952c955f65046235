"""The rules there are, ours and those of other projects: selects them, and asks about a test."""

from __future__ import annotations

import re
from functools import cache, cached_property, lru_cache
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from pytest_ttnn_perf.core.errors import RuleError, UsageError
from pytest_ttnn_perf.core.finding import (
    Answer,
    Answered,
    Basis,
    Input,
    Rule,
    RuleOutcome,
    Severity,
    Unanswered,
    finding_of,
)
from pytest_ttnn_perf.core.settings import RuleSettings
from pytest_ttnn_perf.core.text import did_you_mean, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import Saving
    from pytest_ttnn_perf.core.finding import CustomRule, Finding, Subject
    from pytest_ttnn_perf.core.settings import Settings


# Makes findings of what rules answer: what each saves beside the others, and who has a line.

#: The first digits of the rules that say how a model gets faster.
_ADVICE: Final = "12345678"
#: What adds less of a step is below what two runs of it differ by, and not worth a line.
_WORTH_A_LINE: Final = 0.01
#: The unit of limits that are shares of a step.
_OF_A_STEP: Final = "of a step"


def beside(subject: Subject, answers: Iterable[tuple[Rule, Answer]]) -> Subject:
    """Return a subject with what findings would save of its ops."""
    listed = list(answers)
    if not any(map(_advises, (rule for rule, _ in listed))):
        return subject
    claimed: dict[int, float] = {}
    for _, answer in listed:
        for row, ns in answer.savings.items():
            claimed[row] = max(claimed.get(row, 0.0), ns)
    return replace(subject, claimed=claimed)


def findings_of(
    answers: Sequence[tuple[Rule, Answer]], subject: Subject, waived: Collection[str]
) -> tuple[Finding, ...]:
    """Return answers as findings, with what each would save beside the others.

    Those of ``waived`` rules save nothing of what others would.
    """
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
            rule.code: Claim(one.savings, one.waiting_ns, one.at_most or rule.code in waived)
            for rule, one in found
            if one.arithmetic is not None
        }
        savings = rank_savings(claims, times_ns, gaps_ns)
    told = [
        finding_of(
            rule,
            answer,
            region=subject.region,
            saving=savings.get(rule.code),
            step_ns=kernels_ns + gaps_ns if kernels_ns else None,
        )
        for rule, answer in answers
    ]
    if not kernels_ns:
        return tuple(told)
    may_fold = {rule.code: rule for rule, answer in answers if not answer.always_told}
    return _folded(told, may_fold, savings, kernels_ns)


def _folded(
    findings: Sequence[Finding],
    may_fold: Mapping[str, Rule],
    savings: Mapping[str, Saving],
    kernels_ns: float,
) -> tuple[Finding, ...]:
    """Return findings, those that add too little for a line of their own marked as such.

    One that would save what another saves of the same ops is named in the line of that other.
    """
    order = {code: place for place, code in enumerate(savings)}
    told_with: dict[str, str] = {}
    folded: dict[str, str | None] = {}
    for finding in sorted(findings, key=lambda one: order.get(one.code, len(order))):
        code, saving, rule = finding.code, savings.get(finding.code), may_fold.get(finding.code)
        if finding.outcome is not RuleOutcome.FOUND or rule is None:
            continue
        if not _advises(rule) or rule.looks_at_others:
            continue
        worth_ns = _worth_ns(finding, kernels_ns)
        if finding.fails or (saving is not None and saving.adds_ns >= worth_ns):
            told_with[code] = code
            continue
        folded[code] = None
        if saving is not None and saving.saving_ns >= worth_ns:
            folded[code] = _most(saving.taken_ns, told_with)
        by = folded[code]
        if by is not None:
            told_with[code] = by
    return tuple(_marked(finding, folded) for finding in findings)


def _most(taken_ns: Mapping[str, float], told_with: Mapping[str, str]) -> str | None:
    """Return the finding with a line that saves most of what another would."""
    by: dict[str, float] = {}
    for code, ns in taken_ns.items():
        if code in told_with:
            by[told_with[code]] = by.get(told_with[code], 0.0) + ns
    return max(by, key=lambda code: by[code], default=None)


def _marked(finding: Finding, folded: Mapping[str, str | None]) -> Finding:
    code = finding.code
    also = tuple(sorted(other for other, by in folded.items() if by == code))
    if code not in folded and not also:
        return finding
    return replace(finding, quiet=code in folded, covered_by=folded.get(code), also=also)


def _advises(rule: Rule) -> bool:
    """Tell whether a rule is to make the ops of a step shorter."""
    return Input.OPS in rule.needs and rule.code[3] in _ADVICE


def _worth_ns(finding: Finding, kernels_ns: float) -> float:
    """Return what a finding must add to be worth a line: its own limit, if that is of a step."""
    limit = finding.limit if finding.unit == _OF_A_STEP else None
    return max(_WORTH_A_LINE, limit or 0.0) * kernels_ns


# One rule per file, named by its code; and what they need, to be known without importing them.

#: Our rules by module: the function of each code and what it needs, as its decorator says. A
#: module is imported for a test that has an input which one of its rules needs.
RULES: Final[dict[str, dict[str, tuple[str, tuple[Input, ...]]]]] = {
    "analysis.rules.conv": {
        "TTP601": (
            "conv_sharding_changes",
            (
                Input.OPS,
                Input.REPORT,
            ),
        ),
        "TTP602": (
            "act_block_h_below_max",
            (
                Input.OPS,
                Input.REPORT,
            ),
        ),
        "TTP603": (
            "act_double_buffer_off",
            (
                Input.OPS,
                Input.REPORT,
            ),
        ),
        "TTP604": (
            "weights_double_buffer_off",
            (
                Input.OPS,
                Input.REPORT,
            ),
        ),
        "TTP605": (
            "batchnorm_not_folded",
            (
                Input.OPS,
                Input.REPORT,
            ),
        ),
        "TTP606": (
            "conv_sharding_unsuited",
            (
                Input.OPS,
                Input.REPORT,
            ),
        ),
        "TTP607": ("low_conv_efficiency", (Input.OPS,)),
        "TTP608": ("sliced_convolutions", (Input.OPS,)),
    },
    "analysis.rules.cores": {
        "TTP305": ("unused_cores", (Input.OPS,)),
        "TTP306": ("core_skew", (Input.OPS,)),
        "TTP307": ("data_movement", (Input.OPS,)),
        "TTP308": ("slow_searches", (Input.OPS,)),
        "TTP309": ("loops_of_small_ops", (Input.OPS,)),
        "TTP310": ("unfused_activations", (Input.OPS,)),
        "TTP315": ("unexplained_time", (Input.OPS,)),
        "TTP320": ("dense_experts", (Input.OPS,)),
        "TTP321": ("slower_than_alike", (Input.OPS,)),
    },
    "analysis.rules.formats": {
        "TTP101": (
            "weights_not_bfloat8",
            (
                Input.REPORT,
                Input.OPS,
            ),
        ),
        "TTP102": (
            "float32_tensors",
            (
                Input.OPS,
                Input.REPORT,
            ),
        ),
        "TTP103": ("fidelity_above_need", (Input.OPS,)),
        "TTP104": ("activations_not_bfloat8", (Input.OPS,)),
        "TTP105": ("bfp8_without_bfloat16_cast", (Input.DEVICE,)),
    },
    "analysis.rules.host": {
        "TTP401": ("host_bound", (Input.OPS,)),
        "TTP402": (
            "trace_not_used",
            (
                Input.OPS,
                Input.TEST,
            ),
        ),
        "TTP403": ("dynamic_shapes", (Input.OPS,)),
        "TTP405": ("trace_region_missing", (Input.DEVICE,)),
        "TTP406": ("program_cache_off", (Input.DEVICE,)),
        "TTP407": ("optimization_level_zero", (Input.DEVICE,)),
        "TTP504": ("padded_host_transfer", (Input.REPORT,)),
        "TTP505": ("output_on_compute_queue", (Input.REPORT,)),
    },
    "analysis.rules.kernels": {
        "TTP801": ("grid_underused", (Input.KERNELS,)),
        "TTP803": ("small_transfers", (Input.KERNELS,)),
        "TTP804": ("bound", (Input.KERNELS,)),
        "TTP805": ("barrier_per_transfer", (Input.KERNELS,)),
        "TTP806": ("low_dram_bandwidth", (Input.KERNELS,)),
        "TTP807": ("uneven_cores", (Input.KERNELS,)),
        "TTP808": ("threads_take_turns", (Input.KERNELS,)),
        "TTP809": ("tiles_read_again", (Input.KERNELS,)),
    },
    "analysis.rules.layouts": {
        "TTP201": (
            "row_major_compute",
            (
                Input.OPS,
                Input.REPORT,
            ),
        ),
        "TTP202": (
            "tile_padding",
            (
                Input.OPS,
                Input.REPORT,
            ),
        ),
        "TTP203": (
            "layout_conversions",
            (
                Input.OPS,
                Input.REPORT,
            ),
        ),
    },
    "analysis.rules.matmul": {
        "TTP311": ("matmul_not_dram_sharded", (Input.OPS,)),
        "TTP312": ("small_matmul_blocks", (Input.OPS,)),
        "TTP313": ("matmul_without_program_config", (Input.OPS,)),
        "TTP314": ("low_matmul_efficiency", (Input.OPS,)),
    },
    "analysis.rules.memory": {
        "TTP301": (
            "interleaved_activations",
            (
                Input.OPS,
                Input.REPORT,
            ),
        ),
        "TTP302": (
            "resharding",
            (
                Input.OPS,
                Input.REPORT,
            ),
        ),
        "TTP303": (
            "hot_data_in_dram",
            (
                Input.OPS,
                Input.REPORT,
            ),
        ),
        "TTP304": ("low_l1_headroom", (Input.REPORT,)),
    },
    "analysis.rules.mesh": {
        "TTP701": ("batch_not_divisible", (Input.DEVICE,)),
        "TTP702": ("weights_not_replicated", (Input.DEVICE,)),
        "TTP703": ("collective_share", (Input.OPS,)),
        "TTP704": ("device_imbalance", (Input.OPS,)),
    },
    "analysis.rules.validity": {
        "TTP001": (
            "profiler_data_dropped",
            (
                Input.TEST,
                Input.KERNELS,
            ),
        ),
        "TTP002": ("incomplete_trace_replay", (Input.OPS,)),
        "TTP005": ("many_kernel_invocations", (Input.KERNELS,)),
        "TTP007": ("host_fallback", (Input.OPS,)),
        "TTP008": ("durations_alike", (Input.OPS,)),
        "TTP009": ("no_processor_times", (Input.OPS,)),
        "TTP010": ("ops_without_time", (Input.OPS,)),
        "TTP011": ("devices_differ", (Input.OPS,)),
        "TTP012": ("stale_shapes", (Input.OPS,)),
        "TTP016": ("operation_failed", (Input.REPORT,)),
    },
    "gate.rules_on_numbers": {
        "TTP003": ("cold_samples", (Input.TEST,)),
        "TTP004": ("conflicting_environment", ()),
        "TTP006": ("busy_host", ()),
        "TTP013": ("axis_without_effect", (Input.SWEEP,)),
        "TTP017": ("nothing_gated", (Input.TEST,)),
        "TTP404": ("device_behind_e2e", (Input.TEST,)),
        "TTP501": ("one_command_queue", (Input.DEVICE,)),
        "TTP502": ("low_io_overlap", (Input.TEST,)),
        "TTP503": ("transfer_bound", (Input.TEST,)),
        "TTP901": ("pcc_below_limit", (Input.TEST,)),
        "TTP902": ("pcc_not_checked", (Input.TEST,)),
        "TTP903": ("non_finite_output", (Input.TEST,)),
        "TTP904": ("pcc_dropped", (Input.TEST,)),
        "TTP905": ("target_missed", (Input.TEST,)),
        "TTP906": ("pcc_limit_lowered", (Input.TEST,)),
        "TTP907": ("pcc_error_grew", (Input.TEST,)),
        "TTP908": ("helper_pcc_differs", (Input.HELPERS,)),
    },
}


#: The beginning of the codes of rules that ask whether a capture can be trusted.
_VALIDITY: Final = "TTP0"
#: The first digit of a code tells its step.
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
    entry = _modules()[code]
    found: Rule = getattr(import_module(f"pytest_ttnn_perf.{entry.module}"), entry.name)
    return found


def needs_of(code: str) -> tuple[Input, ...]:
    """Return what the rule of a code needs, without importing it."""
    return _REGISTERED[code].needs if code in _REGISTERED else _modules()[code].needs


def all_rules() -> tuple[Rule, ...]:
    """Return all rules in the order of their codes."""
    return tuple(map(rule_of, codes()))


class _Module(NamedTuple):
    module: str
    name: str
    needs: tuple[Input, ...]


@cache
def _modules() -> Mapping[str, _Module]:
    """Return where our rules are, by code."""
    return {
        code: _Module(module, name, needs)
        for module, rules in RULES.items()
        for code, (name, needs) in rules.items()
    }


#: The beginning of a code that is not ours.
_PREFIX: Final = re.compile(r"(?!TTP)[A-Z]{3}\d{0,3}")


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


def run_rules(
    rules: Iterable[Rule], subject: Subject, waived: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Return the finding of every rule; those of ``waived`` rules save nothing of the others.

    Raises:
        RuleError: one raised.
    """
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


def find(subject: Subject, settings: Settings, *, only: Input | None = None) -> Answered:
    """Ask the rules that a project selects; with ``only``, those that need just that input."""
    groups = select_rules(settings.select, settings.ignore, settings.rules)
    if only is not None:
        groups = tuple(group for group in groups if group.needs == (only,))
    waived = subject.observation.waived if subject.observation else {}
    by_project = {code for code, rule in settings.rules.items() if rule.waive}
    answered = ask_in_regions(groups, subject, by_project | waived.keys())
    return answered._replace(findings=as_configured(answered.findings, settings.rules, waived))


def trusted(subject: Subject) -> Subject:
    """Return a subject without an op table of which no number can be trusted.

    Only the rules of validity look at such a table.
    """
    if subject.ops is None:
        return subject
    from pytest_ttnn_perf.analysis.ops.validity import why_invalid

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
