"""Whole solves: stopped, killed, cut off, damaged, grown; in one process and on several hosts."""
