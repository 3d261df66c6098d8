# ruff: noqa: E501 - blocks of code are easier to read on one line
"""Attempts to deceive the host by messages that its worker never sends.

All code of one worker is of one trust: it may forge what its own block shows. It must not crash, block or fill the host.
"""

from attacks.attack import Attack

_SEND = (
    "import gc, json, struct\n"
    "def head(size): return struct.pack('<I', size)\n"
    "def frame(body):\n"
    "    body = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()\n"
    "    return head(len(body)) + body\n"
    "def done(**more): return dict(dict(type='done', run=worker._last.run, output='', cut=0, error=None, submitted=False, value=None, interrupted=False, milliseconds=0.0), **more)\n"
    "def call(**more): return dict(dict(type='call', id=9, run=1, tool='rm', namespace='main', arguments={}), **more)\n"
    "worker = next(one for one in gc.get_objects() if type(one).__name__ == 'Worker')\nlink = worker.connection\n"
    "link.setblocking(True)\nsend = link.sendall\n"
)


def _sends(name: str, code: str, *, dies: bool | None = True) -> Attack:
    """The host must end a worker that sends this, and no other harm comes of it."""
    return Attack(name, f"{_SEND}{code}\nimport time\ntime.sleep(5)", dies=dies, errs=None if dies is None else True)


FRAMES = [
    _sends("a frame of four gigabytes", "send(head(0xffffffff))"),
    _sends("a frame just too large", "send(head((16 << 20) + 1))"),
    _sends("a frame that never ends", "send(head(16 << 20) + b'[' * (1 << 20))"),
    _sends("an empty frame", "send(head(0))"),
    _sends("no object", "send(frame([1, 2]))"),
    _sends("no JSON", "send(frame(b'{'))"),
    _sends("another encoding", "send(frame(json.dumps(done()).encode('utf-16')))"),
    _sends("bytes that are no text", "send(frame(b'{\"type\": \"\\xff\\xfe\"}'))"),
    _sends("half a character pair", "send(frame(b'{\"type\": \"\\\\ud800\"}'))"),
    _sends("lists too deep", "send(frame(b'{\"type\":' + b'[' * (1 << 20)))"),
    _sends("objects too deep", "send(frame(b'{\"a\":' * (1 << 20)))"),
    _sends("deep and closed", "send(frame(b'{\"type\":' + b'[' * 100_000 + b']' * 100_000 + b'}'))"),
    _sends("a number that is none", "send(frame(b'{\"type\": NaN}'))"),
    _sends("an endless number", "send(frame(json.dumps(done()).replace('0.0', '1e999')))"),
    _sends("a number of four million digits", "send(frame(b'{\"type\": \"done\", \"run\": ' + b'9' * (4 << 20) + b'}'))"),
    _sends("the digits of a fraction", "send(frame(b'{\"type\": \"done\", \"milliseconds\": 0.' + b'9' * (4 << 20) + b'}'))"),
    _sends("an unknown type", "send(frame(dict(type='run', code='1')))"),
    _sends("no type", "send(frame({}))"),
    _sends("a field too many", "send(frame(done(extra=1)))"),
    _sends("a field too few", "send(frame(dict(type='done', run=1)))"),
    _sends("fields of other types", "send(frame(done(output=['x'])))"),
    _sends("a number that is text", "send(frame(done(run='1')))"),
    _sends("less than nothing", "send(frame(done(cut=-1)))"),
    _sends("time that ran backwards", "send(frame(done(milliseconds=-1.0)))"),
    _sends("an output too long", "send(frame(done(output='x' * 20_000)))"),
    _sends("an error too long", "send(frame(done(error='x' * 30_000)))"),
    _sends("a second start", "send(frame(dict(type='ready', pid=1, confined={})))"),
    _sends("a failure of its own", "send(frame(dict(type='failed', why='tired')))"),
    _sends("an end of a block that does not run", "send(frame(done(run=77)))"),
    _sends("the end of the next block", "send(frame(done(run=worker._last.run + 1, output='forged')))"),
    _sends("an end twice", "send(frame(done()) * 2)", dies=None),
    _sends("ends without end", "data = frame(done(run=77, value='x' * (8 << 20)))\nwhile True: send(data)"),
    _sends("small ends without end", "data = frame(done(run=77)) * 1000\nwhile True: send(data)"),
    _sends("a call of no tool", "send(frame(call()))"),
    _sends("a call in no namespace", "send(frame(call(namespace='other', tool='echo')))"),
    _sends("a call with a path", "send(frame(call(tool='../echo')))"),
    _sends("a call of what the kernel has", "send(frame(call(tool='submit')))"),
    _sends("a call of a method", "send(frame(call(tool='__class__')))"),
    _sends("arguments that are no object", "send(frame(dict(call(tool='echo'), arguments=[1])))"),
    _sends("the end of its own block, and on it goes", "send(frame(done()))\nwhile True: pass", dies=None),
    _sends("a frame cut in pieces", "for byte in frame(call()): send(bytes([byte]))"),
]  # fmt: skip
