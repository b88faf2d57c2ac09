def find_lcm(numbers):
    import math
    return math.lcm(*numbers)


# from the question alone

import re


def solve(question):
    return find_lcm([int(n) for n in re.findall(r"\d+", question.split("numbers:")[1])])
