"""The shared library exports what the headers promise and nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not shutil.which("nm"), reason="nm is not here")
def test_exported_symbols(build_dir: Path) -> None:
    library = build_dir / "src" / "libstepwatch.so"
    command = ["nm", "-D", "--defined-only", "--format=posix", str(library)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    exported = {line.split()[0].partition("@")[0] for line in result.stdout.splitlines()}

    declared = set()
    for header in sorted((ROOT / "include" / "stepwatch").glob("*.h")):
        text = header.read_text(encoding="utf-8")
        text = re.sub(r"^#define SW_API.*$", "", text, flags=re.MULTILINE)
        declared |= set(re.findall(r"\bSW_API\b[^;{(]*?\b(sw_\w+)\s*[(;\[]", text))

    assert exported == declared
