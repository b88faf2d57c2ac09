def convert_base(number, from_base, to_base):
    value, digits = int(number, from_base), ""
    while value:
        value, rest = divmod(value, to_base)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return digits or "0"


# from the question alone

import re


def read_base(name):
    return {"binary": 2, "hexadecimal": 16}.get(name) or int(name.split("-")[1])


def solve(question):
    source, number, target = re.search(r"convert the (\S+) number (\w+) to (\S+)", question).groups()
    return convert_base(number, read_base(source), read_base(target))
