"""The explorer: a page in a browser, and the same as JSON, of tables that are there.

`server`: the process that listens, and what stands before an answer. `http`: how requests are read
and answers sent. `views`: the addresses, what each takes and gives, and their description. `pool`:
the tables that are served, listed beforehand and opened when there is a question.

What the answers are, as classes that give JSON and its schema: `tables`: what is said of a table;
`states`: of states, one and many; `pictures`: charts, grids, a state drawn; `play`: a person's
game.

`report`: a table in one file, which needs no server.
"""
