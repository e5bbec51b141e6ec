"""Runs the conformance vectors through the chapters: ``python -m relaycast_spec.vectors [DIR]``.

The vectors ship with the specification, packed in ``suite.tar.xz``; README.md explains each field. A vector states the
input and the expected output. The chapters alone compute the output again, and the two are compared.
``relaycast vectors export DIR`` unpacks them for implementations in other languages.
"""

import json
import sys
import tarfile
from collections.abc import Callable, Iterator
from lzma import LZMAError
from pathlib import Path
from typing import Any

from relaycast_spec import messages, tries, xcm
from relaycast_spec.broadcaster import Broadcaster, Origin
from relaycast_spec.broadcaster import Config as BroadcasterConfig
from relaycast_spec.proof_pass import BlockInput, Config, Policies, ProofPass, Spot, prune, run_pass
from relaycast_spec.scale import ITEMS, TYPES, Refused, blake2_256, variant
from relaycast_spec.subscriber import Subscriber, verify
from relaycast_spec.xcm import ZERO, Weight

Vector = dict[str, Any]
Fields = dict[str, Any]
"""Fields of a vector by name."""


def attempt(name: str, work: Callable[[], Any]) -> Fields:
    """Return a result under its name, or the error and its cause."""
    try:
        return {name: work()}
    except Refused as refused:
        return {"error": refused.name} | ({} if refused.detail is None else {"cause": refused.detail})


def _unknown(v: Vector) -> ValueError:
    return ValueError(f"no test is called {v['test']!r}")


# Tries


def proofs(v: Vector) -> Fields:
    """Compute a vector about tries and proofs."""
    match v["test"]:
        case "root":
            root, nodes = tries.trie(dict(v["pairs"]), v["state_version"])
            return {"root": root, "nodes": sorted(nodes.values())}
        case "proof":
            return _proof(v)
        case "verification":
            return {"expect": attempt("values", lambda: _verified(v))}
        case "compact":
            nodes = {blake2_256(node): node for node in v["nodes"]}
            again = tries.expanded(v["compact"], v["root"])
            return {"compact": tries.compacted(nodes, v["root"]), "nodes": sorted(again.values())}
        case "compact-error":
            return attempt("nodes", lambda: sorted(tries.expanded(v["compact"], v["root"]).values()))
        case "node":
            return attempt("node", lambda: _shown(tries.Node.decode(v["encoded"])))
    raise _unknown(v)


def _proof(v: Vector) -> Fields:
    children = {child["name"]: dict(child["pairs"]) for child in v.get("children", ()) if child["pairs"]}
    below = {tries.CHILD_STORAGE + name: tries.trie(pairs, v["state_version"]) for name, pairs in children.items()}
    top = dict(v["pairs"]) | {name: root for name, (root, _) in below.items()}
    root, nodes = tries.trie(top, v["state_version"])
    for _, more in below.values():
        nodes |= more
    touched: set[bytes] = set()
    tries.read_all(nodes, root, v["keys"], touched, child=v.get("child"))
    return {"root": root, "nodes": sorted(nodes[name] for name in touched)}


def _verified(v: Vector) -> list[bytes | None]:
    return tries.verify(v["nodes"], v["root"], v["keys"], child=v.get("child"), strict=v["strict"])


def _shown(node: tries.Node) -> Fields:
    return node._asdict() | {"partial": [int(nibble, 16) for nibble in node.partial]}


# XCM


def messages_and_barriers(v: Vector) -> Fields:
    """Compute a vector about XCM."""
    match v["test"]:
        case "bytes":
            return {"message": xcm.decode_message(v["encoded"]), "encoded": xcm.encode_message(v["message"])}
        case "malformed":
            return attempt("message", lambda: xcm.decode_message(v["encoded"]))
        case "barrier":
            return {"expect": _admitted(v)}
        case "execution":
            return {"expect": _executed(v)}
    raise _unknown(v)


def _admitted(v: Vector) -> Fields:
    about = xcm.Properties(v["weight"], dict(v["credit"]), [])
    message = attempt("runs", lambda: xcm.admitted(v["barrier"], v["origin"], xcm.decode_message(v["message"]), about))
    if "error" in message:
        return message
    topic = about.message_id[0] if about.message_id else None
    return {"runs": xcm.encode_message(message["runs"]), "message_id": topic, "credit_left": about.credit}


def _executed(v: Vector) -> Fields:
    published: list[Fields] = []

    def publish(para_id: int, content: Fields) -> None:
        is_refused = para_id in v["refuses"]
        published.append({"publisher": para_id, **content, "accepted": not is_refused})
        if is_refused:
            raise Refused("NotRegistered")

    executor = xcm.Executor(v["origin"], v["unit"], publish, v.get("publishers"))
    outcome = executor.run(xcm.decode_message(v["message"]), v["weight_limit"])
    return {"outcome": outcome.kind, **_present(outcome, "used", "error", "index", "cause"), "published": published}


def _present(outcome: xcm.Outcome, *names: str) -> Fields:
    found = {name: getattr(outcome, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


# The broadcaster


def broadcaster_steps(v: Vector) -> Fields:
    """Compute a vector about the broadcaster: a state, steps, and the state after them."""
    before = v["before"]
    children = [(child["name"], child["entries"]) for child in before["children"]]
    known = {name: value for name, value in v["config"].items() if name in BroadcasterConfig._fields}
    pallet = Broadcaster(BroadcasterConfig(**known), before["top"], children)
    return {"before": _state(pallet), "steps": [_stepped(pallet, step) for step in v["steps"]], "after": _state(pallet)}


def _state(pallet: Broadcaster) -> Fields:
    children = [
        {"name": name, "root": root, "entries": sorted(pallet.children[name].items())}
        for name, root in pallet.roots().items()
    ]
    return {"top": sorted(pallet.state.entries.items()), "children": children, "root": pallet.root()}


def _stepped(pallet: Broadcaster, step: Fields) -> Fields:
    """Do a step, and take it back if it is refused."""
    entries, children = dict(pallet.state.entries), {name: dict(it) for name, it in pallet.children.items()}
    pallet.events, pallet.block = [], step["block"]
    done = attempt("done", lambda: _done(pallet, step))
    if "error" in done:
        pallet.state.entries, pallet.children, pallet.events = entries, children, []
    result, weight = done.get("done", (done, None))
    expect = {"result": result, "events": pallet.events, "root": pallet.root()}
    return step | {"expect": expect if weight is None else expect | {"consumed": weight}}


def _done(pallet: Broadcaster, step: Fields) -> tuple[Any, Weight]:
    """Return the result of a step and its weight."""
    match step:
        case {"xcm": message}:
            outcome = pallet.receive(message["from"], message["message"])
            assert outcome.used is not None
            return _present(outcome, "error", "index", "cause") or "ok", outcome.used
        case {"call": call}:
            return "ok", pallet.call(Origin(*variant(step["origin"])), call)
        case {"on_idle": remaining}:
            return "ok", ZERO | {"ref_time": pallet.on_idle(remaining["ref_time"])}
    return "ok", pallet.deregister(step["offboard"])


# The subscriber


def subscriber_block(v: Vector) -> Fields:
    """Compute a vector about one block of a subscriber."""
    block = _block(v)
    expect = _outcome(v, block)
    out: Fields = {"expect": expect}
    if "collected" in v:
        collected = [v["nodes"][number] for number in v["collected"]]
        pruned = {blake2_256(node) for node in prune(block, collected)}
        out["pruned"] = [number for number, node in enumerate(v["nodes"]) if blake2_256(node) in pruned]
        other = {name: it for name, it in _summary(run_pass(block, collected)).items() if expect.get(name) != it}
        out["expect"] = expect | ({"in the collator": other} if other else {})
    if "share" in v:
        out |= _shared(v)
    if "hashed_keys" in v:
        out["hashed_keys"] = [[data, blake2_256(data)] for data, _ in v["hashed_keys"]]
    return out


def _block(v: Vector) -> BlockInput:
    config = v["config"]
    return BlockInput(
        config=Config(
            config["max_trie_depth"],
            config["max_value_length"],
            config["read_ref_time"],
            config.get("callback_limit", dict(ZERO)),
        ),
        policies=Policies(**v.get("policies", {})),
        subscriptions=v["subscriptions"],
        state=v["before"],
        relay_root=v["relay_root"],
        relay_parent_number=v["relay_parent_number"],
        seed=v["seed"],
        has_messages=v["crowded"],
        budget=v["budget"],
        static_keys=v["static_keys"],
        declared_weights=_weights(v.get("callback_weights", ())),
        used_weights=_weights(v.get("used_weights", ())),
    )


def _weights(listed: Any) -> dict[Spot, Weight]:
    return {(para_id, key): weight for para_id, key, weight in listed}


def _outcome(v: Vector, block: BlockInput) -> Fields:
    try:
        done = verify(block, [v["nodes"][number] for number in v["given"]])
    except Refused as refused:
        return {"panic": {"cause": refused.name} | (refused.detail or {})}
    pallet = Subscriber(block, done)
    summary, callbacks = _summary(done), pallet.apply()
    results = [_called(pallet, *call) for call in v.get("calls", ())]
    return summary | {
        "callbacks": callbacks,
        "events": pallet.events,
        "after": sorted(pallet.state.entries.items()),
        "call_results": results,
    }


def _called(pallet: Subscriber, name: str, para_id: int) -> str:
    try:
        pallet.call(name, para_id)
    except Refused as refused:
        return refused.name
    return "ok"


def _summary(done: ProofPass) -> Fields:
    cursor, owed = done.next_cursors
    return {
        "consumed": done.consumed,
        "callback_weight": done.callback_weight,
        "complete": done.is_complete,
        "stopped_at": done.stopped_at,
        "cursor": cursor,
        "owed": owed,
    }


def _shared(v: Vector) -> Fields:
    given = v["share"]
    found = messages.share(given["max_pov_size"], given["percent"], given["downward"], given["horizontal"])
    counted = {name: getattr(found, name) for name in ("downward_full", "horizontal_full", "pubsub_bytes")}
    return {
        "share": given | counted,
        "budget": v["budget"] | {"proof_size": found.pubsub_bytes},
        "crowded": found.has_messages,
    }


# All vectors

KINDS: dict[str, Callable[[Vector], Fields]] = {
    "subscriber": subscriber_block,
    "broadcaster": broadcaster_steps,
    "xcm": messages_and_barriers,
    "proofs": proofs,
}


def thawed(value: Any) -> Any:
    """Return JSON with its bytes and its long numbers read."""
    if isinstance(value, str):
        return bytes.fromhex(value[2:]) if value.startswith("0x") else int(value) if value.isdecimal() else value
    if isinstance(value, dict):
        return {name: thawed(one) for name, one in value.items()}
    return [thawed(one) for one in value] if isinstance(value, list | tuple) else value


def mismatches(kind: str, vector: Any) -> Iterator[str]:
    """Yield for each field of a vector that differs from the computed one its first difference."""
    try:
        v = thawed(vector)
        for field, value in KINDS[kind](v).items():
            difference = first_difference(v.get(field), thawed(value), field)
            if difference:
                yield difference
    except Exception as error:  # a damaged vector may raise anything
        yield f"cannot be computed: {error!r}"


def first_difference(given: Any, computed: Any, path: str) -> str:
    """Return the first place where two pieces of JSON differ, with both values; empty if they are equal."""
    if isinstance(given, dict) and isinstance(computed, dict):
        inner = ((given.get(name), computed.get(name), f"{path}.{name}") for name in {**given, **computed})
    elif isinstance(given, list) and isinstance(computed, list) and len(given) == len(computed):
        inner = ((left, right, f"{path}[{at}]") for at, (left, right) in enumerate(zip(given, computed, strict=True)))
    elif given == computed:
        return ""
    else:
        return f"{path}: the vector has {_short(given)}, computed is {_short(computed)}"
    return next(filter(None, (first_difference(*both) for both in inner)), "")


def _short(value: Any) -> str:
    text = json.dumps(value, default=lambda data: f"0x{data.hex()}")
    return text if len(text) <= 90 else f"{text[:90]}... ({len(text)} characters)"


# The suite

DOCUMENT = "document"
README, TYPES_FILE, MANIFEST = "README.md", "types.json", "suite.json"
ARCHIVE = Path(__file__).with_name("suite.tar.xz")


def shipped() -> Iterator[tuple[str, bytes]]:
    """Yield path and bytes of each file of the suite that ships with the specification, but the manifest."""
    yield README, Path(__file__).with_name(README).read_bytes()
    yield TYPES_FILE, Path(__file__).parent.with_name(TYPES_FILE).read_bytes()
    with tarfile.open(ARCHIVE, "r:xz") as archive:
        for member in archive:
            stream = archive.extractfile(member)
            assert stream is not None
            yield member.name, stream.read()


def kind_of(path: str) -> str:
    """Return the kind of the vectors in a file of the suite: its folder, or ``document`` for a file without vectors."""
    folder, _, file = path.partition("/")
    return folder if file else DOCUMENT


def vectors_in(data: bytes) -> list[Any]:
    """Return the vectors of a file."""
    found: list[Any] = json.loads(data)["vectors"]
    return found


def checked_shipped() -> Iterator[tuple[str, int, list[str]]]:
    """Yield path, number of vectors and mismatches of each file that ships."""
    for path, data in shipped():
        if kind_of(path) != DOCUMENT:
            yield path, *_compared(kind_of(path), vectors_in(data))


def checked(directory: Path) -> Iterator[tuple[str, int, list[str]]]:
    """Yield path, number of vectors and mismatches of each file of a suite."""
    types = json.loads((directory / TYPES_FILE).read_text())
    if (types["types"], types["storage"]) != (TYPES, ITEMS):
        yield TYPES_FILE, 0, [f"{TYPES_FILE}: other types than the specification's"]
    for entry in json.loads((directory / MANIFEST).read_text())["files"]:
        data = (directory / entry["path"]).read_bytes()
        count, wrong = _compared(entry["kind"], [] if entry["kind"] == DOCUMENT else vectors_in(data))
        here = {"vectors": count, "bytes": len(data), "blake2_256": "0x" + blake2_256(data).hex()}
        yield (
            entry["path"],
            count,
            [f"{name} is {entry[name]}, not {here[name]}" for name in here if entry[name] != here[name]] + wrong,
        )


def _compared(kind: str, vectors: list[Any]) -> tuple[int, list[str]]:
    return len(vectors), [f"{v['id']}: {line}" for v in vectors for line in mismatches(kind, v)]


def main() -> int:
    """Check the suite in the folder that is named, or the one that ships; print a line for each file."""
    if len(sys.argv) > 2 or (sys.argv[1:] and not (Path(sys.argv[1]) / MANIFEST).is_file()):
        print("vectors: expected one folder with a suite, as relaycast vectors export writes it", file=sys.stderr)
        return 2
    place, total = Path(sys.argv[1]) if sys.argv[1:] else None, 0
    try:
        for path, number, found in checked(place) if place else checked_shipped():
            total += len(found)
            print(f"{path}: {number} vectors, {len(found)} mismatches", *(line[:2_000] for line in found[:5]), sep="\n")
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        RecursionError,
        EOFError,
        LZMAError,
        tarfile.TarError,
    ) as error:
        print(f"vectors: {place or ARCHIVE.name} is no whole suite: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return int(total > 0)
