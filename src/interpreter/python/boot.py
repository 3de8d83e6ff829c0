import os


def boot():
    def take(length):
        data = b""
        while len(data) < length:
            more = os.read(3, length - len(data))
            if not more:
                os._exit(0)
            data += more
        return data

    line = b""
    while line[-1:] != b"\n":
        line += take(1)
    key, text, *rest = [take(int(n)) for n in line.split()[1:]]
    names = {"__name__": "bunker_interpreter"}
    exec(compile(text, "<bunker>", "exec"), names)
    names["start"](3, key, dict(zip((n.decode() for n in rest[::2]), rest[1::2])))


boot()
