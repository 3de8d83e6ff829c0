"""Files, watches and signed addresses."""
import urllib.request

import e2b
from harness import do, each, fails, main, test, until


@test
async def content(x):
    """text, bytes and streams are written and read"""
    s = await x.create()
    info = await do(s.files.write("a/b.txt", "äöü"))
    assert info.path == "/home/user/a/b.txt"
    assert await do(s.files.read("a/b.txt")) == "äöü"
    await do(s.files.write("raw", bytes(range(256)) * 4096))
    assert bytes(await do(s.files.read("raw", format="bytes"))) == bytes(range(256)) * 4096
    parts = await each(await do(s.files.read("raw", format="stream")))
    assert b"".join(parts) == bytes(range(256)) * 4096
    await do(s.files.write("packed", "z" * 100000, gzip=True))
    assert await do(s.files.read("packed", gzip=True)) == "z" * 100000


@test
async def many(x):
    """many files go in one call"""
    s = await x.create()
    await do(s.files.write_files([{"path": f"many/{i}", "data": str(i)} for i in range(50)]))
    assert sorted(int(e.name) for e in await do(s.files.list("many"))) == list(range(50))


@test
async def entries(x):
    """entries are listed, looked at, made, moved and removed"""
    s = await x.create()
    assert await do(s.files.make_dir("d/e")) is True
    assert await do(s.files.make_dir("d/e")) is False
    await do(s.files.write("d/e/f", "12345"))
    assert [e.path for e in await do(s.files.list("d", depth=2))] == ["/home/user/d/e", "/home/user/d/e/f"]
    info = await do(s.files.get_info("d/e/f"))
    assert (info.size, info.type, info.owner, info.permissions) == (5, e2b.FileType.FILE, "user", "-rw-r--r--")
    moved = await do(s.files.rename("d/e/f", "d/g"))
    assert moved.path == "/home/user/d/g"
    assert await do(s.files.exists("d/g")) and not await do(s.files.exists("d/e/f"))
    await do(s.files.remove("d"))
    assert not await do(s.files.exists("d"))


@test
async def users(x):
    """relative paths and new files are those of the user that is named"""
    s = await x.create()
    await do(s.files.write("mine", "u"))
    await do(s.files.write("mine", "r", user="root"))
    assert (await do(s.files.read("/home/user/mine")), await do(s.files.read("/root/mine", user="root"))) == ("u", "r")
    assert [(await do(s.files.get_info(p, user="root"))).owner for p in ("/home/user/mine", "/root/mine")] == ["user", "root"]


@test
async def missing(x):
    """what is not there is the SDK's own error"""
    s = await x.create()
    await fails(e2b.NotFoundException, lambda: s.files.read("nothing"))
    await fails(e2b.NotFoundException, lambda: s.files.list("nothing"))
    await fails(e2b.NotFoundException, lambda: s.files.get_info("nothing"))


@test
async def watches(x):
    """a watch tells what happens, below as well"""
    s = await x.create()
    await do(s.files.make_dir("w/sub"))
    events = []
    if x.name == "sync":
        h = s.files.watch_dir("w", recursive=True)
        s.files.write("w/sub/new", "x")

        async def told():
            events.extend(h.get_new_events())
            return any(e.name == "sub/new" and e.type == e2b.FilesystemEventType.WRITE for e in events)
    else:
        h = await s.files.watch_dir("w", on_event=events.append, recursive=True)
        await s.files.write("w/sub/new", "x")

        async def told():
            return any(e.name == "sub/new" and e.type == e2b.FilesystemEventType.WRITE for e in events)

    await until("it is told", told)
    await do(h.stop())


@test
async def addresses(x):
    """signed addresses let those without a key read and write"""
    s = await x.create()
    await do(s.files.write("shared", "for all"))
    url = s.download_url("shared", use_signature_expiration=60)
    with urllib.request.urlopen(url) as answer:
        assert answer.read() == b"for all"
    boundary = "b0undary"
    body = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="up"\r\n\r\nup\r\n--{boundary}--\r\n'.encode()
    request = urllib.request.Request(s.upload_url("up"), data=body, headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})
    urllib.request.urlopen(request).close()
    assert await do(s.files.read("up")) == "up"


main()
