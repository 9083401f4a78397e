"""The Lightning guide: ``Trainer(callbacks=[ProfilerCallback("outputs/profiler_logs/ResNet")])``.

The callback records a fit with the native recorder and its schedule, and leaves what the guide
names: a ``*.pt.trace.json`` for each cycle, ``chrome_trace.json``, ``profiler_summary.txt``, and a
table of Lightning's actions on the console. Nothing that goes wrong in it stops the training.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
import time
from pathlib import Path

import stepwatch
from stepwatch import _core, lightning
from stepwatch.compat import _lightning_texts as texts
from stepwatch.compat import _switches
from stepwatch.compat._console import say
from stepwatch.integrations import _steps
from stepwatch.integrations._framework import FRAMEWORK
from stepwatch.integrations._notes import note_once
from stepwatch.integrations._session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

__all__ = ["ProfilerCallback"]

DEFAULT_FOLDER = "outputs/profiler_logs"
_HAS_LIGHTNING = hasattr(lightning._CallbackBase, "on_train_batch_end")
_Base: Any = lightning._CallbackBase if _HAS_LIGHTNING else object
_ProfilerBase: Any = lightning.Profiler if _HAS_LIGHTNING else object

_NO_CYCLE = {
    "schemaVersion": 1,
    "traceEvents": [],
    "stepwatch": {"missing": ["The training ended before the first active step."]},
}
_TRACES = "*.pt.trace.json"
# What Lightning calls in every step. To a callback of which it is not a function it does nothing;
# a call that does nothing takes it several microseconds.
_EACH_STEP = (
    "on_train_batch_start",
    "on_train_batch_end",
    "on_before_zero_grad",
    "on_before_backward",
    "on_after_backward",
    "on_before_optimizer_step",
)
# Enough to know the mean of a step.
_STEPS_MOST = 20_000
# Keys of the configuration that are arguments of the callback.
_NUMBERS = (
    "schedule_every_n_steps",
    "wait_steps",
    "warmup_steps",
    "active_steps",
    "repeat_cycles",
)


class _Actions(_ProfilerBase):  # type: ignore[misc]
    """Lightning's actions as sections of a profiler; the trainer's own goes on beside it."""

    def __init__(self, inner: Any, profiler: stepwatch.Profiler) -> None:
        super().__init__()
        self.inner = inner
        # Another one of ours would only record the same again.
        idle = isinstance(inner, lightning.Profiler) or lightning.is_idle(inner)
        self._told = None if idle else inner
        nothing = stepwatch.Profiler("nothing", enabled=False).section("nothing")

        def make(action_name: str) -> Any:
            # What this callback itself does is no action of the training.
            if ProfilerCallback.__qualname__ in action_name:
                return nothing
            return profiler.section(action_name, phase=lightning.phase_of(action_name))

        self._begin_anew(make)
        if idle:
            self.profile = self._sections.__getitem__

    def start(self, action_name: str) -> None:
        """Begin an action."""
        if self._told is not None:
            self._told.start(action_name)
        super().start(action_name)

    def stop(self, action_name: str) -> None:
        """End an action, unless it began before this profiler was there."""
        if action_name in self._open:
            super().stop(action_name)
        if self._told is not None:
            self._told.stop(action_name)

    def setup(self, *args: Any, **kwargs: Any) -> None:
        """Hand it on."""
        self.inner.setup(*args, **kwargs)

    def teardown(self, *args: Any, **kwargs: Any) -> None:
        """Hand it on."""
        self.inner.teardown(*args, **kwargs)

    def summary(self) -> str:
        """Hand it on."""
        return str(self.inner.summary())

    def describe(self) -> None:
        """Hand it on."""
        self.inner.describe()


class ProfilerCallback(_Base):  # type: ignore[misc]
    """Profile a few steps of a fit again and again, and write what TensorBoard and Chrome read.

    Every ``schedule_every_n_steps`` steps a cycle begins: ``wait_steps`` idle, ``warmup_steps``
    recorded and discarded, ``active_steps`` recorded. There are ``repeat_cycles`` of them, without
    end when it is 0. Other keywords are options of ``stepwatch.start``.

    >>> callback = ProfilerCallback("outputs/profiler_logs/ResNet")
    >>> Trainer(callbacks=[callback]).fit(model)
    >>> callback.traces, callback.chrome_trace, callback.summary
    """

    def __init__(
        self,
        output_dir: str | os.PathLike[str] | None = None,
        schedule_every_n_steps: int = 50,
        wait_steps: int = 1,
        warmup_steps: int = 1,
        active_steps: int = 3,
        repeat_cycles: int = 2,
        *,
        enabled: bool | None = None,
        **config: Any,
    ) -> None:
        """Take where the files go and which steps are recorded."""
        super().__init__()
        self.output_dir = _switches.output_dir(output_dir, default=DEFAULT_FOLDER)
        self.schedule_every_n_steps = schedule_every_n_steps
        self.wait_steps = wait_steps
        self.warmup_steps = warmup_steps
        self.active_steps = active_steps
        self.repeat_cycles = repeat_cycles
        self.enabled = enabled
        self._config = config
        self._forget()
        if not _HAS_LIGHTNING:
            note_once(
                "Lightning is not installed here; ProfilerCallback profiles a loop that calls "
                "on_train_start, on_train_batch_start, on_train_batch_end and on_train_end."
            )

    @classmethod
    def from_config(
        cls,
        profiling: Mapping[str, Any],
        *,
        model_name: str | None = None,
        overrides: Iterable[str] = (),
        **config: Any,
    ) -> ProfilerCallback | None:
        """Return the callback that a configuration's part ``profiling`` describes; None when off.

        ``overrides`` are those that were typed (``profiling.enabled=true``): they are stronger than
        ENABLE_PROFILING=true and PROFILE_OUTPUT_DIR, which are stronger than the file. Files go to
        a folder named after the model.
        """
        keys = {text.partition("=")[0].lstrip("+") for text in overrides}
        typed = {key.partition(".")[2] for key in keys if key.startswith("profiling.")}
        said = profiling.get("enabled")
        if isinstance(said, str):
            word, said = said, _switches.truth(said)
            if said is None:
                note_once(
                    f"profiling.enabled={word} is neither true nor false, and taken as not set."
                )
        where = profiling.get("output_dir")
        on = _switches.enabled(
            override=said if "enabled" in typed else None,
            configured=said if "enabled" not in typed else None,
            default=False,
        )
        if not on:
            return None
        for key in profiling:
            if key not in (*_NUMBERS, "enabled", "output_dir"):
                note_once(f"profiling.{key} is no setting of ProfilerCallback and changes nothing.")
        folder = Path(
            _switches.output_dir(
                where if "output_dir" in typed else None, where, default=DEFAULT_FOLDER
            )
        )
        numbers = {key: profiling[key] for key in _NUMBERS if profiling.get(key) is not None}
        return cls(folder / model_name if model_name else folder, **numbers, **config)

    @property
    def output_dir(self) -> Path:
        """Where files go; one that is relative, from where it was said."""
        return Path(_switches.anchored(self._output_dir, self._base))

    @output_dir.setter
    def output_dir(self, folder: str | os.PathLike[str]) -> None:
        self._output_dir, self._base = os.fspath(folder), _switches.here()

    def _forget(self) -> None:
        """Begin a life: a callback may be used for another fit, or be sent to another process."""
        self._hear_steps()
        self.run: stepwatch.Run | None = None
        self.traces: list[Path] = []
        self.chrome_trace: Path | None = None
        self.summary: Path | None = None
        self.actions: list[dict[str, Any]] = []
        self.metrics: dict[str, float | None] = {}
        self.costs: dict[str, float] = {}
        self._state = "off"  # "on" while it profiles
        self._tried = False
        self._session: Session | None = None
        self._profiler: stepwatch.Profiler | None = None
        self._trainer: Any = None
        self._rank = 0
        self._shares = False  # the recording with other ranks
        self._inner: Any = None
        self._first = 0  # number of the fit's first step in the recording
        self._cycle: list[int] | None = None
        self._cycles: list[tuple[int, int]] = []
        self._waits: bool | None = None  # None: Lightning's own loop gives the steps
        self._open: list[tuple[str, Any]] = []  # actions that are told by the hooks
        self._schedule = ""
        self._begun = 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process: strategies that spawn pickle callbacks."""
        names = ("_output_dir", "_base", "enabled", "_config", *_NUMBERS)
        return {name: self.__dict__[name] for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin anew."""
        self.__dict__.update(state)
        self._forget()

    # --- What the trainer calls ----------------------------------------------------------------

    def setup(self, trainer: Any = None, pl_module: Any = None, stage: str | None = None) -> None:
        """Begin with the fit."""
        del pl_module
        if stage in (None, "fit"):
            self._safely("start", self._begin, trainer)

    def on_train_start(self, trainer: Any = None, pl_module: Any = None) -> None:
        """Begin, where nobody called ``setup``."""
        del pl_module
        if not self._tried:
            self._safely("start", self._begin, trainer)

    def on_train_batch_start(self, *_: Any, **__: Any) -> None:
        """A batch is there."""
        if self._state == "on":
            self._safely("record a step", self._batch_begins)

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        """A batch was trained on."""
        if self._state == "on" and self._waits is not None:
            self._safely("record a step", self._batch_ends)

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Write everything."""
        self._end()

    def on_exception(self, *_: Any, **__: Any) -> None:
        """Write what there is; the exception goes on."""
        self._end()

    def teardown(self, *_: Any, **__: Any) -> None:
        """Write what there is, if the training did not come to its end."""
        self._end()

    # --- Beginning -----------------------------------------------------------------------------

    def _safely(self, what: str, function: Callable[..., Any], *args: Any) -> Any:
        """Call it; training goes on whatever happens in it."""
        try:
            return function(*args)
        except Exception as error:
            why = _sentence(error)
            if getattr(error, "errno", None) == errno.EMFILE:
                why += f" ({texts.FEWER_FILES})"
            note_once(f"Profiling could not {what}: {why}. The training goes on.")
            return None

    def _begin(self, trainer: Any) -> None:
        if self._state == "on" or not _switches.enabled(argument=self.enabled, default=True):
            return
        self._forget()
        self._tried = True
        for name in _NUMBERS:
            setattr(self, name, self._number(name))
        every = self.schedule_every_n_steps
        needed = self.wait_steps + self.warmup_steps + self.active_steps
        if 0 < every < needed:
            note_once(
                f"A cycle of {needed} steps does not fit into schedule_every_n_steps={every}: "
                "cycles follow each other without a gap."
            )
            every = needed  # The recorder need not say it again.
        schedule = (
            f"wait={self.wait_steps},warmup={self.warmup_steps},active={self.active_steps},"
            f"every={every},repeat={self.repeat_cycles}"
        )
        _core.schedule_action(schedule, 0)  # says what is wrong with it
        options = {
            "name": self.output_dir.name or "fit",
            "runs_dir": os.fspath(self.output_dir / "runs"),
            "policy": "stream",
            "monitor_interval_s": 1,
            **self._config,
            "schedule": schedule,
        }
        self.output_dir.mkdir(parents=True, exist_ok=True)
        self._begun = time.perf_counter()
        self._session = Session(options)
        self._session.begin()
        if not stepwatch.is_recording():
            note_once("ProfilerCallback profiles nothing: recording is switched off, or failed.")
            return
        self._state = "on"
        self._trainer = trainer
        self._rank = int(getattr(trainer, "global_rank", 0) or 0)
        ranks = int(getattr(trainer, "world_size", 1) or 1)
        self._shares = ranks > 1 and not self._session.records
        self._first = max(0, _core.step_number())
        self._schedule = f"{schedule},skip_first={self._first}" if self._first else schedule
        self._watch(trainer)
        self._say(texts.beginning(self))

    def _number(self, name: str) -> int:
        """Return a setting as a number of steps or cycles; a configuration may have it as text."""
        least = 1 if name == "active_steps" else 0
        said = getattr(self, name)
        try:
            number = int(said)
        except (TypeError, ValueError):
            number = -1
        if number < least:
            raise ValueError(f"{name} is {said!r}, not a whole number of at least {least}")
        return number

    def _watch(self, trainer: Any) -> None:
        torch = sys.modules.get("torch")
        if torch is not None:
            from stepwatch.integrations import torch_operators

            torch_operators.open_for(torch, self._schedule, "ProfilerCallback", brief=True)
        _steps.watch(self._step)
        self._profiler = stepwatch.Profiler("actions", values=0)
        inner = getattr(trainer, "profiler", None)
        if _HAS_LIGHTNING and hasattr(inner, "describe"):
            self._inner = inner
            trainer.profiler = _Actions(inner, self._profiler)

    # --- Steps ---------------------------------------------------------------------------------

    def _batch_begins(self) -> None:
        """Give the steps and the actions, where no loop of Lightning's does."""
        source, is_open, _ = _core.train_now()
        if self._waits is None and is_open and source >= FRAMEWORK:
            self._hear_no_steps()
        elif self._waits is None:
            self._enter("run_training_epoch")
            _core.train_wait(FRAMEWORK, self, self)
            self._waits = True
        if self._waits:
            self._waits = False
            _core.train_got(self)
            self._leave("train_dataloader_next")
            self._enter("run_training_batch")

    def _hear_no_steps(self) -> None:
        """Have Lightning pass by what it would call in each step; its loop is watched already.

        What a class of the program's has made of these is called.
        """
        for name in _EACH_STEP:
            ours = (vars(ProfilerCallback).get(name), getattr(_Base, name, None))
            if getattr(type(self), name, None) in ours:
                self.__dict__[name] = None

    def _hear_steps(self) -> None:
        for name in _EACH_STEP:
            self.__dict__.pop(name, None)

    def _batch_ends(self) -> None:
        _core.train_works()
        if not self._waits:
            self._leave("run_training_batch")
            # A step begins: what is written of the cycle before is no time of the loader's.
            _core.train_wait(FRAMEWORK, self, self)
            self._enter("train_dataloader_next")
            self._waits = True

    def _enter(self, action: str) -> None:
        if self._profiler is not None:
            section = self._profiler.section(action)
            section.__enter__()
            self._open.append((action, section))

    def _leave(self, action: str | None) -> None:
        """Leave an action and what is open inside it; None: all."""
        while self._open and action in (None, *(name for name, _ in self._open)):
            name, section = self._open.pop()
            section.__exit__(None, None, None)
            if name == action:
                return

    def _step(self, number: int) -> int:
        """A step begins: the cycle before it may be over. Return the next that matters."""
        action = _core.schedule_action(self._schedule, number)
        cycle = self._cycle
        if cycle is not None and number > cycle[1] and (action < 2 or self._is_last(cycle[1])):
            self._cycle = None
            self._safely("write the trace of a cycle", self._write_cycle, *cycle)
        if action >= 2:
            self._cycle = [number, number] if self._cycle is None else [self._cycle[0], number]
            return 0
        return _core.schedule_next(self._schedule, number)

    def _is_last(self, number: int) -> bool:
        return bool(_core.schedule_action(self._schedule, number) == 3)

    def _write_cycle(self, first: int, last: int) -> None:
        """Write the trace of a cycle as soon as it is over, for who wants to look meanwhile."""
        if (first, last) not in self._cycles:
            self._cycles.append((first, last))
        run = self.run if self.run is not None else _core._recording(0)[0]
        # Ranks that one recording has together are written together, when all are done.
        if run is None or (self._shares and self.run is None):
            return
        profiler = self._profiler
        with profiler.section(texts.WRITING) if profiler else stepwatch.section(texts.WRITING):
            self.output_dir.mkdir(parents=True, exist_ok=True)
            if self._shares:
                before = set(self.output_dir.glob(_TRACES))
                run.export("kineto", self.output_dir, steps=(first, last))
                self.traces += sorted(set(self.output_dir.glob(_TRACES)) - before)
            else:
                path = self._trace_name()
                run.export("kineto", path, steps=(first, last))
                self.traces.append(path)

    def _trace_name(self) -> Path:
        """Return a name that TensorBoard's plug-in knows, and that is not taken."""
        ms = time.time_ns() // 1_000_000
        while True:
            path = self.output_dir / f"{socket.gethostname()}_{os.getpid()}.{ms}.pt.trace.json"
            if not path.exists():
                return path
            ms += 1

    # --- The end -------------------------------------------------------------------------------

    def _end(self) -> None:
        self._tried = False
        if self._state != "on":
            return
        self._state = "off"
        took = time.perf_counter() - self._begun
        self._safely("stop", self._stop)
        if self._cycle is not None:
            last, self._cycle = self._cycle, None
            self._safely("write the trace of a cycle", self._write_cycle, *last)
        if self._shares and self._rank == 0:
            for cycle in self._cycles:
                self._safely("write the trace of a cycle", self._write_cycle, *cycle)
        self._safely("write chrome_trace.json", self._write_chrome)
        self._safely("write profiler_summary.txt", self._write_summary)
        self._safely("report", self._report, took)

    def _stop(self) -> None:
        self._hear_steps()
        if self._inner is not None:
            self._trainer.profiler, self._inner = self._inner, None
        self._leave(None)
        if self._waits:
            _core.train_end(self)
        self._trainer = None
        _steps.forget(self._step)
        operators = sys.modules.get("stepwatch.integrations.torch_operators")
        if operators is not None:
            operators.remove()
        assert self._session is not None
        self.run = self._session.end() or _core._recording(0)[0]

    def _own_name(self, name: str) -> Path:
        """Return a path in the folder; ranks but the first have their number in the name."""
        self.output_dir.mkdir(parents=True, exist_ok=True)
        stem, dot, suffix = name.partition(".")
        return self.output_dir / (f"{stem}.rank{self._rank}{dot}{suffix}" if self._rank else name)

    def _write_chrome(self) -> None:
        path = self._own_name("chrome_trace.json")
        if self.run is not None and self._cycles:
            self.run.export("chrome", path, steps=self._cycles)
        else:
            path.write_text(json.dumps(_NO_CYCLE), encoding="utf-8")
        self.chrome_trace = path

    def _write_summary(self) -> None:
        path = self._own_name("profiler_summary.txt")
        path.write_text(texts.operation_summary(self.run, self._recorded()), encoding="utf-8")
        self.summary = path

    def _recorded(self) -> int:
        """Return how many steps of the cycles there are."""
        if self.run is None or not self._cycles:
            return 0
        numbers = {row["step"] for row in self.run.steps}
        return sum(step in numbers for a, b in self._cycles for step in range(a, b + 1))

    def _report(self, took: float) -> None:
        """Print the tables and where everything is."""
        if self._profiler is not None:
            self.actions = texts.action_rows(self._profiler.rows(), took)
        parts = [texts.action_table(self.actions, took), texts.bottlenecks(self.actions)]
        if self.run is not None:
            document = self.run.report().to_dict()
            rows = [row for row in self.run.steps[:_STEPS_MOST] if row["step"] >= self._first]
            usual = texts.usual_steps(rows, self._cycles)
            self.metrics = texts.step_metrics(usual)
            writing = sum(row["total_s"] for row in self.actions if row["action"] == texts.WRITING)
            self.costs = texts.costs(document, self.run, rows, self._cycles, writing)
            parts += [
                texts.metric_lines(self.metrics, len(usual)),
                texts.findings(document),
                texts.overhead(self.costs, took),
            ]
        parts.append(texts.ending(self, len(self._cycles), self._recorded()))
        self._say("\n\n".join(part for part in parts if part))

    def _say(self, text: str) -> None:
        if self._rank == 0:
            say(text)


def _sentence(error: BaseException) -> str:
    text = (str(error).splitlines() or [""])[0][:300]
    if not isinstance(error, (OSError, ValueError)):  # those say it in words
        text = f"{type(error).__name__}: {text}"
    return text.rstrip(". ")
