"""Bottlenecks and recommendations: what the guide advises, each where the numbers ask for it.

A rule looks at the facts and says what it found, or nothing. What several rules say of the same
kind becomes one bottleneck; every rule that fires is a recommendation.
"""

from __future__ import annotations

from stepwatch.compat._code_profiler import (
    rules_gpu,
    rules_loading,
    rules_memory,
    rules_training,
)
from stepwatch.compat._code_profiler.rule import SEVERITIES, Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from stepwatch.compat._code_profiler.facts import Facts
    from stepwatch.compat._code_profiler.rule import Rule

ALL: tuple[Rule, ...] = (
    *rules_loading.RULES,
    *rules_memory.RULES,
    *rules_gpu.RULES,
    *rules_training.RULES,
)


def _of_recording(facts: Facts) -> Iterator[Found]:
    """Return the findings of the recording, which has seen the steps one by one."""
    for finding in facts.findings:
        advice = finding.get("advice") or [finding["title"]]
        found = Found(
            (finding.get("rules") or ["RULE-01"])[0],
            finding["kind"],
            finding["severity"],
            finding.get("share") or 0.0,
            finding["title"],
            " ".join(advice),
        )
        found.evidence.update(finding.get("evidence") or {})
        found.rules = finding.get("rules") or [found.rule]
        yield found


def judge(facts: Facts) -> tuple[list[dict[str, Any]], list[str]]:
    """Return bottlenecks, by severity and then by share, and what to change, by gain."""
    found = list(_of_recording(facts))
    for rule in ALL:
        found.extend(rule(facts))
    found.sort(key=lambda each: (SEVERITIES.index(each.severity), -each.share))  # Else as above.
    kinds: dict[str, dict[str, Any]] = {}
    for each in found:
        entry = kinds.get(each.kind)
        if entry is None:
            kinds[each.kind] = {
                "type": each.kind,
                "description": each.description,
                "severity": each.severity,
                "recommendation": each.recommendation,
                "evidence": dict(each.evidence),
                "rules": list(each.rules),
            }
            continue
        entry["rules"] += [rule for rule in each.rules if rule not in entry["rules"]]
        if each.recommendation not in entry["recommendation"]:
            entry["recommendation"] += f". {each.recommendation}"
        for key, value in each.evidence.items():
            entry["evidence"].setdefault(key, value)
    ranked = sorted(found, key=lambda each: (-each.share, SEVERITIES.index(each.severity)))
    return list(kinds.values()), list(dict.fromkeys(each.recommendation for each in ranked))
