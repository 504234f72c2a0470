"""Strategies of (reference, answer, whether it is right), one a kind of structured answer, as in kinds_values."""

from __future__ import annotations

from hypothesis import strategies as st
from kinds_values import Draw, Row, either, letters, signed, small

NAMES = ("Evelyn", "Navin", "Tuesday", "ellipse", "east", "hyperbola", "rhombus", "March", "blue", "Spain")


def term(coefficient: int, name: str) -> str:
    return f"{coefficient:+d}{name}"


def polynomial_text(coefficients: list[int], name: str) -> str:
    """Descending powers, written as a person would."""
    parts = []
    for power, c in zip(range(len(coefficients) - 1, -1, -1), coefficients, strict=True):
        tail = "" if power == 0 else name if power == 1 else f"{name}^{power}"
        if c:
            number = str(abs(c)) if abs(c) != 1 or not tail else ""
            parts.append(f"{'-' if c < 0 else '+'}{number}{tail}")
    return "".join(parts).lstrip("+") or "0"


@st.composite
def interval(draw: Draw) -> Row:
    low = draw(st.integers(-50, 50))
    high = low + draw(small)
    left, right = draw(st.sampled_from("[(")), draw(st.sampled_from("])"))
    gold = f"{left}{low},{high}{right}"
    less, more = (r"\le" if left == "[" else "<"), (r"\le" if right == "]" else "<")
    flip = {"[": "(", "(": "[", "]": ")", ")": "]"}
    rows = [
        (rf"{low} {less} x {more} {high}", True),
        (rf"x\in {left}{low}, {high}{right}", True),
        (rf"\left{left}{low},{high}\right{right}", True),
        (rf"\{{x \mid {low} {less} x {more} {high}\}}", True),
        (rf"{left}{low}.0,\,{2 * high}/2{right}", True),
        (f"{flip[left]}{low},{high}{right}", False),
        (f"{left}{low},{high}{flip[right]}", False),
        (f"{left}{low},{high + 1}{right}", False),
        (rf"\{{{low},{high}\}}", False),
        (rf"x {more} {high}", False),
        (rf"{left}{low},\infty)", False),
        (f"{high}", False),
    ]
    answer, ok = draw(st.sampled_from(rows))
    if left == "(" and right == ")":
        return rf"x\in {gold}", answer, ok
    return gold, answer, ok


@st.composite
def union(draw: Draw) -> Row:
    low = draw(st.integers(-30, 30))
    high = low + draw(small)
    gold = rf"(-\infty,{low})\cup({high},\infty)"
    rows = [
        (rf"({high},\infty)\cup(-\infty,{low})", True),
        (rf"x<{low} \text{{ or }} x>{high}", True),
        (rf"x < {low}, x > {high}", True),
        (rf"\mathbb{{R}}\setminus[{low},{high}]", True),
        (rf"x>{high}\text{{ or }}x<{low}", True),
        (rf"(x-{low})(x-{high})>0".replace("--", "+"), True),
        (rf"(-\infty,{low}]\cup[{high},\infty)", False),
        (rf"x<{low}", False),
        (rf"{low}<x<{high}", False),
        (rf"(-\infty,{low})\cap({high},\infty)", False),
        (rf"(-\infty,{low})\cup({high + 1},\infty)", False),
        (r"\mathbb{R}", False),
    ]
    answer, ok = draw(st.sampled_from(rows))
    return draw(st.sampled_from(((gold, answer, ok), (answer, gold, ok))))


@st.composite
def inequality(draw: Draw) -> Row:
    k, bound = draw(st.integers(2, 9)), draw(signed)
    rows = [
        (rf"x\ge {bound}", rf"x \geqslant {bound}", True),
        (rf"x\ge {bound}", rf"{bound} \le x", True),
        (rf"x\ge {bound}", rf"[{bound},\infty)", True),
        (rf"x\ge {bound}", rf"{k}x \ge {k * bound}", True),
        (rf"x\ge {bound}", rf"-x \le {-bound}", True),
        (rf"x\ge {bound}", f"x > {bound}", False),
        (rf"x\ge {bound}", rf"x \le {bound}", False),
        (rf"x\ge {bound}", f"{bound}", False),
        (rf"x\ge {bound}", rf"x\ge {bound + 1}", False),
        (rf"x\ge {bound}", rf"({bound},\infty)", False),
        (rf"a\le {k}b", rf"{k}b \ge a", True),
        (rf"a\le {k}b", rf"a < {k}b", False),
        (rf"a\le {k}b", rf"b \ge {k}a", False),
        (rf"x<-{k} \text{{ or }} x>{k}", rf"|x|>{k}", True),
        (rf"-{k}<x<{k}", rf"|x|<{k}", True),
        (rf"-{k}<x<{k}", rf"|x|\le{k}", False),
        (rf"x \ne {k}", rf"x\neq {k}", True),
    ]
    return draw(st.sampled_from(rows))


distinct = st.lists(signed, min_size=2, max_size=5, unique=True)


@st.composite
def listing(draw: Draw) -> Row:
    members = draw(distinct)
    mixed = draw(st.permutations(members))
    braces = draw(st.booleans())
    gold = rf"\{{{', '.join(map(str, members))}\}}" if braces else ", ".join(map(str, members))
    said = draw(either("right", "missing", "extra", "changed", "and", "or", "named"))
    if said == "missing":
        return gold, ", ".join(map(str, mixed[1:])), False
    if said == "extra":
        return gold, ", ".join(map(str, [*mixed, 1000])), False
    if said == "changed":
        return gold, ", ".join(map(str, [1000, *mixed[1:]])), False
    if said in ("and", "or"):
        return gold, ", ".join(map(str, mixed[:-1])) + rf" \text{{ {said} }} " + str(mixed[-1]), True
    if said == "named":
        return gold, ", ".join(f"x={m}" for m in mixed), True
    return (
        gold,
        str(draw(either(rf"\{{{','.join(map(str, mixed))}\}}", ",".join(map(str, mixed)), "; ".join(map(str, mixed))))),
        True,
    )


@st.composite
def pair(draw: Draw) -> Row:
    x, y = draw(st.lists(signed, min_size=2, max_size=2, unique=True))
    rows = [
        (f"({x}, {y})", True),
        (rf"\left({x},{y}\right)", True),
        (f"({2 * x}/2,{y}.0)", True),
        (f"(x,y)=({x},{y})", True),
        (f"x={x}, y={y}", True),
        (f"y={y}, x={x}", True),
        (f"({y},{x})", False),
        (f"x={y}, y={x}", False),
        (f"{x}", False),
        (f"({x},{y},{y})", False),
        (f"({x},{y + 1})", False),
        (f"({x})", False),
    ]
    answer, ok = draw(st.sampled_from(rows))
    return f"({x},{y})", answer, ok


@st.composite
def plus_minus(draw: Draw) -> Row:
    a, b = draw(st.integers(1, 30)), draw(st.sampled_from((2, 3, 5, 7)))
    rows = [
        (rf"\pm {a}", f"{a}, -{a}", True),
        (f"-{a}, {a}", rf"\pm {a}", True),
        (rf"\pm {a}", rf"x=\pm {a}", True),
        (rf"\pm {a}", f"±{a}", True),
        (rf"{a}\pm\sqrt{{{b}}}", rf"{a}-\sqrt{{{b}}}, {a}+\sqrt{{{b}}}", True),
        (rf"{a}\pm\sqrt{{{b}}}", rf"x={a}+\sqrt{b} \text{{ or }} x={a}-\sqrt{b}", True),
        (
            rf"\frac{{-{a}\pm\sqrt{{{b}}}}}{{2}}",
            rf"\frac{{-{a}+\sqrt{{{b}}}}}{{2}},\frac{{-{a}-\sqrt{{{b}}}}}{{2}}",
            True,
        ),
        (rf"\pm {a}", f"{a}", False),
        (rf"\pm {a}", f"-{a}", False),
        (f"{a}", rf"\pm {a}", False),
        (rf"{a}\pm\sqrt{{{b}}}", rf"{a}+\sqrt{{{b}}}", False),
        (rf"\pm {a}", rf"\pm {a + 1}", False),
        (rf"{a}\pm\sqrt{{{b}}}", rf"-{a}\pm\sqrt{{{b}}}", False),
    ]
    return draw(st.sampled_from(rows))


@st.composite
def equation(draw: Draw) -> Row:
    a, b, k = draw(st.integers(2, 9)), draw(st.integers(1, 20)), draw(st.integers(2, 6))
    rows = [
        (f"y={a}x+{b}", f"{a}x-y+{b}=0", True),
        (f"y={a}x+{b}", f"y-{b}={a}x", True),
        (f"y={a}x+{b}", f"{k}y={k * a}x+{k * b}", True),
        (f"y={a}x+{b}", f"{a}x+{b}=y", True),
        (f"y={a}x+{b}", f"-{a}x+y={b}", True),
        (f"y={a}x+{b}", f"y={a}x-{b}", False),
        (f"y={a}x+{b}", f"x={a}y+{b}", False),
        (f"y={a}x+{b}", f"y={a}z+{b}", False),
        (f"y={a}x+{b}", f"{a}x+{b}=0", False),
        (f"y={a}x+{b}", f"y={a + 1}x+{b}", False),
        (f"x^2+y^2={a * a}", f"y^2+x^2-{a * a}=0", True),
        (f"x^2+y^2={a * a}", f"x^2+y^2={a}", False),
        (rf"\frac{{x^2}}{{{a * a}}}+\frac{{y^2}}{{{b * b}}}=1", f"{b * b}x^2+{a * a}y^2={a * a * b * b}", True),
        (f"x^2={a * a}", f"x={a}", False),
        (f"y^2={4 * a}x", rf"x=\frac{{y^2}}{{{4 * a}}}", True),
    ]
    return draw(st.sampled_from(rows))


@st.composite
def assignment(draw: Draw) -> Row:
    value, name, slip = draw(signed), draw(letters), draw(st.integers(0, 1))
    said = value + slip
    answer = draw(
        either(
            f"{name}={said}",
            f"{name} = {said}",
            rf"f(3)={said}",
            rf"a_{{10}}={said}",
            rf"\text{{area}}={said}",
            rf"{said - 3}+3={said}" if said > 3 else f"{said}",
            rf"|AB|={said}",
        )
    )
    return f"{value}", str(answer), not slip


@st.composite
def matrix(draw: Draw) -> Row:
    a, b, c, d = draw(st.lists(signed, min_size=4, max_size=4, unique=True))
    body, other = rf"{a}&{b}\\{c}&{d}", rf"{a}&{c}\\{b}&{d}"
    rows = [
        (rf"\begin{{bmatrix}}{body}\end{{bmatrix}}", True),
        (rf"\left[\begin{{array}}{{cc}}{body}\end{{array}}\right]", True),
        (rf"\begin{{pmatrix}} {a} & {b} \\ {c} & \frac{{{2 * d}}}{{2}} \end{{pmatrix}}", True),
        (rf"\begin{{pmatrix}}{other}\end{{pmatrix}}", False),
        (rf"\begin{{pmatrix}}{a}&{b}\end{{pmatrix}}", False),
        (rf"\begin{{vmatrix}}{body}\end{{vmatrix}}", False),
        (rf"\begin{{pmatrix}}{a}&{b}\\{c}&{d + 1}\end{{pmatrix}}", False),
        (f"{a * d - b * c}", False),
    ]
    answer, ok = draw(st.sampled_from(rows))
    return rf"\begin{{pmatrix}}{body}\end{{pmatrix}}", answer, ok


@st.composite
def polynomial(draw: Draw) -> Row:
    a, b, name = draw(st.integers(-9, 9)), draw(st.integers(-9, 9)), draw(letters)
    one, other = f"({name}{term(a, '')})", f"({name}{term(b, '')})"
    expanded = [1, a + b, a * b]
    gold = polynomial_text(expanded, name)
    wrong = polynomial_text([1, a + b, a * b + draw(st.integers(1, 5))], name)
    rows = [
        (f"{one}{other}", True),
        (f"{other} {one}", True),
        (polynomial_text(expanded, name).replace("^2", "**2"), True),
        (rf"{one} \cdot {other}", True),
        (rf"\frac{{2{one}{other}}}{{2}}", True),
        (wrong, False),
        (f"{one}", False),
        (f"-{one}{other}", False),
        (gold.replace(name, "w"), False),
        (rf"{one}^2{other}", False),
    ]
    answer, ok = draw(st.sampled_from(rows))
    return gold, answer, ok


@st.composite
def combinatorics(draw: Draw) -> Row:
    n = draw(st.integers(5, 40))
    k = draw(st.integers(1, n - 1))
    choose = 1
    for i in range(k):
        choose = choose * (n - i) // (i + 1)
    rows = [
        (rf"\binom{{{n}}}{{{k}}}", f"{choose}", True),
        (f"{choose}", rf"\binom{{{n}}}{{{n - k}}}", True),
        (rf"\binom{{{n}}}{{{k}}}", rf"\frac{{{n}!}}{{{k}!{n - k}!}}", True),
        (f"{n}!", rf"{n}\cdot {n - 1}!", True),
        (f"{n}!", f"{n - 1}!", False),
        (rf"\binom{{{n}}}{{{k}}}", f"{choose + 1}", False),
        (f"{n}!", f"{n}", False),
        (rf"{n}!", rf"{n}!-1", False),
    ]
    return draw(st.sampled_from(rows))


@st.composite
def numeral(draw: Draw) -> Row:
    base, value, slip = draw(st.integers(2, 9)), draw(st.integers(20, 5000)), draw(st.integers(0, 1))

    def digits(n: int) -> str:
        return (digits(n // base) if n >= base else "") + str(n % base)

    said = digits(value + slip)
    answer = draw(either(f"{said}_{base}", f"{said}_{{{base}}}", f"({said})_{base}", rf"{said}_{{\text{{{base}}}}}"))
    return f"{digits(value)}_{{{base}}}", str(answer), not slip


@st.composite
def ratio(draw: Draw) -> Row:
    a, b, k = draw(st.integers(1, 30)), draw(st.integers(61, 99)), draw(st.integers(2, 5))
    rows = [
        (f"{k * a}:{k * b}", True),
        (rf"{a} \colon {b}", True),
        (f"{a} : {b}", True),
        (f"{b}:{a}", False),
        (f"{a}:{b + 1}", False),
        (f"{a}", False),
    ]
    answer, ok = draw(st.sampled_from(rows))
    return f"{a}:{b}", answer, ok


@st.composite
def clock(draw: Draw) -> Row:
    hour, minute = draw(st.integers(1, 12)), draw(st.integers(0, 59))
    gold = rf"{hour}:{minute:02d}\text{{ p.m.}}"
    rows = [
        (f"{hour}:{minute:02d} PM", True),
        (f"{hour}:{minute:02d} pm", True),
        (f"{hour:02d}:{minute:02d} p.m.", True),
        (f"{hour}:{minute:02d}", True),
        (f"{hour}:{minute:02d} a.m.", False),
        (f"{hour}:{(minute + 1) % 60:02d} p.m.", False),
        (f"{hour % 12 + 1}:{minute:02d} PM", False),
        (f"{hour}", False),
        (f"{hour}.{minute:02d}", False),
    ]
    answer, ok = draw(st.sampled_from(rows))
    return gold, answer, ok


@st.composite
def piecewise(draw: Draw) -> Row:
    a, b, c = draw(st.lists(st.integers(1, 9), min_size=3, max_size=3, unique=True))
    gold = rf"\begin{{cases}}{a}x&x\ge {c}\\-{b}x&x<{c}\end{{cases}}"
    rows = [
        (rf"\begin{{cases}}-{b}x&x<{c}\\{a}x&x\ge {c}\end{{cases}}", True),
        (rf"\begin{{cases}} {a}x, & \text{{if }} x\ge {c} \\ -{b}x, & \text{{otherwise}} \end{{cases}}", True),
        (rf"\begin{{cases}}{a}x&x>{c}\\-{b}x&x\le {c}\end{{cases}}", False),
        (rf"\begin{{cases}}{b}x&x\ge {c}\\-{b}x&x<{c}\end{{cases}}", False),
        (rf"\begin{{cases}}{a}x&x\ge {c}\\-{b}x&x<{c - 1}\end{{cases}}", False),
        (f"{a}x", False),
    ]
    answer, ok = draw(st.sampled_from(rows))
    return gold, answer, ok


@st.composite
def general_solution(draw: Draw) -> Row:
    bottom, name = draw(st.sampled_from((3, 4, 5, 6, 8))), draw(st.sampled_from("knm"))
    gold = rf"x=\frac{{\pi}}{{{bottom}}}+k\pi,\ k\in\mathbb{{Z}}"
    tail = rf",\ {name}\in\mathbb{{Z}}"
    rows = [
        (rf"x=\frac{{\pi}}{{{bottom}}}+{name}\pi{tail}", True),
        (rf"\frac{{\pi}}{{{bottom}}}+\pi {name}{tail}", True),
        (rf"x={name}\pi+\frac{{\pi}}{{{bottom}}}{tail}", True),
        (rf"x=\frac{{\pi}}{{{bottom}}}-{name}\pi{tail}", True),
        (rf"x=\frac{{{bottom + 1}\pi}}{{{bottom}}}+{name}\pi{tail}", True),
        (rf"x=\frac{{\pi}}{{{bottom}}}+2{name}\pi{tail}", False),
        (rf"\frac{{\pi}}{{{bottom}}}", False),
        (rf"x=-\frac{{\pi}}{{{bottom}}}+{name}\pi{tail}", False),
        (rf"x=\frac{{\pi}}{{{bottom}}}+\frac{{{name}\pi}}{{2}}{tail}", False),
    ]
    answer, ok = draw(st.sampled_from(rows))
    return gold, answer, ok


@st.composite
def text(draw: Draw) -> Row:
    gold, said = draw(st.sampled_from(NAMES)), draw(st.sampled_from(NAMES))
    ok = gold == said
    rows = [
        (said, ok),
        (rf"\text{{{said}}}", ok),
        (said.lower(), ok),
        (f"{said}.", ok),
        (rf"\textbf{{{said}}}", ok),
        (f"It is {said}.", ok),
        (f"The answer is {said}", ok),
        (f"not {said}", False),
        (f"{gold} or {said}", False),
        (f"{said}x", False),
        ("0", False),
    ]
    answer, right = draw(st.sampled_from(rows))
    return draw(st.sampled_from((gold, rf"\text{{{gold}}}"))), answer, right


@st.composite
def sentence(draw: Draw) -> Row:
    value, slip = draw(st.integers(2, 500)), draw(st.integers(0, 1))
    said = value + slip
    plain = draw(
        either(
            f"There are {said} ways",
            f"The answer is {said}",
            rf"\text{{The total is }}{said}",
            f"{said} ways",
            rf"{said}\text{{ students}}",
            f"exactly {said}",
        )
    )
    broken = draw(
        either(
            f"at least {value}",
            f"not {value}",
            f"more than {value}",
            f"about {value}",
            f"{value} or {value + 1}",
            f"less than {value}",
            rf"\geq {value}",
            rf"\approx {value}",
            f"{value} is wrong",
            f"twice {value}",
        )
    )
    return draw(st.sampled_from(((f"{value}", str(plain), not slip), (f"{value}", str(broken), False))))


@st.composite
def chain(draw: Draw) -> Row:
    a, b = draw(st.integers(2, 30)), draw(st.sampled_from((3, 7, 9, 11)))
    rows = [
        (rf"\frac{{1}}{{{b}}}", rf"\frac{{1}}{{{b}}}\approx {1 / b:.3f}", True),
        (rf"{a}\sqrt{{3}}", rf"{a}\sqrt{{3}} \approx {a * 3**0.5:.2f}", True),
        (rf"{a}\pi", rf"{a}\pi \approx {a * 3.14159:.1f}", True),
        (rf"{a * b}", rf"{a}\cdot {b}={a * b}", True),
        (rf"{a * b}", rf"{a}\times {b} = {a * b + 1}", False),
        (f"{3 * a}", rf"{a}\pi\approx {3 * a}", False),
        (f"{a}", rf"{a}^5={a**5}", False),
    ]
    return draw(st.sampled_from(rows))


@st.composite
def cjk(draw: Draw) -> Row:
    value, slip = draw(st.integers(2, 500)), draw(st.integers(0, 1))
    said = value + slip
    return (
        f"{value}",
        str(
            draw(
                either(
                    f"{said}个",
                    f"答案是{said}",
                    rf"{said}\text{{ 米}}",
                    f"答案：{said}",
                    f"共有{said}种",
                    f"{said}人",
                    f"{said}。",
                )
            )
        ),
        not slip,
    )


@st.composite
def code(draw: Draw) -> Row:
    value = draw(st.integers(2, 500))
    return (
        f"{value}",
        str(
            draw(
                either(
                    f"print({value})",
                    f"int('{value}')",
                    f"__import__('os').system('echo {value}')",
                    f"eval('{value}')",
                    rf"\def\a{{{value}}}\a",
                    f"lambda: {value}",
                    f"max({value}, {value + 1})",
                    f"return {value}",
                )
            )
        ),
        False,
    )


FORM_KINDS: dict[str, st.SearchStrategy[Row]] = {
    "interval": interval(),
    "union": union(),
    "inequality": inequality(),
    "listing": listing(),
    "pair": pair(),
    "plus_minus": plus_minus(),
    "equation": equation(),
    "assignment": assignment(),
    "matrix": matrix(),
    "polynomial": polynomial(),
    "combinatorics": combinatorics(),
    "base": numeral(),
    "ratio": ratio(),
    "time": clock(),
    "piecewise": piecewise(),
    "general_solution": general_solution(),
    "text": text(),
    "sentence": sentence(),
    "approx_chain": chain(),
    "cjk": cjk(),
    "code": code(),
}
