"""From numbers to a report, and from a report to files."""

from __future__ import annotations

import sys
from pathlib import Path

from stepwatch.compat._code_profiler import facts, files, page, pictures, reporting, rules
from stepwatch.compat._code_profiler.metrics import ProfilerMetrics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepwatch.compat._code_profiler.collector import Collector
    from stepwatch.compat._code_profiler.notices import Notices
    from stepwatch.compat._code_profiler.recorder import Recorder
    from stepwatch.compat._code_profiler.watching import Watching


_FUNCTION = ("name", "file", "line", "samples", "self_ms", "total_ms", "self_share", "total_share")
_MOST = 20  # Functions in a report.


class Publisher:
    """Knows everything that a profiler has measured, judges it, and writes it down."""

    def __init__(
        self, recorder: Recorder, watching: Watching, collector: Collector, notices: Notices
    ) -> None:
        """Take where the numbers are."""
        self._recorder, self._watching = recorder, watching
        self._collector, self._notices = collector, notices
        self._config = recorder.config
        self.metrics = ProfilerMetrics(recorder, watching, self.judge)
        self.known: dict[str, Any] = {"loaders": [], "trainings": [], "batch_sizes": None}
        self._findings: list[dict[str, Any]] = []
        self._covered = 0  # What the newest report on disk has seen.

    def look_at_recording(self) -> None:
        """Take the findings of the recording; it has no more after its end."""
        session = self._recorder.session
        if session is not None and session.alive:
            found = session.document().get("findings") or []
            # No change of the program helps against other programs.
            self._findings = [each for each in found if each["kind"] != "cpu_starved"]

    def judge(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Return bottlenecks and recommendations."""
        self.look_at_recording()
        known = {**self.known, "findings": self._findings, "gc_s": self._collector.seconds}
        data = self._watching.data()
        return rules.judge(facts.gather(self._recorder, self.metrics, data, known))

    def report(self) -> dict[str, Any]:
        """Return the report as plain values."""
        resident = self._recorder.resident
        if resident is not None and self._recorder.on:
            resident.look(at_once=True)  # Before what the report itself takes.
        found = self.judge()
        number, world = files.rank()
        extra: dict[str, Any] = {
            "data_loading": self.known["loaders"],
            "training": self.known["trainings"],
            "config": self._config.in_force(),
            "notes": self._notes(),
        }
        if self._deep:
            extra["functions"] = self._functions()
        if world > 1:
            extra["rank"] = {"rank": number, "world_size": world}
        report = reporting.build(self.metrics, found, self._watching.data(), extra)
        if resident is not None:
            report["detailed_metrics"]["memory_over_time"] = resident.over_time()
        return report

    @property
    def _deep(self) -> bool:
        """Whether stacks are looked at and events are kept."""
        session = self._recorder.session
        return (
            self._config.profile_level == "comprehensive" and session is not None and session.alive
        )

    def _functions(self) -> list[dict[str, Any]]:
        """Return the functions in which the time went, as the sampler saw it; ours left out."""
        session = self._recorder.session
        rows = None if session is None else session.document().get("functions")
        if not isinstance(rows, list):
            return []  # Nothing was seen; the document has a sentence about it instead.
        return [
            {key: row.get(key) for key in _FUNCTION}
            for row in rows
            if row.get("source") == "sampler" and "stepwatch/compat" not in row["file"]
        ][:_MOST]

    def _notes(self) -> list[str]:
        notes = list(self._notices.said)
        torch: Any = sys.modules.get("torch")
        if self._config.is_on("track_gpu") and (torch is None or not torch.cuda.is_available()):
            notes.append("There is no GPU that torch can use: GPU metrics are empty.")
        session = self._recorder.session
        if session is not None and session.why is not None:
            notes.append(session.why)
        elif session is not None and session.was_left:
            notes.append(
                "The recording in which the profiler was first used has ended: there is no "
                "monitor, no page and nothing of loaders and files. Use the profiler once "
                "before a shorter recording (a traced block) begins."
            )
        wanted = self._recorder.wanted()["io"]
        if session is not None and session.alive and wanted and not session.has("io"):
            notes.append(
                "Calls on files and sockets are not counted: the recording that is under way does"
                " without (stepwatch run --io)."
            )
        return notes

    # --- Files ---------------------------------------------------------------------------

    def save_rest(self) -> None:
        """Write a report unless one on disk has seen everything."""
        if self._recorder.changes > self._covered:
            self.save(self.report(), None)

    def save(self, report: dict[str, Any], path: str | None) -> None:
        """Write all files that are asked for; where that fails, one sentence says so."""
        if not self._config.is_on("save_profiles"):
            return
        try:
            self._save(report, path)
            self._covered = self._recorder.changes
        except OSError as error:
            self._notices.warn(f"The profiling report could not be written: {error}")

    def _save(self, report: dict[str, Any], path: str | None) -> None:
        on, folder = self._config.is_on, self._config.folder
        if on("export_to_json"):
            target = path or files.of_rank(f"{folder}/{reporting.NAME}")
            files.write_json(target, report)
            self._notices.info(f"Profiling report saved to {target}")
        if on("export_to_csv"):
            reporting.write_tables(folder, self.metrics, report["performance_data"])
        recording = self._save_run(folder)
        images: list[str] = []
        if on("create_visualizations"):
            number, world = files.rank()
            drawn = pictures.draw(folder, report, f"_rank{number}" if world > 1 else "")
            images = [path for path in drawn if path.endswith(".svg")]
        text = page.page(report, images, recording)
        files.write_text(files.of_rank(f"{folder}/{page.NAME}"), text)
        if path is None and files.rank()[1] > 1 and on("export_to_json"):
            with files.locked(folder):
                merged = reporting.merge(folder)
                if merged is not None:
                    files.write_json(f"{folder}/{reporting.NAME}", merged)

    def _save_run(self, folder: str) -> str | None:
        """Write the recording's own page, and its events where those were wanted.

        Return the name of the page; None: there is no recording.
        """
        session = self._recorder.session
        run = session.run() if session is not None else None
        if run is None:
            return None
        target = files.of_rank(f"{folder}/{page.RECORDING}")
        files.make_folder(folder)
        run.report().save(target)
        if self._deep:
            run.export("chrome", files.of_rank(f"{folder}/trace.json"))
        return Path(target).name
