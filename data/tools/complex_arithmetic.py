def combine_complex(operation, left, right):
    a, b = complex(*left), complex(*right)
    z = a + b if operation == "+" else a - b if operation == "-" else a * b if operation == "*" else a / b
    return f"{z.real:.2f} {'-' if z.imag < 0 else '+'} {abs(z.imag):.2f}i"


# from the question alone

import re


def read_parts(text):
    z = complex(text.replace(" ", "").replace("i", "j"))
    return [z.real, z.imag]


def solve(question):
    a, sign, b = re.search(r"\((.+?)\) ([+×÷-]) \((.+)\)$", question).groups()
    return combine_complex({"×": "*", "÷": "/"}.get(sign, sign), read_parts(a), read_parts(b))
