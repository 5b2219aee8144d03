"""The states below some roots: found, ordered, solved by backward induction."""
