"""Draw text from a terminal as an SVG picture, for the README.

stepwatch report RUN --unicode --width 92 | tools/terminal_svg.py "stepwatch run train.py" > x.svg
"""

from __future__ import annotations

import sys
from html import escape

COLUMN, LINE, MARGIN, TITLE = 7.83, 17, 16, 34


def svg(title: str, lines: list[str]) -> str:
    """Return the picture: dark, monospaced, as wide as the widest line."""
    width = MARGIN * 2 + COLUMN * max(len(line) for line in [title, *lines])
    height = TITLE + LINE * len(lines) + MARGIN
    rows = "\n".join(
        f'<text x="{MARGIN}" y="{TITLE + LINE * (i + 0.75):.1f}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" \
viewBox="0 0 {width:.0f} {height:.0f}">
<style>text{{font:13px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre;\
fill:#d8dee9}}.t{{fill:#88c0d0;font-weight:bold}}</style>
<rect width="100%" height="100%" rx="8" fill="#20242c"/>
<text class="t" x="{MARGIN}" y="22">$ {escape(title)}</text>
{rows}
</svg>
"""


if __name__ == "__main__":
    sys.stdout.write(svg(sys.argv[1], sys.stdin.read().rstrip("\n").split("\n")))
