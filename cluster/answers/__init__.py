"""Answers from a table: by state, in batches, as frames and charts; comparing, verifying."""
