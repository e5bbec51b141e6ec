"""Storage keys outside all pallets, with plain names (sp-storage ``well_known_keys`` and a relay chain's own)."""

HOST_KEYS = (
    b":relay_dispatch_queue_remaining_capacity",  # one for each parachain: the id follows
    b":code",
    b":heappages",
    b":extrinsic_index",
    b":intrablock_entropy",
    b":grandpa_authorities",
)


def host_key(key: bytes) -> str:
    """Return the name that ``key`` starts with, empty when there is none."""
    return next((known.decode() for known in HOST_KEYS if key.startswith(known)), "")
