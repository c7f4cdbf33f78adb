// All operators by their names.
#include <fmt/core.h>

#include <map>

#include "frontend/aten/call.h"

namespace tinygrad::aten {

namespace {

struct Entry {
  Schema schema;
  Operator run;
};
using Table = std::map<std::string, Entry, std::less<>>;

Table make_table() {
  Table out;
  const auto add = [&](std::vector<Row> rows) {
    for (Row& row : rows) {
      Schema schema = parse_schema(row.schema);
      std::string name = schema.name;
      if (!out.emplace(std::move(name), Entry{std::move(schema), std::move(row.run)}).second)
        throw InternalError(fmt::format("aten: '{}' has two rows", row.schema));
    }
  };
  for (const auto family : {arithmetic_operators, unary_operators,    comparison_operators,    activation_operators,  reduce_operators,
                            scan_operators,       movement_operators, slicing_operators,       indexing_operators,    scatter_operators,
                            creation_operators,   random_operators,   product_operators,       convolution_operators, pooling_operators,
                            padding_operators,    softmax_operators,  normalization_operators, attention_operators,   recurrent_operators,
                            resampling_operators, loss_operators,     composite_operators,     number_operators,      prims_operators})
    add(family());
  return out;
}

const Table& table() {
  static const Table& all = *new Table(make_table());
  return all;
}

const Entry& entry(std::string_view op) {
  const auto found = table().find(op);
  if (found == table().end()) throw ValueError(fmt::format("{}: the operator is not supported", op));
  return found->second;
}

/// The error with the operator's name in front of it.
template <class E>
[[noreturn]] void rethrow_named(std::string_view op, const E& error) {
  const std::string_view what = error.what();
  if (what.starts_with(op)) throw error;
  throw E(fmt::format("{}: {}", op, what));
}

}  // namespace

std::vector<Value> call(std::string_view op, const Arguments& arguments, const CallOptions& options) {
  const Entry& e = entry(op);
  try {
    return e.run(Call(e.schema, arguments, options));
  } catch (const ShapeError& error) {
    rethrow_named(op, error);
  } catch (const DTypeError& error) {
    rethrow_named(op, error);
  } catch (const IndexError& error) {
    rethrow_named(op, error);
  } catch (const ValueError& error) {
    rethrow_named(op, error);
  }
}

bool supports(std::string_view op) { return table().contains(op); }

std::vector<std::string_view> operators() {
  std::vector<std::string_view> out;
  for (const auto& [name, e] : table()) out.push_back(name);
  return out;
}

std::span<const Parameter> parameters(std::string_view op) { return entry(op).schema.parameters; }

}  // namespace tinygrad::aten
