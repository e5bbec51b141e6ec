"""Messages as JSON and bytes, and bytes that are none: each instruction, each bound, random messages, cut bytes."""

from collections.abc import Iterator
from random import Random

from relaycast.vectors.vector import VectorSource, hexed, scenario
from relaycast.vectors.xcm.xcm_run import message_json
from relaycast.vectors.xcm.xcm_vector import XcmBytes, XcmMalformed, XcmVector
from relaycast_trie.scale import encode_bytes, encode_compact
from relaycast_xcm import Location
from relaycast_xcm.assets import All, AllCounted, AllOf, AllOfCounted, Asset, Definite, Wild, WildFungibility, assets
from relaycast_xcm.instructions import (
    BuyExecution,
    ClearError,
    ClearOrigin,
    ClearTopic,
    DepositAsset,
    DescendOrigin,
    Instruction,
    OriginKind,
    PayFees,
    Publish,
    RefundSurplus,
    SetAppendix,
    SetErrorHandler,
    SetTopic,
    Transact,
    TransferAsset,
    Trap,
    UnpaidExecution,
    WithdrawAsset,
)
from relaycast_xcm.junctions import (
    AccountId32,
    AccountIndex64,
    AccountKey20,
    AtLeastProportion,
    BodyIndex,
    BodyName,
    BodyVoice,
    ByFork,
    ByGenesis,
    Ethereum,
    Fraction,
    GeneralIndex,
    GeneralKey,
    GlobalConsensus,
    Junction,
    Members,
    Moniker,
    MoreThanProportion,
    NetworkName,
    OnlyChild,
    PalletInstance,
    Parachain,
    Plurality,
)
from relaycast_xcm.message import V5
from relaycast_xcm.primitives import U64_MAX, U128_MAX, Weight

HERE, PARENT = Location.here(), Location.parent()
TOPIC = bytes([7]) * 32
PUBLISH = Publish(bytes(32), b"\x01\x02\x03", 0)
COMPACT_BOUNDS = (0, 1, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, (1 << 32) - 1)
RANDOM_MESSAGES = 40


def vectors(seed: int) -> Iterator[XcmVector]:
    """Yield the vectors; random messages are drawn from ``seed``."""
    yield from _publications()
    yield from _instructions()
    yield from _junctions()
    yield from _nested()
    yield from _random_messages(seed)
    yield from _malformed()
    yield from _cut()


def _bytes(name: str, why: str, source: VectorSource, *message: Instruction) -> XcmBytes:
    encoded = V5.encode(message)
    return XcmBytes(
        id=f"xcm/bytes/{name}", why=why, source=source, message=message_json(encoded), encoded=hexed(encoded)
    )


def _publications() -> Iterator[XcmVector]:
    published = scenario("XCM Publish Instruction / Successful publish")
    yield _bytes("publish", "the instruction of the scenario", published, PUBLISH)
    for length in (0, 1, 63, 64, 1_024, 2_048):
        yield _bytes(
            f"publish-length-{length}",
            f"a value of {length} bytes and the compact length before it",
            VectorSource(trap="compact lengths"),
            Publish(bytes([0xAB]) * 32, bytes(length), 100),
        )
    for ttl in (1, 0x0102_0304, (1 << 32) - 1):
        yield _bytes(
            f"publish-ttl-{ttl}",
            "a time to live is a u32 of fixed size, little-endian",
            scenario("XCM Publish Instruction / Publish with finite TTL"),
            Publish(bytes(range(32)), b"\x01", ttl),
        )
    for count in (0, 2, 16, 63, 64, 100):
        yield _bytes(
            f"publish-times-{count}",
            f"{count} instructions: a decoder takes up to 100",
            VectorSource(upstream="publish_from_parachain_works"),
            *(Publish(bytes([at]) * 32, b"", 0) for at in range(count)),
        )


def _instructions() -> Iterator[XcmVector]:
    source = VectorSource(upstream="staging-xcm v5 Instruction")
    two = assets([Asset.fungible(HERE, 10), Asset.fungible(Location.parachain(1_000), 7)])
    limit = Weight(1_000_000_000, 65_536)
    each: dict[str, Instruction] = {
        "withdraw-asset": WithdrawAsset(two),
        "withdraw-nothing": WithdrawAsset(()),
        "withdraw-20": WithdrawAsset(assets(Asset.fungible(Location.parachain(at), 1) for at in range(20))),
        "transfer-asset": TransferAsset(two, Location.parachain(2_000)),
        "transact": Transact(OriginKind.NATIVE, None, b"\x01\x02"),
        "transact-weight": Transact(OriginKind.XCM, Weight(5, 6), bytes(70)),
        "transact-sovereign": Transact(OriginKind.SOVEREIGN_ACCOUNT, None, b""),
        "transact-superuser": Transact(OriginKind.SUPERUSER, Weight(U64_MAX, 0), b"\xff"),
        "clear-origin": ClearOrigin(),
        "descend-origin": DescendOrigin((PalletInstance(50),)),
        "descend-nowhere": DescendOrigin(()),
        "deposit-definite": DepositAsset(Definite(two), Location.account(TOPIC)),
        "deposit-all": DepositAsset(Wild(All()), PARENT),
        "deposit-all-of": DepositAsset(Wild(AllOf(HERE, WildFungibility.NON_FUNGIBLE)), PARENT),
        "deposit-all-counted": DepositAsset(Wild(AllCounted(1)), Location.sibling(2_000)),
        "deposit-all-of-counted": DepositAsset(Wild(AllOfCounted(PARENT, WildFungibility.FUNGIBLE, 70)), HERE),
        "buy-execution": BuyExecution(Asset.fungible(HERE, 1), None),
        "buy-execution-limited": BuyExecution(Asset.fungible(PARENT, U128_MAX), limit),
        "refund-surplus": RefundSurplus(),
        "clear-error": ClearError(),
        "trap": Trap(0),
        "trap-u64": Trap(U64_MAX),
        "set-topic": SetTopic(TOPIC),
        "clear-topic": ClearTopic(),
        "unpaid-execution": UnpaidExecution(),
        "unpaid-execution-limited": UnpaidExecution(limit, Location.parachain(1_000)),
        "pay-fees": PayFees(Asset.fungible(HERE, 12_345)),
    }
    for name, instruction in each.items():
        yield _bytes(name, f"{type(instruction).__name__} alone", source, instruction)
    for amount in (1, 63, 64, 1 << 30, U64_MAX, 1 << 64, U128_MAX):
        withdrawn = WithdrawAsset((Asset.fungible(HERE, amount),))
        yield _bytes(f"amount-{amount}", f"an amount of {amount} as a compact number", source, withdrawn)


def _junctions() -> Iterator[XcmVector]:
    source = VectorSource(upstream="staging-xcm v5 Junction")
    account = bytes(range(32))
    each: dict[str, Junction] = {
        **{f"parachain-{para_id}": Parachain(para_id) for para_id in COMPACT_BOUNDS},
        "account-32": AccountId32(None, account),
        "account-32-polkadot": AccountId32(NetworkName.POLKADOT, account),
        "account-32-genesis": AccountId32(ByGenesis(TOPIC), account),
        "account-index": AccountIndex64(NetworkName.KUSAMA, U64_MAX),
        "account-20": AccountKey20(Ethereum(1), bytes(range(20))),
        "pallet": PalletInstance(255),
        "index": GeneralIndex(U128_MAX),
        "key": GeneralKey(3, b"abc".ljust(32, b"\x00")),
        "only-child": OnlyChild(),
        "treasury": Plurality(BodyName.TREASURY, BodyVoice.VOICE),
        "moniker": Plurality(Moniker(b"\x01\x02\x03\x04"), Members(3)),
        "body-index": Plurality(BodyIndex(64), Fraction(1, 2)),
        "unit": Plurality(BodyName.UNIT, AtLeastProportion(2, 3)),
        "executive": Plurality(BodyName.EXECUTIVE, MoreThanProportion(1, 1 << 30)),
        "consensus-polkadot": GlobalConsensus(NetworkName.POLKADOT),
        "consensus-fork": GlobalConsensus(ByFork(1 << 40, TOPIC)),
        "consensus-bitcoin": GlobalConsensus(NetworkName.BITCOIN_CORE),
        "consensus-cash": GlobalConsensus(NetworkName.BITCOIN_CASH),
        "consensus-bulletin": GlobalConsensus(NetworkName.POLKADOT_BULLETIN),
        "consensus-ethereum": GlobalConsensus(Ethereum(11_155_111)),
    }
    for name, junction in each.items():
        yield _bytes(f"junction-{name}", f"{type(junction).__name__} in an origin", source, DescendOrigin((junction,)))
    for count in range(2, 9):
        steps = tuple(GeneralIndex(at) for at in range(count))
        yield _bytes(f"interior-{count}", f"X{count}: {count} junctions", source, DescendOrigin(steps))
    yield _bytes(
        "parents-255", "as many parents as a u8 counts", source, UnpaidExecution(None, Location.new(255, OnlyChild()))
    )


def _nested() -> Iterator[XcmVector]:
    depth = VectorSource(trap="containers nest at most 8 deep")
    count = VectorSource(trap="nested instructions are counted, at most 100")
    yield _bytes("nested", "a handler and an appendix", depth, SetErrorHandler((Trap(1),)), SetAppendix((PUBLISH,)))
    deep: tuple[Instruction, ...] = (ClearOrigin(),)
    for _ in range(7):
        deep = (SetAppendix(deep),)
    yield _bytes("nested-8", "eight messages inside one another", depth, *deep)
    beside = (DescendOrigin((PalletInstance(1),)), WithdrawAsset((Asset.fungible(HERE, 1),)), SetAppendix((PUBLISH,)))
    yield _bytes("nested-beside", "nine containers beside one another", depth, *(beside * 3))
    left = b"\x0b\x01\x04\x01" * 3 + b"\x16\x04\x0a" * 3
    deeper = b"\x05" + encode_compact(7) + left + (b"\x16" + encode_compact(1)) * 8 + b"\x0a"
    yield _malformed_bytes("nested-9-after-others", "nine deep, behind others that ended", depth, deeper)
    too_deep = b"\x05" + (encode_compact(1) + b"\x16") * 8 + encode_compact(1) + b"\x0a"
    yield _malformed_bytes("nested-9", "nine messages inside one another", depth, too_deep)
    interior = b"\x05" + (encode_compact(1) + b"\x16") * 7 + encode_compact(1) + b"\x0b\x01\x00\x04"
    yield _malformed_bytes("nested-interior", "an interior is the ninth container", depth, interior)
    hundred = SetAppendix(tuple(ClearOrigin() for _ in range(99)))
    yield _bytes("count-100", "one instruction with 99 inside", count, hundred)
    many = b"\x05" + encode_compact(1) + b"\x16" + encode_compact(100) + b"\x0a" * 100
    yield _malformed_bytes("count-101", "one instruction with 100 inside", count, many)
    flat = b"\x05" + encode_compact(101) + b"\x0a" * 101
    yield _malformed_bytes("count-101-flat", "101 instructions one after another", count, flat)
    yield _malformed_bytes(
        "count-announced", "a count of 2^30 and nothing behind it", count, b"\x05" + encode_compact(1 << 30)
    )


def _random_messages(seed: int) -> Iterator[XcmVector]:
    for number in range(RANDOM_MESSAGES):
        random = Random(f"xcm {seed} {number}")  # noqa: S311 - vectors, no secrets
        message = [_drawn(random) for _ in range(random.randrange(1, 6))]
        yield _bytes(f"random-{number}", f"a random message, number {number}", VectorSource(trap="encoding"), *message)


def _drawn(random: Random) -> Instruction:
    amount = random.getrandbits(random.choice((4, 12, 40, 100))) + 1
    fee = Asset.fungible(_place(random), amount)
    weight = Weight(random.getrandbits(40), random.getrandbits(20))
    return random.choice(
        (
            Publish(random.randbytes(32), random.randbytes(random.choice((0, 5, 40, 90))), random.getrandbits(32)),
            Publish(random.randbytes(32), random.randbytes(random.choice((0, 5, 40, 90))), 0),
            WithdrawAsset(assets([fee, Asset.fungible(_place(random), 5)])),
            TransferAsset((fee,), _place(random)),
            DepositAsset(Wild(AllCounted(random.randrange(90))), _place(random)),
            BuyExecution(fee, random.choice((None, weight))),
            UnpaidExecution(random.choice((None, weight)), random.choice((None, _place(random)))),
            DescendOrigin(_place(random).interior),
            SetAppendix((RefundSurplus(), DepositAsset(Wild(All()), _place(random)))),
            Trap(random.getrandbits(random.choice((5, 60)))),
            SetTopic(random.randbytes(32)),
            Transact(OriginKind.NATIVE, random.choice((None, weight)), random.randbytes(random.randrange(80))),
        )
    )


def _place(random: Random) -> Location:
    steps = [
        Parachain(random.getrandbits(random.choice((6, 14, 32)))),
        AccountId32(random.choice((None, NetworkName.KUSAMA)), random.randbytes(32)),
        PalletInstance(random.randrange(256)),
        GeneralIndex(random.getrandbits(random.choice((6, 70)))),
    ]
    return Location.new(random.randrange(3), random.sample(steps, random.randrange(4)))


def _malformed_bytes(name: str, why: str, source: VectorSource, encoded: bytes) -> XcmMalformed:
    return XcmMalformed(id=f"xcm/malformed/{name}", why=why, source=source, encoded=hexed(encoded))


def _malformed() -> Iterator[XcmVector]:
    source = VectorSource(trap="bytes that do not decode")
    key = bytes(32)
    one = b"\x05\x04"
    here_asset = b"\x00\x00\x00"
    each: dict[str, tuple[str, bytes]] = {
        "empty": ("no byte", b""),
        "version-4": ("version 4", b"\x04\x04\x0a"),
        "version-6": ("version 6", b"\x06\x04\x0a"),
        "no-count": ("a version alone", b"\x05"),
        "no-instruction": ("one instruction announced", one),
        "left-over": ("a byte behind the message", one + b"\x0a\x00"),
        "instruction-53": ("the first index behind Publish", one + b"\x35"),
        "instruction-255": ("the last index", one + b"\xff"),
        "count-padded": ("a count in two bytes that fits one", b"\x05\x05\x00\x0a"),
        "value-padded": (
            "a value's length in two bytes that fits one",
            one + b"\x34" + key + b"\x05\x00\x01" + bytes(4),
        ),
        "value-2049": ("a value of 2,049 bytes", one + b"\x34" + key + encode_bytes(bytes(2_049)) + bytes(4)),
        "value-announced": ("a value of 2,049 bytes, cut off", one + b"\x34" + key + encode_compact(2_049) + bytes(9)),
        "ttl-cut": ("three bytes of a time to live", one + b"\x34" + key + b"\x04\x01" + bytes(3)),
        "key-cut": ("31 bytes of a key", one + b"\x34" + bytes(31)),
        "interior-9": ("nine junctions", one + b"\x0b\x09" + b"\x04\x01" * 9),
        "junction-10": ("a junction that V5 does not have", one + b"\x0b\x01\x0a"),
        "network-4": ("a network that V5 no longer has", one + b"\x0b\x01\x09\x04"),
        "network-11": ("a network that V5 does not have", one + b"\x0b\x01\x09\x0b"),
        "parachain-padded": ("an id of 63 in two bytes", one + b"\x0b\x01\x00\xfd\x00"),
        "parachain-u33": ("an id of 2^32", one + b"\x0b\x01\x00\x07\x00\x00\x00\x00\x01"),
        "body-10": ("a body that V5 does not have", one + b"\x0b\x01\x08\x0a\x00"),
        "part-5": ("a part that V5 does not have", one + b"\x0b\x01\x08\x00\x05"),
        "option-2": ("an Option that is neither there nor not", one + b"\x2f\x00\x02"),
        "weight-limit-2": ("a third kind of weight limit", one + b"\x2f\x02"),
        "origin-kind-4": ("a fifth kind of origin", one + b"\x06\x04\x00\x00"),
        "amount-zero": ("an asset of amount 0", one + b"\x00\x04" + here_asset + b"\x00"),
        "amount-padded-5": (
            "an amount of 2^31 in five bytes",
            one + b"\x00\x04" + here_asset + b"\x07\x00\x00\x00\x80\x00",
        ),
        "amount-padded-4": ("an amount of 1 in four bytes", one + b"\x00\x04" + here_asset + b"\x03\x01\x00\x00\x00"),
        "amount-padded-8": ("an amount of 1 in eight bytes", one + b"\x00\x04" + here_asset + b"\x13\x01" + bytes(7)),
        "parachain-padded-4": ("an id of 2^14 - 1 in four bytes", one + b"\x0b\x01\x00\xfe\xff\x00\x00"),
        "amount-u129": ("an amount of 2^128", one + b"\x00\x04" + here_asset + b"\x37" + bytes(16) + b"\x01"),
        "assets-21": ("21 assets", one + b"\x00" + encode_compact(21) + _many_assets(21)),
        "assets-repeated": ("one id twice", one + b"\x00\x08" + (here_asset + b"\x04") * 2),
        "assets-unsorted": ("ids that descend", one + b"\x00\x08\x01\x00\x00\x04" + here_asset + b"\x04"),
        "filter-2": ("a third kind of filter", one + b"\x0d\x02"),
        "wild-4": ("a fifth wildcard", one + b"\x0d\x01\x04"),
        "trap-u65": ("a code of 2^64", one + b"\x19\x17" + bytes(8) + b"\x01"),
        "topic-cut": ("31 bytes of a topic", one + b"\x2c" + bytes(31)),
    }
    for name, (why, encoded) in each.items():
        yield _malformed_bytes(name, why, source, encoded)


def _many_assets(count: int) -> bytes:
    return b"".join(b"\x00\x01\x00" + encode_compact(para_id) + b"\x00\x04" for para_id in range(count))


def _cut() -> Iterator[XcmVector]:
    whole = V5.encode((DescendOrigin((Parachain(2_000),)), Publish(TOPIC, b"\x01\x02", 9), SetTopic(TOPIC)))
    for length in range(2, len(whole), 7):
        yield _malformed_bytes(
            f"cut-{length}",
            f"the first {length} of {len(whole)} bytes of a message",
            VectorSource(trap="bytes that do not decode"),
            whole[:length],
        )
