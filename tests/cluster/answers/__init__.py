"""The room of the table on disk."""
