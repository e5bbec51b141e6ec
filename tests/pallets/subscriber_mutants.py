"""Subscribers that do one thing wrong, which several files of tests must notice."""

from typing import Any

import pytest

from relaycast_pallets.subscriber.publisher_pass import PublisherPass


def tell_keys_of_the_disabled(patch: pytest.MonkeyPatch) -> None:
    """Keys that were read before a publisher is disabled are told all the same."""
    change = PublisherPass.change

    def told(self: PublisherPass) -> Any:
        found = change(self)
        if found is not None and found.disabled_by is not None:
            found.changed = self._walk.changed
        return found

    patch.setattr(PublisherPass, "change", told)
