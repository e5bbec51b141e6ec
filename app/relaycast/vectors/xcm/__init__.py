"""The vectors of XCM: bytes, barriers and the executor."""
