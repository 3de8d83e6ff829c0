"""
The Python interpreter of a code context: it reads cells, runs them in one namespace, and reports.

It is started as `python3 -c BOOT` with the descriptors that init's builtin `interpreter` gives it: 0 is
empty, 1 and 2 are the user's output, 3 brings commands, 4 takes messages. BOOT reads this text and its
companions from descriptor 3 and executes it with `stream`, `key` and `parts` among its globals.

A command is a line with the lengths of the fields behind it, `__bunker_run LENGTH LENGTH...`: the code,
then NAME=VALUE for each variable of this run. `__bunker_sync` asks for the message `synced`, from a
front that has just come and does not know what goes on. A message is `\\nKEY TYPE LENGTH...\\n` and its fields.
The key is random and nobody else's, and a message begins a line of its own: what user code writes to
descriptor 4 is never taken for one.

This text is read at each start, so it imports only what the cell `1 + 1` needs; the rest is in `parts`,
compiled when it is wanted. IPython is loaded by the first cell that needs it: a magic, a shell escape,
an import of it. Until then, and where it is not installed, cells run without it.
"""
import _ast
import _signal as signal
import _thread
import builtins
import fcntl
import os
import sys
import time

PRIVATE_FD = 200  # above what programs close when they close "everything"
HERE = "<bunker>"
AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
CO_COROUTINE = 0x80
FIONREAD = 0x541B

BARE_MAGICS = frozenset(
    "cd dirs env hist history ldir lf lk ll ls lsmagic lx magic pwd quickref reset time who who_ls whos".split()
)

main = sys.modules["__main__"]


class Channel:
    """The two private descriptors. A message is written whole: an interrupt waits until it is."""

    def __init__(self, reader, key):
        self.reader, self.writer = hide(reader), hide(4)
        self.key = key
        self.lock = _thread.RLock()
        self.thread = _thread.get_ident()
        self.pid = os.getpid()
        self.armed = False  # user code runs, and may be interrupted
        self.sending = self.pending = False
        self.count = 0  # of runs
        os.register_at_fork(after_in_child=self.close)

    def close(self):
        os.close(self.reader)
        os.close(self.writer)

    def read(self, length):
        data = b""
        while len(data) < length:
            more = os.read(self.reader, length - len(data))
            if not more:
                os._exit(0)
            data += more
        return data

    def line(self):
        line = b""
        while not line.endswith(b"\n"):
            line += self.read(1)
        return line

    def command(self):
        """The fields of the next run."""
        while True:
            verb, *lengths = self.line().split() or [b""]
            if verb == b"__bunker_run":
                self.count += 1
                return [self.read(int(n)).decode("utf-8", "replace") for n in lengths]
            if verb == b"__bunker_sync":
                self.send("synced", str(self.count))

    def send(self, kind, *fields):
        if os.getpid() != self.pid:
            return  # in a forked child: only the interpreter itself reports
        fields = [f.encode("utf-8", "replace") if isinstance(f, str) else f for f in fields]
        head = " ".join([kind, *(str(len(f)) for f in fields)])
        data = memoryview(b"".join([b"\n", self.key, b" ", head.encode(), b"\n", *fields]))
        mine = _thread.get_ident() == self.thread
        with self.lock:
            self.sending = mine
            try:
                while data:
                    data = data[os.write(self.writer, data[:65536]) :]
            except OSError:
                os._exit(70)  # the descriptor is gone, and with it all that could be said
            finally:
                self.sending = False
        if mine and self.pending and self.armed:
            self.pending = False
            raise KeyboardInterrupt
        if kind == "display":
            self.settle()

    def settle(self):
        """Until it is read: what is printed next would overtake it."""
        for pause in [0.0001] * 50 + [0.002] * 100:
            if not int.from_bytes(fcntl.ioctl(self.writer, FIONREAD, bytes(4)), sys.byteorder):
                return
            time.sleep(pause)

    def on_interrupt(self, number, frame):
        if self.armed and self.sending:
            self.pending = True
        elif self.armed:
            raise KeyboardInterrupt


def hide(fd):
    try:
        hidden = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, PRIVATE_FD)
    except OSError:  # so few are allowed
        hidden = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 5)
    os.close(fd)
    return hidden


class quietly:
    """Imports of ours do not look into the user's directory, where any name may stand."""

    def __enter__(self):
        self.hidden = bool(sys.path) and sys.path[0] == ""
        if self.hidden:
            del sys.path[0]

    def __exit__(self, *_):
        if self.hidden:
            sys.path.insert(0, "")


class Interpreter:
    def __init__(self, channel, parts):
        self.channel = channel
        self.parts = parts
        self.modules = {}
        self.future = 0  # flags of `from __future__` in earlier cells
        self.loop = None
        self.shell = None
        self.at_cell_end = []
        self.inputs, self.outputs = [""], {}

    def part(self, name):
        """One of our own texts, as a namespace that nobody else sees."""
        if name not in self.modules:
            names = {"__name__": "bunker_" + name, "interpreter": self, "quietly": quietly, "flush_output": flush_output}
            exec(compile(self.parts[name], HERE, "exec", 0, True), names)
            self.modules[name] = names
        return self.modules[name]

    # ---- one run ----

    def run(self, code, variables):
        self.count = self.channel.count
        signal.signal(signal.SIGINT, self.channel.on_interrupt)
        saved = put_variables(variables)
        self.channel.pending = False
        try:
            self.channel.armed = True
            try:
                self.execute(dedent(code))
                for action in self.at_cell_end:
                    action()
            finally:
                self.channel.armed = False
        except BaseException as e:
            self.channel.armed = False
            self.report(e)
        restore_variables(saved)
        flush_output()
        self.channel.send("done")

    def execute(self, code):
        if self.shell is not None:
            self.shell.run(code)
            return
        name = f"<cell {self.count}>"
        tree, problem = self.parse(code, name)
        if (problem or is_bare_magic(tree)) and self.load_shell():
            self.shell.run(code)
            return
        if problem and "!" in code:
            code = escape_shell(code)
            tree, problem = self.parse(code, name)
        self.remember(code, name)
        try:
            if problem:
                raise problem
            self.run_tree(tree, name, is_quiet(code))
        except BaseException as e:
            self.report(e)

    def parse(self, code, name):
        try:
            return compile(code, name, "exec", self.future | AWAIT | _ast.PyCF_ONLY_AST, True), None
        except Exception as e:
            return None, e

    def remember(self, code, name):
        """For tracebacks and for inspect.getsource."""
        import linecache

        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        self.inputs.append(code)

    def run_tree(self, tree, name, quiet):
        last = None
        if tree.body and isinstance(tree.body[-1], _ast.Expr) and not quiet:
            last = _ast.Expression(tree.body.pop().value)
            last = compile(last, name, "eval", self.future | AWAIT, True)
        body = compile(tree, name, "exec", self.future | AWAIT, True)
        self.future |= body.co_flags & 0x1FF0000  # what __future__ can ask for
        self.evaluate(body)
        if last is not None:
            self.result(self.evaluate(last))

    def evaluate(self, code):
        value = eval(code, main.__dict__)
        return self.run_coroutine(value) if code.co_flags & CO_COROUTINE else value

    def run_coroutine(self, coroutine):
        """In one loop for all cells, so that tasks outlive the cell that made them."""
        if self.loop is None or self.loop.is_closed():
            with quietly():
                import asyncio
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        task = self.loop.create_task(coroutine)
        try:
            return self.loop.run_until_complete(task)
        except KeyboardInterrupt:
            task.cancel()
            raise

    def result(self, value):
        if value is None:
            return
        self.outputs[self.count] = value
        names = main.__dict__
        names["___"], names["__"], names["_"] = names.get("__", ""), names.get("_", ""), value
        names[f"_{self.count}"] = value
        self.part("display")["publish"]("result", value)

    def report(self, error):
        try:
            flush_output()
            fields = self.part("errors")["describe"](error)
        except BaseException as e:
            fields = (type(error).__name__, "", "the error cannot be shown: " + type(e).__name__)
        self.channel.send("error", *fields)

    # ---- IPython, when it is wanted ----

    def load_shell(self):
        """Importing it is enough: the hook on imports makes the shell."""
        if self.shell is None:
            try:
                with quietly():
                    import IPython  # noqa: F401
            except Exception:
                pass
        return self.shell

    # ---- the loop ----

    def wait(self):
        """Until a command is there; tasks of earlier cells go on meanwhile."""
        loop = self.loop
        if loop is None or loop.is_closed():
            return
        import asyncio

        if not asyncio.all_tasks(loop):
            return
        ready = loop.create_future()
        loop.add_reader(self.channel.reader, lambda: ready.done() or ready.set_result(None))
        try:
            loop.run_until_complete(ready)
        finally:
            loop.remove_reader(self.channel.reader)

    def serve(self):
        self.channel.send("ready", "%d.%d.%d" % sys.version_info[:3], os.getcwd())
        while True:
            try:
                self.wait()
            except BaseException:
                pass  # a task that nobody awaits has failed
            code, *variables = self.channel.command()
            self.run(code, variables)
            if os.getpid() != self.channel.pid:
                os._exit(0)  # user code forked, and the child came back here


def put_variables(variables):
    saved = {}
    for variable in variables:
        name, _, value = variable.partition("=")
        saved[name] = os.environ.get(name)
        os.environ[name] = value
    return saved


def restore_variables(saved):
    for name, value in saved.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def flush_output():
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except BaseException:
            pass


def dedent(code):
    """A cell may be indented as a whole."""
    lines = code.splitlines(True)
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip(" \t"))]
    if not indent:
        return code
    return "".join(line[len(indent) :] if line.startswith(indent) else line for line in lines)


def escape_shell(code):
    """`!command` on a line of its own, where there is no IPython to know it."""
    lines = code.splitlines()
    for i, line in enumerate(lines):
        command = line.lstrip()
        if command.startswith("!"):
            indent = line[: len(line) - len(command)]
            lines[i] = f"{indent}_exit_code = __import__('os').system({command[1:]!r})"
    return "\n".join(lines)


def is_quiet(code):
    """A semicolon at the end: the last value is not shown."""
    for line in reversed(code.splitlines()):
        line = line.strip()
        if line and not line.startswith("#"):
            return line.split("#")[0].rstrip().endswith(";")
    return False


def is_bare_magic(tree):
    """`ls` alone is a magic in IPython, if nothing has that name."""
    if len(tree.body) != 1 or not isinstance(tree.body[0], _ast.Expr):
        return False
    value = tree.body[0].value
    return isinstance(value, _ast.Name) and value.id in BARE_MAGICS and value.id not in main.__dict__


class ImportHook:
    """Lets us look after matplotlib, Pillow and IPython when, and only when, somebody imports them."""

    wanted = {"matplotlib": "figures", "PIL.Image": "images", "IPython": "shell"}

    def __init__(self, owner):
        self.interpreter = owner
        self.busy = False

    def find_spec(self, name, path, target=None):
        if name not in self.wanted or self.busy:
            return None
        from importlib.util import find_spec

        self.busy = True
        try:
            spec = find_spec(name)
        finally:
            self.busy = False
        if spec is None or spec.loader is None:
            return self.interpreter.part("shim")["spec"](name) if name == "IPython" else None
        part, execute = self.wanted[name], spec.loader.exec_module

        def exec_module(module):
            self.interpreter.part(part)["load"](module, execute)

        spec.loader.exec_module = exec_module
        return spec


def prepare(interpreter):
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    main.__dict__.update(In=interpreter.inputs, Out=interpreter.outputs)
    for name in set(main.__dict__) - {"__name__", "__builtins__", "__doc__", "__loader__", "__spec__", "In", "Out"}:
        if not name.startswith("__"):
            del main.__dict__[name]
    builtins.display = lambda *objects, **options: interpreter.part("display")["display"](*objects, **options)
    builtins.get_ipython = interpreter.load_shell
    sys.meta_path.insert(0, ImportHook(interpreter))
    sys.path.insert(0, "")


def start(reader, key, parts):
    interpreter = Interpreter(Channel(reader, key), parts)
    prepare(interpreter)
    interpreter.serve()
