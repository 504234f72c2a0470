"""Asserts as inputs and outputs: what is understood, what is refused, and that nothing of them is run."""

from __future__ import annotations

import pytest

from klearbench.suites.asserts import function_called, read_asserts
from klearbench.suites.cases import NotExpressible
from klearbench.suites.coderows import code_row, parse_code
from klearbench.suites.functions import functional_tests


def cases(source: str, function: str = "f", **more) -> list[tuple]:
    return [(case.arguments, case.expected) for case in read_asserts(source, function, **more)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("assert f(1, 'a') == [2, None]", [((1, "a"), [2, None])]),
        ("assert f() is True\nassert f(0) is False", [((), True), ((0,), False)]),
        ("assert f(-3)\nassert not f({'a': [1.5]})", [((-3,), True), (({"a": [1.5]},), False)]),
        ("assert (f(2)) == (4), 'message'", [((2,), 4)]),
        ("assert f(3 * 19, 'ab' + 'c', 2 ** 5, 7 // 2, 7 % 4, 1 / 4) == 0 ** 0", [((57, "abc", 32, 3, 3, 0.25), 1)]),
        ("assert f([1] * 3) == (3 + 4, -2)", [(([1, 1, 1],), (7, -2))]),
        ("assert tuple(f([2, 1])) == tuple([1, 2])", [(([2, 1],), [1, 2])]),
        ("assert list(f(1)) == [1]\nassert int(f(2)) == 35", [((1,), [1]), ((2,), 35)]),
        ("import math\nfrom os import path\nx = 5\na, b = 1, [2]\nassert f(x, a, b) == x + a", [((5, 1, [2]), 6)]),
        ("for x in range(2, 5):\n    assert f(x, x + 1) == str(x)", [((x, x + 1), str(x)) for x in (2, 3, 4)]),
        (
            "l = list(range(-3, 4, 2))\ns = sum([i**2 for i in l if i % 2 != 0 and i > 0])\nassert f(l) == s",
            [(([-3, -1, 1, 3],), 10)],
        ),
        ("assert True, 'good for debugging'\nprint\n'text'\nassert f(1) == 2", [((1,), 2)]),
        ("assert f(len('abc'), max(1, 2), sorted([2, 1]), round(2.6)) == abs(-1)", [((3, 2, [1, 2], 3), 1)]),
        ("assert f(3 > 2, not 1, 1 == 1.0 or 0) == 'x'", [((True, False, True), "x")]),
        ("assert f(1) == f(1)\nassert f(2) == 3", [((2,), 3)]),
    ],
)  # fmt: skip
def test_what_is_understood(source, expected):
    assert cases(source) == expected


def test_the_asserts_may_stand_in_a_function_and_name_the_candidate_otherwise():
    source = (
        "M = {}\n\n\ndef check(candidate):\n    assert candidate(1) == 2\n    assert candidate(3) == g(3)\n\ncheck(g)\n"
    )
    assert cases(source, "candidate", within="check", also=("g",)) == [((1,), 2)]
    with pytest.raises(NotExpressible, match="no function 'check'"):
        read_asserts("assert f(1) == 2", "f", within="check")


def test_a_bound_of_the_distance_is_a_tolerance():
    near = "import math\nassert abs(f(1.5) - 2 / 4) < 1e-6\nassert math.fabs(f(2) - 1.0) <= 1e-6"
    first, second = read_asserts(near, "f")
    assert (first.arguments, first.expected, first.tolerance) == ((1.5,), 0.5, 1e-6)
    assert (second.expected, second.tolerance) == (1.0, 1e-6)
    tests = functional_tests("p", "f", [first, second])
    assert tests.expected.checker == "floats_absolute:1e-06" and tests.expected.outputs == ("0.5", "1.0")
    mixed = read_asserts("assert f(1) == 0.5\n" + near, "f")
    assert functional_tests("p", "f", mixed).expected.checker == "floats_absolute:1e-06"
    with pytest.raises(NotExpressible, match="different tolerances"):
        functional_tests("p", "f", read_asserts("assert f(1) == [0.5]\n" + near, "f"))
    with pytest.raises(NotExpressible, match="different tolerances"):
        functional_tests("p", "f", read_asserts(near + "\nassert abs(f(2) - 1.0) < 1e-3", "f"))


def test_random_numbers_are_the_same_each_time():
    drawn = "    x, y = random.randint(0, 9), random.randint(0, 9)\n"
    source = f"import random\nfor i in range(5):\n{drawn}    assert f(x, y) == x + y"
    first = cases(source)
    assert first == cases(source) and len({arguments for arguments, _ in first}) > 1
    assert all(expected == sum(arguments) for arguments, expected in first)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1", "no assert tests the function"),
        ("assert f(1) == f(1)", "no assert tests the function"),
        ("assert f(1) > 2", "compares in another way"),
        ("assert f(1) != 2", "compares in another way"),
        ("assert f(1) < 2", "bounds something other"),
        ("assert abs(f(1)) < 2", "bounds something other"),
        ("assert g(1) == 2", "no plain comparison of a call"),
        ("assert f(1) + 1 == 2", "no plain comparison of a call"),
        ("assert f(a=1) == 2", "no plain comparison of a call"),
        ("assert 2 == f(1)", "a value is made by a call"),
        ("assert False", "can never hold"),
        ("assert f(open('x')) == 2", "a value is made by a call"),
        ("assert f(__import__('os').system('true')) == 2", "a value is made by a call"),
        ("assert f(sorted([1], key=abs)) == 2", "a value is made by a call"),
        ("assert f(int) == 2", "type or name that is not known"),
        ("assert f(Node(1)) == 2", "a value is made by a call"),
        ("r = [1]\nr[0] = 2\nassert f(r) == 2", "change an object"),
        ("class A: pass\nassert f(1) == 2", "a statement other than an assert (ClassDef)"),
        ("while True: pass", "a statement other than an assert (While)"),
        ("assert f(lambda x: x) == 2", "can't be worked out (Lambda)"),
        ("assert f(9 ** 9 ** 9) == 2", "a power is too large"),
        ("assert f([0] * 10 ** 9) == 2", "a repetition is too long"),
        ("assert f('a' * 10 ** 9) == 2", "a repetition is too long"),
        ("for i in range(10 ** 9):\n    assert f(i) == i", "a range is too long"),
        ("for i in range(90000):\n    for j in range(90000):\n        x = i", "take too long"),
        ("assert f(1 / 0) == 2", "can't be worked out (division by zero)"),
        ("assert f([1][3:]) == 2", "can't be worked out (Subscript)"),
        ("assert f(1 ==", "the tests are no Python"),
    ],
)
def test_what_is_refused_says_why_in_one_line(source, message):
    with pytest.raises(NotExpressible) as caught:
        read_asserts(source, "f")
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("assert f(float('nan')) == 3", "an argument is, or holds, something that is no literal (float)"),
        ("assert f(1) == {3}", "a result is, or holds, a set"),
        ("assert f(1) == {3: 4}", "a result is a dict with a key other than text"),
    ],
)
def test_values_that_json_does_not_have_are_refused(source, message):
    with pytest.raises(NotExpressible) as caught:
        functional_tests("p", "f", read_asserts(source, "f"))
    assert message in str(caught.value)


def test_an_argument_that_json_does_not_have_is_a_python_literal():
    source = "assert f((1, 'a'), [2], {3}, {4: (5,)}, 1j, b'x') == 6"
    tests = functional_tests("p", "f", read_asserts(source, "f"))
    assert tests.inputs.inputs == ("=(1, 'a')\n[2]\n={3}\n={4: (5,)}\n=1j\n=b'x'",)
    assert parse_code("p", code_row(tests)) == tests


def test_inputs_hold_one_argument_a_line_and_a_tuple_is_a_list_as_a_result():
    source = "assert f([1, 'ä\\n'], {'k': None}) == (True, (2.5,))\nassert f() == 'x'"
    tests = functional_tests("p", "f", read_asserts(source, "f"))
    assert tests.inputs.inputs == ('[1, "ä\\n"]\n{"k": null}', "")
    assert tests.expected.outputs == ("[true, [2.5]]", '"x"')
    assert (tests.inputs.mode, tests.inputs.fn_name, tests.expected.checker) == ("functional", "f", None)


def test_the_tested_function_is_the_first_that_is_not_built_in():
    import ast

    assert ast.unparse(function_called("import x\nassert int(g(5, 3)) == 35")) == "g(5, 3)"
    assert ast.unparse(function_called("assert abs(g(1) - 2) < 1")) == "g(1)"
    assert (
        ast.unparse(
            function_called("assert sum(10, 15) == 6"),
        )
        == "sum(10, 15)"
    )
    assert cases("assert sum(10, 15) == 6", "sum") == [((10, 15), 6)]
    with pytest.raises(NotExpressible, match="no assert calls a function"):
        function_called("assert 1 == 1")
