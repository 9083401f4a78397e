"""Files of a code profiler: whole or not at all, and one sentence where they cannot be written."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from contextlib import contextmanager
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


def plain(value: Any) -> Any:
    """Return a value as JSON can have it: what is not a finite number is None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(each) for each in value]
    item = getattr(value, "item", None)  # A number of NumPy's or torch's.
    if callable(item):
        try:
            return plain(item())
        except (TypeError, ValueError, RuntimeError):
            return str(value)
    return str(value)


def make_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder, unless it is there."""
    Path(path).mkdir(parents=True, exist_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file; an old one stays until the new one is whole."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    meanwhile = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        meanwhile.write_text(text, encoding="utf-8")
        meanwhile.replace(target)
    except OSError:
        meanwhile.unlink(missing_ok=True)
        raise


def write_json(path: str | os.PathLike[str], document: Any) -> None:
    """Write a document as JSON that every reader takes."""
    write_text(path, json.dumps(plain(document), indent=2, allow_nan=False) + "\n")


def write_csv(
    path: str | os.PathLike[str], columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    """Write rows below a heading; what is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if value is None else value for value in row])
    write_text(path, text.getvalue())


def rank() -> tuple[int, int]:
    """Return which rank this process is, and of how many."""
    try:
        world = int(os.environ.get("WORLD_SIZE", "1"))
        number = int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")))
    except ValueError:
        return 0, 1
    return (number, world) if world > 1 else (0, 1)


def of_rank(path: str) -> str:
    """Return the name of this rank's own file; without ranks, the name as it is."""
    number, world = rank()
    if world == 1:
        return path
    target = Path(path)
    return str(target.with_name(f"{target.stem}_rank{number}{target.suffix}"))


@contextmanager
def locked(folder: str) -> Iterator[None]:
    """Be the only rank that merges; it takes as long as writing a file."""
    import fcntl

    Path(folder).mkdir(parents=True, exist_ok=True)
    file = os.open(Path(folder) / ".merge.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
