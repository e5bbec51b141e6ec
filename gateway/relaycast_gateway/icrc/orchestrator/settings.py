"""What an orchestrator allows: limits and strictness, in one frozen value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OrchestratorSettings:
    """Limits of an orchestrator; beyond each of them a call gets an error that names it."""

    most_items: int = 100
    """Items in a batch of updates or queries."""

    most_taken: int = 1_000
    """Items in a page: a larger ``take`` is cut to this, and a page without ``take`` has as many."""

    most_publications: int = 100_000
    most_publications_of_a_publisher: int = 10_000
    most_subscriptions: int = 100_000
    most_subscriptions_of_a_subscriber: int = 1_000
    most_publishers_of_a_publication: int = 10_000
    most_config_bytes: int = 65_536
    """Bytes of the stored form of a configuration."""

    most_memo_bytes: int = 32

    strict_namespaces: bool = False
    """Refuse namespaces of a single word, such as ``transfer``, which others may use too."""

    strict_config: bool = False
    """Refuse keys of configurations that mean nothing here; they are kept and returned by default."""

    prove_ownership: bool = False
    """Refuse publications outside of ``granted_prefixes``."""

    granted_prefixes: Mapping[bytes, tuple[str, ...]] = field(default_factory=dict)
    """By publisher: ``com.foo`` grants ``com.foo`` and all below, ``com.foo.transfer``."""

    closed_prefixes: tuple[str, ...] = ()
    """Prefixes reserved for chains and other faces: callers cannot register or publish there."""

    check_url: Callable[[str], None] = lambda _url: None
    """Raises ``ValueError`` for a URL that subscribers may not be called at."""
