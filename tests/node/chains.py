"""Served chains for tests: a relay chain with two parachains, and signed calls to them."""

from typing import Any

from relaycast_collator import ChainSimulator
from relaycast_node.chain.modelled_code import ModelledCode
from relaycast_node.chain.served_block import ServedBlock
from relaycast_node.chain.served_chain import ServedChain
from relaycast_node.chain_clock import ChainClock
from relaycast_node.extrinsic.accounts import KeyPair, dev_account
from relaycast_node.extrinsic.era import IMMORTAL, Era
from relaycast_node.extrinsic.extrinsic import Extra, Implicit, sign

ALICE, BOB = dev_account("Alice"), dev_account("Bob")
PUBLISHER, READER = 2_000, 3_000


def live_chains(**options: Any) -> ChainClock:
    """Return chains at block 0, with a publisher that nobody has registered and a reader without subscriptions."""
    chains = ChainSimulator()
    chains.add_parachain(PUBLISHER)
    chains.add_parachain(READER)
    return ChainClock(chains, chains.step, **options)


def modelled(chain: ServedChain) -> ModelledCode:
    assert isinstance(chain.code, ModelledCode)
    return chain.code


def signed(chain: ServedChain, pair: KeyPair, call: bytes, **extra: Any) -> bytes:
    """Return a call signed for the next block."""
    era: Era = extra.pop("era", IMMORTAL)
    nonce = extra.pop("nonce", None)
    birth = chain.hash_of(era.birth(chain.best.number + 1))
    names = modelled(chain).runtime.names
    assert birth is not None
    implicit = Implicit(names.spec_version, names.transaction_version, chain.genesis_hash, birth)
    number = chain.pool.next_nonce(pair.account) if nonce is None else nonce
    return sign(pair, call, Extra(number, era=era, **extra), implicit).encode()


def submit(chain: ServedChain, pair: KeyPair, pallet: str, name: str, /, **args: Any) -> bytes:
    """Sign a call, give it to the pool, and return the extrinsic."""
    extra = {"nonce": args.pop("nonce")} if "nonce" in args else {}
    data = signed(chain, pair, modelled(chain).runtime.encode_call(pallet, name, **args), **extra)
    chain.submit(data)
    return data


def sudo(chain: ServedChain, pallet: str, name: str, /, **args: Any) -> bytes:
    """Let Alice make a call as governance."""
    return submit(chain, ALICE, "Sudo", "sudo", call=(pallet, (name, args)))


def address(pair: KeyPair) -> tuple[str, bytes]:
    return "Id", pair.account


def events_of(chain: ServedChain, block: ServedBlock | None = None) -> list[tuple[str, str, Any]]:
    """Return what a block's state says happened: pallet, event and fields, as a client decodes them."""
    state = chain.state_at((block or chain.best).hash)
    prefix = modelled(chain).executive.blocks.events.storage_key()
    records = modelled(chain).runtime.decode("Vec<EventRecord<RuntimeEvent, H256>>", state.get(prefix) or b"\x00")
    return [(pallet, *event) for pallet, event in (it["event"] for it in records)]


def last_events(chain: ServedChain, extrinsic: bytes) -> list[tuple[str, str, Any]]:
    """Return the events of an extrinsic that stands in the newest block."""
    index = chain.best.extrinsics.index(extrinsic)
    state = chain.state_at(chain.best.hash)
    raw = state.get(modelled(chain).executive.blocks.events.storage_key()) or b"\x00"
    records = modelled(chain).runtime.decode("Vec<EventRecord<RuntimeEvent, H256>>", raw)
    of_it = (it["event"] for it in records if it["phase"] == ("ApplyExtrinsic", index))
    return [(pallet, *event) for pallet, event in of_it]
