"""Who gives a thread its steps, and what is validation: the rules, without any framework."""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import stepwatch

HEADER = """
import stepwatch
from stepwatch import _core

LOOP, UPDATE, LOADER, FRAMEWORK = 1, 2, 3, 4


class Loader:
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        _core.train_epoch(self)
        return Pass(self)


class Pass:
    evaluating = False

    def __init__(self, loader):
        self.loader, self.left = loader, loader.count

    def __iter__(self):
        return self

    def __next__(self):
        _core.train_wait(LOADER, self, self.loader, Pass.evaluating)
        if self.left == 0:
            _core.train_end(self)
            raise StopIteration
        self.left -= 1
        _core.train_got(self)
        return self.left


class Optimizer:
    def step(self):
        _core.train_update(self)


def train(optimizer=None):
    _core.train_works(False)
    _core.train_works(True)
    if optimizer:
        optimizer.step()


stepwatch.start(out=OUT, policy="stream")
"""


def record(tmp_path: Path, program: str) -> stepwatch.Run:
    """Run the program and return what it recorded."""
    out = tmp_path / "run"
    script = f"OUT = {str(out)!r}\n" + HEADER + textwrap.dedent(program) + "\nstepwatch.stop()\n"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return stepwatch.open(out)


def steps_of(run: stepwatch.Run) -> Any:
    return run.report().to_dict()["steps"]


def calls(run: stepwatch.Run) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in run.sections:
        found[row["name"]] = found.get(row["name"], 0) + row["calls"]
    return found


def test_loader_gives_steps_and_epochs(tmp_path: Path) -> None:
    run = record(
        tmp_path,
        """
        loader, optimizer = Loader(5), Optimizer()
        for epoch in range(3):
            for batch in loader:
                train(optimizer)
        """,
    )
    steps = steps_of(run)
    assert (steps["count"], steps["incomplete"], steps["updates"]) == (15, 0, 15)
    assert steps["unit"] == "batch"
    assert [row["epoch"] for row in run.steps] == [0] * 5 + [1] * 5 + [2] * 5
    # Asking for the batch that is not there is waiting, too.
    assert calls(run)["data_wait"] == 18


def test_gradient_accumulation(tmp_path: Path) -> None:
    steps = steps_of(
        record(
            tmp_path,
            """
            optimizer = Optimizer()
            for i, batch in enumerate(Loader(12)):
                train(optimizer if i % 4 == 3 else None)
            """,
        )
    )
    assert (steps["count"], steps["updates"]) == (12, 3)


def test_several_optimizers_and_no_loader(tmp_path: Path) -> None:
    steps = steps_of(
        record(
            tmp_path,
            """
            one, two = Optimizer(), Optimizer()
            for _ in range(10):
                train(one)
                train(two)
            """,
        )
    )
    assert (steps["count"], steps["updates"], steps["unit"]) == (10, 20, "update")


def test_an_update_by_hand(tmp_path: Path) -> None:
    """No loader and no optimizer: a step goes from one forward after a backward to the next."""
    run = record(
        tmp_path,
        """
        for _ in range(30):
            _core.train_works(False)
            train()
        """,
    )
    steps = steps_of(run)
    assert (steps["count"], steps["unit"]) == (30, "update")


def test_an_optimizer_that_is_gone_leaves_no_step(tmp_path: Path) -> None:
    # What the other one did after its last update belongs to no step of its own.
    steps = steps_of(
        record(
            tmp_path,
            """
            def fit():
                one, two = Optimizer(), Optimizer()
                for _ in range(10):
                    train(one)
                    train(two)
            fit()
            """,
        )
    )
    assert (steps["count"], steps["incomplete"], steps["updates"]) == (10, 0, 20)


def test_no_loader_trials_before_are_no_step(tmp_path: Path) -> None:
    run = record(
        tmp_path,
        """
        import time
        _core.train_works(False)
        time.sleep(0.2)
        optimizer = Optimizer()
        for _ in range(4):
            train(optimizer)
        """,
    )
    steps = steps_of(run)
    assert (steps["count"], steps["incomplete"]) == (4, 0)
    assert steps["step_ms"]["max"] < 150


@pytest.mark.parametrize("flag", [True, False])
def test_validation_between_epochs(tmp_path: Path, flag: bool) -> None:
    run = record(
        tmp_path,
        f"""
        loader, check, optimizer = Loader(4), Loader(3), Optimizer()
        for epoch in range(2):
            for batch in loader:
                train(optimizer)
            Pass.evaluating = {flag}
            for batch in check:
                _core.train_evaluates(True)
            Pass.evaluating = False
        """,
    )
    assert steps_of(run)["count"] == 8
    assert calls(run)["validation"] == 2
    assert [row["epoch"] for row in run.steps] == [0] * 4 + [1] * 4


def test_validation_before_the_first_epoch_is_no_step(tmp_path: Path) -> None:
    run = record(
        tmp_path,
        """
        loader, check, optimizer = Loader(4), Loader(3), Optimizer()
        for batch in check:
            _core.train_evaluates(False)
        for batch in loader:
            train(optimizer)
        for batch in check:
            _core.train_evaluates(True)
        """,
    )
    steps = steps_of(run)
    assert (steps["count"], steps["incomplete"]) == (4, 0)
    assert calls(run)["validation"] == 2


def test_validation_within_a_step(tmp_path: Path) -> None:
    run = record(
        tmp_path,
        """
        import time
        loader, check, optimizer = Loader(6), Loader(2), Optimizer()
        for i, batch in enumerate(loader):
            train(optimizer)
            if i % 3 == 2:
                Pass.evaluating = True
                for _ in check:
                    _core.train_evaluates(True)
                    time.sleep(0.02)
                Pass.evaluating = False
        """,
    )
    report = run.report().to_dict()
    assert report["steps"]["count"] == 6
    phases = {row["phase"]: row["ms"] for row in report["steps"]["phases"]}
    # Waiting for its batches belongs to it.
    assert phases["validation"] * 6 > 75
    assert calls(run)["validation"] == 2


def test_another_pass_after_the_update_is_part_of_the_step(tmp_path: Path) -> None:
    """A validation that neither says eval() nor no_grad() trains nothing between its batches."""
    run = record(
        tmp_path,
        """
        loader, check, optimizer = Loader(6), Loader(5), Optimizer()
        for i, batch in enumerate(loader):
            train(optimizer)
            if i % 3 == 2:
                for _ in check:
                    _core.train_works(False)
        """,
    )
    assert steps_of(run)["count"] == 6


def test_a_pass_between_epochs_that_trains_nothing_is_a_validation(tmp_path: Path) -> None:
    """Also where it says neither eval() nor no_grad(): nothing leads to a backward."""
    run = record(
        tmp_path,
        """
        import time
        loader, check, optimizer = Loader(6), Loader(5), Optimizer()
        for epoch in range(3):
            for batch in loader:
                train(optimizer)
            for _ in check:
                _core.train_works(False)
                time.sleep(0.01)
        """,
    )
    report = run.report().to_dict()
    assert report["steps"]["count"] == 18
    assert [row["steps"] for row in report["epochs"]] == [6, 6, 6]
    # The first batch of all is not known to be one of a validation before the second is asked for.
    parts = {row["part"]: row["s"] for row in report["timeline"]}
    assert parts["validation"] >= 0.139


def test_a_second_stage_that_gathers_losses_is_training(tmp_path: Path) -> None:
    """Its first batches are taken for a validation, until the backward comes."""
    run = record(
        tmp_path,
        """
        first, second, optimizer = Loader(6), Loader(8), Optimizer()
        for batch in first:
            train(optimizer)
        for epoch in range(3):
            for i, batch in enumerate(second):
                _core.train_works(False)
                if i % 2:
                    _core.train_works(True)
                    _core.train_update(optimizer)
        """,
    )
    steps = steps_of(run)
    assert steps["updates"] == 6 + 12
    assert steps["count"] in (6 + 22, 6 + 23)


def test_a_teacher_in_eval_mode_is_no_validation(tmp_path: Path) -> None:
    run = record(
        tmp_path,
        """
        for batch in Loader(5):
            _core.train_works(False)
            _core.train_evaluates(False)
            train(Optimizer())
        """,
    )
    assert steps_of(run)["count"] == 5
    assert "validation" not in calls(run)


def test_loader_without_training_gives_no_steps(tmp_path: Path) -> None:
    """Batches that are only collected; then the updates are the steps."""
    steps = steps_of(
        record(
            tmp_path,
            """
            batches, optimizer = list(Loader(50)), Optimizer()
            for batch in batches[:7]:
                train(optimizer)
            """,
        )
    )
    assert (steps["count"], steps["unit"]) == (7, "update")


def test_break_makes_a_step_incomplete(tmp_path: Path) -> None:
    run = record(
        tmp_path,
        """
        import time
        for i, batch in enumerate(Loader(9)):
            train(Optimizer())
            if i == 3:
                break
        time.sleep(0.2)
        """,
    )
    steps = steps_of(run)
    assert (steps["count"], steps["incomplete"]) == (4, 1)
    assert max(row["duration_ns"] for row in run.steps) < 150e6


def test_second_loader_is_part_of_the_step(tmp_path: Path) -> None:
    run = record(
        tmp_path,
        """
        for a, b in zip(Loader(6), Loader(9)):
            train(Optimizer())
        """,
    )
    assert steps_of(run)["count"] == 6
    assert calls(run)["data_wait"] == 6 + 1 + 6


def test_loader_asked_anew_for_every_batch(tmp_path: Path) -> None:
    steps = steps_of(
        record(
            tmp_path,
            """
            loader = Loader(3)
            for _ in range(5):
                batch = next(iter(loader))
                train(Optimizer())
            """,
        )
    )
    assert steps["count"] == 5


def test_the_loop_that_goes_on_takes_over(tmp_path: Path) -> None:
    """An iterator that is kept, and not asked any more, does not stop the steps."""
    steps = steps_of(
        record(
            tmp_path,
            """
            optimizer = Optimizer()
            kept = iter(Loader(100))
            for _ in range(3):
                next(kept)
                train(optimizer)
            for batch in Loader(10):
                train(optimizer)
            """,
        )
    )
    assert (steps["count"], steps["incomplete"]) == (13, 0)


def test_explicit_steps_win(tmp_path: Path) -> None:
    run = record(
        tmp_path,
        """
        optimizer = Optimizer()
        for batch in Loader(5):
            with stepwatch.step():
                train(optimizer)
        """,
    )
    steps = steps_of(run)
    assert (steps["count"], steps["unit"], steps["incomplete"]) == (5, "manual", 0)


def test_steps_over_a_watched_loader_waits_once(tmp_path: Path) -> None:
    run = record(
        tmp_path,
        """
        for batch in stepwatch.steps(Loader(5)):
            train(Optimizer())
        """,
    )
    assert steps_of(run)["count"] == 5
    assert calls(run)["data_wait"] == 6


def test_framework_wins_over_loader(tmp_path: Path) -> None:
    steps = steps_of(
        record(
            tmp_path,
            """
            class Trainer: pass
            trainer, optimizer = Trainer(), Optimizer()
            for batch in Loader(5):
                _core.train_step(FRAMEWORK, trainer)
                train(optimizer)
            _core.train_release(trainer)
            for batch in Loader(3):
                train(optimizer)
            """,
        )
    )
    assert steps["count"] == 8


def test_charge_moves_time_between_phases(tmp_path: Path) -> None:
    run = record(
        tmp_path,
        """
        import time
        with stepwatch.step():
            with stepwatch.section("forward"):
                begin = _core.now()
                time.sleep(0.05)
                _core.charge("compile", begin)
                time.sleep(0.02)
                _core.charge("compile", _core.now() + 10**12)
        _core.charge("compile", 0)
        """,
    )
    (step,) = run.steps
    phases = {row["phase"]: row["ms"] for row in run.report().to_dict()["steps"]["phases"]}
    assert phases["compile"] >= 50
    assert 20 <= phases["forward"] < 50 + 20
    assert step["compile_ns"] + step["forward_ns"] + step["other_ns"] == step["duration_ns"]


def test_steps_are_told(tmp_path: Path) -> None:
    run = record(
        tmp_path,
        """
        seen = []
        _core.on_step(seen.append)
        for batch in Loader(3):
            train(Optimizer())
        _core.on_step(None)
        assert seen == [0, 1, 2, 3], seen  # The last one had no batch.
        """,
    )
    assert steps_of(run)["count"] == 3


def test_steps_are_told_from_one_on(tmp_path: Path) -> None:
    """Who wants to hear of later steps only is not called before, unless numbers begin anew."""
    record(
        tmp_path,
        """
        from stepwatch.integrations import _steps
        seen, all_of_them = [], []
        def some(number):
            seen.append(number)
            return _core.schedule_next("every=4", number)
        _steps.watch(some)
        for batch in Loader(10):
            train(Optimizer())
        _steps.watch(all_of_them.append)
        for batch in Loader(3):
            train(Optimizer())
        _steps.forget(all_of_them.append)
        assert seen == [0, 4, 8, 12], seen
        assert len(all_of_them) >= 3, all_of_them
        stepwatch.stop()
        seen.clear()
        stepwatch.start(out="again", quiet=True)
        for batch in Loader(6):
            train(Optimizer())
        _steps.forget(some)
        assert seen == [0, 4], seen
        """,
    )
    core = stepwatch._core
    assert core.schedule_next("wait=1,warmup=1,active=3,every=50", 4) == 52
    assert core.schedule_next("wait=1,warmup=1,active=3,every=50", 52) == 53
    assert core.schedule_next("steps=2", 7) > 7
    with pytest.raises(ValueError, match="schedule"):
        core.schedule_next("nonsense", 0)


def test_wrong_calls_raise() -> None:
    core: Any = stepwatch._core
    with pytest.raises(ValueError, match="no source"):
        core.train_wait(9, object())
    with pytest.raises(TypeError):
        core.train_wait(3)
    with pytest.raises(ValueError, match="phase"):
        core.charge("nonsense", 0)
    with pytest.raises(ValueError, match="table"):
        core.put_row(0, 999, 0, (), ())


def test_nothing_is_recorded_nothing_happens() -> None:
    core = stepwatch._core
    assert core.train_wait(3, object()) == 0
    core.train_got(object())
    core.train_works()
    core.train_update(object())
    assert core.train_now() == (0, False, False)
    assert core.put_row(0, 8, 0, (1, "a.py", 3, "Net"), ()) == (0, 2**32 - 1)
    assert core.option("policy") == ""
    site = core.user_site()
    assert site is not None
    assert site[0] == __file__
    assert core.ticks_per_second() > 1e6


def test_training_that_goes_on_after_the_last_batch(tmp_path: Path) -> None:
    """itertools.cycle keeps the batches of the first pass; no loader is asked for them again."""
    steps = steps_of(
        record(
            tmp_path,
            """
            from itertools import cycle

            optimizer, batches = Optimizer(), cycle(Loader(10))
            for _ in range(25):
                next(batches)
                train(optimizer)
            """,
        )
    )
    assert (steps["count"], steps["incomplete"], steps["updates"]) == (25, 0, 25)


def test_a_batch_that_is_asked_for_ahead(tmp_path: Path) -> None:
    run = record(
        tmp_path,
        """
        loader, optimizer = Loader(10), Optimizer()
        for epoch in range(3):
            batches = iter(loader)
            batch = next(batches)
            while batch is not None:
                batch = next(batches, None)
                train(optimizer)
        """,
    )
    steps = steps_of(run)
    assert (steps["count"], steps["incomplete"], steps["updates"]) == (30, 0, 30)
    assert calls(run)["data_wait"] == 33


def test_a_batch_that_is_left_out(tmp_path: Path) -> None:
    """It is a step, too, though the loader itself is no longer there to be known."""
    steps = steps_of(
        record(
            tmp_path,
            """
            def batches(count):
                batches = Loader(count)
                inner = iter(batches)
                inner.loader = None
                return inner

            optimizer = Optimizer()
            for index, batch in enumerate(batches(10)):
                if index != 3:
                    train(optimizer)
            """,
        )
    )
    assert (steps["count"], steps["updates"]) == (10, 9)


@pytest.mark.parametrize("modules", [True, False])
def test_nobody_updates(tmp_path: Path, modules: bool) -> None:
    """Without loader and optimizer each backward has its step; a forward begins it, if one does."""
    run = record(
        tmp_path,
        f"""
        for _ in range(12):
            if {modules}:
                _core.train_works(False)
                _core.train_works(False)  # another model
            _core.train_works(True)
        """,
    )
    steps = steps_of(run)
    # Nothing says where the last one ends.
    assert (steps["count"], steps["incomplete"], steps["unit"]) == (12, 1, "update")


@pytest.mark.parametrize("rounds", [4, 8])
def test_an_optimizer_that_has_not_stepped_yet(tmp_path: Path, rounds: int) -> None:
    """Gradients are added up, without a loader."""
    steps = steps_of(
        record(
            tmp_path,
            f"""
            optimizer = Optimizer()
            _core.train_optimizer()
            for _ in range(5):
                for _ in range({rounds}):
                    train()
                optimizer.step()
            """,
        )
    )
    assert (steps["count"], steps["updates"]) == (5, 5)


def test_whether_a_batch_is_being_made(tmp_path: Path) -> None:
    record(
        tmp_path,
        """
        assert not _core.train_waits()
        loader = Loader(1)
        _core.train_wait(LOADER, loader, loader)
        assert _core.train_waits()
        _core.train_got(loader)
        assert not _core.train_waits()
        """,
    )


def test_samples_after_the_last_update_are_in_no_step(tmp_path: Path) -> None:
    """What a program does once it has trained is not what its steps do."""
    run = record(
        tmp_path,
        """
        import time

        def spin(name):
            until = time.monotonic() + 60
            while time.monotonic() < until and not any(
                name in [frame[0] for frame in one["frames"]] for one in s.stacks()
            ):
                pass

        def trains():
            spin("trains")

        def evaluates():
            spin("evaluates")

        optimizer = Optimizer()
        with stepwatch.sample(hz=500) as s:
            for _ in range(5):
                train(optimizer)
                trains()
            train(optimizer)
            evaluates()
            stepwatch.stop()
        """,
    )
    assert steps_of(run)["count"] == 6
    phases: dict[str, set[Any]] = {"trains": set(), "evaluates": set()}
    for row in run.stacks:
        for name, found in phases.items():
            if name in row["stack"].split(";") and row["running"] + row["waiting"] > 0:
                found.add(row["phase"])
    assert phases == {"trains": {"other"}, "evaluates": {None}}
