"""
IPython as the one who runs the cells: the user's namespace and history so far move into its shell, and
what it shows goes out by our messages. Without colours, history file, pager and terminal.
"""
import sys
import types

STAND_INS = ("jedi", "IPython.terminal.embed")  # half of the time of its import; nothing a cell can see


def load(IPython, execute):
    """Called in place of the execution of the package."""
    absent = [name for name in STAND_INS if name not in sys.modules]
    for name in absent:
        sys.modules[name] = types.ModuleType(name) if "." in name else None
    if "IPython.terminal.embed" in absent:
        sys.modules["IPython.terminal.embed"].embed = embed
    try:
        execute(IPython)
    finally:
        from IPython.core import completer  # noqa: F401 - as long as jedi is hidden

        for name in absent:
            sys.modules.pop(name, None)
    try:
        interpreter.shell = make_shell()
    except Exception as e:
        print(f"cells go on without IPython: {type(e).__name__}: {e}", file=sys.stderr)


def embed(*_, **__):
    raise RuntimeError("a code context has no terminal to embed a shell in")


def make_shell():
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.formatters import DisplayFormatter
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    display = interpreter.part("display")

    class Publisher(DisplayPublisher):
        def publish(self, data, metadata=None, source=None, **_):
            display["send"]("display", data)

        def clear_output(self, wait=False):
            pass

    class Hook(DisplayHook):
        def write_output_prompt(self):
            pass

        def write_format_data(self, format_dict, md_dict=None):
            display["send"]("result", format_dict)

        def finish_displayhook(self):
            pass

    class Formatter(DisplayFormatter):
        def format(self, obj, include=None, exclude=None):
            data, metadata = super().format(obj, include=include, exclude=exclude)
            display["augment"](obj, data)
            return data, metadata

    class Shell(InteractiveShell):
        def init_display_formatter(self):
            self.display_formatter = Formatter(parent=self)
            self.configurables.append(self.display_formatter)

        def init_history(self):
            super().init_history()
            self.history_manager.input_hist_parsed[:] = interpreter.inputs
            self.history_manager.input_hist_raw[:] = interpreter.inputs

        def _showtraceback(self, etype, evalue, stb):
            errors = interpreter.part("errors")
            text = errors["cut"](self.InteractiveTB.stb2text(stb), errors["TRACE_LIMIT"])
            value = errors["cut"](errors["value_of"](evalue), errors["VALUE_LIMIT"])
            self.failed = True
            flush_output()
            interpreter.channel.send("error", etype.__name__, value, text)

        def system(self, cmd):
            import subprocess

            flush_output()
            line = self.var_expand(cmd, depth=1)
            self.user_ns["_exit_code"] = subprocess.call(line, shell=True, executable="/bin/bash")

        def enable_matplotlib(self, gui=None):
            import matplotlib.pyplot as plt

            plt.switch_backend("module://bunker_figures")
            return "inline", "inline"

        def enable_gui(self, gui=None):
            pass

        def ask_exit(self):
            raise SystemExit

        def run(self, code):
            self.failed = False
            self.execution_count = interpreter.count
            outcome = self.run_cell(code, store_history=True)
            error = outcome.error_before_exec or outcome.error_in_exec
            if error is not None and not self.failed:
                interpreter.report(error)

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.update(colors="NoColor", separate_in="", automagic=True, banner1="", quiet=True)
    config.InteractiveShell.display_page = True
    main = sys.modules["__main__"]
    shell = Shell.instance(
        config=config,
        user_module=main,
        user_ns=main.__dict__,
        display_pub_class=Publisher,
        displayhook_class=Hook,
    )
    shell.user_ns["_oh"].update(interpreter.outputs)
    interpreter.outputs = shell.user_ns["_oh"]
    shell.loop_runner = interpreter.run_coroutine
    shell.autoawait = True
    return shell
