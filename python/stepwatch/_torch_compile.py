"""Keep torch.compile from noticing sections and decorated functions.

Dynamo, the front end of torch.compile, stops at code that is not Python. It is told here what
sections and decorated functions stand for: inside compiled code a section is nothing, and a
decorated function is the function. Marks, counters and steps are nothing there, too. Nothing of
torch is imported; this waits until the program imports it.
"""

from __future__ import annotations

import sys

from stepwatch import _imports
from stepwatch._core import (
    Profiler,
    backward_enter,
    counter,
    data,
    decorated,
    is_recording,
    loss_enter,
    mark,
    optimizer_enter,
    profiler_section,
    section,
    section_enter,
    step,
    step_begin,
    step_end,
    steps,
    stretches,
    work_enter,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def install() -> None:
    """Register with dynamo, now or when it is imported."""
    _imports.watch("torch._dynamo", lambda _: register())


def register() -> None:
    """Tell dynamo; where it cannot be told, say so once and go on."""
    try:
        _register()
    except Exception as error:
        print(
            "stepwatch: this torch.compile cannot be told about sections, which may split its"
            f" graphs ({type(error).__name__}: {error})",
            file=sys.stderr,
        )


def _register() -> None:
    from importlib import import_module

    # All of it is dynamo's own business; versions differ, and the caller is ready for that.
    variables: Any = import_module("torch._dynamo.variables")
    builder: Any = import_module("torch._dynamo.variables.builder")
    attribute: Any = import_module("torch._dynamo.source").AttrSource
    id_match: Any = import_module("torch._dynamo.guards").GuardBuilder.ID_MATCH
    build: Any = variables.base.VariableTracker.build
    none: Any = variables.ConstantVariable.create(None)
    user_function: Any = variables.functions.UserFunctionVariable
    user_method: Any = variables.functions.UserMethodVariable
    lambda_variable: Any = variables.misc.LambdaVariable

    class SectionVariable(variables.ctx_manager.NullContextVariable):  # type: ignore[misc]
        """A section while tracing: it does nothing."""

        def enter(self, _: Any) -> Any:
            return self

        def call_function(self, tx: Any, args: Any, kwargs: Any) -> Any:
            if len(args) == 1 and not kwargs:
                return args[0]
            return super().call_function(tx, args, kwargs)

        def call_method(self, tx: Any, name: str, args: Any, kwargs: Any) -> Any:
            if name == "__enter__":
                return self
            if name == "__exit__":
                return none
            return super().call_method(tx, name, args, kwargs)

        def python_type(self) -> type:
            return section

    class ProfilerVariable(variables.base.VariableTracker):  # type: ignore[misc]
        """A profiler while tracing: its sections do nothing."""

        def call_method(self, tx: Any, name: str, args: Any, kwargs: Any) -> Any:
            if name in ("section", "step"):
                return SectionVariable()
            if name in ("add", "counter", "mark"):
                return none
            if name in ("steps", "data") and args:
                return args[0]
            return super().call_method(tx, name, args, kwargs)

        def python_type(self) -> type:
            return Profiler

    def known_profiler(wrap: Any, _: Any) -> Any:
        wrap.install_guards(id_match)
        return ProfilerVariable(source=wrap.source)

    def known_section(wrap: Any, _: Any) -> Any:
        wrap.install_guards(id_match)
        return SectionVariable(source=wrap.source)

    def known_function(wrap: Any, value: decorated) -> Any:
        wrap.install_guards(id_match)
        source = attribute(wrap.source, "__stepwatch_function__")
        return build(wrap.tx, value.__stepwatch_function__, source)

    def section_type(wrap: Any, _: Any) -> Any:
        wrap.install_guards(id_match)
        return lambda_variable(lambda *_, **__: SectionVariable(), source=wrap.source)

    def loop_type(wrap: Any, _: Any) -> Any:
        wrap.install_guards(id_match)
        return lambda_variable(lambda iterable, *_, **__: iterable, source=wrap.source)

    def stretches_type(wrap: Any, _: Any) -> Any:
        wrap.install_guards(id_match)
        return lambda_variable(lambda _, inner: inner, source=wrap.source)

    def answers(result: Any) -> Any:
        def known(wrap: Any, _: Any) -> Any:
            wrap.install_guards(id_match)
            return lambda_variable(lambda *_, **__: result(), source=wrap.source)

        return known

    # There is a table of types for either value of one setting.
    for trace_numpy in (True, False):
        types = builder.VariableBuilder._type_dispatch_impl(trace_numpy)
        types[section] = types[profiler_section] = known_section
        types[Profiler] = known_profiler
        types[decorated] = known_function
    objects = builder.VariableBuilder._id_dispatch()
    objects[id(section)] = section_type
    objects[id(stretches)] = stretches_type
    objects[id(steps)] = objects[id(data)] = loop_type
    objects[id(step)] = answers(SectionVariable)
    # What stands in for torch's functions asks these first; None means that there is nothing to do.
    enters = (backward_enter, loss_enter, optimizer_enter, section_enter, work_enter)
    for function in (counter, mark, step_begin, step_end, *enters):
        objects[id(function)] = answers(lambda: none)
    objects[id(is_recording)] = answers(lambda: variables.ConstantVariable.create(False))
    handlers = builder.SourcelessBuilder._type_handlers
    handlers[section] = handlers[profiler_section] = lambda *_: SectionVariable()
    handlers[decorated] = lambda tx, value: build(tx, value.__stepwatch_function__)

    # Methods do not pass through those tables. What dynamo looks at later, the defaults among it,
    # it has to find at the function, too.
    def inner_source(source: Any, layers: int) -> Any:
        for _ in range(layers if source is not None else 0):
            source = attribute(source, "__stepwatch_function__")
        return source

    initialize = user_function.__init__
    initialize_bound = user_method.__init__

    def initialize_inner(self: Any, fn: Any, *args: Any, **kwargs: Any) -> None:
        fn, layers = _function_inside(fn)
        # Of a bound method the source is that of the method.
        if layers and not isinstance(self, user_method) and "source" in kwargs:
            kwargs["source"] = inner_source(kwargs["source"], layers)
        initialize(self, fn, *args, **kwargs)

    def initialize_inner_bound(self: Any, fn: Any, *args: Any, **kwargs: Any) -> None:
        fn, layers = _function_inside(fn)
        initialize_bound(self, fn, *args, **kwargs)
        if layers:
            self.source_fn = inner_source(self.source_fn, layers)

    user_function.__init__ = initialize_inner
    user_method.__init__ = initialize_inner_bound


def _function_inside(function: Any) -> tuple[Any, int]:
    """Return the function that is decorated, and how many times it is."""
    layers = 0
    while type(function) is decorated:
        function = function.__stepwatch_function__
        layers += 1
    return function, layers
