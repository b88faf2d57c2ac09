def count_bits(n):
    return bin(n).count("1")


# from the question alone

import re


def solve(question):
    return count_bits(int(re.search(r"number (\d+)", question)[1]))
