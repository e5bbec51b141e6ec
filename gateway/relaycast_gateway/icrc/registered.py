"""What a registration of one item came to: its id, or why it has none."""

from typing import cast

from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.canister import Answer


def registered_id(answer: Answer) -> Answer:
    """Return the id that a registration of one item gave, or why it gave none."""
    if answer.refusal is not None:
        return answer
    results = cast("list[Variant | None]", answer.value)
    result = results[0] if results else None
    if result is None:
        return Answer(refusal="the orchestrator processed nothing")
    if result.tag == "Ok":
        return Answer(result.value)
    error = cast("Variant", result.value)
    if error.tag == "Exists":
        return Answer(error.value)
    return Answer(refusal=str(error.tag) if error.value is None else f"{error.tag}: {error.value}")
