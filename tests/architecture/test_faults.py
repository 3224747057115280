"""Faults are a protocol: each exception class has one, no class name crosses the wire, and the docs list them."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import metaloop.common
import metaloop.hookgateway
import metaloop.reconciler
import metaloop.watcher
from metaloop.common.errors import MetaloopError, Persistent, Terminal, Transient
from metaloop.common.faults import Fault
from metaloop.hookgateway.errors import HookError, PutOff
from metaloop.reconciler.errors import HookFailed, HookThrottled, WritesFailed

ROOT = Path(__file__).parents[2]
SOURCES = [*ROOT.glob("libs/common/src/**/*.py"), *ROOT.glob("services/*/src/**/*.py")]

CARRIED = {HookFailed, HookThrottled, WritesFailed}
"""Classes whose instances carry the fault of another process, or of another exception."""

WITHOUT_CLASS = {Fault.CRASHED, Fault.WORKER_STOPPED, Fault.WEBHOOK_BUSY}
"""Faults that no exception class stands for on its own: what a worker reports itself, and a webhook's 429."""

OF_CALLS = "docs/api/hook.md"


def _subclasses(root: type[MetaloopError]) -> set[type[MetaloopError]]:
    return {root}.union(*(_subclasses(each) for each in root.__subclasses__()))


def _production_errors() -> list[type[MetaloopError]]:
    for package in (metaloop.common, metaloop.watcher, metaloop.reconciler, metaloop.hookgateway):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    found = {each for each in _subclasses(MetaloopError) if each.__module__.startswith("metaloop.")}
    return sorted(found, key=lambda each: (each.__module__, each.__name__))


ERRORS = _production_errors()


@pytest.mark.parametrize("error", ERRORS, ids=lambda it: it.__name__)
def test_exception_class_has_exactly_one_fault(error: type[MetaloopError]) -> None:
    assert isinstance(error.fault, Fault)
    assert sum("fault" in vars(base) for base in error.__bases__ if issubclass(base, MetaloopError)) <= 1


def test_each_fault_belongs_to_exactly_one_exception_class() -> None:
    named = [error.fault for error in ERRORS if "fault" in vars(error) and error not in {MetaloopError, *CARRIED}]

    assert sorted(fault.wire for fault in named) == sorted(fault.wire for fault in set(Fault) - WITHOUT_CLASS)


@pytest.mark.parametrize(
    "error",
    [it for it in ERRORS if it.fault is Fault.CRASHED and not it.__subclasses__() and it not in CARRIED],
    ids=lambda it: it.__name__,
)
def test_exception_without_a_fault_ends_neither_sync_nor_hook_call(error: type[MetaloopError]) -> None:
    """Those that the reconciler raises in a sync, and the gateway in a call, have a fault of their own."""
    assert not error.__module__.startswith(("metaloop.common.errors", "metaloop.common.kube", "metaloop.reconciler"))
    assert not issubclass(error, HookError)


@pytest.mark.parametrize("error", [it for it in ERRORS if it.fault is not Fault.CRASHED], ids=lambda it: it.__name__)
def test_terminal_errors_are_rejected_and_all_others_retried(error: type[MetaloopError]) -> None:
    assert (error.fault.result == "rejected") is issubclass(error, Terminal)
    assert sum(issubclass(error, base) for base in (Transient, Persistent, Terminal)) <= 1


@pytest.mark.parametrize("module", SOURCES, ids=lambda path: "/".join(path.parts[-3:]))
def test_name_of_an_exception_class_is_no_protocol(module: Path) -> None:
    """A rename of a class must not change what goes over the wire, or into an event, a status or a metric.

    Libraries may quote the class of somebody else's exception in the text of their own, for people.
    """
    tree = ast.parse(module.read_text())

    assert [ast.unparse(node) for node in _names_of_own_exceptions(tree)] == []
    if "services" in module.parts:
        assert [ast.unparse(node) for node in _names_of_caught_exceptions(tree)] == []


def _name_lookups(tree: ast.AST) -> Iterator[tuple[ast.Attribute, ast.expr]]:
    """Each `X.__name__` and `X.__qualname__`, with the X."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in {"__name__", "__qualname__"}:
            yield node, node.value


def _names_of_own_exceptions(tree: ast.AST) -> list[ast.Attribute]:
    """Where the name of one of our exception classes, or of a parameter's that is one, is asked for."""
    ours = {error.__name__ for error in ERRORS}
    params = {
        arg.arg
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for arg in [*function.args.args, *function.args.kwonlyargs]
        if arg.annotation is not None and ours & {each.id for each in ast.walk(arg.annotation) if isinstance(each, ast.Name)}
    }
    return [node for node, of in _name_lookups(tree) if _mentions(of, ours | params)]


def _names_of_caught_exceptions(tree: ast.AST) -> list[ast.Attribute]:
    caught = {handler.name for handler in ast.walk(tree) if isinstance(handler, ast.ExceptHandler) and handler.name}
    return [node for node, of in _name_lookups(tree) if _mentions(of, caught)]


def _mentions(expression: ast.expr, names: set[str]) -> bool:
    return any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(expression))


# The docs.


def _verdict(fault: Fault) -> str:
    return "throttled" if fault.result == "throttled" else "rejected"


GATEWAY_FAULTS = sorted(
    {error.fault.wire for error in _subclasses(HookError) if error.fault is not Fault.CRASHED} | {Fault.WEBHOOK_BUSY.wire}
)


@pytest.mark.parametrize("wire", GATEWAY_FAULTS)
def test_page_on_hooks_lists_each_fault_of_a_call_with_its_verdict(wire: str) -> None:
    fault = next(each for each in Fault if each.wire == wire)

    assert f"{_verdict(fault)}: `{fault.reason}`" in (ROOT / OF_CALLS).read_text()


@pytest.mark.parametrize("error", [it for it in ERRORS if issubclass(it, HookError) and "fault" in vars(it)], ids=lambda it: it.__name__)
def test_calls_that_are_put_off_are_throttled_and_no_others(error: type[HookError]) -> None:
    assert (error.fault.result == "throttled") is issubclass(error, PutOff)


def test_page_on_faults_is_the_table() -> None:
    rows = [line for line in (ROOT / "docs/api/faults.md").read_text().splitlines() if line.startswith("| `")]

    assert rows == [row_of(fault) for fault in Fault]


def row_of(fault: Fault) -> str:
    """A fault's row on the page on faults."""
    within = f", within {fault.retry_within_seconds:g} s" if fault.retry_within_seconds else ""
    return f"| `{fault.reason}` | {fault.owner.value} | {fault.result}{within} | {fault.audience} |"
