"""Charts and drawings as data."""
