"""The names that an expression may hold: functions, constants, Greek letters, signs and words."""

from __future__ import annotations

_TRIG = ("sin", "cos", "tan", "cot", "sec", "csc")
_HYPERBOLIC = ("sinh", "cosh", "tanh", "coth")

INVERSE = {name: f"arc{name}" for name in (*_TRIG, "sinh", "cosh", "tanh")}
r"""What `\sin^{-1}` means, by the function's name."""

TRIG = frozenset(_TRIG)
SIMPLE = frozenset((*_TRIG, *_HYPERBOLIC, *INVERSE.values(), "ln", "exp", "re", "im", "arg", "det"))
"""Functions of one argument whose brackets may be left out; each is the name of an operation."""

BRACKETED = frozenset(("floor", "ceil", "abs", "sign"))
"""Functions of one argument in brackets."""

LISTED = frozenset(("gcd", "lcm", "max", "min"))
"""Functions of several arguments in brackets."""

_SPELLINGS = {
    **{name: name for name in (*_TRIG, *_HYPERBOLIC, *INVERSE.values(), *BRACKETED, *LISTED)},
    **{f"a{name}": inverse for name, inverse in INVERSE.items()},
    **{f"ar{name}": INVERSE[name] for name in ("sinh", "cosh", "tanh")},
    **{"ln": "ln", "log": "log", "lg": "lg", "exp": "exp", "ceiling": "ceil", "sgn": "sign"},
    **{"arctg": "arctan", "ctg": "cot", "cotg": "cot", "tg": "tan", "cosec": "csc"},
}
PLAIN_FUNCTIONS = {**_SPELLINGS, "sqrt": "sqrt", "cbrt": "cbrt"}
"""Functions in plain text or between text marks."""

TEXT_FUNCTIONS = {**PLAIN_FUNCTIONS, "Re": "re", "Im": "im", "arg": "arg", "det": "det", "GCD": "gcd", "LCM": "lcm"}
"""Functions between text marks, where a run of letters is never a product."""

COMMAND_FUNCTIONS = {
    **{name: function for name, function in _SPELLINGS.items() if name not in BRACKETED},
    **{"Re": "re", "Im": "im", "arg": "arg", "det": "det", "sqrt": "sqrt", "overline": "overline", "bar": "overline"},
    **dict.fromkeys(("frac", "dfrac", "tfrac", "cfrac"), "frac"),
    **dict.fromkeys(("binom", "dbinom", "tbinom"), "binom"),
}
"""Functions as LaTeX commands, without the backslash."""

_GREEK = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu"),
    *("rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
)
PLAIN_LETTERS = {
    **{name: name for name in _GREEK},
    **dict.fromkeys(("infinity", "inf", "oo"), "infinity"),
    "pi": "pi",
}
"""Letters and constants with names of their own; `xi` is left out, it may be x times i."""

COMMAND_LETTERS = {
    **{name: name for name in (*_GREEK, "xi", "pi", "ell", "hbar")},
    **{f"var{name}": name for name in ("epsilon", "theta", "phi", "rho", "sigma")},
    **{name: name for name in ("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega")},
    **dict.fromkeys(("infty", "infin"), "infinity"),
}
CONSTANTS = frozenset(("pi", "e", "i", "infinity"))

COMMAND_SIGNS = {
    **dict.fromkeys(("cdot", "times", "ast"), "*"),
    **dict.fromkeys(("to", "rightarrow", "longrightarrow"), "->"),
    **dict.fromkeys(("lvert", "rvert", "vert", "mid"), "|"),
    **{"div": "/", "over": "over", "choose": "choose", "circ": "circ", "prime": "prime", "top": "top", "cr": "row"},
    **{"bmod": "mod", "mod": "mod", "lbrace": r"\{", "rbrace": r"\}", "lbrack": "[", "rbrack": "]"},
    **{"lfloor": "lfloor", "rfloor": "rfloor", "lceil": "lceil", "rceil": "rceil"},
}
COMMAND_MARKS = {
    **dict.fromkeys(("le", "leq", "leqslant"), r"\le"),
    **dict.fromkeys(("ge", "geq", "geqslant"), r"\ge"),
    **{"ne": r"\ne", "neq": r"\ne", "lt": "<", "gt": ">"},
}
PLAIN_MARKS = {"<=": r"\le", ">=": r"\ge", "!=": r"\ne", "=": "=", "<": "<", ">": ">"}
BIGS = {"sum": "sum", "prod": "product", "int": "integral", "lim": "limit"}

CODE_WORDS = frozenset(
    ("def", "eval", "exec", "open", "quit", "exit", "raise", "print", "import", "return", "class", "input", "while")
)
WORDS = frozenset(("if", "for", "when", "where", "and", "or", "otherwise", "else", "elsewhere"))
"""Words of piecewise functions; they are never products of letters."""
