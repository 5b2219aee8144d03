"""The explorer: a page in a browser, and the same as JSON, of tables that are there.

`server`: the process that listens. `app`: the application, and what stands before it. `http`: how
requests are read and answers sent; the page's own files. `params`: what a request says, read and
checked. `views`: the addresses, what each takes and gives. `openapi`: the description of them.
`pool`: the tables that are served, listed beforehand and opened as they are asked for.

What the answers are, as classes that give JSON and its schema: `tables`: what is said of a table;
`states`: of states, one and many; `pictures`: charts, grids, a state drawn; `play`: a person's
game.

`scene_svg`: a state drawn. `report`: a table in one file, which needs no server; `report_charts`:
the charts in it.
"""
