"""Strategies of (reference, answer, whether it is right), one a kind of single value: built, then rewritten or broken.

The rewriting keeps the value by construction, the breaking changes it by construction; no judge is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from hypothesis import strategies as st

Row = tuple[str, str, bool]
Draw = Callable[[st.SearchStrategy], object]  # type: ignore[type-arg]

small = st.integers(2, 30)
whole = st.integers(1, 99_999)
signed = st.integers(-999, 999)
letters = st.sampled_from("xyzntab")


def either(*spellings: str) -> st.SearchStrategy[str]:
    return st.sampled_from(spellings)


@st.composite
def integer(draw: Draw) -> Row:
    value, other = draw(signed), draw(signed)
    said = value if draw(st.booleans()) else other
    spelled = draw(either(f"{said}", f"{said}.", f"{said}.0", f" {said} ", f"({said})", rf"\,{said}\,", f"${said}$"))
    if said >= 0:
        spelled = draw(either(spelled, f"+{said}", f"0{said}", f"00{said}"))
    return f"{value}", str(spelled), said == value


@st.composite
def grouped(draw: Draw) -> Row:
    value, off = draw(st.integers(10_000, 10**12)), draw(either("", "digit", "group"))
    text = f"{value:,}"
    mark = str(draw(either(",", "{,}", r"\,", r"{,}\!", r",\!")))
    if off == "digit":
        return f"{value}", f"{value + draw(st.sampled_from((-1, 1, 10))):,}".replace(",", mark), False
    if off == "group":  # a list of two numbers, not one number
        return f"{value}", f"{text[:-2]},{text[-2:]}", False
    return f"{value}", text.replace(",", mark), True


@st.composite
def fraction(draw: Draw) -> Row:
    top, bottom, factor = draw(signed), draw(small), draw(st.integers(1, 9))
    gold = Fraction(top, bottom)
    said = gold if draw(st.booleans()) else gold + Fraction(1, draw(small))
    p, q = said.numerator * factor, said.denominator * factor
    body = draw(
        either(rf"\frac{{{abs(p)}}}{{{q}}}", rf"\dfrac{{{abs(p)}}}{{{q}}}", f"{abs(p)}/{q}", rf"{{{abs(p)} \over {q}}}")
    )
    sign = "-" if p < 0 else ""
    return rf"\frac{{{top}}}{{{bottom}}}", f"{sign}{body}", said == gold


@st.composite
def mixed_number(draw: Draw) -> Row:
    whole_part, bottom = draw(st.integers(1, 40)), draw(small)
    top = draw(st.integers(1, bottom - 1))
    gold = Fraction(whole_part * bottom + top, bottom)
    spelled = draw(
        either(
            rf"{whole_part}\frac{{{top}}}{{{bottom}}}",
            f"{whole_part} {top}/{bottom}",
            rf"{whole_part} \tfrac{{{top}}}{{{bottom}}}",
        )
    )
    kind = draw(either("right", "product", "part", "minus"))
    values = {
        "right": gold,
        "product": Fraction(whole_part * top, bottom),
        "part": Fraction(top, bottom),
        "minus": whole_part - Fraction(top, bottom),
    }
    said = values[str(kind)]
    return str(spelled), f"{said.numerator}/{said.denominator}", said == gold


@st.composite
def decimal(draw: Draw) -> Row:
    cents, places = draw(st.integers(1, 99_999)), draw(st.integers(1, 4))
    gold = Fraction(cents, 10**places)
    exact = f"{cents // 10**places}.{cents % 10**places:0{places}d}"
    said = draw(either("same", "zeros", "fraction", "slip", "digit"))
    answers = {
        "same": exact,
        "zeros": exact + "00",
        "fraction": rf"\frac{{{gold.numerator}}}{{{gold.denominator}}}",
        "slip": f"{cents}.{0:0{places}d}",
        "digit": exact + "1",
    }
    return exact, answers[str(said)], said in ("same", "zeros", "fraction")


@st.composite
def rounded(draw: Draw) -> Row:
    """A rounded decimal never equals the exact value, however many digits it has."""
    digits = draw(st.integers(1, 12))
    if draw(st.booleans()):
        top, bottom = draw(whole), draw(st.sampled_from((3, 7, 9, 11, 13, 17, 21, 23)))
        if top % bottom == 0:
            top += 1
        scaled = round(Fraction(top * 10**digits, bottom))
        if Fraction(scaled, 10**digits) == Fraction(top, bottom):
            return f"{top}/{bottom}", f"{top}/{bottom}", True
        return rf"\frac{{{top}}}{{{bottom}}}", f"{scaled // 10**digits}.{scaled % 10**digits:0{digits}d}", False
    gold, value = draw(
        st.sampled_from(
            (
                (r"\pi", "3.14159265358979"),
                ("e", "2.71828182845905"),
                (r"\sqrt{2}", "1.41421356237310"),
                (r"\ln 2", "0.69314718055995"),
            )
        )
    )
    return str(gold), str(value)[: digits + 2], False


@st.composite
def repeating(draw: Draw) -> Row:
    fixed, cycle = draw(st.integers(0, 99)), draw(st.text("0123456789", min_size=1, max_size=6))
    lead = f"{fixed}" if draw(st.booleans()) else ""
    value = Fraction(int(lead or 0), 10 ** len(lead)) + Fraction(int(cycle), (10 ** len(cycle) - 1) * 10 ** len(lead))
    gold = draw(
        either(rf"0.{lead}\overline{{{cycle}}}", rf"0.{lead}\overline{{{cycle}{cycle}}}", rf"0.{lead}\bar{{{cycle}}}")
    )
    right = f"{value.numerator}/{value.denominator}"
    cut = f"0.{lead}{cycle}"
    wrong_is_right = Fraction(cut) == value
    return draw(st.sampled_from(((gold, right, True), (right, gold, True), (gold, cut, wrong_is_right))))


@st.composite
def percent(draw: Draw) -> Row:
    tenths = draw(st.integers(1, 999).filter(lambda t: t != 10))
    value = Fraction(tenths, 10)
    shown = f"{tenths // 10}.{tenths % 10}" if tenths % 10 else f"{tenths // 10}"
    part = value / 100
    answers = [
        (rf"{shown}\%", True),
        (f"{shown}%", True),
        (f"{shown} percent", True),
        (rf"{shown}\text{{ percent}}", True),
        (shown, True),
        (rf"\frac{{{part.numerator}}}{{{part.denominator}}}", True),
        (f"{float(part):.6f}", True),
        (f"{float(part):.6f}%", False),
        (f"{tenths + 1}%", tenths + 1 == value),
        (f"{float(part) / 10:.7f}", False),
    ]
    answer, right = draw(st.sampled_from(answers))
    return rf"{shown}\%", answer, right


@st.composite
def degree(draw: Draw) -> Row:
    angle, other = draw(st.integers(1, 359)), draw(st.integers(1, 359))
    said = angle if draw(st.booleans()) else other
    gold = draw(either(rf"{angle}^\circ", f"{angle}", rf"{angle}^{{\circ}}"))
    return (
        str(gold),
        str(
            draw(
                either(
                    rf"{said}^\circ", rf"{said}^{{\circ}}", f"{said}°", rf"{said}\degree", f"{said} degrees", f"{said}"
                )
            )
        ),
        said == angle,
    )


@st.composite
def currency(draw: Draw) -> Row:
    dollars, cents, slip = draw(st.integers(1, 9999)), draw(st.integers(1, 99)), draw(st.integers(0, 1))
    gold = rf"\${dollars}.{cents:02d}"
    shown = f"{dollars + slip}.{cents:02d}"
    return (
        gold,
        str(draw(either(rf"\${shown}", f"${shown}", shown, f"{shown} dollars", rf"{shown}\text{{ dollars}}", shown))),
        not slip,
    )


@st.composite
def unit(draw: Draw) -> Row:
    value, slip = draw(st.integers(1, 500)), draw(st.integers(0, 1))
    groups = (
        ("cm", r"\text{ cm}", r"\,\mathrm{cm}", " centimeters", r"\ \text{cm}"),
        ("m", r"\text{ m}", " meters", r"~\mathrm{m}"),
        ("kg", r"\text{ kg}", " kilograms"),
        ("cm^2", r"\text{ cm}^2", r"\,\mathrm{cm}^2", " square centimeters", r"\text{ cm}^{2}"),
        ("m/s", r"\text{ m/s}", " meters per second", r"\,\mathrm{m/s}"),
        ("minutes", r"\text{ minutes}", " min", " minutes"),
    )
    mine, theirs = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    gold = f"{value}{draw(st.sampled_from(groups[mine][1:]))}"
    said = value + slip
    if draw(st.booleans()):
        return gold, f"{said}", not slip
    return gold, f"{said}{draw(st.sampled_from(groups[theirs][1:]))}", not slip and mine == theirs


@st.composite
def option(draw: Draw) -> Row:
    gold, said = draw(st.sampled_from("ABCDE")), draw(st.sampled_from("ABCDE"))
    other = "ABCDE"[("ABCDE".index(said) + 1) % 5]
    right = gold == said
    answers = [
        (f"({said})", right),
        (rf"\text{{{said}}}", right),
        (rf"\textbf{{({said})}}", right),
        (f"{said}.", right),
        (said.lower(), right),
        (f"({said}) 17", right),
        (f"Option {said}", right),
        (rf"\textbf{{({said})}}\ \frac{{1}}{{2}}", right),
        (f"{said}) 3", right),
        (f"{said} or {other}", False),
        (f"{said}, {other}", False),
        (f"not {said}", False),
        ("ABCDE", False),
        (f"({said}) is wrong", False),
    ]
    answer, ok = draw(st.sampled_from(answers))
    return draw(st.sampled_from((gold, rf"\text{{({gold})}}", rf"\text{{{gold}}}"))), answer, ok


@st.composite
def radical(draw: Draw) -> Row:
    outside, inside = draw(st.integers(1, 20)), draw(st.sampled_from((2, 3, 5, 6, 7, 10, 11, 13, 15, 21)))
    gold = rf"{outside}\sqrt{{{inside}}}"
    square = outside * outside * inside
    answers = [
        (rf"\sqrt{{{square}}}", True),
        (f"{outside}*sqrt({inside})", True),
        (rf"\frac{{{outside * inside}}}{{\sqrt{{{inside}}}}}", True),
        (rf"{outside}\cdot {inside}^{{1/2}}", True),
        (rf"{outside}√{inside}", True),
        (rf"\sqrt{inside} \cdot {outside}" if inside < 10 else rf"\sqrt{{{inside}}} \cdot {outside}", True),
        (rf"\sqrt{{{square + 1}}}", False),
        (rf"{outside + 1}\sqrt{{{inside}}}", False),
        (rf"{outside}\sqrt[3]{{{inside}}}", False),
        (f"{outside}{inside}", False),
        (rf"{outside}+\sqrt{{{inside}}}", False),
        (rf"-{outside}\sqrt{{{inside}}}", False),
    ]
    answer, right = draw(st.sampled_from(answers))
    return gold, answer, right


@st.composite
def power(draw: Draw) -> Row:
    base, exponent = draw(st.integers(2, 12)), draw(st.integers(2, 60))
    gold = rf"{base}^{{{exponent}}}"
    answers = [
        (f"{base**exponent}", True),
        (f"{base}**{exponent}", True),
        (rf"{base}\cdot {base}^{{{exponent - 1}}}", True),
        (rf"\frac{{1}}{{{base}^{{-{exponent}}}}}", True),
        (rf"({base}^{{{exponent}}})", True),
        (f"{base**exponent + 1}", False),
        (rf"{base}^{{{exponent + 1}}}", False),
        (rf"{base}^{{{exponent}}}-1", False),
        (rf"-{base}^{{{exponent}}}", False),
    ]
    answer, right = draw(st.sampled_from(answers))
    return draw(st.sampled_from(((gold, answer, right), (answer, gold, right))))


@st.composite
def scientific(draw: Draw) -> Row:
    digits, exponent, slip = draw(st.integers(101, 999)), draw(st.integers(-12, 20)), draw(st.integers(0, 1))
    shown = f"{digits // 100}.{digits % 100:02d}"
    e = exponent + slip
    answer = draw(
        either(
            rf"{shown}\times 10^{{{e}}}",
            rf"{shown} \cdot 10^{{{e}}}",
            f"{shown}e{e}",
            f"{shown}*10^{e}",
            f"{shown}E{e}",
        )
    )
    return rf"{shown} \times 10^{{{exponent}}}", str(answer), not slip


@st.composite
def logarithm(draw: Draw) -> Row:
    a, b, k = draw(small), draw(small), draw(st.integers(2, 5))
    rows = [
        (rf"\ln {a * b}", rf"\ln {a} + \ln {b}", True),
        (rf"\ln {a}", rf"-\ln\frac{{1}}{{{a}}}", True),
        (rf"\log_{{{a}}} {a**k}", f"{k}", True),
        (rf"\log_{{{a}}} {b}", rf"\frac{{\ln {b}}}{{\ln {a}}}", True),
        (rf"{k}\ln {a}", rf"\ln {a**k}", True),
        (rf"\log {10**k}", f"{k}", True),
        (rf"\ln {a + b}", rf"\ln {a} + \ln {b}", a + b == a * b),
        (rf"\ln {a}", rf"\ln {a + 1}", False),
        (rf"{k}\ln {a}", rf"\ln {k * a}", k * a == a**k),
    ]
    return draw(st.sampled_from(rows))


@st.composite
def trigonometry(draw: Draw) -> Row:
    k, name = draw(st.integers(2, 9)), draw(letters.filter(lambda n: n != "t"))
    rows = [
        ("1", rf"\sin^2 {name}+\cos^2 {name}", True),
        (rf"\sin 2{name}", rf"2\sin {name}\cos {name}", True),
        (rf"\cos 2{name}", rf"1-2\sin^2 {name}", True),
        (rf"\tan {name}", rf"\frac{{\sin {name}}}{{\cos {name}}}", True),
        (rf"\sec^2 {name}", rf"1+\tan^2 {name}", True),
        (rf"\sin {k}{name}", rf"{k}\sin {name}", False),
        (rf"\cos {name}", rf"\sin {name}", False),
        (rf"\cos 2{name}", rf"1-\sin^2 {name}", False),
        (rf"\cos\frac{{\pi}}{{{k}}}", rf"\sin\left(\frac{{\pi}}{{2}}-\frac{{\pi}}{{{k}}}\right)", True),
        (r"\arctan 1", r"\frac{\pi}{4}", True),
        (rf"\sin {10 * k}^\circ", rf"\sin\frac{{{k}\pi}}{{18}}", True),
        (rf"\sin {10 * k}^\circ", rf"\cos {10 * k + 1}^\circ", 20 * k + 1 == 90),
    ]
    return draw(st.sampled_from(rows))


@st.composite
def constant(draw: Draw) -> Row:
    k, m = draw(st.integers(2, 50)), draw(st.integers(2, 50))
    rows = [
        (rf"\frac{{{k}\pi}}{{{m}}}", f"{k}*pi/{m}", True),
        (rf"\frac{{{k}\pi}}{{{m}}}", rf"\frac{{{k}}}{{{m}}}\pi", True),
        (rf"{k}\pi", f"{k}π", True),
        (rf"{k}\pi", f"{k}", False),
        (rf"{k}\pi", rf"\pi^{{{k}}}", False),
        (rf"{k}e", rf"e \cdot {k}", True),
        (rf"e^{{{k}}}", rf"\exp({k})", True),
        (rf"{k}+\pi", rf"\pi+{k}", True),
        (rf"{k}-\pi", rf"\pi-{k}", False),
        (r"\infty", f"{k}", False),
        (rf"{k}", r"\infty", False),
    ]
    return draw(st.sampled_from(rows))


@st.composite
def complex_number(draw: Draw) -> Row:
    a, b, c, d = (draw(st.integers(1, 20)) for _ in range(4))
    re_part, im_part = a * c - b * d, a * d + b * c
    product = f"{re_part}{im_part:+d}i"
    rows = [
        (f"{a}+{b}i", rf"{a}+{b}\mathrm{{i}}", True),
        (f"{a}+{b}i", f"{b}i+{a}", True),
        (f"{a}+{b}i", f"{a}-{b}i", False),
        (f"{a}+{b}i", f"({a},{b})", False),
        (product, f"({a}+{b}i)({c}+{d}i)", True),
        (f"{a}+{b}i", f"{a}", False),
        (f"{a}", f"{a}i", False),
        (f"{a}i", rf"\sqrt{{-{a * a}}}", True),
        (f"{a}+{b}i", rf"\frac{{{a * a + b * b}}}{{{a}-{b}i}}", True),
        (f"{a}+{b}i", f"{b}+{a}i", a == b),
    ]
    return draw(st.sampled_from(rows))


VALUE_KINDS: dict[str, st.SearchStrategy[Row]] = {
    "integer": integer(),
    "grouped": grouped(),
    "fraction": fraction(),
    "mixed_number": mixed_number(),
    "decimal": decimal(),
    "rounded": rounded(),
    "repeating": repeating(),
    "percent": percent(),
    "degree": degree(),
    "currency": currency(),
    "unit": unit(),
    "option": option(),
    "radical": radical(),
    "power": power(),
    "scientific": scientific(),
    "log": logarithm(),
    "trig": trigonometry(),
    "constant": constant(),
    "complex": complex_number(),
}
