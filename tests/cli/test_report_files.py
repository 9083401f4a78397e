"""stepwatch report into files: a page, tables, Markdown; whole or not there at all."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

TABLES = ["findings", "modules", "phases", "sections", "steps"]
VOID = {"meta", "br", "path", "line"}


class Page(HTMLParser):
    """A page, read the way a browser would: elements, and whether they are closed."""

    def __init__(self, text: str) -> None:
        """Read all of it."""
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Meet an element without content."""
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        """Close an element."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collect what is shown."""
        self.text += data


def check_alone(page: Page) -> None:
    """The page runs nothing and asks nobody."""
    assert not page.tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    for _, name, value in page.attributes:
        assert not name.startswith("on")
        assert name not in ("src", "srcset", "action", "data")
        if name == "href":
            assert value.startswith("#")
        assert "url(" not in value
    assert ("meta", "charset", "utf-8") in page.attributes
    policies = [value for _, _, value in page.attributes if value.startswith("default-src")]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_run_leaves_a_page(recorded: Path) -> None:
    page = Page((recorded / "report.html").read_text())
    check_alone(page)
    for word in ("Where the time goes", "What to change", "data_wait", "Slowest steps", "loss"):
        assert word in page.text
    assert (recorded / "report.html").stat().st_mode & 0o777 == 0o600


def test_no_report_leaves_no_page(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    stepwatch("run", "-o", "out", "--no-report", "--", program, "steps", "3")
    assert not (tmp_path / "out" / "report.html").exists()


def test_html(stepwatch: Run, recorded: Path, tmp_path: Path) -> None:
    result = stepwatch("report", recorded, "--html", "page.html")
    assert result.returncode == 0, result.stderr
    assert "Verdict" in result.stdout
    text = (tmp_path / "page.html").read_text()
    check_alone(Page(text))
    assert text == (recorded / "report.html").read_text()
    assert stepwatch("report", recorded, "--html", "-").stdout == text
    links = {value[1:] for _, name, value in Page(text).attributes if name == "href"}
    assert links <= {value for _, name, value in Page(text).attributes if name == "id"}


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "\"'><b>", "]]>--><!--", "x\x1b\ty"])
def test_names_stay_text(stepwatch: Run, program: Path, tmp_path: Path, name: str) -> None:
    stepwatch("run", "-o", "out", "--name", name, "--", program, "names", name)
    text = (tmp_path / "out" / "report.html").read_text()
    page = Page(text)
    check_alone(page)
    assert "script" not in page.tags
    assert name.replace("\x1b", "\\x1b").replace("\t", "\\x09") in page.text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def read_csv(path: Path) -> list[dict[str, str]]:
    data = path.read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") or b'"' in data
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    assert all(None not in row and None not in row.values() for row in rows)
    return rows


def test_csv(stepwatch: Run, recorded: Path, tmp_path: Path) -> None:
    result = stepwatch("report", recorded, "--csv", "tables")
    assert result.returncode == 0, result.stderr
    assert names(tmp_path / "tables") == [f"{name}.csv" for name in TABLES]
    report = json.loads((recorded / "report.json").read_text())
    steps = read_csv(tmp_path / "tables" / "steps.csv")
    assert len(steps) == report["steps"]["count"]
    assert [int(row["step"]) for row in steps] == list(range(40))
    for row in steps:
        phases = [value for key, value in row.items() if key.endswith("_ns") and key not in
                  ("begin_ns", "duration_ns", "cpu_ns", "run_delay_ns")]  # fmt: skip
        assert sum(int(value) for value in phases if value) == int(row["duration_ns"])
        assert row["h2d_ns"] == ""
    sections = read_csv(tmp_path / "tables" / "sections.csv")
    assert [row["path"].split("/") for row in sections] == [
        row["path"] for row in report["sections"]
    ]
    assert [float(row["total_ns"]) / 1e6 for row in sections] == [
        row["total_ms"] for row in report["sections"]
    ]
    by_phase = read_csv(tmp_path / "tables" / "phases.csv")
    assert [row["phase"] for row in by_phase] == [row["phase"] for row in report["steps"]["phases"]]
    assert sum(float(row["share"] or 0) for row in by_phase) == 1
    assert {int(row["looked"]) for row in by_phase} == {report["steps"]["looked"]}
    findings = read_csv(tmp_path / "tables" / "findings.csv")
    assert [row["id"] for row in findings] == [row["id"] for row in report["findings"]]
    assert read_csv(tmp_path / "tables" / "modules.csv") == []


def test_csv_of_odd_names(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    name = 'a,"b"\r\nc/d'
    stepwatch("run", "-o", "out", "--", program, "names", name)
    assert stepwatch("report", "out", "--csv", "tables").returncode == 0
    (row,) = read_csv(tmp_path / "tables" / "sections.csv")
    assert row["name"] == name
    assert row["path"] == name.replace("/", "\\/")


def test_csv_replaces_its_own_files(stepwatch: Run, recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "steps.csv").write_text("old")
    (folder / "mine.txt").write_text("mine")
    assert stepwatch("report", recorded, "--csv", folder).returncode == 0
    assert len(read_csv(folder / "steps.csv")) == 40
    assert (folder / "mine.txt").read_text() == "mine"


def test_markdown(stepwatch: Run, recorded: Path, tmp_path: Path) -> None:
    result = stepwatch("report", recorded, "--markdown")
    assert result.returncode == 0
    assert result.stdout.startswith("### program\n\n**")
    assert "| data_wait | " in result.stdout
    assert stepwatch("report", recorded, "--markdown", "-o", "r.md").stdout == ""
    assert (tmp_path / "r.md").read_text() == result.stdout


def test_out(stepwatch: Run, recorded: Path, tmp_path: Path) -> None:
    assert stepwatch("report", recorded, "--json", "-o", "r.json").stdout == ""
    assert json.loads((tmp_path / "r.json").read_text())["schema"] == "stepwatch.report/1"
    result = stepwatch("report", recorded, "--json", "--markdown")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)


def sentence(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 3
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("stepwatch: ")
    assert line.endswith(".")
    return line


def test_places_that_cannot_be_written(stepwatch: Run, recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    before = names(tmp_path)
    assert "missing/page.html" in sentence(
        stepwatch("report", recorded, "--html", "missing/page.html")
    )
    assert "folder" in sentence(stepwatch("report", recorded, "--html", "folder"))
    assert "is a file" in sentence(stepwatch("report", recorded, "--csv", "file"))
    assert "missing/x" in sentence(stepwatch("report", recorded, "--csv", "missing/x"))
    assert "missing/r.json" in sentence(
        stepwatch("report", recorded, "--json", "-o", "missing/r.json")
    )
    assert names(tmp_path) == before
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_without_permission(stepwatch: Run, recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    assert "Permission denied" in sentence(stepwatch("report", recorded, "--html", folder / "p"))
    assert "Permission denied" in sentence(stepwatch("report", recorded, "--csv", folder))


def test_full_disk(stepwatch: Run, recorded: Path, tmp_path: Path) -> None:
    """A limit on the size of files says no in the middle of writing, as a full disk does."""
    (tmp_path / "page.html").write_text("old")

    def limited() -> None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    before = names(tmp_path)
    for option, place in (("--html", "page.html"), ("--csv", "tables")):
        result = stepwatch("report", recorded, option, place, preexec_fn=limited)
        assert place in sentence(result)
        assert names(tmp_path) == before
    assert (tmp_path / "page.html").read_text() == "old"
    full = stepwatch("report", recorded, "--html", "/dev/full")
    assert "/dev/full" in sentence(full)


def test_killed_run(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    result = stepwatch("run", "-o", "out", "--", program, "steps", "5", "raise", "9")
    assert result.returncode == 128 + signal.SIGKILL
    page = Page((tmp_path / "out" / "report.html").read_text())
    check_alone(page)
    assert "killed by SIGKILL" in page.text
    assert "Verdict" in result.stderr
    assert stepwatch("report", "out", "--csv", "tables").returncode == 0
    assert len(read_csv(tmp_path / "tables" / "steps.csv")) >= 5


@pytest.mark.parametrize("words", [["steps", "1"], ["names", "only"], ["print", "nothing"]])
def test_little_is_reported_too(
    stepwatch: Run, program: Path, tmp_path: Path, words: list[str]
) -> None:
    stepwatch("run", "-o", "out", "--", program, *words)
    result = stepwatch("report", "out", "--html", "p.html", "--csv", "tables")
    assert result.returncode == 0, result.stderr
    check_alone(Page((tmp_path / "p.html").read_text()))
    assert len(read_csv(tmp_path / "tables" / "steps.csv")) == (words == ["steps", "1"])
    assert stepwatch("report", "out", "--markdown").returncode == 0


def test_foreign_folders(stepwatch: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "photo.jpg").write_text("x")
    for place in ("empty", "foreign", "absent"):
        sentence(stepwatch("report", place, "--html", "p.html", "--csv", "tables"))
    assert names(tmp_path) == ["empty", "foreign"]


@pytest.mark.usefixtures("python_env")
def test_source_lines_stay_text(stepwatch: Run, tmp_path: Path) -> None:
    source = 'def work():\n    return "</code></td><script>alert(1)</script>" * 2\nwork()\n'
    (tmp_path / "train.py").write_text(source)
    words = ("--functions", "--lines", "train:work", "train.py")
    assert stepwatch("run", "-o", "out", *words).returncode == 0
    page = Page((tmp_path / "out" / "report.html").read_text())
    check_alone(page)
    assert 'return "</code></td><script>alert(1)</script>" * 2' in page.text
    assert "Functions by self time (exact)" in page.text
