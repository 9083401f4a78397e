"""The flexible profiler of the guide "Machine Learning Training Example", on this profiler.

    from stepwatch.compat.omni import (
        auto_profile_blocks, profile_line_by_line, profile_methods, profiler, profiler_config,
    )

Functions and blocks are two profilers (``stepwatch.Profiler``), lines are ``stepwatch.Lines``; this
module names their numbers as the guide does, and saves and prints them when the guide says so:

- at the end of a block named like ``epoch_3``: the blocks of that epoch;
- at the steps of ``steps_to_save``: everything so far. ``step_profiler()`` counts steps, from 1;
  where the program never calls it, each end of a block ``train_step`` or ``training_step`` is one;
- at the end of ``train`` and of the program: the overall and the line profile.

``profiler_config.autosave = False`` leaves all of this to explicit calls.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
from pathlib import Path
from types import FunctionType
from typing import overload

from stepwatch import Lines, Profiler
from stepwatch.compat import _omni_tables as tables
from stepwatch.compat._console import say
from stepwatch.compat._omni_advice import advice
from stepwatch.compat._omni_calls import around, bare_name, epoch_file, epoch_of, is_around
from stepwatch.compat._omni_config import ProfilerConfig
from stepwatch.compat._omni_inner import with_inner_blocks
from stepwatch.integrations._notes import note_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Any, TypeVar

    from stepwatch._core import profiler_section

    _T = TypeVar("_T")
    _C = TypeVar("_C", bound=type)

__all__ = [
    "FlexibleProfiler",
    "ProfilerConfig",
    "auto_profile_blocks",
    "profile_function",
    "profile_line_by_line",
    "profile_methods",
    "profiler",
    "profiler_config",
]

_STEPS = ("train_step", "training_step")
_TRAIN = ("train", "training")
# So many files of epochs are written one by one; then those whose number is a power of two.
_MOST_EPOCHS = 1000


class _Thread(threading.local):
    """What a thread has open."""

    def __init__(self) -> None:
        self.blocks: list[AbstractContextManager[Any]] = []  # by start_block
        self.epochs = 0
        self.trains = 0


class _Block:
    """A block whose end means something: an epoch, a step, the training."""

    def __init__(self, owner: FlexibleProfiler, section: profiler_section) -> None:
        self._owner = owner
        self._section = section

    def __enter__(self) -> profiler_section:
        self._owner._begins(self._section.name)
        # From the type: the block belongs to the frame of the program, not to this one.
        return type(self._section).__enter__(self._section)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        type(self._section).__exit__(self._section, exc_type, exc, traceback)
        self._owner._ends(self._section.name)


class FlexibleProfiler:
    """Times functions, blocks and lines; there is one, ``profiler``.

    with profiler.profile_context("train_step"):
        loss = step(batch)
    """

    def __init__(self, config: ProfilerConfig) -> None:
        """Profile as the settings say, also when they change later."""
        self.config = config
        self._functions = Profiler("functions")
        self._blocks = Profiler("blocks")
        self._lines = Lines()
        self._here = _Thread()
        self._lock = threading.RLock()
        self._settled = False
        self._forget()
        config._listen(self._settle)

    def _forget(self) -> None:
        self._pid = os.getpid()  # of the process that trains
        self._step = 0
        self._says_steps = False  # the program calls step_profiler
        self._epochs = 0
        self._events = 0  # ends of epochs, of steps, and of line-profiled training
        self._final: Any = None  # what the last final files were made of
        self._printed = False

    def _settle(self) -> None:
        """Do what the settings say now, and be there when the program ends."""
        on = bool(self.config.enabled)
        self._functions.enabled = self._blocks.enabled = on
        if on != self._lines.enabled:
            (self._lines.enable if on else self._lines.disable)()
        if not self._settled:
            self._settled = True
            atexit.register(self._program_ends)

    # --- Decorators and blocks ---------------------------------------------------------

    def profile_methods(self, cls: _C) -> _C:
        """Time all methods that a class defines: ``Class.method`` in the function table.

        @profile_methods
        class Trainer: ...
        """
        self._settle()
        made = self._functions.methods(cls)
        train = vars(made).get("train")
        if isinstance(train, FunctionType) and not is_around(train):
            setattr(made, "train", self._watched(train, always=False))  # noqa: B010
        return made

    def profile_function(self, target: Any = None, /, **options: Any) -> Any:
        """Time a function: ``@profile_function`` or ``@profile_function("name")``."""
        self._settle()
        return self._functions.profile(target, **options)

    @overload
    def auto_profile_blocks(self, function: _T, *, inner: bool = ...) -> _T: ...
    @overload
    def auto_profile_blocks(self, *, inner: bool = ...) -> Callable[[_T], _T]: ...
    def auto_profile_blocks(self, function: Any = None, *, inner: bool = False) -> Any:
        """Make each call of a function a block of its name.

        @auto_profile_blocks
        def generate_data(num_samples=1000): ...

        ``@auto_profile_blocks(inner=True)`` makes its outermost loops and ``with`` statements
        blocks inside of that one.
        """
        if function is None:
            return functools.partial(self.auto_profile_blocks, inner=inner)
        self._settle()
        name = bare_name(function)
        if inner:
            function = with_inner_blocks(function, self._blocks.section)
        made = self._blocks.section(name)(function)
        means = name in _TRAIN or name in _STEPS or epoch_of(name) is not None
        if means and not is_around(made):
            made = self._block_of(made, name)
        return made

    def profile_line_by_line(self, function: _T) -> _T:
        """Time every line of a function; its calls are in the function table, too.

        @profile_line_by_line
        def train(self, num_epochs): ...
        """
        self._settle()
        try:
            self._lines.add(function)
        except RuntimeError as error:
            note_once(f"Lines are not profiled: {error}.")
        made = self._functions.profile(function)
        if bare_name(function) == "train" and not is_around(made):
            made = self._watched(made, always=True)
        return made

    def profile_context(self, name: str) -> AbstractContextManager[Any]:
        """Return a context manager that times a block.

        with profiler.profile_context(f"epoch_{epoch}"): ...
        """
        if not self._settled:
            self._settle()
        section = self._blocks.section(name)
        if not self._blocks.enabled:
            return section
        if name in _STEPS or name in _TRAIN or epoch_of(name) is not None:
            return _Block(self, section)
        return section

    def start_block(self, name: str) -> None:
        """Begin a block that ``end_block`` ends; blocks nest."""
        block = self.profile_context(name)
        block.__enter__()
        self._here.blocks.append(block)

    def end_block(self) -> None:
        """End the block that ``start_block`` began last on this thread."""
        if self._here.blocks:
            self._here.blocks.pop().__exit__(None, None, None)
        elif self._blocks.enabled:
            note_once("end_block() was called with no block open; it did nothing.")

    def _block_of(self, function: Any, name: str) -> Any:
        """Return the function with what its block's end means."""

        def begins() -> None:
            self._begins(name)

        def ends() -> None:
            self._ends(name)

        return around(function, begins, ends)

    def _watched(self, function: Any, *, always: bool) -> Any:
        """Return ``train`` such that its end saves; ``always``: also without epochs or steps."""

        def begins() -> None:
            self._begins("train")

        def ends() -> None:
            if always:
                self._event()
            self._ends("train")

        return around(function, begins, ends)

    # --- Ends that mean something ------------------------------------------------------

    def _event(self) -> None:
        self._events += 1
        self._pid = os.getpid()

    def _begins(self, name: str) -> None:
        here = self._here
        if epoch_of(name) is not None:
            here.epochs += 1
        elif name in _TRAIN:
            if here.trains == 0:
                here.events_before = self._events
            here.trains += 1

    def _ends(self, name: str) -> None:
        here = self._here
        epoch = epoch_of(name)
        if epoch is not None:
            here.epochs -= 1
            self._epoch_ends(name)
        elif name in _STEPS:
            self._step_ends()
        else:
            here.trains -= 1
            inside = here.trains > 0 or here.epochs > 0
            if not inside and self._events != here.events_before:
                self._train_ends()

    def _epoch_ends(self, name: str) -> None:
        config = self.config
        if not (self._blocks.enabled and config.autosave):
            return
        with self._lock:
            self._event()
            self._epochs += 1
            many = self._epochs > _MOST_EPOCHS
            if self._epochs == _MOST_EPOCHS + 1 and config.save_block_profile:
                note_once(
                    f"{_MOST_EPOCHS} block profiles of epochs were saved; from now on those of "
                    "the 1024th, 2048th, 4096th, ... epoch are."
                )
            if many and self._epochs & (self._epochs - 1):
                return
            if config.save_block_profile:
                file = f"{epoch_file(name)}_block_profile.{config.save_format}"
                self._save_blocks(self._path(file), under=name)
            if config.print_block_profile:
                say(self._block_text(under=name), end="")

    def _step_ends(self) -> None:
        if self._says_steps or not self._blocks.enabled:
            return
        with self._lock:
            self._event()
            self._step += 1
            if self._step in self.config.steps_to_save and self.config.autosave:
                self._save_step(self._step)

    def step_profiler(self) -> None:
        """Count a step, from 1; save and print where ``steps_to_save`` has its number."""
        self._settle()
        if not self._blocks.enabled:
            return
        with self._lock:
            if not self._says_steps:
                self._says_steps = True
                self._step = 0
            self._event()
            self._step += 1
            if self._step in self.config.steps_to_save:
                self._save_step(self._step)

    def _save_step(self, step: int) -> None:
        config = self.config
        if config.save_overall_profile:
            self.save_overall_profile(step=step)
        if config.save_line_profile:
            self._save_lines(step, None)
        if config.save_block_profile:
            self.save_block_profile(step=step)
        if config.print_overall_profile:
            self.print_overall_profile()
        if config.print_line_profile:
            self.print_line_profile()
        if config.print_block_profile:
            self.print_block_profile()

    def _train_ends(self) -> None:
        if self._blocks.enabled and self.config.autosave:
            with self._lock:
                self._save_final()

    def _program_ends(self) -> None:
        if not (self.config.enabled and self.config.autosave):
            return
        # A process that was started for something else, such as a loader's worker, saves nothing.
        if os.getpid() != self._pid or (_is_child() and not self._events):
            return
        with self._lock:
            if self._counted() and self._final != self._counted():
                self._save_final()

    def _counted(self) -> int:
        """Return a number that changes with every call and line that is counted."""
        return sum(row["calls"] for each in (self._functions, self._blocks) for row in each.rows())

    def _save_final(self) -> None:
        config = self.config
        self._final = self._counted()
        if config.save_overall_profile:
            self.save_overall_profile(step="final")
        if config.save_line_profile:
            self._save_lines("final", None)
        if config.print_overall_profile and not self._printed:
            self._printed = True
            self.print_overall_profile()
        if config.print_line_profile:
            self.print_line_profile()

    # --- What there is -----------------------------------------------------------------

    def get_line_profile(self) -> str:
        """Return the line profile as text; empty where no line was counted."""
        return self._lines.text() if self._lines.rows() else ""

    def get_block_profile(self) -> dict[str, dict[str, Any]]:
        """Return the blocks: name -> total_time, calls, avg_time and more, in seconds."""
        return tables.table(self._blocks)

    def get_overall_profile(self) -> dict[str, Any]:
        """Return all functions and blocks, and what they say."""
        functions = tables.table(self._functions, aliases=True)
        blocks = tables.table(self._blocks)
        profile = {
            "functions": functions,
            "blocks": blocks,
            "elapsed_time": self._blocks.elapsed_s,
            "advice": advice(self._blocks, self._functions),
        }
        overlaps = {"functions": functions.overlap, "blocks": blocks.overlap}
        found = {kind: overlap for kind, overlap in overlaps.items() if overlap is not None}
        return {**profile, "overlap": found} if found else profile

    def print_line_profile(self) -> None:
        """Print the line profile."""
        if self.config.enabled:
            say(f"\nLine-by-Line Profiling Report:\n{self.get_line_profile()}", end="")

    def print_block_profile(self) -> None:
        """Print the block profile, the longest total first."""
        if self.config.enabled:
            say(self._block_text(), end="")

    def print_overall_profile(self) -> None:
        """Print all functions and blocks, the longest total first."""
        if not self.config.enabled:
            return
        functions, blocks = (tables.families(each) for each in (self._functions, self._blocks))
        say(tables.overall_report(functions, blocks, grid=tables.is_terminal()), end="")

    def _block_text(self, under: str | None = None) -> str:
        blocks = tables.families(self._blocks, under=under)
        return tables.block_report(blocks, grid=tables.is_terminal())

    # --- Files -------------------------------------------------------------------------

    def save_line_profile(self, step: Any = None, filename: str | None = None) -> None:
        """Save the line profile as text, and as JSON beside it where that is the format."""
        self._settle()
        if self.config.enabled:
            self._save_lines(step, filename, asked=True)

    def save_block_profile(self, step: Any = None, filename: str | None = None) -> None:
        """Save the block profile: ``block_profile_step_{step}.json``."""
        self._settle()
        if self.config.enabled:
            named = filename or self.config._file("block_profiling_file")
            self._save_blocks(self._path(named or self._step_file("block", step)))

    def save_overall_profile(self, step: Any = None, filename: str | None = None) -> None:
        """Save the overall profile: ``overall_profile_step_{step}.json``."""
        self._settle()
        if not self.config.enabled:
            return
        named = filename or self.config._file("overall_profiling_file")
        path = self._path(named or self._step_file("overall", step))
        profile = self.get_overall_profile()
        functions, blocks = profile["functions"], profile["blocks"]
        kind = self._format_of(path)
        if kind == "json":
            text = tables.to_json(profile)
        elif kind == "csv":
            text = tables.to_csv((("function", functions), ("block", blocks)))
        else:
            text = tables.overall_report(functions, blocks)
        self._write("overall profile", path, text)

    def _save_blocks(self, path: str, under: str | None = None) -> None:
        blocks = tables.table(self._blocks, under=under)
        kind = self._format_of(path)
        if kind == "json":
            text = tables.to_json(blocks)
        elif kind == "csv":
            text = tables.to_csv((("block", blocks),))
        else:
            text = tables.block_report(blocks)
        self._write("block profile", path, text)

    def _save_lines(self, step: Any, filename: str | None, *, asked: bool = False) -> None:
        text = self.get_line_profile()
        if not text:  # no function was chosen, or none ran
            if not asked:
                return
            text = "No line was counted: @profile_line_by_line chooses functions.\n"
        named = filename or self.config._file("line_by_line_file")
        path = self._path(named or f"line_profile_step_{_step_text(step)}.txt")
        self._write("line-by-line profile", path, text)
        if self.config.save_format == "json" and not path.endswith(".json"):
            tables.write(str(Path(path).with_suffix(".json")), self._lines.to_json())

    def _step_file(self, kind: str, step: Any) -> str:
        return f"{kind}_profile_step_{_step_text(step)}.{self.config.save_format}"

    def _format_of(self, path: str) -> str:
        """Return the format that a file's name asks for, else that of the settings."""
        ending = Path(path).suffix[1:]
        return ending if ending in ("json", "txt", "csv") else self.config.save_format

    def _path(self, name: str) -> str:
        """Return where a file goes: a bare name into the folder, another as it is."""
        path = Path(name)
        if path.name != os.fspath(name):
            return str(path)
        folder = Path(self.config._folder())
        rank = os.environ.get("RANK", "0")
        # Of several processes that train together, the first has the folder for itself.
        return str((folder / f"rank_{rank}" if rank.isdigit() and int(rank) else folder) / path)

    def _write(self, what: str, path: str, text: str) -> None:
        if tables.write(path, text) and self.config.print_save_info:
            say(f"Saved {what} to {path}")

    def reset(self) -> None:
        """Forget all that was counted, the steps too."""
        with self._lock:
            self._functions.reset()
            self._blocks.reset()
            self._lines.clear()
            self._forget()
            self._settle()


def _is_child() -> bool:
    """Tell whether another process of the program started this one."""
    processes: Any = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None


def _step_text(step: Any) -> str:
    """Return a step as a part of a file's name."""
    return "custom" if step is None else str(step).replace(os.sep, "_").replace("\0", "_")


profiler_config = ProfilerConfig()
profiler = FlexibleProfiler(profiler_config)
profile_methods = profiler.profile_methods
profile_function = profiler.profile_function
profile_line_by_line = profiler.profile_line_by_line
auto_profile_blocks = profiler.auto_profile_blocks
