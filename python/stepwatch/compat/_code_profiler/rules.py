"""Bottlenecks and recommendations: what the guide advises, each where the numbers ask for it.

The library judges (stepwatch/judge.h); here measurements become its named numbers, and what it
found becomes text. What several rules say of the same kind becomes one bottleneck; every rule that
fires is a recommendation.
"""

from __future__ import annotations

import numbers

from stepwatch import _core
from stepwatch.compat._code_profiler import texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepwatch.compat._code_profiler.facts import Facts

    Subject = tuple[str, dict[str, float | None]]

_SEVERITIES = ("low", "medium", "high", "critical")  # As the library numbers them.
_RUN = (
    "cores",
    "gpu",
    "tracks_memory",
    "tracks_gpu",
    "total_s",
    "gc_s",
    "memory_share",
    "memory_mb",
    "cpu_share",
    "gpu_utilization",
    "gpu_memory_share",
    "gpu_reserved_bytes",
    "gpu_allocated_bytes",
)
_SWITCH = {
    "forward": "profile_forward_pass",
    "backward": "profile_backward_pass",
    "optimizer": "profile_optimizer_step",
}
_STEPS = ("training", "epoch")  # Categories of sections that hold steps: long, and rightly so.


# --- Measurements as named numbers -----------------------------------------------------------


def _plain(values: dict[str, Any]) -> dict[str, float | None]:
    """Return what is a number, a switch or not known."""
    return {
        name: None if value is None else float(value)
        for name, value in values.items()
        if value is None or isinstance(value, numbers.Real)
    }


def _group(name: str, parts: dict[str, Any] | None) -> dict[str, float | None]:
    return _plain({f"{name}:{part}": value for part, value in (parts or {}).items()})


def _loader(known: dict[str, Any]) -> dict[str, float | None]:
    transforms = known.get("augmentation") or {}
    return {
        **_plain(known),
        **_group("bytes", known.get("dtypes")),
        **_group("transform", {name: each["avg_time"] for name, each in transforms.items()}),
    }


def _training(known: dict[str, Any]) -> dict[str, float | None]:
    return {
        **_plain(known),
        **_group("parameters", known.get("parameter_dtypes")),
        **_group("gradient_time", known.get("gradient_times")),
        **_group("gradient_parameters", known.get("gradient_parameters")),
    }


def _section(row: dict[str, Any], repeated: float | None) -> dict[str, float | None]:
    return {**_plain(row), "repeated": repeated, "holds_steps": float(row["category"] in _STEPS)}


def _sweep(sweep: dict[str, Any]) -> dict[str, float | None]:
    rows = sweep["rows"]
    failed = [row["batch_size"] for row in rows if row.get("fits") is False]
    return _plain(
        {
            "best": (sweep.get("best") or {}).get("batch_size"),
            "given": next((row["batch_size"] for row in rows if row.get("given")), None),
            "does_not_fit": min(failed, default=None),
            "fixed_share": sweep.get("fixed_share"),
        }
    )


def _finding(finding: dict[str, Any]) -> dict[str, float | None]:
    severity = float(_SEVERITIES.index(finding["severity"]))
    return {"severity": severity, "share": finding.get("share")}


def _subjects(facts: Facts) -> tuple[list[Subject], list[dict[str, Any]]]:
    """Return what is judged, and what is known of each."""
    each: list[tuple[str, dict[str, float | None], dict[str, Any]]] = [
        ("run", _plain({name: getattr(facts, name) for name in _RUN}), {})
    ]
    each += [("finding", _finding(known), known) for known in facts.findings]
    each += [("loader", _loader(known), known) for known in facts.loaders]
    each += [("training", _training(known), known) for known in facts.trainings]
    if facts.batch_sizes:
        each.append(("sweep", _sweep(facts.batch_sizes), facts.batch_sizes))
    each += [
        ("section", _section(row, facts.repeats.get(row["name"])), row) for row in facts.sections
    ]
    return [(kind, values) for kind, values, _ in each], [known for _, _, known in each]


# --- Judgements as texts ---------------------------------------------------------------------


def _of_recording(finding: dict[str, Any], share: float) -> dict[str, Any]:
    """Return a finding of the recording, which has seen the steps one by one."""
    return {
        "type": finding["kind"],
        "description": finding["title"],
        "severity": finding["severity"],
        "recommendation": " ".join(finding.get("advice") or [finding["title"]]),
        "evidence": {"share": share, **(finding.get("evidence") or {})},
        "rules": finding.get("rules") or ["RULE-01"],
    }


def _entry(judgement: tuple[Any, ...], known: dict[str, Any]) -> dict[str, Any]:
    rule, kind, text, severity, share, _, part, _, evidence, told = judgement
    if rule is None:
        return _of_recording(known, share)
    words = {**told, **evidence, "part": part, "subject": known.get("loader") or known.get("name")}
    if rule == "RULE-21":
        missing = [name for name in _SWITCH if known.get(f"avg_{name}_time") is None]
        words["missing"] = ", ".join(missing)
        words["switches"] = ", ".join(f"{_SWITCH[name]}=True" for name in missing)
    description, advice = texts.say(text, words)
    found = {"share": share}
    if text in texts.PART:
        found[texts.PART[text]] = part
    if rule == "RULE-12":
        found["bytes_by_type"] = dict(known["dtypes"])
    return {
        "type": kind,
        "description": description,
        "severity": severity,
        "recommendation": advice,
        "evidence": {**found, **evidence},
        "rules": [rule],
    }


def judge(facts: Facts) -> tuple[list[dict[str, Any]], list[str]]:
    """Return bottlenecks, by severity and then by share, and what to change, by gain."""
    subjects, known = _subjects(facts)
    kinds: dict[str, dict[str, Any]] = {}
    advice: dict[int, str] = {}
    for judgement in _core.judge(subjects):
        each = _entry(judgement, known[judgement[5]])
        advice[judgement[7]] = each["recommendation"]
        entry = kinds.setdefault(each["type"], each)
        if entry is each:
            continue
        entry["rules"] = list(dict.fromkeys([*entry["rules"], *each["rules"]]))
        if each["recommendation"] not in entry["recommendation"]:
            entry["recommendation"] += f". {each['recommendation']}"
        for key, value in each["evidence"].items():
            entry["evidence"].setdefault(key, value)
    return list(kinds.values()), list(dict.fromkeys(advice[place] for place in sorted(advice)))
