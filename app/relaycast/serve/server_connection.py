"""Requests of the command line to a running server: what goes wrong on the way becomes one line."""

import json
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from relaycast.refusal import BadInput, shown
from relaycast.tls_mistakes import tls_mistake

SECONDS = 30
MOST_BYTES = 64 << 20
"""Largest answer that is read."""


class ServerAnswer(NamedTuple):
    """What a server answered."""

    status: int
    body: bytes
    link: str | None = None

    def parsed(self) -> Any:
        """Return the JSON of the body; ``ValueError`` where it is none, or nests deeper than the parser goes."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("JSON that nests too deep") from None


class ServerConnection:
    """Talks to the server at ``url`` with the first token of a file; every problem is a ``BadInput``."""

    def __init__(self, url: str, token_file: str | None = None) -> None:
        try:
            parts = urlsplit(url)
            is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_url = False
        if not is_url:
            raise BadInput("--url", shown(url), "the address of a server, such as http://127.0.0.1:9944")
        self.url = url.rstrip("/")
        self.token = None if token_file is None else token_in_file(token_file)
        self._opener = build_opener(ProxyHandler({}))

    def answer(self, method: str, url: str, body: bytes | None, headers: dict[str, str]) -> ServerAnswer:
        """Return what the server answers, whatever its status is."""
        request = Request(url, body, headers, method=method)  # noqa: S310 - http and https alone
        if self.token is not None:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with self._opener.open(request, timeout=SECONDS) as response:
                return ServerAnswer(response.status, response.read(MOST_BYTES), response.headers.get("Link"))
        except HTTPError as error:
            with error:
                return ServerAnswer(error.code, error.read(MOST_BYTES))
        except (URLError, OSError, HTTPException) as error:
            mistake = tls_mistake(self.url, error, f"--url {self.url}")
            if mistake is not None:
                raise mistake from None
            reason = getattr(error, "reason", error)
            said = (getattr(reason, "strerror", None) or str(reason) or "no answer").lower()
            raise BadInput(f"--url {self.url}", said, "a server that runs: relaycast serve") from None


def token_in_file(file: str) -> str:
    """Return the first token of a file like the server's."""
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except OSError as error:
        raise BadInput(f"--token-file {file}", (error.strerror or "an error").lower(), "a file with a token") from None
    except UnicodeDecodeError:
        raise BadInput(f"--token-file {file}", "bytes that are no text", "a token") from None
    tokens = [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
    if not tokens or not tokens[0].isascii() or not tokens[0].isprintable():
        raise BadInput(f"--token-file {file}", "no token", "a token on its first line")
    return tokens[0]
