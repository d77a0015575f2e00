"""A small agent for tests of the driver: ``python -I -S fake_agent.py BEHAVIOUR START``, standard library only.

Each behaviour is a few lines that do one thing well or one thing wrong, and nothing else. START is a JSON object that
the adapter of the tests writes. On SIGTERM it does what ``on_term`` says.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

START: dict[str, Any] = json.loads(sys.argv[2])
HEADERS = {"content-type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": "none"}


def ask(messages: Any, *, stream: bool = False) -> tuple[int, list[dict[str, Any]]]:
    """Send one request; return the status and the reply's blocks, none for a stream or an error."""
    connection = http.client.HTTPConnection(START["provider"])
    body = {"model": START["model"], "max_tokens": 99, "messages": messages, "stream": stream}
    connection.request("POST", "/v1/messages", json.dumps(body), HEADERS)
    response = connection.getresponse()
    data = response.read()
    return response.status, json.loads(data)["content"] if response.status == 200 and not stream else []


def transcript() -> Path:
    """Return where the session is kept."""
    return Path(os.environ["HOME"]) / f"{START['session']}.json"


def remembered() -> list[dict[str, Any]]:
    """Return the conversation so far, with the prompt."""
    earlier = json.loads(transcript().read_text()) if START["resume"] and transcript().exists() else []
    return [*earlier, {"role": "user", "content": START["text"]}]


def finish(messages: list[dict[str, Any]], status: int) -> None:
    """Keep the conversation, print the result frame, exit."""
    transcript().write_text(json.dumps(messages))
    frame = {"type": "result", "session_id": START["session"], "num_turns": 1, "terminal_reason": "completed"}
    print(json.dumps({**frame, "result": messages[-1]["content"][0]["text"] if status == 200 else "error"}), flush=True)
    sys.exit(0 if status == 200 else 1)


def talks(*, stream: bool = False) -> None:
    """Ask once."""
    messages = remembered()
    status, blocks = ask(messages, stream=stream)
    answer = blocks or [{"type": "text", "text": "streamed"}]
    finish([*messages, {"role": "assistant", "content": answer}], status)


def asks_twice() -> None:
    """Ask once more than the script has answers."""
    ask(remembered())
    talks()


def invalid() -> None:
    """Send what no provider takes."""
    sys.exit(0 if ask("hello")[0] == 200 else 1)


def silent() -> None:
    """Start, and neither ask nor end; the prompt may name a FIFO that wants to know."""
    print("thinking", flush=True)
    if START["text"].startswith("/"):
        Path(START["text"]).write_text(str(os.getpid()))
    while True:
        signal.pause()


def leaves_child() -> None:
    """End, and leave a daemon."""
    if os.fork() == 0:
        os.setsid()
        os.closerange(0, 3)
        silent_child()
    talks()


def works_on_after_exit() -> None:
    """Exit at once with 0, and let a child do the work behind the caller's back."""
    parent = os.getpid()
    if os.fork() != 0:
        os._exit(0)
    while alive(parent):
        os.sched_yield()
    # One exchange with the harness' own event loop, behind the news of the exit: what follows is later for certain.
    connection = http.client.HTTPConnection(START["provider"])
    connection.request("HEAD", "/api/hello")
    connection.getresponse().read()
    talks()


def alive(pid: int) -> bool:
    """Whether a process is there, ended and not yet taken note of included."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def silent_child() -> None:
    """Stay."""
    while True:
        signal.pause()


def calls() -> None:
    """Do what the model asks for with a tool of the effect server, by MCP over stdio, and tell the model."""
    messages = remembered()
    status, blocks = ask(messages)
    call = next((block for block in blocks if block["type"] == "tool_use"), None)
    messages.append({"role": "assistant", "content": blocks})
    transcript().write_text(json.dumps(messages[:-1]))
    if call is None:
        finish(messages, status)
        return
    with subprocess.Popen(START["effect_server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fake", "version": "1"}}
        speak(server, {"id": 0, "method": "initialize", "params": client})
        speak(server, {"method": "notifications/initialized"})
        name = call["name"].removeprefix("fx_")
        said = speak(server, {"id": 1, "method": "tools/call", "params": {"name": name, "arguments": call["input"]}})
        server.communicate()
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": said["content"], "is_error": said["isError"]}
    messages.append({"role": "user", "content": [result]})
    status, blocks = ask(messages)
    finish([*messages, {"role": "assistant", "content": blocks}], status)


def speak(server: subprocess.Popen[str], message: dict[str, Any]) -> dict[str, Any]:
    """Send one JSON-RPC message; return the result of a request."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    server.stdin.flush()
    return dict(json.loads(server.stdout.readline())["result"]) if "id" in message else {}


def erases() -> None:
    """Do as asked, and wipe the record of it."""
    configuration = json.loads(Path(START["effect_server"][-1]).read_text())
    try:
        calls()
    finally:
        Path(configuration["ledger"]).write_bytes(b"")


def hooked() -> None:
    """Ask; before ending, ask the Stop hook, and go on as often as it blocks."""
    messages = remembered()
    while True:
        status, blocks = ask(messages)
        messages.append({"role": "assistant", "content": blocks})
        question = json.dumps({"hook_event_name": "Stop", "stop_hook_active": len(messages) > 2})
        said = subprocess.run(
            START["hooks"]["stop"], shell=True, input=question, capture_output=True, text=True, check=True
        ).stdout
        if not said:
            finish(messages, status)
        messages.append({"role": "user", "content": json.loads(said)["reason"]})


def misleads() -> None:
    """Print what looks like results and is none, then talk."""
    print('{"type": "result", "num_turns": "many", "counters": {"a": "b"}, "result": "\\ud83d"}')
    print('{"type": "result"', flush=True)
    talks()


BEHAVIOURS: dict[str, Callable[[], None]] = {
    "talks": talks,
    "streams": lambda: talks(stream=True),
    "asks_twice": asks_twice,
    "invalid": invalid,
    "silent": silent,
    "leaves_child": leaves_child,
    "works_on_after_exit": works_on_after_exit,
    "calls": calls,
    "erases": erases,
    "hooked": hooked,
    "misleads": misleads,
    "quits": lambda: None,
}


def trap(_number: int, _frame: FrameType | None) -> None:
    """End as a program does that cleans up on SIGTERM."""
    os._exit(143)


ON_TERM: dict[str, signal.Handlers | Callable[[int, FrameType | None], None]] = {
    "dies": signal.SIG_DFL,
    "traps": trap,
    "ignores": signal.SIG_IGN,
}

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, ON_TERM[START["on_term"]])
    BEHAVIOURS[sys.argv[1]]()
