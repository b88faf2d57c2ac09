def count_solutions(statements):
    from itertools import product
    a, b, c, d = [int("".join(ch for ch in text.split(" of these")[0] if ch.isdigit())) for text in statements[:4]]
    count = 0
    for marks in product((True, False), repeat=7):
        n = sum(marks)
        count += marks == (n >= a, 7 - n <= b, n == c, 7 - n == d, marks[2] != marks[3], n in (2, 3, 5, 7), 7 - n in (4, 6))
    return count


# from the question alone

import re


def solve(question):
    return count_solutions(re.findall(r"Statement \d: '(.+?)'", question))
