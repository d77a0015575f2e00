"""What to paste into a shell so that a known client talks to a provider: data, rendered for one address.

Any key works, because the provider only looks whether there is one; the keys here say that they are none. Nothing here
starts a client or writes a file: where a client reads its address from a file only, the pasted lines write it into the
current folder or into a folder of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fake_provider.document import nearest

BASE_URLS: Mapping[str, tuple[str, str, str]] = {
    "anthropic_messages": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", ""),
    "openai_chat": ("OPENAI_BASE_URL", "OPENAI_API_KEY", "/v1"),
    "openai_responses": ("OPENAI_BASE_URL", "OPENAI_API_KEY", "/v1"),
    "gemini": ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY", ""),
}
"""For each dialect: the variable that its official client reads the address from, that of the key, and the path behind
the provider's address."""

KEY = "sk-scripted"


class UnknownClientError(LookupError):
    """There is no client of that name; the message names those there are."""


@dataclass(frozen=True, slots=True)
class Client:
    """One known client.

    Attributes:
        title: What people call it.
        dialect: What it speaks when set up like this.
        lines: Shell lines; ``{url}`` stands for the provider's address without a path, ``{key}`` for a key.
    """

    title: str
    dialect: str
    lines: str


CLIENTS: Mapping[str, Client] = {
    "claude-code": Client(
        "Claude Code",
        "anthropic_messages",
        """\
export ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY={key}
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1
claude -p 'Say hi.' --model claude-sonnet-4-5""",
    ),
    "codex": Client(
        "Codex",
        "openai_responses",
        """\
export CODEX_HOME="$PWD/.codex-scripted" SCRIPTED_API_KEY={key}
mkdir -p "$CODEX_HOME" && cat > "$CODEX_HOME/config.toml" <<'END'
model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_API_KEY"
supports_websockets = false
END
codex exec --json --skip-git-repo-check 'Say hi.'""",
    ),
    "gemini-cli": Client(
        "Gemini CLI",
        "gemini",
        """\
export GOOGLE_GEMINI_BASE_URL={url} GEMINI_API_KEY={key}
gemini -p 'Say hi.' -o stream-json --skip-trust -m gemini-2.5-flash""",
    ),
    "opencode": Client(
        "opencode",
        "openai_chat",
        """\
export OPENCODE_CONFIG="$PWD/opencode-scripted.json" OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1
cat > "$OPENCODE_CONFIG" <<'END'
{{"model": "scripted/any", "small_model": "scripted/any", "autoupdate": false, "share": "disabled",
 "provider": {{"scripted": {{"npm": "@ai-sdk/openai-compatible",
  "options": {{"baseURL": "{url}/v1", "apiKey": "{key}"}}, "models": {{"any": {{}}}}}}}}}}
END
opencode run --format json --pure 'Say hi.'""",
    ),
    "reasonix": Client(
        "Reasonix",
        "openai_chat",
        """\
export HOME="$PWD/.reasonix-scripted" REASONIX_TELEMETRY=off
mkdir -p "$HOME/.reasonix" && echo 'SCRIPTED_API_KEY={key}' > "$HOME/.reasonix/.env"
cat > "$HOME/.reasonix/config.toml" <<'END'
default_model = "scripted"
[[providers]]
name = "scripted"
kind = "openai"
base_url = "{url}/v1"
model = "scripted"
api_key_env = "SCRIPTED_API_KEY"
END
reasonix run --output-format stream-json 'Say hi.'""",
    ),
    "qwen-code": Client(
        "qwen-code",
        "openai_chat",
        """\
export OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY={key} OPENAI_MODEL=scripted
qwen 'Say hi.' -o json --auth-type openai -m scripted""",
    ),
    "pi": Client(
        "pi",
        "openai_chat",
        """\
export HOME="$PWD/.pi-scripted" PI_OFFLINE=1
mkdir -p "$HOME/.pi/agent" && cat > "$HOME/.pi/agent/models.json" <<'END'
{{"providers": {{"scripted": {{"baseUrl": "{url}/v1", "api": "openai-completions", "apiKey": "{key}",
  "models": [{{"id": "any", "contextWindow": 200000, "maxTokens": 8192}}]}}}}}}
END
pi --mode json -p 'Say hi.' --provider scripted --model any""",
    ),
    "kimi-code": Client(
        "kimi-code",
        "openai_chat",
        """\
export KIMI_MODEL_PROVIDER_TYPE=openai KIMI_MODEL_BASE_URL={url}/v1 KIMI_MODEL_API_KEY={key}
export KIMI_MODEL_NAME=scripted KIMI_MODEL_MAX_CONTEXT_SIZE=200000
export KIMI_CODE_NO_AUTO_UPDATE=1 KIMI_DISABLE_TELEMETRY=1
kimi -p 'Say hi.' --output-format stream-json""",
    ),
    "anthropic": Client(
        "the anthropic SDK",
        "anthropic_messages",
        "export ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY={key}",
    ),
    "openai": Client(
        "the openai SDK",
        "openai_chat",
        "export OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY={key}",
    ),
    "google-genai": Client(
        "the google-genai SDK",
        "gemini",
        "export GOOGLE_GEMINI_BASE_URL={url} GEMINI_API_KEY={key}",
    ),
}
"""The clients, by the word for ``--client``."""

SDK_DIALECTS: Mapping[str, str] = {name: CLIENTS[name].dialect for name in ("anthropic", "openai", "google-genai")}
"""The clients that read their address and key from variables alone, and the dialect that each speaks."""


def lines_for(name: str, url: str) -> str:
    """Return the lines for one client, without a newline at the end.

    Raises:
        UnknownClientError: There is no such client.
    """
    if name not in CLIENTS:
        raise UnknownClientError(f"no client '{name}'{nearest(name, CLIENTS)}")
    return CLIENTS[name].lines.format(url=url, key=KEY)


def base_url(dialect: str, url: str) -> str:
    """Return the base URL that the official client of a dialect is given."""
    return url + BASE_URLS[dialect][2]


def environment(dialect: str, url: str) -> dict[str, str]:
    """Return the variables that the official client of a dialect reads its address and key from."""
    address, key, _ = BASE_URLS[dialect]
    return {address: base_url(dialect, url), key: KEY}


def overview(dialects: tuple[str, ...], url: str) -> list[str]:
    """Return one line a dialect with the address to give to its clients."""
    return [f"{dialect:<18}  {BASE_URLS[dialect][0]}={base_url(dialect, url)}" for dialect in dialects]
