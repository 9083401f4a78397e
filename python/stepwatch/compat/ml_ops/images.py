"""Pictures of number plates: reading and writing them, what their names say, and made-up ones.

Pillow reads JPEG and PNG. Without it there is PPM, which is read here.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stepwatch.integrations._notes import note_once

if TYPE_CHECKING:
    from collections.abc import Sequence

ENDINGS = (".jpg", ".jpeg", ".png", ".ppm")

# The order in which names of the CCPD form number them.
PROVINCES = "皖沪津渝冀晋蒙辽吉黑苏浙京闽赣鲁豫鄂湘粤桂琼川贵云藏陕甘青宁新警学O"
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZO"
SIGNS = "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789O"
LENGTH = 7
# Everything that can stand on a plate; a reader's classes are these, after one for "nothing".
ALPHABET = PROVINCES[:-1] + SIGNS

_HEADER = re.compile(rb"P6(?:\s+|#[^\n]*\n)+(\d+)(?:\s+|#[^\n]*\n)+(\d+)(?:\s+|#[^\n]*\n)+(\d+)\s")
_LARGEST = 20_000  # pixels of a side


class UnreadableError(Exception):
    """What was given cannot be read; the text says what to do."""


class Picture(NamedTuple):
    """Rows of red, green and blue bytes."""

    width: int
    height: int
    data: bytes


class PlateName(NamedTuple):
    """What a name says: where the plate is (left, top, right, bottom), and what stands on it."""

    box: tuple[int, int, int, int]
    text: str


def find_images(folder: Path) -> list[Path]:
    """Return all pictures below a folder, in the order of their names."""
    found = (path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS)
    return sorted(path for path in found if path.is_file())


def parse_name(stem: str) -> PlateName | None:
    """Take a name of the CCPD form apart: area-tilt-box-corners-plate-brightness-blur."""
    parts = stem.split("-")
    if len(parts) != 7:
        return None
    try:
        (left, top), (right, bottom) = (
            (int(number) for number in corner.split("&")) for corner in parts[2].split("_")
        )
        numbers = [int(number) for number in parts[4].split("_")]
        if len(numbers) != LENGTH or left >= right or top >= bottom or min(numbers) < 0:
            return None
        text = PROVINCES[numbers[0]] + LETTERS[numbers[1]]
        text += "".join(SIGNS[number] for number in numbers[2:])
    except (ValueError, IndexError):
        return None
    return PlateName((left, top, right, bottom), text)


def format_name(number: int, box: Sequence[int], text: str) -> str:
    """Return a name of the CCPD form for a plate; the number makes it unlike others."""
    left, top, right, bottom = box
    corners = f"{right}&{bottom}_{left}&{bottom}_{left}&{top}_{right}&{top}"
    plate = [PROVINCES.index(text[0]), LETTERS.index(text[1])]
    plate += [SIGNS.index(sign) for sign in text[2:]]
    signs = "_".join(str(one) for one in plate)
    return f"{number:04}-90_90-{left}&{top}_{right}&{bottom}-{corners}-{signs}-100-10"


def _pillow() -> Any:
    try:
        return import_module("PIL.Image")
    except ImportError:
        return None


def prepare() -> None:
    """Import what reads pictures, so that it does not happen with the first of them."""
    pillow = _pillow()
    if pillow is not None:
        for kind in ("Jpeg", "Png"):
            import_module(f"PIL.{kind}ImagePlugin")
        pillow.preinit()


def load_image(path: Path) -> Picture:
    """Read a picture; what is wrong with it is an OSError or a ValueError."""
    if path.suffix.lower() == ".ppm":
        return _load_ppm(path)
    pillow = _pillow()
    if pillow is None:
        note_once("Pillow is not installed: only PPM pictures are read, others are passed over.")
        raise ValueError("Pillow, which reads it, is not installed")
    try:
        with pillow.open(path) as image:
            data: bytes = image.convert("RGB").tobytes()
            return Picture(image.width, image.height, data)
    except (SyntaxError, pillow.DecompressionBombError) as error:  # So Pillow calls some damage.
        raise ValueError(str(error)) from error


def _load_ppm(path: Path) -> Picture:
    content = path.read_bytes()
    header = _HEADER.match(content)
    if header is None:
        raise ValueError("it is no PPM picture of the binary kind (P6)")
    width, height, depth = (int(number) for number in header.groups())
    if depth != 255 or not (0 < width <= _LARGEST and 0 < height <= _LARGEST):
        raise ValueError(f"{width} x {height} pixels of depth {depth} are not supported")
    data = content[header.end() : header.end() + 3 * width * height]
    if len(data) < 3 * width * height:
        raise ValueError("it is cut off")
    return Picture(width, height, data)


def save_image(picture: Picture, path: Path) -> Path:
    """Write a picture as PNG, or as PPM where there is no Pillow; return where it is."""
    pillow = _pillow()
    if pillow is not None and path.suffix.lower() != ".ppm":
        image = pillow.frombytes("RGB", (picture.width, picture.height), picture.data)
        image.save(path)
        return path
    path = path.with_suffix(".ppm")
    path.write_bytes(b"P6\n%d %d\n255\n" % (picture.width, picture.height) + picture.data)
    return path


def plate_text(number: int) -> str:
    """Return a plate by number; each number has its own mixture of signs."""
    mixed = (number * 0x9E3779B97F4A7C15 + 0x7F4A7C15) & 0xFFFFFFFFFFFFFFFF
    mixed ^= mixed >> 29
    text = PROVINCES[mixed % 31]
    mixed //= 31
    text += LETTERS[mixed % 24]
    mixed //= 24
    for _ in range(LENGTH - 2):
        text += SIGNS[mixed % 34]
        mixed //= 34
    return text


def _glyph(sign: str) -> list[int]:
    """Return seven rows of five dots: every sign has a pattern of its own."""
    seed = (ALPHABET.index(sign) + 1) * 2654435761
    rows = []
    for row in range(7):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        rows.append((seed >> 12 & 0x1F) | (0x11 if row % 3 == 0 else 0))
    return rows


def draw_plate(text: str, scale: int = 2, margin: int = 6) -> tuple[Picture, list[int]]:
    """Draw a plate on a grey ground; return the picture and the box of the plate."""
    cell, tall = 6 * scale, 9 * scale
    wide = LENGTH * cell + scale
    width, height = wide + 2 * margin, tall + 2 * margin
    pixels = bytearray(b"\x60\x60\x60" * (width * height))
    for y in range(tall):
        start = ((y + margin) * width + margin) * 3
        pixels[start : start + 3 * wide] = b"\x20\x30\xb0" * wide
    for place, sign in enumerate(text):
        for row, dots in enumerate(_glyph(sign)):
            for column in range(5):
                if not dots >> column & 1:
                    continue
                for y in range(scale):
                    line = margin + (row + 1) * scale + y
                    start = (line * width + margin + place * cell + (column + 1) * scale) * 3
                    pixels[start : start + 3 * scale] = b"\xf0" * (3 * scale)
    return (
        Picture(width, height, bytes(pixels)),
        [margin, margin, margin + wide, margin + tall],
    )
