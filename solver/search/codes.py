"""What stands for a state where there is no best action, or nobody who acts alone."""

OVER, UNDECIDED, MIXED, KNOWN, NEW, OPEN, EXPANDED = -1, -2, -3, -4, -5, -6, -7
"""Instead of a best action: the game is over; the bounds do not separate; a mixed strategy; given
without one; met and not expanded; below, even numbers: on the path, odd ones: expanded only."""

JOINTLY = -2
"""Instead of who acts: both choose at once."""
