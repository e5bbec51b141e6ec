"""From emulated chains to served ones: their pallets, what their genesis holds for clients, and their runtimes."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from relaycast_collator.parachain import Parachain
from relaycast_collator.relay_chain import RelayChain
from relaycast_node.chain.block_storage import BLOCK_HASH_COUNT, BlockStorage
from relaycast_node.chain.executive import Executive, Given, Inherents
from relaycast_node.chain.inherent_calls import (
    Babe,
    ParachainInfo,
    ParachainSystemCalls,
    ParaInherent,
    Paras,
    heads_given,
    relay_data_given,
)
from relaycast_node.chain.modelled_code import ModelledCode
from relaycast_node.chain.served_chain import PROVABLE_BLOCKS, ServedChain
from relaycast_node.extrinsic.accounts import dev_accounts
from relaycast_node.metadata.declarations import DeclaredConstant, DeclaredPallet, declare
from relaycast_node.metadata.runtime import Runtime, RuntimeNames
from relaycast_node.metadata.runtime_apis import RUNTIME_APIS
from relaycast_pallets import message_queue
from relaycast_pallets.balances import Balances
from relaycast_pallets.frame.system import System
from relaycast_pallets.parachain_system.pallet import ParachainInherentData
from relaycast_pallets.publisher import PublisherPallet
from relaycast_pallets.sudo import Sudo
from relaycast_pallets.timestamp import GENESIS_MILLISECONDS, SLOT_MILLISECONDS, Timestamp
from relaycast_pallets.transaction_payment import TransactionPayment
from relaycast_trie.scale import encode_compact
from relaycast_xcm.primitives import Rust, u16, u32

RuntimeVersion = Annotated[Any, Rust("RuntimeVersion")]

UNIT = 10**10
"""One token in its smallest unit, as the broadcaster's deposit counts it."""

ENDOWMENT = 1_000_000 * UNIT
"""What each development account begins with."""

EXISTENTIAL_DEPOSIT = UNIT // 100


@dataclass(frozen=True, slots=True)
class Token:
    """What clients print amounts with."""

    symbol: str = "UNIT"
    decimals: int = 10
    ss58_format: int = 42

    def properties(self) -> dict[str, int | str]:
        """Return what ``system_properties`` says."""
        return {"ss58Format": self.ss58_format, "tokenDecimals": self.decimals, "tokenSymbol": self.symbol}


@dataclass(slots=True)
class ModelledTime:
    """The time of blocks: a slot for each block since the genesis, and an ``offset`` in milliseconds."""

    offset: int = 0

    def of_block(self, number: int) -> int:
        """Return the time of a block in milliseconds since 1970, if it is the next one."""
        return GENESIS_MILLISECONDS + number * SLOT_MILLISECONDS + self.offset

    def go_on_from(self, now: int) -> None:
        """Let the first block follow on a state that was left at the time ``now``."""
        self.offset = max(self.offset, now - GENESIS_MILLISECONDS)


class _Common:
    """The pallets that every served chain has beside its own."""

    def __init__(self, system: System, balances: Balances, time: ModelledTime) -> None:
        self.time = time
        self.system = system
        self.balances = balances
        self.timestamp = Timestamp(system)
        self.payment = TransactionPayment(balances)
        self.sudo = Sudo(system)
        self.blocks = BlockStorage(system.state)

    def declared(self, token: Token, names: RuntimeNames) -> list[DeclaredPallet]:
        system = declare("System", 0, self.system)
        apis = [(api.id, api.version) for api in RUNTIME_APIS]
        system.constants += [
            DeclaredConstant("Version", RuntimeVersion, {**asdict(names), "apis": apis}),
            DeclaredConstant("BlockHashCount", u32, BLOCK_HASH_COUNT),
            DeclaredConstant("SS58Prefix", u16, token.ss58_format),
        ]
        return [
            system,
            declare("Timestamp", 1, self.timestamp),
            declare("Balances", 2, self.balances),
            declare("TransactionPayment", 3, self.payment),
            declare("Sudo", 255, self.sudo),
        ]

    @property
    def holders(self) -> list[object]:
        """Objects with storage items."""
        return [self.system, self.blocks, self.timestamp, self.balances, self.payment, self.sudo]

    def write_genesis(self, names: RuntimeNames) -> None:
        accounts = dev_accounts()
        for pair in accounts.values():
            self.balances.mint(pair.account, ENDOWMENT)
        self.sudo.key.put(accounts["//Alice"].account)
        self.payment.build_genesis()
        self.blocks.put_code()
        name = names.spec_name.encode()
        self.blocks.last_runtime_upgrade.put(encode_compact(names.spec_version) + encode_compact(len(name)) + name)

    def time_given(self, runtime: Runtime) -> Given:
        return Given(runtime.encode_call("Timestamp", "set", now=self.time.of_block(self.system.block_number)))


def serve_relay_chain(
    relay: RelayChain, name: str, *, token: Token | None = None, time: ModelledTime | None = None
) -> ServedChain:
    """Let a relay chain at block 0 be served: its genesis is sealed anew with what clients read."""
    token, names = token or Token(), RuntimeNames("relaycast-relay")
    relay.balances.existential_deposit = EXISTENTIAL_DEPOSIT
    common = _Common(relay.system, relay.balances, time or ModelledTime())
    traps = relay.executor.trap
    declared = [
        *common.declared(token, names),
        declare("Babe", 10),
        declare("Paras", 11),
        declare("ParaInherent", 12, ParaInherent()),
        declare("Dmp", 13),
        declare("Hrmp", 14),
        declare("MessageQueue", 15, modules=[message_queue]),
        declare("XcmPallet", 16, traps),
        declare("Broadcaster", 200, relay.broadcaster),
    ]
    holders = [
        *common.holders, Babe(relay.state), Paras(relay.state), relay.dmp, relay.hrmp, traps, relay.broadcaster
    ]  # fmt: skip
    runtime = Runtime(names, declared, holders)

    def inherents(_: ParachainInherentData | None) -> Iterable[Given]:
        return common.time_given(runtime), heads_given(runtime, relay)

    executive = _executive(runtime, common, inherents)
    common.time.go_on_from(common.timestamp.now)
    common.write_genesis(names)
    relay.state.keep(PROVABLE_BLOCKS)
    relay.seal_genesis()
    relay.body = executive
    code, properties = ModelledCode(executive), token.properties()
    return ServedChain(name, relay.head.header, relay.state, code, executive, properties=properties)


def serve_parachain(
    chain: Parachain, name: str, *, token: Token | None = None, time: ModelledTime | None = None
) -> ServedChain:
    """Let a parachain at block 0 be served: its genesis is sealed anew with what clients read."""
    token, names = token or Token(), RuntimeNames("relaycast-parachain")
    balances = Balances(chain.system, existential_deposit=EXISTENTIAL_DEPOSIT)
    common = _Common(chain.system, balances, time or ModelledTime())
    publisher = PublisherPallet(chain.system, lambda key, value, ttl: chain.publish(key, value, ttl=ttl))
    declared = [
        *common.declared(token, names),
        declare("ParachainSystem", 10, ParachainSystemCalls()),
        declare("ParachainInfo", 11),
        declare("Subscriber", 50, chain.subscriber),
        declare("Publisher", 51, publisher),
    ]
    info = ParachainInfo(chain.state)
    runtime = Runtime(names, declared, [*common.holders, chain.parachain_system, info, chain.subscriber])

    def inherents(inherent: ParachainInherentData | None) -> Iterable[Given]:
        assert inherent is not None, "a parachain's block has validation data"
        return relay_data_given(runtime, inherent), common.time_given(runtime)

    executive = _executive(runtime, common, inherents)
    common.write_genesis(names)
    info.parachain_id.put(chain.para_id)
    chain.state.keep(PROVABLE_BLOCKS)
    chain.seal_genesis()
    chain.body = executive
    code, properties = ModelledCode(executive), token.properties()
    return ServedChain(name, chain.head, chain.state, code, executive, para_id=chain.para_id, properties=properties)


def _executive(runtime: Runtime, common: _Common, inherents: Inherents) -> Executive:
    return Executive(
        runtime,
        system=common.system,
        timestamp=common.timestamp,
        payment=common.payment,
        blocks=common.blocks,
        inherents=inherents,
    )
