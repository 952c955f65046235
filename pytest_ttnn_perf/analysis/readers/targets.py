"""Files of targets in Tenstorrent's repositories: ``model_targets.yaml``, and JSON of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from pytest_ttnn_perf.core.codec import LARGEST
from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.core.files import LARGEST_TEXT_BYTES, parse_json, read_text
from pytest_ttnn_perf.core.hardware import system_of
from pytest_ttnn_perf.gate.targets import Target, TargetEntry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_ttnn_perf.core.hardware import Hardware, System


class NotTaken(Struct, frozen=True):
    """Something in a file that does not become a target, and why."""

    place: str
    why: str


class ReadTargets(Struct, frozen=True):
    """The content of a file of targets."""

    entries: tuple[TargetEntry, ...]
    not_taken: tuple[NotTaken, ...]


def is_target_file(file: Path, head: str) -> bool:
    if file.suffix in {".yaml", ".yml"}:
        return True
    return head.lstrip().startswith("{") and '"phases"' in head


def read_target_file(
    file: Path, *, model: str | None = None, hardware: Hardware | None = None
) -> ReadTargets:
    """Read targets; files of one model need ``model`` and ``hardware``."""
    document = _document(file)
    if not isinstance(document, dict):
        raise InputError(file, "expected targets by model, found something else")
    targets = document.get("targets")
    if isinstance(targets, dict) and _has_skus(targets):
        found = list(_central(targets))
    elif not isinstance(document.get("phases"), dict):
        raise InputError(file, "its content is none that is known: targets by model, or phases")
    elif model is None:
        raise InputError(file, "it does not say which model it is of: add --model NAME")
    else:
        found = list(_of_model(document["phases"], model, hardware, file))
    entries = tuple(item for item in found if isinstance(item, TargetEntry))
    return ReadTargets(entries, tuple(item for item in found if isinstance(item, NotTaken)))


def _document(file: Path) -> Any:
    text = read_text(file, most_bytes=LARGEST_TEXT_BYTES)
    if file.suffix not in {".yaml", ".yml"}:
        return parse_json(text, lambda document: document, file=file)
    try:
        import yaml
    except ImportError as cause:
        raise InputError(file, "to read YAML, PyYAML is needed: pip install pyyaml") from cause
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as cause:
        raise InputError(file, f"not valid YAML: {' '.join(str(cause).split())}") from cause


def _has_skus(targets: Mapping[str, Any]) -> bool:
    return any(isinstance(block, dict) and "skus" in block for block in targets.values())


_PREFILL: Final = ("prefill_t/s", "tokens/s.inference_prefill")
_DECODE: Final = ("decode_t/s", "tokens/s.inference_decode")
_USER: Final = (
    "decode_t/s/u",
    "tokens/s/user.inference_decode",
    "token_out_tokens_per_second_per_user",
)
_BOTH: Final = ("prefill_decode_t/s/u", "tokens/s/user.inference_prefill_decode")
_FIRST: Final = (
    "prefill_time_to_token",
    "prefill_time_to_first_token",
    "token_out_time_to_first_token",
    "time_to_token.inference_prefill",
)
#: Metrics of model_targets.yaml: the names that tests record, and the unit there.
_METRICS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "prefill_t/s": (_PREFILL, "tok/s"),
    "decode_t/s": (_DECODE, "tok/s"),
    "decode_t/s/u": (_USER, "tok/s/user"),
    "prefill_decode_t/s/u": (_BOTH, "tok/s/user"),
    "prefill_time_to_token": (_FIRST, "s"),
    "prefill_time_to_first_token": (_FIRST, "ms"),
    "top1": (("top1", "top1_token_accuracy"), "%"),
    "top5": (("top5", "top5_token_accuracy"), "%"),
    "fps": (("fps",), "fps"),
}


def _central(targets: Mapping[str, Any]) -> Iterator[TargetEntry | NotTaken]:
    """Read ``model_targets.yaml``: models, their SKUs, and entries by batch and length."""
    for model, block in targets.items():
        skus = block.get("skus") if isinstance(block, dict) else None
        if not isinstance(skus, dict):
            yield NotTaken(str(model), "it has no skus")
            continue
        aliases = block.get("aliases")
        named = [alias for alias in aliases if isinstance(alias, str)] if aliases else []
        models = tuple(dict.fromkeys([str(model), *named]))
        for sku, listed in skus.items():
            place, system = f"{model}, {sku}", system_of(str(sku))
            entries = listed.get("entries") if isinstance(listed, dict) else None
            if system is None:
                yield NotTaken(place, "unknown SKU")
            elif not isinstance(entries, list):
                yield NotTaken(place, "it has no list of entries")
            else:
                for entry in entries:
                    yield from _entry(entry, models, system, place)


def _entry(
    entry: object, models: tuple[str, ...], system: System, place: str
) -> Iterator[TargetEntry | NotTaken]:
    if not isinstance(entry, dict):
        yield NotTaken(place, "an entry is no mapping")
        return
    batch, length = entry.get("batch_size"), entry.get("seq_len")
    place += f" [batch {batch}, length {length}]"
    if str(entry.get("status", "active")).lower() != "active":
        yield NotTaken(place, f"its status is {entry.get('status')}")
        return
    if not all(part is None or type(part) is int for part in (batch, length)):
        yield NotTaken(place, "batch_size and seq_len have to be whole numbers, or null")
        return
    goals: list[Target] = []
    for part in ("perf", "accuracy"):
        values = entry.get(part)
        for name, value in (values if isinstance(values, dict) else {}).items():
            goal = _goal(str(name), value)
            if isinstance(goal, Target):
                goals.append(goal)
            elif goal is not None:
                yield NotTaken(f"{place}: {name}", goal)
    if goals:
        yield TargetEntry(models, system[0], tuple(goals), system[1], batch, length)
    else:
        yield NotTaken(place, "it has no values")


def _goal(name: str, value: object) -> Target | str | None:
    """Return a goal, or why not; None for a tolerance."""
    if name == "tolerance" or name.endswith("_tolerance"):
        return None
    if name.startswith("compile"):
        return "a compile time is not gated"
    if name not in _METRICS:
        return "unknown metric"
    if not _is_number(value):
        return "it is no number"
    if float(value) <= 0:  # type: ignore[arg-type]  # a number
        return "it is not above 0"
    names, unit = _METRICS[name]
    return Target(names, float(value), unit)  # type: ignore[arg-type]  # a number


def _is_number(value: object) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and isinstance(value, (int, float)) and -LARGEST <= value <= LARGEST


def _of_model(
    phases: Mapping[str, Any], model: str, hardware: Hardware | None, file: Path
) -> Iterator[TargetEntry | NotTaken]:
    """Read the times of a model's phases."""
    if hardware is None:
        problem = "it does not say on which board it was measured"
        raise InputError(file, f"{problem}: add --hardware ARCH-BOARD")
    goals = tuple(Target((name,), v, "ms") for name, v in phases.items() if _is_number(v))
    if goals:
        yield TargetEntry((model,), hardware.arch, goals, hardware.board)
    for name in (name for name, v in phases.items() if not _is_number(v)):
        yield NotTaken(f"phases, {name}", "it is no number")
