"""The search below some roots, over workers."""
