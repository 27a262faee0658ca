"""The server: the tools through the official SDK of the Model Context Protocol, over stdio."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, ParamSpec, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

import archgym
from archgym.assistant.models import RunState
from archgym.assistant.tools import (
    INSTRUCTIONS,
    Fixed,
    Name,
    ObjectiveText,
    SettingValues,
    Simulator,
    Space,
    Tools,
    Workload,
)
from archgym.errors import ArchgymError, UnknownNameError
from archgym.serve.lines import bounded_lines

__all__ = ["make_server", "serve_tools"]

LINE_LIMIT_BYTES: Final = 4 << 20
_TOO_LONG: Final = b'{"too long": true}'
P = ParamSpec("P")
R = TypeVar("R")
_ENDS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class _StrictServer(MCPServer):  # type: ignore[misc]  # the types of the SDK are not followed
    """Refuses arguments that a tool does not have: a misspelt one would have its default."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Calls a tool by name, as the SDK does."""
        for tool in await self.list_tools():
            known = tool.input_schema.get("properties", {})
            unknown = [one for one in arguments if one not in known]
            if tool.name == name and unknown:
                wrong = UnknownNameError(f"argument of {name}", unknown[0][:200], known)
                raise ToolError(str(wrong)[:4000])
        return await super().call_tool(name, arguments, context)


def make_server(tools: Tools) -> MCPServer:
    """A server of the tools."""
    server = _StrictServer(
        "archgym",
        title="archgym: design-space exploration",
        instructions=INSTRUCTIONS,
        version=archgym.__version__,
        log_level="ERROR",
    )
    for tool in tools.simple:
        reads = tool.__name__ not in ("evaluate", "make_report")
        notes = ToolAnnotations(read_only_hint=reads, destructive_hint=False, open_world_hint=False)
        server.add_tool(_told(tool), annotations=notes)

    async def run_experiment(
        context: Context,
        name: Annotated[
            str, Field(max_length=64, description="new name, for best_designs and make_report")
        ],
        environment: Name,
        budget: Annotated[
            int, Field(ge=1, le=1_000_000, description="designs that each search simulates")
        ],
        agents: Annotated[
            list[str | dict[str, Any]],
            Field(
                min_length=1,
                max_length=30,
                description="search algorithms: names of list_agents, or mappings as "
                "{'name': 'ga', 'hyperparameters': {'population_size': 32}}",
            ),
        ] = ["auto"],  # noqa: B006 - the SDK shows the default
        seeds: Annotated[
            int, Field(ge=1, le=100, description="searches by each algorithm; more to compare them")
        ] = 1,
        workload: Workload = None,
        objective: ObjectiveText = None,
        space: Space = None,
        fixed: Fixed = None,
        simulator: Simulator = None,
        settings: SettingValues = None,
    ) -> RunState:
        """Let search algorithms look for good designs, and wait until they are done.

        It costs agents x seeds x budget simulations. The time is limited; call it again with the
        same arguments to go on with a run that was ended. Then use best_designs and make_report.
        """
        stop = threading.Event()

        reported = [-1.0]

        def report(done: float, total: float) -> None:
            if done > reported[0] and not stop.is_set():
                reported[0] = done
                text = f"{done:.0f} of {total:.0f} designs"
                anyio.from_thread.run(context.report_progress, done, total, text)

        def work() -> RunState:
            running = tools.running(
                name,
                environment,
                agents,
                budget,
                seeds,
                workload=workload,
                objective=objective,
                space=space,
                fixed=fixed,
                simulator=simulator,
                settings=settings,
            )
            return running.run(report, stop.is_set)

        try:
            state: RunState = await anyio.to_thread.run_sync(_told(work), abandon_on_cancel=True)
        finally:
            stop.set()
        return state

    server.add_tool(
        run_experiment,
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=False, open_world_hint=False
        ),
    )
    return server


def serve_tools(tools: Tools) -> int:
    """Serves tools on standard input and output until the input ends, or a signal comes.

    Returns:
        The exit code: 0, or 128 and the number of the signal.
    """
    try:
        with _ending_input(tools.stop) as ended_by, _nobody_reads():
            make_server(tools).run("stdio")
    finally:
        tools.close()
    return 128 + ended_by[0] if ended_by else 0


@contextlib.contextmanager
def _nobody_reads() -> Iterator[None]:
    """Ends a block where nobody reads what it writes: its client has died."""
    try:
        yield
    except* BrokenPipeError:
        pass


def _told(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose errors of archgym an assistant is told."""

    @functools.wraps(function)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except ArchgymError as error:
            raise ToolError(str(error)[:4000]) from error
        except OSError as error:
            raise ToolError(f"cannot use a file: {error.strerror or error}") from error

    return told


@contextlib.contextmanager
def _ending_input(stop: Callable[[], None]) -> Iterator[list[int]]:
    """Puts a pipe before standard input, for a block: lines are bounded, and signals end it.

    Gives a list with the signal that ended the input, if one did.

    Args:
        stop: called at a signal.
    """
    source = os.dup(0)
    readable, writable = os.pipe()
    os.dup2(readable, 0)
    os.close(readable)
    lock, ended_by, closed = threading.Lock(), list[int](), threading.Event()

    def close() -> None:
        if not closed.is_set():
            closed.set()
            os.close(writable)

    def pump() -> None:
        with contextlib.suppress(OSError):
            for line in bounded_lines(source, LINE_LIMIT_BYTES):
                data = line if len(line) <= LINE_LIMIT_BYTES else _TOO_LONG
                left = memoryview(data + b"\n")
                while left:
                    left = left[os.write(writable, left) :]
        with lock:
            close()

    def end(number: int, _: Any) -> None:
        ended_by.append(number)
        stop()
        close()

    before = [signal.signal(one, end) for one in _ENDS]
    threading.Thread(target=pump, name="standard input", daemon=True).start()
    try:
        yield ended_by
    finally:
        for one, handler in zip(_ENDS, before, strict=True):
            signal.signal(one, handler)
        with lock:
            close()
