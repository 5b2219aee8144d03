"""Skunk: two players, dice rolled as often as one dares, a 1 takes the turn, all 1s the score."""
