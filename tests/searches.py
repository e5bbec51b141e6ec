"""Examples of tests that name a number of their own: all of them, or a part in the profile of a plain ``./check``."""

from hypothesis import settings

QUICK = "quick"
"""The profile of a plain ``./check``. Each search begins elsewhere: many short ones find what a long one does."""

SHARE_OF_QUICK = 0.25


def examples(usual: int) -> int:
    """Return ``usual``, or a quarter of it in the quick profile."""
    return max(1, round(usual * SHARE_OF_QUICK)) if settings.get_current_profile_name() == QUICK else usual
