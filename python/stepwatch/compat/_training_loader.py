"""A loader that times each batch, and is in everything else the loader that it was made of."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import stepwatch

_OWN = ("_loader", "_native", "_name")


def profiled(loader: Any, native: stepwatch.Profiler, name: str) -> Any:
    """Return a loader that times the batches of this one, which is left as it is."""
    if isinstance(loader, ProfiledLoader) and object.__getattribute__(loader, "_native") is native:
        return loader
    if not hasattr(loader, "__iter__") and not hasattr(loader, "__getitem__"):
        raise TypeError(
            f"profile_data_loader takes what a for loop can go through, not {type(loader).__name__}"
        )
    if hasattr(loader, "__next__"):
        return _ProfiledIterator(loader, native, name)
    kind = _SizedLoader if hasattr(loader, "__len__") else ProfiledLoader
    return kind(loader, native, name)


class ProfiledLoader:
    """Goes through the loader anew each time, as the loader itself does."""

    def __init__(self, loader: Any, native: stepwatch.Profiler, name: str) -> None:
        """Keep the loader; nothing is asked of it yet."""
        object.__setattr__(self, "_loader", loader)
        object.__setattr__(self, "_native", native)
        object.__setattr__(self, "_name", name)

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator over the batches; each wait for one is timed."""
        return iter(self._native.data(self._loader, self._name))

    def __getitem__(self, key: Any) -> Any:
        """Return what the loader has there."""
        return self._loader[key]

    def __getattr__(self, name: str) -> Any:
        """Return the loader's attribute."""
        if name in _OWN:  # A copy that has nothing yet.
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set the loader's attribute."""
        setattr(self._loader, name, value)

    def __repr__(self) -> str:
        """Show the loader."""
        return f"ProfiledLoader({self._loader!r})"

    def __reduce__(self) -> Any:
        """Send the loader alone to another process: times stay in this one."""
        return _same, (self._loader,)


class _SizedLoader(ProfiledLoader):
    def __len__(self) -> int:
        return len(self._loader)


class _ProfiledIterator(ProfiledLoader):
    """A generator, or another iterator: it can be gone through once."""

    def __init__(self, loader: Any, native: stepwatch.Profiler, name: str) -> None:
        super().__init__(loader, native, name)
        object.__setattr__(self, "_batches", iter(native.data(loader, name)))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(object.__getattribute__(self, "_batches"))


def _same(loader: Any) -> Any:
    return loader
