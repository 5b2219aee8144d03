"""Charts and scenes as data; nothing here knows how a picture is drawn.

`model`: what a table says at a glance. `scene`: a state as it looks.
`shown`: how charts show themselves in a notebook.
"""
