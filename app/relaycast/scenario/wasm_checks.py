"""What a parachain with a real runtime may say in a scenario: its runtime does the rest.

Law: what would be passed over in silence is refused.
"""

from relaycast.inputs import parse_hex
from relaycast.refusal import BadInput, shown
from relaycast.scenario.scenario import ParachainTable, Scenario, SubscriptionTable

MODELLED_ONLY = (
    "publish",
    "subscribe",
    "max_trie_depth",
    "max_publishers",
    "max_subscribed_keys",
    "max_total_keys",
    "max_cached_bytes",
    "upgrades",
)
"""What only a modelled parachain does by its table."""


UNTOUCHED = ParachainTable(id=0)


def check_wasm(chain: ParachainTable, place: str) -> None:
    """Raise ``BadInput`` where the table of a parachain with a real runtime contradicts itself."""
    if not isinstance(chain.genesis, str):
        named = "wasm" if chain.is_wasm else "extrinsics"
        raise BadInput(f"{place}.{named}", f"{named} without a genesis", "genesis = ..., a raw chain spec or a state")
    for name in MODELLED_ONLY:
        value = getattr(chain, name)
        if value != getattr(UNTOUCHED, name):
            got = f"{shown(value)} beside a real runtime" if isinstance(value, int) else f"{name} beside a real runtime"
            raise BadInput(f"{place}.{name}", got, "none: what it does is up to its runtime and its extrinsics")


def check_wasm_keys(subscription: SubscriptionTable, place: str) -> None:
    """Raise ``BadInput`` unless a subscription to a real runtime names its keys."""
    if not isinstance(subscription.keys, list):
        got = (
            f"{shown(subscription.keys)} of parachain {subscription.publisher}, whose runtime decides what it publishes"
        )
        raise BadInput(f"{place}.keys", got, 'the names of keys, such as ["price/dot"], or their 32 bytes in hex')
    for index, name in enumerate(subscription.keys):
        if name.startswith("0x"):
            parse_hex(name, f"{place}.keys[{index}]", size=32)


def refuse_runtimes(scenario: Scenario, place: str, instead: str) -> None:
    """Raise ``BadInput`` where a scenario has a real runtime, which the work at ``place`` does not take."""
    for chain in scenario.wasm_parachains():
        raise BadInput(place, f"parachain {chain.id} with a real runtime", instead)
    if isinstance(scenario.relaychain.wasm, str):
        raise BadInput(place, "a relay chain with a real runtime", instead)
