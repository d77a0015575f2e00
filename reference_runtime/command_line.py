"""The command line: reads what the caller wants, puts the parts together, runs them and says how it ended.

Exit codes: 0 completed; 1 another terminal reason, or no session with that id; 2 the call itself is wrong; 130 ended
by SIGINT; 143 ended by SIGTERM. It decides nothing about recovery.
"""

import argparse
import asyncio
import os
import random
import sys
import traceback
import uuid
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from reference_runtime import VERSION
from reference_runtime.clock import Clock
from reference_runtime.counters import Counters
from reference_runtime.frames import Frame, FrameWriter, OutputFormat, system_frame
from reference_runtime.hooks import HookRunner
from reference_runtime.loop import AgentLoop, RunLimits, discard_messages
from reference_runtime.permissions import PermissionMode, Permissions
from reference_runtime.recovery.table import ImpossibleFactsError
from reference_runtime.recovery.terminals import Terminal
from reference_runtime.report import RunOutcome, Usage
from reference_runtime.requests import ModelChain, RequestLimits, RequestRunner
from reference_runtime.session import Session, UnknownSessionError, new_id, transcript_path
from reference_runtime.settings import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_MODEL,
    DEFAULT_REPLY_TIMEOUT_SECONDS,
    Environment,
    McpServer,
    Settings,
    UsageError,
    read_environment,
    read_mcp_servers,
    read_settings,
)
from reference_runtime.signals import SignalAbort
from reference_runtime.tool_runner import ToolRunner
from reference_runtime.tools.files import EditTool, KnownVersions, ReadTool, WriteTool
from reference_runtime.tools.servers import ServerConnection
from reference_runtime.tools.shell import BashTool
from reference_runtime.tools.tool import Tool
from reference_runtime.transcript import JournalError, NewerFormatError

_EPILOG = """\
environment:
  CRASHCART_BASE_URL                      the provider's address (needed)
  CRASHCART_API_KEY                       sent as x-api-key
  CRASHCART_HOME                          where sessions are kept (default $HOME/.crashcart-runtime)
  CRASHCART_TIME_SCALE                    every wait is divided by it (default 1); limits on tools and hooks only
                                          down to 10 s, since real work does not become faster
  CRASHCART_STREAM_IDLE_TIMEOUT_SECONDS   a stream without an event for so long is given up (default 90)
  CRASHCART_DISABLE_STREAM_FALLBACK=1     never ask again without streaming
  CRASHCART_STOP_HOOK_BLOCK_CAP           how often Stop hooks may send the model back (default 8)
  CRASHCART_MAX_RETRIES                   attempts beyond the first (default 5); --max-retries wins

exit codes:
  0 completed   1 another terminal reason, or no session with that id   2 usage   130 SIGINT   143 SIGTERM
"""


@dataclass(frozen=True)
class Options:
    """Everything that the caller asked for."""

    prompt: str
    output_format: OutputFormat
    show_partial: bool
    model: str | None
    fallback_models: tuple[str, ...]
    max_turns: int | None
    max_tokens: int
    max_retries: int
    session_id: str
    resume: bool
    permissions: Permissions
    settings: Settings
    servers: tuple[McpServer, ...]
    environment: Environment
    working_folder: Path


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def _at_least(least: int) -> Any:
    def whole_number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r}; allowed is a whole number of at least {least}")
        return int(text)

    return whole_number


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _session_id(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}; allowed is a UUID") from None


def parser() -> argparse.ArgumentParser:
    """The command line's own description."""
    made = _Parser(
        prog="python -m reference_runtime",
        description="An agent that keeps the recovery contract: runs one prompt to its end.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("-p", "--print", dest="prompt", metavar="PROMPT", required=True, help="the prompt to run")
    made.add_argument("--output-format", choices=[str(f) for f in OutputFormat], default=str(OutputFormat.TEXT))
    made.add_argument("--model", help=f"default: the resumed session's, else {DEFAULT_MODEL}")
    made.add_argument("--fallback-model", type=_names, default=(), metavar="A,B", help="models that may take over")
    made.add_argument("--max-turns", type=_at_least(1), metavar="N")
    made.add_argument("--max-retries", type=_at_least(0), metavar="N", help="attempts beyond the first")
    made.add_argument("--max-tokens", type=_at_least(1), default=DEFAULT_MAX_TOKENS, metavar="N")
    made.add_argument("--session-id", type=_session_id, metavar="UUID", help="the id of the new session")
    made.add_argument("--resume", metavar="UUID", help="go on with this session")
    made.add_argument("--settings", metavar="FILE|JSON")
    made.add_argument("--mcp-config", metavar="FILE")
    made.add_argument("--allowed-tools", type=_names, default=(), metavar="T1,T2", help="tools that need no question")
    made.add_argument(
        "--include-partial-messages", action="store_true", help="show text and thinking while they stream (stream-json)"
    )
    made.add_argument("--permission-mode", choices=[str(m) for m in PermissionMode], default=str(PermissionMode.ASK))
    made.add_argument("--version", action="version", version=VERSION)
    return made


def read_options(arguments: Sequence[str]) -> Options:
    """Read arguments, environment and files.

    Raises:
        UsageError: Something is missing, unknown or contradicts something else.
        UnknownSessionError: The id to resume is no id at all.
    """
    given = parser().parse_args(arguments)
    if given.resume is not None and given.session_id is not None:
        raise UsageError("--session-id names a new session and --resume an old one; give one of them")
    environment = read_environment(os.environ)
    if given.session_id is not None and transcript_path(environment.home, given.session_id).exists():
        raise UsageError(f"session {given.session_id} exists; go on with it by --resume, or give a new --session-id")
    return Options(
        prompt=given.prompt,
        output_format=OutputFormat(given.output_format),
        show_partial=given.include_partial_messages,
        model=given.model,
        fallback_models=given.fallback_model,
        max_turns=given.max_turns,
        max_tokens=given.max_tokens,
        max_retries=environment.max_retries if given.max_retries is None else given.max_retries,
        session_id=_resumed_id(given.resume) if given.resume is not None else given.session_id or str(uuid.uuid4()),
        resume=given.resume is not None,
        permissions=Permissions(PermissionMode(given.permission_mode), given.allowed_tools),
        settings=read_settings(given.settings),
        servers=read_mcp_servers(given.mcp_config),
        environment=environment,
        working_folder=Path.cwd(),
    )


def _resumed_id(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise UnknownSessionError(text) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    try:
        options = read_options(sys.argv[1:] if arguments is None else arguments)
        if options.resume and not transcript_path(options.environment.home, options.session_id).exists():
            raise UnknownSessionError(options.session_id)
    except UsageError as error:
        print(f"reference_runtime: {error}", file=sys.stderr)
        return 2
    except UnknownSessionError as error:
        print(f"No conversation found with session ID: {error}", file=sys.stderr)
        return 1
    return asyncio.run(_run(options))


async def _run(options: Options) -> int:
    sink = FrameWriter(options.output_format)
    clock = Clock(options.environment.time_scale)
    usage = Usage(options.settings.prices)
    try:
        session = _open_session(options, clock)
    except UnknownSessionError:
        print(f"No conversation found with session ID: {options.session_id}", file=sys.stderr)
        return 1
    except (JournalError, NewerFormatError, ImpossibleFactsError) as error:
        outcome = RunOutcome(Terminal.RECOVERY_REQUIRED, options.session_id, usage, errors=(str(error),))
        sink.emit(outcome.frame())
    else:
        outcome = await _run_session(options, session, sink, clock, usage)
    for text in outcome.errors:
        print(f"reference_runtime: {text}", file=sys.stderr)
    return outcome.ending.exit_code


def _open_session(options: Options, clock: Clock) -> Session:
    home = options.environment.home
    if options.resume:
        return Session.resume(home, options.session_id, clock)
    cwd = str(options.working_folder)
    return Session.begin(home, options.session_id, clock, model=options.model or DEFAULT_MODEL, cwd=cwd)


async def _run_session(options: Options, session: Session, sink: FrameWriter, clock: Clock, usage: Usage) -> RunOutcome:
    abort = SignalAbort()
    async with AsyncExitStack() as stack:
        stack.callback(session.close)
        task = asyncio.create_task(_agent(options, session, sink, clock, usage, abort, stack))
        await abort.run(task)
        if task.cancelled():
            # The signal came while the parts were still being put together: nothing was asked and nothing ran.
            outcome = RunOutcome(Terminal.ABORTED_STREAMING, session.session_id, usage, signal=abort.signal)
        elif (error := task.exception()) is not None:
            # A defect of this program. The run still ends with its result, and a person has to look at it.
            traceback.print_exception(error)
            told = f"internal error: {type(error).__name__}: {error}"
            outcome = RunOutcome(Terminal.RECOVERY_REQUIRED, session.session_id, usage, errors=(told,))
        else:
            outcome = task.result()
        # The last word goes out before anything is closed, so that a server that hangs cannot withhold it.
        sink.emit(outcome.frame())
    return outcome


async def _agent(
    options: Options,
    session: Session,
    sink: FrameWriter,
    clock: Clock,
    usage: Usage,
    abort: SignalAbort,
    stack: AsyncExitStack,
) -> RunOutcome:
    # Imported here because httpx takes a quarter of a second, and a wrong call or an unknown session needs none.
    from reference_runtime.transport import CONNECT_TIMEOUT_SECONDS, HttpTransport

    environment, cwd = options.environment, str(options.working_folder)
    counters = Counters()
    chain = ModelChain((options.model or session.model or DEFAULT_MODEL, *options.fallback_models))
    tools, servers = await _connect_tools(options, clock, stack)
    sink.emit(_init_frame(options, session, chain.current, tools, servers))
    for server in servers:
        if server.lost_because is not None:
            sink.emit(system_frame("warning", message=f"MCP server {server.name}: {server.lost_because}"))
    hooks = HookRunner(
        options.settings.hooks,
        clock,
        sink,
        {"session_id": session.session_id, "transcript_path": str(session.path), "cwd": cwd},
    )
    connect_seconds = clock.limit_for_work(CONNECT_TIMEOUT_SECONDS)
    transport = HttpTransport(environment.base_url, environment.api_key, connect_seconds)
    stack.push_async_callback(transport.close)
    runner = RequestRunner(
        transport,
        RequestLimits(
            max_retries=options.max_retries,
            stream_idle_timeout_seconds=environment.stream_idle_timeout_seconds,
            reply_timeout_seconds=DEFAULT_REPLY_TIMEOUT_SECONDS,
            stream_fallback_allowed=environment.stream_fallback_allowed,
            show_partial=options.show_partial,
        ),
        clock,
        random.Random(),  # noqa: S311 - jitter is no secret
        sink,
        counters,
        lambda reason: discard_messages(session, sink, reason, (new_id(),)),
    )
    agent = AgentLoop(
        session,
        runner,
        chain,
        ToolRunner(tools, session.ledger, hooks, options.permissions, session.append, sink),
        [tool.spec for tool in tools],
        hooks,
        sink,
        counters,
        usage,
        RunLimits(
            max_turns=options.max_turns,
            max_tokens=options.max_tokens,
            stop_hook_block_cap=environment.stop_hook_block_cap,
            malformed_tool_use_clean_retry=options.settings.malformed_tool_use_clean_retry,
        ),
        cwd,
        lambda: abort.signal,
    )
    return await agent.run(options.prompt)


async def _connect_tools(
    options: Options, clock: Clock, stack: AsyncExitStack
) -> tuple[list[Tool], list[ServerConnection]]:
    folder, versions = options.working_folder, KnownVersions()
    tools: list[Tool] = [
        ReadTool(folder, versions),
        WriteTool(folder, versions),
        EditTool(folder, versions),
        BashTool(folder, clock),
    ]
    servers = [ServerConnection(server, clock, folder) for server in options.servers]
    for server in servers:
        stack.push_async_callback(server.close)
    await asyncio.gather(*(server.connect() for server in servers))
    for server in servers:
        tools += server.tools(options.settings.tool_timeout_seconds)
    return tools, servers


def _init_frame(
    options: Options, session: Session, model: str, tools: Sequence[Tool], servers: Sequence[ServerConnection]
) -> Frame:
    return system_frame(
        "init",
        session_id=session.session_id,
        model=model,
        cwd=str(options.working_folder),
        tools=[tool.spec.name for tool in tools],
        mcp_servers=[
            {"name": server.name, "status": "failed" if server.lost_because else "connected"} for server in servers
        ],
        version=VERSION,
    )
