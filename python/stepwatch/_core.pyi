import os
from types import TracebackType
from typing import Literal, final

@final
class section:  # noqa: N801
    def __new__(cls, name: str) -> section: ...
    @property
    def name(self) -> str: ...
    def __enter__(self) -> section: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

def start(
    *,
    name: str | None = None,
    out: str | os.PathLike[str] | None = None,
    policy: Literal["auto", "stream", "ring", "drop"] | None = None,
    schedule: str | None = None,
    hot_dir: str | os.PathLike[str] | None = None,
    max_mb: float | None = None,
    sampler_hz: float | None = None,
    enabled: bool | None = None,
    events: bool | None = None,
    step_usage: bool | None = None,
    quiet: bool | None = None,
    keep_first: int | None = None,
    keep_last: int | None = None,
    keep_worst: int | None = None,
) -> None: ...
def stop() -> str | None: ...
def version() -> str: ...
def is_recording() -> bool: ...
def step_begin() -> None: ...
def step_end() -> None: ...
def mark(text: str, /) -> None: ...
def counter(name: str, value: float, /) -> None: ...
