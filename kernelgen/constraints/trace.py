"""Follows a Triton kernel through its source in one setting: which extents, products and loads it has, run by no one.

Every statement is visited once, a loop's body too; helpers that are `@triton.jit` functions of the same source are
followed into. What the text does not tell stays unknown, so what is found is certain as far as the source goes:
a branch that may not be taken is followed like the others, its results forgotten.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kernelgen.constraints import calls, operations
from kernelgen.constraints.constants import UNKNOWN, Constant, Evaluator
from kernelgen.constraints.launches import Setting, constexprs
from kernelgen.constraints.seen import Descriptor, Load, Product, Trace
from kernelgen.constraints.tiles import NOTHING, OF_TORCH, Shape, Tile, runs_on, scalar

DEEPEST_CALL = 6
MOST_VISITS = 100_000
"""Expressions visited for one kernel; what comes after them is not seen."""


def trace(setting: Setting, functions: Mapping[str, ast.FunctionDef]) -> Trace:
    """Follow a kernel in a setting; `functions` are the source's `@triton.jit` functions."""
    follower = Follower(functions)
    names: dict[str, Tile] = {}
    compile_time = set(constexprs(setting.kernel))
    for parameter in [*setting.kernel.args.posonlyargs, *setting.kernel.args.args, *setting.kernel.args.kwonlyargs]:
        name = parameter.arg
        if name in compile_time:
            names[name] = scalar(setting.constants.get(name, UNKNOWN))
        elif name in setting.dtypes:
            dtype = setting.dtypes[name]
            names[name] = Tile(shape=(), dtype=OF_TORCH.get(dtype, dtype), pointer=True, strides=())
        else:
            names[name] = Tile(shape=(), strides=())  # a pointer or a number
    follower.body(setting.kernel.body, names)
    return follower.seen


class Follower:
    """Walks statements with the values of names."""

    def __init__(self, functions: Mapping[str, ast.FunctionDef]) -> None:
        self.seen = Trace()
        self.evaluator = Evaluator()
        self._functions = functions
        self._loop: list[int | None] = []
        self._loops = 0
        self._depth = 0
        self._visits = 0
        self._returned: list[Tile] = []

    @property
    def loop(self) -> int | None:
        """The innermost loop, where it is pipelined."""
        return self._loop[-1] if self._loop else None

    def body(self, statements: Sequence[ast.stmt], names: dict[str, Tile]) -> None:
        """Follow statements; `names` changes as they assign."""
        for statement in statements:
            self._statement(statement, names)

    def _statement(self, node: ast.stmt, names: dict[str, Tile]) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                given = self._parts(value, names)
                for target in targets:
                    self._assign(target, given, names)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self._parts(value, names), names)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                left = names.get(name, NOTHING)
                names[name] = operations.binary(op, left, self.tile(value, names))
                self._assign(target, names[name], names)
            case ast.For():
                self._for(node, names)
            case ast.While(test=test, body=body):
                self._turns(body, names, None)
                self.tile(test, names)
            case ast.If():
                self._if(node, names)
            case ast.Expr(value=value):
                self.tile(value, names)
            case ast.Return(value=ast.expr() as value):
                self._returned.append(self.tile(value, names))

    def _parts(self, value: ast.expr, names: dict[str, Tile]) -> Tile | list[Tile]:
        if isinstance(value, ast.Tuple):
            return [self.tile(part, names) for part in value.elts]
        return self.tile(value, names)

    def _assign(self, target: ast.expr, given: Tile | list[Tile], names: dict[str, Tile]) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = given if isinstance(given, Tile) else NOTHING
        elif isinstance(target, ast.Tuple | ast.List):
            fits = isinstance(given, list) and len(given) == len(target.elts)
            for index, part in enumerate(target.elts):
                self._assign(part, given[index] if fits and isinstance(given, list) else NOTHING, names)

    def _for(self, node: ast.For, names: dict[str, Tile]) -> None:
        call = node.iter if isinstance(node.iter, ast.Call) else None
        called = "" if call is None else calls.called(call)
        bounds = [self.tile(bound, names).constant for bound in call.args] if call is not None else []
        one_turn = bool(bounds) and UNKNOWN not in bounds and self._turns_of(bounds) <= 1
        unrolled = one_turn or called == "static_range"
        loop = self.loop if unrolled else None
        if called == "range" and call is not None and not one_turn:
            self._loops += 1
            loop = self._loops
            asked = next((k.value for k in call.keywords if k.arg == "num_stages"), None)
            if asked is not None:
                stages = self.tile(asked, names).constant
                self.seen.stages[loop] = stages if isinstance(stages, int) else None
        self._assign(node.target, Tile(shape=(), strides=(), loops=frozenset(() if loop is None else (loop,))), names)
        self._turns(node.body, names, loop)

    def _turns_of(self, bounds: Sequence[Constant]) -> int:
        try:
            return len(range(*bounds))
        except (TypeError, ValueError, OverflowError):
            return 2  # not known: more than one

    def _turns(self, body: Sequence[ast.stmt], names: dict[str, Tile], loop: int | None) -> None:
        """A loop's body once; what it assigns to may differ in every turn."""
        for name in assigned(body):
            if name in names:
                before = names[name]
                loops = before.loops if loop is None else before.loops | {loop}
                names[name] = replace(before, constant=UNKNOWN, loops=loops)
        self._loop.append(loop)
        self.body(body, names)
        self._loop.pop()

    def _if(self, node: ast.If, names: dict[str, Tile]) -> None:
        test = self.tile(node.test, names).constant
        if test is not UNKNOWN:
            self.body(node.body if test else node.orelse, names)
            return
        before = dict(names)
        other = dict(names)
        self.body(node.body, names)
        self.body(node.orelse, other)
        for name in {*names, *other}:
            if names.get(name) != other.get(name):
                first, second = names.get(name, NOTHING), other.get(name, before.get(name, NOTHING))
                names[name] = operations.merged(first, second)

    def tile(self, node: ast.expr, names: dict[str, Tile]) -> Tile:
        """What is known of an expression's value."""
        self._visits += 1
        if self._visits > MOST_VISITS:
            return NOTHING
        match node:
            case ast.Constant(value=value):
                return scalar(value)
            case ast.Name(id=name):
                return names.get(name, NOTHING)
            case ast.BinOp(left=left, op=op, right=right):
                found = operations.binary(op, self.tile(left, names), self.tile(right, names))
            case ast.Compare(left=left, comparators=[right]):
                found = operations.compared(self.tile(left, names), self.tile(right, names))
            case ast.UnaryOp(operand=operand):
                found = replace(self.tile(operand, names), constant=UNKNOWN, strides=None, direct=False)
            case ast.Subscript(value=value, slice=index):
                found = operations.expanded(self.tile(value, names), index)
            case ast.Attribute(value=value, attr="T"):
                found = operations.transposed(self.tile(value, names))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                known = self.tile(test, names).constant
                if known is not UNKNOWN:
                    return self.tile(body if known else orelse, names)
                found = operations.merged(self.tile(body, names), self.tile(orelse, names))
            case ast.Call():
                found = self._call(node, names)
            case _:
                return NOTHING
        if found.shape == () and found.constant is UNKNOWN:
            found = replace(found, constant=self.constant(node, names))
        return found

    def constant(self, node: ast.expr, names: Mapping[str, Tile]) -> Constant:
        """The value of an expression of compile-time values, or UNKNOWN."""
        return self.evaluator.value(node, _Constants(names))

    def made(self, shape: Shape) -> None:
        """A block of this shape is made."""
        self.seen.extents += [extent for extent in shape if extent is not None]

    def loaded(self, address: Tile) -> Tile:
        """What is loaded from an address."""
        loop = self.loop if self.loop in address.loops else None
        dtype = address.dtype if address.pointer else None
        self.seen.loads.append(Load(address.shape, dtype, loop, runs_on(address.strides), address.loads))
        number = len(self.seen.loads) - 1
        return Tile(
            address.shape, dtype, layout=address.strides, loads=frozenset({number}), direct=True, loops=address.loops
        )

    def product(self, left: Tile, right: Tile) -> None:
        """A product is taken."""
        self.seen.products.append(Product(left, right, self.loop))

    def described(self, last: int | None, stride: int | None, dtype: str | None) -> None:
        """A tensor descriptor is made."""
        self.seen.descriptors.append(Descriptor(last, stride, dtype))

    def _call(self, node: ast.Call, names: dict[str, Tile]) -> Tile:
        function = self._functions.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if function is None:
            return calls.call(self, node, names)
        given = [self.tile(argument, names) for argument in node.args if not isinstance(argument, ast.Starred)]
        named = {k.arg: self.tile(k.value, names) for k in node.keywords if k.arg is not None}
        if self._depth == DEEPEST_CALL or len(given) < len(node.args):
            return NOTHING
        parameters = [p.arg for p in [*function.args.posonlyargs, *function.args.args]]
        inner = {**dict.fromkeys(parameters, NOTHING), **dict(zip(parameters, given, strict=False)), **named}
        outer, self._returned = self._returned, []
        self._depth += 1
        self.body(function.body, inner)
        self._depth -= 1
        returned, self._returned = self._returned, outer
        return returned[0] if len(returned) == 1 else NOTHING


class _Constants(Mapping[str, Constant]):
    """The compile-time values of names."""

    def __init__(self, names: Mapping[str, Tile]) -> None:
        self._names = names

    def __getitem__(self, name: str) -> Constant:
        return self._names[name].constant

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def assigned(body: Sequence[ast.stmt]) -> set[str]:
    """Names that statements assign to."""
    return {
        node.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
