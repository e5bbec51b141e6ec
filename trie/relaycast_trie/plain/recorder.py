"""Which nodes and external values a read touched: the makings of a proof (sp-trie ``Recorder``)."""


class Recorder:
    """Collects every node that was found by its hash, and every external value; inline nodes come with their parent."""

    __slots__ = ("nodes",)

    def __init__(self) -> None:
        self.nodes: dict[bytes, bytes] = {}

    def record(self, node_hash: bytes, data: bytes, /) -> None:
        self.nodes[node_hash] = data

    def __repr__(self) -> str:
        return f"<Recorder {len(self.nodes)} nodes, {sum(map(len, self.nodes.values()))} bytes>"
