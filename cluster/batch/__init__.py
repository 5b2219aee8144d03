"""Many boards in one call: a night's work."""
