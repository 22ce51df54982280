"""Tokens -> tree, by recursive descent.

The rules are generators: a rule yields the rule it descends into, and is sent the node that came of it. `_descend`
keeps the active rules in a list, so that nesting is bounded by `MAX_DEPTH` and not by Python's recursion limit.

PNNX's writer knows some of its own functions (log1p, expm1) only in part: what should read
`sub(add(expm1(@0),@1),0.5)` it writes as `sub(add(expm1,@0),@1),0.5`. Names and values come in the right order, but
brackets and commas are misplaced. A function's name without a bracket after it gives such an expression away; it is
read by the number of arguments that each function takes, with brackets and commas as mere separators.
"""

import re
from collections.abc import Generator
from itertools import pairwise
from typing import TypeAlias, cast

from engine.errors import ExpressionError
from engine.expression.ast import CallNode, ConstantNode, ExpressionNode, ListNode, NumberNode, OperandNode
from engine.expression.functions import FUNCTIONS, Function, unknown_function
from engine.expression.lexer import tokenize
from engine.expression.tokens import Token, TokenKind

MAX_DEPTH = 100_000
"""Maximum nesting; every active level takes about a kilobyte."""

_CONSTANTS: dict[str, bool | None] = {"None": None, "True": True, "False": False}
_SEPARATORS = frozenset((TokenKind.OPEN, TokenKind.CLOSE, TokenKind.COMMA))
_MISPLACED = frozenset((TokenKind.CLOSE, TokenKind.CLOSE_LIST, TokenKind.COMMA))
_LONGEST_INT = 100
_INDEX_DIGITS = 9

GrammarRule: TypeAlias = Generator["GrammarRule", ExpressionNode, ExpressionNode]


def parse(source: str) -> ExpressionNode:
    """Read an expression as PNNX writes it.

    Args:
        source: e.g. `add(@0,mul(@1,0.5))`.

    Raises:
        ExpressionError: the text is no expression: an unknown function, a wrong number of arguments, an unbalanced
            bracket, a number that does not fit … The caret stands where reading stopped.
    """
    tokens = list(tokenize(source))
    parser = _FlattenedParser(source, tokens) if _is_flattened(tokens) else _Parser(source, tokens)
    return parser.parse()


def _is_flattened(tokens: list[Token]) -> bool:
    """Return whether a function's name stands without the bracket that should follow it."""
    return any(
        token.kind is TokenKind.NAME and token.text in FUNCTIONS and follower.kind in _MISPLACED
        for token, follower in pairwise(tokens)
    )


class _Parser:
    """The grammar as it should be written, one method per rule."""

    def __init__(self, source: str, tokens: list[Token]) -> None:
        self._source = source
        self._tokens = tokens
        self._index = 0

    def parse(self) -> ExpressionNode:
        """Read source := expression END."""
        node = self._descend(self._expression())
        token = self._take()
        if token.kind is not TokenKind.END:
            raise self._error(token, f"expected the end of the expression, got {token}")
        return node

    def _expression(self) -> GrammarRule:
        """Read expression := NUMBER | OPERAND | constant | call | list."""
        token = self._take()
        if token.kind is TokenKind.OPEN_LIST:
            return (yield self._list(token))
        if token.kind is TokenKind.NUMBER:
            return NumberNode(self._number(token), position=token.position, source=self._source)
        if token.kind is TokenKind.OPERAND:
            return OperandNode(self._operand_index(token), position=token.position, source=self._source)
        if token.kind is not TokenKind.NAME:
            raise self._error(token, f"expected an expression, got {token}")
        if token.text in _CONSTANTS:
            return ConstantNode(_CONSTANTS[token.text], position=token.position, source=self._source)
        return (yield self._call(token, self._function(token)))

    def _call(self, name: Token, function: Function) -> GrammarRule:
        """Read call := NAME '(' [expression (',' expression)*] ')'."""
        self._expect(TokenKind.OPEN, f"'(' after {name.text}")
        arguments: list[ExpressionNode] = []
        if self._peek().kind is not TokenKind.CLOSE:
            arguments.append((yield self._expression()))
            while self._accept(TokenKind.COMMA):
                arguments.append((yield self._expression()))
        self._expect(TokenKind.CLOSE, f"',' or ')' in the arguments of {name.text}")
        if not function.takes(len(arguments)):
            raise self._error(name, function.wrong_count(len(arguments)))
        return CallNode(name.text, tuple(arguments), position=name.position, source=self._source)

    def _list(self, opening: Token) -> GrammarRule:
        """Read list := '[' [expression (',' expression)*] ']'."""
        items: list[ExpressionNode] = []
        if self._peek().kind is not TokenKind.CLOSE_LIST:
            items.append((yield self._expression()))
            while self._accept(TokenKind.COMMA):
                items.append((yield self._expression()))
        self._expect(TokenKind.CLOSE_LIST, "',' or ']' in a list")
        return ListNode(tuple(items), position=opening.position, source=self._source)

    def _function(self, name: Token) -> Function:
        function = FUNCTIONS.get(name.text)
        if function is None:
            raise self._error(name, unknown_function(name.text))
        return function

    def _number(self, token: Token) -> int | float | complex:
        text = re.sub(r"(inf|nan)\.0", r"\1", token.text)
        if text.endswith("j"):
            return complex(text)
        if not text.lstrip("+-").isdigit():
            return float(text)
        if len(text) <= _LONGEST_INT and -(2**63) <= int(text) < 2**63:
            return int(text)
        raise self._error(token, "expected an integer of at most 64 bits")

    def _operand_index(self, token: Token) -> int:
        digits = token.text[1:]
        if len(digits) > _INDEX_DIGITS:
            raise self._error(token, f"an operand's number has at most {_INDEX_DIGITS} digits")
        return int(digits)

    def _descend(self, rule: GrammarRule) -> ExpressionNode:
        """Run a rule and every rule it descends into, without recursion."""
        underway = [rule]
        finished: ExpressionNode | None = None
        while True:
            try:
                deeper = next(underway[-1]) if finished is None else underway[-1].send(finished)
            except StopIteration as result:
                finished = node = cast(ExpressionNode, result.value)
                underway.pop()
                if not underway:
                    return node
                continue
            if len(underway) > 2 * MAX_DEPTH:  # two rules to a level
                raise self._error(self._peek(), f"nested deeper than {MAX_DEPTH} levels")
            underway.append(deeper)
            finished = None

    def _peek(self) -> Token:
        return self._tokens[self._index]

    def _take(self) -> Token:
        token = self._tokens[self._index]
        self._index = min(self._index + 1, len(self._tokens) - 1)
        return token

    def _accept(self, kind: TokenKind) -> bool:
        found = self._peek().kind is kind
        if found:
            self._take()
        return found

    def _expect(self, kind: TokenKind, wanted: str) -> None:
        token = self._take()
        if token.kind is not kind:
            raise self._error(token, f"expected {wanted}, got {token}")

    def _error(self, token: Token, problem: str) -> ExpressionError:
        return ExpressionError(self._source, token.position, problem)


class _FlattenedParser(_Parser):
    """The grammar of expressions whose brackets and commas were misplaced."""

    def __init__(self, source: str, tokens: list[Token]) -> None:
        super().__init__(source, [token for token in tokens if token.kind not in _SEPARATORS])

    def _call(self, name: Token, function: Function) -> GrammarRule:
        """Read call := NAME expression*, as many as the function takes and the tokens allow."""
        arguments: list[ExpressionNode] = []
        while len(arguments) < function.most and not (len(arguments) >= function.least and self._at_end()):
            arguments.append((yield self._expression()))
        return CallNode(name.text, tuple(arguments), position=name.position, source=self._source)

    def _list(self, opening: Token) -> GrammarRule:
        """Read list := '[' expression* ']'."""
        items: list[ExpressionNode] = []
        while not self._accept(TokenKind.CLOSE_LIST):
            items.append((yield self._expression()))
        return ListNode(tuple(items), position=opening.position, source=self._source)

    def _at_end(self) -> bool:
        return self._peek().kind in (TokenKind.CLOSE_LIST, TokenKind.END)
