"""What all tests share: how long hypothesis looks for a counterexample, and relaycast's own pytest plugin."""

import os

import pytest
from hypothesis import HealthCheck, settings

from relaycast import pytest_plugin

settings.register_profile("dev", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci", deadline=None, max_examples=100, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin in an environment that was made before relaycast had one: installing it does the same."""
    if not config.pluginmanager.has_plugin("relaycast"):
        config.pluginmanager.register(pytest_plugin, "relaycast")
