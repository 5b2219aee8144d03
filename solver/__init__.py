"""Rules and numerics: boards, games, backward induction. No Ray, no Parquet, no terminal."""
