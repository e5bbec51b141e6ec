"""``ext_logging_*`` and what else a runtime says: kept as lines ``level target: message``.

``ext_panic_handler_*`` and ``ext_wasm_tracing_*`` stand here too: the one stops the call, of the other nothing is kept.
"""

from relaycast_wasm.host.host_call import HostCall, RuntimeAborted
from relaycast_wasm.host.registry import host_function

LEVELS = ("error", "warn", "info", "debug", "trace")
MAX_LEVEL = 3
"""Lines up to ``info`` are asked for (``LogLevelFilter::Info``)."""


@host_function("iII")
def ext_logging_log_version_1(host: HostCall, level: int, target: int, message: int) -> None:
    name = LEVELS[min(level, len(LEVELS) - 1)]
    said = host.read(message).decode("utf-8", "replace")
    host.log.append(f"{name} {host.read(target).decode('utf-8', 'replace')}: {said}")
    if name == "error":
        host.panic = said


@host_function("", "i")
def ext_logging_max_level_version_1(_host: HostCall) -> int:
    return MAX_LEVEL


@host_function("I")
def ext_panic_handler_abort_on_panic_version_1(host: HostCall, message: int) -> None:
    host.panic = host.read(message).decode("utf-8", "replace")
    raise RuntimeAborted(host.panic)


@host_function("I")
def ext_misc_print_num_version_1(host: HostCall, number: int) -> None:
    host.log.append(f"debug runtime: {number}")


@host_function("I")
def ext_misc_print_utf8_version_1(host: HostCall, data: int) -> None:
    try:
        host.log.append(f"debug runtime: {host.read(data).decode()}")
    except UnicodeDecodeError:
        return


@host_function("I")
def ext_misc_print_hex_version_1(host: HostCall, data: int) -> None:
    host.log.append(f"debug runtime: {host.read(data).hex()}")


@host_function("I", "i")
def ext_wasm_tracing_enabled_version_1(host: HostCall, metadata: int) -> int:
    host.read(metadata)
    return 0


@host_function("I", "I")
def ext_wasm_tracing_enter_span_version_1(host: HostCall, attributes: int) -> int:
    host.read(attributes)
    return 0


@host_function("I")
def ext_wasm_tracing_exit_version_1(_host: HostCall, _span: int) -> None:
    return
