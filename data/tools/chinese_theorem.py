def find_number(remainders, moduli, limit):
    found, step = 0, 1
    for r, m in zip(remainders, moduli):
        while found % m != r:
            found += step
        step *= m
    return found if found < limit else None


# from the question alone

import re


def solve(question):
    pairs = re.findall(r"groups of (\d+) they leave (\d+) over", question)
    limit = re.search(r"fewer than (\d+)", question)[1]
    return find_number([int(r) for _, r in pairs], [int(m) for m, _ in pairs], int(limit))
