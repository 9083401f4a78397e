"""How fast a loader gives its batches, and which settings of it are fastest."""

from __future__ import annotations

import math
import time
from array import array

from stepwatch import _core
from stepwatch._sweeps import _batches, _state
from stepwatch._sweeps._passes import Passes, Setting, close, workers_of
from stepwatch._sweeps._result import MIB, Sweep, number, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_PREFETCH = (2, 4, 8)
_CLOSE = 0.03  # Nobody would notice less.
_ONE_ROUND = 0.1  # Without a second round nobody knows the noise.
_SLOW = 2.0  # So much slower than the fastest: not worth another round.
_LEAST = 3  # The fastest ones are measured again however far they lie apart.
_MORE = 3  # So many times the rounds at most, where noise hides the best.
_WAVES = 2  # Each worker makes so many batches a pass at least.
_NOTHING_MORE = 2  # So many larger numbers of workers without a gain, and no larger is tried.
_LOOKS = 4  # Batches of a pass whose memory is looked at.
_END: Any = object()

_COLUMNS = (
    ("workers", "workers", plain),
    ("prefetch", "prefetch", plain),
    ("batch (ms)", "avg_batch_time", number(2, 1e3)),
    ("std", "std_batch_time", number(2, 1e3)),
    ("first (ms)", "first_batch_time", number(1, 1e3)),
    ("samples/s", "throughput", number(1)),
    ("batches/s", "batches_per_second", number(1)),
    ("MB/batch", "avg_memory_per_batch", number(3)),
    ("batches", "total_batches_profiled", plain),
)


class _Row:
    """What was measured of a setting, over all rounds."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.times = array("d")
        self.sizes: list[int | None] = []
        self.firsts = array("d")
        self.rounds: list[float] = []  # Mean time of a batch, by round.
        self.growth: list[int] = []  # Of memory while a batch was made.
        self.bytes: list[int] = []  # Of the data in a batch.
        self.steady = True  # Every worker had its turn after the first.
        self.took = 0.0  # The newest pass, in seconds.
        # Every batch of the newest pass: seconds, samples, bytes that memory grew by.
        self.taken: list[tuple[float, int | None, int]] = []

    @property
    def mean(self) -> float:
        """Mean time of a batch."""
        return sum(self.times) / len(self.times)

    @property
    def cost(self) -> tuple[int, int]:
        """Less is cheaper."""
        return (self.setting.workers or 0, self.setting.prefetch or 0)

    @property
    def name(self) -> str:
        if self.setting.workers is None:
            return "as it is"
        return _name(self.setting)

    def to_dict(self, given: bool) -> dict[str, Any]:
        numbers = _core.summarize(self.times)
        sizes = [size for size in self.sizes if size is not None]
        known = len(sizes) == len(self.sizes)
        # A batch takes what its data take, even where it lies in memory that was there before.
        size = sum(self.bytes) / len(self.bytes) if self.bytes else None
        grown = sum(self.growth) / len(self.growth) if self.growth else None
        memory = max(0.0 if grown is None else grown, size or 0.0) if self.bytes else None
        rate = sum(sizes) / numbers["total"] if known and numbers["total"] else None
        return {
            "workers": self.setting.workers,
            "prefetch": self.setting.prefetch,
            "given": given,
            "avg_batch_time": numbers["mean"],
            "min_batch_time": numbers["min"],
            "max_batch_time": numbers["max"],
            "std_batch_time": numbers["std"],
            "p50_batch_time": numbers["p50"],
            "p99_batch_time": numbers["p99"],
            "first_batch_time": _core.summarize(self.firsts)["p50"],
            "throughput": rate,
            "samples_per_second": rate,
            "batches_per_second": numbers["count"] / numbers["total"] if numbers["total"] else None,
            "avg_batch_size": sum(sizes) / len(sizes) if known else None,
            "total_batches_profiled": numbers["count"],
            "avg_memory_per_batch": None if memory is None else memory / MIB,
            "avg_memory_per_batch_bytes": None if memory is None else round(memory),
            "avg_batch_bytes": None if size is None else round(size),
            "rounds": len(self.rounds),
        }


def _name(setting: Setting) -> str:
    if not setting.workers:
        return "no workers"
    workers = "1 worker" if setting.workers == 1 else f"{setting.workers} workers"
    return f"{workers} (prefetch {setting.prefetch})"


class _Bench:
    """Goes over a loader with one setting after the other."""

    def __init__(self, passes: Passes, num_batches: int, rounds: int, budget: float) -> None:
        self.passes = passes
        self.wanted = num_batches
        self.rounds = rounds
        self.deadline = time.monotonic() + budget
        self.notes = list(passes.notes)
        self.rows: dict[Setting, _Row] = {}
        self.sizes = _batches.Sizes(passes.batch_size)
        self.length = passes.length
        self.looks = _LOOKS
        self.shown: Callable[[Any], object] | None = None  # Is given the first batch.
        self.cut = False  # The time was over before everything was measured.
        self.within = False  # What is let pass first is among the batches asked for.

    @property
    def left(self) -> float:
        """Seconds until the budget is spent."""
        return self.deadline - time.monotonic()

    # --- One pass ------------------------------------------------------------------------

    def _plan(self, row: _Row, rounds_left: int) -> tuple[int, int]:
        """Return how many batches to let pass first, and how many to time after them.

        Each of n workers makes one of the first n batches, all at the same time: they come
        together and say little. Afterwards each wave of n takes what a worker needs for one.
        """
        wave = max(1, row.setting.workers or 0)
        if self.within:
            skip = 1 if self.length is not None and self.length < 2 * wave else wave
            return skip, max(self.wanted, _WAVES * wave if wave > 1 else 1) - skip
        left = max(self.wanted - len(row.times), self.wanted // self.rounds * rounds_left)
        count = max(1, math.ceil(left / rounds_left))
        if wave > 1:
            count = max(_WAVES, math.ceil(count / wave)) * wave
        if self.length is not None and self.length < 2 * wave:
            return 1, count
        return wave, count

    def measure(
        self, setting: Setting, rounds_left: int, until: float, counts: bool = True
    ) -> None:
        """Go over the loader once; what comes of it is added to the setting's row."""
        row = self.rows.get(setting) or _Row(setting)
        began = time.monotonic()
        skip, count = self._plan(row, rounds_left)
        iterator: Any = None
        batch: Any = None
        try:
            own = _core.resident([0])
            begin = _core.now()
            iterator = iter(self.passes.make(setting))
            batch = next(iterator, _END)
            first = _state.since(begin, _core.now())
            grown = {0: _core.resident([0]) - own}
            if batch is _END:
                raise ValueError("the loader gives no batches: there is nothing to measure")
            waits, sizes, size = [first], [self.sizes.of(batch)], _batches.bytes_of(batch)
            if self.shown is not None:
                self.shown(batch)
            memory: list[tuple[int, int]] = []
            pids = [0, *workers_of(iterator)]
            every = max(1, count // self.looks)
            while len(waits) < skip + count:
                index = len(waits)
                look = index >= skip and (index - skip) % every == 0 and len(row.bytes) < self.looks
                batch = None  # So that only one is there at a time.
                before = _core.resident(pids) if look else 0
                begin = _core.now()
                batch = next(iterator, _END)
                end = _core.now()
                if batch is _END:
                    break
                waits.append(_state.since(begin, end))
                sizes.append(self.sizes.of(batch))
                if look:
                    grown[index] = _core.resident(pids) - before
                    memory.append((grown[index], _batches.bytes_of(batch)))
                if len(waits) > skip and time.monotonic() > until:
                    self.cut = True
                    break
            if not memory and not row.bytes:
                memory.append((0, size))
        except Exception as error:
            self._explain(error, setting)
            raise
        finally:
            batch = None
            close(iterator)
            iterator = None
        if counts:
            self.rows[setting] = row
            row.taken = [
                (seconds, size, grown.get(index, 0))
                for index, (seconds, size) in enumerate(zip(waits, sizes))
            ]
            self._add(row, skip, waits, sizes, memory)
            row.took = time.monotonic() - began

    def _add(
        self,
        row: _Row,
        skip: int,
        waits: list[float],
        sizes: list[int | None],
        memory: list[tuple[int, int]],
    ) -> None:
        # Of a loader that is over before it got going, all but the first; of the only one, that.
        skip = skip if len(waits) > skip else min(1, len(waits) - 1)
        row.firsts.append(waits[0])
        timed = waits[skip:]
        wave = max(1, row.setting.workers or 0)
        row.steady = row.steady and len(timed) >= wave
        if self.within and len(timed) > wave:
            timed = timed[: len(timed) // wave * wave]  # Of a wave all the waiting is at its begin.
        row.times.extend(timed)
        row.sizes.extend(sizes[skip : skip + len(timed)])
        row.rounds.append(sum(timed) / len(timed))
        row.growth.extend(growth for growth, _ in memory)
        row.bytes.extend(size for _, size in memory)

    def _explain(self, error: Exception, setting: Setting) -> None:
        """Say with which setting it happened, where that is not the program's own."""
        if setting != self.passes.given and hasattr(error, "add_note"):
            error.add_note(
                f"stepwatch: this happened with {_name(setting)}, which benchmark_dataloader"
                " tried; with workers=() it measures the loader as it is."
            )

    # --- Rounds ----------------------------------------------------------------------------

    def first_round(self, settings: list[Setting]) -> None:
        """Measure each once; larger numbers of workers only while they gain something."""
        useless = 0
        for place, setting in enumerate(settings):
            if setting in self.rows:
                continue
            if place and self.left <= 0:
                self.cut = True
                return
            share = self.left / (len(settings) - place)
            before = min((row.mean for row in self.rows.values()), default=math.inf)
            self.measure(setting, self.rounds, time.monotonic() + max(share, 0))
            row = self.rows[setting]
            useless = useless + 1 if row.mean > before * (1 - _CLOSE) else 0
            if self.grows and useless >= _NOTHING_MORE and place + 1 < len(settings):
                self.notes.append(f"More than {setting.workers} workers were not tried.")
                return

    chosen = False  # Whether the settings are ours.
    grows = False  # Whether settings come in the order of their workers, and may be left out.

    def more_rounds(self) -> None:
        """Measure what may still be the best again, in turns, so that noise hits all alike.

        As long as one that is clearly slower on average could be so by chance, there are more.
        """
        rows = sorted(self.rows.values(), key=lambda row: row.mean)
        last = [
            row
            for place, row in enumerate(rows)
            if place < _LEAST
            or row.mean <= rows[0].mean * _SLOW
            or row.setting == self.passes.given
        ]
        for turn in range(1, self.rounds * _MORE):
            if len(last) < 2 or (turn >= self.rounds and not self._unclear()):
                return
            if self.left < sum(row.took for row in last):
                self.cut = True
                return
            for row in last if turn % 2 == 0 else reversed(last):
                self.measure(row.setting, max(1, self.rounds - turn), self.deadline)

    def _unclear(self) -> bool:
        best, equal = self.best()
        return best.mean > min(row.mean for row in equal) * (1 + _ONE_ROUND)

    # --- The verdict -----------------------------------------------------------------------

    def best(self) -> tuple[_Row, list[_Row]]:
        """Return the cheapest of those that nobody can tell from the fastest, and all of them."""
        rows = [row for row in self.rows.values() if row.steady] or list(self.rows.values())
        rounds = max(len(row.rounds) for row in rows)
        whole = [row for row in rows if len(row.rounds) == rounds]
        logs = {id(row): [math.log(max(each, 1e-9)) for each in row.rounds] for row in whole}
        means = {key: sum(values) / len(values) for key, values in logs.items()}
        fastest = min(whole, key=lambda row: means[id(row)])
        noise = _core.rounds_noise(list(logs.values()))
        width = max(noise or 0.0, math.log1p(_CLOSE if rounds > 1 else _ONE_ROUND))
        equal = [row for row in whole if means[id(row)] - means[id(fastest)] <= width]
        return min(equal, key=lambda row: row.cost), equal


def _candidates(given: Setting, length: int | None) -> list[Setting]:
    """Return numbers of workers worth a try on this machine: the one given first, then upwards."""
    cores = max(1, math.floor(_core.cpus_usable()))
    most = cores if length is None else min(cores, max(1, length // 2))
    counts, each = {0, most}, 1
    while each <= most:
        counts.add(each)
        each *= 2
    ahead = given.prefetch or _PREFETCH[0]
    return [given, *(Setting(count, ahead if count else None) for count in sorted(counts))]


def _numbers(name: str, given: Any, least: int) -> list[int] | None:
    """Return the numbers that an argument asks for; None: whatever is sensible."""
    if given is None:
        return None
    many: Iterable[Any] = given if hasattr(given, "__iter__") else (given,)
    return [_state.check_count(name, each, least) for each in many]


def _grid(given: Setting, workers: list[int] | None, prefetch: list[int] | None) -> list[Setting]:
    """Return what was asked for, all of it."""
    found = [given]
    for count in workers if workers is not None else [given.workers or 0]:
        if count == 0:
            found.append(Setting(0, None))
            continue
        for ahead in prefetch or [given.prefetch or _PREFETCH[0]]:
            found.append(Setting(count, ahead))
    return list(dict.fromkeys(found))


def benchmark_dataloader(
    loader: Any,
    num_batches: int = 20,
    workers: Iterable[int] | int | None = None,
    prefetch: Iterable[int] | int | None = None,
    *,
    rounds: int = 3,
    budget_s: float = 60.0,
) -> Sweep:
    """Measure how long a loop waits for each batch of a loader, and try other settings.

    The loader stays as it is: every pass goes over a copy with the same dataset, and random states
    are put back. ``.rows`` has the loader as given first, ``.best`` the fastest setting, and of
    several that cannot be told apart the one with the fewest workers.

    >>> result = stepwatch.benchmark_dataloader(loader)
    >>> result.best["workers"], result.best["throughput"]
    (4, 1893.2)
    >>> print(result)

    ``num_batches`` are timed of each setting, in up to ``rounds`` passes that take turns.
    ``workers`` and ``prefetch`` say what to try, one number or several; without them these are
    numbers that suit this machine; ``workers=()`` tries nothing and only measures. Datasets that
    are iterables, and loaders that are not torch's, are measured as they are. After ``budget_s``
    seconds nothing further is begun.
    """
    _state.check_count("num_batches", num_batches)
    _state.check_count("rounds", rounds)
    budget = _state.check_seconds("budget_s", budget_s)
    asked, ahead = _numbers("workers", workers, 0), _numbers("prefetch", prefetch, 1)
    passes = Passes(loader, "benchmark_dataloader")
    if not passes.is_torch and (asked or ahead):
        raise TypeError(
            f"a {type(loader).__name__} has no workers or prefetch to set; leave them out to"
            " measure it as it is"
        )
    with _state.measuring("benchmark_dataloader"):
        bench = _Bench(passes, num_batches, rounds, budget)
        return _run(bench, asked, ahead)


class Waits:
    """The batches of a loader as it is, one by one: seconds, samples, bytes that memory grew by."""

    def __init__(self, row: _Row, passes: Passes) -> None:
        self.taken = row.taken
        self.numbers = row.to_dict(given=True)
        self.numbers["total_batches_profiled"] = len(row.taken)
        self.notes = passes.notes


def measure_batches(
    loader: Any, num_batches: int, caller: str, shown: Callable[[Any], object] | None = None
) -> Waits:
    """Measure a loader as :func:`benchmark_dataloader` does, with no settings but its own.

    No more than ``num_batches`` are taken, but two for each of several workers; those that come
    before all workers are at work count as taken, and stand in no mean. ``shown`` is called with
    the first batch.
    """
    _state.check_count("num_batches", num_batches)
    passes = Passes(loader, caller)
    with _state.measuring(caller):
        bench = _Bench(passes, num_batches, 1, math.inf)
        bench.within = True
        bench.looks = num_batches + (passes.given.workers or 0)
        bench.shown = shown
        bench.measure(passes.given, 1, math.inf)
    return Waits(bench.rows[passes.given], passes)


def _run(bench: _Bench, asked: list[int] | None, ahead: list[int] | None) -> Sweep:
    given = bench.passes.given
    if asked is not None or ahead is not None:
        settings = _grid(given, asked, ahead)
    elif not bench.passes.is_torch or bench.passes.is_iterable:
        settings = [given]
    else:
        settings = list(dict.fromkeys(_candidates(given, bench.length)))
        bench.grows = bench.chosen = True
    if len(settings) == 1:
        bench.rounds = 1  # There is nothing to compare with.
        bench.measure(given, 1, bench.deadline)
    else:
        # What the first pass finds cold, files and code, is not to count against one of them.
        bench.measure(given, bench.rounds, time.monotonic() + bench.left / 8, counts=False)
        bench.cut = False
        bench.first_round(settings)
        if bench.grows:
            _try_prefetch(bench)
        bench.more_rounds()
    return _verdict(bench)


def _try_prefetch(bench: _Bench) -> None:
    """Try the fastest number of workers with other numbers of batches ahead."""
    fastest = min(bench.rows.values(), key=lambda row: row.mean).setting
    bench.grows = False
    if fastest.workers:
        bench.first_round([Setting(fastest.workers, ahead) for ahead in _PREFETCH])


def _verdict(bench: _Bench) -> Sweep:
    given = bench.passes.given
    first, others = bench.rows[given], [row for key, row in bench.rows.items() if key != given]
    ordered = [first, *sorted(others, key=lambda row: row.cost)]
    rows = [row.to_dict(row is first) for row in ordered]
    best, equal = bench.best()
    notes = bench.notes
    if len(ordered) > 1:
        notes.append(_sentence(first, best))
        most = max(row.setting.workers or 0 for row in ordered)
        if bench.chosen and best.setting.workers == most and best is not first:
            notes.append(
                f"More than {most} were not tried here; where samples wait for files or a network,"
                f" workers=[{2 * most}, {4 * most}] may be faster still."
            )
        if len(equal) > 1:
            names = ", ".join(row.name for row in sorted(equal, key=lambda row: row.cost))
            notes.append(f"These cannot be told apart here, and the cheapest is the best: {names}.")
    if len(first.times) == 1 and bench.length == 1:
        notes.append("There is only one batch: its time has the start of the loader in it.")
    elif not all(row.steady for row in ordered):
        notes.append("There are too few batches to see every worker at work.")
    elif len(first.times) < bench.wanted and not bench.cut:
        notes.append(f"The loader has fewer than {bench.wanted} batches.")
    if bench.cut:
        notes.append("The time was over before everything was measured; budget_s gives more.")
    return Sweep(
        _title(bench),
        _COLUMNS,
        rows,
        rows[ordered.index(best)],
        notes,
        {"cpus_usable": _core.cpus_usable(), "equal": [row.name for row in equal]},
    )


def _title(bench: _Bench) -> str:
    loader, size = bench.passes.loader, bench.passes.batch_size
    text = type(loader).__name__
    if bench.passes.is_torch:
        text += f" of {type(loader.dataset).__name__}"
    if size is not None:
        text += f", batch size {size}"
    return f"{text}, {_core.cpus_usable():g} usable cores"


def _sentence(first: _Row, best: _Row) -> str:
    if best is first:
        return f"The loader is best as it is: {first.name}."
    gain = first.mean / best.mean
    setting = best.setting
    text = f"num_workers={setting.workers}"
    if setting.workers:
        text += f", prefetch_factor={setting.prefetch}"
    if gain < 1 + _CLOSE:
        return f"{text} is as fast as {first.name}, which is given, and cheaper."
    return (
        f"{text} gives {gain:.2f} times as many batches a second as {first.name}, which is given."
    )
