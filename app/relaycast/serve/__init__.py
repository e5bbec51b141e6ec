"""``relaycast serve``: the HTTP application, who may use it, its limits, and the live page."""
