"""Asking rules: every one ends in an outcome, and one that raises is never a pass."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis import rules
from pytest_ttnn_perf.analysis.checklist import runner
from pytest_ttnn_perf.analysis.checklist.runner import (
    Group,
    all_rules,
    ask_rules,
    run_rules,
    select_rules,
)
from pytest_ttnn_perf.core.errors import RuleError, UsageError
from pytest_ttnn_perf.core.finding import (
    MERGED,
    Answer,
    Answers,
    Evidence,
    Input,
    Limit,
    Role,
    Rule,
    RuleOutcome,
    Severity,
    Subject,
    UnansweredRules,
    as_configured,
    rule,
)
from pytest_ttnn_perf.core.observation import Observation
from pytest_ttnn_perf.core.settings import RuleSettings, load_settings
from tests.analysis.rules.tables import op, table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.ops import OpTable

clean, found, not_applicable = Answer.clean, Answer.found, Answer.not_applicable


@rule("TTP398", "of-tests", Severity.WARNING, Input.TEST)
def of_tests(facts: Mapping[str, Scalar]) -> Answer:
    return not_applicable("no trace") if facts else clean(1, limit=2, unit="calls")


@rule("TTP399", "of-tests", Severity.WARNING, Input.TEST)
def raises(subject: Subject) -> Answer:
    return clean(1 / len(subject.facts))


RULES = (of_tests, raises)
MEASURED = Subject(observation=Observation("test"))


@pytest.mark.parametrize(
    ("subject", "outcome", "reason"),
    [
        (MEASURED, RuleOutcome.CLEAN, None),
        (replace(MEASURED, facts={"use_trace": True}), RuleOutcome.NOT_APPLICABLE, "no trace"),
        (Subject(), RuleOutcome.NOT_MEASURED, "needs a measured test"),
        (Subject(absent={Input.TEST: "nothing ran"}), RuleOutcome.NOT_MEASURED, "nothing ran"),
    ],
)
def test_groups_tell_the_same_as_rules_one_by_one(
    subject: Subject,
    outcome: RuleOutcome,
    reason: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It is no rule of ours that a code stands for.
    monkeypatch.setitem(runner._REGISTERED, "TTP398", of_tests)
    groups = (Group((Input.TEST,), ("TTP398",), {}),)
    (alone,) = run_rules([of_tests], subject)
    assert (alone.code, alone.outcome, alone.reason) == ("TTP398", outcome, reason)
    if reason is None:
        assert ask_rules(groups, subject) == Answers((alone,), ())
    else:
        unanswered = UnansweredRules(outcome, reason, ("TTP398",))
        assert ask_rules(groups, subject) == Answers((), (unanswered,))


def test_a_rule_that_raises_is_a_defect_with_its_name() -> None:
    with pytest.raises(RuleError) as raised:
        run_rules(RULES, MEASURED)
    assert str(raised.value) == (
        "rule TTP399 raised ZeroDivisionError: division by zero: a defect of ttnn-perf; ignore "
        "the rule to go on"
    )


def test_the_fix_is_the_first_sentence_of_what_to_do() -> None:
    @rule("TTP398", "documented", Severity.WARNING)
    def documented() -> Answer:
        """Finds.

        ## What to do
        Use `x.y` or
        less. Then look again.

        ## When it is no problem
        Never. Ever.
        """
        return clean()

    assert documented.fix == "Use `x.y` or less."


def test_groups_lose_no_rule_whatever_facts_are_stated() -> None:
    subject = Subject(observation=Observation("test"), facts={"data_parallel": 2})
    groups = select_rules((), (), {})

    answered = ask_rules(groups, subject)

    told = {finding.code: finding.outcome for finding in answered.findings}
    told |= {code: each.outcome for each in answered.unanswered for code in each.codes}
    assert told == {each.code: each.outcome for each in run_rules(all_rules(), subject)}


@rule("ABC301", "many-facts", Severity.INFO, Input.TEST)
def many_facts(
    facts: Mapping[str, Scalar], *, most: Limit = Limit(1, "facts", "a test's own figure")
) -> Answer:
    return most.at_most(len(facts), "there are many facts", (Evidence(name) for name in facts))


def test_a_limit_answers_for_its_rule() -> None:
    two = Subject(observation=Observation("test"), facts={"a": 1, "b": 2})
    evidence = [Evidence("a"), Evidence("b")]
    assert many_facts.check(MEASURED) == clean(0, limit=1, unit="facts")
    assert many_facts.check(two) == found(
        "there are many facts", value=2, limit=1, unit="facts", evidence=evidence
    )
    assert many_facts.with_limits(most=2).check(two) == clean(2, limit=2, unit="facts")
    with pytest.raises(UsageError, match=r"rules\.ABC301: it has no limit 'few'; its limits: most"):
        many_facts.with_limits(few=2)


def test_a_rule_takes_what_there_is() -> None:
    def looks(tensors: object) -> Answer:
        return clean(reason=str(tensors))

    with pytest.raises(
        TypeError, match="ABC302: it takes tensors; there are absent, axes, claimed, "
    ):
        rule("ABC302", "looks", Severity.INFO)(looks)


#: What can be None, by the input that says that it is not.
OPTIONAL = {
    "ops": Input.OPS,
    "report": Input.REPORT,
    "kernels": Input.KERNELS,
    "observation": Input.TEST,
}


@pytest.mark.parametrize("each", all_rules(), ids=lambda each: each.code)
def test_what_a_rule_can_do_without_may_be_none(each: Rule) -> None:
    for name in OPTIONAL.keys() & set(each.inputs):
        is_sure = each.needs == (OPTIONAL[name],)
        assert each.look.__annotations__[name].endswith(" | None") is not is_sure


def test_the_table_of_rules_says_what_files_there_are_and_what_they_need() -> None:
    families = {f"analysis.rules.{module.name}" for module in iter_modules(rules.__path__)}
    assert families == {*runner._MODULES} - {"gate.rules_on_numbers"}
    assert {each.code: each.needs for each in all_rules()} == runner._NEEDS_OF
    for name in runner._MODULES:
        module = vars(import_module(f"pytest_ttnn_perf.{name}"))
        there = {each.code for each in module.values() if isinstance(each, Rule)}
        assert there == {code for code, of in runner._MODULE_OF.items() if of == name}


@pytest.mark.parametrize("role", Role)
def test_roles_are_of_rules_that_exist(role: Role) -> None:
    assert sum(map(role.has, runner.codes())) == len(role.value.split())


def test_a_rule_of_another_project(monkeypatch: pytest.MonkeyPatch) -> None:
    # Codes are listed once, until a plugin registers rules; this rule is of none.
    monkeypatch.setattr(runner, "codes", runner.codes.__wrapped__)
    assert "ABC301" not in runner.codes()
    monkeypatch.setitem(runner._REGISTERED, "ABC301", many_facts)
    (group,) = select_rules(("ABC",), (), {"ABC301": RuleSettings(limits={"most": 3})})
    assert [each.limits["most"].value for each in group.rules] == [3]


@rule("TTP396", "removes-the-first-op", Severity.WARNING, Input.OPS)
def removes_the_first_op(step: OpTable) -> Answer:
    return found("one op").saving({0: step.op(0).kernel_ns, 1: 1e9}, "its time", waiting_ns=50.0)


@rule("TTP397", "halves-all-ops", Severity.WARNING, Input.OPS)
def halves_all_ops(step: OpTable) -> Answer:
    return found("all ops").saving({at: op.kernel_ns / 2 for at, op in enumerate(step)}, "half")


def test_findings_say_what_they_would_save_of_one_step_on_its_slowest_device() -> None:
    replays = [
        op("Unary", ns=ns, device=device, replay=(0, replay), gap_ns=60.0)
        for replay in (1, 2, 3)
        for device, ns in ((0, 400.0), (1, 100.0), (0, 200.0))
    ]
    first, second = run_rules(
        (removes_the_first_op, halves_all_ops), Subject(ops=table(*replays), region="decode")
    )
    assert (first.saving_ns, first.adds_ns, first.arithmetic) == (450.0, 450.0, "its time")
    assert (second.saving_ns, second.adds_ns) == (300.0, 100.0)
    assert first.region == "decode"
    assert first.step_ns == 400.0 + 200.0 + 60.0
    assert run_rules([of_tests], MEASURED)[0].saving_ns is None


@rule("TTP398", "shortens-the-first-op", Severity.WARNING, Input.OPS)
def shortens_the_first_op(step: OpTable) -> Answer:
    first = step.op(0).kernel_ns
    return Limit(0.02, "of a step", "").found(0.3, "an op").saving({0: first * 0.9}, "most of it")


@rule("TTP399", "would-add-little", Severity.WARNING, Input.OPS)
def would_add_little(step: OpTable) -> Answer:
    saved = {0: step.op(0).kernel_ns / 2, 1: step.op(1).kernel_ns * 0.05}
    return Limit(0.03, "of a step", "").found(0.3, "two ops").saving(saved, "half and a bit")


TWO_OPS = Subject(ops=table(op("Matmul", ns=500.0), op("Add", ns=500.0)))


def test_what_another_saves_of_the_same_ops_is_told_with_that_other() -> None:
    """TTP398 makes the op shorter than TTP399 would: of that one, 2.5 % of the step is left."""
    covers, folded = run_rules((shortens_the_first_op, would_add_little), TWO_OPS)
    assert (covers.quiet, covers.also, covers.covered_by) == (False, ("TTP399",), None)
    assert (folded.quiet, folded.also, folded.covered_by) == (True, (), "TTP398")
    assert folded.outcome is RuleOutcome.FOUND
    assert folded.saving_ns == 275.0
    assert folded.adds_ns == pytest.approx(25.0)


def test_what_a_project_waives_covers_nothing() -> None:
    waived, other = run_rules((shortens_the_first_op, would_add_little), TWO_OPS, ("TTP398",))
    assert (other.quiet, other.adds_ns) == (False, 275.0)
    assert waived.adds_ns == pytest.approx(200.0)


def test_upper_bounds_cover_nothing() -> None:
    @rule("TTP393", "bound", Severity.WARNING, Input.OPS)
    def bound(step: OpTable) -> Answer:
        every = dict.fromkeys(range(len(step)), 500.0)
        return found("all").saving(every, "all of it", at_most=True)

    most, other = run_rules((bound, would_add_little), TWO_OPS)
    assert (other.quiet, other.adds_ns) == (False, 275.0)
    assert (most.at_most, most.saving_ns, most.adds_ns) == (True, 1000.0, 725.0)


def test_a_rule_is_told_what_the_others_claim_whatever_its_place() -> None:
    told: list[object] = []

    @rule("TTP300", "looks-at-others", Severity.INFO, Input.OPS)
    def looks(claimed: object) -> Answer:
        told.append(claimed)
        return found("something")

    first, second = run_rules((looks, would_add_little), TWO_OPS)
    assert (first.code, second.code) == ("TTP300", "TTP399")
    assert not first.quiet
    run_rules((looks,), TWO_OPS)
    assert told == [{0: 250.0, 1: 25.0}, None]


def test_what_fails_a_test_has_a_line_however_little_it_adds() -> None:
    findings = run_rules((shortens_the_first_op, would_add_little), TWO_OPS)
    strict = {"TTP399": RuleSettings(severity=Severity.ERROR)}
    assert [each.quiet for each in findings] == [False, True]
    assert [each.quiet for each in as_configured(findings, strict)] == [False, False]


@pytest.mark.parametrize(("old", "new"), MERGED.items())
def test_a_merged_rule_answers_to_its_old_code(old: str, new: str, tmp_path: Path) -> None:
    assert old not in runner.codes()
    (group,) = select_rules((old,), (), {})
    assert group.codes == (new,)
    left = select_rules((), (old,), {})
    assert all(new not in group.codes for group in left)
    (tmp_path / "ttnn_perf.toml").write_text(f"[rules.{old}]\nwaive = 'wanted'\n")
    assert load_settings(tmp_path).rules[new].waive == "wanted"
