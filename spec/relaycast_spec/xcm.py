"""Chapter 3. XCM: the message that carries a ``Publish``, the barriers that let it in, the executor that runs it.

A parachain sends bytes to the relay chain. They decode into instructions, within limits. A barrier decides whether they
may run, and who pays. The executor runs them one after another from the sender's location, the *origin*, and counts
their weight: picoseconds of computing (``ref_time``) and bytes of proof (``proof_size``).

Source: staging-xcm and xcm-executor (version 5), xcm-builder's barriers; RFC-0160 for ``Publish``.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from relaycast_spec.scale import U64_MAX, Kind, Reader, Refused, encode, refuse_if, sort_key, variant

Weight = dict[str, int]
Location = dict[str, Any]
Instruction = Any

ZERO: Weight = {"ref_time": 0, "proof_size": 0}


def fits(weight: Weight, limit: Weight) -> bool:
    """Return whether a weight is at most the limit, in both dimensions."""
    return all(weight[dimension] <= limit[dimension] for dimension in ZERO)


# The bytes of a message

VERSION = 5
MAX_INSTRUCTIONS = 100
MAX_NESTING = 8
MAX_ASSETS = 20
MAX_JUNCTIONS = 8
MAX_PAYING_ASSETS = 2
MAX_BEFORE_PAYMENT = 5
"""The payment is among so many first instructions."""


class MessageReader(Reader):
    """Reads a message within XCM's limits, so that a short one cannot stand for a long list or a deep nest."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.depth = 0
        self.instructions = 0

    def variant(self, kind: Kind, variants: list[Any]) -> Any:
        if kind == "WeightLimit" and self.left:  # upstream decodes it by hand, with another error
            known = [number for number, *_ in variants]
            refuse_if(self.data[self.at] not in known, self.error)
        return super().variant(kind, variants)

    def length(self, kind: Kind) -> int:
        return self.compact(32) if kind == "Instruction" else super().length(kind)

    def items(self, kind: Kind, count: int) -> list[Any]:
        nests = kind in ("Instruction", "Asset", "Junction")  # upstream counts each of these lists as a level
        self.depth += nests
        self.instructions += count if kind == "Instruction" else 0
        refuse_if(self.instructions > MAX_INSTRUCTIONS, "TooManyInstructions")
        refuse_if(kind == "Asset" and count > MAX_ASSETS, "BoundExceeded")
        refuse_if(self.depth > MAX_NESTING, "TooDeep")
        values = [self.read(kind) for _ in range(count)]
        self.depth -= nests
        if kind == "Asset":  # sorted by id, each id once
            ids = [sort_key("Location", value["id"]) for value in values]
            refuse_if(ids != sorted(set(ids)), self.error)
        return values


def decode_message(data: bytes) -> list[Instruction]:
    """Decode a ``VersionedXcm`` of version 5."""
    refuse_if(not data, "CodecError")
    refuse_if(data[0] != VERSION, "UnsupportedVersion")
    reader = MessageReader(data[1:])
    message = reader.read("*Instruction")
    refuse_if(reader.left, "CodecError")
    return list(message)


def encode_message(message: list[Instruction]) -> bytes:
    """Encode a message. DECISION: ``Publish {key, value, ttl}`` has the index 52; the drafts differ."""
    return bytes([VERSION]) + encode("*Instruction", message)


# Origins


def parachain(para_id: int) -> Location:
    """Return the location of a parachain, as the relay chain sees it."""
    return {"parents": 0, "interior": {"X1": [{"Parachain": para_id}]}}


def junctions(interior: Any) -> list[Any]:
    """Return the steps of an interior."""
    return list(variant(interior)[1] or [])


def descended(origin: Location, interior: Any, error: str) -> Location:
    """Return the location ``interior`` below an origin."""
    steps = junctions(origin["interior"]) + junctions(interior)
    refuse_if(len(steps) > MAX_JUNCTIONS, error)
    return {**origin, "interior": {f"X{len(steps)}": steps} if steps else "Here"}


FIRST_PUBLIC_ID = 2_000
"""Parachains with a lower id are system parachains, whose code the relay chain's governance decides on."""


def passes_filter(origin_filter: dict[str, Any], origin: Location) -> bool:
    """Return whether a filter of locations admits an origin."""
    steps = junctions(origin["interior"]) if origin["parents"] == 0 else []
    para_id = steps[0].get("Parachain") if len(steps) == 1 and isinstance(steps[0], dict) else None
    match origin_filter["filter"]:
        case "Everything":
            return True
        case "OnlyParachains":
            return para_id is not None
        case "IsChildSystemParachain":
            return para_id is not None and para_id < FIRST_PUBLIC_ID
    return origin in origin_filter.get("locations", ())


# Barriers


class Properties(NamedTuple):
    """What barriers know of a message. They change ``credit`` and ``message_id`` in place."""

    weight: Weight
    credit: Weight
    """Weight that was paid for before; a barrier that uses some takes it away."""

    message_id: list[bytes]
    """The id of the message, once a barrier finds one."""


def admitted(
    barrier: dict[str, Any], origin: Location, message: list[Instruction], asked: Properties
) -> list[Instruction]:
    """Return the message as it may run, or refuse it.

    Scenario: AllowPublishFrom Barrier / Barrier filters by origin
    """
    refuse_if("origins" in barrier and not passes_filter(barrier["origins"], origin), "Unsupported")
    match barrier["barrier"]:
        case "AllowPublishFrom":
            allow_publish(barrier["max_instructions"], message)
        case "TakeWeightCredit":
            take_weight_credit(asked)
        case "AllowTopLevelPaidExecutionFrom":
            return allow_paid_execution(message, asked)
        case "AllowExplicitUnpaidExecutionFrom":
            allow_unpaid_execution(message, asked)
        case "WithComputedOrigin":
            return with_computed_origin(barrier, origin, message, asked)
        case "TrailingSetTopicAsId":
            return trailing_topic_as_id(barrier, origin, message, asked)
        case "Chain":
            return first_that_admits(barrier.get("inner", []), origin, message, asked)
        case "AllowUnpaidExecutionFrom":
            pass
        case unknown:
            raise ValueError(f"no barrier is called {unknown}")
    return message


def _inner(barrier: dict[str, Any]) -> dict[str, Any]:
    """Return the barrier inside another one."""
    refuse_if(not barrier.get("inner"), "Unsupported")
    inner: dict[str, Any] = barrier["inner"][0]
    return inner


def allow_publish(max_instructions: int, message: list[Instruction]) -> None:
    """``AllowPublishFrom``: free execution for messages of ``Publish`` alone.

    DECISION: the checks come in this order, after the origin's.

    Scenario: AllowPublishFrom Barrier / Barrier allows single Publish instruction
    Scenario: AllowPublishFrom Barrier / Barrier allows multiple Publish instructions within limit
    Scenario: AllowPublishFrom Barrier / Barrier rejects too many Publish instructions
    Scenario: AllowPublishFrom Barrier / Barrier allows exactly max Publish instructions
    Scenario: AllowPublishFrom Barrier / Barrier rejects Publish mixed with other instructions
    Scenario: AllowPublishFrom Barrier / Barrier rejects non-Publish messages
    """
    refuse_if(not message, "BadFormat")
    refuse_if(len(message) > max_instructions, "StackLimitReached")
    refuse_if(any(variant(one)[0] != "Publish" for one in message), "BadFormat")


def take_weight_credit(asked: Properties) -> None:
    """``TakeWeightCredit``: weight that was paid for before."""
    refuse_if(not fits(asked.weight, asked.credit), "Overweight")
    for dimension, weight in asked.weight.items():
        asked.credit[dimension] -= weight


def allow_paid_execution(message: list[Instruction], asked: Properties) -> list[Instruction]:
    """``AllowTopLevelPaidExecutionFrom``: assets are withdrawn, and pay before anything else happens."""
    names = [variant(one)[0] for one in message]
    refuse_if(names[:1] != ["WithdrawAsset"] or len(message[0]["WithdrawAsset"]) > MAX_PAYING_ASSETS, "BadFormat")
    at = 1
    while at < len(message) and _may_precede_payment(message[at]):
        at += 1
    refuse_if(at >= min(MAX_BEFORE_PAYMENT, len(message)), "BadFormat")
    name, content = variant(message[at])
    if name == "PayFees":
        return message
    refuse_if(name != "BuyExecution" or not _limit_covers(content["weight_limit"], asked.weight), "Overweight")
    paid = {"BuyExecution": {**content, "weight_limit": {"Limited": asked.weight}}}
    return [*message[:at], paid, *message[at + 1 :]]


def _may_precede_payment(instruction: Instruction) -> bool:
    name, content = variant(instruction)
    return name == "ClearOrigin" or (name == "DescendOrigin" and content != "Here")


def _limit_covers(weight_limit: Any, weight: Weight) -> bool:
    return weight_limit == "Unlimited" or fits(weight, weight_limit["Limited"])


def allow_unpaid_execution(message: list[Instruction], asked: Properties) -> None:
    """``AllowExplicitUnpaidExecutionFrom``: the message says that it does not pay, and what it may weigh."""
    refuse_if(not message, "BadFormat")
    name, content = variant(message[0])
    refuse_if(name != "UnpaidExecution" or not _limit_covers(content["weight_limit"], asked.weight), "Overweight")


def with_computed_origin(
    barrier: dict[str, Any], origin: Location, message: list[Instruction], asked: Properties
) -> list[Instruction]:
    """``WithComputedOrigin``: the origin is what it will be after the ``DescendOrigin`` at the front."""
    at = 0
    while at < min(barrier["max_prefixes"], len(message)) and variant(message[at])[0] == "DescendOrigin":
        origin = descended(origin, message[at]["DescendOrigin"], "Unsupported")
        at += 1
    return message[:at] + admitted(_inner(barrier), origin, message[at:], asked)


def trailing_topic_as_id(
    barrier: dict[str, Any], origin: Location, message: list[Instruction], asked: Properties
) -> list[Instruction]:
    """``TrailingSetTopicAsId``: a topic at the end names the message; the barrier inside does not see it."""
    inner = _inner(barrier)
    if not message or variant(message[-1])[0] != "SetTopic":
        return admitted(inner, origin, message, asked)
    asked.message_id[:] = [message[-1]["SetTopic"]]
    return admitted(inner, origin, message[:-1], asked) + message[-1:]


def first_that_admits(
    barriers: list[dict[str, Any]], origin: Location, message: list[Instruction], asked: Properties
) -> list[Instruction]:
    """Ask barriers in their order. The first that admits decides; later ones are not asked.

    Scenario: AllowPublishFrom Barrier / Barrier combined with other barriers
    """
    for barrier in barriers:
        try:
            return admitted(barrier, origin, message, asked)
        except Refused:
            continue
    raise Refused("Unsupported")


# Execution


class Outcome(NamedTuple):
    """How a message ended: ``complete``, ``incomplete`` or ``not begun``, the weight used, and the last error."""

    kind: str
    used: Weight | None
    error: str | None = None
    index: int | None = None  # type: ignore[assignment]  # the name that upstream has
    """Number of the instruction that failed."""

    cause: str | None = None
    """The broadcaster's error. DECISION: it is kept; the drafts lose it."""


class Executor:
    """Runs one message from an origin; each instruction weighs ``unit``.

    ``publish`` is the broadcaster. ``publishers`` says which origins may publish at all.
    """

    def __init__(
        self,
        origin: Location | None,
        unit: Weight,
        publish: Callable[[int, dict[str, Any]], None],
        publishers: dict[str, Any] | None = None,
    ) -> None:
        self.origin = origin
        self.unit = unit
        self.publish = publish
        self.publishers = publishers or {"filter": "OnlyParachains"}
        self.registers: dict[str, list[Instruction]] = {"SetErrorHandler": [], "SetAppendix": []}
        self.surplus = 0
        """Number of instructions that were weighed and will not run."""

        self.error: dict[str, Any] = {}

    def run(self, message: list[Instruction], weight_limit: Weight) -> Outcome:
        """Run a message, its error handlers and its appendix. DECISION: instructions before a failure stay applied."""
        weight = self.weight_of(instruction_count(message))
        if not fits(weight, weight_limit):
            return Outcome("not begun", None, "WeightLimitReached")
        while message:
            message = self.run_program(message)
        surplus = self.weight_of(self.surplus)
        used = {dimension: max(0, weight[dimension] - surplus[dimension]) for dimension in weight}
        return Outcome("incomplete" if self.error else "complete", used, **self.error)

    def run_program(self, message: list[Instruction]) -> list[Instruction]:
        """Run instructions up to the first that fails; return what runs next."""
        following = "SetAppendix"
        for index, instruction in enumerate(message):
            try:
                self.step(*variant(instruction))
            except Refused as refused:
                self.surplus += instruction_count(message[index + 1 :])
                self.error = {"error": refused.name, "index": index, "cause": refused.detail}
                following = "SetErrorHandler" if self.registers["SetErrorHandler"] else "SetAppendix"
                break
        else:
            self.replace("SetErrorHandler", [])  # after success the handler is dropped unused
        program = self.registers[following]
        self.registers[following] = []
        return program

    def weight_of(self, instructions: int) -> Weight:
        """Return the weight of so many instructions."""
        return {dimension: min(unit * instructions, U64_MAX) for dimension, unit in self.unit.items()}

    def replace(self, register: str, message: list[Instruction]) -> None:
        """Set a register; what was in it will not run."""
        self.surplus += instruction_count(self.registers[register])
        self.registers[register] = message

    def step(self, name: str, content: Any) -> None:
        """Run one instruction. Those that are not listed have no effect here."""
        match name:
            case "Publish":
                self.publish_from_origin(content)
            case "DescendOrigin":
                if self.origin is None:
                    raise Refused("BadOrigin")
                self.origin = descended(self.origin, content, "LocationFull")
            case "UnpaidExecution":
                refuse_if(content["check_origin"] not in (None, self.origin), "BadOrigin")
            case "SetErrorHandler" | "SetAppendix":
                self.replace(name, content)
            case "ClearOrigin":
                self.origin = None
            case "ClearError":
                self.error = {}
            case "Trap":
                raise Refused("Trap")

    def publish_from_origin(self, content: dict[str, Any]) -> None:
        """``Publish``: hand the key and the value to the broadcaster, in the name of the parachain that sent it.

        A relay chain takes the origin ``Parachain(id)`` alone. DECISION: a parachain that keeps a broadcaster takes its
        siblings, ``../Parachain(id)`` and what is below them.
        """
        if self.origin is None:
            raise Refused("BadOrigin")
        refuse_if(not passes_filter(self.publishers, self.origin), "NoPermission")
        steps, parents = junctions(self.origin["interior"]), self.origin["parents"]
        first, para_id = variant(steps[0]) if steps else ("", None)
        is_parachain = first == "Parachain" and (parents == 1 or (parents == 0 and len(steps) == 1))
        refuse_if(not is_parachain, "BadOrigin")
        assert isinstance(para_id, int)
        try:
            self.publish(para_id, content)
        except Refused as refused:
            raise Refused("PublishFailed", refused.name) from None


def instruction_count(message: list[Instruction]) -> int:
    """Count instructions, those inside of error handlers and appendices too."""
    inner = [content for name, content in map(variant, message) if name in ("SetErrorHandler", "SetAppendix")]
    return len(message) + sum(map(instruction_count, inner))
