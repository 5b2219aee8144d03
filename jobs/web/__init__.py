"""The explorer: a page in a browser, and the same as JSON, of tables that are there.

`app`: what is answered at which address. `shelf`: the tables that are served, listed beforehand and
opened as they are asked for. `asked`: what a request says, read and checked. `about`: what is said of
a table. `grid`, `playing`, `rows`, `compared`: the views. `replies`: how an answer is sent. `openapi`: the
description of all of it. `static/`: the page. `server`: the process that listens.

`scene_svg`: a state drawn. `report`: a table in one file, which needs no server; `report_charts`,
`report_curves`, `report_parts`: what stands in it.
"""
