#include "renderer/llvmir/memory.h"

#include <algorithm>
#include <numeric>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "renderer/llvmir/vectors.h"

namespace tinygrad::renderer::llvmir {
namespace {

std::string memory_suffix(DType dtype, int lanes) { return suffix(is_bool(dtype) ? DType::uint8 : dtype, lanes); }

std::string alignment(DType dtype) { return fmt::format(FMT_COMPILE("i32 {}"), itemsize(dtype)); }

}  // namespace

std::string offset_pointer(Emitter& out, const std::string& pointer, const std::string& element, const std::string& count) {
  return out.define("at", fmt::format(FMT_COMPILE("getelementptr {}, ptr {}, {}"), element, pointer, count));
}

std::string Memory::access(const Address& a, DType dtype) const {
  return fmt::format(FMT_COMPILE("align {}{}"), itemsize(dtype), aliases_.suffix(a.memory));
}

Value Memory::load(const Address& a, DType dtype) {
  const std::string loaded = a.per_lane
                                 ? gathered(a, dtype)
                                 : out_.define("load", fmt::format(FMT_COMPILE("load {}, ptr {}, {}"), memory_type_name(dtype, a.lanes),
                                                                   a.pointers[0], access(a, dtype)));
  return {.ref = from_memory(loaded, dtype, a.lanes), .dtype = dtype, .lanes = a.lanes};
}

std::string Memory::gathered(const Address& a, DType dtype) {
  const std::string element = memory_type_name(dtype), type = memory_type_name(dtype, a.lanes);
  std::string all = "poison";
  for (int i = 0; i < a.lanes; ++i) {
    const std::string one =
        out_.define("load", fmt::format(FMT_COMPILE("load {}, ptr {}, {}"), element, a.pointers[static_cast<size_t>(i)], access(a, dtype)));
    all = out_.define("gather", fmt::format(FMT_COMPILE("insertelement {} {}, {} {}, i64 {}"), type, all, element, one, i));
  }
  return all;
}

/// Masked accesses are written in native vectors: LLVM 19 takes a part of a wider one, of which no lane is known to be accessed, for one
/// of which all lanes are.
int Memory::lanes_at_once(const Address& a, DType dtype) const {
  return std::gcd(a.lanes, std::max(2, target_.vector_bits / int(itemsize(dtype) * 8)));
}

/// Other targets load lane by lane, behind a branch each.
bool Memory::has_masked_loads(DType dtype) const { return target_.vector_bits >= (itemsize(dtype) < sizeof(float) ? 512 : 256); }

std::string Memory::opened_if_whole(const std::string& lanes, int count, const std::string& name) {
  const std::string label = out_.fresh(name);
  const std::string bits = out_.define("bits", fmt::format("bitcast {} to i{}", lanes, count));
  const std::string whole = out_.define("whole", fmt::format("icmp eq i{} {}, -1", count, bits));
  out_.line(fmt::format("br i1 {}, label %{}, label %{}.part", whole, label, label));
  out_.block(label);
  return label;
}

std::string Memory::whole_or(const std::string& lanes, int count, const std::string& type, const std::string& from,
                             const std::string& access, FunctionRef<std::string()> masked) {
  const std::string label = opened_if_whole(lanes, count, "load");
  const std::string whole = out_.define("load", fmt::format("load {}, {}, {}", type, from, access));
  out_.line(fmt::format("br label %{}.end", label));
  out_.block(label + ".part");
  const std::string part = masked();
  out_.line(fmt::format("br label %{}.end", label));
  out_.block(label + ".end");
  return out_.define("load", fmt::format("phi {} [ {}, %{} ], [ {}, %{}.part ]", type, whole, label, part, label));
}

Value Memory::load(const Address& a, const Value& alternative, MaskPart mask) {
  const DType dtype = alternative.dtype;
  const std::string other = to_memory(alternative), element = memory_type_name(dtype);
  std::vector<std::string> parts;
  const int each = lanes_at_once(a, dtype);
  const std::string type = memory_type_name(dtype, each), of = memory_suffix(dtype, each), align = alignment(dtype);
  for (int first = 0; first < a.lanes; first += each) {
    const std::string kept = fmt::format("{} {}", type, run_of_lanes(out_, element, other, a.lanes, first, each));
    const std::string lanes = mask(first, each);
    if (a.per_lane) {
      parts.push_back(
          out_.call("gather", type, fmt::format("llvm.masked.gather.{}.v{}p0", of, each), {pointers(a, first, each), align, lanes, kept}));
    } else {
      const std::string from = pointer(a, element, first);
      const auto masked = [&] { return out_.call("load", type, fmt::format("llvm.masked.load.{}.p0", of), {from, align, lanes, kept}); };
      parts.push_back(has_masked_loads(dtype) ? masked() : whole_or(lanes, each, type, from, access(a, dtype), masked));
    }
  }
  return {.ref = from_memory(concatenated(out_, element, std::move(parts), each), dtype, a.lanes), .dtype = dtype, .lanes = a.lanes};
}

void Memory::store(const Address& a, const Value& x) {
  const std::string stored = to_memory(x), type = memory_type_name(x.dtype, x.lanes);
  if (!a.per_lane) return store_run(a, fmt::format(FMT_COMPILE("{} {}"), type, stored), "ptr " + a.pointers[0], x.dtype, x.lanes);
  const std::string element = memory_type_name(x.dtype);
  for (int i = 0; i < a.lanes; ++i) {
    const std::string one = out_.define("lane", fmt::format(FMT_COMPILE("extractelement {} {}, i64 {}"), type, stored, i));
    out_.line(fmt::format(FMT_COMPILE("store {} {}, ptr {}, {}"), element, one, a.pointers[static_cast<size_t>(i)], access(a, x.dtype)));
  }
}

void Memory::store_run(const Address& a, const std::string& stored, const std::string& to, DType dtype, int lanes) {
  if (a.streams) return stream(a, stored, to, dtype, lanes);
  out_.line(fmt::format(FMT_COMPILE("store {}, {}, {}"), stored, to, access(a, dtype)));
}

/// Only aligned vectors can; views may begin anywhere.
void Memory::stream(const Address& a, const std::string& stored, const std::string& to, DType dtype, int lanes) {
  streams_ = true;
  const int64_t bytes = std::min<int64_t>(64, lanes * int64_t(itemsize(dtype)));
  const std::string label = out_.fresh("stream");
  const std::string address = out_.define("address", fmt::format("ptrtoint {} to i64", to));
  const std::string rest = out_.define("rest", fmt::format("and i64 {}, {}", address, bytes - 1));
  const std::string aligned = out_.define("aligned", fmt::format("icmp eq i64 {}, 0", rest));
  out_.line(fmt::format("br i1 {}, label %{}, label %{}.not", aligned, label, label));
  out_.block(label);
  out_.line(fmt::format("store {}, {}, align {}, !nontemporal !{{i32 1}}{}", stored, to, bytes, aliases_.suffix(a.memory)));
  out_.line(fmt::format("br label %{}.end", label));
  out_.block(label + ".not");
  out_.line(fmt::format("store {}, {}, {}", stored, to, access(a, dtype)));
  out_.line(fmt::format("br label %{}.end", label));
  out_.block(label + ".end");
}

void Memory::finish() {
  if (streams_) out_.call_void("llvm.x86.sse.sfence", {});
}

/// What is read comes to the second cache, since far rows at equal distances would drive each other out of the first.
void Memory::prefetch(const Address& a, bool written) {
  out_.call_void("llvm.prefetch.p0", {"ptr " + a.pointers[0], written ? "i32 1" : "i32 0", written ? "i32 3" : "i32 2", "i32 1"});
}

/// Most vectors are stored whole, which a branch finds out: a masked store takes longer, on Zen much longer, and goes through the caches
/// even where its neighbours in the line go past them, which takes some hundred cycles.
void Memory::store(const Address& a, const Value& x, MaskPart mask) {
  const std::string all = to_memory(x), element = memory_type_name(x.dtype), align = alignment(x.dtype);
  const int each = lanes_at_once(a, x.dtype);
  const std::string type = memory_type_name(x.dtype, each), of = memory_suffix(x.dtype, each);
  for (int first = 0; first < a.lanes; first += each) {
    const std::string stored = fmt::format("{} {}", type, run_of_lanes(out_, element, all, a.lanes, first, each));
    const std::string lanes = mask(first, each);
    if (a.per_lane) {
      out_.call_void(fmt::format("llvm.masked.scatter.{}.v{}p0", of, each), {stored, pointers(a, first, each), align, lanes});
      continue;
    }
    const std::string to = pointer(a, element, first), label = opened_if_whole(lanes, each, "store");
    store_run(a, stored, to, x.dtype, each);
    out_.line(fmt::format("br label %{}.end", label));
    out_.block(label + ".part");
    out_.call_void(fmt::format("llvm.masked.store.{}.p0", of), {stored, to, align, lanes});
    out_.line(fmt::format("br label %{}.end", label));
    out_.block(label + ".end");
  }
}

std::string Memory::from_memory(const std::string& loaded, DType dtype, int lanes) {
  if (!is_bool(dtype)) return loaded;
  return out_.define("bool", fmt::format("icmp ne {} {}, {}", memory_type_name(dtype, lanes), loaded,
                                         splat_literal(Scalar::from_int(0, DType::uint8), lanes)));
}

std::string Memory::to_memory(const Value& x) {
  if (!is_bool(x.dtype)) return x.ref;
  return out_.define("byte", fmt::format("zext {} to {}", typed(x), memory_type_name(x.dtype, x.lanes)));
}

/// Of element `first`.
std::string Memory::pointer(const Address& a, const std::string& element, int first) {
  if (first == 0) return "ptr " + a.pointers[0];
  return "ptr " + offset_pointer(out_, a.pointers[0], element, fmt::format("i32 {}", first));
}

std::string Memory::pointers(const Address& a, int first, int lanes) {
  const std::string type = fmt::format("<{} x ptr>", lanes);
  std::string all = "poison";
  for (int i = 0; i < lanes; ++i) {
    const std::string& one = a.pointers[static_cast<size_t>(first + i)];
    all = out_.define("ptrs", fmt::format("insertelement {} {}, ptr {}, i64 {}", type, all, one, i));
  }
  return type + " " + all;
}

}  // namespace tinygrad::renderer::llvmir
