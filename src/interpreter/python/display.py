"""What a value looks like: its MIME bundle, by the methods that notebooks have agreed on."""
import binascii
import sys

MESSAGE_LIMIT = 8 << 20  # the front takes no longer message
TEXT_LIMIT = 1 << 20
DATA_CELLS = 200_000

METHODS = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "application/pdf": "_repr_pdf_",
    "text/latex": "_repr_latex_",
    "application/json": "_repr_json_",
    "application/javascript": "_repr_javascript_",
}
DATA = "application/vnd.bunker.data+json"
CHART = "application/vnd.bunker.chart+json"


def publish(kind, value):
    send(kind, bundle_of(value))


def display(*objects, raw=False, include=None, exclude=None, **_):
    for value in objects:
        bundle = dict(value) if raw and isinstance(value, dict) else bundle_of(value)
        if include:
            bundle = {m: d for m, d in bundle.items() if m in include}
        send("display", {m: d for m, d in bundle.items() if m not in (exclude or ())})


def bundle_of(value):
    bundle = {}
    if not isinstance(value, type):
        bundle.update(own_bundle(value))
        for mime, method in METHODS.items():
            if mime not in bundle:
                data = call(value, method)
                if data is not None:
                    bundle[mime] = data
    bundle.setdefault("text/plain", text_of(value))
    augment(value, bundle)
    return bundle


def own_bundle(value):
    data = call(value, "_repr_mimebundle_", include=None, exclude=None)
    if isinstance(data, tuple):
        data = data[0] if data else None
    return {str(m): d for m, d in data.items() if d is not None} if isinstance(data, dict) else {}


def call(value, method, **options):
    """What a method says, without its metadata; None when there is none or it fails."""
    try:
        function = getattr(value, method, None)
        # A proxy that has every attribute has none of these.
        if not callable(function) or getattr(value, "_ipython_canary_method_should_not_exist_", None) is not None:
            return None
        data = function(**options)
    except Exception as e:
        if type(e).__name__ != "NotImplementedError":
            print(f"{type(value).__name__}.{method} failed: {type(e).__name__}: {e}", file=sys.stderr)
        return None
    return data[0] if isinstance(data, tuple) and len(data) == 2 and not options else data


def text_of(value):
    try:
        return repr(value)
    except Exception as e:
        return f"<{type(value).__name__} object; its repr failed: {type(e).__name__}: {e}>"


def is_a(value, module, name):
    """By name, because asking properly would import what nobody uses."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


def augment(value, bundle):
    """What notebooks do not know: a frame's data, a figure's chart, a dict or list as JSON."""
    if isinstance(value, (dict, list)):
        if is_small(value):
            bundle.setdefault("application/json", value)
    elif is_a(value, "matplotlib.figure", "Figure"):
        bundle.update(interpreter.part("figures")["bundle_of"](value))
    elif is_a(value, "pandas", "DataFrame") and value.size <= DATA_CELLS:
        try:
            bundle[DATA] = {str(k): v for k, v in value.to_dict(orient="list").items()}
        except Exception:
            pass


def is_small(value):
    """Whether its JSON fits easily: few values, short texts, nothing that contains itself."""
    cells, waiting = 0, [(value, 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, dict):
            inside = (*value.keys(), *value.values()) if len(value) <= DATA_CELLS else None
        elif isinstance(value, (list, tuple, set, frozenset)):
            inside = value if len(value) <= DATA_CELLS else None
        else:
            inside = ()
            cells += len(value) // 8 if isinstance(value, (str, bytes)) else 0
        if inside is None or depth > 50:
            return False
        cells += 1 + len(inside)
        if cells > DATA_CELLS:
            return False
        waiting += [(v, depth + 1) for v in inside]
    return True


# ---- onto the wire ----


def send(kind, bundle):
    fields, left = [], MESSAGE_LIMIT - 64 * len(bundle) - 4096
    for mime, data in bundle.items():
        data = encode(mime, data)
        if data is None:
            continue
        if mime == "text/plain":
            data = cut(data, TEXT_LIMIT)
        if len(data) + len(mime) > left:
            note = f"{mime} is left out: it has {len(data)} bytes, and {MESSAGE_LIMIT} are the limit"
            print(note, file=sys.stderr)
            continue
        left -= len(data) + len(mime)
        fields += [str(mime).encode("ascii", "replace"), data]
    flush_output()
    interpreter.channel.send(kind, *fields)


def cut(data, limit):
    if len(data) <= limit:
        return data
    kept = data[:limit].decode("utf-8", "ignore")
    return f"{kept}\n... [{len(data) - limit} bytes cut off]".encode()


def encode(mime, data):
    if isinstance(data, (bytes, bytearray, memoryview)):
        return binascii.b2a_base64(bytes(data), newline=False)
    if mime == "application/json" or mime.endswith("+json"):
        return to_json(data)
    return str(data).encode("utf-8", "replace")


def to_json(data):
    with quietly():
        import json
    try:
        return json.dumps(safe(data, 0), allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None


def safe(value, depth):
    """Something that JSON has, for everything that a frame or a chart can hold."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    if depth > 60:
        return str(value)
    if isinstance(value, dict):
        return {str(k): safe(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [safe(v, depth + 1) for v in value]
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    for method in ("isoformat", "tolist", "item"):
        function = getattr(value, method, None)
        if callable(function):
            try:
                return safe(function(), depth + 1)
            except Exception:
                pass
    return str(value)
