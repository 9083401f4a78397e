"""Verdicts on recorded runs of the zoo: the same trace, the same findings, on any machine.

tests/zoo/recorded holds the traces of a few programs, as ``make zoo ZOO="--keep DIR"`` leaves them,
made on a machine of two cores; those of the names gpu_… on one with a GPU (``zoo_gpu.toml``).
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from .conftest import Run

RECORDED = Path(__file__).parents[1] / "zoo" / "recorded"

# Program → (kind of the first finding, file, name).
PLANTED = {
    "batch_augment": ("loader_main_process", "augment.py", "augment"),
    "codebook": ("variance", "train.py", "refresh_codes"),
    "dictionary": ("validation", "learn.py", "validate"),
    "elastic": ("loader_transform", "transforms.py", "Elastic"),
    "eval_often": ("validation", "train.py", None),
    "news_clicks": ("optimizer", "train.py", "Adagrad"),
    "gpu_class_accuracy": ("host_sync", "metrics.py", "Tensor.item"),
    "gpu_hand_gru": ("launch_bound", "train.py", "OwnGRU.forward"),
    "gpu_heatmaps": ("host_sync", "train.py", "Tensor.cpu"),
    "gpu_orbits": ("dtype", "train.py", "Energy"),
    "gpu_tiny_gpt": ("amp", "train.py", "GPT"),
    "gpu_volumes": ("transfer", "train.py", "Tensor.to"),
    "novelty": ("python_overhead", "train.py", "Counts.key"),
    "petrels": ("logging", "callbacks.py", "WeightBoard.on_train_batch_end"),
    "ragged": ("loader_collate", "train.py", "pad_batch"),
    "reviews": ("variance", "train.py", None),
    "seals": ("logging", "train.py", "GradientJournal.on_before_optimizer_step"),
    "shapes": ("loader_workers", "train.py", "loader"),
    "short_epochs": ("loader_restart", "train.py", "loader"),
    "tile_server": ("loader_io", "client.py", "Client.ask"),
    "whitened": ("redundant_work", "losses.py", "MahalanobisLoss.forward"),
}
# Program → how what bounds it begins.
HEALTHY = {
    "gpu_class_accuracy_fixed": "device: ",
    "gpu_many_embeddings_fixed": "compute: ",
    "gpu_tiny_gpt_fixed": "compute: ",
    "healthy_images": "compute: ",
    "healthy_torch": "compute: ",
    "tiny_lm": "compute: ",
}


def report_on(stepwatch: Run, name: str, folder: Path) -> dict[str, Any]:
    with tarfile.open(RECORDED / f"{name}.tar.xz") as archive:
        for member in archive.getmembers():
            assert member.isfile()
            source = archive.extractfile(member)
            assert source
            path = folder / name / Path(member.name).name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(source.read())
    result = stepwatch("report", folder / name, "--json")
    assert result.returncode == 0, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report


@pytest.mark.parametrize("name", PLANTED)
def test_planted(stepwatch: Run, tmp_path: Path, name: str) -> None:
    report = report_on(stepwatch, name, tmp_path)
    first = report["findings"][0]
    kind, file, where = PLANTED[name]
    assert first["kind"] == kind
    assert Path(first["where"]["file"]).name == file
    assert where is None or first["where"]["name"] == where
    assert first["severity"] in ("high", "critical")
    assert first["advice"]
    assert first["evidence"]
    predicted = first["predicted"]
    assert 1 < predicted["low"] <= predicted["speedup"] <= predicted["high"]
    assert predicted["step_ms"] < report["steps"]["step_ms"]["mean"]
    # Two rules come to the same place in petrels.
    ids = [finding["id"] for finding in report["findings"]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy(stepwatch: Run, tmp_path: Path, name: str) -> None:
    report = report_on(stepwatch, name, tmp_path)
    assert [finding["kind"] for finding in report["findings"]] == []
    assert report["bound"].startswith(HEALTHY[name])
    assert sum(entry["checked"] for entry in report["checked"]) > 15


def test_the_same_twice(stepwatch: Run, tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    first = report_on(stepwatch, "shapes", tmp_path)
    again = report_on(stepwatch, "shapes", tmp_path / "again")
    assert first["findings"] == again["findings"]


def test_rare_places_are_left_out(stepwatch: Run, tmp_path: Path) -> None:
    """What is often on top of the stack, or anywhere in it, is listed; the rest is counted."""
    report = report_on(stepwatch, "tiny_lm", tmp_path)
    for part in ("functions", "lines"):
        rows = [row for row in report[part] if row["source"] == "sampler"]
        assert 300 <= len(rows) <= 450
        assert report["sampler"][f"{part}_left_out"] > 0
        own = [row["self_samples"] for row in rows]
        assert own == sorted(own, reverse=True)
        # The outermost function is in every sample and never on top.
        assert max(rows, key=lambda row: row["samples"])["total_share"] > 0.8


@pytest.mark.parametrize("name", ["shapes", "healthy_torch"])
def test_a_report_against_its_own_run(stepwatch: Run, tmp_path: Path, name: str) -> None:
    """Nothing has changed: sampled functions are no profile, and modules are counted alike."""
    report = report_on(stepwatch, name, tmp_path)
    assert report["functions"]
    (tmp_path / "report.json").write_text(json.dumps(report), encoding="utf-8")
    result = stepwatch("compare", tmp_path / "report.json", tmp_path / name, "--json")
    assert result.returncode == 0, result.stderr
    (run,) = json.loads(result.stdout)["runs"]
    assert run["verdict"] == "same"
    assert not [note for note in run["notes"] if "profile" in note]
    assert run["modules"]
    for kind in ("phases", "modules", "sections"):
        for each in run[kind]:
            assert each["difference_ms"] == pytest.approx(0, abs=1e-6), each
    page = stepwatch("compare", tmp_path / "report.json", tmp_path / name, "--ascii")
    assert "0.00 ns" not in page.stdout
