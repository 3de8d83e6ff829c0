"""Exceptions as name, value and traceback: what IPython would show, without it and without colours."""
import linecache

VALUE_LIMIT = 64 << 10
TRACE_LIMIT = 256 << 10
FRAMES_AT_EACH_END = 15
CHAIN_LIMIT = 8
CONTEXT = 2  # lines around the one that failed
RULE = "-" * 75
OURS = ("<bunker>", "<frozen importlib")


def describe(error):
    name = type(error).__name__
    return name, cut(value_of(error), VALUE_LIMIT), cut("\n".join(chain(error)), TRACE_LIMIT)


def cut(text, limit):
    return text if len(text) <= limit else text[:limit] + f"\n... [{len(text) - limit} characters cut off]"


def value_of(error):
    try:
        return str(error)
    except BaseException:
        return "<the error has no printable value>"


def chain(error):
    """The causes first, as they happened."""
    errors, seen = [], set()
    while error is not None and id(error) not in seen and len(errors) < CHAIN_LIMIT:
        seen.add(id(error))
        cause = error.__cause__
        link = "The above exception was the direct cause of the following exception:"
        if cause is None and not error.__suppress_context__:
            cause, link = error.__context__, "During handling of the above exception, another exception occurred:"
        errors.append((error, link if cause is not None else None))
        error = cause
    lines = []
    for error, link in reversed(errors):
        if link and lines:
            lines += ["", link, ""]
        lines += one(error)
    return lines


def one(error):
    head = type(error).__name__
    lines = [RULE, head + "Traceback (most recent call last)".rjust(75 - len(head))]
    for frame in frames_of(error):
        lines += frame
    return lines + last_words(error)


def last_words(error):
    if isinstance(error, SyntaxError) and error.filename:
        return syntax_error(error)
    text = value_of(error)
    lines = [type(error).__name__ + (": " + text if text else "")]
    notes = getattr(error, "__notes__", None)
    lines += [str(note) for note in notes] if isinstance(notes, list) else []
    for inner in getattr(error, "exceptions", ())[:20]:
        lines += ["  | " + line for line in one(inner)]
    return lines


def syntax_error(error):
    lines = [f"{place(error.filename)}, line {error.lineno}"]
    if error.text:
        text = error.text.rstrip("\n")
        shown = text.lstrip()
        lines.append("    " + shown)
        if error.offset:
            at = max(error.offset - 1 - (len(text) - len(shown)), 0)
            lines.append("    " + " " * min(at, len(shown)) + "^")
    return lines + [f"{type(error).__name__}: {error.msg}"]


def frames_of(error):
    frames, trace = [], error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(OURS):
            frames.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    left_out = len(frames) - 2 * FRAMES_AT_EACH_END
    if left_out > 0:
        ends = frames[:FRAMES_AT_EACH_END], frames[-FRAMES_AT_EACH_END:]
        gap = [f"... {left_out} frames are left out ...", ""]
        return [*(lines_of(*f) for f in ends[0]), gap, *(lines_of(*f) for f in ends[1])]
    return [lines_of(*f) for f in frames]


def place(filename):
    if filename.startswith("<cell "):
        return f"Cell In[{filename[6:-1]}]"
    return "File " + filename


def lines_of(frame, number):
    code = frame.f_code
    function = "" if code.co_name == "<module>" else f", in {getattr(code, 'co_qualname', code.co_name)}"
    lines = [f"{place(code.co_filename)}, line {number}{function}"]
    source = linecache.getlines(code.co_filename, frame.f_globals)
    width = len(str(number + CONTEXT))
    for n in range(max(number - CONTEXT, 1), min(number + CONTEXT, len(source)) + 1):
        arrow = "----> " if n == number else "      "
        lines.append(f"{arrow}{n:>{width}} {source[n - 1].rstrip()}")
    return lines + [""]
