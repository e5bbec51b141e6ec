"""Real runtimes for tests: Westend of 2020, Kusama of 2019, and Rococo's Asset Hub, from their genesis states.

In those of tests Alice has funds, and is Asset Hub's only author.
"""

import json
from functools import cache

from genesis_states import genesis
from peers import missing
from relaycast_collator.header import AURA, DigestItem, Header, babe_pre_digest
from relaycast_pallets.frame.state import State
from relaycast_trie.hasher import blake2_128_concat, blake2_256, twox_128
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.scale import encode_compact, encode_u128
from relaycast_wasm.blocks.inherents import relay_inherents
from relaycast_wasm.chain import BuiltBlock, RuntimeChain
from relaycast_wasm.metadata.of_runtime import metadata_of
from relaycast_wasm.parachain import RuntimeParachain
from relaycast_wasm.runtime import WasmRuntime
from relaycast_wasm.transactions.extrinsics import TransactionWriter
from relaycast_wasm.transactions.signing import Signer
from relaycast_xcm import ParaId
from rooms import ROOT
from shared_vectors import unhex
from wasm.text_runtime import text_runtime

CODE = b":code"
FUNDS = 10**18
FIRST_SLOT = 265_000_000
ASSET_HUB = ParaId(1_000)
ALICE, BOB = Signer.dev("Alice"), Signer.dev("Bob")
SPEC = ROOT / ".peers/known-chains/node_modules/@substrate/connect-known-chains/dist/esm/specs/rococo_v2_2_asset_hub.js"


def item(pallet: str, name: str) -> bytes:
    return twox_128(pallet.encode()) + twox_128(name.encode())


@cache
def asset_hub_genesis() -> dict[bytes, bytes]:
    """Return the top trie of Rococo's Asset Hub; skips the test where its chain spec is not there."""
    if not SPEC.is_file():
        missing("@substrate/connect-known-chains is not in .peers/known-chains: .ci/peers installs it")
    text = SPEC.read_text()
    raw = json.loads(text[text.index("`") + 1 : text.rindex("`")])["genesis"]["raw"]
    return {unhex(key): unhex(value) for key, value in raw["top"].items()}


@cache
def top_of(chain: str) -> dict[bytes, bytes]:
    """Return a genesis in which Alice has funds."""
    account = item("System", "Account") + blake2_128_concat(ALICE.public)
    match chain:
        case "westend":
            return genesis(chain) | {account: bytes(5) + encode_u128(FUNDS) + bytes(48)}
        case "kusama":
            key = item("Balances", "FreeBalance") + blake2_256(ALICE.public)
            return genesis(chain) | {key: encode_u128(FUNDS)}
    providers = bytes(8) + b"\x01" + bytes(7)
    authors = encode_compact(1) + ALICE.public
    return asset_hub_genesis() | {
        account: providers + encode_u128(FUNDS) + bytes(48),
        item("Aura", "Authorities"): authors,
        item("AuraExt", "Authorities"): authors,
    }


@cache
def runtime_of(chain: str) -> WasmRuntime:
    return WasmRuntime.load(text_runtime() if chain == "text" else top_of(chain)[CODE])


def state_of(chain: str, *, window: int = 4) -> State:
    return State(top_of(chain), state_version=StateVersion.V0, engine="plain", window=window)


def relay(chain: str) -> RuntimeChain:
    """Return Westend or Kusama at its genesis."""
    return RuntimeChain(runtime_of(chain), state_of(chain))


def asset_hub() -> RuntimeParachain:
    """Return Asset Hub at its genesis; its blocks are sealed by Alice."""
    return RuntimeParachain(ASSET_HUB, runtime_of("asset-hub"), state_of("asset-hub"), seal=sealed_by_alice)


def sealed_by_alice(header: Header) -> DigestItem:
    return DigestItem.seal(AURA, ALICE.sign(header.hash))


def writer(chain: RuntimeChain, genesis_hash: bytes) -> TransactionWriter:
    return TransactionWriter(metadata_of(chain.runtime), chain.runtime.version, genesis_hash)


def digest_of(chain: RuntimeChain) -> DigestItem:
    return babe_pre_digest(authority_index=0, slot=slot_of(chain))


def slot_of(chain: RuntimeChain) -> int:
    return FIRST_SLOT + chain.head.number


def next_block(chain: RuntimeChain, extrinsics: list[bytes] | None = None) -> BuiltBlock:
    """Build a block of Westend or Kusama."""
    inherents = relay_inherents(slot_of(chain), chain.head)
    return chain.build_block(inherents, extrinsics or [], digest=[digest_of(chain)])


def broken(extrinsic: bytes) -> bytes:
    """Return a transaction whose signature no longer fits."""
    at = len(extrinsic) // 2
    return extrinsic[:at] + bytes([extrinsic[at] ^ 1]) + extrinsic[at + 1 :]
