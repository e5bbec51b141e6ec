"""All broadcasters that an orchestrator names, page after page."""

from collections.abc import Callable
from typing import Any, cast

from relaycast_gateway.icrc.canister import Answer

AskOrchestrator = Callable[[str, object, Callable[[Answer], None]], None]


def ask_for_broadcasters(ask: AskOrchestrator, found: Callable[[Answer], None]) -> None:
    """Give ``found`` the principals as ``list[bytes]``, in the orchestrator's order, or why they cannot be had."""
    principals: dict[bytes, None] = {}

    def next_page(prev: object) -> None:
        ask("icrc72_get_broadcasters", {"prev": prev, "take": None, "statsFilter": None}, answered)

    def answered(answer: Answer) -> None:
        if answer.refusal is not None:
            found(answer)
            return
        page = [it["broadcaster"] for it in cast("list[dict[str, Any]]", answer.value)]
        known = len(principals)
        principals.update((it.raw, None) for it in page)
        if len(principals) > known:
            next_page(page[-1])
        else:
            found(Answer(list(principals)))

    next_page(None)
