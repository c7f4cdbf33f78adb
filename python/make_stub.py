"""Writes _core.pyi, the types of the compiled module: make_stub.py FOLDER-OF-THE-MODULE FILE.

nanobind's generator knows the signatures. What it cannot know is added here: methods of Tensor are called as Python's types are, errors are
made at run time, containers have no element types, and methods that return their own tensor return an object."""

from __future__ import annotations

import ast
import sys

from nanobind.stubgen import StubGen

BUILTINS = {"float", "int", "bool", "bytes", "str"}
GENERIC = {"tuple": "builtins.tuple[Any, ...]", "list": "builtins.list[Any]", "dict": "builtins.dict[Any, Any]", "Callable": "Callable[..., Any]",
           "Iterator": "Iterator[Any]", "Sequence": "Sequence[Any]", "object": "Any"}
IN_PLACE = {"realize", "assign", "replace", "to_", "is_param_", "backward"}
PAIRS = {"sort", "topk", "cummax", "cummin", "var_mean", "std_mean", "qr"}


def parse(annotation: str) -> ast.expr:
  return ast.parse(annotation, mode="eval").body


class Annotation(ast.NodeTransformer):
  """Full names, and element types where there are none."""

  def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
    node.slice = self.visit(node.slice)
    if isinstance(node.value, ast.Name) and node.value.id in ("tuple", "list", "dict"):
      node.value = parse(f"builtins.{node.value.id}")
    return node

  def visit_Name(self, node: ast.Name) -> ast.AST:
    if node.id in BUILTINS:
      return parse(f"builtins.{node.id}")
    return parse(GENERIC[node.id]) if node.id in GENERIC else node


class Functions(ast.NodeTransformer):
  def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
    arguments = node.args
    for i, a in enumerate([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]):
      if a is None or (i == 0 and a.arg == "self"):
        continue
      a.annotation = Annotation().visit(a.annotation) if a.annotation else parse("Any")
    if node.name in IN_PLACE or (node.name.startswith("__i") and node.name not in ("__init__", "__int__", "__iter__", "__invert__")):
      node.returns = parse("Tensor")
    elif node.name in PAIRS:
      node.returns = parse("builtins.tuple[Tensor, Tensor]")
    elif isinstance(node.returns, ast.Name) and node.returns.id == "DTypeLike":
      node.returns = parse("DType")
    elif node.returns:
      node.returns = Annotation().visit(node.returns)
    return node

  def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
    node.annotation = Annotation().visit(node.annotation)
    return node


def errors(module: object) -> str:
  """The exceptions, with their bases."""
  out = []
  for name, value in vars(module).items():
    if isinstance(value, type) and issubclass(value, Exception):
      bases = [b.__name__ if b.__module__ == "tinygrad_cpp" else f"builtins.{b.__name__}" for b in value.__bases__]
      out.append(f"class {name}({', '.join(bases)}): ...")
  return "\n".join(out)


def main() -> None:
  sys.path.insert(0, sys.argv[1])
  import _core  # type: ignore[import-not-found]

  generator = StubGen(_core)
  generator.put(_core)
  tree = Functions().visit(ast.parse(generator.get()))
  tree.body = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))][1:]
  header = ["import builtins", "from collections.abc import Callable, Iterator, Mapping, Sequence", "from typing import Any, TypeAlias, overload", "",
            'DTypeLike: TypeAlias = "builtins.str | DType"', errors(_core), ""]
  with open(sys.argv[2], "w") as file:
    file.write("\n".join(header) + ast.unparse(ast.fix_missing_locations(tree)).replace("_core.", "") + "\n")


if __name__ == "__main__":
  main()
