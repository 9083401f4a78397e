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
