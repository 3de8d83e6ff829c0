# A web server that tests run inside a sandbox and that says which connection a request came by: spare.py [--one] PORT...
# With --one it serves one connection after the other, as simple servers do.
import socket, sys, threading, time

log, lock, connections = [], threading.Lock(), [0]


def read_request(c, left):
    while b"\r\n\r\n" not in left:
        piece = c.recv(65536)
        if not piece:
            return None, b""
        left += piece
    head, left = left.split(b"\r\n\r\n", 1)
    lines = head.decode().split("\r\n")
    fields = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
    while len(left) < int(fields.get("content-length", 0)):
        left += c.recv(65536)
    return (*lines[0].split(" ")[:2], fields), left[int(fields.get("content-length", 0)):]


def framed(text, extra=""):
    return f"HTTP/1.1 200 OK\r\n{extra}Content-Length: {len(text)}\r\n\r\n{text}".encode()


def answer(c, path, text, fields):
    if path == "/ends":  # the answer has no length
        c.sendall(f"HTTP/1.1 200 OK\r\n\r\n{text}".encode())
    elif path == "/chunks":
        c.sendall(f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{len(text):x}\r\n{text}\r\n0\r\n\r\n".encode())
    elif path == "/says-close":
        c.sendall(framed(text, "Connection: close\r\n"))
    elif path == "/more":
        c.sendall(framed(text) + framed("forged"))
    elif path == "/old":
        c.sendall(f"HTTP/1.0 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
    elif path == "/log":
        c.sendall(framed("\n".join(log)))
    elif path == "/slow":
        time.sleep(0.3)
        c.sendall(framed(text))
    elif path == "/ws":
        c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        while data := c.recv(65536):
            c.sendall(data.upper())
    else:
        c.sendall(framed(text))
    return path not in ("/ends", "/says-close", "/closes", "/old", "/ws")


def serve(c):
    with lock:
        connections[0] += 1
        number = connections[0]
    left, last, count = b"", "", 0
    while True:
        request, left = read_request(c, left)
        if not request:
            break
        method, path, fields = request
        count += 1
        if path != "/log":
            log.append(f"{method} {path} {number}")
        if last == "/then-none":
            break
        if last == "/then-half":
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-")
            break
        last = path
        if not answer(c, path, f"{number} {count}", fields):
            break
    c.close()
    log.append(f"end {number}")


def listen(port):
    s = socket.create_server(("127.0.0.1", port), backlog=128)
    while True:
        c = s.accept()[0]
        if "--one" in sys.argv:
            serve(c)
        else:
            threading.Thread(target=serve, args=(c,), daemon=True).start()


ports = [int(a) for a in sys.argv[1:] if a.isdigit()]
for port in ports[1:]:
    threading.Thread(target=listen, args=(port,), daemon=True).start()
listen(ports[0])
