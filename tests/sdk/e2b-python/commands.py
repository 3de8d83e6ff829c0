"""Commands and terminals."""
import e2b
from harness import do, fails, main, test, until


@test
async def runs(x):
    """a command has its output, status, user, directory and variables"""
    s = await x.create()
    r = await do(s.commands.run("echo out; echo err >&2; pwd; id -un; echo $A", user="root", cwd="/tmp", envs={"A": "b"}))
    assert (r.stdout, r.stderr, r.exit_code) == ("out\n/tmp\nroot\nb\n", "err\n", 0)


@test
async def status(x):
    """a status that is not 0 is an error, with the output"""
    s = await x.create()
    e = await fails(e2b.CommandExitException, lambda: s.commands.run("echo before; echo why >&2; exit 7"))
    assert (e.exit_code, e.stdout, e.stderr) == (7, "before\n", "why\n")


@test
async def callbacks(x):
    """callbacks get the output as it comes"""
    s = await x.create()
    out, err = [], []
    await do(s.commands.run("for i in 1 2 3; do echo $i; echo e$i >&2; sleep 0.2; done", on_stdout=out.append, on_stderr=err.append))
    assert ("".join(out), "".join(err)) == ("1\n2\n3\n", "e1\ne2\ne3\n") and len(out) > 1


@test
async def unicode(x):
    """text of any kind and megabytes of it arrive whole"""
    s = await x.create()
    assert (await do(s.commands.run("printf 'äöü 漢字 🎉'"))).stdout == "äöü 漢字 🎉"
    assert len((await do(s.commands.run("head -c 3000000 /dev/zero | tr '\\0' x"))).stdout) == 3000000


@test
async def background(x):
    """one in the background is listed, fed, connected to, and killed"""
    s = await x.create()
    h = await do(s.commands.run("while read l; do echo got $l; done; echo end", background=True, stdin=True))
    assert h.pid in [p.pid for p in await do(s.commands.list())]
    await do(s.commands.send_stdin(h.pid, "one\n"))
    await do(s.commands.close_stdin(h.pid))
    assert (await do(h.wait())).stdout == "got one\nend\n"
    h = await do(s.commands.run("sleep 1000", background=True))
    again = await do(s.commands.connect(h.pid))
    assert again.pid == h.pid
    assert await do(s.commands.kill(h.pid)) is True
    await fails(e2b.CommandExitException, again.wait)
    assert await do(s.commands.kill(h.pid)) is False
    await fails(e2b.NotFoundException, lambda: s.commands.connect(999999))


@test
async def deadline(x):
    """a deadline ends a command"""
    s = await x.create()
    await fails(e2b.TimeoutException, lambda: s.commands.run("sleep 30", timeout=1))


@test
async def terminal(x):
    """a terminal is typed at, resized and killed"""
    s = await x.create()
    seen = []
    if x.name == "sync":
        h = s.pty.create(e2b.PtySize(rows=24, cols=80))
        s.pty.resize(h.pid, e2b.PtySize(rows=30, cols=100))
        s.pty.send_stdin(h.pid, b"stty size; tty; exit 5\n")
        e = await fails(e2b.CommandExitException, lambda: h.wait(on_pty=seen.append))
    else:
        h = await s.pty.create(e2b.PtySize(rows=24, cols=80), on_data=seen.append)
        await s.pty.resize(h.pid, e2b.PtySize(rows=30, cols=100))
        await s.pty.send_stdin(h.pid, b"stty size; tty; exit 5\n")
        e = await fails(e2b.CommandExitException, h.wait)
    text = b"".join(bytes(part) for part in seen).decode()
    assert e.exit_code == 5 and "30 100" in text and "/dev/pts/" in text, text
    h = await do(s.pty.create(e2b.PtySize(rows=24, cols=80), **({} if x.name == "sync" else {"on_data": seen.append})))
    assert await do(s.pty.kill(h.pid)) is True


@test
async def git(x):
    """git works: it is made of commands"""
    s = await x.create()
    await do(s.git.init("/home/user/r"))
    await do(s.git.configure_user("A", "a@example.com"))
    await do(s.files.write("/home/user/r/f", "x"))
    await do(s.git.add("/home/user/r"))
    await do(s.git.commit("/home/user/r", "first"))
    assert (await do(s.git.status("/home/user/r"))).is_clean


main()
