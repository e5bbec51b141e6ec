"""``dev_setHead`` and its like: other heads, snapshots, another time, and the whole state in one answer."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from relaycast_node.chain.exceptions import CannotGoBack, UnknownBlock
from relaycast_node.rpc.context import RpcContext
from relaycast_node.rpc.header_json import hexed
from relaycast_node.rpc.method_table import MethodGroup
from relaycast_node.rpc.parameters import AnyJson, BlockHash, Misfit, reader_of
from relaycast_node.rpc.rpc_error import TOO_BIG_RESPONSE, client_error, invalid_params, over_limit, unknown_block
from relaycast_node.rpc.session import RpcSession
from relaycast_node.rpc.state_methods import MOST_LISTED_BYTES, opening
from relaycast_node.rpc.storage_queries import OpenState, pairs_in_steps
from relaycast_trie import CHILD_STORAGE_PREFIX

GROUP = MethodGroup()

EXPECTED_BLOCK = "the hash of a block, its number on the best branch, or a negative number of blocks to go back"
EXPECTED_TIME = "milliseconds since 1970, or a time such as 2026-01-31T12:00:00Z, before 2200-01-01T00:00:00Z"
LAST_MILLISECOND = 7_258_118_399_999
"""The end of the year 2199. Event logs count nanoseconds in 64 bits, up to 2262, which leaves time for later blocks."""

EXPECTED_SNAPSHOT = "the id of a snapshot"

_hash = reader_of(BlockHash)

T = TypeVar("T")


@GROUP.method("dev_setHead")
def set_head(context: RpcContext, hash_or_number: AnyJson) -> str:
    """Make a kept block the best one and return its hash; the next block is built on it.

    All chains go back to where they stood then. Transactions of blocks that leave the best branch return to the pool.
    """
    block_hash = _wanted(context, hash_or_number)
    return hexed(_allowed(lambda: context.clock.set_head(context.chain, block_hash)).hash)


@GROUP.method("dev_snapshot")
def snapshot(context: RpcContext) -> str:
    """Remember where all chains stand, with their pools, and return the id of this snapshot."""
    return hex(_allowed(context.clock.snapshot))


@GROUP.method("dev_revert")
def revert(context: RpcContext, snapshot_id: AnyJson) -> bool:
    """Return to a snapshot, below finalized blocks too; it and all later ones are gone then."""
    number = _snapshot_number(snapshot_id)
    if number not in context.clock.snapshots:
        known = ", ".join(map(hex, context.clock.snapshots)) or "there is none"
        raise invalid_params("id", snapshot_id, f"{EXPECTED_SNAPSHOT}: {known}")
    _allowed(lambda: context.clock.revert(number))
    return True


@GROUP.method("dev_timeTravel")
def time_travel(context: RpcContext, date: AnyJson) -> int:
    """Set the time of the relay chain's next block and return it in milliseconds since 1970; later blocks follow it."""
    milliseconds = _milliseconds(date)
    _allowed(lambda: context.clock.travel(milliseconds))
    return milliseconds


@GROUP.session_method("dev_dumpState")
async def dump_state(context: RpcContext, session: RpcSession, at: BlockHash | None = None) -> dict[str, object]:
    """Return all keys and values after a block, as the ``genesis`` of a raw chain spec has them."""
    open_state, room = opening(context, at), MOST_LISTED_BYTES
    top, children = dict[str, str](), dict[str, dict[str, str]]()
    names = [key.removeprefix(CHILD_STORAGE_PREFIX) for key in open_state().keys(CHILD_STORAGE_PREFIX)]
    for name in (None, *names):
        held = top if name is None else children.setdefault(hexed(name), {})
        async for key, value in session.in_turns(pairs_in_steps(_trie(open_state, name), b"")):
            if name is None and key.startswith(CHILD_STORAGE_PREFIX):
                continue
            held[hexed(key)] = hexed(value)
            room -= len(key) + len(value)
            if room < 0:
                raise over_limit(TOO_BIG_RESPONSE, "Response is too big", 2 * MOST_LISTED_BYTES)
    return {"name": context.chain.name, "genesis": {"raw": {"top": top, "childrenDefault": children}}}


def _trie(open_state: OpenState, name: bytes | None) -> OpenState:
    return open_state if name is None else lambda: open_state().child(name)


def _allowed(move: Callable[[], T]) -> T:
    try:
        return move()
    except UnknownBlock as unknown:
        raise unknown_block(unknown.hash) from None
    except CannotGoBack as refusal:
        raise client_error(str(refusal)) from None


def _wanted(context: RpcContext, given: AnyJson) -> bytes:
    chain = context.chain
    if type(given) is not int:
        try:
            block_hash: bytes = _hash(given)
        except Misfit:
            raise invalid_params("hashOrNumber", given, EXPECTED_BLOCK) from None
        return block_hash
    best = chain.best.header.number
    found = chain.hash_of(given if given >= 0 else best + given)
    if found is None:
        raise invalid_params("hashOrNumber", given, f"{EXPECTED_BLOCK}; the best block is {best}")
    return found


def _snapshot_number(given: AnyJson) -> int:
    try:
        return given if type(given) is int else int(given, 16)
    except (TypeError, ValueError):
        raise invalid_params("id", given, EXPECTED_SNAPSHOT) from None


def _milliseconds(given: AnyJson) -> int:
    if type(given) is int and 0 <= given <= LAST_MILLISECOND:
        return given
    try:
        time = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        raise invalid_params("date", given, EXPECTED_TIME) from None
    milliseconds = round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1_000)
    if milliseconds > LAST_MILLISECOND:
        raise invalid_params("date", given, EXPECTED_TIME)
    return milliseconds
