"""CloudEvents SQL v1: expressions over the context attributes of one event.

```text
expression = operand { operator operand }        operators in order of precedence, each level from left to right:
                                                   * / %    + -    = != <> < <= > >=    AND OR XOR
operand    = { NOT | - } value { [NOT] LIKE string | [NOT] IN ( expression {, expression} ) }    NOT and - first
value      = literal | attribute | EXISTS attribute | function ( [expression {, expression}] ) | ( expression )
literal    = TRUE | FALSE | [+|-] digits (32 bits with sign) | 'text' | "text"
attribute  = lower-case letters and digits        function = letters and _
```

Keywords and names of functions may be written in any case. In a string, a backslash before the string's own quote
stands for the quote; any other backslash for itself. In a pattern of ``LIKE``, ``%`` is any text, ``_`` one character,
and a backslash before either takes it literally. AND and OR leave out a right operand that cannot matter.

Values are strings, integers of 32 bits and booleans; an operator or function casts what it is given. An operand with an
error ends the operator around it. The result is then the zero value of the whole expression's type (``""``, 0, false);
a function alone may name a better one. An overflow is a math error with 0. ``data`` is no attribute.

Bounds: 8,192 characters, 32 parentheses, arguments or prefixes inside one another, 64 operators inside one another,
results of ``CONCAT`` of 1,048,576 characters.
Source: CloudEvents SQL Expression Language 1.0.0.
"""
