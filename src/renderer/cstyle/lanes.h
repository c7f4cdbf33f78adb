#pragma once
/// Vectors put together, taken apart, and read or written lane by lane.

#include "renderer/cstyle/value.h"

namespace tinygrad::renderer::cstyle {

/// "v.s3", or "v[17]": there are names for 16 lanes.
std::string numbered_lane(std::string_view vector, int64_t lane);

/// "v.s3"
Value lane(Prelude& prelude, const Value& v, int64_t at);
/// "v.lo", "v.s1234"
Value run_of_lanes(Prelude& prelude, const Value& v, int64_t begin, int64_t end);
/// "(float4){a, b, c, d}"
Value vector_of(Prelude& prelude, const std::vector<Value>& scalars, DType dtype);

// Memory: `dtype` is that of its elements. A lane that the gate leaves out is not touched; its value is that of `other`.

Expr gather(Prelude& prelude, DType dtype, const std::string& memory, const Value& at, const Value* gate, const Value* other);
/// Of a run `may_be_whole` says that most gates let all lanes through, which are then loaded at once.
Expr load_run(Prelude& prelude, DType dtype, const std::string& pointer, int width, const Value& gate, const Value& other,
              bool may_be_whole);
/// A statement.
std::string scatter(Prelude& prelude, DType dtype, const std::string& memory, const Value& at, const Value& x, const Value* gate);
/// `whole`: the statement that stores all lanes of x at once, to p; empty if lanes are always stored one by one.
std::string store_run(Prelude& prelude, DType dtype, const std::string& pointer, int width, const Value& x, const Value& gate,
                      std::string_view whole);

}  // namespace tinygrad::renderer::cstyle
