"""The end of what expires: a scan through ``TtlData`` in the idle time of each block.

The scan follows the raw storage keys, which is the order of hashes. It continues where the last block's ended, and pays
for every entry that it looks at. It stops before it would exceed the weight that is left or the cap on scans. At the
end of the map the cursor is cleared, and the next block begins at the start.
"""

from relaycast_pallets.broadcaster.config import BroadcasterConfig
from relaycast_pallets.broadcaster.events import KeyExpired
from relaycast_pallets.broadcaster.published_entry import expires_at
from relaycast_pallets.broadcaster.storage import BroadcasterStorage
from relaycast_pallets.frame.system import System
from relaycast_xcm.primitives import Weight, WeightMeter


def expire_keys(system: System, storage: BroadcasterStorage, config: BroadcasterConfig, remaining: Weight) -> Weight:
    """Remove what has expired at the current block, within ``remaining``, and return the weight that was used.

    The cursor is the last entry that was scanned; it need not exist when the scan resumes after it.
    """
    base = config.weight("on_idle")
    each = config.weight("on_idle", n=1) - base
    meter = WeightMeter(remaining)
    if not meter.try_consume(base):
        return Weight.ZERO
    now = system.block_number
    cursor = last = storage.ttl_scan_cursor.get()
    start_after = None if cursor is None else storage.ttl_data.storage_key(*cursor)
    for scans, (publisher, key, (ttl, when_inserted)) in enumerate(storage.ttl_data.items(start_after=start_after)):
        if scans == config.max_ttl_scans_per_idle or not meter.try_consume(each):
            break
        last = (publisher, key)
        expiry = expires_at(ttl, when_inserted)
        if expiry is not None and now >= expiry:
            storage.remove(publisher, [key])
            system.deposit_event(KeyExpired(publisher, key))
    else:
        last = None
    if last is None:
        storage.ttl_scan_cursor.kill()
    elif last != cursor:
        storage.ttl_scan_cursor.put(last)
    return meter.consumed
