"""The code interpreter: state, output, results, errors, contexts."""
from harness import do, main, test


@test
async def state(x):
    """variables stay from run to run; the last value is the result"""
    s = await x.create(code=True)
    await do(s.run_code("x = 20"))
    r = await do(s.run_code("print('seen'); x + 22"))
    assert (r.text, r.logs.stdout, r.error) == ("42", ["seen\n"], None)


@test
async def errors(x):
    """an error has its name, value and traceback"""
    s = await x.create(code=True)
    r = await do(s.run_code("1 / 0"))
    assert r.error.name == "ZeroDivisionError" and "division by zero" in r.error.value and "Traceback" in r.error.traceback


@test
async def callbacks(x):
    """callbacks are told while it runs; variables are given"""
    s = await x.create(code=True)
    out, err, results = [], [], []
    await do(s.run_code("import os, sys\nprint(os.environ['A'])\nprint('e', file=sys.stderr)\n[1]", envs={"A": "b"}, on_stdout=out.append, on_stderr=err.append, on_result=results.append))
    assert ("".join(m.line for m in out), "".join(m.line for m in err), results[0].text) == ("b\n", "e\n", "[1]")


@test
async def languages(x):
    """JavaScript and bash run, too"""
    s = await x.create(code=True)
    assert (await do(s.run_code("6 * 7", language="javascript"))).text == "42"
    assert "".join((await do(s.run_code("echo $((6 * 7))", language="bash"))).logs.stdout) == "42\n"


@test
async def contexts(x):
    """contexts keep apart what they remember"""
    s = await x.create(code=True)
    c = await do(s.create_code_context(cwd="/tmp", language="python"))
    await do(s.run_code("y = 1", context=c))
    assert (await do(s.run_code("import os; (y, os.getcwd())", context=c))).text == "(1, '/tmp')"
    assert (await do(s.run_code("y"))).error.name == "NameError"
    assert c.id in [i.id for i in await do(s.list_code_contexts())]
    await do(s.restart_code_context(c))
    assert (await do(s.run_code("y", context=c))).error.name == "NameError"
    await do(s.remove_code_context(c))
    assert c.id not in [i.id for i in await do(s.list_code_contexts())]


@test
async def results(x):
    """results have the forms that their objects have"""
    s = await x.create(code=True)
    r = await do(s.run_code("class H:\n    def _repr_html_(self): return '<b>h</b>'\n    def _repr_svg_(self): return '<svg/>'\nH()"))
    assert (r.results[0].html, r.results[0].svg) == ("<b>h</b>", "<svg/>")


main()
