"""Many boards in one call: a night's work.

* `requests`: which boards files, folders and job files name.
* `plan`: what of them is to be solved, and why; the status of their tables. Nothing is written.
* `run`: solve one after another, whatever becomes of each; which were saved since.
* `clean`: tables that no board file asks for any more, and taking them away.
"""
