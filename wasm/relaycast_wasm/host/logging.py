"""``ext_logging_*``: what a runtime has to say, kept as lines ``level target: message``."""

from relaycast_wasm.host.host_call import HostCall
from relaycast_wasm.host.registry import host_function

LEVELS = ("error", "warn", "info", "debug", "trace")


@host_function("iII")
def ext_logging_log_version_1(host: HostCall, level: int, target: int, message: int) -> None:
    name = LEVELS[min(level, len(LEVELS) - 1)]
    said = host.read(message).decode("utf-8", "replace")
    host.log.append(f"{name} {host.read(target).decode('utf-8', 'replace')}: {said}")
    if name == "error":
        host.panic = said


@host_function("", "i")
def ext_logging_max_level_version_1(host: HostCall) -> int:  # noqa: ARG001
    return 3
