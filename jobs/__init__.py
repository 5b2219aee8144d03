"""What a person runs: one command a file. Nothing heavy is imported before a command needs it."""
