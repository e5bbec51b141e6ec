"""A client of the subscription manager over HTTP, for the command line: its problems become one line."""

import json
from typing import Any
from urllib.parse import quote

from relaycast.refusal import SENTENCE_CHARACTERS, BadInput, short
from relaycast.serve.server_connection import ServerAnswer, ServerConnection


class SubscriptionClient:
    """Talks to the manager at ``url``; every problem is a ``BadInput``."""

    def __init__(self, url: str, token_file: str | None = None) -> None:
        self._server = ServerConnection(url.rstrip("/").removesuffix("/subscriptions"), token_file)
        self.url = self._server.url

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Return what the manager answers."""
        return self._asked(method, self.url + path, body)[0]

    def pages(self, path: str) -> list[Any]:
        """Return a whole list, page by page."""
        found: list[Any] = []
        following: str | None = path
        while following:
            page, following = self._asked("GET", self.url + following, None)
            if not isinstance(page, list):
                raise self.stranger()
            found += page
        return found

    def _asked(self, method: str, url: str, body: object) -> tuple[Any, str | None]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json"} | ({} if data is None else {"Content-Type": "application/json"})
        answer = self._server.answer(method, url, data, headers)
        if answer.status >= 300:
            raise self._refusal(answer)
        try:
            return answer.parsed(), _next_of(answer.link)
        except ValueError:
            raise self.stranger() from None

    def _refusal(self, answer: ServerAnswer) -> BadInput:
        status = answer.status
        try:
            problem = answer.parsed()
            detail = short(str(problem["detail"]), SENTENCE_CHARACTERS)
        except (ValueError, KeyError, TypeError):
            if status in {401, 403}:
                return BadInput(
                    f"--url {self.url}", f"the answer {status}", "--token-file with a token of the server's"
                )
            return self.stranger()
        if isinstance(problem.get("member"), str):
            got, expected = (short(str(problem.get(name)), SENTENCE_CHARACTERS) for name in ("got", "expected"))
            return BadInput(short(problem["member"]), got, expected)
        if status == 401:
            return BadInput("--token-file", "no token that the server knows", "a file with one")
        return BadInput(f"--url {self.url}", detail, "a request that the server takes")

    def stranger(self) -> BadInput:
        """Return the refusal of an answer with unexpected members."""
        return BadInput(
            f"--url {self.url}", "an answer of another kind", "a server of relaycast with --face cloudevents"
        )


def path_of(*segments: str) -> str:
    """Return a path of segments, each as it must stand in a URL."""
    return "".join(f"/{quote(segment, safe='')}" for segment in segments)


def _next_of(link: str | None) -> str | None:
    place, _, relation = (link or "").partition(">")
    return place.removeprefix("<") if 'rel="next"' in relation else None
