"""at_terminal.py ROWS COLUMNS COMMAND...: runs a command at a terminal of its own, passing our stdin and stdout through.

SIGUSR1 makes the terminal one row and one column larger. Exits like the command."""
import fcntl, os, pty, select, signal, struct, sys, termios

rows, columns = int(sys.argv[1]), int(sys.argv[2])
pid, master = pty.fork()
if pid == 0:
    os.execvp(sys.argv[3], sys.argv[3:])


def resize():
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def grow(*_):
    global rows, columns
    rows, columns = rows + 1, columns + 1
    resize()


resize()
signal.signal(signal.SIGUSR1, grow)
sources = [0, master]
while True:
    try:
        ready = select.select(sources, [], [])[0]
    except InterruptedError:
        continue
    if 0 in ready:
        data = os.read(0, 65536)
        if data:
            os.write(master, data)
        else:
            sources.remove(0)
    if master in ready:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        os.write(1, data)
status = os.waitpid(pid, 0)[1]
sys.exit(os.waitstatus_to_exitcode(status) & 255)
