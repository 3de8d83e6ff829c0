"""
Pillow: an image that is saved to a file or shown is shown as a result, because a cell has no other screen.
"""
import os
import sys


def load(Image, execute):
    """Called in place of the execution of the module."""
    execute(Image)
    save = Image.Image.save

    def save_and_show(self, fp, format=None, **params):
        save(self, fp, format, **params)
        # Not what is encoded in memory, this display's own copy included, and not what matplotlib draws.
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if isinstance(fp, (str, bytes, os.PathLike)) and not caller.startswith("matplotlib"):
            interpreter.part("display")["display"](self)

    def show(self, title=None):
        interpreter.part("display")["display"](self)

    save_and_show.__doc__, show.__doc__ = save.__doc__, Image.Image.show.__doc__
    Image.Image.save, Image.Image.show = save_and_show, show
