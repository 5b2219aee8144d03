"""Zero-sum matrix games: one at a time, eight at a time, each with its proof."""
