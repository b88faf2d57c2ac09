def are_isomorphic(a, b):
    return len(a) == len(b) and len(set(zip(a, b))) == len(set(a)) == len(set(b))


# from the question alone

import re


def solve(question):
    return are_isomorphic(*re.search(r"^([a-z]+) ([a-z]+)$", question, re.M).groups())
