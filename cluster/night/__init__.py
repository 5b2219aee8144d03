"""Many boards: a night's work.

* `asked`: which boards are asked for, by files, folders and job files; `job`: what a job file says.
* `due`: what of them is to be solved, and why; before the night.
* `standing`: the status of their tables, and which have none.
* `outcome`: solve one after another, whatever becomes of each. `saved`: which were saved since.
* `clean`: tables that no board file asks for any more; `removal`: taking one away.
"""
