"""Check the documents: every relative link leads somewhere, every man page is well formed."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """Return the anchors that the headings of a Markdown text have."""
    headings = re.findall(r"^#+ +(.*)$", FENCE.sub("", text), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def bad_links(document: Path) -> Iterator[str]:
    """Yield a sentence for every relative link that leads nowhere."""
    text = document.read_text(encoding="utf-8")
    for link in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if not target.exists():
            yield f"{document.relative_to(ROOT)}: {link} does not exist"
        elif target.suffix == ".md" and anchor not in {"", *anchors(target.read_text("utf-8"))}:
            yield f"{document.relative_to(ROOT)}: {link} has no such heading"


def man_page(page: Path, render: Path | None) -> Iterator[str]:
    """Yield what groff says about a man page, and render it where asked."""
    command = ["groff", "-man", "-Tutf8", "-Kutf8", "-wall", "-P-cbou", str(page)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    yield from result.stderr.splitlines()
    if render is not None:
        (render / f"{page.name}.txt").write_text(result.stdout, encoding="utf-8")


def main() -> int:
    """Check all documents of the tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--render", type=Path, help="folder for the man pages as text")
    render: Path | None = parser.parse_args().render
    if render is not None:
        render.mkdir(parents=True, exist_ok=True)

    documents = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    problems = [problem for document in documents for problem in bad_links(document)]
    pages = sorted((ROOT / "docs" / "man").glob("*.1"))
    if shutil.which("groff"):
        problems += [problem for page in pages for problem in man_page(page, render)]
    elif pages:
        print("docs: groff is not here, so the man pages were not checked", file=sys.stderr)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"docs: {len(documents)} documents, {len(pages)} man pages, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
