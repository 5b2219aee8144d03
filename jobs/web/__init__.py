"""The explorer: a page in a browser, and the same as JSON, of tables that are there.

`server`: the process that listens. `app`: what answers at which address, and what stands before
it. `shelf`: the tables that are served, listed beforehand and opened as they are asked for.
`views`: what each address of a table gives; `about`: what is said of one; `playing`: a person's
game; `rows`: many states at once; `pictures`: a state drawn. `asked`: what a request says, read and
checked; `bodies`: what is sent with it; `replies`: how an answer is sent. `openapi`: the
description of all of it. `pages`: the page's own files, those of `static/`.

`scene_svg`: a state drawn. `report`: a table in one file, which needs no server; `report_charts`:
the charts in it.
"""
