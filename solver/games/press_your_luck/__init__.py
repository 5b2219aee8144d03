"""Press Your Luck, round 2: two or three players, spins, whammies, play or pass."""
