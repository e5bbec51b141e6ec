"""Figures of the gateway for Prometheus.

Law: the number of series is bounded: a fixed number of subscriptions have series of their own, all others share one.
No label holds anything that a user wrote.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from relaycast_gateway.delivery.order import DeliveryState
from relaycast_gateway.figures import Figures, IcrcFigures

if TYPE_CHECKING:
    from relaycast_gateway.wamp.router import RouterFigures

MOST_LABELLED = 100
"""Subscriptions with series of their own, the oldest ones."""

OTHERS = "others"


def metrics_text(figures: Figures) -> bytes:
    """Return the figures in the text format of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(figures))
    return generate_latest(registry)


class _Figures(Collector):
    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        it = self._figures
        yield _gauge("relaycast_log_last_sequence", "Sequence number of the newest event.", it.last_seq)
        yield _gauge("relaycast_log_history_start", "Sequence number of the oldest event kept.", it.history_start)
        yield CounterMetricFamily("relaycast_events_lost", "Events that the log could not take.", value=it.lost)
        refused = "Requests that came faster than the limit of their caller."
        yield CounterMetricFamily("relaycast_requests_refused", refused, value=it.refused)
        failed = "Number of failures of listeners to the chains; the log of the server has the reasons."
        yield CounterMetricFamily("relaycast_listener_failures", failed, value=it.listener_failures)
        yield _gauge("relaycast_ready", "1 where /readyz says ok, else 0.", int(it.is_ready))
        subscriptions = GaugeMetricFamily(
            "relaycast_subscriptions", "Subscriptions by protocol and status.", labels=["protocol", "status"]
        )
        numbers: dict[tuple[str, str], int] = {}
        for state, protocol in it.states:
            numbers[protocol, state.status] = numbers.get((protocol, state.status), 0) + 1
        for labels, number in sorted(numbers.items()):
            subscriptions.add_metric(labels, number)
        yield subscriptions
        yield from self._of_subscriptions()
        if it.wamp is not None:
            yield from _of_router(it.wamp)
        if it.icrc is not None:
            yield from _of_canisters(it.icrc)

    def _of_subscriptions(self) -> Iterator[Metric]:
        delivered = CounterMetricFamily("relaycast_events_delivered", "Events acknowledged.", labels=["subscription"])
        retries = CounterMetricFamily("relaycast_delivery_retries", "Attempts repeated.", labels=["subscription"])
        dead = GaugeMetricFamily("relaycast_dead_letters", "Events given up and kept.", labels=["subscription"])
        pending = GaugeMetricFamily("relaycast_events_pending", "In flight, or to be retried.", labels=["subscription"])
        lag = GaugeMetricFamily(
            "relaycast_events_behind", "Events of the log not yet looked at.", labels=["subscription"]
        )
        for name, states in self._labelled():
            delivered.add_metric([name], sum(state.delivered for state in states))
            retries.add_metric([name], sum(state.retries for state in states))
            dead.add_metric([name], sum(state.dead for state in states))
            pending.add_metric([name], sum(state.pending for state in states))
            lag.add_metric([name], max(max(0, self._figures.last_seq - state.cursor) for state in states))
        yield from (delivered, retries, dead, pending, lag)

    def _labelled(self) -> Iterable[tuple[str, list[DeliveryState]]]:
        states = [state for state, _ in self._figures.states]
        for state in states[:MOST_LABELLED]:
            yield state.subscription_id, [state]
        if len(states) > MOST_LABELLED:
            yield OTHERS, states[MOST_LABELLED:]


def _of_router(wamp: "RouterFigures") -> Iterator[Metric]:
    yield _gauge("relaycast_wamp_sessions", "Open sessions of WAMP clients.", wamp.sessions)
    yield _gauge(
        "relaycast_wamp_subscriptions",
        "WAMP subscriptions, those of configured histories among them.",
        wamp.subscriptions,
    )
    yield _gauge("relaycast_wamp_registrations", "Procedures of WAMP, the router's own among them.", wamp.registrations)
    for name, said, value in (
        ("publications", "Publications taken from WAMP clients.", wamp.published),
        ("events_sent", "Events sent to WAMP subscribers.", wamp.delivered),
        ("sessions_dropped", "WAMP sessions ended because their client read too slowly.", wamp.dropped_sessions),
    ):
        yield CounterMetricFamily(f"relaycast_wamp_{name}", said, value=value)


def _of_canisters(icrc: IcrcFigures) -> Iterator[Metric]:
    for name, said, value in (
        ("publications", "Publications of ICRC-72, what chains tell among them.", icrc.publications),
        ("subscriptions", "Subscriptions of ICRC-72, stopped ones among them.", icrc.subscriptions),
        ("subscriptions_running", "Subscriptions of ICRC-72 that are not stopped.", icrc.running),
        ("subscribers", "Principals with a running subscription of ICRC-72.", icrc.subscribers),
        ("calls_waiting", "Calls to subscribers in other processes without an answer yet.", icrc.waiting),
    ):
        yield _gauge(f"relaycast_icrc_{name}", said, value)
    for name, said, value in (
        ("events", "Events that the broadcaster took.", icrc.events),
        ("notifications", "Notifications sent, repeated ones among them.", icrc.notifications),
        ("confirmations", "Notifications that subscribers confirmed.", icrc.confirmations),
        ("calls", "Calls of canisters, from here and over HTTP.", icrc.calls),
        ("calls_failed", "Calls to subscribers in other processes that had no result.", icrc.failed),
    ):
        yield CounterMetricFamily(f"relaycast_icrc_{name}", said, value=value)


def _gauge(name: str, said: str, value: int) -> Metric:
    return GaugeMetricFamily(name, said, value=value)
