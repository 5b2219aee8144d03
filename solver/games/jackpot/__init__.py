"""Jackpot and Shut the Box: one player, tiles 1 to 9 down, two dice, flip what a roll allows."""
