# MUST: no address family but local sockets, and no local socket of the host
import array, os, socket
pair = socket.socketpair()
pair[0].send(b'x')
control(pair[1].recv(1) == b'x')
for family in range(2, 46):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        for protocol in (0, 1, 9, 15):
            try: socket.socket(family, kind, protocol).close(); pwn(f'family {family} {kind} {protocol}')
            except OSError: pass
for address in ('\0' + C['abstract'], C['path']):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        try: socket.socket(socket.AF_UNIX, kind).connect(address); pwn(f'connected to {address!r}')
        except OSError: pass
        try: socket.socketpair(socket.AF_UNIX, kind)[0].sendto(b'hi', address); pwn(f'sent to {address!r}') if kind == socket.SOCK_DGRAM else None
        except OSError: pass
blocked('sockets')
