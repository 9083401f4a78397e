"""``python -m ml_ops.data [preprocess] RAW PROCESSED``: pictures for YOLO, in its folders."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import stepwatch
from stepwatch.compat import _names
from stepwatch.compat.ml_ops import images, profile

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger("ml_ops.data")

_SOME = 5  # pictures that could not be read and are named
_VALIDATION = 10  # every so many pictures one is for validation


class Exported(NamedTuple):
    """What an export did."""

    train: int
    val: int
    skipped: int
    seconds: float


def read_split(split_file: Path) -> list[str]:
    """Return the names in a file that has one in each line."""
    try:
        lines = split_file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise images.UnreadableError(
            f"{split_file} cannot be read as a list of pictures: {error}"
        ) from error
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def choose(data_dir: Path, split_file: Path | None, most: int) -> list[tuple[Path, str]]:
    """Return the pictures to export, and whether each is for training or validation."""
    if split_file is None:
        found = images.find_images(data_dir)[:most]
        last = _VALIDATION - 1
        return [
            (path, "val" if number % _VALIDATION == last else "train")
            for number, path in enumerate(found)
        ]
    split = "val" if split_file.stem.lower().startswith(("val", "test")) else "train"
    return [(data_dir / name, split) for name in read_split(split_file)[:most]]


def label_of(path: Path, picture: images.Picture) -> str:
    """Return the line of YOLO for a picture: class, middle and size of the plate, as shares.

    A name that says nothing of a plate means that the picture is one.
    """
    name = images.parse_name(path.stem)
    left, top, right, bottom = (
        name.box if name is not None else (0, 0, picture.width, picture.height)
    )
    right, bottom = min(right, picture.width), min(bottom, picture.height)
    if left >= right or top >= bottom:
        raise ValueError("its name puts the plate outside of it")
    x, y = (left + right) / 2 / picture.width, (top + bottom) / 2 / picture.height
    wide, tall = (right - left) / picture.width, (bottom - top) / picture.height
    return f"0 {x:.6f} {y:.6f} {wide:.6f} {tall:.6f}\n"


def write_image(path: Path, picture: images.Picture, target: Path) -> None:
    """Put a picture where YOLO looks for it; PPM, which YOLO does not read, becomes PNG."""
    if path.suffix.lower() == ".ppm":
        images.save_image(picture, target.with_suffix(".png"))
    else:
        shutil.copyfile(path, target)


def write_label(line: str, target: Path) -> None:
    """Write the line beside it."""
    target.write_text(line, encoding="utf-8")


def _unused(folder: Path, stem: str, used: set[str]) -> str:
    """Return a name that no other picture of this export has."""
    name, number = stem, 1
    while f"{folder.name}/{name}" in used:
        number += 1
        name = f"{stem}_{number}"
    used.add(f"{folder.name}/{name}")
    return name


def export_pictures(chosen: list[tuple[Path, str]], output_dir: Path) -> Exported:
    """Export the chosen pictures; those that cannot be read are counted and passed over."""
    counts = {"train": 0, "val": 0}
    skipped = 0
    used: set[str] = set()
    begin = time.perf_counter()
    for split in counts:
        (output_dir / "images" / split).mkdir(parents=True, exist_ok=True)
        (output_dir / "labels" / split).mkdir(parents=True, exist_ok=True)
    for path, split in chosen:
        try:
            with stepwatch.section("load image"):
                picture = images.load_image(path)
            with stepwatch.section("parse name"):
                label = label_of(path, picture)
        except (OSError, ValueError) as error:
            skipped += 1
            if skipped <= _SOME:
                logger.warning("%s is passed over: %s", path, error)
            continue
        folder = output_dir / "images" / split
        name = _unused(folder, path.stem, used)
        with stepwatch.section("write files"):
            write_image(path, picture, folder / (name + path.suffix))
            write_label(label, output_dir / "labels" / split / f"{name}.txt")
        counts[split] += 1
    summary = "train: images/train\nval: images/val\nnames:\n  0: plate\n"
    (output_dir / "data.yaml").write_text(summary, encoding="utf-8")
    return Exported(counts["train"], counts["val"], skipped, time.perf_counter() - begin)


def _kib(count: int) -> str:
    return f"{count / 1024:.1f} KiB"


@contextmanager
def watched_files(on: bool) -> Iterator[None]:
    """Watch the calls on files of a block, and log what they moved and how long they took.

    A recording that is there already watches them if it was asked to, and has them afterwards.
    """
    if not on or stepwatch.is_recording():
        yield
        return
    with tempfile.TemporaryDirectory(prefix="stepwatch-files-") as folder:
        with stepwatch.record(
            "files", out=Path(folder) / "run", io=True, events=False, config="none", quiet=True
        ) as run:
            yield
        rows = [row for row in run.files if row["kind"] == "file"]
        run.close()
    sums = {
        key: sum(row[key] or 0 for row in rows)
        for key in ("reads", "read_bytes", "read_ns", "writes", "written_bytes", "write_ns")
    }
    logger.info(
        "Files: %d, read %s in %d calls and %.1f ms, wrote %s in %d calls and %.1f ms",
        len(rows),
        _kib(sums["read_bytes"]),
        sums["reads"],
        sums["read_ns"] / 1e6,
        _kib(sums["written_bytes"]),
        sums["writes"],
        sums["write_ns"] / 1e6,
    )


def export_yolo_format(
    data_dir: str | os.PathLike[str],
    output_dir: str | os.PathLike[str],
    split_file: str | os.PathLike[str] | None = None,
    max_images: int = 50000,
    enable_profiling: bool = _names.OFF,  # type: ignore[assignment]
) -> Exported:
    """Export a folder of pictures as YOLO reads them; profile that if asked to.

    The profile is ``export_yolo_format.stats``, in ``runs/profiling`` or PROFILE_OUTPUT_DIR. It is
    on if ``enable_profiling=True`` was said or ENABLE_PROFILING is true, and never when that is
    false. ``split_file`` names the pictures to take, one in each line.
    """
    source = Path(data_dir)
    if not source.is_dir():
        raise images.UnreadableError(
            f"{source} is no folder; name the folder that has the pictures."
        )
    split = Path(split_file) if split_file is not None else None
    on = profile.is_enabled(_names.given(enable_profiling))
    images.prepare()
    with watched_files(on), profile.cprofile_context(on, profile_name="export_yolo_format"):
        done = export_pictures(choose(source, split, max_images), Path(output_dir))
    count = done.train + done.val
    if count + done.skipped == 0:
        where = source if split is None else f"{split} or {source}"
        logger.warning(
            "%s has no pictures: nothing was exported, and the profile says little.", where
        )
    logger.info(
        "Exported %d images to %s (%d train, %d val, %d passed over) in %.2f s, %.1f img/s",
        count,
        output_dir,
        done.train,
        done.val,
        done.skipped,
        done.seconds,
        count / done.seconds if done.seconds > 0 else 0.0,
    )
    return done


def main(argv: list[str] | None = None) -> int:
    """Run the command; 2 is wrong usage, 3 input that cannot be read."""
    profile.begin_here()
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["preprocess"]:
        words = words[1:]
    parser = argparse.ArgumentParser(
        prog="python -m ml_ops.data",
        usage="python -m ml_ops.data [preprocess] RAW PROCESSED [options]",
        description="Exports a folder of pictures in the format of YOLO.",
    )
    parser.add_argument("raw", type=Path, help="folder of JPEG, PNG or PPM pictures")
    parser.add_argument("processed", type=Path, help="folder to write; it is made if need be")
    parser.add_argument("--split-file", type=Path, help="file that names the pictures to take")
    parser.add_argument("--max-images", type=int, default=50000, help="take no more; 50000")
    options = parser.parse_args(words)
    if options.max_images < 1:
        parser.error(f"--max-images is {options.max_images} but should be at least 1")
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        export_yolo_format(options.raw, options.processed, options.split_file, options.max_images)
    except images.UnreadableError as error:
        print(f"ml_ops.data: {error}", file=sys.stderr)
        return 3
    except OSError as error:
        where = error.filename or options.processed
        print(f"ml_ops.data: {where} cannot be written: {error.strerror}.", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
