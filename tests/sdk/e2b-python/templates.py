"""Templates and volumes."""
import os
import tempfile

import e2b
from harness import do, each, fails, main, test

KEPT = os.getpid()


@test
async def builds(x):
    """a template is built with files, commands and variables, and sandboxes begin with it"""
    name = f"py-{x.name}-{KEPT}"
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "app.txt"), "w") as f:
            f.write("copied")
        template = (x.Template(file_context_path=directory).from_template("base").copy("app.txt", "/home/user/app.txt")
                    .set_envs({"BUILT": "yes"}).run_cmd("echo made > /home/user/made"))
        logs = []
        built = await do(x.Template.build(template, name, on_build_logs=logs.append))
    assert built.template_id and logs
    assert await do(x.Template.exists(name))
    s = await x.create(name)
    r = await do(s.commands.run("cat app.txt made; echo $BUILT"))
    assert r.stdout == "copiedmade\nyes\n"


@test
async def fails_to_build(x):
    """a step that fails is the SDK's own error"""
    template = x.Template().from_template("base").run_cmd("exit 3")
    await fails(e2b.BuildException, lambda: x.Template.build(template, f"py-bad-{x.name}-{KEPT}"))


@test
async def tags(x):
    """tags are given, listed and taken away"""
    name = f"py-tags-{x.name}-{KEPT}"
    await do(x.Template.build(x.Template().from_template("base").run_cmd("true"), name))
    await do(x.Template.assign_tags(name, ["stable"]))
    assert "stable" in [t.tag for t in await do(x.Template.get_tags(name))]
    assert isinstance(await x.create(f"{name}:stable"), x.Sandbox)
    await do(x.Template.remove_tags(name, ["stable"]))
    assert "stable" not in [t.tag for t in await do(x.Template.get_tags(name))]


@test
async def volumes(x):
    """a volume is written without a sandbox, mounted, and destroyed"""
    v = await do(x.Volume.create(f"py-{x.name}-{KEPT}"))
    await do(v.make_dir("/d"))
    await do(v.write_file("/d/f", "from outside", mode=0o666))
    assert await do(v.read_file("/d/f")) == "from outside"
    assert b"".join(await each(await do(v.read_file("/d/f", format="stream")))) == b"from outside"
    assert await do(v.exists("/d/f")) and not await do(v.exists("/d/g"))
    assert v.volume_id in [i.volume_id for i in await do(x.Volume.list())]
    s = await x.create(volume_mounts={"/data": v})
    assert (await do(s.commands.run("cat /data/d/f; echo inside > /data/d/f", user="root"))).stdout == "from outside"
    assert await do(v.read_file("/d/f")) == "inside\n"
    await do(v.remove("/d"))
    assert not await do(v.exists("/d/f"))
    await do(s.kill())
    assert await do(x.Volume.destroy(v.volume_id)) is True
    await fails(e2b.VolumeNotFoundException, lambda: x.Volume.connect(v.volume_id))


main()
