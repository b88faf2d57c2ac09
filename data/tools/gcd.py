def find_gcd(numbers):
    import math
    return math.gcd(*numbers)


# from the question alone

import re


def solve(question):
    return find_gcd([int(n) for n in re.findall(r"\d+", question.split("numbers:")[1])])
