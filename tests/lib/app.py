# A web server that tests run inside a sandbox: app.py PORT [ADDRESS].
import hashlib, http.server, json, socket, sys, time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if "content-length" in self.headers:
            left = int(self.headers["content-length"])
            while left:
                piece = self.rfile.read(min(left, 65536))
                left -= len(piece)
                yield piece
        elif self.headers.get("transfer-encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()

    def answer(self, text, status=200, **headers):
        data = text if isinstance(text, bytes) else text.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def echo(self):
        data = b"".join(self.body())
        self.answer(json.dumps({"method": self.command, "path": self.path, "body": data.decode("latin1"),
                                "headers": {k.lower(): v for k, v in self.headers.items()}}),
                    content_type="application/json", set_cookie="a=b; Domain=example.org; Path=/")

    def upload(self):
        digest, size = hashlib.sha256(), 0
        for piece in self.body():
            digest.update(piece)
            size += len(piece)
        self.answer(f"{size} {digest.hexdigest()}")

    def big(self):
        n = int(self.path.split("=")[1])
        self.send_response(200)
        self.send_header("content-length", str(n))
        self.end_headers()
        piece = b"x" * 65536
        while n:
            self.wfile.write(piece[:n])
            n -= min(n, len(piece))

    def sse(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for i in range(3):
            line = f"data: {i}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()
            time.sleep(0.2)
        self.wfile.write(b"0\r\n\r\n")

    def cut(self):
        self.send_response(200)
        self.send_header("content-length", "100")
        self.end_headers()
        self.wfile.write(b"only this")
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def nonsense(self):
        self.connection.sendall(b"this is no HTTP\r\n\r\n")
        self.connection.shutdown(socket.SHUT_RDWR)

    def upgrade(self):
        self.connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-App: yes\r\n\r\n")
        while data := self.connection.recv(65536):
            self.connection.sendall(data.upper())
        self.connection.sendall(b"bye")
        self.close_connection = True

    def respond(self):
        path = self.path.split("?")[0]
        getattr(self, {"/upload": "upload", "/big": "big", "/sse": "sse", "/cut": "cut", "/nonsense": "nonsense",
                       "/ws": "upgrade"}.get(path, "echo"))()

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = do_PROPFIND = respond


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    address_family = socket.AF_INET6 if len(sys.argv) > 2 and ":" in sys.argv[2] else socket.AF_INET


Server((sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
