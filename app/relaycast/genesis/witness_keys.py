"""What a relay chain of an emulated network reads and writes of its state: what a witness has to show.

Law: every key that the modelled pallets touch is here, or below a prefix, or in a child trie. So a chain that starts
from a witness of all this meets a gap only where a user leads it: by an extrinsic, a write, or a question.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from relaycast.scenario.scenario import ParachainTable, Payment, Scenario
from relaycast_collator.chains import manager_of
from relaycast_collator.inbound import MODELLED_SENDER
from relaycast_collator.relay_chain import BLOCK_AUTHOR
from relaycast_node.extrinsic.accounts import dev_accounts
from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_pallets.frame.typed_storage import BLAKE2_128_CONCAT, TWOX_64_CONCAT, storage_prefix
from relaycast_pallets.frame.well_known_keys import (
    hrmp_channel,
    hrmp_egress_channel_index,
    hrmp_ingress_channel_index,
    static_relay_keys,
)
from relaycast_pallets.messaging.inbound_message import PARA_IDS
from relaycast_trie import ChildInfo, twox_128
from relaycast_trie.plain.partial_trie import StateWitness, explore
from relaycast_xcm import ParaId, parachain_account

CODE = b":code"

VALUES = {
    "System": ("Number", "ParentHash", "Digest", "EventCount", "Events", "ExtrinsicCount", "LastRuntimeUpgrade"),
    "Timestamp": ("Now", "DidUpdate"),
    "Balances": ("TotalIssuance", "InactiveIssuance"),
    "TransactionPayment": ("NextFeeMultiplier", "StorageVersion"),
    "Sudo": ("Key",),
}
"""Single values by pallet, beside the keys that parachains prove."""

BLOCK_HASHES = storage_prefix("System", "BlockHash")
BROADCASTER = twox_128(b"Broadcaster")
ASSET_TRAPS = storage_prefix("XcmPallet", "AssetTraps")

Read = Callable[[bytes], bytes | None]
"""Returns the value of a key of the top trie."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Keys of the top trie, prefixes below which every key is wanted, child tries that are wanted whole.

    The channels of ``para_ids`` follow from what the state holds, see ``channel_keys``.
    """

    keys: frozenset[bytes]
    prefixes: tuple[bytes, ...] = ()
    children: tuple[ChildInfo, ...] = ()
    para_ids: tuple[ParaId, ...] = field(default=())

    def channel_keys(self, read: Read) -> frozenset[bytes]:
        """Return the keys of the channels that the state has open; raises ``CodecError``."""
        found: set[bytes] = set()
        for para_id in self.para_ids:
            senders = PARA_IDS.decode(read(hrmp_ingress_channel_index(para_id)) or b"\x00")
            recipients = PARA_IDS.decode(read(hrmp_egress_channel_index(para_id)) or b"\x00")
            found.update(*(_channel(sender, para_id) for sender in senders))
            found.update(*(_channel(para_id, recipient) for recipient in recipients))
        return frozenset(found)


def wanted_for(scenario: Scenario, *, para_ids: Iterable[int] = (), keys: Iterable[bytes] = ()) -> Wanted:
    """Return what the chains of a scenario need, and further parachains, and further ``keys``."""
    chains = scenario.with_copies().parachains
    found = wanted_by((*(chain.id for chain in chains), *para_ids), keys=keys)
    channels = [
        _channel(ParaId(sender), ParaId(chain.id))
        for chain in chains
        if chain.messages is not None
        for sender in chain.messages.senders or [int(MODELLED_SENDER)]
    ]
    return Wanted(found.keys.union(*channels), (*found.prefixes, *_traps(chains)), found.children, found.para_ids)


def wanted_by(para_ids: Iterable[int], *, keys: Iterable[bytes] = ()) -> Wanted:
    """Return what a relay chain with these parachains needs, and further ``keys``."""
    known = tuple(dict.fromkeys(map(ParaId, para_ids)))
    found = {CODE, *keys}
    found.update(storage_prefix(pallet, item) for pallet, items in VALUES.items() for item in items)
    accounts = [BLOCK_AUTHOR, *(pair.account for pair in dev_accounts().values())]
    for para_id in known:
        found.update(static_relay_keys(para_id), _channel(MODELLED_SENDER, para_id))
        found.add(storage_prefix("Dmp", "DownwardMessageQueues") + TWOX_64_CONCAT.digest(para_id.encode()))
        found.add(derive_child_info(para_id).prefixed_storage_key())
        accounts += [manager_of(para_id), parachain_account(para_id)]
    found.update(static_relay_keys(MODELLED_SENDER))
    for account in accounts:
        found.update(account_keys(account))
    return Wanted(frozenset(found), (BLOCK_HASHES, BROADCASTER), tuple(map(derive_child_info, known)), known)


def account_keys(account: bytes) -> tuple[bytes, bytes]:
    """Return the keys of what the state holds of an account."""
    hashed = BLAKE2_128_CONCAT.digest(account)
    return storage_prefix("System", "Account") + hashed, storage_prefix("Balances", "Holds") + hashed


def ensure_shown(witness: StateWitness, wanted: Wanted) -> None:
    """Raise ``MissingNode`` where a witness does not show all that is ``wanted``."""
    top = explore(witness.nodes, witness.root)
    for key in sorted(wanted.keys):
        top.gaps.check(key)
    for key in sorted(wanted.channel_keys(top.values.get)):
        top.gaps.check(key)
    for prefix in wanted.prefixes:
        top.gaps.check_prefix(prefix)
    for info in wanted.children:
        root = top.values.get(info.prefixed_storage_key())
        if root is not None:
            explore(witness.nodes, root).gaps.check_prefix(b"")


def _traps(chains: Iterable[ParachainTable]) -> tuple[bytes, ...]:
    """Return the prefix of trapped assets where messages pay: their keys are hashes that nobody knows before."""
    pays = any(chain.publish is not None and isinstance(chain.publish.payment, Payment) for chain in chains)
    return (ASSET_TRAPS,) if pays else ()


def _channel(sender: ParaId, recipient: ParaId) -> tuple[bytes, bytes, bytes, bytes]:
    """Return the keys of a channel, of what waits in it, and of the two indexes that list it."""
    name = TWOX_64_CONCAT.digest(sender.encode() + recipient.encode())
    contents = storage_prefix("Hrmp", "HrmpChannelContents") + name
    indexes = hrmp_ingress_channel_index(recipient), hrmp_egress_channel_index(sender)
    return hrmp_channel(sender, recipient), contents, *indexes
