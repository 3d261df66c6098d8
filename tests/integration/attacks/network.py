# ruff: noqa: E501 - blocks of code are easier to read on one line
"""Attempts to reach the network, and sockets of other processes."""

from attacks.attack import Attack, calls, ways

NETWORK = [
    Attack("connect", "import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)\nprint('BROKE')"),
    Attack("send a datagram", "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
           "s.sendto(b'x', ('127.0.0.1', {port}))\nprint('BROKE')"),
    Attack("listen", "import socket\nsocket.create_server(('127.0.0.1', 0))\nprint('BROKE')"),
    Attack("ask a name", "import socket\nsocket.gethostbyname('localhost.example')\nprint('BROKE')"),
    Attack("fetch", "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:{port}', timeout=2)\nprint('BROKE')"),
    Attack("datagram pair to a named socket", "import socket\na, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
           "a.sendto(b'pwn', {unix!r})\nprint('BROKE')"),
    Attack("stream pair with an address", "import socket\na, b = socket.socketpair()\n"
           "a.sendto(b'pwn', {unix!r})\nprint('BROKE')"),
    Attack("socket without a file", "import socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
           "s.sendto(b'pwn', '\\0' + {abstract!r})\nprint('BROKE')"),
    Attack("netlink", "import socket\nsocket.socket(socket.AF_NETLINK, socket.SOCK_RAW)\nprint('BROKE')"),
    Attack("pass a descriptor", "import array, socket\na, b = socket.socketpair()\nsocket.send_fds(a, [b'x'], [0])\nprint('BROKE')"),
    Attack("sockets of every family", "import socket\nfor family in range(64):\n    for kind in range(1, 11):\n        for made in (socket.socket, socket.socketpair):\n"
           "            if made is socket.socketpair and (family, kind) == (1, 1): continue\n"
           "            try: made(family, kind)\n            except OSError as error:\n"
           "                if made is socket.socketpair or error.errno == 1: continue\n            print('BROKE', made, family, kind)\nraise PermissionError"),
    Attack("kinds of pairs with flags", "import socket\nfor kind in (2, 3, 5):\n    for flag in (0, 0o4000, 0o2000000, 0o2004000, 1 << 30):\n"
           "        try: socket.socketpair(socket.AF_UNIX, kind | flag)\n        except OSError: continue\n        print('BROKE', kind, flag)\nraise PermissionError"),
    ways(
        "a pair turned to somebody else", "import socket, os\na, b = socket.socketpair()",
        "a.connect({unix!r})", "a.connect('\\0' + {abstract!r})", "a.bind({folder!r} + '/new')", "a.bind('\\0mine')", "a.listen()", "a.accept()",
        "a.sendmsg([b'x'])", "a.sendmsg([b'x'], [], 0, {unix!r})", "socket.send_fds(a, [b'x'], [b.fileno()])", "socket.recv_fds(b, 1, 1)",
        "a.recvmsg(1)", "a.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)", "a.setsockopt(socket.SOL_SOCKET, 26, b'x' * 16)",
        "a.sendto(b'x', socket.MSG_DONTWAIT, '\\0' + {abstract!r})",
    ),
    ways(
        "descriptors over the connection to the host", "import os, socket, stat\n"
        "def each(act):\n    worked = []\n    for fd in range(3, 64):\n        try:\n            if stat.S_ISSOCK(os.fstat(fd).st_mode): worked.append(act(socket.socket(fileno=os.dup(fd))))\n"
        "        except OSError: pass\n    return worked[0]",
        "each(lambda s: socket.send_fds(s, [b'x'], [0]))", "each(lambda s: s.sendmsg([b'x']))", "each(lambda s: socket.recv_fds(s, 1, 1))",
        "each(lambda s: s.connect({unix!r}))", "each(lambda s: s.bind('\\0mine'))",
    ),
    calls(
        "sockets by other calls", "socket 1 1 0", "socket 16 3 0", "socket 17 3 0", "socket 40 1 0", "connect 0 room 16", "bind 0 room 16", "listen 0 1", "accept 0 0 0", "accept4 0 0 0 0",
        "sendmsg 0 room 0", "sendmmsg 0 room 1 0", "recvmsg 0 room 0", "recvmmsg 0 room 1 0 0", "sendto 0 room 1 0 room 16", "setsockopt 0 1 16 room 4", "socketpair 1 2 0 room", "socketpair 1 5 0 room",
        "socketpair 1 0x80802 0 room", "bpf 0 room 4", "sethostname b'x' 1", "setdomainname b'x' 1",
    ),
]  # fmt: skip
