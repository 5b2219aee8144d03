"""Games solved slowly and obviously, the rules read aloud in plain Python: a reader can hold a file
beside the rules and check it line by line, and the product is tested against it. None of them
imports anything from the product."""
