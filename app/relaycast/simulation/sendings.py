"""What one publisher of a scenario sent, and what the relay chain took of it."""

from dataclasses import dataclass

from relaycast.scenario.workload_dump import SendingsDump


@dataclass(slots=True)
class Sendings:
    """Numbers of publications, and the bytes of their values; ``refused`` counts messages."""

    sent: int = 0
    published: int = 0
    refused: int = 0
    value_bytes: int = 0

    def dump(self, para_id: int) -> SendingsDump:
        """Return the numbers as data."""
        return SendingsDump(para_id, self.sent, self.published, self.refused, self.value_bytes)

    @classmethod
    def of_dump(cls, dump: SendingsDump) -> "Sendings":
        """Return the numbers that were put away."""
        return cls(dump.sent, dump.published, dump.refused, dump.value_bytes)
