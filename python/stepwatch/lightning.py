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
        self._sections: dict[str, stepwatch.section] = {}
        self._open: list[str] = []

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
        section = self._sections.get(action_name)
        if section is None:
            end = action_name.rpartition(".")[2]
            phase: Any = None if action_name.startswith("[Callback]") else _PHASES.get(end)
            section = self._sections[action_name] = stepwatch.section(action_name, phase=phase)
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
        state = dict(self.__dict__)
        state.update(_sections={}, _open=[])
        return state


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
