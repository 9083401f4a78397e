"""Keep torch.compile from noticing sections and decorated functions.

Dynamo, the front end of torch.compile, stops at code that is not Python. It is told here what sections and decorated
functions stand for: inside compiled code a section is nothing, and a decorated function is the function. Nothing of torch is
imported; what is to be done is done when the program imports it.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from stepwatch._core import decorated, section, stretches

_PACKAGE = "torch._dynamo"


class _Finder:
    """Sees torch._dynamo being imported, and then registers."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        if name != _PACKAGE:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                register()

            # On the instance: the class is Python's own.
            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Register with dynamo, now or when it is imported."""
    if _PACKAGE in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _Finder())


def register() -> None:
    """Tell dynamo; where it cannot be told, say so once and go on."""
    try:
        _register()
    except Exception as error:
        print(
            "stepwatch: this version of torch.compile cannot be told about sections; inside"
            f" compiled functions they may split graphs ({type(error).__name__}: {error})",
            file=sys.stderr,
        )


def _register() -> None:
    from torch._dynamo.source import AttrSource
    from torch._dynamo.guards import GuardBuilder
    from torch._dynamo.variables.base import VariableTracker
    from torch._dynamo.variables.builder import SourcelessBuilder, VariableBuilder
    from torch._dynamo.variables.constant import ConstantVariable
    from torch._dynamo.variables.ctx_manager import NullContextVariable
    from torch._dynamo.variables.functions import UserFunctionVariable
    from torch._dynamo.variables.misc import LambdaVariable

    class SectionVariable(NullContextVariable):
        """A section while tracing: it does nothing."""

        def enter(self, tx: Any) -> Any:  # noqa: ARG002
            return self

        def call_function(self, tx: Any, args: Any, kwargs: Any) -> Any:
            if len(args) == 1 and not kwargs:
                return args[0]
            return super().call_function(tx, args, kwargs)

        def call_method(self, tx: Any, name: str, args: Any, kwargs: Any) -> Any:
            if name == "__enter__":
                return self
            if name == "__exit__":
                return ConstantVariable.create(None)
            return super().call_method(tx, name, args, kwargs)

        def python_type(self) -> type:
            return section

    def known_section(builder: Any, value: Any) -> Any:
        builder.install_guards(GuardBuilder.ID_MATCH)
        return SectionVariable(source=builder.source)

    def known_function(builder: Any, value: Any) -> Any:
        builder.install_guards(GuardBuilder.ID_MATCH)
        source = AttrSource(builder.source, "__stepwatch_function__")
        return VariableTracker.build(builder.tx, value.__stepwatch_function__, source)

    class SectionTypeVariable(LambdaVariable):
        """stepwatch.section itself while tracing."""

        def call_method(self, tx: Any, name: str, args: Any, kwargs: Any) -> Any:
            if name in ("__enter__", "__exit__") and args:
                return args[0].call_method(tx, name, args[1:], kwargs)
            return super().call_method(tx, name, args, kwargs)

    def section_type(builder: Any, value: Any) -> Any:
        builder.install_guards(GuardBuilder.ID_MATCH)
        return SectionTypeVariable(lambda *_, **__: SectionVariable(), source=builder.source)

    def stretches_type(builder: Any, value: Any) -> Any:
        builder.install_guards(GuardBuilder.ID_MATCH)
        return LambdaVariable(lambda _, inner: inner, source=builder.source)

    # Both tables are kept by dynamo and depend on one setting.
    for trace_numpy in (True, False):
        table = VariableBuilder._type_dispatch_impl(trace_numpy)
        table[section] = known_section
        table[decorated] = known_function
    table = VariableBuilder._id_dispatch()
    table[id(section)] = section_type
    table[id(stretches)] = stretches_type
    handlers = SourcelessBuilder._type_handlers
    handlers[section] = lambda tx, value: SectionVariable()
    handlers[decorated] = lambda tx, value: VariableTracker.build(
        tx, value.__stepwatch_function__
    )

    # Methods do not pass through those tables.
    initialize = UserFunctionVariable.__init__

    def initialize_inner(self: Any, fn: Any, *args: Any, **kwargs: Any) -> None:
        while type(fn) is decorated:
            fn = fn.__stepwatch_function__
        initialize(self, fn, *args, **kwargs)

    UserFunctionVariable.__init__ = initialize_inner
