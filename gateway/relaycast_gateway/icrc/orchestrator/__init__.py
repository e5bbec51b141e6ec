"""The orchestrator of ICRC-72: registrations, access lists, statistics and the queries about them."""

from relaycast_gateway.icrc.orchestrator.access_lists import Icrc75Lists
from relaycast_gateway.icrc.orchestrator.orchestrator import Orchestrator
from relaycast_gateway.icrc.orchestrator.settings import OrchestratorSettings
from relaycast_gateway.icrc.orchestrator.statistics import Statistics

__all__ = ["Icrc75Lists", "Orchestrator", "OrchestratorSettings", "Statistics"]
