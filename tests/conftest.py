"""Settings of the test run: no deadlines, which only say how busy the machine is."""

from hypothesis import settings

settings.register_profile("luckbase", deadline=None)
settings.load_profile("luckbase")
