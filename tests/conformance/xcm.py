"""XCM's bytes, barriers and execution: sections 5 and 6 of the suite's README."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.scale import TYPES, Refused, decode, encode, named, refuse
from conformance.tries import Checks, Weight, fits, refusal

XCM = """\
Location parents:u8,interior:Interior
Interior 0=Here 1=X1/1*Junction 2=X2/2*Junction 3=X3/3*Junction 4=X4/4*Junction 5=X5/5*Junction 6=X6/6*Junction\
 7=X7/7*Junction 8=X8/8*Junction
Junction 0=Parachain/c32 1=AccountId32/network:?Network,id:h32 2=AccountIndex64/network:?Network,index:c64\
 3=AccountKey20/network:?Network,key:h20 4=PalletInstance/u8 5=GeneralIndex/c128 6=GeneralKey/length:u8,data:h32\
 7=OnlyChild 8=Plurality/id:BodyId,part:BodyPart 9=GlobalConsensus/Network
Network 0=ByGenesis/h32 1=ByFork/block_number:u64,block_hash:h32 2=Polkadot 3=Kusama 7=Ethereum/chain_id:c64\
 8=BitcoinCore 9=BitcoinCash 10=PolkadotBulletin
BodyId 0=Unit 1=Moniker/h4 2=Index/c32 3=Executive 4=Technical 5=Legislative 6=Judicial 7=Defense 8=Administration\
 9=Treasury
BodyPart 0=Voice 1=Members/count:c32 2=Fraction/nom:c32,denom:c32 3=AtLeastProportion/nom:c32,denom:c32\
 4=MoreThanProportion/nom:c32,denom:c32
WeightLimit 0=Unlimited 1=Limited/Weight
Asset id:Location,fun:Amount
Amount 0=Fungible/c128positive
AssetFilter 0=Definite/*Asset 1=Wild/WildAsset
WildAsset 0=All 1=AllOf/id:Location,fun:WildFun 2=AllCounted/c32 3=AllOfCounted/id:Location,fun:WildFun,count:c32
WildFun 0=Fungible 1=NonFungible
OriginKind 0=Native 1=SovereignAccount 2=Superuser 3=Xcm
Instruction 0=WithdrawAsset/*Asset 4=TransferAsset/assets:*Asset,beneficiary:Location\
 6=Transact/origin_kind:OriginKind,fallback_max_weight:?Weight,call:bytes 10=ClearOrigin 11=DescendOrigin/Interior\
 13=DepositAsset/assets:AssetFilter,beneficiary:Location 19=BuyExecution/fees:Asset,weight_limit:WeightLimit\
 20=RefundSurplus 21=SetErrorHandler/*Instruction 22=SetAppendix/*Instruction 23=ClearError 25=Trap/c64\
 44=SetTopic/h32 45=ClearTopic 47=UnpaidExecution/weight_limit:WeightLimit,check_origin:?Location\
 48=PayFees/asset:Asset 52=Publish/key:h32,value:bytes2048,ttl:u32
"""
TYPES |= dict(line.split(maxsplit=1) for line in XCM.splitlines())
MOST = 2**64 - 1
PARACHAINS = {"filter": "OnlyParachains"}


def instructions(data: bytes) -> list[Any]:
    """Decode `VersionedXcm`."""
    refuse(not data, "CodecError")
    refuse(data[0] != 5, "UnsupportedVersion")
    return list(decode("*Instruction", data[1:]))


def junctions(origin: Any) -> list[Any]:
    return named(origin["interior"])[1] or []


def deeper(origin: Any, interior: Any, error: str) -> Any:
    inner = junctions(origin) + junctions({"interior": interior})
    refuse(len(inner) > 8, error)
    return {**origin, "interior": {f"X{len(inner)}": inner} if inner else "Here"}


def meant(chosen: Any, origin: Any) -> bool:
    """Tell whether a filter means an origin."""
    inner = [named(junction) for junction in junctions(origin)]
    parachain = origin["parents"] == 0 and len(inner) == 1 and inner[0][0] == "Parachain"
    return {
        "Everything": True,
        "Nothing": False,
        "Equals": origin in chosen.get("locations", ()),
        "IsIn": origin in chosen.get("locations", ()),
        "OnlyParachains": parachain,
        "IsChildSystemParachain": parachain and inner[0][1] < 2000,
    }[chosen["filter"]]


def ask(rule: Any, origin: Any, message: list[Any], asked: dict[str, Any]) -> list[Any]:
    """Give the message as it may run; `asked` has its weight and the credit, and gets the id that a barrier finds."""
    barrier, weight = rule["barrier"], asked["weight"]
    parts = [named(one) for one in message] + [("", None)]
    name, body = parts[0]

    def enough(limit: Any) -> bool:
        return limit == "Unlimited" or fits(weight, limit["Limited"])

    refuse("origins" in rule and not meant(rule["origins"], origin), "Unsupported")
    if barrier == "AllowPublishFrom":
        refuse(not message, "BadFormat")
        refuse(len(message) > rule["max_instructions"], "StackLimitReached")
        refuse(any(other != "Publish" for other, _ in parts[:-1]), "BadFormat")
    elif barrier == "TakeWeightCredit":
        refuse(not fits(weight, asked["credit"]), "Overweight")
        asked["credit"] = {part: asked["credit"][part] - weight[part] for part in weight}
    elif barrier == "AllowTopLevelPaidExecutionFrom":
        refuse(name != "WithdrawAsset" or len(body) > 2, "BadFormat")
        at = 1
        while parts[at][0] == "ClearOrigin" or (parts[at][0] == "DescendOrigin" and parts[at][1] != "Here"):
            at += 1
        refuse(at >= min(5, len(message)), "BadFormat")
        name, body = parts[at]
        refuse(name != "PayFees" and not (name == "BuyExecution" and enough(body["weight_limit"])), "Overweight")
        paid = {name: {**body, "weight_limit": {"Limited": weight}}} if name == "BuyExecution" else message[at]
        return [*message[:at], paid, *message[at + 1 :]]
    elif barrier == "AllowExplicitUnpaidExecutionFrom":
        refuse(not message, "BadFormat")
        refuse(name != "UnpaidExecution" or not enough(body["weight_limit"]), "Overweight")
    return message if "inner" not in rule else inside(rule, origin, message, asked)


def inside(rule: Any, origin: Any, message: list[Any], asked: dict[str, Any]) -> list[Any]:
    """Ask the barriers inside a barrier."""
    first, front = (rule["inner"] or [None])[0], 0
    if rule["barrier"] == "WithComputedOrigin":
        while front < min(rule["max_prefixes"], len(message)) and named(message[front])[0] == "DescendOrigin":
            origin, front = deeper(origin, message[front]["DescendOrigin"], "Unsupported"), front + 1
        return message[:front] + ask(first, origin, message[front:], asked)
    if rule["barrier"] == "TrailingSetTopicAsId":
        back = len(message) - (bool(message) and named(message[-1])[0] == "SetTopic")
        if back < len(message):
            asked["message_id"] = message[back]["SetTopic"]
        return ask(first, origin, message[:back], asked) + message[back:]
    for barrier in rule["inner"]:
        try:
            return ask(barrier, origin, message, asked)
        except Refused:
            continue
    raise Refused("Unsupported")


def count(message: list[Any]) -> int:
    """Count instructions, those inside others too."""
    parts = [named(one) for one in message]
    return len(parts) + sum(count(body) for name, body in parts if name in ("SetErrorHandler", "SetAppendix"))


class Run:
    """A message that is executed."""

    def __init__(self, origin: Any, publishers: Any, publish: Callable[[int, Any], None]) -> None:
        self.origin, self.publishers, self.publish, self.surplus = origin, publishers, publish, 0
        self.error: dict[str, Any] = {}
        self.registers: dict[str, list[Any]] = {"SetErrorHandler": [], "SetAppendix": []}

    def step(self, name: str, body: Any) -> None:
        refuse(name in ("Publish", "DescendOrigin") and self.origin is None, "BadOrigin")
        refuse(name == "Trap", "Trap")
        if name == "Publish":
            refuse(not meant(self.publishers, self.origin), "NoPermission")
            first, *rest = [named(junction) for junction in junctions(self.origin)] or [("", None)]
            parents = self.origin["parents"]
            resolves = first[0] == "Parachain" and (parents == 1 or (parents == 0 and not rest))
            refuse(not resolves, "BadOrigin")
            try:
                self.publish(first[1], body)
            except Refused as cause:
                raise Refused("PublishFailed", cause.args[0]) from cause
        elif name == "DescendOrigin":
            self.origin = deeper(self.origin, body, "LocationFull")
        elif name == "UnpaidExecution":
            refuse(body["check_origin"] not in (None, self.origin), "BadOrigin")
        elif name in self.registers:
            self.surplus += count(self.registers[name])
            self.registers[name] = body
        elif name == "ClearOrigin":
            self.origin = None
        elif name == "ClearError":
            self.error = {}

    def all(self, message: list[Any]) -> str:
        """Run a message; name the register that runs next."""
        for index, one in enumerate(message):
            try:
                self.step(*named(one))
            except Refused as error:
                self.surplus += count(message[index + 1 :])
                self.error = dict(zip(("error", "cause"), error.args, strict=False)) | {"index": index}
                return "SetErrorHandler" if self.registers["SetErrorHandler"] else "SetAppendix"
        self.surplus += count(self.registers["SetErrorHandler"])
        self.registers["SetErrorHandler"] = []
        return "SetAppendix"


def execute(run: Run, message: list[Any], unit: Weight, limit: Weight) -> dict[str, Any]:
    """Give the outcome, the weight that was used, the error."""

    def weigh(number: int) -> Weight:
        return {name: min(unit[name] * number, MOST) for name in unit}

    if not fits(weigh(count(message)), limit):
        return {"outcome": "not begun", "error": "WeightLimitReached"}
    total = weigh(count(message))
    while message:
        register = run.all(message)
        message, run.registers[register] = run.registers[register], []
    used = {name: max(0, total[name] - surplus) for name, surplus in weigh(run.surplus).items()}
    return {"outcome": "incomplete" if run.error else "complete", "used": used, **run.error}


def check(v: Any) -> Checks:
    if v["test"] == "bytes":
        yield "message", instructions(v["encoded"])
        yield "encoded", b"\5" + encode("*Instruction", v["message"])
    elif v["test"] == "malformed":
        yield "error", refusal(lambda: instructions(v["encoded"]))
    elif v["test"] == "barrier":
        message = instructions(v["message"])
        asked = {"weight": v["weight"], "credit": v.get("credit", {"ref_time": 0, "proof_size": 0})}
        try:
            runs = ask(v["barrier"], v["origin"], message, asked)
        except Refused as error:
            yield "expect", {"answer": "refused", "error": error.args[0]}
        else:
            out = {"answer": "allowed"} | {name: asked[name] for name in ("message_id",) if name in asked}
            out |= {"runs": b"\5" + encode("*Instruction", runs)} if runs != message else {}
            yield "expect", out | ({"credit_left": asked["credit"]} if "credit" in v else {})
    else:
        published = []

        def publish(para: int, body: Any) -> None:
            published.append({"publisher": para, **body, "accepted": para not in v["refuses"]})
            refuse(para in v["refuses"], "NotRegistered")

        run = Run(v["origin"], v.get("publishers", PARACHAINS), publish)
        ended = execute(run, instructions(v["message"]), v["unit"], v["weight_limit"])
        yield "expect", {**ended, "published": published}
