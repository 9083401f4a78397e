"""The list of programs in zoo.toml: what each one is, what is planted in it, how to run it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib

ZOO = Path(__file__).parent

# fmt: off
KINDS = frozenset((
    "loader_workers", "loader_transform", "loader_collate", "loader_io", "loader_restart",
    "loader_bursty", "loader_main_process", "host_sync", "transfer", "launch_bound",
    "python_overhead", "slow_module", "optimizer", "dtype", "recompile", "logging", "checkpoint",
    "validation", "gc", "memory_growth", "memory_pressure", "cpu_oversubscribed", "cpu_starved",
    "straggler", "communication", "gpu_throttle", "amp", "redundant_work", "variance",
))
KEYS = frozenset((
    "name", "framework", "file", "folder", "module", "launcher", "args", "fixed", "kinds", "where",
    "healthy", "uncounted",
))
# fmt: on


class ManifestError(Exception):
    """The manifest says something that cannot be."""


@dataclass(frozen=True)
class Where:
    """A place: in one of ``files``, either called one of ``names`` or within ``functions``."""

    files: tuple[str, ...]
    names: tuple[str, ...]
    lines: tuple[range, ...]
    functions: tuple[str, ...]

    def matches(self, found: Mapping[str, Any] | None) -> bool:
        """Tell whether the ``where`` of a finding is this place."""
        if found is None:
            return False
        if self.files and Path(found.get("file") or "").name not in self.files:
            return False
        name, line = found.get("name"), found.get("line")
        if name and any(same_name(name, want) for want in (*self.names, *self.functions)):
            return True
        return line is not None and any(line in lines for lines in self.lines)


@dataclass(frozen=True)
class Program:
    """A program, and its fixed twin unless it is healthy. Commands are arguments of Python."""

    name: str
    framework: str
    folder: Path
    command: tuple[str, ...]
    fixed: tuple[str, ...] | None
    kinds: tuple[str, ...]
    where: Where | None
    uncounted: int

    @property
    def healthy(self) -> bool:
        """There is nothing to be found in it."""
        return self.fixed is None


def same_name(found: str, want: str) -> bool:
    """Tell whether a qualified name is, ends or begins with the wanted one."""
    return found == want or found.endswith(f".{want}") or found.startswith(f"{want}.")


def definitions(tree: ast.AST) -> Iterator[tuple[str, range]]:
    """Yield the functions and classes of a file, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(line.lineno for line in node.decorator_list)])
            yield node.name, range(first, (node.end_lineno or first) + 1)


def read_where(table: Mapping[str, Any], folder: Path, name: str) -> Where:
    """Read where the planted thing is, and find the lines of its functions."""
    files = tuple(table.get("files", [table["file"]] if "file" in table else []))
    functions = tuple(table.get("functions", ()))
    names = tuple(table.get("names", ()))
    unknown = sorted(set(table) - {"file", "files", "functions", "names"})
    if unknown or not (functions or names) or (functions and not files):
        raise ManifestError(
            f"{name}: where needs names, or a file with functions"
            + (f", and has no key {unknown[0]}" if unknown else "")
        )
    lines: list[range] = []
    missing = set(functions)
    for file in files:
        paths = sorted(folder.rglob(file))
        if not paths:
            raise ManifestError(f"{name}: there is no {file} in {folder}")
        for path in paths:
            for function, where in definitions(ast.parse(path.read_text(encoding="utf-8"))):
                if function in functions:
                    lines.append(where)
                    missing.discard(function)
    if missing:
        raise ManifestError(f"{name}: there is no {min(missing)} in {', '.join(files)}")
    return Where(files, names, tuple(lines), functions)


def command_of(table: Mapping[str, Any], programs: Path, name: str) -> tuple[str, ...]:
    """Return what Python is given to run the program."""
    target: list[str]
    if "module" in table:
        target = ["-m", table["module"]]
    else:
        path = programs / table["file"]
        if not path.is_file():
            raise ManifestError(f"{name}: there is no file {path}")
        target = [str(path)]
    if "launcher" in table:
        target = ["-m", *table["launcher"], *target]
    return (*target, *table.get("args", ()))


def read_program(table: Mapping[str, Any], programs: Path) -> Program:
    """Read one table of the manifest."""
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise ManifestError("a program has no name")
    unknown = sorted(set(table) - KEYS)
    if unknown:
        raise ManifestError(f"{name}: there is no key {unknown[0]}")
    if ("file" in table) == ("module" in table) or ("module" in table) != ("folder" in table):
        raise ManifestError(f"{name}: it needs a file, or a module and the folder that has it")
    folder = (programs / table.get("folder", Path(table.get("file", ".")).parent)).resolve()
    if not folder.is_dir():
        raise ManifestError(f"{name}: there is no folder {folder}")
    healthy = table.get("healthy", False)
    kinds = tuple(table.get("kinds", ()))
    if healthy == bool(kinds) or healthy == ("fixed" in table):
        raise ManifestError(f"{name}: either it is healthy, or it has kinds and a fixed twin")
    wrong = [kind for kind in kinds if kind not in KINDS]
    if wrong:
        raise ManifestError(f"{name}: there is no kind {wrong[0]}")
    fixed = None
    if not healthy:
        changes = table["fixed"]
        if not changes or set(changes) - {"file", "module", "args"}:
            raise ManifestError(f"{name}: fixed needs another file, module or args")
        fixed = command_of({**table, **changes}, programs, name)
    return Program(
        name=name,
        framework=table.get("framework", ""),
        folder=folder,
        command=command_of(table, programs, name),
        fixed=fixed,
        kinds=kinds,
        where=read_where(table["where"], folder, name) if "where" in table else None,
        uncounted=table.get("uncounted", 0),
    )


def read_manifest(path: Path, programs: Path | None = None) -> list[Program]:
    """Read all programs; ``programs`` is the folder that they lie in, else the list names it."""
    try:
        manifest = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ManifestError(f"{path}: {error}") from error
    tables = manifest.get("program")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ManifestError(f"{path}: it has no [[program]]")
    programs = programs or path.parent / manifest.get("programs", "programs")
    found = [read_program(table, programs) for table in tables]
    seen: set[str] = set()
    for program in found:
        if program.name in seen:
            raise ManifestError(f"{program.name}: it is there twice")
        seen.add(program.name)
    return found
