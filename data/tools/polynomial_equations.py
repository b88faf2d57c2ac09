def find_real_roots(coefficients):
    import sympy
    roots = sympy.Poly(coefficients, sympy.Symbol("x")).real_roots(multiple=False)
    return sorted(round(float(root.evalf(20)), 4) for root, _ in roots)


# from the question alone

import re


def read_coefficients(text):
    import sympy
    names = {name: sympy.Symbol(name) for name in re.findall(r"[A-Za-z]+", text)}
    return [int(c) for c in sympy.Poly(sympy.sympify(text, names)).all_coeffs()]


def solve(question):
    return find_real_roots(read_coefficients(re.search(r"(?:^|: )([^:\n]+) = 0$", question, re.M)[1]))
