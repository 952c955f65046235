"""Plans: order, overlaps, intervals, the roofline, targets; on known chips and real captures."""

from __future__ import annotations

import json
from random import Random
from statistics import median
from typing import Any

import pytest

from pytest_ttnn_perf.analysis.captures.ops_csv import read_ops_csv
from pytest_ttnn_perf.analysis.checklist.plan import (
    Chance,
    Plan,
    Span,
    Start,
    plan_of,
    reach_of,
    span_of,
)
from pytest_ttnn_perf.analysis.checklist.plan_start import Aim, aims_of, start_of
from pytest_ttnn_perf.analysis.checklist.runner import all_rules, in_regions, rule_of, run_rules
from pytest_ttnn_perf.analysis.checklist.track_record import (
    CEILINGS,
    PAIRS,
    Pair,
    spread_from,
    spread_of,
)
from pytest_ttnn_perf.analysis.ops.ideal import ideal_of_step
from pytest_ttnn_perf.cli.plan import reach_of_aim
from pytest_ttnn_perf.observe.series import metric_of
from pytest_ttnn_perf.records.finding import Finding, RuleOutcome, Severity, Subject
from pytest_ttnn_perf.records.metric import Kind, Source
from pytest_ttnn_perf.records.observation import Limits, MetricObservation, Observation
from pytest_ttnn_perf.report.numbers import json_text
from pytest_ttnn_perf.report.plan import MOST_BYTES, Planned, bounded_document
from tests.harness.corpus import corpus
from tests.harness.plan_coverage import WAYS, Way, coverage
from tests.rules.tables import op, table, tensor
from tests.rules.test_verified_savings import savings

__all__ = ["savings"]  # a fixture
MOST = spread_of("TTP102").high
LEAST = spread_of("TTP102").low


def finding(code: str, saves: float, adds: float | None = None, **more: Any) -> Finding:
    told = {"name": f"rule-{code}", "saving_ns": saves, "of_ns": 1e9, **more}
    told.setdefault("adds_ns", saves if adds is None else adds)
    return Finding(code, severity=Severity.WARNING, outcome=RuleOutcome.FOUND, **told)


def plan(*findings: Finding, now: float = 1000.0, ideal: float | None = 100.0) -> Plan:
    return plan_of(findings, Start("decode", now, ideal))


def test_steps_add_up_and_each_begins_where_the_last_ended() -> None:
    made = plan(finding("TTP305", 90.0, 40.0), finding("TTP102", 200.0))
    assert [step.finding.code for step in made.steps] == ["TTP102", "TTP305"]
    assert [step.left.estimate_ns for step in made.steps] == [800.0, 760.0]
    assert made.steps[1].alone_ns == 90.0
    assert made.saves == pytest.approx((240 * LEAST, 240.0, 240 * MOST))
    assert made.left == pytest.approx((1000 - 240 * MOST, 760.0, 1000 - 240 * LEAST))


def test_no_step_saves_more_than_its_ops_take() -> None:
    (step,) = plan(finding("TTP102", 200.0, of_ns=210.0)).steps
    assert step.saves.high_ns == 210.0


def test_noise_widens_intervals_of_what_is_measured() -> None:
    def saves(noise: float, repeats: int = 1) -> Span:
        start = Start("decode", 1000.0, 100.0, noise_ns=noise, repeats=repeats)
        return plan_of([finding("TTP302", 200.0, of_ns=200.0)], start).steps[0].saves

    still, noisy, often = saves(0.0), saves(10.0), saves(10.0, 100)
    assert still == pytest.approx((200 * LEAST, 200.0, 200.0))
    assert still.high_ns < often.high_ns < noisy.high_ns < 200 + 1.29 * 10 * 2.2**0.5
    assert saves(500.0).low_ns == 0.0


def test_a_tenth_of_what_is_measured_lies_beyond_each_end() -> None:
    rng = Random(1)
    outcomes = sorted(rng.lognormvariate(0, 0.5) * 100 for _ in range(50))
    low, _, high = span_of(outcomes, 100.0, noise_ns=30.0)
    drawn = [rng.choice(outcomes) + rng.gauss(0, 30.0) for _ in range(20_000)]
    assert sum(one < low for one in drawn) / len(drawn) == pytest.approx(0.1, abs=0.01)
    assert sum(one > high for one in drawn) / len(drawn) == pytest.approx(0.1, abs=0.01)


def test_what_steps_differ_in_is_seen_where_there_are_several() -> None:
    row = tensor(1, 1, 32, 4096)
    times = ((100.0, 300.0), (104.0, 300.0), (96.0, 300.0))
    rows = [
        op("Unary", [row], [row], ns=ns, replay=(1, number))
        for number, step in enumerate(times, start=1)
        for ns in step
    ]
    start = start_of(Subject(ops=table(*rows)), {})
    alone = start_of(Subject(ops=table(*rows[:2])), {})
    assert start is not None
    assert alone is not None
    assert (start.now_ns, start.repeats) == (400.0, 3)
    assert start.noise_ns == pytest.approx(((4 * 4.0**2 + 4.0**2) / 5) ** 0.5)
    assert (alone.noise_ns, alone.repeats) == (4.0, 1)


def test_an_upper_bound_counts_only_at_the_high_end_and_comes_last() -> None:
    made = plan(finding("TTP402", 500.0, at_most=True), finding("TTP102", 100.0))
    assert made.steps[1].saves == Span(0.0, None, 500.0)
    assert made.left.estimate_ns == 900.0
    assert made.left.low_ns == pytest.approx(500 - 100 * MOST)


def test_a_host_in_the_way_comes_first_and_takes_the_low_end_of_all_others() -> None:
    found = (finding("TTP402", 50.0, at_most=True), finding("TTP102", 100.0))
    made = plan_of(found, Start("", 1000.0, waits=True))
    assert [step.finding.code for step in made.steps] == ["TTP402", "TTP102"]
    assert made.left.high_ns == 1000.0


def test_it_stops_at_the_roofline() -> None:
    made = plan(finding("TTP102", 600.0), finding("TTP104", 500.0))
    assert made.stopped
    assert made.left.low_ns == made.left.estimate_ns == 100.0
    assert made.steps[1].saves.estimate_ns == 300.0


def test_what_says_no_saving_adds_little_or_is_waived_is_no_step() -> None:
    untold = finding("TTP604", 1.0, saving_ns=None, adds_ns=None)
    little = finding("TTP101", 50.0, 0.0, quiet=True, covered_by="TTP311")
    waived = finding("TTP203", 70.0, waived="wanted")
    target = finding("TTP905", 5.0)
    made = plan(untold, little, waived, target)
    assert (made.steps, made.untold, made.little, made.waived) == (
        (), (untold,), (little,), (waived,)
    )  # fmt: skip
    assert made.left == (1000.0, 1000.0, 1000.0)


@pytest.mark.parametrize(
    ("target", "chance", "after"),
    [
        (1000.0, Chance.REACHED, None),
        (1000 - 200 * LEAST, Chance.LIKELY, 1),
        (760.0, Chance.POSSIBLE, 2),
        (1000 - 240 * MOST, Chance.UNLIKELY, 2),
        (500.0, Chance.BEYOND, None),
        (99.0, Chance.NEVER, None),
    ],
)
def test_targets(target: float, chance: Chance, after: int | None) -> None:
    reach = reach_of(plan(finding("TTP102", 200.0), finding("TTP104", 40.0)), target)
    assert (reach.chance, reach.after) == (chance, after)


def test_what_kernels_take_knows_no_host() -> None:
    host, formats = finding("TTP404", 600.0), finding("TTP102", 200.0)
    made = plan_of((host, formats), Start("", 1000.0, waits=True))
    aim = Aim("device_kernel_time", 400.0, 300.0, of_kernels=True)
    reach = reach_of_aim(aim, (host, formats), made, {})
    assert (reach.chance, reach.after) == (Chance.POSSIBLE, 2)
    assert reach_of_aim(aim._replace(ns=50.0), (host,), made, {}).best_ns == 400.0


def test_a_target_of_whole_calls_is_answered_by_the_only_region() -> None:
    timed = metric_of("sim_time", unit="ns", kind=Kind.TIME, source=Source.SIM)
    observed = MetricObservation(timed, (900.0,), limits=Limits(target=500.0))
    test = Observation("test_a.py::test_a", metrics={"sim_time": observed})
    aim = Aim("sim_time", 900.0, 500.0, of_kernels=False)
    assert list(aims_of(test, "decode", alone=True)) == [aim]
    assert list(aims_of(test, "decode", alone=False)) == [], "nobody knows which part it is"


def test_intervals_widen_where_little_is_known() -> None:
    known = spread_of("TTP311")
    assert known.pairs == 14
    assert LEAST < known.low < 1 < known.high <= MOST
    sure = [Pair("TTP102", "", "", 100.0, 100.0)] * 100
    certain = spread_from("TTP102", (*PAIRS, *sure))
    assert (certain.low, certain.high) == (1.0, 1.0)


def test_steps_here_correct_estimates_and_intervals_and_order() -> None:
    found = (finding("TTP102", 200.0), finding("TTP104", 180.0))
    made = plan_of(found, Start("decode", 1000.0), {"TTP102": [0.2] * 5, "TTP203": [0.1]})
    assert [step.finding.code for step in made.steps] == ["TTP104", "TTP102"]
    saves = made.steps[1].saves
    assert saves.estimate_ns == pytest.approx(200 * (5 + 5 * 0.2) / 10)
    assert saves.low_ns == pytest.approx(200 * 0.2)
    assert saves.high_ns < 200 * MOST
    assert made.steps[1].spread.tried == (0.2,) * 5
    assert made.steps[0] == plan_of(found[1:], Start("decode", 1000.0)).steps[0]


def test_ceilings_are_the_rules_whose_pages_promise_at_most_so_much() -> None:
    pages = {
        rule.code
        for rule in all_rules()
        if rule.page.partition("## What it saves\n")[2].startswith("At most")
    }
    assert pages == CEILINGS - {"TTP704"}
    assert rule_of("TTP704").page.partition("## What it saves\n")[2].startswith("The time by which")


def captures_of(pair: Pair) -> set[str]:
    return set(pair.captures.split(" → "))


def test_pairs_are_within_the_interval_of_the_others() -> None:
    known = [pair for pair in PAIRS if pair.ratio is not None]
    alone: list[bool] = []
    apart: list[bool] = []
    for pair in known:
        others = [other for other in PAIRS if other is not pair]
        foreign = [other for other in PAIRS if not captures_of(other) & captures_of(pair)]
        for inside, rest in ((alone, others), (apart, foreign)):
            spread = spread_from(pair.code, rest)
            inside.append(spread.low <= (pair.ratio or 0.0) <= spread.high)
    assert (sum(alone), sum(apart), len(known)) == (26, 24, 28)  # as the page of plans says


def test_the_pairs_are_those_of_the_corpus(savings: Any) -> None:
    folder = corpus("ops_perf/gemma_sliding_decode_final.csv").parent
    found = [
        (one.pair.code, one.estimated_ns, one.gained_ns, one.plain_ns)
        for one in savings.verified(folder)
    ]
    found += [
        (one.change.code, one.estimated_ns, one.gained_ns, None)
        for one in savings.changes_made(folder)
    ]
    rounded = sorted(
        (code, *(None if ns is None else round(ns / 1000, 1) for ns in times))
        for code, *times in found
    )
    assert rounded == sorted(
        (one.code, one.estimated_us, one.gained_us, one.plain_us) for one in PAIRS
    )


@pytest.mark.parametrize(
    "way", [WAYS[1], WAYS[4]], ids=lambda way: f"{way.steps}x{way.rounds}-{way.noise}"
)
def test_on_chips_whose_costs_are_known_four_of_five_measure_what_was_promised(way: Way) -> None:
    found = coverage(range(7_000, 7_060), way)
    steps = found.all_steps
    assert len(steps) > 150
    assert sum(one.holds for one in steps) / len(steps) >= 0.8
    assert sum(one.holds for one in found.sums) / len(found.sums) >= 0.8
    assert median(one.width for one in steps) < 1.6
    right = {chance: found.reached[chance] / count for chance, count in found.asked.items()}
    assert right[Chance.LIKELY] >= 0.9 > right[Chance.POSSIBLE] >= 0.5 > right[Chance.UNLIKELY]
    assert right[Chance.BEYOND] <= 0.1


def test_the_least_time_of_a_step() -> None:
    wide = tensor(1, 1, 4096, 4096)
    narrow = tensor(1, 1, 4096, 4096, dtype="BFLOAT4_B")
    experts = tensor(1, 32, 4096, 4096)
    row = tensor(1, 1, 32, 4096, memory="L1_WIDTH_SHARDED")
    matmuls = [op("Matmul", [row, weights], [row], ns=1e6) for weights in (wide, narrow, experts)]
    stale = op("Matmul", [row, wide], ns=9_000.0)  # it cannot have these shapes
    step = table(*matmuls, op("Unary", [row], [row], ns=1e6), stale)
    read = 4096 * 4096 / 288
    assert ideal_of_step(step) == pytest.approx(read * 1.0625 + read * 0.5625)
    assert ideal_of_step(table(*matmuls, arch="quasar")) is None


OP_TABLES = ("falcon3_7b_tp4", "gpt_oss_20b_fused_decode", "qwen3_32b_fused_decode", "rt_detr",
             "blackhole_oft_conv", "llama_8b_final_decode", "blackhole_deepseek_8dev")  # fmt: skip


@pytest.mark.parametrize("name", OP_TABLES)
def test_a_plan_of_a_real_capture_leaves_the_roofline(name: str) -> None:
    subject = Subject(ops=read_ops_csv(corpus(f"ops_perf/{name}.csv")))
    rules = all_rules()
    for region in in_regions(subject):
        start = start_of(region, {})
        assert start is not None
        made = plan_of(run_rules(rules, region), start)
        assert_sound(made)


def assert_sound(made: Plan) -> None:
    """No plan saves more than there is, and its steps are its sum."""
    start = made.start
    least = start.ideal_ns or 0.0
    assert least <= start.now_ns
    assert least - 1e-6 <= made.left.low_ns <= (made.left.estimate_ns or 0.0) + 1e-6
    assert (made.left.estimate_ns or 0.0) <= made.left.high_ns + 1e-6 <= start.now_ns + 2e-6
    told = sum(step.saves.estimate_ns or 0.0 for step in made.steps)
    assert told == pytest.approx(made.saves.estimate_ns)
    for step in made.steps:
        low, estimate, high = step.saves
        assert 0.0 <= low <= high <= start.room_ns + 1e-6
        assert estimate is None or low <= estimate <= high
        assert least - 1e-6 <= step.left.low_ns <= step.left.high_ns <= start.now_ns + 1e-6


@pytest.mark.parametrize("text", ["\U0001f600" * 5_000, "x" * 5_000, '\\\n"' * 2_000])
def test_a_document_is_bounded_whatever_others_wrote(text: str) -> None:
    found = [
        finding(f"TTP{number}", 1e5 - number, name=text, fix=text) for number in range(101, 181)
    ]
    one = Planned(text, plan_of(found, Start(text, 1e9)))
    many = [one, *[Planned(f"{text}{number}", why_not=text) for number in range(500)]]
    for planned in ([one], many):
        document = bounded_document(planned)
        assert len(json_text(document).encode()) <= MOST_BYTES
        cut = json.loads(json_text(document))["cut"]
        left = json.loads(json_text(document))["plans"]
        assert cut["plans"] == len(planned) - len(left)
        assert cut["steps"] == 80 - sum(len(each["steps"]) for each in left)
        assert left[0]["steps"]


def test_a_small_document_is_whole() -> None:
    planned = [Planned("", plan(finding("TTP102", 200.0)))]
    document: Any = bounded_document(planned)
    assert document["cut"] == {"plans": 0, "steps": 0}
    assert document["plans"][0]["steps"][0]["code"] == "TTP102"


def test_what_promises_all_there_is_to_gain_is_not_corrected_to_more() -> None:
    more = (2.0,) * 5
    assert spread_of("TTP302", more).expected == spread_of("TTP302", more).high == 1.0
    assert spread_of("TTP305", more).expected == 1.5
