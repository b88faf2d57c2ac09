def expand_product(expression):
    import re
    import sympy
    names = {name: sympy.Symbol(name) for name in re.findall(r"[A-Za-z]+", expression)}
    return str(sympy.expand(sympy.sympify(expression, names)))


# from the question alone

import re


def solve(question):
    return expand_product(re.search(r"(?:expression|following): (.+)$", question, re.M)[1])
