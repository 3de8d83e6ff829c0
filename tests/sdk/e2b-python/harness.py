"""Tests of E2B's Python packages, each written once and run with the synchronous and the asynchronous classes.

A test is `async def name(x)`, marked by @test; x has the classes of its kind. What the SDK answers goes through
`do`, which waits for it if it has to be waited for. The result is TAP on stdout."""
import asyncio
import inspect
import sys
import traceback

import e2b
import e2b_code_interpreter

tests = []


def test(function):
    tests.append(function)
    return function


async def do(value):
    """What the SDK answers, of either kind."""
    return await value if inspect.isawaitable(value) else value


async def fails(error, call):
    """The error of this class that the call ends with."""
    try:
        await do(call())
    except error as e:
        return e
    raise AssertionError(f"it did not end with {error.__name__}")


async def each(items):
    """The items of a stream, of either kind."""
    if hasattr(items, "__aiter__"):
        return [item async for item in items]
    return list(items)


async def until(what, check, seconds=15):
    end = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < end:
        value = await check()
        if value:
            return value
        await asyncio.sleep(0.05)
    raise AssertionError(f"timed out waiting until {what}")


class Kind:
    def __init__(self, name, prefix):
        self.name = name
        for word in ("Sandbox", "Volume", "Template"):
            setattr(self, word, getattr(e2b, prefix + word))
        self.CodeInterpreter = getattr(e2b_code_interpreter, prefix + "Sandbox")
        self.made = []

    async def create(self, *args, code=False, **options):
        """A sandbox that is gone after the test."""
        sandbox = await do((self.CodeInterpreter if code else self.Sandbox).create(*args, **options))
        self.made.append(sandbox)
        return sandbox

    async def clear(self):
        for sandbox in self.made:
            try:
                await do(sandbox.kill())
            except e2b.SandboxException:
                pass
        self.made.clear()


async def run_all():
    failed, number = 0, 0
    kinds = [Kind("sync", ""), Kind("async", "Async")]
    print(f"1..{len(tests) * len(kinds)}")
    for kind in kinds:
        for function in tests:
            number += 1
            name = f"{kind.name}: {(function.__doc__ or function.__name__).strip()}"
            try:
                await asyncio.wait_for(function(kind), 120)
                print(f"ok {number} - {name}", flush=True)
            except Exception:
                failed += 1
                print(f"not ok {number} - {name}", flush=True)
                for line in traceback.format_exc().splitlines():
                    print(f"# {line}", flush=True)
            finally:
                await kind.clear()
    return failed


def main():
    sys.exit(1 if asyncio.run(run_all()) else 0)
