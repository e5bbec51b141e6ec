"""The gateway: what chains tell, in one append-only event log, pushed to any system and read back with its history."""
