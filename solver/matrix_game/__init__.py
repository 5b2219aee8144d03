"""Zero-sum matrix games: one at a time, or eight at a time, each with its proof."""
