"""An orchestrator alone on its subnet, called with Candid both ways, and what it holds, to be compared."""

from typing import Any

from relaycast_gateway.candid import Present, Principal, Variant
from relaycast_gateway.icrc.orchestrator import Orchestrator
from relaycast_gateway.icrc.registry import IcrcSubscription
from relaycast_gateway.icrc.store import IcrcStore
from relaycast_gateway.icrc.subnet import Subnet
from relaycast_gateway.icrc.variants import pairs_of
from relaycast_gateway.icrc16 import Icrc16, array, blob

ORCHESTRATOR, FIRST, SECOND = b"orchestrator\1", b"broadcaster one\1", b"broadcaster two\1"
ANN, BOB, CLEO, DAN = (name.encode() + b"\1" for name in ("ann", "bob", "cleo", "dan"))

PUBLISHERS, SUBSCRIBERS = "icrc72:publication:publishers:", "icrc72:publication:subscribers:"


def ok(value: object) -> Variant:
    return Variant("Ok", value)


def err(tag: str, value: object = None) -> Variant:
    return Variant("Err", Variant(tag, value))


def unauthorized_subscriber(namespace: str) -> Variant:
    return err("UnauthorizedSubscriber", {"namespace": namespace})


def unauthorized_publisher(namespace: str) -> Variant:
    return err("UnauthorizedPublisher", {"namespace": namespace})


def config(**entries: Icrc16) -> list[dict[int, object]]:
    """Return a configuration; ``__`` in a name stands for a colon."""
    return pairs_of((name.replace("__", ":"), value) for name, value in entries.items())


def pairs(entries: dict[str, Icrc16]) -> list[dict[int, object]]:
    return pairs_of(entries.items())


def principals(*those: bytes) -> Icrc16:
    return array(*map(blob, those))


class RegistryOffice:
    """Calls an orchestrator; arguments and results pass through their Candid types, which checks them."""

    def __init__(
        self, store: IcrcStore | None = None, broadcasters: tuple[bytes, ...] = (FIRST,), **options: Any
    ) -> None:
        self.subnet = Subnet()
        self.last_seq = 0
        self.store = store or IcrcStore.open()
        self.orchestrator = Orchestrator(
            ORCHESTRATOR,
            self.subnet,
            broadcasters=broadcasters,
            store=self.store,
            last_seq=lambda: self.last_seq,
            **options,
        )
        self.subnet.add(self.orchestrator)

    def ask(self, caller: bytes, method: str, argument: object) -> Any:
        served = self.orchestrator.interface[f"icrc72_{method}"]
        (given,) = served.decode_arguments(served.encode_arguments([argument]))
        answer = self.subnet.ask(caller, ORCHESTRATOR, served.name, given)
        (result,) = served.decode_results(served.encode_results([answer]))
        return result

    def publish(self, caller: bytes, *namespaces: str, **item: object) -> list[Variant]:
        """Register publications of the same configuration."""
        items = [{"namespace": it, "config": [], **item} for it in namespaces]
        answer: list[Variant] = self.ask(caller, "register_publication", items)
        return answer

    def subscribe(self, caller: bytes, *namespaces: str, **item: object) -> list[Variant]:
        """Register subscriptions of the same configuration."""
        items = [{"namespace": it, "config": [], **item} for it in namespaces]
        answer: list[Variant] = self.ask(caller, "register_subscription", items)
        return answer

    def change(self, caller: bytes, kind: str, **item: object) -> Variant:
        """Update one publication or subscription."""
        (answer,) = self.ask(caller, f"update_{kind}", [item])
        assert isinstance(answer, Variant)
        return answer

    def query(self, name: str, *, caller: bytes = DAN, **query: object) -> list[Any]:
        answer: list[Any] = self.ask(caller, f"get_{name}", query)
        return answer

    def subscription(self, subscription_id: int) -> Any:
        return self.ask(DAN, "get_subscription", [subscription_id])[0]

    def state(self) -> object:
        """Return all that is registered and stored, and the registry's version, to be compared later."""
        return self.orchestrator.registry.version, self.kept()

    def kept(self) -> object:
        """Return what a restart must keep: all but the version."""
        registry = self.orchestrator.registry
        publications = [(it, list(it.publishers.items())) for it in registry.publications.values()]
        return publications, list(registry.subscriptions.values()), list(registry.broadcasters), self.store.dump()


def stats(info: Any) -> dict[str, Any]:
    """Return the statistics of an info by their names, numbers and texts as they are."""
    return {pair[0]: pair[1].value for pair in info["stats"]}


def only(*names: str) -> Present:
    """Return the filter that asks for statistics of these names."""
    return Present(list(names))


def raw(principal: object) -> bytes:
    assert isinstance(principal, Principal)
    return principal.raw


FIVE = {0: 5, 1: None}
"""A skip as a field: one event of five."""


def office_of(*namespaces: str, **options: Any) -> RegistryOffice:
    """Return an office in which Ann publishes."""
    office = RegistryOffice(**options)
    office.publish(ANN, *namespaces)
    return office


def running(office: RegistryOffice, namespace: str, broadcaster: bytes = FIRST) -> list[IcrcSubscription]:
    return list(office.orchestrator.registry.subscriptions_to(namespace, broadcaster))


def registered(office: RegistryOffice, subscription_id: int = 1) -> IcrcSubscription:
    return office.orchestrator.registry.subscriptions[subscription_id]
