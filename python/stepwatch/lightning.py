"""Lightning: ``Trainer(profiler=stepwatch.lightning.Profiler())``.

Under ``stepwatch run`` steps and phases need neither; the profiler adds Lightning's own names of
what it does, and both are for programs that are started otherwise.
"""

from __future__ import annotations

import sys

import stepwatch
from stepwatch.integrations._session import Records, Session, missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Callback", "Profiler"]


def _bases() -> tuple[Any, ...]:
    """Return the classes of the Lightning that the program uses, whichever name it has."""
    names = ["lightning.pytorch", "pytorch_lightning"]
    names.sort(key=lambda name: name not in sys.modules)
    why: object = None
    for name in names:
        try:
            __import__(name)
            __import__(f"{name}.profilers")
        except ImportError as error:
            why = why or error
            continue
        module = sys.modules[name]
        return sys.modules[f"{name}.profilers"].Profiler, module.Callback
    package = "lightning or pytorch_lightning"
    return tuple(missing(package, f"lightning.{name}", why) for name in ("Profiler", "Callback"))


_ProfilerBase, _CallbackBase = _bases()

# What the ends of Lightning's names of actions say about the phase of a step.
_PHASES = {
    "train_dataloader_next": "data_wait",
    "batch_to_device": "h2d",
    "transfer_batch_to_device": "h2d",
    "training_step": "forward",
    "backward": "backward",
    "optimizer_step": "optimizer",
    "lr_scheduler_step": "optimizer",
    "configure_gradient_clipping": "optimizer",
    "optimizer_zero_grad": "zero_grad",
    "validation_step": "validation",
    "save_checkpoint": "checkpoint",
}


_ACTION_COLUMNS = ("Action", "Mean (s)", "Calls", "Total (s)", "% of the run")


def phase_of(action_name: str) -> Any:
    """Return the phase of a step that an action counts for, or None."""
    if action_name.startswith("[Callback]"):
        return None
    return _PHASES.get(action_name.rpartition(".")[2])


def is_idle(profiler: Any) -> bool:
    """Tell whether it is the one that Lightning has where nobody asked for any."""
    kind = type(profiler)
    return bool(
        kind.__name__ == "PassThroughProfiler"
        and kind.__module__.partition(".")[0] in ("lightning", "pytorch_lightning")
    )


class Sections(dict):  # type: ignore[type-arg]
    """Sections by the names of actions, made when they are first asked for.

    Lightning asks for a context manager some forty times a step. ``__getitem__`` hands the section
    itself out, so that no function of Python's runs around an action.
    """

    def __init__(self, make: Callable[[str], Any]) -> None:
        """Take what makes the section of a name."""
        super().__init__()
        self._make = make

    def __missing__(self, action_name: str) -> Any:
        """Make it."""
        section = self[action_name] = self._make(action_name)
        return section


def _section(action_name: str) -> stepwatch.section:
    return stepwatch.section(action_name, phase=phase_of(action_name))


class Profiler(_ProfilerBase):  # type: ignore[misc,valid-type]
    """A Lightning profiler: each of its actions is a section, at the cost of one.

    It begins to record with the first stage of the trainer and reports after its last; within
    ``stepwatch run`` that recording goes on.

    >>> trainer = Trainer(profiler=stepwatch.lightning.Profiler(dirpath=".", filename="times"))
    """

    def __init__(self, dirpath: Any = None, filename: str | None = None, **config: Any) -> None:
        """Take where ``describe`` writes to, and the options of ``stepwatch.start``."""
        super().__init__(dirpath=dirpath, filename=filename)
        self._session = Session(config)
        self._begin_anew(_section)

    def _begin_anew(self, make: Callable[[str], Any]) -> None:
        self._sections = Sections(make)
        self._open: list[str] = []
        # A class of the program's that changes one of these wants to be asked.
        if all(getattr(type(self), name) is getattr(Profiler, name) for name in _ASKED):
            self.profile = self._sections.__getitem__

    @property
    def run(self) -> stepwatch.Run | None:
        """What was recorded; None before the end, and where another recording goes on."""
        return self._session.run

    def setup(self, stage: str, local_rank: int | None = None, log_dir: str | None = None) -> None:
        """Begin to record, with the first stage."""
        super().setup(stage, local_rank, log_dir)
        self._session.begin()

    def start(self, action_name: str) -> None:
        """Begin an action."""
        section = self._sections[action_name]
        self._open.append(action_name)
        section.__enter__()

    def stop(self, action_name: str) -> None:
        """End an action."""
        if action_name not in self._open:
            raise ValueError(
                f"Attempting to stop recording an action ({action_name}) which was never started."
            )
        # The newest of that name.
        del self._open[len(self._open) - 1 - self._open[::-1].index(action_name)]
        self._sections[action_name].__exit__(None, None, None)

    def summary(self) -> str:
        """Return the report of what was recorded so far, as text, and a table of all actions."""
        run = self.run if self.run is not None else self._running()
        if run is None:
            return ""
        report = run.report()
        return f"\n{report}\n{self._actions(report.to_dict())}"

    def _actions(self, report: dict[str, Any]) -> str:
        """Return the table that Lightning's own profilers print, of all actions by full name."""
        totals: dict[str, list[float]] = {}
        sections = report["sections"]
        for row in sections if isinstance(sections, list) else []:
            if row["name"] in self._sections:
                sums = totals.setdefault(row["name"], [0, 0.0])
                sums[0] += row["calls"]
                sums[1] += row["total_ms"] / 1e3
        if not totals:
            return ""
        whole = report["run"]["duration_s"] or float("inf")
        rows = [
            (name, f"{total / calls:.5g}", f"{calls:,.0f}", f"{total:.5g}", f"{total / whole:.2%}")
            for name, (calls, total) in sorted(totals.items(), key=lambda each: -each[1][1])
        ]
        rows.insert(0, _ACTION_COLUMNS)
        wide = [max(len(row[column]) for row in rows) for column in range(len(_ACTION_COLUMNS))]
        lines = [
            "  ".join([row[0].ljust(wide[0]), *map(str.rjust, row[1:], wide[1:])]) for row in rows
        ]
        return "\n".join(["", lines[0], "-" * len(lines[0]), *lines[1:], ""])

    def _running(self) -> stepwatch.Run | None:
        run: stepwatch.Run | None = stepwatch._core._recording(0)[0]
        return run

    def describe(self) -> None:
        """Write the summary to the file or to the log; the recording that began here ends."""
        self._session.end()
        super().describe()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process: strategies that spawn pickle the profiler."""
        return {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("_sections", "_open", "profile")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin anew."""
        self.__dict__.update(state)
        self._begin_anew(_section)


_ASKED = ("profile", "start", "stop")


class Callback(Records, _CallbackBase):  # type: ignore[misc,valid-type]
    """Record a fit, from its beginning to its end.

    >>> callback = stepwatch.lightning.Callback(name="fit")
    >>> Trainer(callbacks=[callback]).fit(model)
    >>> print(callback.run.report())
    """

    def setup(self, *_: Any, **__: Any) -> None:
        """Begin to record."""
        self._session.begin()

    def teardown(self, *_: Any, **__: Any) -> None:
        """End."""
        self._session.end()

    def on_exception(self, *_: Any, **__: Any) -> None:
        """End: what there is is kept."""
        self._session.end()
