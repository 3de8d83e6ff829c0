"""
A stand-in for IPython where it is not installed: programs that were written for notebooks ask for
IPython.display, and that much we can do ourselves.
"""
import importlib.machinery
import sys
import types


class Shown:
    """Data with a MIME type, from a value or a file."""

    mime = "text/plain"

    def __init__(self, data=None, url=None, filename=None, **_):
        if data is None and filename is not None:
            with open(filename, "rb") as file:
                data = file.read()
        if isinstance(data, bytes) and self.mime.startswith(("text/", "image/svg")):
            data = data.decode("utf-8", "replace")
        self.data, self.url = data, url

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {self.mime: self.data, "text/plain": repr(self)}

    def __repr__(self):
        return f"<IPython.core.display.{type(self).__name__} object>"


class Pretty(Shown):
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": self.data}


class Image(Shown):
    mime = "image/png"

    def __init__(self, data=None, url=None, filename=None, format=None, **_):
        if isinstance(data, str):
            data, filename = None, data
        super().__init__(data, url, filename)
        jpeg = format in ("jpg", "jpeg") or (self.data or b"")[:3] == b"\xff\xd8\xff"
        self.mime = "image/jpeg" if jpeg else "image/png"

    def _repr_mimebundle_(self, include=None, exclude=None):
        if self.data is None:
            return {"text/html": f'<img src="{self.url}"/>', "text/plain": repr(self)}
        return super()._repr_mimebundle_()


def kind(name, mime, base=Shown):
    return type(name, (base,), {"mime": mime})


def names():
    display = interpreter.part("display")["display"]
    latex = kind("Latex", "text/latex")
    math = type("Math", (latex,), {"__init__": lambda s, data, **_: Shown.__init__(s, f"$\\displaystyle {data}$")})
    return {
        "display": display,
        "update_display": display,
        "clear_output": lambda *_, **__: None,
        "Image": Image,
        "Pretty": Pretty,
        "Latex": latex,
        "Math": math,
        "HTML": kind("HTML", "text/html"),
        "Markdown": kind("Markdown", "text/markdown"),
        "SVG": kind("SVG", "image/svg+xml"),
        "JSON": kind("JSON", "application/json"),
        "Javascript": kind("Javascript", "application/javascript"),
    }


class Loader:
    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__path__ = []
        module.get_ipython = lambda: None
        module.display = display = types.ModuleType("IPython.display")
        module.core = core = types.ModuleType("IPython.core")
        core.__path__ = []
        core.display = core.display_functions = display
        display.__dict__.update(names())
        for name in ("IPython.display", "IPython.core.display", "IPython.core.display_functions"):
            sys.modules[name] = display
        sys.modules["IPython.core"] = core


def spec(name):
    return importlib.machinery.ModuleSpec(name, Loader(), is_package=True)
