"""The server's routes and its command line, as a client and a person see them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from reference_runtime.session import transcript_path
from reference_runtime.transcript import FORMAT_VERSION
from reference_runtime.web.__main__ import UsageError, listen
from tests.web.conftest import CRASHED, FINISHED, Server, start_server, stop_server


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        yield client


def test_the_list_is_newest_first(client: httpx.Client) -> None:
    sessions = client.get("/sessions").json()["sessions"]
    assert [(entry["id"], entry["ended"], entry["unknown"]) for entry in sessions] == [
        (CRASHED, None, 1),
        (FINISHED, "completed", 0),
    ]


def test_a_session_tells_the_state_of_each_call(client: httpx.Client) -> None:
    view = client.get(f"/sessions/{CRASHED}").json()
    assert [(call["call_id"], call["tool"], call["state"]) for call in view["calls"]] == [
        ("toolu_deploy", "Bash", "unknown"),
        ("toolu_note", "Write", "not_started"),
    ]
    assert "s3cret" not in json.dumps(view)


@pytest.mark.parametrize(
    "path", ["/nothing", "/sessions/", "/sessions/x", "/sessions/..%2f..%2fetc", f"/sessions/{FINISHED}.jsonl"]
)
def test_what_is_not_there_is_404(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, list(answer.json())) == (404, ["error"])


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/sessions", f"/sessions/{CRASHED}"])
def test_nothing_can_be_changed(client: httpx.Client, method: str, path: str) -> None:
    answer = client.request(method, path)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}
    assert answer.json() == {"error": f"{method} is not answered here; this server only reads (GET, HEAD)"}


def test_a_rebound_name_gets_nothing(client: httpx.Client) -> None:
    assert client.get("/sessions", headers={"host": "rebound.example"}).status_code == 421


def test_a_session_of_a_newer_version_is_listed_with_the_reason(tmp_path: Path) -> None:
    newer = json.dumps({"version": FORMAT_VERSION + 1, "kind": "session", "at": ""})
    path = transcript_path(tmp_path, CRASHED)
    path.parent.mkdir()
    path.write_text(newer)
    transcript_path(tmp_path, FINISHED).write_text("")
    server = start_server(tmp_path)
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        problems = {entry["id"]: entry["problem"] for entry in client.get("/sessions").json()["sessions"]}
        answer = client.get(f"/sessions/{CRASHED}")
    assert stop_server(server) == 0
    assert problems[FINISHED] == "no intact record in it"
    assert "is newer than" in problems[CRASHED]
    assert (answer.status_code, answer.json()) == (422, {"error": problems[CRASHED]})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_it_listens_on_loopback_only(host: str) -> None:
    with pytest.raises(UsageError, match="is not loopback"):
        listen(host, 0)


def test_a_taken_port_is_one_sentence_and_exit_2(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "reference_runtime.web", "--home", str(tmp_path), "--port", str(port)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"port {port} on 127.0.0.1 cannot be used" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_missing_home_is_one_sentence_and_exit_2(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "reference_runtime.web", "--home", str(tmp_path / "gone")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "gone" in done.stderr
