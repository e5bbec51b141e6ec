"""The faces of a server: what it offers to clients."""

from dataclasses import dataclass

from relaycast.refusal import BadInput, nearest, shown

NODE = "node"
CLOUDEVENTS = "cloudevents"
WAMP = "wamp"
ICRC = "icrc"
FACES = (NODE, CLOUDEVENTS, WAMP, ICRC)
ALL = "all"


@dataclass(frozen=True, slots=True)
class Faces:
    """Which faces a server offers."""

    node: bool = True
    cloudevents: bool = True
    wamp: bool = True
    icrc: bool = True

    @classmethod
    def named(cls, text: str) -> "Faces":
        """Return the faces that a user named, all for ``all`` and for the empty text; raises ``BadInput``."""
        names = list(FACES) if text in {"", ALL} else [name.strip() for name in text.split(",")]
        for name in names:
            if name not in FACES:
                raise BadInput("--face", shown(name), f"all, or some of {', '.join(FACES)}", nearest(name, list(FACES)))
        return cls(NODE in names, CLOUDEVENTS in names, WAMP in names, ICRC in names)

    @property
    def has_gateway(self) -> bool:
        return self.cloudevents or self.wamp or self.icrc

    def ensure_used(self, option: str, given: object, is_used: bool, needed: str) -> None:
        """Raise ``BadInput`` for an option that no face here has a use for."""
        if given is not None and not is_used:
            offered = ",".join(name for name in FACES if getattr(self, name))
            raise BadInput(option, f"--face {offered}", f"{needed} among the faces")
