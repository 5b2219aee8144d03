"""Arrays lent to compiled code: the same memory, without an owner to count references for.

numba counts references, atomically, wherever an array is taken out of a tuple or handed to another
function, inlined or not. Of an array without an owner nothing is counted, and LLVM sees it, so what
is inlined costs nothing more.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array


def _borrowed(typing_context: Any, array: Any) -> Any:
    """The array, whose owner must outlive it: an argument of the function that borrows it."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = make_array(array)(context, builder, value=args[0])
        found.meminfo = cgutils.get_null_value(found.meminfo.type)
        found.parent = cgutils.get_null_value(found.parent.type)
        return found._getvalue()

    return (array(array), generate) if isinstance(array, types.Array) else None


borrowed: Any = intrinsic(_borrowed)
