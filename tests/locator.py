"""Where the tests' Ray workers find compiled code: numba looks for it by the path of a function's
file, and a driver sends its workers a copy of luckbase, whose path nobody has compiled for."""

from numba.core.caching import UserProvidedCacheLocator

from tests.places import ROOT


class AsInCheckout(UserProvidedCacheLocator):
    """The code of a copy of luckbase is that of this checkout, if it is the same version."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file):
        _, is_luckbase, name = py_file.rpartition("/luckbase/")
        path = str(ROOT / "luckbase" / name) if is_luckbase else py_file
        return super().get_suitable_cache_subpath(path)
