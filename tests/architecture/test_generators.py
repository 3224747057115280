"""No generator yields within a timeout or a task group of its own.

These cancel the task that entered them. A generator runs in the task of whoever asks for its next item, so the
cancellation would arrive in the consumer, wherever it waits, and nobody would convert it: the consumer's task would end
as cancelled, which nobody notices. Context managers are exempt: their block runs within the same task.
"""

import ast
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_CANCELLING = frozenset({"timeout", "timeout_at", "TaskGroup"})
_CONTEXT_MANAGERS = frozenset({"asynccontextmanager"})
Function = ast.FunctionDef | ast.AsyncFunctionDef


def _sources() -> list[Path]:
    return sorted(chain(_ROOT.glob("libs/*/src/**/*.py"), _ROOT.glob("services/*/src/**/*.py")))


def _name(node: ast.expr) -> str:
    """The last part of a dotted name, of a call or of itself."""
    if isinstance(node, ast.Call):
        return _name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Everything within a node that is not within a function inside it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, Function | ast.Lambda):
            yield from _own_nodes(child)


def _spanning(tree: ast.Module, cancelling: frozenset[str]) -> Iterator[tuple[Function, ast.AsyncWith]]:
    """Each function with a block that may cancel it, and that yields."""
    for function in ast.walk(tree):
        if isinstance(function, Function):
            blocks = [each for each in _own_nodes(function) if isinstance(each, ast.AsyncWith)]
            yield from ((function, block) for block in blocks if _cancels(block, cancelling) and _yields(block))


def _cancels(block: ast.AsyncWith, cancelling: frozenset[str]) -> bool:
    return any(_name(item.context_expr) in cancelling for item in block.items)


def _yields(block: ast.AsyncWith) -> bool:
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in _own_nodes(block))


def _is_context_manager(function: Function) -> bool:
    return any(_name(decorator) in _CONTEXT_MANAGERS for decorator in function.decorator_list)


def _violations(trees: dict[str, ast.Module]) -> list[str]:
    """Generators that yield within a cancelling block, or within a context manager that yields within one."""
    managers = {function.name for tree in trees.values() for function, _ in _spanning(tree, _CANCELLING) if _is_context_manager(function)}
    return [
        f"{path}:{block.lineno} {function.name}"
        for path, tree in trees.items()
        for function, block in _spanning(tree, _CANCELLING | managers)
        if not _is_context_manager(function)
    ]


def test_no_generator_yields_within_a_timeout_or_a_task_group():
    trees = {str(path.relative_to(_ROOT)): ast.parse(path.read_text()) for path in _sources()}

    assert len(trees) > 100
    assert _violations(trees) == []


YIELDS_IN_TIMEOUT = """
async def lines():
    async with opened() as stream, asyncio.timeout(1) as limit:
        async for line in stream:
            yield line
"""
YIELDS_IN_MANAGER = """
@asynccontextmanager
async def running():
    async with asyncio.TaskGroup() as group:
        yield group

async def items():
    async with running():
        yield 1
"""
TIMES_EACH_READ = """
async def lines():
    while True:
        async with asyncio.timeout(1):
            line = await read()
        yield line
"""
YIELDS_IN_INNER_FUNCTION = """
async def run():
    async with asyncio.timeout(1):
        def names():
            yield 1
        return list(names())
"""


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (YIELDS_IN_TIMEOUT, ["x.py:3 lines"]),
        (YIELDS_IN_MANAGER, ["x.py:8 items"]),
        (TIMES_EACH_READ, []),
        (YIELDS_IN_INNER_FUNCTION, []),
    ],
)
def test_search_finds_such_generators_and_no_others(source: str, found: list[str]):
    assert _violations({"x.py": ast.parse(source)}) == found
