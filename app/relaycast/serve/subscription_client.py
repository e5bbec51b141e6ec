"""A client of the subscription manager over HTTP, for the command line: its problems become one line."""

import json
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from relaycast.refusal import BadInput, shown

SECONDS = 30
MOST_BYTES = 64 << 20
"""Largest answer that is read."""


class SubscriptionClient:
    """Talks to the manager at ``url``; every problem is a ``BadInput``."""

    def __init__(self, url: str, token_file: str | None = None) -> None:
        try:
            parts = urlsplit(url)
            is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_url = False
        if not is_url:
            raise BadInput("--url", shown(url), "the address of a server, such as http://127.0.0.1:9944")
        self.url = url.rstrip("/").removesuffix("/subscriptions")  # as the ready screen prints it
        self._token = None if token_file is None else _token_in(token_file)
        self._opener = build_opener(ProxyHandler({}))

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Return what the manager answers."""
        return self._asked(method, self.url + path, body)[0]

    def pages(self, path: str) -> list[Any]:
        """Return a whole list, page by page."""
        found: list[Any] = []
        following: str | None = path
        while following:
            page, following = self._asked("GET", self.url + following, None)
            found += page
        return found

    def _asked(self, method: str, url: str, body: object) -> tuple[Any, str | None]:
        data = None if body is None else json.dumps(body).encode()
        request = Request(url, data, {"Accept": "application/json"}, method=method)  # noqa: S310 - http and https alone
        if data is not None:
            request.add_header("Content-Type", "application/json")
        if self._token is not None:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            with self._opener.open(request, timeout=SECONDS) as response:
                text, link = response.read(MOST_BYTES), response.headers.get("Link")
        except HTTPError as error:
            with error:
                raise self._refusal(error.code, error.read(MOST_BYTES)) from None
        except (URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            said = (getattr(reason, "strerror", None) or str(reason) or "no answer").lower()
            raise BadInput(f"--url {self.url}", said, "a server that runs: relaycast serve") from None
        try:
            return json.loads(text), _next_of(link)
        except ValueError:
            raise self._stranger() from None

    def _refusal(self, status: int, text: bytes) -> BadInput:
        try:
            problem = json.loads(text)
            detail = str(problem["detail"])
        except (ValueError, KeyError, TypeError):
            if status in {401, 403}:
                return BadInput(
                    f"--url {self.url}", f"the answer {status}", "--token-file with a token of the server's"
                )
            return self._stranger()
        if isinstance(problem.get("member"), str):
            return BadInput(problem["member"], str(problem.get("got")), str(problem.get("expected")))
        if status == 401:
            return BadInput("--token-file", "no token that the server knows", "a file with one")
        return BadInput(f"--url {self.url}", detail, "a request that the server takes")

    def _stranger(self) -> BadInput:
        return BadInput(
            f"--url {self.url}", "an answer of another kind", "a server of relaycast with --face cloudevents"
        )


def path_of(*segments: str) -> str:
    """Return a path of segments, each as it must stand in a URL."""
    return "".join(f"/{quote(segment, safe='')}" for segment in segments)


def _next_of(link: str | None) -> str | None:
    place, _, relation = (link or "").partition(">")
    return place.removeprefix("<") if 'rel="next"' in relation else None


def _token_in(file: str) -> str:
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
