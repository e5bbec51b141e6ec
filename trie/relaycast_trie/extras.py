"""The extras of the package: which one provides a missing module, and how to install it.

A clone is installed with ``-e``: a copy would keep running old code after the next pull.
"""

import importlib.metadata
from functools import cache

from packaging.requirements import Requirement

MODULES = {
    "mkdocs-material": "material",
    "nats-py": "nats",
    "paho-mqtt": "paho",
    "py-sr25519-bindings": "sr25519",
    "pycryptodome": "Crypto",
    "pynacl": "nacl",
    "python-qpid-proton": "proton",
    "pyyaml": "yaml",
    "vl-convert-python": "vl_convert",
}
"""Modules of distributions whose names differ."""

BROUGHT_ALONG = {"py4j": "pyspark"}
"""Imported modules that belong to another distribution."""


def install_command(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install -e '.[{extra}]' in the clone of relaycast"


def module_of(distribution: str) -> str:
    """Return the name that a distribution is imported by."""
    return MODULES.get(distribution.lower(), distribution.replace("-", "_"))


def extra_of(module: str) -> str | None:
    """Return the extra that provides ``module`` or its package; ``None`` if no extra does."""
    top = module.partition(".")[0]
    return _extras().get(module_of(BROUGHT_ALONG.get(top, top)))


@cache
def _extras() -> dict[str, str]:
    """Return extras by module: the smallest of several."""
    try:
        about = importlib.metadata.metadata("relaycast")
    except importlib.metadata.PackageNotFoundError:
        return {}
    lines = [Requirement(line) for line in about.get_all("Requires-Dist") or ()]
    optional = [it for it in lines if it.marker is not None and not it.marker.evaluate({"extra": ""})]
    found: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for extra in about.get_all("Provides-Extra") or ():
        brought = [module_of(it.name) for it in optional if it.marker and it.marker.evaluate({"extra": extra})]
        for module in brought:
            if module not in found or len(brought) < sizes[module]:
                found[module], sizes[module] = extra, len(brought)
    return found
