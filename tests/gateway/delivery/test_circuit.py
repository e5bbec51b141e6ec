"""A dead sink is probed, not hammered."""

from relaycast_gateway.delivery.circuit import Circuit, CircuitLimits, CircuitPhase

LIMITS = CircuitLimits(failures=3, first_seconds=10, longest_seconds=35)


def test_it_opens_after_failures_in_a_row_for_longer_each_time() -> None:
    circuit = Circuit(LIMITS)
    assert [circuit.failed() for _ in range(3)] == [None, None, 10]
    waits = []
    for _ in range(4):
        assert not circuit.may_start(0)
        circuit.probe()
        assert circuit.may_start(0)
        assert not circuit.may_start(1)  # one attempt probes
        waits.append(circuit.failed())
    assert waits == [20, 35, 35, 35]


def test_an_answer_closes_it_and_makes_it_forget() -> None:
    circuit = Circuit(LIMITS)
    for _ in range(3):
        circuit.failed()
    circuit.probe()
    circuit.answered()
    assert circuit.phase is CircuitPhase.CLOSED
    assert [circuit.failed() for _ in range(3)] == [None, None, 10]


def test_failures_of_what_was_in_flight_as_it_opened_do_not_prolong_the_wait() -> None:
    circuit = Circuit(LIMITS)
    assert [circuit.failed() for _ in range(5)] == [None, None, 10, None, None]


def test_failures_between_answers_do_not_add_up() -> None:
    circuit = Circuit(LIMITS)
    for _ in range(100):
        circuit.failed()
        circuit.failed()
        circuit.answered()
    assert circuit.may_start(5)
