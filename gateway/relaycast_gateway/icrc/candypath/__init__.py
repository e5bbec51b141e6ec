r"""CandyPath: filters over the data of an event, an ICRC-16 tree.

```text
filter     = path | condition
condition  = all *( " | " all )                   "&" binds tighter than "|"; no parentheses
all        = term *( " & " term )
term       = path " " operator " " ( literal | reference ) | path ": [" literal *( ", " literal ) "]"
operator   = "==" | "!=" | "<>" | ">" | ">=" | "<" | "<=" | "~=" | "~~=" | "!~=" | "!~~="
path       = start *( "." step | "[" condition "]" )
start      = "$" | "@" | step | (nothing before "[")
reference  = ( "$" | "@" ) *( "." step | "[" condition "]" )
step       = "*" | index | name                   an index, such as 0 or -1, is also a name
name       = 1*( any character but space . [ ] ( ) { } " ' * $ @ = ! < > ~ & | \ | "\" any )
literal    = *( any character but space ] ? \ | "\" any ) | "?"          no $ or @ at its start; in a list not empty
                                                                        and without ","
```

Exactly one space stands on each side of an operator. A backslash takes the next character as it is; a name or a
literal with one is no number, no Boolean and not ``?``.

**Paths.** ``$`` is the root, ``@`` the current item: inside brackets the item that is looked at, outside the root. A
path that starts otherwise starts at the current item. A name takes the value of a ``Map`` under that key, of a
``ValueMap`` under that ``Text``, or of the property of a ``Class``: the first if there are several. An index takes an
item of ``Array``, ``Nats`` (as ``Nat``), ``Floats`` (as ``Float``) or ``Bytes`` (as ``Nat8``), from the end if it is
negative. ``*`` takes all items of these and of a ``Set``, brackets all items for which the condition holds. An
``Option`` with a value stands for its value everywhere. What is not there is left out; a path that finds nothing has
the one value null, ``Option(null)``.

**Comparisons** with a literal depend on the type of the value:

- ``Text``, and ``Principal`` by its text, compare with the literal itself;
- ``Blob`` compares with the UTF-8 bytes of the literal;
- ``Bool`` compares with ``true`` or ``false``, and ``false`` is less than ``true``;
- ``Nat``, ``Int`` and their fixed widths compare with a whole number;
- ``Float`` compares with a number such as ``5``, ``-1.5`` or ``.5``;
- null compares with ``?``, by ``==`` and ``!=`` alone; another operator before ``?`` is refused.

With a reference, two values of one type among these compare. ``Text`` is ordered by code points, a ``Principal`` as its
text against a literal and as its bytes against a reference. ``~=`` says that a ``Text`` contains the literal, ``~~=``
does so after Unicode case folding. Any other pair does not compare: an ``Array``, a ``Nat`` with ``1.5``, a ``Nat``
with a ``Nat8``.

If a path finds several values, ``== > >= < <= ~= ~~=`` hold where some pair does. ``!=`` is the inverse of ``==``:
true for what does not compare. ``<>``, ``!~=`` and ``!~~=`` hold where some pair compares (null does not) and none is
equal, or contained. ``path: [a, b]`` holds where ``==`` does with one of the literals. A path alone selects events in
which it finds a value other than null and ``Bool(false)``.

**Bounds.** A text has at most 1,024 characters, brackets are nested at most 8 deep. A filter with ``*`` or brackets
looks at no more than 100,000 entries and items of an event, long values counted by their length. If that is not enough,
it does not select the event. Evaluation never raises.

The rules above are ours where the texts are silent or the Motoko library ``candy_utils`` has slips. There, a negative
index takes the item of its absolute value, and ``<`` and ``>`` of ``Bool`` look at one side. ``Map`` is not searched,
and operators of references to options differ. Its use of ``*`` and brackets within a condition, the first item alone,
is not kept: a filter asks whether there is such an item.

Source: ICRC-72, "Filters"; ``candy_utils``, "Candy Path".
"""
