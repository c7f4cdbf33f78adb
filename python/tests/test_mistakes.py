"""Each mistake of the tables is a typed error that says what is wrong, and leaves every tensor as it was."""

import re
from typing import Any, Callable

import numpy as np
import pytest
from mistakes import givens, networks, surroundings, tensors

from tinygrad_cpp import Tensor

Mistake = tuple[Callable[[Tensor], Any], type[BaseException], str]
TABLES: dict[str, list[Mistake]] = {name.lower(): table for module in (tensors, networks, surroundings) for name, table in vars(module).items()
                                    if name.isupper() and isinstance(table, list) and table and isinstance(table[0], tuple)}
CASES = [pytest.param(*mistake, id=f"{topic}-{i}") for topic, table in TABLES.items() for i, mistake in enumerate(table)]
BEFORE = {name: (t.shape, t.dtype, t.device, t.is_param, t.numpy().copy()) for name, t in givens.GIVEN.items()}


def check_givens() -> None:
  for name, (shape, dtype, device, is_param, values) in BEFORE.items():
    t = givens.GIVEN[name]
    assert (t.shape, t.dtype, t.device, t.is_param, t.grad) == (shape, dtype, device, is_param, None), name
    np.testing.assert_array_equal(t.numpy(), values, err_msg=name)


@pytest.mark.parametrize("mistake,error,text", CASES)
def test_mistake(mistake: Callable[[Tensor], Any], error: type[BaseException], text: str) -> None:
  values = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
  t = Tensor(values)
  lazy = t * 2
  with pytest.raises(error, match=re.escape(text)) as caught:
    result = mistake(t)
    if isinstance(result, Tensor):
      result.realize()  # other devices and too little memory are found then
  assert type(caught.value) is error
  assert (t.shape, repr(t.dtype), t.device, t.grad, t.is_param) == ((2, 2), "dtypes.float32", "CPU", None, True)
  assert values.tolist() == t.tolist() == [[1.0, 2.0], [3.0, 4.0]]
  assert lazy.tolist() == [[2.0, 4.0], [6.0, 8.0]]
  check_givens()
  t.assign(t + 1).realize()  # fit for use
  assert values.tolist() == [[2.0, 3.0], [4.0, 5.0]]


def test_there_are_many() -> None:
  assert len(CASES) >= 500
