"""Running a solve: the plan, the schedule, the driver, its workers."""
