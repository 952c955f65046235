"""Whether two sides were measured alike, and whether a time is what it seems.

Files are compared by their content before anything runs. What tests do is compared as workers saw
it: limits, calls, inputs, clock and synchronisation, wherever they are written. What a probe finds
counts if only the later side has it: what was so before is not the step's doing. This is evidence
of tampering, and no proof that there was none.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from math import acos, cos, pi
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import percent, shortened
from pytest_ttnn_perf.analysis.ops.roofline import roofline_of_groups
from pytest_ttnn_perf.gate.ratios import mad
from pytest_ttnn_perf.measure.sketch import agreement
from pytest_ttnn_perf.records.metric import OF_DEVICE, Source, median
from pytest_ttnn_perf.records.settings import MIN_ROUNDS
from pytest_ttnn_perf.records.step import Edit, Refusal
from pytest_ttnn_perf.run.settings import CONFIGURATION_FILES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.processes.snapshots import ChangedFile, State, States
    from pytest_ttnn_perf.records.observation import Conditions, Observation


_SHARED_FILE: Final = "pyproject.toml"
#: The tables of a shared file that say how tests are run and judged.
_OURS: Final = re.compile(r"\[+tool\.(pytest|ttnn_perf)\b")
_TABLE: Final = re.compile(r"^\[")
#: Keywords of tests that decide what a time means, as they stand in a line.
_DECIDING: Final = re.compile(
    r"\b(tolerance|max_regression|warmup|iterations|pcc|at_least|at_most|waive|sync|clock|setup|"
    r"pipelined|batch)\b"
)
#: Functions that turn a NaN into a number, or leave it out.
_MASKS_NAN: Final = re.compile(
    r"\b(nan_to_num_?|nanmean|nansum|nanmedian|masked_invalid)\b"
    r"|\b(where|masked_fill_?)\(.*\b(isnan|isfinite)\b|\[[^\]]*\bisnan\("
    r"|(?:^|[(,\[=]|\b(?:if|and|or|not|where|return|while|assert))\s*"
    r"(?P<one>[A-Za-z_][\w.]*)\s*[!=]=\s*(?P=one)(?=\s*(?:$|[),:\]]|\b(?:and|or|else|if)\b))"
)
#: The part of a gain that new inputs must have as well.
_PART_OF_GAIN: Final = 0.5
#: Of samples that differ by chance, nine in ten are faster than their median and so much of what
#: they differ from it by, as a median. A few that are slower on purpose do not change that.
_SLOW: Final = 2.0
#: An output that is the same again but for its last bits.
_STEADY: Final = 0.9999
#: How much further apart outputs may be for a new input than for the one of the test, as an angle.
_FURTHER: Final = 4.0
#: A second synchronisation waits for that part of a sample.
_PENDING_FROM: Final = 0.05
#: The clock shows less than this part of what another clock shows.
_CLOCK_BELOW: Final = 0.8
#: A host is done before its device, by more than clocks differ.
_BEFORE_DEVICE: Final = 0.9
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class Places:
    """What must not change, as paths from the root of the repository.

    ``tests`` are files and folders of tests, ``baselines`` and ``targets`` what they are compared
    with.
    """

    tests: tuple[str, ...]
    baselines: str | None
    targets: str | None = None


def edited_files(states: States, before: State, after: State, places: Places) -> list[Refusal]:
    """Return the files of a step that decide what is measured, and how it is judged."""
    changed = states.changed_files(before, after)
    found = []
    for file in changed:
        edit = _kind_of(file, places)
        if edit is Edit.CONFIGURATION and file.path.endswith(_SHARED_FILE):
            texts = {_own_tables(states.text(state, file.path)) for state in (before, after)}
            edit = edit if len(texts) > 1 else None
        if edit is not None:
            found.append(Refusal(edit, _where(states, before, after, file)))
    return [*found, *_masked_nans(states, before, after, changed)]


def _kind_of(file: ChangedFile, places: Places) -> Edit | None:
    path = PurePosixPath(file.path)
    if places.baselines is not None and path.is_relative_to(places.baselines):
        return Edit.BASELINES
    if file.path == places.targets or path.name in CONFIGURATION_FILES:
        return Edit.CONFIGURATION
    if path.name == "conftest.py" and any(_applies(path.parent, test) for test in places.tests):
        return Edit.CONFTEST
    return Edit.TEST if file.path in places.tests else None


def _applies(folder: PurePosixPath, test: str) -> bool:
    """Tell whether what a folder says holds for tests in a place."""
    return PurePosixPath(test).is_relative_to(folder) or folder.is_relative_to(test)


def _own_tables(text: str) -> str:
    """Return the parts of a shared configuration file that are about tests."""
    kept, ours = [], False
    for line in text.splitlines():
        if _TABLE.match(line):
            ours = bool(_OURS.match(line))
        if ours and line.strip():
            kept.append(line.strip())
    return "\n".join(kept)


def _where(states: States, before: State, after: State, file: ChangedFile) -> str:
    """Say where a file was changed, and which of the keywords that decide are in its lines."""
    if file.after is None:
        return f"{file.path} was removed"
    if file.before is None:
        return f"{file.path} is new"
    lines = list(states.new_lines(before, after, file.path))
    if not lines:
        return f"{file.path}: lines were removed"
    words = dict.fromkeys(word for line in lines for word in _DECIDING.findall(line.text))
    about = f" ({', '.join(words)})" if words else ""
    telling = next((line for line in lines if _DECIDING.search(line.text)), lines[0])
    return f"{file.path}:{telling.number}{about}: {shortened(telling.text.strip(), _SHOWN)}"


def _masked_nans(
    states: States, before: State, after: State, changed: Sequence[ChangedFile]
) -> Iterator[Refusal]:
    """Yield the new lines that hide a NaN from a comparison."""
    for file in changed:
        if not file.path.endswith(".py") or file.after is None:
            continue
        for line in states.new_lines(before, after, file.path):
            word = _MASKS_NAN.search(line.text.partition("#")[0])
            if word:
                shown = shortened(line.text.strip(), _SHOWN)
                yield Refusal(Edit.MASKED_NAN, f"{file.path}:{line.number}: {shown}")
                break


def differing_conditions(
    test: str, before: Sequence[Observation], after: Sequence[Observation]
) -> Iterator[Refusal]:
    """Yield in what two sides of a test were not measured alike, or what cannot be believed."""
    then, now = before[0], after[0]
    yield from _limits(test, then, now)
    for metric, conditions in now.conditions.items():
        known = then.conditions.get(metric)
        if known is not None:
            where = f"{test} {metric}"
            yield from _calls(where, known, conditions)
            yield from _believable(where, known, conditions)
            yield from _outputs(where, metric, before, after)
    yield from _contents(test, before, after)
    yield from _ops(test, then, now)


def _limits(test: str, then: Observation, now: Observation) -> Iterator[Refusal]:
    for name, observed in then.metrics.items():
        if not observed.gated:
            continue
        other = now.metrics.get(name)
        if other is None or not other.gated:
            # What a profiler did not tell nobody has taken away, and ops that are gone have no part
            # of the time any more.
            if observed.metric.source not in OF_DEVICE and not observed.metric.totals:
                yield Refusal(Edit.METRICS, f"{test} {name}: gated before")
            continue
        for edit, field in (
            (Edit.TOLERANCE, "tolerance"),
            (Edit.TOLERANCE, "max_regression"),
            (Edit.LIMIT, "at_least"),
            (Edit.LIMIT, "at_most"),
        ):
            was, is_now = (getattr(one.limits, field) for one in (observed, other))
            if was != is_now:
                sentence = f"{test} {name}: {field} {_shown(was)}, now {_shown(is_now)}"
                yield Refusal(edit, sentence)
    if then.waived != now.waived:
        codes = sorted(then.waived.keys() ^ now.waived.keys()) or sorted(now.waived)
        yield Refusal(Edit.WAIVER, f"{test}: {', '.join(codes)}")


def _calls(where: str, then: Conditions, now: Conditions) -> Iterator[Refusal]:
    for edit, was, is_now in (
        (Edit.WARMUP, then.warmup, now.warmup),
        (Edit.ITERATIONS, then.iterations, now.iterations),
        (Edit.ITERATIONS, then.depth, now.depth),
        (Edit.INPUTS, ", ".join(then.inputs), ", ".join(now.inputs)),
        (Edit.CLOCK, then.clock, now.clock),
        (Edit.SYNC, then.sync, now.sync),
    ):
        if was != is_now:
            yield Refusal(edit, f"{where}: {_shown(was)}, now {_shown(is_now)}")


def _believable(where: str, then: Conditions, now: Conditions) -> Iterator[Refusal]:
    """Yield what a probe shows of the later side that it does not show of the earlier one."""
    if now.reacts is False and then.reacts is not False:
        yield Refusal(Edit.INPUT_IGNORED, f"{where}: other inputs, the same output")
    pending = now.pending_ratio or 0.0
    if pending > _PENDING_FROM and pending > 2 * (then.pending_ratio or 0.0):
        sentence = f"{where}: {percent(pending)} of a call is still running after it"
        yield Refusal(Edit.NOT_SYNCHRONISED, sentence)
    if now.threads > then.threads:
        sentence = f"{where}: {now.threads} threads that calls started went on after them"
        yield Refusal(Edit.NOT_SYNCHRONISED, sentence)
    if now.clock_ratio is not None and now.clock_ratio < _CLOCK_BELOW:
        sentence = f"{where}: it shows {percent(now.clock_ratio)} of what another clock shows"
        yield Refusal(Edit.PATCHED_CLOCK, sentence)


def lost_gain(
    test: str, metric: str, before: Sequence[Observation], after: Sequence[Observation]
) -> Refusal | None:
    """Return why a gain is none: it is not there when the input is new, by what all rounds show.

    The fastest call of either side counts: what disturbs a call makes it slower. And such calls
    must be slower than samples are: a few calls differ by more than a small gain.
    """
    sides = [[o.conditions[metric] for o in _with(side, metric)] for side in (before, after)]
    new = [[one.new_input_ns for one in side if one.new_input_ns is not None] for side in sides]
    if min(map(len, new)) < MIN_ROUNDS or list(map(len, new)) != list(map(len, sides)):
        return None
    was_ns, is_ns = (median([one.sample_ns or 0.0 for one in side]) for side in sides)
    gain_ns, new_gain_ns = was_ns - is_ns, min(new[0]) - min(new[1])
    if gain_ns <= 0 or new_gain_ns >= _PART_OF_GAIN * gain_ns:
        return None
    was_beyond, is_beyond = (_beyond_samples(side, metric) for side in (before, after))
    if is_beyond <= max(1.0, was_beyond):
        return None
    part = percent(max(new_gain_ns, 0.0) / gain_ns)
    what = f"{part} of the gain is there when the input is new and the output is read"
    return Refusal(Edit.KEPT_RESULT, f"{test} {metric}: {what}")


def _beyond_samples(side: Sequence[Observation], metric: str) -> float:
    """Return how long a call with a new input takes, in slow samples of its process."""
    ratios = []
    for observation in _with(side, metric):
        samples = observation.metrics[metric].samples
        middle_ns = median(samples)
        slow_ns = middle_ns + _SLOW * mad(samples, middle_ns)
        ratios.append((observation.conditions[metric].new_input_ns or 0.0) / slow_ns)
    return median(ratios)


def _outputs(
    where: str, metric: str, before: Sequence[Observation], after: Sequence[Observation]
) -> Iterator[Refusal]:
    """Yield outputs that are not those of the kept state, as far as the test's own limit says.

    If both correlate with what is expected by at least ``limit``, the angle between them is at most
    twice that of the limit. A model that does not give the same output twice is not looked at, nor
    one that is asked for something else.
    """
    then, now, limit = before[0].conditions[metric], after[0].conditions[metric], _limit(after[0])
    alike = then.content == now.content and before[0].references == after[0].references
    if limit is None or not alike or _not_comparable(then, now):
        return
    own = now.content or ""
    was, is_now = then.outputs[own], now.outputs[own]
    limit = min(limit, _STEADY)
    twice = acos(limit) * 2
    again = agreement(now.returned, is_now)
    if again is not None and again < limit:
        sentence = f"{where}: {_pcc(again)} with what it was while it was measured"
        yield Refusal(Edit.OTHER_OUTPUT, sentence)
    both = agreement(then.returned, now.returned)
    if then.checked and now.checked and both is not None and both < cos(twice):
        sentence = f"{where}: {_pcc(both)} with the kept state, which its own PCC rules out"
        yield Refusal(Edit.OTHER_OUTPUT, sentence)
    apart = acos(min(1.0, max(-1.0, agreement(was, is_now) or 0.0)))
    widest = max(twice, _FURTHER * apart)
    if widest >= pi / 2:  # nothing would be too far apart
        return
    least = cos(widest)
    known, found = (
        {given: sketch for one in side for given, sketch in one.conditions[metric].outputs.items()}
        for side in (_with(before, metric), _with(after, metric))
    )
    for given in (given for given in found if given in known and given != own):
        agrees = agreement(known[given], found[given])
        if agrees is not None and agrees < least:
            sentence = f"{where}: {_pcc(agrees)} with the kept state for a new input"
            yield Refusal(Edit.OTHER_OUTPUT, sentence)
            return


def _not_comparable(then: Conditions, now: Conditions) -> str | None:
    """Say why outputs of two sides tell nothing; None where they do."""
    own = now.content or ""
    if own not in then.outputs or own not in now.outputs:
        return "it was not called with the same input again"
    steady = agreement(then.returned, then.outputs[own])
    if steady is None:
        return "it has no numbers to compare"
    if steady < _STEADY:
        return "it is not the same twice"
    other = now.outputs[own] and agreement(then.outputs[own], now.outputs[own]) is None
    return "it has another shape" if other else None


def _with(side: Sequence[Observation], metric: str) -> Iterator[Observation]:
    return (observation for observation in side if metric in observation.conditions)


def _limit(observation: Observation) -> float | None:
    """Return the lowest PCC that the test asks for; None where it does not get that."""
    limits = []
    for name in observation.references:
        checked = observation.metrics.get(name)
        limit = checked.limits.at_least if checked is not None else None
        if checked is not None and limit is not None and limit > 0:
            if not checked.samples or min(checked.samples) < limit:
                return None
            limits.append(limit)
    return min(limits, default=None)


def _pcc(value: float) -> str:
    return f"its output has a PCC of {value:.3f}"


def _contents(
    test: str, before: Sequence[Observation], after: Sequence[Observation]
) -> Iterator[Refusal]:
    """Yield inputs and references with other values.

    Where those of one side differ from round to round, they are drawn anew each time.
    """
    if len(before) < 2 or len(after) < 2:
        return
    for metric, conditions in after[0].conditions.items():
        known = before[0].conditions.get(metric)
        if known is not None and known.inputs == conditions.inputs:
            values = [
                {o.conditions[metric].content for o in side if metric in o.conditions}
                for side in (before, after)
            ]
            if len(values[0]) == len(values[1]) == 1 and values[0] != values[1]:
                yield Refusal(Edit.INPUTS, f"{test} {metric}: the same shapes, other values")
    for name in after[0].references:
        values = [{o.references.get(name) for o in side} for side in (before, after)]
        if len(values[0]) == len(values[1]) == 1 and values[0] != values[1]:
            yield Refusal(Edit.REFERENCE, f"{test} {name}: what outputs are compared with")


def _ops(test: str, then: Observation, now: Observation) -> Iterator[Refusal]:
    """Yield what op tables rule out."""
    has_ops = now.ops is not None and bool(now.ops.groups)
    if then.ops is not None and then.ops.groups and not has_ops and not now.dropped:
        yield Refusal(Edit.NO_OPS, f"{test}: ops were captured before, and none now")
    if now.ops is not None:
        known = _too_fast(then)
        new = [code for code in _too_fast(now) if code not in known]
        if new:
            sentence = f"{test}: {new[0]} takes less than its bytes and FLOPs do on this chip"
            yield Refusal(Edit.TOO_FAST, sentence)
    wall, kernel = (_time_ns(now, name) for name in ("wall_time", "device_kernel_time"))
    walls, kernels = (_time_ns(then, name) for name in ("wall_time", "device_kernel_time"))
    if wall and kernel and walls and kernels:
        early, was_early = wall < _BEFORE_DEVICE * kernel, walls < _BEFORE_DEVICE * kernels
        if early and not was_early:
            sentence = f"{test}: wall_time is {percent(wall / kernel)} of the kernel time"
            yield Refusal(Edit.NOT_SYNCHRONISED, sentence)


def _too_fast(observation: Observation) -> tuple[str, ...]:
    hardware = observation.hardware
    if observation.ops is None or hardware is None or hardware.simulated:
        return ()
    found = roofline_of_groups(observation.ops, hardware.arch)
    return found.too_fast if found else ()


def _time_ns(observation: Observation, name: str) -> float | None:
    observed = observation.metrics.get(name)
    if observed is None or not observed.samples or observed.metric.unit != "ns":
        return None
    if observed.metric.source is Source.SIM:
        return None
    return median(observed.samples)


def unchecked(before: Observation, after: Observation) -> Iterator[str]:
    """Yield what could not be looked at, and why."""
    for metric, conditions in after.conditions.items():
        other = before.conditions.get(metric)
        why = conditions.unknown or (other.unknown if other else None)
        if why is not None:
            yield f"{after.test} {metric}: whether outputs follow inputs is not known: {why}"
            continue
        if conditions.reacts is None or other is None:
            continue
        why = _not_comparable(other, conditions)
        why = "the test asks for no PCC" if why is None and _limit(after) is None else why
        if why is not None:
            yield f"{after.test} {metric}: whether its output is as before is not known: {why}"
    if not after.conditions:
        yield f"{after.test}: how it takes its times is not known: it does not call measure"


def hash_of(*parts: object) -> str:
    """Return a short hash of some values."""
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def _shown(value: object) -> str:
    return "none" if value in {None, ""} else shortened(str(value), _SHOWN)
