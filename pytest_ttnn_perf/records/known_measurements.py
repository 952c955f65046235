"""Measurement names of Tenstorrent's benchmarks and of vLLM: their units, and which are gated.

A benchmark JSON gives a name and a number. What the number means is known by the name alone, so it
is stated here. A name that is not in the table is recorded and not gated: nobody knows which way
it gets worse.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.records.metric import Better, Kind, Metric, metric_in

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Why a measurement is not gated whose name is not known.
UNKNOWN_NAME: Final = "unknown measurement name"


@dataclass(frozen=True, slots=True)
class KnownMeasurement:
    """What a measurement's name says. ``why_ungated`` is None for one that is gated."""

    unit: str
    better: Better
    kind: Kind
    why_ungated: str | None = None


def known_measurement(name: str, step: str = "") -> KnownMeasurement | None:
    """Return what is known of a measurement, by its name and the step it was taken in.

    >>> known_measurement("time_to_token", "inference_prefill").unit
    's'
    >>> known_measurement("compile_prefill").why_ungated
    'a compile time'
    >>> known_measurement("mood") is None
    True
    """
    if step in _PLACEHOLDER_STEPS:
        return _ungated("", Kind.TIME, "a placeholder of a run that measured nothing")
    if step.startswith("compile"):
        return _ungated(_unit_of_time(name), Kind.TIME, _COMPILE)
    found = _BY_STEP.get((step, name)) or _BY_NAME.get(name)
    if found is not None:
        return found
    for pattern, meaning in _FAMILIES:
        matched = pattern.fullmatch(name)
        if matched is not None:
            return _with_unit(meaning, matched.groupdict().get("unit"))
    return None


def same_as(name: str) -> tuple[str, ...]:
    """Return what says the same as a measurement: one loss would be shown by all of them.

    >>> same_as("mean_tps"), same_as("mean_ttft_ms")
    (('mean_tpot_ms',), ())
    """
    return _SAME_AS.get(name, ())


def percentile_of(name: str) -> float | None:
    """Return which percentile of a latency a measurement is; None if it is none.

    >>> percentile_of("p99_ttft_ms"), percentile_of("mean_ttft_ms")
    (99.0, None)
    """
    matched = _PERCENTILE.fullmatch(name)
    return float(matched[1]) if matched else None


def metric_of_measurement(name: str, step: str = "") -> tuple[Metric, str | None]:
    """Return the metric that a measurement is a sample of, and why it is not gated.

    A step stands where the name of a region does: two steps may measure under one name.

    >>> metric_of_measurement("tokens/s", "inference_decode")[0].name
    'tokens/s.inference_decode'
    """
    known = known_measurement(name, step)
    full_name = metric_in("" if step == name else step, name)
    if known is None:
        return Metric(full_name, ""), UNKNOWN_NAME
    return Metric(full_name, known.unit, known.better, known.kind), known.why_ungated


def _time(unit: str) -> KnownMeasurement:
    return KnownMeasurement(unit, Better.LOWER, Kind.TIME)


def _rate(unit: str) -> KnownMeasurement:
    return KnownMeasurement(unit, Better.HIGHER, Kind.THROUGHPUT)


def _accuracy(unit: str = "") -> KnownMeasurement:
    return KnownMeasurement(unit, Better.HIGHER, Kind.ACCURACY)


def _count(unit: str, better: Better) -> KnownMeasurement:
    return KnownMeasurement(unit, better, Kind.COUNT)


def _ungated(unit: str, kind: Kind, why: str) -> KnownMeasurement:
    return KnownMeasurement(unit, kind.usual_direction, kind, why)


def _unit_of_time(name: str) -> str:
    """Return the unit that the name of a time ends with; tt-metal's are in seconds."""
    matched = re.search(r"(?:[_\W])(ns|us|ms|s)\W*$", name)
    return matched[1] if matched else "s"


def _with_unit(meaning: KnownMeasurement, unit: str | None) -> KnownMeasurement:
    if unit is None:
        return meaning
    return KnownMeasurement(unit, meaning.better, meaning.kind, meaning.why_ungated)


_COMPILE: Final = "a compile time"
_EXPECTED: Final = "an expected value, not a measurement"
_THRESHOLD: Final = "a threshold, not a measurement"
_MINIMUM: Final = "a minimum"
_MAXIMUM: Final = "a maximum"
_SPREAD: Final = "a spread, not a result"
_ESTIMATE: Final = "an estimate, not a measurement"
_REFERENCE: Final = "a value of another system"
_CPU: Final = "measured on the host's CPU, as a reference"
_SETTING: Final = "a setting of the benchmark"
_READY: Final = "the time to get ready, not to run"

#: Steps that a test writes only because a dashboard refuses an empty file.
_PLACEHOLDER_STEPS: Final = frozenset({"empty_run"})

_SECONDS: Final = _time("s")
_MILLISECONDS: Final = _time("ms")
_TOKENS: Final = _rate("tok/s")
_USER_TOKENS: Final = _rate("tok/s/user")
_REQUESTS: Final = _rate("req/s")
_SAMPLES: Final = _rate("samples/s")
#: tt-metal and tt-xla write 95.5 for 95.5 %.
_PERCENT: Final = _accuracy("%")

#: Names that mean something else in one step than in others.
_BY_STEP: Final[Mapping[tuple[str, str], KnownMeasurement]] = {
    # The pipelines of tt_dit name a measurement by its step: it is the time of that step.
    ("encoder", "encoder"): _SECONDS,
    ("denoising", "denoising"): _SECONDS,
    ("vae", "vae"): _SECONDS,
    ("run", "run"): _SECONDS,
}

_TT_METAL: Final[Mapping[str, KnownMeasurement]] = {
    # In seconds here; model_targets.yaml has prefill_time_to_first_token in milliseconds.
    "TTFT": _SECONDS,
    "time_to_token": _SECONDS,
    "prefill_time_to_token": _SECONDS,
    "prefill_time_to_first_token": _SECONDS,
    "tokens/s": _TOKENS,
    "tokens_per_sec": _TOKENS,
    "tokens/s/user": _USER_TOKENS,
    "tokens_per_sec_per_user": _USER_TOKENS,
    "prefill_t/s": _TOKENS,
    "decode_t/s": _TOKENS,
    "decode_t/s/u": _USER_TOKENS,
    "prefill_decode_t/s/u": _USER_TOKENS,
    "tsu_e2e": _USER_TOKENS,
    "avg_decode_time_first_128": _MILLISECONDS,
    "inference_time": _SECONDS,
    "inference_time_s": _SECONDS,
    "throughput": _rate("1/s"),
    "throughput_iter_per_s": _SAMPLES,
    "fps": _rate("fps"),
    "images_per_sec": _rate("images/s"),
    "top1": _PERCENT,
    "top5": _PERCENT,
    "top1_token_accuracy": _PERCENT,
    "top5_token_accuracy": _PERCENT,
    "ifeval_accuracy": _PERCENT,
    "token_verification": _accuracy(),
    "pearson_correlation": _accuracy(),
    "compile_prefill": _ungated("s", Kind.TIME, _COMPILE),
    "compile_decode": _ungated("s", Kind.TIME, _COMPILE),
    "first_run_s": _ungated("s", Kind.TIME, "a first run, which compiles"),
    "build_time_s": _ungated("s", Kind.TIME, "the time to build the model, not to run it"),
    "inference_time_cpu_s": _ungated("s", Kind.TIME, _CPU),
    "throughput_cpu_iter_per_s": _ungated("samples/s", Kind.THROUGHPUT, _CPU),
    "e2e_estimate_80l": _ungated("ns", Kind.TIME, _ESTIMATE),
    "ttft_estimate_80l": _ungated("ms", Kind.TIME, _ESTIMATE),
    "tsu_estimate": _ungated("tok/s/user", Kind.THROUGHPUT, _ESTIMATE),
    "best_config": _ungated("", Kind.COUNT, "a placeholder for a name"),
    "worst_config": _ungated("", Kind.COUNT, "a placeholder for a name"),
    "e2e_perf": _ungated("", Kind.TIME, "its unit differs from test to test"),
}

_TT_XLA: Final[Mapping[str, KnownMeasurement]] = {
    "samples_per_sec": _SAMPLES,
    "tokens_per_second": _TOKENS,
    "decode_tokens_per_second": _TOKENS,
    "total_time": _SECONDS,
    "e2e_latency": _SECONDS,
    "ttft": _MILLISECONDS,
    "device_fw_duration": _SECONDS,
    "device_kernel_duration": _SECONDS,
    "real_time_factor": _rate("x"),
    "top1_accuracy": _PERCENT,
    "top5_accuracy": _PERCENT,
    "evaluation_score": _accuracy(),
    "cpu_samples_per_sec": _ungated("samples/s", Kind.THROUGHPUT, _CPU),
    "cpu_overhead_s": _ungated("s", Kind.TIME, "what the timed parts leave of a total"),
    "total_samples": _ungated("samples", Kind.COUNT, _SETTING),
}

_SERVING: Final[Mapping[str, KnownMeasurement]] = {
    "request_throughput": _REQUESTS,
    "req_tput": _REQUESTS,
    "request_goodput": _REQUESTS,
    "output_throughput": _TOKENS,
    "input_throughput": _TOKENS,
    "total_token_throughput": _TOKENS,
    "tps_decode_throughput": _TOKENS,
    "tps_prefill_throughput": _TOKENS,
    "tput": _TOKENS,
    "tput_prefill": _TOKENS,
    "mean_tps": _USER_TOKENS,
    "tput_user": _USER_TOKENS,
    "t/s/u": _USER_TOKENS,
    "e2el": _MILLISECONDS,
    "inference_steps_per_second": _rate("steps/s"),
    "rtfx": _rate("x"),
    "rtr": _rate("x"),
    "score": _accuracy(),
    # A benchmark that loses requests looks faster.
    "completed": _count("requests", Better.HIGHER),
    "failed": _count("requests", Better.LOWER),
    "duration": _ungated("s", Kind.TIME, "the throughput says the same"),
    "total_input_tokens": _ungated("tokens", Kind.COUNT, _SETTING),
    "total_output_tokens": _ungated("tokens", Kind.COUNT, "it follows the text that is generated"),
    "max_output_tokens_per_s": _ungated("tok/s", Kind.THROUGHPUT, _MAXIMUM),
    "max_concurrent_requests": _ungated("requests", Kind.COUNT, _SETTING),
    "published_score": _ungated("", Kind.ACCURACY, _REFERENCE),
    "gpu_reference_score": _ungated("", Kind.ACCURACY, _REFERENCE),
}

#: What is computed from what, mostly in reports of servers; the first that a file has is gated.
_SAME_AS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("mean_tps", "tput_user", "t/s/u"), ("mean_tpot_ms",)),
    **dict.fromkeys(("tps_decode_throughput", "tput"), ("mean_tpot_ms", "mean_tps", "tput_user")),
    **dict.fromkeys(("tps_prefill_throughput", "tput_prefill"), ("mean_ttft_ms",)),
    "total_time": ("samples_per_sec",),
    # All are over the duration. With texts of other lengths, requests are not alike; tokens are.
    "total_token_throughput": ("output_throughput", "request_throughput"),
    "input_throughput": ("output_throughput", "request_throughput"),
    "request_throughput": ("output_throughput",),
    "req_tput": ("output_throughput", "request_throughput"),
}

_BY_NAME: Final = {**_TT_METAL, **_TT_XLA, **_SERVING}

_TIME: Final = r"(?i:time|latency|ttft|tpot|itl|e2el|kernel_duration|fw_duration|kernel|op_to_op)"
_UNIT: Final = r"(?P<unit>ns|us|ms|s)"
_LATENCY: Final = r"(?:ttft|tpot|itl|e2el|e2e_latency)_ms"
#: p100 and p150 are boards, too.
_PERCENTILE: Final = re.compile(r"p(\d\d?(?:\.\d+)?|100(?=_" + _LATENCY + r"))_.+_" + _UNIT)


def _family(pattern: str, meaning: KnownMeasurement) -> tuple[re.Pattern[str], KnownMeasurement]:
    return re.compile(pattern), meaning


#: Names that are made by a rule. The first that fits says it: what is not gated comes first.
_FAMILIES: Final = (
    _family(r"(?i:expected)[_ -].*?(?:[_(]" + _UNIT + r"\)?)?", _ungated("", Kind.TIME, _EXPECTED)),
    _family(r"(?:Lower|Upper) Threshold .*", _ungated("", Kind.TIME, _THRESHOLD)),
    _family(r".*[_ -](?:threshold|target|margin|tolerance)", _ungated("", Kind.TIME, _THRESHOLD)),
    _family(r"(?:.*_)?compile(?:_.*)?_" + _UNIT, _ungated("", Kind.TIME, _COMPILE)),
    _family(r"(?:.*_)?compile_time", _ungated("s", Kind.TIME, _COMPILE)),
    _family(
        r"(?:.*[_-])?(?:warm_?up|load(?:ing)?|set_?up|init|download|start_?up|cold_start)_"
        r"(?:time|latency)_" + _UNIT,
        _ungated("", Kind.TIME, _READY),
    ),
    _family(r"(?:.*_)?cpu_(?:.*_)?" + _UNIT, _ungated("", Kind.TIME, _CPU)),
    _family(r"MIN DEVICE .* DURATION \[" + _UNIT + r"\]", _ungated("", Kind.TIME, _MINIMUM)),
    _family(r"MAX DEVICE .* DURATION \[" + _UNIT + r"\]", _ungated("", Kind.TIME, _MAXIMUM)),
    _family(r"STD DEVICE .* DURATION \[" + _UNIT + r"\]", _ungated("", Kind.TIME, _SPREAD)),
    _family(r"MIN DEVICE .* SAMPLES/S", _ungated("samples/s", Kind.THROUGHPUT, _MINIMUM)),
    _family(r"MAX DEVICE .* SAMPLES/S", _ungated("samples/s", Kind.THROUGHPUT, _MAXIMUM)),
    _family(r"AVG DEVICE .* DURATION \[" + _UNIT + r"\]", _time("")),
    _family(r"AVG DEVICE .* SAMPLES/S", _SAMPLES),
    # One token of many, written to plot them.
    _family(r"time_to_token_\d+", _ungated("ms", Kind.TIME, "the time of a single token")),
    _family(r"std_.*_ms", _ungated("ms", Kind.TIME, _SPREAD)),
    _family(r"std_tps", _ungated("tok/s/user", Kind.THROUGHPUT, _SPREAD)),
    _family(r"min_.*_" + _UNIT, _ungated("", Kind.TIME, _MINIMUM)),
    _family(r"max_.*_" + _UNIT, _ungated("", Kind.TIME, _MAXIMUM)),
    _family(r"(?:mean|median)_" + _LATENCY, _MILLISECONDS),
    _family(_PERCENTILE.pattern, _time("")),
    _family(r".*[_-]min(?:[_-]" + _UNIT + r")?", _ungated("", Kind.TIME, _MINIMUM)),
    _family(r".*[_-]max(?:[_-]" + _UNIT + r")?", _ungated("", Kind.TIME, _MAXIMUM)),
    _family(r".*[_-]std(?:[_-]" + _UNIT + r")?", _ungated("", Kind.TIME, _SPREAD)),
    _family(r".*[_-]estimate(?:_.*)?", _ungated("", Kind.TIME, _ESTIMATE)),
    _family(r".*[_-]avg[_-]" + _UNIT, _time("")),
    _family(r".*_step_mean_s", _SECONDS),
    _family(r"(?:.*[_ -])?" + _TIME + r"(?:_(?:avg|mean))?[_-]" + _UNIT, _time("")),
    _family(r"(?:.*[_-])?pcc", _accuracy()),
)
