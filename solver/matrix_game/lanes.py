"""Eight float64 numbers at once, for compiled functions: one vector instruction a step.

numba leaves loops over eight lanes scalar (it unrolls them before it looks for vectors), so here is
a type `Lanes`, LLVM's <8 x double>, with the operations that the kernels need. It lives in compiled
functions only and becomes what the processor has: one AVX-512 register, two of AVX2, four of SSE2.

``+ - * /`` are lane by lane and each rounded once: no fused multiply-add, so the bits are the same
on any processor. A comparison with a NaN is false. Arrays are flat, float64, and int64 of steps.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

WIDTH = 8
"""Lanes."""

intrinsic: Any = extending.intrinsic  # what it makes is called in compiled code only

_vector = ir.VectorType(ir.DoubleType(), WIDTH)
_array = types.Array(types.float64, 1, "C")


class Lanes(types.Type):  # type: ignore[misc]
    """The type of eight float64 numbers in a compiled function."""

    def __init__(self) -> None:
        super().__init__(name="lanes")


lanes = Lanes()


@register_model(Lanes)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _vector)


def _pointer(context, builder, sig, args):
    """Where the element of a flat array stands that the first two arguments name, as a pointer to
    eight."""
    at = context.cast(builder, args[1], sig.args[1], types.intp)
    data = context.make_array(sig.args[0])(context, builder, args[0]).data
    return builder.bitcast(builder.gep(data, [at]), _vector.as_pointer())


@intrinsic
def load(typingctx, array, index):
    """The lanes at array[index] .. array[index + 7]; nobody looks whether they are there."""

    def emit(context, builder, sig, args):
        return builder.load(_pointer(context, builder, sig, args), align=8)

    return lanes(array, index), emit


@intrinsic
def store(typingctx, array, index, a):
    """Write the lanes to array[index] .. array[index + 7]."""

    def emit(context, builder, sig, args):
        builder.store(args[2], _pointer(context, builder, sig, args), align=8)
        return context.get_dummy_value()

    return types.void(array, index, a), emit


@intrinsic
def store_where(typingctx, array, index, a, bits):
    """Write those lanes to array[index] .. that have a bit in `bits`."""

    def emit(context, builder, sig, args):
        pointer = _pointer(context, builder, sig, args)
        mask = builder.bitcast(
            builder.trunc(args[3], ir.IntType(WIDTH)), ir.VectorType(ir.IntType(1), WIDTH)
        )
        kept = builder.load(pointer, align=8)
        builder.store(builder.select(mask, args[2], kept), pointer, align=8)
        return context.get_dummy_value()

    return types.void(array, index, a, bits), emit


@intrinsic
def gather(typingctx, array, index, steps, at):
    """Lane l is array[index + steps[at + l]]; nobody looks whether it is there."""

    def emit(context, builder, sig, args):
        start = context.cast(builder, args[1], sig.args[1], types.intp)
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        steps = context.make_array(sig.args[2])(context, builder, args[2]).data
        at = context.cast(builder, args[3], sig.args[3], types.intp)
        steps = builder.gep(steps, [at])
        gathered = ir.Constant(_vector, ir.Undefined)
        for lane in range(WIDTH):
            number = cgutils.int32_t(lane)
            step = builder.load(builder.gep(steps, [number]))
            value = builder.load(builder.gep(data, [builder.add(start, step)]))
            gathered = builder.insert_element(gathered, value, number)
        return gathered

    return lanes(array, index, steps, at), emit


@intrinsic
def splat(typingctx, number):
    """The number in every lane."""

    def emit(context, builder, sig, args):
        value = context.cast(builder, args[0], sig.args[0], types.float64)
        first = builder.insert_element(
            ir.Constant(_vector, ir.Undefined), value, cgutils.int32_t(0)
        )  # fmt: skip
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), None)
        return builder.shuffle_vector(first, ir.Constant(_vector, ir.Undefined), zeros)

    return lanes(number), emit


@intrinsic
def where_less(typingctx, a, b, x, y):
    """x where a < b, else y."""

    def emit(context, builder, sig, args):
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[2], args[3])

    return lanes(a, b, x, y), emit


def _define(operation, instruction):
    """Make `operation` work lane by lane."""

    @infer_global(operation)
    class Typing(ConcreteTemplate):  # type: ignore[misc]
        cases = [signature(lanes, lanes, lanes)]  # noqa: RUF012

    @lower_builtin(operation, Lanes, Lanes)
    def emit(context, builder, sig, args):
        return getattr(builder, instruction)(*args)


for _operation, _instruction in (
    (operator.add, "fadd"), (operator.sub, "fsub"),
    (operator.mul, "fmul"), (operator.truediv, "fdiv"),
):  # fmt: skip
    _define(_operation, _instruction)


class Emitter:
    """The same operations while code is emitted, for an intrinsic whose loops are unrolled.

    builder: LLVM's, numbers: a pointer to the float64 in which the lanes stand.
    """

    def __init__(self, builder: Any, numbers: Any) -> None:
        self.builder, self.numbers = builder, numbers
        self.add, self.sub = builder.fadd, builder.fsub
        self.mul, self.div = builder.fmul, builder.fdiv

    def splat(self, number: float) -> Any:
        return ir.Constant(_vector, [number] * WIDTH)

    def less_product(self, a: Any, b: Any, c: Any) -> Any:
        """a - b c."""
        return self.builder.fsub(a, self.builder.fmul(b, c))

    def greater(self, a: Any, b: Any) -> Any:
        """The greater one; b where one is NaN."""
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def least(self, a: Any, b: Any) -> Any:
        """The lesser one; b where one is NaN."""
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), a, b)

    def less(self, a: Any, b: Any) -> Any:
        """Bits, lane l at bit l: whether a < b."""
        bits = self.builder.bitcast(self.builder.fcmp_ordered("<", a, b), ir.IntType(WIDTH))
        return self.builder.zext(bits, ir.IntType(64))

    def _at(self, index: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(self.numbers, [index]), _vector.as_pointer())

    def cell(self, start: Any, row: Any, column: Any) -> Any:
        """The entry of eight games that begin at `start`, `row` entries and `column` on."""
        cell = self.builder.mul(self.builder.add(row, column), row.type(WIDTH))
        return self.builder.load(self._at(self.builder.add(start, cell)), align=8)

    def store(self, index: int, a: Any) -> None:
        self.builder.store(a, self._at(ir.Constant(ir.IntType(64), index)), align=8)


def _of_two(name, returns):
    """The intrinsic of one of these operations on two vectors."""

    def emit(context, builder, sig, args):
        return getattr(Emitter(builder, None), name)(*args)

    def typed(typingctx, a, b):
        return returns(a, b), emit

    return intrinsic(typed)


greater, least = _of_two("greater", lanes), _of_two("least", lanes)
less = _of_two("less", types.int64)
