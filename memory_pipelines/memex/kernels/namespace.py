"""What the code of one agent sees: its variables, its tools, `submit`, and types to build values with.

Part of the worker: standard library only.
"""

import asyncio
import builtins
import inspect
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from functools import partial
from types import CodeType, TracebackType
from typing import Any, NoReturn, Protocol

from memory_pipelines.memex.kernels.capture import Output
from memory_pipelines.memex.kernels.leaving import CannotLeaveError, to_json
from memory_pipelines.memex.kernels.objects import Schema, Types
from memory_pipelines.memex.kernels.spawning import asked

SPAWN = "spawn_agent"
"""What code starts subagents by, where it may."""
OWN_NAMES = ("submit", SPAWN, "print", "input", "help", "exit", "quit", "ToolError")


class ToolError(Exception):
    """A tool was called wrongly or failed; the message is the host's."""


class SubmitError(ValueError):
    """The value does not fit; it was not submitted."""


class SubmittedSignal(BaseException):
    """Ends a block after `submit`. Not an Exception, so that `except Exception` does not swallow it."""


class Block:
    """One block under way."""

    def __init__(self, run: int, namespace: "Namespace", output: Output, deadline: float) -> None:
        """Start.

        Args:
            run: the host's number of it.
            namespace: where it runs.
            output: takes what it prints.
            deadline: by the clock of the event loop; moves on while the block only waits for tools.
        """
        self.run = run
        self.namespace = namespace
        self.output = output
        self.deadline = deadline
        self.waiting = 0  # tool calls under way
        self.computed = 0.0  # seconds of its own steps
        self.excused = 0.0  # seconds of the steps of other blocks that its deadline was moved by
        self.done = False
        self.stopped: str | None = None  # why it was cancelled
        self.submitted: list[Any] = []  # the last value given to submit, in JSON form
        self.task: asyncio.Task[None] | None = None

    def write(self, text: str) -> None:
        """Take printed text; what a task left behind prints after the end is shown with the next block."""
        (self.namespace.late if self.done else self.output).write(text)


class Pending(Coroutine[Any, None, Any]):
    """The result of a tool call that has started; behaves as the coroutine of an async function.

    Code that forgot to await it is told so wherever it looks at the result.
    """

    def __init__(self, future: asyncio.Future[Any], name: str) -> None:
        """Keep the future and the tool's name."""
        self._future = future
        self._name = name
        self._steps: Generator[Any, None, Any] | None = None

    def __await__(self) -> Generator[Any, None, Any]:
        return self._future.__await__()

    def send(self, value: None, /) -> Any:
        """Go on as a coroutine does; lets `asyncio.create_task` take it."""
        if self._steps is None:
            self._steps = self._future.__await__()
        return self._steps.send(value)

    def throw(self, kind: Any, value: Any = None, trace: TracebackType | None = None, /) -> Any:
        """Raise inside, as a coroutine does."""
        if self._steps is None:
            self._steps = self._future.__await__()
        error: BaseException = value or (kind() if isinstance(kind, type) else kind)
        return self._steps.throw(error.with_traceback(trace) if trace else error)

    def close(self) -> None:
        """Nothing to do: the call goes on in the host."""

    def __repr__(self) -> str:
        return f"<{self._name}(...) was not awaited: write `await {self._name}(...)`>"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self._name}(...) was not awaited: write `(await {self._name}(...)).{name}`")

    def _refuse(self, *_: Any) -> NoReturn:
        raise TypeError(f"{self._name}(...) was not awaited: write `await {self._name}(...)`")

    __iter__ = __aiter__ = __getitem__ = __setitem__ = __len__ = __bool__ = __contains__ = __call__ = _refuse
    __enter__ = __aenter__ = __exit__ = __aexit__ = __int__ = __float__ = __index__ = __neg__ = __abs__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __or__ = __and__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse

    # Equal to nothing would be an answer too, and a wrong one. Loops find it in sets by its identity.
    __eq__ = __ne__ = _refuse  # pyright: ignore[reportAssignmentType]
    __hash__ = object.__hash__


class Way(Protocol):
    """Takes calls home."""

    def call(
        self,
        namespace: str,
        tool: str,
        arguments: dict[str, Any],
        rebuild: Callable[[Any], Any],
        parcel: Mapping[str, Any] | None = None,
    ) -> Pending:
        """Send a call; see `Home.call`."""
        ...


class Desk(Protocol):
    """What a namespace needs of its worker."""

    @property
    def home(self) -> Way:
        """The way home for calls."""
        ...

    def write(self, text: str) -> None:
        """Take printed text for the block that is running."""
        ...

    def submit(self, value: Any) -> None:
        """Note the value that ends the block that is running.

        Raises:
            CannotLeaveError: too large.
        """
        ...


class Namespace:
    """Variables of one agent, and the names that the kernel gives it."""

    def __init__(self, name: str, desk: Desk, output_chars: int) -> None:
        """Make an empty namespace.

        Args:
            name: as the host calls it.
            desk: the worker.
            output_chars: of what tasks print after their block.
        """
        self.name = name
        self.types = Types()
        self.late = Output(output_chars)
        self.result: Schema | None = None
        self._desk = desk
        self._own: dict[str, Any] = {
            "submit": self._submit,
            "print": self._print,
            "input": _input,
            "help": self._help,
            "exit": _exit,
            "quit": _exit,
            "ToolError": ToolError,
        }
        # Each namespace has builtins of its own: what code does to them ends with its block, and its names stay free
        # of ours. The dict stays the same one, because functions defined in a block keep a reference to it.
        self._builtins: dict[str, Any] = {**vars(builtins), **self._own}
        self._pristine = dict(self._builtins)
        self.variables: dict[str, Any] = {"__name__": "__main__", "__builtins__": self._builtins}

    def expose(self, tools: Sequence[dict[str, Any]], result: Schema | None, *, spawn: bool) -> None:
        """Replace the tools and the schema of what `submit` takes.

        Args:
            tools: name, doc, names of parameters and schema of the result.
            result: pointing to `types`.
            spawn: whether the code may start subagents.
        """
        for name in [name for name in self._own if name not in OWN_NAMES or name == SPAWN]:
            del self._own[name], self._pristine[name]
        if spawn:
            self._own[SPAWN] = self._spawn_agent
        for tool in tools:
            self._own[tool["name"]] = self._tool(tool["name"], tool["doc"], tool["parameters"], tool["returns"])
        self.result = result
        self._pristine.update(self._own)
        self.restore()

    def restore(self) -> list[str]:
        """Put everything right that a block may have broken.

        Returns:
            Names of the kernel that the code had taken for variables of its own; they are the kernel's again.
        """
        variables = self.variables
        taken = [name for name in self._own if name in variables]
        for name in taken:
            del variables[name]
        self._builtins.clear()
        self._builtins.update(self._pristine)
        variables["__builtins__"] = self._builtins
        return taken

    def prepare(self, codes: Sequence[CodeType]) -> None:
        """Build the types that this code names, so that it can make values of them.

        Args:
            codes: compiled, not yet run.
        """
        for name in {name for code in codes for name in _names(code)}:
            if name in self.types and name not in self._pristine:
                self._builtins[name] = self._pristine[name] = self.types[name]

    def _tool(self, name: str, doc: str, parameters: dict[str, str], returns: Schema | None) -> Callable[..., Pending]:
        order = list(parameters)

        def tool(*args: Any, **given: Any) -> Pending:
            if len(args) > len(order):
                raise TypeError(f"{name}() takes {len(order)} arguments, got {len(args)}")
            for parameter, value in zip(order, args, strict=False):
                if parameter in given:
                    raise TypeError(f"{name}() got {parameter} twice")
                given[parameter] = value
            values = {parameters.get(parameter, parameter): value for parameter, value in given.items()}
            return self._desk.home.call(self.name, name, to_json(values), partial(self.types.rebuild, returns))

        tool.__name__ = tool.__qualname__ = name
        tool.__doc__ = doc
        return tool

    def _spawn_agent(self, task: str, *, scope: Mapping[str, Any] | None = None, result: Any = None) -> Pending:
        """Start a subagent on a part of the work; await what this returns to get the value that it submits.

        Args:
            task: all that it needs to know, in words.
            scope: objects that it shall see as variables, by name; they are these very objects, not copies.
            result: the type of its value: a builtin such as `list[str]`, a dataclass or a model; None for any.
        """
        arguments, objects, rebuild = asked(task, scope, result, taken=lambda name: name in self._own)
        return self._desk.home.call(self.name, SPAWN, arguments, rebuild, objects)

    def _submit(self, *value: Any, **fields: Any) -> NoReturn:
        """Give the result and end the work."""
        if len(value) > 1 or (value and fields):
            raise SubmitError("submit takes one value, or its fields by name")
        try:
            plain = to_json(value[0] if value else fields or None)
            complaints = "" if self.result is None else self.types.complaints(self.result, plain)
            if not complaints:
                self._desk.submit(plain)
                raise SubmittedSignal
        except CannotLeaveError as error:
            raise SubmitError(f"nothing was submitted\n{error}") from None
        raise SubmitError(f"nothing was submitted, the value does not fit\n{complaints}")

    def _print(self, *values: Any, file: Any = None, **how: Any) -> None:
        """Show values in the observation."""
        print(*values, file=self if file is None else file, **how)

    def write(self, text: str) -> None:
        """Take printed text, as a file does."""
        self._desk.write(text)

    def flush(self) -> None:
        """Nothing to do, as in a file that is not buffered."""

    def _help(self, thing: Any = None) -> None:
        """Show how a tool is called; without an argument, which tools there are."""
        tools = {name: tool for name, tool in self._own.items() if name not in OWN_NAMES or name == SPAWN}
        if thing is None:
            text = "\n".join(tools) or "no tools"
        else:
            named = tools.get(thing, thing) if isinstance(thing, str) else thing
            text = (inspect.getdoc(named) if named is not thing or callable(thing) else None) or repr(thing)
        self._desk.write(f"{text}\n")


def _input(prompt: object = "") -> NoReturn:
    raise EOFError(f"nobody can answer {str(prompt)!r}")


def _exit(code: object = None) -> NoReturn:
    raise SystemExit(code)


def _names(code: CodeType) -> set[str]:
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*(_names(one) for one in inner))
