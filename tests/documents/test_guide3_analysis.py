"""Guide 3: what the times say together."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import stepwatch
from stepwatch.compat.training_analysis import Analysis, analyze, main

pytestmark = pytest.mark.once


def planted(**seconds: tuple[float, int]) -> Analysis:
    """Return the analysis of operations of so many seconds in so many calls each."""
    native = stepwatch.Profiler("planted")
    for name, (each, count) in seconds.items():
        for _ in range(count):
            native.add(name, each)
    return analyze(native)


def rules(analysis: Analysis) -> set[str]:
    return {rule for advice in analysis.advice for rule in advice["rules"]}


def test_r3_036_advice() -> None:
    slow_data = planted(
        data_batch_production=(0.03, 20),
        make_step_total=(0.02, 20),
        loss_fn_computation=(0.009, 20),
        model_update=(0.009, 20),
    )
    assert rules(slow_data) == {"RULE-36", "RULE-37", "RULE-38"}
    text = slow_data.report()
    for remedy in ("num_workers", "pin_memory=True", "preprocess data offline"):
        assert remedy in text
    slow_loss = planted(
        data_batch_production=(0.001, 20),
        make_step_total=(0.02, 20),
        loss_fn_computation=(0.018, 20),
    )
    assert rules(slow_loss) == {"RULE-39", "RULE-40", "RULE-41"}
    for remedy in ("complexity", "mixed precision", "JAX compilation"):
        assert remedy in slow_loss.report()
    # In torch there is nothing to compile.
    slow_torch = planted(training_step=(0.02, 20), loss_fn_computation=(0.018, 20))
    assert rules(slow_torch) == {"RULE-39", "RULE-40"}
    unknown = planted(data_batch_production=(0.001, 20), make_step_total=(0.02, 20))
    assert rules(unknown) == {"RULE-42", "RULE-43", "RULE-44"}
    for remedy in ("individual components", "batch sizes", "unnecessary computations"):
        assert remedy in unknown.report()
    healthy = planted(
        data_batch_production=(0.001, 20),
        make_step_total=(0.02, 20),
        loss_fn_computation=(0.009, 20),
        model_update=(0.009, 20),
    )
    assert rules(healthy) == set()


def test_r3_038_statistics_and_flags() -> None:
    native = stepwatch.Profiler("planted")
    for number in range(1, 101):
        native.add("make_step_total", number / 1000)
    for number in range(100):
        native.add("spiky", 0.5 if number % 10 == 0 else 0.001)
    for _ in range(1001):
        native.add("often", 0.0001)
    native.add("rare", 0.0001)
    analysis = analyze(native)
    row = analysis.row("make_step_total")
    assert row is not None
    assert row["count"] == 100
    assert (row["total"], row["mean"]) == (pytest.approx(5.05), pytest.approx(0.0505))
    assert (row["min"], row["max"]) == (pytest.approx(0.001), pytest.approx(0.1))
    assert row["std"] == pytest.approx(0.0288, rel=0.02)
    for key, value in (("p50", 0.050), ("p95", 0.095), ("p99", 0.099)):
        assert row[key] == pytest.approx(value, rel=0.05)
    assert analysis.high_variance == ["spiky"]
    assert analysis.high_frequency == ["often"]
    assert [row["name"] for row in analysis.top(3)] == ["spiky", "often", "rare"]
    table = analysis.table().splitlines()
    assert re.split(r"\s{2,}", table[0]) == [
        "Component", "Mean (s)", "Total (s)", "Count", "P95 (s)", "% of step",
    ]  # fmt: skip
    assert table[2].split()[:4] == ["make_step_total", "0.0505", "5.05", "100"]
    assert table[2].split()[-1] == "100.0"
    assert "High variance (p95 > 2 x mean): spiky" in analysis.report()
    with pytest.raises(ValueError, match="there is no operation 'nothing'"):
        analyze(native, step="nothing")


def test_r3_038_stored_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, Any]] = [
        {"_step": n, "timing_step_forward_backward": 0.06, "timing_step_model_partition": 0.02,
         "timing_step_optimizer_update": 0.005, "timing_data_loading": 0.06, "loss": 1.0}
        for n in range(30)
    ]  # fmt: skip
    rows.append({"_step": 30, "loss": float("nan"), "timing_step_forward_backward": float("nan")})
    rows.append({"_step": 31, "validation": 1})
    analysis = analyze(rows)
    counts = {row["name"]: row["count"] for row in analysis.components}
    assert counts == dict.fromkeys(
        ("forward_backward", "data_loading", "model_partition", "optimizer_update"), 30
    )
    said = {advice["operation"]: advice["try"] for advice in analysis.advice}
    assert said["model_partition"] == ["partition the model once and keep the parts"]
    assert "optimizer_update" not in said
    # The same from columns and from files.
    columns = {key: [row.get(key) for row in rows] for key in rows[0]}
    assert analyze(columns).table() == analysis.table()
    file = tmp_path / "history.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows[:30]), encoding="utf-8")
    assert main([str(file)]) == 0
    assert capsys.readouterr().out.startswith(analysis.table())
    table = tmp_path / "history.csv"
    names = list(rows[0])
    lines = [",".join(str(row.get(name, "")) for name in names) for row in rows]
    table.write_text("\n".join([",".join(names), *lines]), encoding="utf-8")
    assert analyze(table).table() == analysis.table()
    broken = tmp_path / "run-1.wandb"
    broken.write_bytes(b"nothing of the kind")
    assert main([str(broken)]) == 3
    assert "is no file of a W&B run" in capsys.readouterr().err
    assert main([str(tmp_path / "absent.csv")]) == 3
    with pytest.raises(TypeError, match="a history is rows"):
        analyze(5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--step", "bogus"], "--step: there is no operation 'bogus': there are data_loading"),
        (["--plot", "x.bmp"], "--plot takes a file that ends in .png or .svg, not 'x.bmp'"),
    ],
)
def test_r3_038_wrong_usage_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    file = tmp_path / "history.jsonl"
    file.write_text('{"timing_data_loading": 0.5}\n', encoding="utf-8")
    assert main([str(file), *words]) == 2
    assert capsys.readouterr() == ("", f"python -m stepwatch.compat.training_analysis: {said}\n")


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_r3_038_four_fields_of_a_plot(tmp_path: Path, ending: str) -> None:
    analysis = planted(
        data_batch_production=(0.03, 20),
        make_step_total=(0.02, 20),
        loss_fn_computation=(0.009, 30),
    )
    path = tmp_path / f"times.{ending}"
    assert analysis.plot(path) == str(path)
    data = path.read_bytes()
    if ending == "png":
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        assert data.endswith(b"IEND\xaeB`\x82")
    else:
        text = data.decode()
        for title in ("Mean time", "Share of step", "95th percentile", "Calls"):
            assert title in text
        assert text.count("data_batch_production") >= 4
