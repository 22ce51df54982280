"""`pnnx.Expression`: text -> tokens -> tree -> value."""

from engine.expression.ast import (
    CallNode,
    ConstantNode,
    ExpressionNode,
    ListNode,
    NumberNode,
    OperandNode,
    inorder,
    operands,
    postorder,
    reverse_polish,
)
from engine.expression.evaluator import Expression, compile_expression, compile_source, evaluate, infer
from engine.expression.functions import FUNCTIONS, Function
from engine.expression.lexer import tokenize
from engine.expression.parser import parse
from engine.expression.tokens import Token, TokenKind

__all__ = [
    "FUNCTIONS",
    "CallNode",
    "ConstantNode",
    "Expression",
    "ExpressionNode",
    "Function",
    "ListNode",
    "NumberNode",
    "OperandNode",
    "Token",
    "TokenKind",
    "compile_expression",
    "compile_source",
    "evaluate",
    "infer",
    "inorder",
    "operands",
    "parse",
    "postorder",
    "reverse_polish",
    "tokenize",
]
