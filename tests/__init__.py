"""Tests of the product, named by the claims they check."""
