"""Write a text file as a C source with one constant string.

    embed_text.py SYMBOL INPUT OUTPUT

The build calls it for templates, so that they can be edited as what they are.
"""

from __future__ import annotations

import sys
from pathlib import Path


def quoted(line: str) -> str:
    """Return the line as a C string; every byte that is not plain ASCII in octal."""
    parts = []
    for byte in line.encode():
        if byte in (0x22, 0x5C):
            parts.append("\\" + chr(byte))
        elif 0x20 <= byte < 0x7F and byte != 0x3F:  # two question marks may begin a trigraph
            parts.append(chr(byte))
        else:
            parts.append(f"\\{byte:03o}")
    return '"' + "".join(parts) + '"'


def main() -> None:
    """Convert one file."""
    symbol, source, target = sys.argv[1:]
    text = Path(source).read_text(encoding="utf-8")
    lines = "\n    ".join(quoted(line) for line in text.splitlines(keepends=True))
    Path(target).write_text(
        f"/* Made from {Path(source).name}; edit that. */\n"
        f"extern const char {symbol}[];\nconst char {symbol}[] =\n    {lines};\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
