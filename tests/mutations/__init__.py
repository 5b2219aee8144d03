"""Small mutations of the product, and whether the closest tests of each die of it.

``python -m tests.mutations --count 60 --seed 1`` draws them (`drawn`): a comparison, a sign, a
constant, an index, the order of two statements, a dropped call. Each is made in a copy of the
checkout and the tests that run the changed function are run, the most specific first, for about a
minute. Those that no test notices are printed as they would stand in a patch; what changes nothing
that anybody could see stands in `equivalent`, with its reason. Exit code 1 where fewer than nine
in ten die.

Which test runs which function is recorded once (`recorded`), by a run of all tests under
coverage.py, and kept in ``.pytest_cache``; ``--record`` records it anew. coverage.py sees no
compiled code: a compiled function's tests are those of the functions that call it, by name.
"""
