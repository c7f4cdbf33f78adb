#include "frontend/aten/value.h"

#include <fmt/core.h>

#include <array>

#include <tinygrad/errors.h>

namespace tinygrad::aten {

namespace {

constexpr auto kinds = std::to_array<std::string_view>({"nothing", "a tensor", "a bool", "an integer", "a float", "a symbolic integer",
                                                        "a text", "a dtype", "a device", "a memory format", "a layout", "a list"});
static_assert(kinds.size() == std::variant_size_v<Value::Held>);

template <class T>
const T& expect(const Value& v, std::string_view what) {
  if (const T* held = v.get_if<T>()) return *held;
  throw DTypeError(fmt::format("{} where {} is expected", v.kind(), what));
}

}  // namespace

std::string_view Value::kind() const { return kinds[held_.index()]; }

bool Value::is_number() const { return get_if<bool>() || get_if<int64_t>() || get_if<double>() || get_if<Extent>(); }

const Tensor& Value::tensor() const { return expect<Tensor>(*this, "a tensor"); }
const std::string& Value::text() const { return expect<std::string>(*this, "a text"); }
DType Value::dtype() const { return expect<DType>(*this, "a dtype"); }
const List& Value::list() const { return expect<List>(*this, "a list"); }

int64_t Value::integer() const {
  if (const bool* b = get_if<bool>()) return *b;
  if (const Extent* e = get_if<Extent>()) return e->value();
  return expect<int64_t>(*this, "an integer");
}
Extent Value::extent() const {
  if (const Extent* e = get_if<Extent>()) return *e;
  return integer();
}
double Value::number() const {
  if (const double* d = get_if<double>()) return *d;
  if (!is_number()) expect<double>(*this, "a number");
  return double(integer());
}
bool Value::boolean() const {
  if (const int64_t* i = get_if<int64_t>()) return *i != 0;
  return expect<bool>(*this, "a bool");
}

}  // namespace tinygrad::aten
