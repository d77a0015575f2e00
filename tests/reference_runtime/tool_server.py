"""A small MCP server over standard input and output for the tests, whose end and silence can be ordered exactly.

Run as `python tool_server.py EFFECTS MODE`. Every effect is one line in the file EFFECTS. It imports only the standard
library, so that it starts quickly.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

TOOLS = [
    {
        "name": "deploy",
        "description": "Deploy a release.",
        "inputSchema": {
            "type": "object",
            "properties": {"release": {"type": "string"}},
            "required": ["release"],
        },
    },
    {
        "name": "status",
        "description": "Look at what is deployed.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    },
]


def answer_call(effects: Path, mode: str, parameters: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a tools/call, or None when there is to be no answer."""
    if parameters["name"] == "status":
        return {"content": [{"type": "text", "text": effects.read_text() if effects.exists() else "nothing"}]}
    if mode == "refuse":
        return {"content": [{"type": "text", "text": "no such release"}], "isError": True}
    with effects.open("a") as stream:
        stream.write(json.dumps(parameters) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    print("the effect is on disk", file=sys.stderr, flush=True)
    if mode == "exit":
        os._exit(3)
    return None if mode == "hang" else {"content": [{"type": "text", "text": "deployed"}]}


def main() -> None:
    """Answer requests until the input ends."""
    effects, mode = Path(sys.argv[1]), sys.argv[2]
    for line in sys.stdin:
        request = json.loads(line)
        result: dict[str, Any] | None = {}
        match request.get("method"):
            case "initialize":
                result = {
                    "protocolVersion": request["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "effects", "version": "1"},
                }
            case "tools/list":
                result = {"tools": TOOLS}
            case "tools/call":
                result = answer_call(effects, mode, request["params"])
        if "id" in request and result is not None:
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
