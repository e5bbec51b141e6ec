"""XCM's bytes, barriers and execution: sections 5 and 6 of the suite's README."""

from collections.abc import Callable
from typing import Any

from conformance.scale import Refused, attempt, decode, encode, named, refuse

ZERO = {"ref_time": 0, "proof_size": 0}
Weight = dict[str, int]


def fits(weight: Weight, limit: Weight) -> bool:
    return all(weight[name] <= limit[name] for name in weight)


def instructions(data: bytes) -> list[Any]:
    """Decode `VersionedXcm`."""
    refuse(not data, "CodecError")
    refuse(data[0] != 5, "UnsupportedVersion")
    return list(decode("*Instruction", data[1:]))


def deeper(origin: Any, interior: Any, error: str) -> Any:
    inner = [junction for part in (origin["interior"], interior) for junction in named(part)[1] or ()]
    refuse(len(inner) > 8, error)
    return {**origin, "interior": {f"X{len(inner)}": inner} if inner else "Here"}


def meant(chosen: Any, origin: Any) -> bool:
    """Tell whether a filter means an origin."""
    match chosen["filter"], origin:
        case ("OnlyParachains", {"parents": 0, "interior": {"X1": [{"Parachain": _}]}}) | ("Everything", _):
            return True
        case "IsChildSystemParachain", {"parents": 0, "interior": {"X1": [{"Parachain": para}]}}:
            return bool(para < 2000)
    return origin in chosen.get("locations", ())


def ask(rule: Any, origin: Any, message: list[Any], asked: dict[str, Any]) -> list[Any]:
    """Give the message as it may run; `asked` has its weight and the credit, and gets the id that a barrier finds."""

    def pays(one: Any) -> bool:
        limit = one.get("weight_limit")
        return limit == "Unlimited" or fits(asked["weight"], limit["Limited"])

    refuse("origins" in rule and not meant(rule["origins"], origin), "Unsupported")
    inner: Any = rule.get("inner", ())
    match rule["barrier"], [named(one) for one in message]:
        case "AllowPublishFrom", parts:
            refuse(not parts, "BadFormat")
            refuse(len(parts) > rule["max_instructions"], "StackLimitReached")
            refuse(any(name != "Publish" for name, _ in parts), "BadFormat")
        case "TakeWeightCredit", _:
            refuse(not fits(asked["weight"], asked["credit"]), "Overweight")
            asked["credit"] = {part: left - asked["weight"][part] for part, left in asked["credit"].items()}
        case "AllowTopLevelPaidExecutionFrom", parts:
            refuse(not parts or parts[0][0] != "WithdrawAsset" or len(parts[0][1]) > 2, "BadFormat")
            passed = [name == "ClearOrigin" or (name == "DescendOrigin" and body != "Here") for name, body in parts]
            at = [*passed, False].index(False, 1)
            refuse(at >= min(5, len(parts)), "BadFormat")
            name, body = parts[at]
            refuse(name != "PayFees" and not (name == "BuyExecution" and pays(body)), "Overweight")
            paid = {name: {**body, "weight_limit": {"Limited": asked["weight"]}}}
            return [*message[:at], paid, *message[at + 1 :]] if name == "BuyExecution" else message
        case "AllowExplicitUnpaidExecutionFrom", parts:
            refuse(not parts, "BadFormat")
            refuse(parts[0][0] != "UnpaidExecution" or not pays(parts[0][1]), "Overweight")
        case "WithComputedOrigin", _:
            at = 0
            while at < min(rule["max_prefixes"], len(message)) and named(message[at])[0] == "DescendOrigin":
                origin, at = deeper(origin, message[at]["DescendOrigin"], "Unsupported"), at + 1
            return message[:at] + ask(inner[0], origin, message[at:], asked)
        case "TrailingSetTopicAsId", [*_, ("SetTopic", topic)]:
            asked["message_id"] = topic
            return ask(inner[0], origin, message[:-1], asked) + message[-1:]
        case "TrailingSetTopicAsId", _:
            return ask(inner[0], origin, message, asked)
        case "Chain", _:
            for barrier in inner:
                try:
                    return ask(barrier, origin, message, asked)
                except Refused:
                    continue
            raise Refused("Unsupported")
    return message


def count(message: list[Any]) -> int:
    """Count instructions, those inside others too."""
    inner = [body for name, body in map(named, message) if name in ("SetErrorHandler", "SetAppendix")]
    return len(message) + sum(map(count, inner))


def execute(v: Any, message: list[Any], publish: Callable[[int, Any], Any]) -> dict[str, Any]:
    """Run a message; give the outcome, the weight that was used, the error."""
    origin, error, surplus = v["origin"], dict[str, Any](), 0
    registers: dict[str, list[Any]] = {"SetErrorHandler": [], "SetAppendix": []}

    def weigh(number: int) -> Weight:
        return {name: min(unit * number, 2**64 - 1) for name, unit in v["unit"].items()}

    def step(name: str, body: Any) -> None:
        nonlocal origin, error, surplus
        refuse(name in ("Publish", "DescendOrigin") and origin is None, "BadOrigin")
        match name:
            case "Publish":
                refuse(not meant(v.get("publishers", {"filter": "OnlyParachains"}), origin), "NoPermission")
                first, *rest = map(named, [*(named(origin["interior"])[1] or ()), "nothing"])
                alone = origin["parents"] == 1 or (origin["parents"] == 0 and len(rest) == 1)
                refuse(first[0] != "Parachain" or not alone, "BadOrigin")
                published = attempt("ok", lambda: publish(first[1], body))
                refuse("error" in published, "PublishFailed", published.get("error"))
            case "DescendOrigin":
                origin = deeper(origin, body, "LocationFull")
            case "UnpaidExecution":
                refuse(body["check_origin"] not in (None, origin), "BadOrigin")
            case "SetErrorHandler" | "SetAppendix":
                surplus += count(registers[name])
                registers[name] = body
            case "ClearOrigin":
                origin = None
            case "ClearError":
                error = {}
            case "Trap":
                raise Refused("Trap")

    total = weigh(count(message))
    if not fits(total, v["weight_limit"]):
        return {"outcome": "not begun", "error": "WeightLimitReached"}
    while message:
        following = "SetAppendix"
        for index, one in enumerate(message):
            try:
                step(*named(one))
            except Refused as refused:
                surplus += count(message[index + 1 :])
                error = dict(zip(("error", "cause"), refused.args, strict=False)) | {"index": index}
                following = "SetErrorHandler" if registers["SetErrorHandler"] else "SetAppendix"
                break
        else:
            surplus += count(registers["SetErrorHandler"])
            registers["SetErrorHandler"] = []
        message, registers[following] = registers[following], []
    used = {name: max(0, total[name] - left) for name, left in weigh(surplus).items()}
    return {"outcome": "incomplete" if error else "complete", "used": used, **error}


def expected(v: Any) -> dict[str, Any]:
    """Give the fields of a vector that are to be computed."""
    match v["test"]:
        case "bytes":
            encoded = b"\5" + encode("*Instruction", v["message"])
            return {"message": instructions(v["encoded"]), "encoded": encoded}
        case "malformed":
            return attempt("message", lambda: instructions(v["encoded"]))
        case "barrier":
            asked = {"weight": v["weight"], "credit": v["credit"], "message_id": None}
            runs = attempt("runs", lambda: ask(v["barrier"], v["origin"], instructions(v["message"]), asked))
            if "error" in runs:
                return {"expect": runs}
            encoded = b"\5" + encode("*Instruction", runs["runs"])
            return {"expect": {"runs": encoded, "message_id": asked["message_id"], "credit_left": asked["credit"]}}
    published = []

    def publish(para: int, body: Any) -> None:
        published.append({"publisher": para, **body, "accepted": para not in v["refuses"]})
        refuse(para in v["refuses"], "NotRegistered")

    return {"expect": execute(v, instructions(v["message"]), publish) | {"published": published}}
