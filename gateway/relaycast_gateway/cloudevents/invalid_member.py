"""The one way in which a subscription object can be wrong."""


class InvalidMember(ValueError):
    """``member`` (a path such as ``protocolsettings.qos``) holds ``got`` where ``expected`` is needed."""

    def __init__(self, member: str, got: str, expected: str) -> None:
        super().__init__(member, got, expected)
        self.member = member
        self.got = got
        self.expected = expected

    def __str__(self) -> str:
        return f"{self.member}: got {self.got}, expected {self.expected}"
