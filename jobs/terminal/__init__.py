"""What a person sees on a terminal.

* `render`: numbers, progress, tables; `fitting`: text made to fit a width.
* `solved_report`: what a solve did; `night_report`: what became of many boards. `pictures`: charts,
  with matplotlib; `text_pictures`: the same as text.
* `compiling`: says that numba compiles. `stopping`: signals end a command as Ctrl+C does;
  `streams`: what becomes of one whose stdout can not be written.
"""
