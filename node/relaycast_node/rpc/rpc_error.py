"""What a request can be answered with instead of a result: code, message and data, as a Substrate node words them.

Codes from -32700 to -32600 are JSON-RPC's own, those from -32010 to -32000 jsonrpsee's, those from 1000 on Substrate's:
1000 author, 3000 chain, 4000 state.
"""

from collections.abc import Collection
from difflib import get_close_matches

from relaycast_node.chain.exceptions import ChainRefusal, MissingMethod, UnknownBlock
from relaycast_trie.exceptions import MissingNode

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
TOO_MANY_SUBSCRIPTIONS, TOO_BIG_REQUEST, TOO_BIG_RESPONSE, TOO_BUSY = -32006, -32007, -32008, -32009
TOO_BIG_BATCH, TOO_BIG_BATCH_RESPONSE = -32010, -32011
RATE_EXCEEDED = -32999
"""What a Substrate node answers beyond ``--rpc-rate-limit``."""

RUNTIME_FAILED, UNDECODABLE = 1, 2
"""Error codes of methods that ask the runtime: ``system_accountNextIndex``, ``system_dryRun``, ``payment_*``."""

BAD_FORMAT, OTHER_AUTHOR_ERROR = 1001, 1040
OTHER_CHAIN_ERROR = 3001
INVALID_BLOCK_RANGE, INVALID_COUNT, CLIENT_ERROR = 4001, 4002, 4003

SHOWN_CHARACTERS = 60
"""An error shows at most this many characters of a value."""


class RpcError(Exception):
    """A request that fails; ``data`` says more than the ``message``, ``None`` where there is nothing to say."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.data is None else f"{self.code}: {self.message}: {self.data}"

    def to_json(self) -> dict[str, object]:
        """Return the ``error`` member of an answer."""
        error: dict[str, object] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


def parse_error(reason: str) -> RpcError:
    return RpcError(PARSE_ERROR, "Parse error", reason)


def invalid_request(reason: str) -> RpcError:
    return RpcError(INVALID_REQUEST, "Invalid request", reason)


def invalid_params(name: str, got: object, expected: str) -> RpcError:
    """Return the error that names a parameter, its value and what was expected."""
    return RpcError(INVALID_PARAMS, "Invalid params", f"{name}: got {shown(got)}, expected {expected}")


def method_not_found(name: str, known: Collection[str]) -> RpcError:
    """Return the error for a method that is not there, with the nearest name that is."""
    close = get_close_matches(name[:SHOWN_CHARACTERS], known, n=1)
    hint = f"did you mean {close[0]}?" if close else "rpc_methods lists the methods that are there"
    return RpcError(METHOD_NOT_FOUND, "Method not found", f"{shown(name)}: {hint}")


def admins_only(name: str, caller: str) -> RpcError:
    """Return a node's error for an unsafe method."""
    reason = f"{name} needs a token with role=admin, the token of {shown(caller)} has role=user"
    return RpcError(METHOD_NOT_FOUND, "RPC call is unsafe to be called externally", reason)


def client_error(reason: str) -> RpcError:
    """Return what a node says when its client refuses."""
    return RpcError(CLIENT_ERROR, f"Client error: {reason}")


def execution_failed(refusal: ChainRefusal) -> RpcError:
    """Return what a node says when its chain's code gives no answer."""
    if isinstance(refusal, UnknownBlock):
        return unknown_block(refusal.hash)
    if isinstance(refusal, MissingMethod):
        return client_error(f"Execution failed: Other: Exported method {shown(refusal.name)[1:-1]} is not found")
    return client_error(f"Execution failed: {refusal}")


def unknown_block(block_hash: bytes) -> RpcError:
    return client_error(f"UnknownBlock: Header was not found in the database: 0x{block_hash.hex()}")


def state_discarded(block_hash: bytes) -> RpcError:
    return client_error(f"UnknownBlock: State already discarded for 0x{block_hash.hex()}")


def missing_node(error: MissingNode) -> RpcError:
    """Return what is said where a state with gaps holds no answer."""
    return client_error(f"MissingNode: {error}")


def over_limit(code: int, message: str, limit: int) -> RpcError:
    return RpcError(code, message, f"Exceeded max limit of {limit}")


def shown(value: object) -> str:
    """Return a JSON value as an error shows it: quoted, in ASCII, and short."""
    if isinstance(value, list | dict):
        kind, thing = ("a list", "item") if isinstance(value, list) else ("an object", "member")
        return f"{kind} of {len(value)} {thing}{'' if len(value) == 1 else 's'}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str) and len(value) > SHOWN_CHARACTERS:
        return f"{value[:SHOWN_CHARACTERS]!a}... ({len(value)} characters)"
    text = ascii(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
