// What runCode gives back: every form of a result, data of frames, charts of figures.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { Sandbox } from '@e2b/code-interpreter';
import { startServer } from './support.mjs';

await startServer();
const sandbox = await Sandbox.create({ timeoutMs: 600000 });
const PNG = 'iVBORw0KGgo';

async function run(code, options) {
  const execution = await sandbox.runCode(code, options);
  assert.equal(execution.error, undefined, JSON.stringify(execution.error));
  return execution;
}

/** The chart of the first result. */
async function chart(code) {
  const { results } = await run(`import matplotlib.pyplot as plt\nimport numpy as np\n${code}`);
  const shown = results.find((r) => r.png);
  assert.ok(shown, JSON.stringify(results).slice(0, 500));
  assert.ok(shown.png.startsWith(PNG));
  assert.match(shown.text, /^<Figure size \d+x\d+ with \d+ Axes>$/);
  assert.equal(shown.isMainResult, false);
  return shown.chart;
}

describe('a result', () => {
  it('has every form that its object has', { timeout: 30000 }, async () => {
    const { results } = await run(`
class Rich:
    def _repr_html_(self): return "<b>h</b>"
    def _repr_markdown_(self): return "# m"
    def _repr_svg_(self): return "<svg/>"
    def _repr_png_(self): return b"\\x89PNG"
    def _repr_jpeg_(self): return b"\\xff\\xd8"
    def _repr_pdf_(self): return b"%PDF"
    def _repr_latex_(self): return "$x$"
    def _repr_json_(self): return {"a": [1, None, "ü"]}
    def _repr_javascript_(self): return "alert(1)"
    def __repr__(self): return "rich"
Rich()`);
    assert.equal(results.length, 1);
    const [r] = results;
    assert.deepEqual(
      { text: r.text, html: r.html, markdown: r.markdown, svg: r.svg, png: r.png, jpeg: r.jpeg, pdf: r.pdf, latex: r.latex, json: r.json, javascript: r.javascript },
      { text: 'rich', html: '<b>h</b>', markdown: '# m', svg: '<svg/>', png: 'iVBORw==', jpeg: '/9g=', pdf: 'JVBERg==', latex: '$x$', json: { a: [1, null, 'ü'] }, javascript: 'alert(1)' },
    );
    assert.deepEqual(r.formats().sort(), ['html', 'javascript', 'jpeg', 'json', 'latex', 'markdown', 'pdf', 'png', 'svg']);
  });

  it('may come with forms that nobody has a name for', { timeout: 30000 }, async () => {
    const { results } = await run('class B:\n  def _repr_mimebundle_(self, include=None, exclude=None): return {"text/plain": "b", "application/x-mine": "data"}\nB()');
    assert.deepEqual(results[0].raw.extra, { 'application/x-mine': 'data' });
  });

  it('is what display() shows, in its order, and IPython\'s own classes work', { timeout: 30000 }, async () => {
    const { results } = await run('from IPython.display import HTML, Markdown, Image, JSON, display\ndisplay(HTML("<i>1</i>"))\ndisplay(Markdown("*2*"), JSON({"n": 3}))\nHTML("<i>4</i>")');
    assert.deepEqual(results.map((r) => [r.html, r.markdown, r.json, r.isMainResult]), [['<i>1</i>', undefined, undefined, false], [undefined, '*2*', undefined, false], [undefined, undefined, { n: 3 }, false], ['<i>4</i>', undefined, undefined, true]]);
  });

  it('is there for magics and shell escapes', { timeout: 30000 }, async () => {
    assert.deepEqual((await run('!echo from a shell')).logs.stdout, ['from a shell\n']);
    assert.match((await run('%timeit -n 1 -r 1 pass')).logs.stdout.join(''), /per loop/);
    assert.equal((await run('files = !ls -d /tmp\nfiles[0]')).text, '/tmp');
    assert.equal((await run('%cd /tmp\n%pwd')).text, '/tmp');
    assert.equal((await run('%cd -q ~')).text, undefined);
    assert.equal((await run('%%bash\necho $((6 * 7))')).logs.stdout.join(''), '42\n');
    assert.equal((await run('get_ipython().__class__.__mro__[1].__name__')).text, 'InteractiveShell');
  });

  it('waits for what is awaited at the top level', { timeout: 30000 }, async () => {
    assert.equal((await run('import asyncio\nasync def f():\n  await asyncio.sleep(0.01)\n  return 7\nawait f()')).text, '7');
    await run('done = []\nasync def later():\n  await asyncio.sleep(0.05)\n  done.append(1)\ntask = asyncio.create_task(later())\nawait asyncio.sleep(0)');
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.equal((await run('done')).text, '[1]', 'a task goes on between runs');
  });

  it('is quiet behind a semicolon, and code may be indented as a whole', { timeout: 30000 }, async () => {
    assert.deepEqual((await run('1 + 1;')).results, []);
    assert.equal((await run('\n    y = 3\n    y + 1\n')).text, '4');
  });

  it('of a data frame has text, HTML and data', { timeout: 30000 }, async () => {
    const { results } = await run('import pandas as pd\npd.DataFrame({"a": [1, 2], "when": pd.to_datetime(["2024-01-02", None]), "x": [0.5, float("nan")], "s": ["q", None]})');
    const [r] = results;
    assert.match(r.html, /<table border="1" class="dataframe">/);
    assert.match(r.text, /2024-01-02/);
    assert.deepEqual(r.data, { a: [1, 2], when: ['2024-01-02T00:00:00', null], x: [0.5, null], s: ['q', null] });
    assert.ok(r.formats().includes('data'));
  });

  it('is JSON, too, when it is a dict or a list', { timeout: 30000 }, async () => {
    const code = '{"a": [1, None, {"b": "ü"}], 2: (3.5, float("nan")), "when": __import__("datetime").date(2024, 1, 2)}';
    for (const [first, result] of [['', 'plain'], ['get_ipython()\n', 'by IPython']]) {
      const { results } = await run(first + code);
      assert.deepEqual(results[0].json, { a: [1, null, { b: 'ü' }], 2: [3.5, null], when: '2024-01-02' }, result);
      assert.match(results[0].text, /^\{'a': \[1, None/);
    }
    assert.deepEqual((await run('[]')).results[0].json, []);
    const large = await run('list(range(300_000))');
    assert.deepEqual([large.results[0].json, large.logs.stderr], [undefined, []], 'no note: nobody asked for it');
    assert.equal((await run('x = []; x.append(x); x')).results[0].json, undefined);
    assert.deepEqual((await run('(1, 2)')).results[0].formats(), []);
  });

  it('is an image that is saved to a file, or shown', { timeout: 30000 }, async () => {
    const { results, logs } = await run('from PIL import Image\nimport io, os\nimage = Image.new("RGB", (60, 30), color="red")\nimage.save("/tmp/saved.png")\nimage.show()\nimage.save(io.BytesIO(), "PNG")\nprint(os.path.getsize("/tmp/saved.png") > 0)');
    assert.deepEqual(results.map((r) => [r.png?.slice(0, PNG.length), r.isMainResult]), [[PNG, false], [PNG, false]]);
    assert.deepEqual(logs.stdout, ['True\n']);
    const figure = await run('import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig("/tmp/figure.png")');
    assert.equal(figure.results.filter((r) => r.png).length, 1, 'a figure that is saved is shown once');
  });

  it('that is too large loses what does not fit, and says so', { timeout: 30000 }, async () => {
    const long = await run('"x" * 3_000_000');
    assert.match(long.text, /x\n\.\.\. \[\d+ bytes cut off\]$/);
    const large = await run('class L:\n  def _repr_html_(self): return "y" * 9_000_000\n  def __repr__(self): return "small"\nL()');
    assert.equal(large.text, 'small');
    assert.equal(large.results[0].html, undefined);
    assert.match(large.logs.stderr.join(''), /text\/html is left out/);
    const data = await run('import pandas as pd\npd.DataFrame({"a": range(300_000)})');
    assert.equal(data.results[0].data, undefined);
    assert.match(data.text, /300000 rows/);
  });
});

describe('a figure', () => {
  it('of lines is a line chart', { timeout: 60000 }, async () => {
    const c = await chart(`
import datetime
dates = [datetime.date(2023, 9, 1) + datetime.timedelta(days=i) for i in range(100)]
x = np.linspace(0, 2 * np.pi, 100)
plt.figure(figsize=(10, 6))
plt.plot(dates, np.sin(x), label='sin(x)')
plt.plot(dates, np.cos(x), label='cos(x)')
plt.xlabel("Time (s)"); plt.ylabel("Amplitude (Hz)"); plt.title('Plot of sin(x) and cos(x)')
plt.show()`);
    assert.equal(c.type, 'line');
    assert.equal(c.title, 'Plot of sin(x) and cos(x)');
    assert.deepEqual([c.x_label, c.x_unit, c.x_scale, c.y_label, c.y_unit, c.y_scale], ['Time (s)', 's', 'datetime', 'Amplitude (Hz)', 'Hz', 'linear']);
    assert.ok(c.x_ticks.every((t) => typeof t === 'string' && !Number.isNaN(Date.parse(t))));
    assert.ok(c.y_ticks.every((t) => typeof t === 'number'));
    assert.ok([...c.x_tick_labels, ...c.y_tick_labels].every((t) => typeof t === 'string'));
    assert.deepEqual(c.elements.map((e) => [e.label, e.points.length]), [['sin(x)', 100], ['cos(x)', 100]]);
    assert.deepEqual(new Date(c.elements[0].points[0][0]), new Date('2023-09-01T00:00:00Z'));
    assert.equal(c.elements[1].points[0][1], 1);
  });

  it('is shown at the end of its cell, once, and knows its scales', { timeout: 60000 }, async () => {
    const { results } = await run('import matplotlib.pyplot as plt\nplt.plot([1, 2, 3], ["A", "B", "C"]); plt.xscale("log");');
    assert.equal(results.length, 1);
    const c = results[0].chart;
    assert.deepEqual([c.type, c.x_scale, c.y_scale, c.title, c.x_label], ['line', 'log', 'categorical', null, null]);
    assert.deepEqual(c.elements[0].points, [[1, 'A'], [2, 'B'], [3, 'C']]);
    assert.equal((await run('fig, ax = plt.subplots(); ax.plot([1, 2]); fig')).results.length, 1);
  });

  it('of points is a scatter chart', { timeout: 60000 }, async () => {
    const c = await chart('plt.scatter([1, 2], [3, 4], label="one"); plt.scatter([5], [6], label="two"); plt.xlabel("A"); plt.show()');
    assert.equal(c.type, 'scatter');
    assert.deepEqual(c.elements, [{ label: 'one', points: [[1, 3], [2, 4]] }, { label: 'two', points: [[5, 6]] }]);
  });

  it('of bars is a bar chart, with groups', { timeout: 60000 }, async () => {
    const simple = await chart("plt.bar(['Author A', 'Author B'], [100, 200], label='Books Sold'); plt.xlabel('Authors'); plt.ylabel('Number'); plt.title('Sales'); plt.tight_layout(); plt.show()");
    assert.deepEqual([simple.type, simple.title, simple.x_label, simple.y_label, simple.x_unit], ['bar', 'Sales', 'Authors', 'Number', null]);
    assert.deepEqual(simple.elements, [{ label: 'Author A', group: 'Books Sold', value: 100 }, { label: 'Author B', group: 'Books Sold', value: 200 }]);
    const grouped = await chart("w = 0.35; x = np.arange(2); fig, ax = plt.subplots(); ax.bar(x - w / 2, [1, 2], w, label='M'); ax.bar(x + w / 2, [3, 4], w, label='W'); ax.set_xticks(x, ['G1', 'G2']); plt.show()");
    assert.deepEqual(grouped.elements.map((e) => [e.label, e.group, e.value]), [['G1', 'M', 1], ['G2', 'M', 2], ['G1', 'W', 3], ['G2', 'W', 4]]);
    assert.deepEqual((await chart("plt.barh(['a', 'b'], [3, 4]); plt.show()")).elements.map((e) => [e.label, e.value]), [['a', 3], ['b', 4]]);
  });

  it('of slices is a pie chart', { timeout: 60000 }, async () => {
    const c = await chart("fig, ax = plt.subplots(); ax.pie([90, 10], labels=['No', 'No, in blue'], autopct='%1.1f%%', startangle=90); plt.title('Early?'); plt.show()");
    assert.deepEqual([c.type, c.title], ['pie', 'Early?']);
    assert.deepEqual(c.elements, [{ label: 'No', angle: 324, radius: 1 }, { label: 'No, in blue', angle: 36, radius: 1 }]);
  });

  it('of boxes is a box-and-whisker chart', { timeout: 60000 }, async () => {
    const c = await chart("data = {'Class A': [85, 90, 78, 92, 88], 'Class B': [95, 89, 76, 91, 84, 87], 'Class C': [75, 82, 88, 79, 86]}\nfig, ax = plt.subplots(); ax.set_title('Exam'); ax.boxplot(data.values(), labels=data.keys(), patch_artist=True); plt.show()");
    assert.deepEqual([c.type, c.title], ['box_and_whisker', 'Exam']);
    assert.deepEqual(c.elements, [
      { label: 'Class A', min: 78, first_quartile: 85, median: 88, third_quartile: 90, max: 92, outliers: [] },
      { label: 'Class B', min: 84, first_quartile: 84.75, median: 88, third_quartile: 90.5, max: 95, outliers: [76] },
      { label: 'Class C', min: 75, first_quartile: 79, median: 82, third_quartile: 86, max: 88, outliers: [] },
    ]);
  });

  it('of several axes is a superchart', { timeout: 60000 }, async () => {
    const c = await chart("fig, axs = plt.subplots(1, 2); fig.suptitle('Multiple'); axs[0].plot([1, 2], [3, 4], 'r'); axs[0].set_title('Sine'); axs[0].grid(True); axs[1].scatter([1], [2]); axs[1].set_xlabel('X'); plt.show()");
    assert.deepEqual([c.type, c.title], ['superchart', 'Multiple']);
    assert.deepEqual(c.elements.map((e) => [e.type, e.title, e.x_label, e.elements.length]), [['line', 'Sine', null, 1], ['scatter', null, 'X', 1]]);
  });

  it('of anything else is unknown, and an empty one has no chart', { timeout: 60000 }, async () => {
    const c = await chart("fig, ax = plt.subplots(); ax.add_artist(plt.Circle((0, 0), 1)); ax.grid(True); plt.title('Circle'); plt.show()");
    assert.deepEqual([c.type, c.title, c.elements], ['unknown', 'Circle', []]);
    assert.equal(await chart('fig, ax = plt.subplots(); plt.show()'), undefined);
  });

  it('of pandas is one, too, and %matplotlib inline changes nothing', { timeout: 60000 }, async () => {
    const c = await chart("%matplotlib inline\nimport pandas as pd\npd.DataFrame({'v': [1, 3, 2]}, index=['a', 'b', 'c']).plot.bar();");
    assert.equal(c.type, 'bar');
    assert.deepEqual(c.elements.map((e) => [e.label, e.group, e.value]), [['a', 'v', 1], ['b', 'v', 3], ['c', 'v', 2]]);
    const series = await chart("pd.Series([1, 2], index=pd.date_range('2024-01-01', periods=2)).plot();");
    assert.deepEqual([series.type, series.x_scale], ['line', 'datetime']);
    assert.match(series.elements[0].points[0][0], /^2024-01-01/);
  });

  it('is shown although its cell failed', { timeout: 60000 }, async () => {
    const execution = await sandbox.runCode('import matplotlib.pyplot as plt\nplt.plot([1, 2])\nraise ValueError("late")');
    assert.equal(execution.error.name, 'ValueError');
    assert.equal(execution.results[0].chart.type, 'line');
  });
});
