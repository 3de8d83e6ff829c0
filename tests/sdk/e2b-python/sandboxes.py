"""Sandboxes: made, found, timed, paused, copied, ended."""
from datetime import datetime, timedelta, timezone

import e2b
from harness import do, fails, main, test, until


@test
async def life(x):
    """a sandbox is made with metadata and variables, told about, and killed"""
    s = await x.create(metadata={"team": "red"}, envs={"WORD": "from create"}, timeout=120)
    info = await do(s.get_info())
    assert (info.sandbox_id, info.metadata, info.state) == (s.sandbox_id, {"team": "red"}, e2b.SandboxState.RUNNING)
    assert info.end_at - info.started_at <= timedelta(seconds=121)
    assert (await do(s.commands.run("echo $WORD"))).stdout == "from create\n"
    assert await do(s.is_running())
    assert await do(s.kill()) is True
    assert await do(x.Sandbox.kill(s.sandbox_id)) is False
    assert not await do(s.is_running())
    await fails(e2b.SandboxNotFoundException, lambda: x.Sandbox.connect(s.sandbox_id))


@test
async def lists(x):
    """lists are filtered by metadata, and come in pages"""
    for _ in range(3):
        await x.create(metadata={"kind": x.name})
    pages = x.Sandbox.list(query=e2b.SandboxQuery(metadata={"kind": x.name}), limit=2)
    found = await do(pages.next_items())
    assert len(found) == 2 and pages.has_next
    found += await do(pages.next_items())
    assert {i.sandbox_id for i in found} == {s.sandbox_id for s in x.made} and not pages.has_next


@test
async def connects(x):
    """another program connects by id, and extends the time"""
    s = await x.create(timeout=60)
    await do(s.files.write("note", "kept"))
    again = await do(x.Sandbox.connect(s.sandbox_id, timeout=600))
    assert await do(again.files.read("note")) == "kept"
    await do(again.set_timeout(3000))
    end = (await do(s.get_info())).end_at
    assert timedelta(seconds=2900) < end - datetime.now(timezone.utc) <= timedelta(seconds=3001)


@test
async def time_ends(x):
    """time ends a sandbox"""
    s = await x.create(timeout=1)

    async def gone():
        return not await do(s.is_running())

    await until("it is gone", gone)


@test
async def pauses(x):
    """a pause keeps files and processes; connecting resumes"""
    s = await x.create()
    await do(s.files.write("kept", "yes"))
    p = await do(s.commands.run("sleep 1000", background=True))
    assert await do(s.pause())
    assert (await do(s.get_info())).state == e2b.SandboxState.PAUSED
    again = await do(x.Sandbox.connect(s.sandbox_id))
    assert await do(again.files.read("kept")) == "yes"
    assert p.pid in [i.pid for i in await do(again.commands.list())]


@test
async def snapshots(x):
    """a snapshot is what other sandboxes begin with; a fork likewise"""
    s = await x.create()
    await do(s.files.write("/home/user/f", "one"))
    snapshot = await do(s.create_snapshot())
    await do(s.files.write("/home/user/f", "two"))
    other = await x.create(snapshot.snapshot_id)
    assert await do(other.files.read("/home/user/f")) == "one"
    forks = await do(s.fork(count=2))
    x.made += [f for f in forks if not isinstance(f, Exception)]
    assert [await do(f.files.read("/home/user/f")) for f in forks] == ["two", "two"]
    assert snapshot.snapshot_id in [i.snapshot_id for i in await do(s.list_snapshots().next_items())]
    await do(other.kill())  # nothing may stand on it
    assert await do(x.Sandbox.delete_snapshot(snapshot.snapshot_id)) is True


@test
async def metrics(x):
    """metrics have what a sandbox uses"""
    s = await x.create()

    async def some():
        return await do(s.get_metrics())

    m = (await until("there are some", some, 30))[-1]
    assert m.cpu_count >= 1 and m.mem_total > 0 and m.disk_total > 0


@test
async def wrong(x):
    """what is wrong ends with the SDK's own errors"""
    await fails(e2b.AuthenticationException, lambda: x.Sandbox.create(api_key="e2b_" + "0" * 40))
    await fails(e2b.SandboxException, lambda: x.Sandbox.create("no-such-template"))
    await fails(e2b.SandboxNotFoundException, lambda: x.Sandbox.connect("a" * 20))


main()
