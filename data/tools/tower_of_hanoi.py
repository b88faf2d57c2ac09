def move_tower(disks, pegs, source, target):
    def carry(n, start, end, spare):
        if n == 0:
            return []
        return [*carry(n - 1, start, spare, end), f"Move disk {n} from Peg {start} to Peg {end}", *carry(n - 1, spare, end, start)]
    spare = next(peg for peg in range(1, pegs + 1) if peg not in (source, target))
    return "\n".join(carry(disks, source, target, spare))


# from the question alone

import re


def solve(question):
    size = re.search(r"with (\d+) disks and (\d+) pegs", question).groups()
    route = re.search(r"from Peg (\d+) to Peg (\d+)", question).groups()
    return move_tower(*(int(n) for n in size + route))
