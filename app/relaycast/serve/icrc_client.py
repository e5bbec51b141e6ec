"""A client of a server's canisters over HTTP, for the command line: its problems become one line."""

import re
from collections.abc import Mapping
from typing import Any

from relaycast.refusal import SENTENCE_CHARACTERS, BadInput, nearest, one_line, short, shown
from relaycast.serve.server_connection import ServerAnswer, ServerConnection
from relaycast_gateway.candid import CandidError, format_values, parse_values
from relaycast_gateway.icrc.http.remote_calls import CALLER_HEADER, CANDID
from relaycast_gateway.icrc.interface import CandidMethod, CanisterRole, every_method, methods_of
from relaycast_gateway.principal import principal_of, principal_of_name, principal_text

NAME = re.compile(r"[A-Za-z0-9_.]{1,64}")
SERVED = {
    "orchestrator": CanisterRole.ORCHESTRATOR,
    "broadcaster": CanisterRole.BROADCASTER,
    "archivist": CanisterRole.PUBLISHER,
}
"""The canisters of a server, by what they are to it."""


def caller_named(option: str, text: str) -> bytes:
    """Return the principal that a user gave: its text, or a name such as those of tokens; raises ``BadInput``."""
    if NAME.fullmatch(text):
        return principal_of_name(text)
    try:
        return principal_of(text)
    except ValueError:
        expected = "the text of a principal, or a name of letters, digits, _ and ."
        raise BadInput(option, shown(text), expected) from None


def method_named(name: str) -> CandidMethod:
    """Return the method of any role; raises ``BadInput``."""
    known = every_method()
    if name not in known:
        raise BadInput("METHOD", shown(name), "a method of ICRC-72 or ICRC-77", nearest(name, list(known)))
    return known[name]


def arguments_of(method: CandidMethod, text: str) -> list[object]:
    """Return the values of a text of Candid, in parentheses or a single value without; raises ``BadInput``."""
    written = text.strip() or "()"
    try:
        return parse_values(written if written.startswith("(") else f"({written})", method.arguments)
    except CandidError as error:
        expected = "Candid text, see relaycast icrc did"
        raise BadInput(f"the arguments of {method.name}", shown(written), expected, one_line(str(error))) from None


class IcrcClient:
    """Calls canisters at ``url`` as ``caller``, or as whom the token says."""

    def __init__(self, url: str, token_file: str | None = None, caller: bytes | None = None) -> None:
        self._server = ServerConnection(url.rstrip("/").removesuffix("/icrc"), token_file)
        self.url = self._server.url
        self.token = self._server.token
        self._headers = {} if caller is None else {CALLER_HEADER: principal_text(caller)}

    def call(self, method: CandidMethod, values: list[object], canister: str | None = None) -> str:
        """Return the result as Candid text."""
        place = self._principal(method, canister)
        body = method.encode_arguments(values)
        headers = self._headers | {"Content-Type": CANDID}
        answer = self._server.answer("POST", f"{self.url}/icrc/{place}/{method.name}", body, headers)
        if answer.status != 200:
            raise self._refusal(method.name, answer)
        try:
            return format_values(method.decode_results(answer.body), method.results)
        except CandidError as error:
            raise BadInput(f"--url {self.url}", f"an answer that is not {method.name}'s: {error}", "one") from None

    def _principal(self, method: CandidMethod, canister: str | None) -> str:
        """Return the text of the principal to call: a name or a text that was given, else whose method it is."""
        if canister is not None and canister not in SERVED:
            try:
                return principal_text(principal_of(canister))
            except ValueError:
                expected = f"the text of a principal, or one of {', '.join(SERVED)}"
                raise BadInput("--canister", shown(canister), expected, nearest(canister, list(SERVED))) from None
        if canister is None:
            canister = next((name for name, role in SERVED.items() if method.name in methods_of(role)), None)
        if canister is None:
            expected = "the principal of a canister outside of the server that has this method"
            raise BadInput("--canister", f"none, for {method.name}", expected)
        found = self._listing().get(f"{canister}s" if canister == "broadcaster" else canister)
        if isinstance(found, list):
            found = found[0] if found else None
        if not isinstance(found, dict) or not isinstance(found.get("principal"), str):
            raise BadInput(f"--url {self.url}", f"a server without {canister}", "one that has it")
        return str(found["principal"])

    def _listing(self) -> Mapping[str, Any]:
        answer = self._server.answer("GET", f"{self.url}/icrc", None, self._headers)
        if answer.status != 200:
            raise self._refusal("icrc", answer)
        try:
            found = answer.parsed()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise self._stranger()
        return found

    def _refusal(self, what: str, answer: ServerAnswer) -> BadInput:
        status = answer.status
        try:
            problem = answer.parsed()
            kind, detail = str(problem["type"]), short(str(problem["detail"]), SENTENCE_CHARACTERS)
        except (ValueError, KeyError, TypeError):
            return self._stranger()
        if status == 401:
            return BadInput("--token-file", "no token that the server knows", "a file with one")
        if status == 403 and "anonymous" in detail:
            return BadInput("--as", "no caller", "--as PRINCIPAL, or --token-file where the server has tokens")
        if kind.endswith(":notfound") and what == "icrc":
            return self._stranger()
        return BadInput(what, f"a refusal ({detail})", "a call that the canister takes")

    def _stranger(self) -> BadInput:
        return BadInput(f"--url {self.url}", "an answer of another kind", "a server of relaycast with --face icrc")
