"""Make a folder of tiny pictures of number plates, with names that say what stands on them.

    python examples/ml_ops/make_plates.py data/raw --count 60

Every sign is a pattern of dots of its own. JPEG and PNG need Pillow; PPM needs nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from stepwatch.compat.ml_ops import images


def make(folder: Path, count: int, kinds: list[str]) -> None:
    """Write so many plates, of each kind of file in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        text = images.plate_text(number)
        picture, box = images.draw_plate(text)
        name = images.format_name(number, box, text)
        images.save_image(picture, folder / f"{name}.{kinds[number % len(kinds)]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--kinds", nargs="+", choices=["png", "jpg", "ppm"], default=["png"])
    options = parser.parse_args()
    make(options.folder, options.count, options.kinds)
    print(f"{options.count} plates in {options.folder}")


if __name__ == "__main__":
    main()
