"""What an orchestrator answers about replays where it offers none, and what one that offers them gives."""

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.canister import CallRefused, Handler
from relaycast_gateway.icrc.orchestrator.batch import ErrorCode

_REASON = "this orchestrator offers no replays"


class ReplayHandlers(Protocol):
    """What an orchestrator asks when a method of ICRC-77 is called."""

    def handlers(self) -> Mapping[str, Handler]:
        """Return what handles each method whose name begins with ``icrc77_``."""
        ...


class NoReplays:
    """Refuses all replays, item by item."""

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "icrc77_register_replay": self._refused_items,
            "icrc77_cancel_replay": self._refused_items,
            "icrc77_replay_status": self._refused_items,
            "icrc77_get_replays": lambda _caller, _argument: [],
            "icrc77_request_messages": self._refused_call,
            "icrc77_cancel_messages_request": self._refused_call,
        }

    def _refused_items(self, _caller: bytes, argument: object) -> object:
        error = Variant("GenericError", {"error_code": int(ErrorCode.NO_REPLAYS), "message": _REASON})
        return [Variant("Err", error) for _ in cast("Sequence[object]", argument)]

    def _refused_call(self, _caller: bytes, _argument: object) -> object:
        raise CallRefused(_REASON)
