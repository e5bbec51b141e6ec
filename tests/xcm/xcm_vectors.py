"""The vectors of messages and locations that travel with the project, one case for each thing that they show."""

import json
from typing import Any

import pytest

from shared_vectors import OWN, Case

VECTORS = OWN / "xcm_v5.json"


def vectors_of(name: str) -> list[Any]:
    """Return the cases under ``name``, each called by why it is there."""
    cases: list[Case] = json.loads(VECTORS.read_text())[name]
    return [pytest.param(case, id=case["why"]) for case in cases]
