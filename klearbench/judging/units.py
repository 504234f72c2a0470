"""A value and what it is counted in: units, currency, percent, degrees, count nouns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from klearbench.judging.normalize import TEXT_CLOSE, TEXT_OPEN
from klearbench.judging.unitwords import is_unit

F = Fraction
_BASE: dict[str, tuple[str, Fraction]] = {}


def _define(dimension: str, **units: str) -> None:
    for factor_text, names in units.items():
        for name in names.split():
            _BASE[name] = (dimension, F(factor_text[1:].replace("_", "/").replace("p", ".")))


_define(
    "length", f1="m meter meters metre metres 米", f0p01="cm centimeter centimeters centimetre centimetres 厘米",
    f0p001="mm millimeter millimeters millimetre 毫米", f1000="km kilometer kilometers kilometre kilometres 公里 千米",
    f0p0254="in inch inches 英寸", f0p3048="ft foot feet 英尺", f0p9144="yd yard yards", f1609p344="mi mile miles 英里",
)  # fmt: skip
_define(
    "time", f1="s sec secs second seconds 秒", f60="min mins minute minutes 分钟", f3600="h hr hrs hour hours 小时",
    f86400="day days 天 日", f604800="week weeks 周", f0p001="ms millisecond milliseconds",
)  # fmt: skip
_define("month", f1="month months 个月", f12="year years yr yrs 年")
_define(
    "mass", f1="g gram grams 克", f1000="kg kilogram kilograms 千克 公斤", f0p001="mg",
    f453p59237="lb lbs pound pounds", f28p349523125="oz ounce ounces", f907184p74="ton tons",
)  # fmt: skip
_define(
    "volume",
    f1="l liter liters litre litres 升",
    f0p001="ml milliliter milliliters 毫升",
    f3p785411784="gallon gallons gal",
)
_define("dollar", f1="$ dollar dollars usd 美元", f0p01="cent cents ¢")
_define("euro", f1="€ euro euros")
_define("sterling", f1="£")
_define("yuan", f1="元 yuan ¥")
_define("degree", f1="deg degree degrees 度")
_define("radian", f1="rad radian radians")
_define("percent", f1="% percent pct")
_define("energy", f1="j joule joules", f1000="kj")
_define("force", f1="n newton newtons")
_define("temperature", f1="celsius")
_define("frequency", f1="hz", f1000="khz")
_BASE["mph"] = ("speed", F("0.44704"))
_BASE["kph"] = _BASE["kmh"] = ("speed", F(1000, 3600))
_CURRENCIES = {"USD": "$", "US$": "$", "EUR": "€", "GBP": "£", "RMB": "¥", "CNY": "¥"}
_CURRENCY_NAME = re.compile(r"\A(?:USD|US\$|EUR|GBP|RMB|CNY)\s?(?=\d)", re.IGNORECASE)
_GENERIC = frozenset(
    {
        "unit",
        "units",
        "square units",
        "sq units",
        "cubic units",
        "total",
        "in total",
        "units^2",
        "units^3",
        "unit^2",
        "altogether",
    }
)
_KNOWN = frozenset(_BASE)
_TIGHT = "cm|mm|km|kg|mg|ml|mL|ft|mph|Hz|kHz|kJ|lbs?|oz|hrs?|mins?|secs?|km/h|m/s|°C|°F|%|rad"
_POWER = r"(?:\s?\^\s?\{?\s?(-?\d)\s?\}?)?"
_MARKED = re.compile(
    rf"(.*?\S)\s?((?:{TEXT_OPEN}[^{TEXT_OPEN}{TEXT_CLOSE}]*{TEXT_CLOSE}{_POWER}\s?(?:/|\\cdot)?\s?)+)", re.DOTALL
)
_WORDS = re.compile(rf"(.*?[\d}})!|%])\s+((?:[A-Za-z][A-Za-z.'-]*{_POWER}[\s/]{{0,2}}){{1,5}})", re.DOTALL)
_ATTACHED = re.compile(rf"(.*?\d)\s?((?:{_TIGHT}){_POWER})", re.DOTALL)
_CJK = re.compile(r"(.*?[\d})])\s?([\u3400-\u9fff\uac00-\ud7a3]{1,4})", re.DOTALL)
_UNIT_FRACTION = re.compile(
    rf"\\frac\s?\{{\s?{TEXT_OPEN}([^{TEXT_OPEN}{TEXT_CLOSE}]*){TEXT_CLOSE}\s?\}}\s?\{{\s?{TEXT_OPEN}([^{TEXT_OPEN}{TEXT_CLOSE}]*){TEXT_CLOSE}\s?\}}"
)
_DEGREE = re.compile(r"(.*?)\s?(?:\^\s?\{?\s?\\circ\s?\}?|\\degree)\s?([CF])?")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value's text and its unit: dimension signature ("" for none) and the exact factor to the base unit."""

    value: str
    dimension: str
    factor: Fraction


def split_quantity(text: str, *, reference: bool = False) -> Quantity:
    """Take the unit off a value written in the spelling of `normalize.canonical`.

    Words that may change or deny the value are no unit. A `reference` may count in any noun, also in the singular.
    """
    text = _UNIT_FRACTION.sub(rf"{TEXT_OPEN}\1/\2{TEXT_CLOSE}", text.strip())
    text = _CURRENCY_NAME.sub(lambda m: _CURRENCIES[m[0].strip().upper()], text, count=1)
    lead = re.fullmatch(r"([-+]?)\s?([$€£¥])\s?(.+)", text, re.DOTALL)
    if lead is not None:
        inner = split_quantity(lead[3], reference=reference)
        own = _BASE[lead[2]]
        if not inner.dimension or inner.dimension == _signature([(own[0], 1)]):
            return Quantity(lead[1] + inner.value, _signature([(own[0], 1)]), own[1])
        return Quantity(lead[1] + inner.value, f"{own[0]}?{inner.dimension}", F(1))
    match = _DEGREE.fullmatch(text)
    if match is not None and match[1].strip() and not re.search(r"\\?(?:sin|cos|tan|cot|sec|csc)", match[1]):
        return Quantity(match[1].strip(), f"temperature{match[2]}" if match[2] else "degree^1", F(1))
    symbol = re.fullmatch(r"(.*[\d})])\s?([€£¥¢%$])", text, re.DOTALL)
    if symbol is not None:
        own = _BASE[symbol[2]]
        return Quantity(symbol[1].strip(), _signature([(own[0], 1)]), own[1])
    for pattern in (_MARKED, _WORDS, _ATTACHED, _CJK):
        match = pattern.fullmatch(text)
        if match is None:
            continue
        unit = match[2].replace(TEXT_OPEN, " ").replace(TEXT_CLOSE, "").strip(" .")
        if not re.search(r"[\w}]", match[1]) or not is_unit(_spelling(unit), _KNOWN, reference=reference):
            continue
        if re.search(r"[-+*/=<>^_\\(,]$", match[1].strip()):
            continue
        if pattern is _WORDS and len(unit) == 1 and unit not in "msgh":
            continue  # a variable, not a unit
        return Quantity(match[1].strip(), *_unit(unit))
    return Quantity(text, "", F(1))


def _unit(text: str) -> tuple[str, Fraction]:
    """Dimension signature and factor of a unit's text; an unknown word is a count noun and a dimension of its own."""
    text = _spelling(text)
    text = re.sub(r"(\^)\s?\{?\s?(-?\d)\s?\}?", r"^\2", text)
    if text in _GENERIC or not text:
        return "", F(1)
    text = re.sub(r"\b(?:square|sq) (\w+)", r"\1^2", text)
    text = re.sub(r"\b(?:cubic|cu) (\w+)", r"\1^3", text)
    text = re.sub(r"\b(\w+) squared\b", r"\1^2", re.sub(r"\b(\w+) cubed\b", r"\1^3", text))
    parts: list[tuple[str, int]] = []
    factor = F(1)
    top, *below = re.split(r"\s?(?:/|\bper\b|\ban?\b)\s?", text)
    for sign, group in ((1, top), *((-1, g) for g in below)):
        known = [word for word in group.split(" ") if word.partition("^")[0] in _BASE]
        if group and not known:
            parts.append((_noun(group), sign))
            continue
        for word in known:
            name, _, power = word.partition("^")
            dimension, scale = _BASE[name]
            exponent = sign * int(power or 1)
            if dimension == "volume":
                dimension, scale, exponent = "length", scale / 1000, 3 * exponent
                factor *= scale**sign
            else:
                factor *= scale**exponent
            parts += [("length", 1), ("time", -1)] if dimension == "speed" else [(dimension, exponent)]
    return _signature(parts), factor


def _spelling(text: str) -> str:
    """A unit's text in lower case, without full stops, hyphens and signs of multiplication."""
    text = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", text.lower().replace(".", "").replace("\\cdot", " "))
    text = re.sub(r"^(平方|立方)(\S+)$", lambda m: f"{m[2]}^{2 if m[1] == '平方' else 3}", text)
    return re.sub(r"\s+", " ", text).strip()


def _noun(text: str) -> str:
    """A count noun without its plural."""
    last = text.rsplit(" ", maxsplit=1)[-1]
    for ending, singular in (("ies", "y"), ("ses", "s"), ("xes", "x"), ("s", "")):
        if last.endswith(ending) and len(last) > 3:
            return "#" + last.removesuffix(ending) + singular
    return "#" + last


def _signature(parts: list[tuple[str, int]]) -> str:
    total: dict[str, int] = {}
    for name, power in parts:
        total[name] = total.get(name, 0) + power
    return " ".join(f"{name}^{power}" for name, power in sorted(total.items()) if power)


PERCENT = _signature([("percent", 1)])
DEGREE = _signature([("degree", 1)])
RADIAN = _signature([("radian", 1)])
