def solve_equation(equation, variable):
    left, right = equation.split("=")
    def value(x):
        return eval(left, {variable: x}) - eval(right, {variable: x})
    slope = value(1) - value(0)
    return -value(0) // slope if value(0) % slope == 0 else -value(0) / slope


# from the question alone

import re


def solve(question):
    equation, variable = re.search(r": (.+ = -?\d+)$", question)[1], re.search(r" (?:of|for) ([a-z])\b", question)[1]
    return solve_equation(equation, variable)
