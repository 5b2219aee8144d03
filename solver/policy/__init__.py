"""What agents get: Markov chains of profiles, exact values, Monte Carlo."""
