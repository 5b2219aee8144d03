"""Running a solve: the pipeline of every one (`driver`), what to do next (`schedule`), and who does
it: threads of this process (`worker`), or what Ray places (`ray`, `nodes`)."""
