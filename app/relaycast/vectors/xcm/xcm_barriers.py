"""Questions to barriers: each rule and its boundary, the order of the rules, chains and what wraps barriers."""

from collections.abc import Iterator
from typing import Any

from relaycast.vectors.vector import VectorSource, VectorWeight, hexed, plain_json, scenario
from relaycast.vectors.xcm.xcm_vector import XcmBarrier, XcmBarrierAsked, XcmFilter, XcmVector
from relaycast_xcm import Location
from relaycast_xcm.assets import AllCounted, Asset, Wild, assets
from relaycast_xcm.instructions import (
    BuyExecution,
    ClearOrigin,
    DepositAsset,
    DescendOrigin,
    Instruction,
    PayFees,
    Publish,
    SetTopic,
    TransferAsset,
    UnpaidExecution,
    WithdrawAsset,
)
from relaycast_xcm.junctions import AccountId32, PalletInstance, Parachain
from relaycast_xcm.message import V5
from relaycast_xcm.primitives import Weight

HERE, PARENT = Location.here(), Location.parent()
PARA_1000, PARA_2000 = Location.parachain(1_000), Location.parachain(2_000)
ACCOUNT = AccountId32(None, bytes([1]) * 32)
TOPIC = bytes([7]) * 32
WEIGHT = Weight(10, 10)
FUNDS = assets([Asset.fungible(HERE, 100)])
DEPOSIT = DepositAsset(Wild(AllCounted(1)), PARA_2000)
TRANSFER = TransferAsset(FUNDS, PARA_1000)
BUY = BuyExecution(FUNDS[0], None)

EVERYTHING = XcmFilter("Everything")
PLACES = {
    "relay": HERE,
    "parent": PARENT,
    "system": PARA_1000,
    "last-system": Location.parachain(1_999),
    "public": PARA_2000,
    "sibling": Location.sibling(2_000),
    "inside": Location.new(0, (Parachain(2_000), ACCOUNT)),
    "account": Location.new(0, ACCOUNT),
}


def vectors(seed: int) -> Iterator[XcmVector]:
    """Yield the vectors; none is drawn from ``seed``."""
    del seed
    yield from _scenarios()
    yield from _publish_rules()
    yield from _filters()
    yield from _paid()
    yield from _unpaid()
    yield from _credit()
    yield from _wrapped()
    yield from _chains()


def location_json(place: Location) -> Any:
    """Return a location as vectors spell it."""
    return plain_json(place.to_json())


def allow_publish(maximum: int = 16, origins: XcmFilter = EVERYTHING) -> XcmBarrier:
    return XcmBarrier("AllowPublishFrom", origins, max_instructions=maximum)


def chain(*inner: XcmBarrier) -> XcmBarrier:
    return XcmBarrier("Chain", inner=list(inner))


def publish(count: int = 1) -> list[Instruction]:
    return [Publish(bytes([at]) * 32, b"value", 0) for at in range(count)]


def _asked(
    name: str,
    why: str,
    source: VectorSource,
    barrier: XcmBarrier,
    message: list[Instruction],
    *,
    origin: Location = PARA_2000,
    weight: Weight = WEIGHT,
    credit: Weight = Weight.ZERO,
) -> XcmBarrierAsked:
    return XcmBarrierAsked(
        id=f"xcm/barrier/{name}",
        why=why,
        source=source,
        barrier=barrier,
        origin=location_json(origin),
        message=hexed(V5.encode(message)),
        weight=VectorWeight.of(weight),
        credit=VectorWeight.of(credit),
    )


def _scenarios() -> Iterator[XcmVector]:
    one_chain = XcmFilter("Equals", [location_json(PARA_1000)])
    paid = XcmBarrier("AllowTopLevelPaidExecutionFrom", EVERYTHING)
    asked: list[tuple[str, str, XcmBarrier, list[Instruction]]] = [
        ("single", "Barrier allows single Publish instruction", allow_publish(), publish()),
        ("several", "Barrier allows multiple Publish instructions within limit", allow_publish(), publish(3)),
        ("too-many", "Barrier rejects too many Publish instructions", allow_publish(4), publish(5)),
        ("exactly", "Barrier allows exactly max Publish instructions", allow_publish(4), publish(4)),
        (
            "mixed",
            "Barrier rejects Publish mixed with other instructions",
            allow_publish(),
            [*publish(), DEPOSIT],
        ),
        ("other", "Barrier rejects non-Publish messages", allow_publish(), [TRANSFER]),
        ("origin", "Barrier filters by origin", allow_publish(16, one_chain), publish()),
        ("chain", "Barrier combined with other barriers", chain(allow_publish(), paid), publish()),
    ]
    for name, title, barrier, message in asked:
        source = scenario(f"AllowPublishFrom Barrier / {title}")
        yield _asked(f"scenario-{name}", f"the scenario: {title}", source, barrier, message)


def _publish_rules() -> Iterator[XcmVector]:
    order = VectorSource(trap="the order of the barrier's checks")
    for limit in (0, 1, 16):
        for count in sorted({0, 1, limit, limit + 1}):
            yield _asked(
                f"publish-{count}-of-{limit}",
                f"{count} instructions where {limit} are allowed",
                VectorSource(upstream="allow_publish_from_rejects_exceeding_max_publish"),
                allow_publish(limit),
                publish(count),
            )
    nobody = allow_publish(1, XcmFilter("Nothing"))
    yield _asked("order-origin-empty", "the origin is checked before emptiness", order, nobody, [])
    yield _asked("order-origin-length", "the origin is checked before the length", order, nobody, publish(2))
    mixed = [*publish(), DEPOSIT]
    yield _asked("order-length-form", "the length is checked before the form", order, allow_publish(1), mixed)
    for at in range(3):
        message = publish(2)
        message.insert(at, ClearOrigin())
        yield _asked(
            f"other-at-{at}",
            f"another instruction at place {at}",
            VectorSource(upstream="allow_publish_from_rejects_other_before_publish"),
            allow_publish(),
            message,
        )
    topic = [*publish(), SetTopic(TOPIC)]
    yield _asked(
        "topic",
        "a topic is another instruction",
        VectorSource(upstream="allow_publish_from_rejects_publish_with_other_instructions"),
        allow_publish(),
        topic,
    )


def _filters() -> Iterator[XcmVector]:
    source = VectorSource(upstream="only_parachains_filter_works")
    filters = {
        "only-parachains": XcmFilter("OnlyParachains"),
        "system": XcmFilter("IsChildSystemParachain"),
        "everything": EVERYTHING,
        "nothing": XcmFilter("Nothing"),
        "is-in": XcmFilter("IsIn", [location_json(PLACES["relay"]), location_json(PLACES["sibling"])]),
    }
    for name, chosen in filters.items():
        for place, origin in PLACES.items():
            if name in {"everything", "nothing"} and place not in {"relay", "inside"}:
                continue
            yield _asked(
                f"filter-{name}-{place}",
                f"the filter {chosen.filter} is asked about {origin}",
                source,
                allow_publish(16, chosen),
                publish(),
                origin=origin,
            )


def _paid() -> Iterator[XcmVector]:
    source = VectorSource(upstream="AllowTopLevelPaidExecutionFrom")
    paid = XcmBarrier("AllowTopLevelPaidExecutionFrom", EVERYTHING)
    withdraw = WithdrawAsset(FUNDS)
    three = WithdrawAsset(assets(Asset.fungible(Location.parachain(at), 1) for at in (1, 2, 3)))
    descend = DescendOrigin((PalletInstance(1),))
    each: dict[str, list[Instruction]] = {
        "empty": [],
        "no-withdrawal": [BUY],
        "only-withdrawal": [withdraw],
        "bought": [withdraw, BUY, *publish()],
        "bought-limited": [withdraw, BuyExecution(FUNDS[0], WEIGHT), *publish()],
        "bought-more": [withdraw, BuyExecution(FUNDS[0], Weight(99, 99)), *publish()],
        "bought-less-time": [withdraw, BuyExecution(FUNDS[0], Weight(9, 99)), *publish()],
        "bought-less-proof": [withdraw, BuyExecution(FUNDS[0], Weight(99, 9)), *publish()],
        "fees": [withdraw, PayFees(FUNDS[0]), *publish()],
        "two-assets": [WithdrawAsset(three.assets[:2]), BUY],
        "three-assets": [three, BUY],
        "cleared": [withdraw, ClearOrigin(), BUY],
        "descended": [withdraw, descend, BUY],
        "descended-nowhere": [withdraw, DescendOrigin(()), BUY],
        "late": [withdraw, ClearOrigin(), descend, ClearOrigin(), BUY],
        "too-late": [withdraw, ClearOrigin(), descend, ClearOrigin(), descend, BUY],
        "something-before": [withdraw, *publish(), BUY],
    }
    for name, message in each.items():
        yield _asked(f"paid-{name}", f"a message that pays or not: {name}", source, paid, message)
    nobody = XcmBarrier("AllowTopLevelPaidExecutionFrom", XcmFilter("Nothing"))
    yield _asked("paid-origin", "the origin comes first", source, nobody, [withdraw, BUY])


def _unpaid() -> Iterator[XcmVector]:
    source = VectorSource(upstream="AllowExplicitUnpaidExecutionFrom")
    explicit = XcmBarrier("AllowExplicitUnpaidExecutionFrom", XcmFilter("IsChildSystemParachain"))
    each: dict[str, list[Instruction]] = {
        "empty": [],
        "unlimited": [UnpaidExecution(), TRANSFER],
        "exact": [UnpaidExecution(WEIGHT), TRANSFER],
        "less-time": [UnpaidExecution(Weight(9, 10)), TRANSFER],
        "less-proof": [UnpaidExecution(Weight(10, 9)), TRANSFER],
        "other-first": [TRANSFER, UnpaidExecution()],
        "checks-origin": [UnpaidExecution(None, PARENT), TRANSFER],
    }
    for name, message in each.items():
        yield _asked(f"unpaid-{name}", f"a system parachain asks: {name}", source, explicit, message, origin=PARA_1000)
    yield _asked("unpaid-public", "a public parachain may not", source, explicit, [UnpaidExecution(), TRANSFER])
    free = XcmBarrier("AllowUnpaidExecutionFrom", XcmFilter("OnlyParachains"))
    for place in ("relay", "public", "inside"):
        yield _asked(f"free-{place}", "any message of a parachain runs", source, free, [TRANSFER], origin=PLACES[place])


def _credit() -> Iterator[XcmVector]:
    source = VectorSource(upstream="TakeWeightCredit")
    credit = XcmBarrier("TakeWeightCredit")
    for name, given in (
        ("none", Weight.ZERO),
        ("exact", WEIGHT),
        ("more", Weight(15, 12)),
        ("less-time", Weight(9, 12)),
        ("less-proof", Weight(12, 9)),
    ):
        yield _asked(f"credit-{name}", f"a credit of {given}", source, credit, [TRANSFER], credit=given)
    zero = Weight(0, 0)
    yield _asked("credit-zero", "no weight needs no credit", source, credit, [], weight=zero, credit=zero)


def _wrapped() -> Iterator[XcmVector]:
    topic = VectorSource(upstream="TrailingSetTopicAsId")
    trailing = XcmBarrier("TrailingSetTopicAsId", inner=[allow_publish(2)])
    yield _asked(
        "topic-last", "a last topic is no instruction to count", topic, trailing, [*publish(2), SetTopic(TOPIC)]
    )
    yield _asked("topic-first", "a topic elsewhere is one", topic, trailing, [SetTopic(TOPIC), *publish(1)])
    yield _asked("topic-absent", "a message without a topic", topic, trailing, publish(2))
    yield _asked("topic-alone", "a topic alone leaves an empty message", topic, trailing, [SetTopic(TOPIC)])
    yield _asked("topic-refused", "one Publish too many", topic, trailing, [*publish(3), SetTopic(TOPIC)])
    twice = [*publish(1), SetTopic(TOPIC), SetTopic(bytes(32))]
    yield _asked("topic-twice", "only the last topic is taken off", topic, trailing, twice)
    computed = VectorSource(upstream="WithComputedOrigin")
    inside = XcmFilter("Equals", [location_json(PLACES["inside"])])
    for prefixes in (1, 8):
        within = XcmBarrier("WithComputedOrigin", max_prefixes=prefixes, inner=[allow_publish(2, inside)])
        for name, message in (
            ("descends", [DescendOrigin((ACCOUNT,)), *publish(2)]),
            ("stays", publish(2)),
            ("descends-nowhere", [DescendOrigin(()), DescendOrigin((ACCOUNT,)), *publish(1)]),
        ):
            yield _asked(f"computed-{name}-{prefixes}", f"up to {prefixes} prefixes", computed, within, message)
        deep = [DescendOrigin((PalletInstance(1),) * 8), *publish(1)]
        yield _asked(f"computed-deep-{prefixes}", "the origin would have nine junctions", computed, within, deep)
    anybody = XcmBarrier("WithComputedOrigin", max_prefixes=8, inner=[allow_publish()])
    for count in (7, 8):
        steps: list[Instruction] = [DescendOrigin((PalletInstance(1),) * count), *publish(1)]
        why = f"an origin of {count + 1} junctions, where all origins are allowed"
        yield _asked(f"computed-junctions-{count + 1}", why, computed, anybody, steps)
    paid = XcmBarrier("AllowTopLevelPaidExecutionFrom", EVERYTHING)
    within = XcmBarrier("WithComputedOrigin", max_prefixes=8, inner=[paid])
    bought: list[Instruction] = [DescendOrigin((ACCOUNT,)), WithdrawAsset(FUNDS), BUY]
    yield _asked("computed-paid", "what was taken off is put back, and the limit is set", computed, within, bought)


def _chains() -> Iterator[XcmVector]:
    source = VectorSource(trap="a chain of barriers")
    relay = XcmBarrier(
        "TrailingSetTopicAsId",
        inner=[
            chain(
                XcmBarrier("TakeWeightCredit"),
                allow_publish(16, XcmFilter("OnlyParachains")),
                XcmBarrier(
                    "WithComputedOrigin",
                    max_prefixes=8,
                    inner=[
                        chain(
                            XcmBarrier("AllowTopLevelPaidExecutionFrom", EVERYTHING),
                            XcmBarrier("AllowExplicitUnpaidExecutionFrom", XcmFilter("IsChildSystemParachain")),
                        )
                    ],
                ),
            )
        ],
    )
    each: dict[str, tuple[list[Instruction], Location, Weight]] = {
        "publish": (publish(16), PARA_2000, Weight.ZERO),
        "publish-17": (publish(17), PARA_2000, Weight.ZERO),
        "publish-topic": ([*publish(16), SetTopic(TOPIC)], PARA_1000, Weight.ZERO),
        "publish-account": (publish(), PLACES["account"], Weight.ZERO),
        "publish-credit": (publish(17), PARA_2000, Weight(10, 11)),
        "paid": ([WithdrawAsset(FUNDS), BUY, *publish(17)], PARA_2000, Weight.ZERO),
        "paid-inside": ([DescendOrigin((ACCOUNT,)), WithdrawAsset(FUNDS), BUY, TRANSFER], PARA_2000, Weight.ZERO),
        "unpaid-system": ([UnpaidExecution(), TRANSFER], PARA_1000, Weight.ZERO),
        "unpaid-public": ([UnpaidExecution(), TRANSFER], PARA_2000, Weight.ZERO),
        "unpaid-topic": ([UnpaidExecution(), TRANSFER, SetTopic(TOPIC)], PARA_1000, Weight.ZERO),
        "empty": ([], PARA_2000, Weight.ZERO),
        "transfer": ([TRANSFER], PARA_2000, Weight.ZERO),
    }
    for name, (message, origin, credit) in each.items():
        yield _asked(
            f"relay-{name}", f"Polkadot's barriers around AllowPublishFrom: {name}", source, relay, message,
            origin=origin, credit=credit,
        )  # fmt: skip
    yield _asked("chain-empty", "a chain without barriers allows nothing", source, chain(), publish())
    refusing = chain(allow_publish(0), allow_publish(16, XcmFilter("Nothing")))
    yield _asked(
        "chain-refuses", "a chain answers Unsupported, whatever its barriers answer", source, refusing, publish()
    )
    second = chain(allow_publish(0), allow_publish(1))
    yield _asked("chain-second", "the second barrier allows what the first refuses", source, second, publish())
