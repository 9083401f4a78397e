"""Magics for IPython and notebooks: ``%%stepwatch`` and ``%swlines``."""

from __future__ import annotations

import contextlib
import tempfile
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError  # type: ignore[import-not-found,unused-ignore]
from IPython.core.magic import (  # type: ignore[import-not-found,unused-ignore]
    Magics,
    cell_magic,
    line_magic,
    magics_class,
)

import stepwatch
from stepwatch import integrations

if TYPE_CHECKING:
    from collections.abc import Iterator


def load(shell: Any) -> None:
    """Add the magics to a shell."""
    shell.register_magics(StepwatchMagics)


@contextlib.contextmanager
def _tracebacks_once(shell: Any) -> Iterator[None]:
    """Leave showing an error to whoever ran the magic: it is raised there again."""
    kept = vars(shell).get("_showtraceback")
    shell._showtraceback = lambda *_args, **_kwargs: None
    try:
        yield
    finally:
        if kept is None:
            del shell._showtraceback
        else:
            shell._showtraceback = kept


@magics_class  # type: ignore[untyped-decorator,unused-ignore]
class StepwatchMagics(Magics):  # type: ignore[misc,unused-ignore]
    """What ``%load_ext stepwatch`` adds."""

    @cell_magic("stepwatch")  # type: ignore[untyped-decorator,unused-ignore]
    def record_cell(self, line: str, cell: str) -> None:
        """Record a cell and show where its time went.

        %%stepwatch [--functions] [--lines NAME]... [--out DIR]

        --functions   count and time every function, too
        --lines NAME  time each line of a function, of a class or of a module's functions:
                      an expression, or package.module:function; may be repeated
        --out DIR     keep the recording there (default: a temporary folder)
        """
        options, rest = self._options(line, "", "functions", "lines=", "out=")
        if rest.strip():
            raise UsageError(f"%%stepwatch does not know what {rest.strip()!r} means")
        lines = self._lines(options.get("lines", []))
        functions = self._functions() if "functions" in options else None

        own = not stepwatch.is_recording()
        watch = False
        if own:
            out = options.get("out", [""])[-1] or tempfile.mkdtemp(prefix="stepwatch-")
            stepwatch.start(out=out, name="cell", sampler_hz=200)
            watch = self._watch()
        elif "out" in options:
            raise UsageError("a recording is on already; stop it before asking for another --out")
        else:
            print("stepwatch: a recording is on already; the cell is part of it")
        try:
            with functions or contextlib.nullcontext(), _tracebacks_once(self.shell):
                result = self.shell.run_cell(cell)
        finally:
            if lines is not None:
                lines.disable()
            run = stepwatch.stop() if own else None
            if watch:
                integrations.remove()
        if functions is not None:
            functions.print(limit=20)
        if lines is not None:
            lines.print()
        if run:
            report = getattr(run, "report", None)
            print(report() if report else f"stepwatch: recorded, see: stepwatch report {run}")
        result.raise_error()

    @line_magic("swlines")  # type: ignore[untyped-decorator,unused-ignore]
    def time_lines(self, line: str) -> stepwatch.Lines | None:
        """Run a statement and show what each line of some functions took.

        %swlines -f FUNCTION [-f FUNCTION]... [-m MODULE]... [-T FILE] [-r] STATEMENT

        -f FUNCTION  a function, method or class, as an expression
        -m MODULE    a module that is imported: all functions written in it
        -T FILE      save the profile, as text or JSON by the name's ending
        -r           return the profile, a stepwatch.Lines
        """
        options, statement = self._options(line, "f:m:T:r")
        lines = self._lines(options.get("f", []) + options.get("m", []))
        if lines is None:
            raise UsageError("say which functions: %swlines -f FUNCTION STATEMENT")
        source = self.shell.transform_cell(statement)
        try:
            code = compile(source, "<swlines>", "exec")
        except SyntaxError as error:
            raise UsageError(f"not a statement: {statement!r} ({error.msg})") from None
        try:
            exec(code, self.shell.user_global_ns, self.shell.user_ns)
        finally:
            lines.disable()
            lines.print()
            for path in options.get("T", []):
                lines.save(path)
        return lines if "r" in options else None

    def _watch(self) -> bool:
        """Watch the frameworks as ``stepwatch run`` does; tell whether nobody did so before."""
        before = integrations.is_installed()
        integrations.install()
        return not before

    def _options(self, line: str, short: str, *long: str) -> tuple[dict[str, list[str]], str]:
        found, rest = self.parse_options(line, short, *long, list_all=True, posix=False)
        return dict(found), str(rest)

    def _lines(self, names: list[str]) -> stepwatch.Lines | None:
        """Return a profile of the named functions, or None if there are no names."""
        if not names:
            return None
        lines = stepwatch.Lines()
        for name in names:
            try:
                if ":" in name:
                    lines.add_by_name(name)
                else:
                    lines.add(self.shell.ev(name))
            except Exception as error:  # whatever the expression raises is the user's to see
                raise UsageError(f"{name} is no function to watch: {error}") from error
        return lines

    def _functions(self) -> Any:
        functions = getattr(stepwatch, "functions", None)
        if functions is None:
            raise UsageError("this stepwatch has no function profiler")
        return functions()
