"""A change attributed to ops: sentence, listing, document."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.runner import all_rules, in_regions
from pytest_ttnn_perf.analysis.ops.align import (
    Attribution,
    Cause,
    ChangeKind,
    Part,
    attribute,
    attribute_regions,
)
from pytest_ttnn_perf.analysis.ops.names import op_name
from pytest_ttnn_perf.analysis.ops.regions import (
    region_named,
    regions_of,
    step_of,
    step_times_ns,
    why_invalid,
)
from pytest_ttnn_perf.analysis.readers.detect import op_table_of
from pytest_ttnn_perf.analysis.show.kernels import hardware_changes, platform_of_ops
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.finding import Input, Subject
from pytest_ttnn_perf.core.metric import Metric, median
from pytest_ttnn_perf.core.ops import short_code
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.report.tables import (
    BELOW,
    DROPPED,
    NAME,
    Fit,
    Listing,
    format_change,
    format_value,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.analysis.ops.regions import Region
    from pytest_ttnn_perf.core.ops import OpGroups, OpTable
    from pytest_ttnn_perf.report.tables import Block


class UnmatchedRegion(Struct, frozen=True):
    """A region of only one capture, and its step time."""

    side: str
    region: str
    step_ns: float


class CaptureComparison(Struct, frozen=True):
    """Two captures, region by region; ``notes`` name what is particular about them."""

    regions: tuple[Attribution, ...]
    unmatched: tuple[UnmatchedRegion, ...] = ()
    notes: tuple[str, ...] = ()


# Two captures with op tables, side by side: which ops make up the change of each region.


def compare_captures(
    before: Path,
    after: Path,
    *,
    start: str | None = None,
    end: str | None = None,
    region: str | None = None,
) -> CaptureComparison:
    """Attribute the change of each region that both captures have.

    Those of one name belong together, and those of which one name is a part of the other, if no
    other is: decode and multichip_decode. So do the only ones of their captures.
    """
    first, second = (op_table_of(file, start=start, end=end) for file in (before, after))
    if first.kernel_time != second.kernel_time:
        message = (
            f"the captures hold different times: {before.name} has {first.kernel_time}, "
            f"{after.name} has {second.kernel_time}"
        )
        raise UsageError(message)
    for file, table in ((before, first), (after, second)):
        problem = why_invalid(table)
        if problem is not None:  # no op of it can be trusted
            raise InputError(file, f"{problem}; capture it again")
    differs = hardware_changes(platform_of_ops(first), platform_of_ops(second))
    notes: tuple[str, ...] = ()
    if differs:
        notes = (f"not the same hardware: {', '.join(differs)}",)
    if region is not None:
        names = region.partition("=") if "=" in region else (region, "", region)
        pair = (
            region_named(first, names[0], before.name),
            region_named(second, names[2], after.name),
        )
        change = _predicted(attribute(first, second, pair), first, pair[0].name)
        return CaptureComparison((change,), notes=notes)
    ours, theirs = regions_of(first).regions, regions_of(second).regions
    pairs = _pairs(ours, theirs)
    if not pairs:
        message = (
            f"{before.name} ({_names(ours)}) and {after.name} ({_names(theirs)}) have no region in "
            "common: name those that belong together, as --region decode=traced_decode"
        )
        raise UsageError(message)
    paired = [region for pair in pairs for region in pair]
    alone = [
        UnmatchedRegion(side, each.name, median(step_times_ns(table, each)))
        for side, table, regions in (("before", first, ours), ("after", second, theirs))
        for each in regions
        if not any(each is other for other in paired)
    ]
    changes = tuple(
        _predicted(attribute(first, second, pair), first, pair[0].name) for pair in pairs
    )
    notes += tuple(
        f"{then.name or 'the only region'} before is compared with {now.name or 'the only one'}"
        for then, now in pairs
        if then.name != now.name
    )
    return CaptureComparison(changes, unmatched=tuple(alone), notes=notes)


def _names(regions: Iterable[Region]) -> str:
    return ", ".join(region.name or "no name" for region in regions) or "none"


def _pairs(ours: Sequence[Region], theirs: Sequence[Region]) -> list[tuple[Region, Region]]:
    by_name = {region.name: region for region in theirs}
    found = {region.name: by_name[region.name] for region in ours if region.name in by_name}
    taken = {*found}
    for region in ours:
        like = [each for each in theirs if _is_like(region, each) and each.name not in taken]
        if len(like) == 1 and region.name not in taken:
            rivals = [each for each in ours if each.name not in taken and _is_like(each, like[0])]
            found |= {region.name: like[0]} if len(rivals) == 1 else {}
    if not found and len(ours) == len(theirs) == 1:
        found = {ours[0].name: theirs[0]}
    return [(region, found[region.name]) for region in ours if region.name in found]


def _is_like(one: Region, other: Region) -> bool:
    """Return whether one name has all words of the other."""
    words, others = ({*region.name.split("_")} for region in (one, other))
    return bool(one.name and other.name) and (words <= others or others <= words)


#: What a finding of a rule proposes to change, in the words of causes; gone: of ops that went.
_PROPOSED: Final = {
    "TTP10[124]": r" dtype ",
    "TTP103": r"^fidelity |math_approx|fp32_dest",
    "TTP20[123]": r" layout |^gone",
    "TTP302": r" memory |^shard|^gone",
    "TTP303": r" memory ",
    "TTP30[58]|TTP321": r"cores |^shard|grid| memory |config",
    "TTP307": r" shape | layout |^gone",
    "TTP310": r"^activation |^gone",
    "TTP311": r"DRAMSharded|DRAM_WIDTH_SHARDED|^num_workers",
    "TTP31[4-9]": r"config|block|^per_core|cores |^fidelity | memory |^num_workers|acc",
    "TTP60": r"block|buffer|cores |^shard| memory |^fidelity ",
}


def _predicted(attribution: Attribution, table: OpTable, region: str) -> Attribution:
    """Add what findings on the region before predicted of its ops."""
    regions = {each.region: each for each in in_regions(Subject(ops=table))}
    before = regions.get(region, regions.get(""))
    if before is None or before.ops is None:
        return attribution
    step = step_of(before.ops)
    claims: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for rule in all_rules():
        if Input.OPS not in rule.needs or rule.looks_at_others or before.why_absent(*rule.needs):
            continue
        for row, saved_ns in rule.check(before).savings.items():
            op = step.op(row)
            claims[op_name(op.signature, op.attributes)][rule.code].append(saved_ns)
    parts = (_with_prediction(part, claims.get(part.name, {})) for part in attribution.parts)
    return replace(attribution, parts=tuple(parts))


def _with_prediction(part: Part, claims: Mapping[str, Sequence[float]]) -> Part:
    """Take the largest claim on what changed.

    Ways to the same end do not add up.
    """
    changed = [str(cause) for cause in part.causes]
    changed = ["gone"] if part.change is ChangeKind.REMOVED else changed
    fitting = {
        code: math.fsum(saved) / len(saved) * part.count
        for code, saved in claims.items()
        for codes, whats in _PROPOSED.items()
        if re.match(codes, code) and any(re.search(whats, each) for each in changed)
    }
    if not fitting or part.delta_ns >= 0 or part.within_noise:
        return part
    code = max(fitting, key=fitting.__getitem__)
    return replace(part, predicted_ns=fitting[code], predicted_by=code)


#: Display units, longest first, with their nanoseconds.
_UNITS: Final = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))


class Sum(NamedTuple):
    """Signed figures in one unit that add up as shown."""

    total: str
    terms: tuple[str, ...]


def shown_sum(terms_ns: Sequence[float], *, digits: int = 3) -> Sum:
    """Round a sum so that its terms still add up.

    >>> shown_sum([61_440.0, 18_430.0, 12_430.0])
    Sum(total='+92.3 µs', terms=('+61.5 µs', '+18.4 µs', '+12.4 µs'))
    """
    total = math.fsum(terms_ns)
    largest = max([abs(total), *map(abs, terms_ns)])
    unit, factor = next((u for u in _UNITS if largest >= u[1]), _UNITS[-1])
    whole_digits = math.floor(math.log10(largest / factor)) + 1 if largest else 1
    decimals = max(0, digits - max(1, whole_digits))
    step = factor / 10**decimals
    steps = _round_to_sum([term / step for term in terms_ns], round(total / step))

    def shown(count: int) -> str:
        return f"{count / 10**decimals:+.{decimals}f} {unit}" if count else f"0 {unit}"

    return Sum(shown(sum(steps)), tuple(map(shown, steps)))


def _round_to_sum(values: Sequence[float], total: int) -> list[int]:
    """Round to integers of a given sum, moving the furthest."""
    rounded = [round(value) for value in values]
    left = total - sum(rounded)
    towards = 1 if left > 0 else -1
    # What is exactly zero stays so: nothing must not read as something.
    able = [place for place, value in enumerate(values) if value]
    able.sort(key=lambda place: towards * (rounded[place] - values[place]))
    for place in able[: abs(left)]:
        rounded[place] += towards
    return rounded


def causes_text(causes: Iterable[Cause], *, most: int) -> str:
    """Return the first causes in words; shared ones once.

    >>> from pytest_ttnn_perf.analysis.ops.align import Cause
    >>> causes_text([Cause("cores", "64", "32"), Cause("in0_block_w", "2", "1")], most=2)
    '64 → 32 cores, in0_block_w 2 → 1'
    """
    operands: dict[tuple[str, str, str], list[str]] = {}
    for cause in _with_shards(list(causes)):
        operand, _, what = cause.what.rpartition(" ")
        operands.setdefault((what, cause.before, cause.after), []).append(operand)
    texts = [
        _cause_text(*change, "/".join(filter(None, names))) for change, names in operands.items()
    ]
    more = [f"{len(texts) - most} more"] if len(texts) > most else []
    return ", ".join(texts[:most] + more)


def _with_shards(causes: list[Cause]) -> list[Cause]:
    """Join cores and shape of shards to one cause."""
    cores, shape = (
        next((cause for cause in causes if cause.what == what), None)
        for what in ("shard cores", "shard shape")
    )
    if cores is None:
        return causes
    sizes = f", {shape.before} → {shape.after}" if shape else ""
    told = Cause("shards", cores.before, f"{cores.after} cores{sizes}")
    same = Cause("cores", cores.before, cores.after)
    left = [cause for cause in causes if cause not in {shape, same}]
    return [told if cause is cores else cause for cause in left]


def _cause_text(what: str, before: str, after: str, operands: str) -> str:
    step = f"{_short_config(before)} → {_short_config(after)}"
    if what == "cores":
        return f"{step} cores"
    if what == "fidelity":
        return step
    if operands == "shard":
        return f"shard {what} {step}"
    # A dtype, a memory or a shape says by itself what it is.
    return f"{operands} {step}" if operands else f"{what} {step}"


def _short_config(value: str) -> str:
    """Return a value; of a program config the distinctive part.

    >>> _short_config("MatmulMultiCoreReuseMultiCast1DProgramConfig"), _short_config("LoFi")
    ('MultiCast1D', 'LoFi')
    """
    short = value.removesuffix("ProgramConfig")
    return short.removeprefix("MatmulMultiCoreReuse") or short


_TIME: Final = Metric("kernel_time", "ns")
#: How many parts a sentence names, and a table, before the rest is summed up.
_IN_SENTENCE: Final = 4
_IN_TABLE: Final = 30
#: How many causes are told of each.
_CAUSES_IN_SENTENCE: Final = 3
_CAUSES_IN_TABLE: Final = 4
#: The digits of the largest figure: few to be read, more to be compared with the smaller ones.
_DIGITS_IN_SENTENCE: Final = 3
_DIGITS_IN_TABLE: Final = 5
Shown = tuple[list[Part], list[Part], Sum]


def attribution_sentence(attribution: Attribution) -> str:
    """Name the ops of a change; the figures add up."""
    parts, rest, figures = _shown(attribution, most=_IN_SENTENCE, digits=_DIGITS_IN_SENTENCE)
    head = _head(attribution, figures)
    if not parts:
        return head
    texts = []
    for part, figure in zip(parts, figures.terms, strict=False):
        why = _why(part, most=_CAUSES_IN_SENTENCE)
        texts.append(f"{_label(part)} {figure}" + (f" ({why})" if why else ""))
    *_, smaller, unexplained = figures.terms
    if rest:
        texts.append(f"{len(rest)} smaller ones {smaller}")
    # What rounds to nothing is not worth a word; anything else has a sign.
    told = unexplained.startswith(("+", "-"))
    left = f"; {_others(attribution)} {unexplained}" if told else ""
    return f"{head} = {', '.join(texts)}{left}"


def regions_sentence(
    before: OpGroups, after: OpGroups, times_ns: Mapping[str, tuple[float, float]]
) -> str | None:
    """Name the ops of the change by region; None without any."""
    texts = (
        ": ".join(filter(None, (region, attribution_sentence(attribution))))
        for region, attribution in attribute_regions(before, after, times_ns)
        if attribution is not None
    )
    return "; ".join(texts) or None


def calls_sentence(before: OpGroups, after: OpGroups) -> str | None:
    """Name the ops with other counts than before; None if equal.

    An op is named with its first operand where that is the same of all that came or went.
    """
    then, now = _calls_by_name(before), _calls_by_name(after)
    texts = []
    for word, changed, table, other in (
        ("added", now - then, after, before),
        ("removed", then - now, before, after),
    ):
        shown = [
            f"{count} {short_code(name)}{_first_shape(name, table, other)}"
            for name, count in changed.most_common()
        ]
        rest = len(shown) - _IN_SENTENCE
        shown[_IN_SENTENCE:] = [f"{rest} other kinds"] if rest > 0 else []
        texts += [f"{word}: {', '.join(shown)}"] if shown else []
    return "; ".join(texts) or None


def _calls_by_name(ops: OpGroups) -> Counter[str]:
    counts: Counter[str] = Counter()
    for group in ops.groups:
        counts[group.signature.op] += group.count
    return counts


def _first_shape(name: str, table: OpGroups, other: OpGroups) -> str:
    shapes: Counter[str] = Counter()
    for ops, sign in ((table, 1), (other, -1)):
        for group in ops.groups:
            operands = group.signature.inputs or group.signature.outputs
            if group.signature.op == name and operands:
                shape = "x".join(map(str, operands[0].shape))
                shapes[shape] += sign * group.count
    more = [shape for shape, count in shapes.items() if count > 0]
    return f" {more[0]}" if len(more) == 1 else ""


def waterfall_of(attribution: Attribution, metric: str) -> dict[str, Any]:
    """Return the steps of a change as JSON, exact to the nanosecond."""
    parts, rest, _ = _shown(attribution, most=_IN_TABLE, digits=_DIGITS_IN_TABLE)
    steps = [(_label(part), part.delta_ns, _why(part, most=_CAUSES_IN_TABLE)) for part in parts]
    if rest:
        steps.append((f"{len(rest)} smaller ones", sum(part.delta_ns for part in rest), ""))
    before_ns, after_ns = round(attribution.before_ns), round(attribution.after_ns)
    steps.append((_others(attribution), attribution.unexplained_ns, ""))
    changes_ns = _round_to_sum([ns for _, ns, _ in steps], after_ns - before_ns)
    return {
        "metric": metric,
        "region": attribution.region or "",
        "before_us": before_ns / 1000,
        "after_us": after_ns / 1000,
        "parts": [
            {"name": name, "change_us": ns / 1000, "cause": why}
            for (name, _, why), ns in zip(steps, changes_ns, strict=True)
            if ns
        ],
    }


def _document(changes: Sequence[Attribution]) -> dict[str, object]:
    """Return sums over regions as JSON; all parts add up."""
    several = len(changes) > 1
    return {
        "before_ns": math.fsum(each.before_ns for each in changes),
        "after_ns": math.fsum(each.after_ns for each in changes),
        "delta_ns": math.fsum(each.delta_ns for each in changes),
        "parts": [
            _part_document(part) | ({"region": each.region} if several else {})
            for each in changes
            for part in each.parts
        ],
        "unexplained_ns": math.fsum(each.unexplained_ns for each in changes),
        "unexplained_ops": sum(each.unexplained_ops for each in changes),
        "op_list_changed": any(each.op_list_changed for each in changes),
        "devices": list(changes[0].devices),
        "one_replay_per_trace": any(each.replayed for each in changes),
        "region": None if several else changes[0].region,
    }


def _part_document(part: Part) -> dict[str, object]:
    return {
        "change": part.change.value,
        "op": part.op,
        "name": part.name,
        "beside": part.beside,
        "signature": part.signature,
        "count": part.count,
        "delta_ns": part.delta_ns,
        "causes": [str(cause) for cause in part.causes],
        "before_ns": part.before_ns,
        "moved": part.moved,
        "within_noise": part.within_noise,
        "predicted_ns": part.predicted_ns,
        "predicted_by": part.predicted_by,
    }


_FIELDS: Final = ("change", "op", "signature", "count", "delta_ns", "causes", "region")


def op_comparison_listing(comparison: CaptureComparison) -> Listing:
    lines: list[Block] = list(comparison.notes)
    for attribution in comparison.regions:
        lines += [""] if lines else []
        lines += _lines(attribution)
    lines += [""] if comparison.unmatched else []
    for alone in comparison.unmatched:
        time = format_value(_TIME, alone.step_ns)
        lines.append(f"only {alone.side}: {alone.region or 'unnamed'}, {time} a step")
    rows = tuple(row for each in comparison.regions for row in _rows(each))
    document = {
        **_document(comparison.regions),
        "regions": [_document([each]) for each in comparison.regions],
        "unmatched": [
            {"side": each.side, "region": each.region, "step_ns": each.step_ns}
            for each in comparison.unmatched
        ],
        "notes": list(comparison.notes),
    }
    return Listing(tuple(lines), document, _FIELDS, rows)


def _lines(attribution: Attribution) -> Iterator[Block]:
    parts, rest, figures = _shown(attribution, most=_IN_TABLE, digits=_DIGITS_IN_TABLE)
    before = format_value(_TIME, attribution.before_ns)
    after = format_value(_TIME, attribution.after_ns, beside=attribution.before_ns)
    what = f"{attribution.region}: kernel time" if attribution.region else "kernel time"
    yield f"{what}{_basis(attribution)} {before} → {after}: {_head(attribution, figures)}"
    came = _sum_up(attribution, {ChangeKind.ADDED: "added", ChangeKind.REMOVED: "removed"})
    if came:
        yield f"the op list changed: {came}"
    slower = {ChangeKind.SLOWER: "got slower", ChangeKind.FASTER: "got faster"}
    yield from filter(None, [_sum_up(attribution, slower)])
    cells = []
    for part, figure in zip(parts, figures.terms, strict=False):
        matched = part.change in {ChangeKind.SLOWER, ChangeKind.FASTER}
        changed_alone = "no setting changed" if matched and part.signature else ""
        relative = part.change.value
        if matched and part.before_ns:
            relative = format_change(part.delta_ns / part.before_ns)
        why = _why(part, most=_CAUSES_IN_TABLE) or changed_alone
        why += "; within its noise" if part.within_noise else ""
        if part.predicted_ns is not None:
            both = (format_value(_TIME, ns) for ns in (part.predicted_ns, -part.delta_ns))
            why += "; {} predicted {}, got {}".format(part.predicted_by, *both)
        cells.append((figure, relative, _label(part), why))
    if rest:
        cells.append((figures.terms[-2], "", f"{len(rest)} smaller ones", ""))
    if parts:
        cells.append((figures.terms[-1], "", _others(attribution), ""))
        headings = ("change", "of before", "op", "why")
        fits = (Fit(), DROPPED[1], NAME, BELOW)
        yield table_of(headings, cells, right=frozenset({0, 1}), fits=fits)


def _rows(attribution: Attribution) -> Iterator[tuple[object, ...]]:
    region = attribution.region or ""
    for part in attribution.parts:
        why = "; ".join(map(str, part.causes))
        figures = (part.count, part.delta_ns, why, region)
        yield (part.change.value, part.op, part.signature, *figures)
    left = (attribution.unexplained_ops, attribution.unexplained_ns, "", region)
    yield ("unexplained", "", "", *left)


def _shown(attribution: Attribution, *, most: int, digits: int) -> Shown:
    """Split parts into named and summed, with rounded figures."""
    end = most if len(attribution.parts) > most + 1 else most + 1
    parts, rest = list(attribution.parts[:end]), list(attribution.parts[end:])
    figures = [part.delta_ns for part in parts]
    figures += [sum(part.delta_ns for part in rest), attribution.unexplained_ns]
    return parts, rest, shown_sum(figures, digits=digits)


def _head(attribution: Attribution, figures: Sum) -> str:
    delta, before = attribution.delta_ns, attribution.before_ns
    head = f"{format_change(delta / before)} ({figures.total})" if before else figures.total
    if attribution.parts:
        return head
    if attribution.unexplained_ns:
        return f"{head}: the same ops ran, and no op changed by more than noise"
    return "no change: the same ops took the same time"


def _basis(attribution: Attribution) -> str:
    before, after = attribution.devices
    several = f"{before} devices" if before == after else f"{before} → {counted(after, 'device')}"
    basis = ["a replay"] if attribution.replayed else []
    basis += [f"on the slowest of {several}"] if (before, after) != (1, 1) else []
    return f" ({' '.join(basis)})" if basis else ""


def _sum_up(attribution: Attribution, words: dict[ChangeKind, str]) -> str:
    """Sum up the parts of some kinds, each in its word."""
    texts = []
    for change, word in words.items():
        parts = [p for p in attribution.parts if p.change is change and not p.within_noise]
        if parts:
            amount = shown_sum([sum(part.delta_ns for part in parts)]).total
            texts.append(f"{counted(sum(part.count for part in parts), 'op')} {word} ({amount})")
    return ", ".join(texts)


def _label(part: Part) -> str:
    name = part.name or " ".join(filter(None, (short_code(part.op), part.shape)))
    moved = f", {part.moved} moved" if part.moved else ""
    count = next((cause for cause in part.causes if cause.what == "count"), None)
    if part.change is ChangeKind.ADDED:
        return f"{part.count} {'more' if count and count.before != '0' else 'new'} {name}"
    if part.change is ChangeKind.REMOVED:
        fewer = count and count.after != "0"
        return f"{part.count} fewer {name}" if fewer else f"{part.count} {name} gone"
    return f"{part.count} x {name}{moved}" if part.count > 1 else f"{name}{moved}"


def _others(attribution: Attribution) -> str:
    if not attribution.unexplained_ops:
        return "other ops, each within its noise"
    each = "each " if attribution.unexplained_ops > 1 else ""
    return f"{counted(attribution.unexplained_ops, 'other op')}, {each}within its noise"


def _why(part: Part, *, most: int) -> str:
    causes = [cause for cause in part.causes if cause.what != "count"]
    return causes_text(causes, most=most) or part.beside
