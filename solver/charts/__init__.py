"""Charts and drawings as data; nothing here knows how a picture is drawn.

`model`: what a table says at a glance. `diagram`: how agents play. `scene`: a state as it looks.
`shown`: how charts show themselves in a notebook.
"""
