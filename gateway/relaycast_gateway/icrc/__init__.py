"""ICRC-72 and ICRC-77: principals, hashes of event data, filters and skips."""

from relaycast_gateway.icrc.candypath.compiled import candy_path
from relaycast_gateway.icrc.candypath.syntax import CandyPathError
from relaycast_gateway.icrc.skip import Skip, skip_of
from relaycast_gateway.icrc.value_hash import eventdata_hash, is_icrc3
from relaycast_gateway.principal import principal_text

__all__ = ["CandyPathError", "Skip", "candy_path", "eventdata_hash", "is_icrc3", "principal_text", "skip_of"]
