"""How long hypothesis searches: as long as the profile that ``HYPOTHESIS_PROFILE`` names, ``dev`` or ``ci``."""

import os

from hypothesis import HealthCheck, settings

SLOW_STARTS = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("dev", deadline=None, max_examples=100, suppress_health_check=SLOW_STARTS)
settings.register_profile("ci", deadline=None, max_examples=500, suppress_health_check=SLOW_STARTS, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
