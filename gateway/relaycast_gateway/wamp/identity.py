"""Who a session belongs to, as the router found out when the session began."""

from dataclasses import dataclass, field

from relaycast_gateway.principal import client_principal


@dataclass(frozen=True, slots=True)
class Identity:
    """A session and what its client was authenticated as. ``session`` is random and ends with the connection."""

    session: int
    realm: str
    authid: str
    authrole: str
    authmethod: str = "anonymous"
    authprovider: str = "static"
    fixed_principal: bytes | None = field(default=None, repr=False)
    """The principal of the token that authenticated it."""

    @property
    def principal(self) -> bytes:
        """Its principal in the lists of publications."""
        return self.fixed_principal or client_principal(self.realm, self.authid)

    def disclosed(self, prefix: str) -> dict[str, object]:
        """Return the members by which others learn who it is, such as ``publisher`` and ``publisher_authid``."""
        return {prefix: self.session, f"{prefix}_authid": self.authid, f"{prefix}_authrole": self.authrole}

    def details(self) -> dict[str, object]:
        """Return what the session meta API says."""
        return {
            "session": self.session,
            "authid": self.authid,
            "authrole": self.authrole,
            "authmethod": self.authmethod,
            "authprovider": self.authprovider,
        }
