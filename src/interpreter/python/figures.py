"""
Figures of matplotlib: a backend that shows them as results, and the chart in them as data.

What is open at the end of a cell is shown, as notebooks do it, unless the cell showed it already; then
it is closed. A chart is read from the axes after they were drawn. What the artists do not tell any more
(the numbers behind a box plot) is noted when it is drawn.
"""
import os
import re
import sys
import types

BACKEND = "bunker_figures"
POINTS_LIMIT = 100_000
CHART = "application/vnd.bunker.chart+json"

shown = set()


def load(matplotlib, execute):
    """Called in place of the execution of the module."""
    execute(matplotlib)
    if "MPLBACKEND" not in os.environ:
        matplotlib.rcParams["backend"] = "module://" + BACKEND
    sys.modules[BACKEND] = Backend(BACKEND)
    interpreter.at_cell_end.append(flush)


class Backend(types.ModuleType):
    """The module that matplotlib asks for; its canvas is loaded with the first figure."""

    def __getattr__(self, name):
        if name not in ("FigureCanvas", "FigureManager"):
            raise AttributeError(name)
        from matplotlib.backend_bases import FigureManagerBase
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        note_boxes()
        self.FigureCanvas, self.FigureManager = FigureCanvasAgg, FigureManagerBase
        return getattr(self, name)

    @staticmethod
    def show(*_, **__):
        for manager in managers():
            interpreter.part("display")["display"](manager.canvas.figure)
        close()


def managers():
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    return helpers.Gcf.get_all_fig_managers() if helpers else []


def close():
    if managers():
        sys.modules["matplotlib._pylab_helpers"].Gcf.destroy_all()


def flush():
    """At the end of a cell."""
    matplotlib = sys.modules.get("matplotlib")
    ours = matplotlib and str(matplotlib.rcParams._get_backend_or_none()).endswith(BACKEND)
    try:
        for manager in managers() if ours else ():
            if id(manager.canvas.figure) not in shown:
                interpreter.part("display")["display"](manager.canvas.figure)
    finally:
        shown.clear()
        if ours:
            close()


def bundle_of(figure):
    import io

    shown.add(id(figure))
    png = io.BytesIO()
    figure.savefig(png, format="png", bbox_inches="tight")
    bundle = {"image/png": png.getvalue()}
    try:
        chart = chart_of(figure)
    except Exception as e:
        print(f"the figure's chart cannot be read: {type(e).__name__}: {e}", file=sys.stderr)
        chart = None
    if chart is not None:
        bundle[CHART] = chart
    return bundle


def note_boxes():
    from matplotlib.axes import Axes

    draw = Axes.bxp

    def bxp(self, bxpstats, *args, **options):
        self._bunker_boxes = getattr(self, "_bunker_boxes", []) + list(bxpstats)
        return draw(self, bxpstats, *args, **options)

    bxp.__doc__, bxp.__wrapped__ = draw.__doc__, draw
    Axes.bxp = bxp


# ---- charts ----


def chart_of(figure):
    charts = [c for c in (axes_chart(axes) for axes in figure.axes) if c is not None]
    if len(charts) < 2:
        return charts[0] if charts else None
    title = figure._suptitle.get_text() if getattr(figure, "_suptitle", None) else None
    return {"type": "superchart", "title": title or None, "elements": charts}


def axes_chart(axes):
    if axes.get_label() == "<colorbar>":
        return None
    kind, elements = elements_of(axes)
    if kind is None or sum(len(e.get("points", ())) for e in elements) > POINTS_LIMIT:
        return None
    chart = {"type": kind, "title": axes.get_title() or None}
    if kind != "pie":
        for axis in "xy":
            chart.update(label_of(axes, axis))
    if kind in ("line", "scatter"):
        for axis in "xy":
            chart.update(ticks_of(axes, axis))
    chart["elements"] = elements
    return chart


def elements_of(axes):
    from matplotlib.collections import PathCollection
    from matplotlib.container import BarContainer
    from matplotlib.patches import Wedge

    wedges = [p for p in axes.patches if isinstance(p, Wedge)]
    bars = [c for c in axes.containers if isinstance(c, BarContainer)]
    points = [c for c in axes.collections if isinstance(c, PathCollection)]
    lines = [line for line in axes.lines if line.get_transform() == axes.transData]
    if wedges:
        return "pie", [slice_of(w) for w in wedges]
    if getattr(axes, "_bunker_boxes", None):
        return "box_and_whisker", [box_of(b, i) for i, b in enumerate(axes._bunker_boxes)]
    if bars:
        return "bar", [bar for i, c in enumerate(bars) for bar in bars_of(axes, c, i)]
    if lines or points:
        elements = [line_of(axes, line) for line in lines] + [scatter_of(axes, p) for p in points]
        return ("line" if lines else "scatter"), elements
    if axes.patches or axes.collections or axes.images or axes.artists or axes.texts:
        return "unknown", []
    # Drawing failed half way: the axis knows already what it was going to show.
    return ("line", []) if axes.xaxis.have_units() or axes.yaxis.have_units() else (None, [])


def slice_of(wedge):
    return {
        "label": wedge.get_label(),
        "angle": round(abs(wedge.theta2 - wedge.theta1), 4),
        "radius": round(wedge.r, 4),
    }


def box_of(stats, index):
    return {
        "label": str(stats.get("label") or index + 1),
        "min": stats["whislo"],
        "first_quartile": stats["q1"],
        "median": stats["med"],
        "third_quartile": stats["q3"],
        "max": stats["whishi"],
        "outliers": list(stats.get("fliers", ())),
    }


def bars_of(axes, container, index):
    upright = getattr(container, "orientation", "vertical") != "horizontal"
    axis = "x" if upright else "y"
    names = list(zip(tick_places(axes, axis), tick_labels(axes, axis)))
    group = container.get_label()
    group = str(index) if not group or group.startswith("_") else group
    bars = []
    for bar in container.patches:
        start, size = (bar.get_x(), bar.get_width()) if upright else (bar.get_y(), bar.get_height())
        value = bar.get_height() if upright else bar.get_width()
        bars.append({"label": name_at(start + size / 2, names), "group": group, "value": value})
    return bars


def name_at(place, names):
    """The tick's text, when it is this bar's tick; bars of a group stand beside theirs."""
    near = min(names, key=lambda n: abs(n[0] - place), default=None)
    gap = min((abs(a[0] - b[0]) for a, b in zip(names, names[1:])), default=1)
    if near and near[1] and abs(near[0] - place) <= gap / 2 and (near[0] == place or not is_number(near[1])):
        return near[1]
    return f"{place:g}"


def is_number(text):
    return re.fullmatch("[-\u2212]?[\\d.,]+(e[-\u2212+]?\\d+)?", text) is not None


def line_of(axes, line):
    xs = values(axes, "x", line.get_xdata(orig=True), line.get_xdata(orig=False))
    ys = values(axes, "y", line.get_ydata(orig=True), line.get_ydata(orig=False))
    return {"label": line.get_label(), "points": list(zip(xs, ys))}


def scatter_of(axes, collection):
    offsets = collection.get_offsets()
    xs, ys = ([offset[i] for offset in offsets] for i in (0, 1))
    points = zip(values(axes, "x", xs, xs), values(axes, "y", ys, ys))
    return {"label": collection.get_label(), "points": list(points)}


def values(axes, axis, original, numbers):
    scale = scale_of(axes, axis)
    if scale == "datetime":
        return [moment(o, n) for o, n in zip(original, numbers)]
    if scale == "categorical":
        names = {v: k for k, v in getattr(axis_of(axes, axis).units, "_mapping", {}).items()}
        return [names.get(n, n) for n in numbers]
    return [float(n) for n in numbers]


def moment(original, number):
    if hasattr(original, "to_timestamp"):  # a period of pandas, whose number is no date
        return original.to_timestamp().isoformat()
    from matplotlib.dates import num2date

    return num2date(number).isoformat() if number - number == 0 else None


def axis_of(axes, axis):
    return axes.xaxis if axis == "x" else axes.yaxis


def scale_of(axes, axis):
    it = axis_of(axes, axis)
    converter = it.get_converter() if hasattr(it, "get_converter") else it.converter
    kind = type(converter).__name__
    if "Date" in kind or "Period" in kind:
        return "datetime"
    return "categorical" if "Category" in kind else it.get_scale()


def label_of(axes, axis):
    text = axes.get_xlabel() if axis == "x" else axes.get_ylabel()
    unit = re.search(r"\(([^()]*)\)|\[([^\[\]]*)\]", text)
    unit = (unit[1] if unit[1] is not None else unit[2]) if unit else None
    return {axis + "_label": text or None, axis + "_unit": unit or None}


def ticks_of(axes, axis):
    places = tick_places(axes, axis)
    if scale_of(axes, axis) == "datetime":
        places = [moment(None, p) for p in places]
    return {
        axis + "_ticks": places,
        axis + "_tick_labels": tick_labels(axes, axis),
        axis + "_scale": scale_of(axes, axis),
    }


def tick_places(axes, axis):
    return [float(t) for t in (axes.get_xticks() if axis == "x" else axes.get_yticks())]


def tick_labels(axes, axis):
    return [t.get_text() for t in (axes.get_xticklabels() if axis == "x" else axes.get_yticklabels())]
