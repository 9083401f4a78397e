"""The code profiler of "Code Profiling System": sections, loaders, training, reports.

>>> profiler = create_code_profiler(profile_level="detailed")
>>> with profiler.profile_section("data_loading", "data_loading"):
...     data = load_data()
>>> report = profiler.generate_profiling_report()
>>> profiler.cleanup()

Times come from :class:`stepwatch.Profiler`, loaders and training steps are measured as by
``stepwatch.benchmark_dataloader`` and ``stepwatch.benchmark_training``, and CPU, memory, files, GPU
and findings come from a recording: the program's own, or one that lasts as long as the profiler.
"""

from __future__ import annotations

import atexit
import gc
import weakref

from stepwatch._sweeps import _state
from stepwatch.compat._code_profiler import (
    console,
    loading,
    sections,
    training,
)
from stepwatch.compat._code_profiler.collector import Collector
from stepwatch.compat._code_profiler.config import ProfilerConfig
from stepwatch.compat._code_profiler.measured import Measured, NoReport
from stepwatch.compat._code_profiler.metrics import ProfilerMetrics
from stepwatch.compat._code_profiler.notices import Notices
from stepwatch.compat._code_profiler.publishing import Publisher
from stepwatch.compat._code_profiler.recorder import Recorder
from stepwatch.compat._code_profiler.watching import Watching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Any

SLOW_SECTION_S = 1.0  # The logger hears of sections that take longer.

_live: weakref.WeakSet[CodeProfiler] = weakref.WeakSet()
_newest: weakref.ref[CodeProfiler] | None = None
_default: CodeProfiler | None = None


class CodeProfiler:
    """Profiles sections, functions, loaders, preprocessing and training, and reports on them."""

    def __init__(
        self,
        config: ProfilerConfig | None = None,
        logger: Any = None,
        *,
        slow_section: float = SLOW_SECTION_S,
    ) -> None:
        """Take the settings, and who is told about it: a logger, or an object with ``log_info``.

        The logger hears of sections that take longer than ``slow_section`` seconds.
        """
        global _newest
        self.config = ProfilerConfig() if config is None else config
        if not isinstance(self.config, ProfilerConfig):
            raise TypeError(f"config must be a ProfilerConfig, not {type(config).__name__}")
        self.notices = Notices(logger)
        self._recorder = Recorder(self.config)
        self._watching = Watching(self._recorder)
        self._collector = Collector(self._recorder)
        self._publisher = Publisher(self._recorder, self._watching, self._collector, self.notices)
        self._known = self._publisher.known
        self.metrics = self._publisher.metrics
        self._closed = False
        if self.enabled:
            self.notices.info(f"Code profiler initialized (level: {self.config.profile_level})")
            if self.notices.heard:
                self._slow_section = slow_section
                self._recorder.said_slow = self._say_slow
            gc.callbacks.append(self._collector)
            _live.add(self)
            _newest = weakref.ref(self)

    @property
    def enabled(self) -> bool:
        """Whether anything is profiled."""
        return self._recorder.on

    @property
    def native(self) -> Any:
        """The :class:`stepwatch.Profiler` that has the times."""
        return self._recorder.native

    def _say_slow(self, name: str, seconds: float) -> None:
        if seconds > self._slow_section:
            self.notices.info(f"Section {name} took {seconds:.4f}s")

    # --- Sections and functions ----------------------------------------------------------

    def profile_section(self, section_name: str, category: str = "general") -> sections.Section:
        """Return a context manager: the block is a section of that name."""
        if not isinstance(section_name, str):
            raise TypeError(f"a section's name is a text, not {type(section_name).__name__}")
        return self._recorder.open(section_name, category)

    def profile_function(self, func: Any = None, category: str = "function") -> Any:
        """Decorate a function: ``@profile_function``, with a name, or called with a function."""
        if func is None or isinstance(func, str):
            name = func

            def decorator(function: Callable[..., Any]) -> Any:
                wanted = name or _name(function)
                return sections.decorate(self._recorder, function, wanted, category)

            return decorator
        if not callable(func):
            raise TypeError(f"profile_function takes a function or a name, not {func!r}")
        return sections.decorate(self._recorder, func, _name(func), category)

    # --- Measurements --------------------------------------------------------------------

    def _may(self, switch: str) -> bool:
        return self._recorder.begin_use() and self.config.is_on(switch)

    def profile_data_loading(self, dataloader: Any, num_batches: int = 10) -> dict[str, Any]:
        """Measure how long a loop waits for batches; the loader is left as it was."""
        if not self._may("profile_data_loading"):
            return Measured()
        _state.check_count("num_batches", num_batches)
        try:
            result, more = loading.profile(self._recorder, dataloader, num_batches)
        except Exception as error:
            return self._failed("data loading", error)
        self._known["loaders"].append(more)
        console.bottlenecks(self._publisher.judge()[0])
        return Measured(result)

    def profile_preprocessing(
        self, preprocessing_func: Callable[[Any], Any], sample_data: Any, num_samples: int = 100
    ) -> dict[str, Any]:
        """Call a function ``num_samples`` times with the sample, and say how long that takes."""
        if not self._may("profile_preprocessing"):
            return Measured()
        _state.check_count("num_samples", num_samples)
        try:
            result = training.preprocess(
                self._recorder, preprocessing_func, sample_data, num_samples
            )
        except Exception as error:
            return self._failed("preprocessing", error)
        return Measured(result)

    def profile_model_training(
        self,
        model: Any,
        dataloader: Any,
        num_batches: int = 10,
        *,
        optimizer: Any = None,
        loss_fn: Callable[..., Any] | None = None,
    ) -> dict[str, Any]:
        """Train with some batches, say how long that takes, and put everything back."""
        if not self._recorder.begin_use():
            return Measured()
        _state.check_count("num_batches", num_batches)
        try:
            result, more = training.train(
                self._recorder, model, dataloader, num_batches, optimizer, loss_fn
            )
        except Exception as error:
            return self._failed("model training", error)
        self._known["trainings"].append(more)
        return Measured(result)

    def _failed(self, what: str, error: Exception) -> dict[str, Any]:
        """Say in one sentence what went wrong, and go on."""
        sentence = f"Profiling {what} failed: {type(error).__name__}: {error}"
        self.notices.warn(sentence)
        return Measured(error=sentence)

    def know_batch_sizes(self, sweep: dict[str, Any]) -> None:
        """Take the result of ``stepwatch.find_batch_size``, for the report."""
        self._known["batch_sizes"] = sweep
        self._recorder.changes += 1

    # --- The monitor ---------------------------------------------------------------------

    def start_performance_monitoring(self) -> None:
        """Watch CPU, memory, GPU and I/O from now on; a second call is harmless."""
        if not self.config.is_on("enable_performance_monitoring"):
            return
        if not self._watching.start() and self.enabled:
            self.notices.warn(f"Performance is not monitored: {self._watching.why}")

    def stop_performance_monitoring(self) -> None:
        """Look once more and stop; fine when nothing was started."""
        self._watching.stop()

    @property
    def performance_data(self) -> dict[str, Any]:
        """What the monitor has seen: lists by name, and ``timestamps`` in seconds."""
        return self._watching.data()

    # --- Reports -------------------------------------------------------------------------

    def generate_profiling_report(self, save_path: str | None = None) -> dict[str, Any]:
        """Return the report, and write it: to the path, or into the folder of the profiler."""
        if not self.config.is_on("generate_reports"):
            return NoReport()
        if not self.enabled and not self._closed:
            self.notices.warn("Profiling is off (enable_profiling): the report is empty.")
            return NoReport()
        console.banner("GENERATING PROFILING REPORT")
        report = self._publisher.report()
        console.report(report["summary"], report["recommendations"])
        self._publisher.save(report, save_path)
        return report

    # --- The end -------------------------------------------------------------------------

    def cleanup(self) -> None:
        """Stop everything, put everything back, write what no report has yet; twice is once."""
        if self._closed:
            return
        try:
            self.stop_performance_monitoring()
            if self.enabled and self.config.is_on("generate_reports"):
                self._publisher.save_rest()
        finally:
            self._close()

    def _close(self) -> None:
        self._closed = True
        if self.enabled:
            self._watching.keep()
            self.metrics.keep_operations()
            self._publisher.look_at_recording()
        self._recorder.close()
        if self._collector in gc.callbacks:
            gc.callbacks.remove(self._collector)
        _live.discard(self)

    def __enter__(self) -> CodeProfiler:
        """Return itself; the block's end cleans up."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Clean up; an exception passes."""
        self.cleanup()


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def create_code_profiler(
    enable_profiling: bool | None = True,
    profile_level: str = "detailed",
    save_profiles: bool = True,
    logger: Any = None,
    **kwargs: Any,
) -> CodeProfiler:
    """Return a profiler; every field of :class:`ProfilerConfig` is a keyword."""
    given: dict[str, Any] = {"profile_level": profile_level, "save_profiles": save_profiles}
    if enable_profiling is not None:  # None says nothing, and what says nothing is on.
        given["enable_profiling"] = enable_profiling
    return CodeProfiler(ProfilerConfig(**given, **kwargs), logger)


def profile_function(func: Any = None, category: str = "function") -> Any:
    """Decorate as the method does, with the profiler that was made last, or one of its own."""
    return _current().profile_function(func, category)


def _current() -> CodeProfiler:
    global _default
    found = None if _newest is None else _newest()
    if found is not None and found.enabled:
        return found
    if _default is None or not _default.enabled:
        _default = create_code_profiler()
    return _default


def compare(
    reports: Sequence[dict[str, Any] | str] | Mapping[str, dict[str, Any] | str],
    folder: str | None = None,
) -> dict[str, Any]:
    """Compare two or more reports, or their files: what changed, and whether that is chance."""
    from stepwatch.compat._code_profiler import comparing

    return comparing.compare(reports, folder)


@atexit.register
def _clean_up_all() -> None:
    for profiler in list(_live):
        profiler.cleanup()


__all__ = [
    "CodeProfiler",
    "ProfilerConfig",
    "ProfilerMetrics",
    "compare",
    "create_code_profiler",
    "profile_function",
]
