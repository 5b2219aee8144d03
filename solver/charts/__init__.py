"""Charts (`model`) and drawings (`diagram`) as data; nothing here knows how a picture is drawn."""
