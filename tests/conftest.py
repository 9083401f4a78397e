"""What the tests in Python share: where the build is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def build_dir() -> Path:
    """Return the build folder under test."""
    return Path(os.environ.get("TEST_BUILD_DIR", ROOT / "build")).resolve()


@pytest.fixture(scope="session")
def stepwatch_cli(build_dir: Path) -> Path:
    """Return the command under test."""
    return build_dir / "src" / "cli" / "stepwatch"


# Files whose tests start programs that import a framework, which takes seconds each. They look at
# counts and results, not at time, so that several may run at once.
FRAMEWORKS = {
    "test_frameworks.py",
    "test_gpu_monitor_real.py",
    "test_guide0.py",
    "test_guide1.py",
    "test_guide1_config.py",
    "test_guide1_reports.py",
    "test_guide1_rules.py",
    "test_guide2.py",
    "test_guide3.py",
    "test_guide4.py",
    "test_jax_hooks.py",
    "test_logs.py",
    "test_report_schema.py",
    "test_run_launchers.py",
    "test_run_torch.py",
    "test_sweeps.py",
    "test_sweeps_cuda.py",
    "test_sweeps_training.py",
    "test_torch_compile.py",
    "test_torch_hooks.py",
    "test_torch_hooks_compile.py",
    "test_torch_loader.py",
    "test_torch_operators.py",
    "test_torch_waits.py",
}


# Those that look at how long real programs take: they want a machine for themselves.
TIMED = {"test_findings.py", "test_findings_loader.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of those files."""
    for item in items:
        if item.path.name in FRAMEWORKS:
            item.add_marker(pytest.mark.frameworks)
        if item.path.name in TIMED:
            item.add_marker(pytest.mark.timed)
