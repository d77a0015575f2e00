"""The probe suite: one claim a probe."""
