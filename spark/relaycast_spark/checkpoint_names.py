"""What a checkpoint may name: the classes, functions and methods that a simulation between two blocks is made of.

Of the rooms of the chain every class of values may be named: they compute and do nothing else. Of the front door these
alone, for others there open files and begin processes; of this room none. A test holds the lists against checkpoints of
all kinds of scenarios: what a simulation holds anew is refused until it stands here.
"""

CHAIN_ROOMS = ("relaycast_trie", "relaycast_xcm", "relaycast_pallets", "relaycast_collator", "relaycast_ledger")

FILES_OF_A_RUN = ("relaycast_ledger.run_tables", "relaycast_ledger.event_log", "relaycast_ledger.arrow_columns")

WITH_FILES = ("relaycast_trie.kernels", "relaycast_trie.array.kept_code", "relaycast_trie.engine", *FILES_OF_A_RUN)
"""Modules of theirs that look at what lies on disk, or load the compiler: no value comes from them."""

CODECS = ("relaycast_xcm.codec", "relaycast_xcm.compound")
"""Modules of classes that read attributes by names that they are given: a simulation holds constants of these alone."""

Name = tuple[str, str]

PLAIN = frozenset({("collections", "Counter"), ("collections", "deque"), ("sortedcontainers.sortedlist", "SortedList")})
"""What a simulation holds beside our own classes, and what pickle has opcodes for."""

GETATTR, REBUILD = ("builtins", "getattr"), ("msgspec._utils", "rebuild")
"""How pickle puts bound methods and structs together: functions of the reader stand in their place."""

OF_THE_FRONT_DOOR = frozenset(
    {
        ("relaycast.simulation.batch", "BatchSimulation"),
        ("relaycast.scenario.load_trace", "LoadTrace"),
        *(
            ("relaycast.scenario.message_load", name)
            for name in ("Arrivals", "Bursts", "Lognormal", "MessageLoad", "Poisson", "Trace", "Uniform")
        ),
        ("relaycast.network", "Feed"),
        ("relaycast.network", "Network"),
        ("relaycast.scenario.policy_choice", "PolicyTable"),
        ("relaycast.scenario.recording", "Playback"),
        ("relaycast.simulation.simulation", "Simulation"),
        ("relaycast.simulation.simulation", "Sendings"),
        *(
            ("relaycast.scenario.scenario", name)
            for name in (
                "Grief",
                "ParachainTable",
                "Payment",
                "PublishTable",
                "RelayChainTable",
                "Scenario",
                "SubscriptionTable",
            )
        ),
    }
)

FUNCTIONS = frozenset(
    {
        ("msgspec._core", "UNSET"),
        ("relaycast_pallets.balances.pallet", "AccountData.encode"),
        ("relaycast_pallets.balances.pallet", "_decode_holds"),
        ("relaycast_pallets.balances.pallet", "_encode_holds"),
        ("relaycast_pallets.broadcaster.storage", "PublisherInfo.encode"),
        ("relaycast_pallets.broadcaster.storage", "_decode_cursor"),
        ("relaycast_pallets.broadcaster.storage", "_decode_ttl"),
        ("relaycast_pallets.broadcaster.storage", "_encode_cursor"),
        ("relaycast_pallets.broadcaster.storage", "_encode_ttl"),
        ("relaycast_pallets.frame.system", "ensure_root"),
        ("relaycast_pallets.broadcaster.published_keys", "PublishedKeys.encode"),
    }
)
"""Functions that pallets and their codecs hold, and what stands for a setting that a scenario does not have."""

METHODS = frozenset(
    {
        ("relaycast_pallets.balances.pallet", "AccountData.decode"),
        ("relaycast_pallets.broadcaster.storage", "PublisherInfo.decode"),
        ("relaycast_pallets.subscriber.policies", "EveryRead.relay_node"),
        ("relaycast_pallets.subscriber.policies", "ValuesOnly.relay_node"),
        ("relaycast_pallets.subscriber.policies", "ValuesOnly.relay_value"),
    }
)
"""Methods that they hold bound to an object or to their class."""


def is_of_the_chain(module: str) -> bool:
    """Return whether a module is of the rooms whose classes are values."""
    return module.split(".", 1)[0] in CHAIN_ROOMS and not any(
        module == name or module.startswith(f"{name}.") for name in WITH_FILES
    )


def makes_values(module: str) -> bool:
    """Return whether a checkpoint may name the classes of a module."""
    return is_of_the_chain(module) and module not in CODECS
