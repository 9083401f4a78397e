"""Files for other tools: where they go, and that they are there whole or not at all."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # importing typing would cost more than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from stepwatch._core import Run

FORMATS = ("chrome", "collapsed", "json", "kineto", "pstats", "speedscope", "tensorboard")


def export(
    run: Run,
    format: str,  # noqa: A002
    path: str | os.PathLike[str],
    steps: int | Sequence[int] | Sequence[tuple[int, int]] | range | None = None,
    window: tuple[int, int] | None = None,
    *,
    samples: bool = False,
) -> str:
    """Do what ``Run.export`` says."""
    if format not in FORMATS:
        raise ValueError(f"there is no format {format!r}; there are {', '.join(FORMATS)}")
    wanted = _steps(steps)
    if (wanted is not None or window is not None) and format not in ("chrome", "kineto"):
        raise ValueError(f"steps and windows mean nothing for the format {format!r}")
    if samples and format not in ("chrome", "kineto"):
        raise ValueError(f"samples mean nothing for the format {format!r}")
    begin_ns, end_ns = window or (0, 0)
    target = os.fspath(path)
    if isinstance(target, bytes):
        target = os.fsdecode(target)
    if format == "tensorboard":
        run._tensorboard(target)
        return target
    if format != "kineto" or _is_file(target):
        part = 1 if format == "kineto" else 0
        if part and len(run._trace_files(wanted)) > 1:
            raise ValueError(f"each rank makes a file of its own; {target!r} must be a folder")
        name = os.path.basename(target)  # noqa: PTH119

        def write_one(fd: int) -> None:
            run._export(format, fd, part, wanted, name, begin_ns, end_ns, samples)

        _replace(target, write_one)
        return target
    file = target
    names = run._trace_files(wanted)
    os.makedirs(target, exist_ok=True)  # noqa: PTH103
    for part, name in enumerate(names, start=1):
        file = os.path.join(target, name)  # noqa: PTH118

        def write(fd: int, part: int = part, name: str = name) -> None:
            run._export(format, fd, part, wanted, name, begin_ns, end_ns, samples)

        _replace(file, write)
    return file if len(names) == 1 else target


def _steps(
    steps: int | Sequence[int] | Sequence[tuple[int, int]] | range | None,
) -> tuple[int, int, tuple[tuple[int, int], ...]] | None:
    """Return the first and the last step that are meant, and the stretches if there are several."""
    if steps is None:
        return None
    if isinstance(steps, (list, tuple)) and steps and isinstance(steps[0], (list, tuple)):
        pairs = sorted(_pair(pair) for pair in steps)
        for (_, last), (first, _) in zip(pairs, pairs[1:]):
            if first <= last:
                raise ValueError(f"stretches of steps overlap at step {first}")
        return pairs[0][0], pairs[-1][1], tuple(pairs)
    one: Any = steps
    return (*_pair(one), ())


def _pair(steps: int | Sequence[int] | range) -> tuple[int, int]:
    if isinstance(steps, int):
        steps = (steps, steps)
    elif isinstance(steps, range):
        if steps.step != 1 or not steps:
            raise ValueError(f"steps must follow one another, not {steps!r}")
        steps = (steps[0], steps[-1])
    if len(steps) != 2 or not all(isinstance(step, int) for step in steps):
        raise TypeError(f"steps must be a number or two, first and last, not {steps!r}")
    first, last = steps
    if first < 0 or last < first:
        raise ValueError(f"the steps {first} to {last} end before they begin")
    return first, last


def _is_file(path: str) -> bool:
    return path.endswith(".json") and not os.path.isdir(path)  # noqa: PTH112


def _replace(path: str, write: Callable[[int], None]) -> None:
    """Write beside the path, and take its place when all is there."""
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113
        with open(path, "wb") as file:  # a device or a pipe  # noqa: PTH123
            write(file.fileno())
        return
    path = os.path.realpath(path)  # a link stays a link
    meanwhile = f"{path}.{os.getpid()}.part"
    try:
        with open(meanwhile, "wb") as file:  # noqa: PTH123
            write(file.fileno())
        os.replace(meanwhile, path)  # noqa: PTH105
    except BaseException:
        if os.path.exists(meanwhile):  # noqa: PTH110
            os.unlink(meanwhile)  # noqa: PTH108
        raise
