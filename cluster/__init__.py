"""Workers and storage: solve a table, store it, query it and check it; play with it.

Users call the functions of `luckbase` itself.
"""
