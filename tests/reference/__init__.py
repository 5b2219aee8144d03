"""Reference solvers, slow and obvious, that share no code with the product and judge it."""
