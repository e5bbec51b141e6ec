"""Messages that are executed: which publications get through, what fails where, and the weight that is used."""

from collections.abc import Iterator
from random import Random

from relaycast.vectors.vector import VectorSource, VectorWeight, hexed, scenario
from relaycast.vectors.xcm.xcm_barriers import ACCOUNT, EVERYTHING, PARA_1000, PARA_2000, PLACES, TOPIC, location_json
from relaycast.vectors.xcm.xcm_vector import XcmExecution, XcmFilter, XcmVector
from relaycast_xcm import Location
from relaycast_xcm.instructions import (
    ClearError,
    ClearOrigin,
    ClearTopic,
    DescendOrigin,
    Instruction,
    Publish,
    SetAppendix,
    SetErrorHandler,
    SetTopic,
    Trap,
    UnpaidExecution,
)
from relaycast_xcm.junctions import PalletInstance, Parachain
from relaycast_xcm.message import V5
from relaycast_xcm.primitives import U64_MAX, Weight

UNIT = Weight(10, 10)
RANDOM_MESSAGES = 20


def vectors(seed: int) -> Iterator[XcmVector]:
    """Yield the vectors; random messages are drawn from ``seed``."""
    yield from _origins()
    yield from _failures()
    yield from _handlers()
    yield from _limits()
    yield from _random_messages(seed)


def _executed(
    name: str,
    why: str,
    source: VectorSource,
    *message: Instruction,
    origin: Location = PARA_2000,
    unit: Weight = UNIT,
    limit: Weight = Weight.MAX,
    refuses: tuple[int, ...] = (),
    publishers: XcmFilter | None = None,
) -> XcmExecution:
    return XcmExecution(
        id=f"xcm/execution/{name}",
        why=why,
        source=source,
        origin=location_json(origin),
        message=hexed(V5.encode(message)),
        unit=VectorWeight.of(unit),
        weight_limit=VectorWeight.of(limit),
        refuses=list(refuses),
        publishers=publishers,
    )


def publish(name: int = 1) -> Publish:
    return Publish(bytes([name]) * 32, bytes([name]), name)


def _origins() -> Iterator[XcmVector]:
    for name, origin in PLACES.items():
        yield _executed(
            f"from-{name}",
            f"{origin} publishes",
            VectorSource(upstream="publish_from_non_parachain_fails"),
            publish(),
            origin=origin,
        )
    deeper = {
        "sibling-inside": Location.new(1, (Parachain(2_000), ACCOUNT)),
        "grandparent": Location.new(2, Parachain(9)),
    }
    for name, origin in {**PLACES, **deeper}.items():
        yield _executed(
            f"any-origin-{name}",
            f"{origin} publishes where every origin may: it must resolve to a parachain",
            VectorSource(upstream="publish_from_non_parachain_fails"),
            publish(),
            origin=origin,
            publishers=EVERYTHING,
        )
    without = VectorSource(upstream="publish_without_origin_fails")
    yield _executed("no-origin", "a Publish after ClearOrigin", without, ClearOrigin(), publish())
    yield _executed(
        "origin-lost", "a Publish before and one after ClearOrigin", without, publish(), ClearOrigin(), publish(2)
    )
    inside = DescendOrigin((ACCOUNT,))
    yield _executed("descended", "an account inside a parachain is no publisher", without, inside, publish())
    yield _executed("descended-nowhere", "an empty interior changes nothing", without, DescendOrigin(()), publish())
    full = DescendOrigin((PalletInstance(1),) * 7)
    yield _executed("descended-to-8", "eight junctions are the limit of a location", without, full)
    deep = DescendOrigin((PalletInstance(1),) * 8)
    yield _executed("descended-too-deep", "nine junctions are too many", without, deep, publish())
    yield _executed("descended-without", "no origin can descend", without, ClearOrigin(), inside)
    for name, checked in (("same", PARA_2000), ("other", PARA_1000), ("none", None)):
        yield _executed(
            f"unpaid-{name}", "UnpaidExecution checks the origin if it is told to", without,
            UnpaidExecution(None, checked), publish(),
        )  # fmt: skip
    cleared = (ClearOrigin(), UnpaidExecution(None, PARA_2000))
    yield _executed("unpaid-cleared", "a cleared origin is no origin", without, *cleared)


def _failures() -> Iterator[XcmVector]:
    unregistered = scenario("XCM Publish Instruction / Publish fails for unregistered public parachain")
    yield _executed(
        "unregistered", "the broadcaster refuses, and its error is the cause", unregistered, publish(), refuses=(2_000,)
    )
    yield _executed(
        "unregistered-second",
        "the first refusal ends the message",
        unregistered,
        publish(),
        publish(2),
        refuses=(2_000,),
    )
    stays = VectorSource(upstream="broadcast_handler_error_propagates")
    for at in range(4):
        message: list[Instruction] = [publish(1), publish(2), publish(3)]
        message.insert(at, Trap(5))
        yield _executed(f"trap-at-{at}", f"{at} of 3 publications come before the trap", stays, *message)
    yield _executed("empty", "a message without instructions is complete and weighs nothing", stays)
    topics = (SetTopic(TOPIC), publish(), ClearTopic(), publish(2))
    yield _executed("topics", "topics change nothing here", stays, *topics)


def _handlers() -> Iterator[XcmVector]:
    source = VectorSource(trap="handlers, appendices and their weight")
    handler, appendix = SetErrorHandler((publish(8),)), SetAppendix((publish(9),))
    clearing = SetErrorHandler((ClearError(), publish(8)))
    failing = SetAppendix((publish(9), Trap(2), publish(10)))
    each: dict[str, tuple[Instruction, ...]] = {
        "handler-unused": (handler, publish()),
        "handler-used": (handler, publish(), Trap(1), publish(2)),
        "handler-clears": (clearing, Trap(1), publish(2)),
        "handler-replaced": (handler, SetErrorHandler((publish(7),)), Trap(1)),
        "handler-empty": (SetErrorHandler(()), Trap(1)),
        "handler-too-late": (Trap(1), handler),
        "handler-fails": (SetErrorHandler((Trap(3), publish(8))), appendix, Trap(1)),
        "handler-sets-handler": (SetErrorHandler((SetErrorHandler((publish(7),)), Trap(3))), Trap(1)),
        "appendix": (appendix, publish()),
        "appendix-after-trap": (appendix, Trap(1)),
        "appendix-replaced": (appendix, SetAppendix((publish(7),))),
        "appendix-fails": (failing, publish()),
        "appendix-fails-too": (failing, Trap(1)),
        "appendix-of-appendix": (SetAppendix((SetAppendix((publish(7),)), publish(8))),),
        "appendix-clears": (SetAppendix((ClearError(),)), Trap(1)),
        "appendix-and-handler": (appendix, handler, Trap(1)),
        "appendix-and-handler-unused": (appendix, handler, publish()),
        "origin-in-appendix": (appendix, ClearOrigin()),
        "error-cleared-early": (ClearError(), Trap(1)),
        "skipped-handler": (Trap(1), handler, appendix, publish()),
    }
    for name, message in each.items():
        yield _executed(name, f"registers of the executor: {name}", source, *message)


def _limits() -> Iterator[XcmVector]:
    source = VectorSource(upstream="publish_from_parachain_works")
    message = (publish(1), publish(2))
    for name, limit in (
        ("exact", Weight(20, 20)),
        ("less-time", Weight(19, 20)),
        ("less-proof", Weight(20, 19)),
        ("none", Weight.ZERO),
    ):
        yield _executed(f"limit-{name}", f"a limit of {limit} for {Weight(20, 20)}", source, *message, limit=limit)
    nested = (SetAppendix((publish(1), publish(2))),)
    yield _executed("limit-nested", "what is inside counts", source, *nested, limit=Weight(29, 29))
    yield _executed("limit-nested-exact", "three instructions in all", source, *nested, limit=Weight(30, 30))
    huge = Weight(U64_MAX // 2, 1)
    yield _executed("saturates", "weights add up to the largest u64 at most", source, *message, publish(3), unit=huge)


def _random_messages(seed: int) -> Iterator[XcmVector]:
    for number in range(RANDOM_MESSAGES):
        random = Random(f"execution {seed} {number}")  # noqa: S311 - vectors, no secrets
        message = _drawn(random, 6, depth=2)
        yield _executed(
            f"random-{number}",
            f"a random message, number {number}",
            VectorSource(trap="handlers, appendices and their weight"),
            *message,
            refuses=random.choice(((), (), (2_000,))),
        )


def _drawn(random: Random, most: int, *, depth: int) -> tuple[Instruction, ...]:
    kinds = ["publish"] * 4 + ["trap", "clear error", "topic"] + (["handler", "appendix"] * 2 if depth else [])
    message: list[Instruction] = []
    for kind in random.choices(kinds, k=random.randrange(1, most + 1)):
        inner = _drawn(random, 3, depth=depth - 1) if kind in {"handler", "appendix"} else ()
        message.append(
            {
                "publish": publish(random.randrange(1, 6)),
                "trap": Trap(random.randrange(9)),
                "clear error": ClearError(),
                "topic": SetTopic(TOPIC),
                "handler": SetErrorHandler(inner),
                "appendix": SetAppendix(inner),
            }[kind]
        )
    return tuple(message)
