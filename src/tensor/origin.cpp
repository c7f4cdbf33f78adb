#include "tensor/origin.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <new>
#include <vector>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/rethrow.h"
#include "device/device.h"
#include "shape/device.h"
#include "shape/shape.h"
#include "tensor/cell.h"
#include "tensor/history.h"
#include "tensor/memory.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::tensor {

namespace {

std::atomic<PlaceProvider> provider{nullptr};

/// What stands at a place in its file, if that is there and the part is of one line; else "".
std::string text_at(const SourcePlace& p) {
  if (p.line != p.end_line || p.column >= p.end_column) return {};
  std::ifstream file(p.file);
  std::string line;
  for (int i = 0; i < p.line; ++i)
    if (!std::getline(file, line)) return {};
  if (size_t(p.end_column) > line.size()) return {};
  return line.substr(size_t(p.column), size_t(p.end_column - p.column));
}

std::string shape_and_dtype(const UOp& u) { return fmt::format("{} {}", tinygrad::to_string(shape_of(u)), repr(u.dtype())); }

const ValueOrigin& origin_of(const UOp& tensor) { return static_cast<const TensorValue&>(*tensor.arg_as<TensorArg>().variable).origin; }

/// The first TENSORs on the ways down from these nodes, in the order of the graph.
std::vector<UOp> tensors_below(std::span<const UOp> nodes) {
  std::vector<UOp> out;
  for (const UOp& u : toposort_where(nodes, [](const UOp& n) { return !n.is(Op::TENSOR); }))
    if (u.is(Op::TENSOR)) out.push_back(u);
  return out;
}

bool is_computed(const UOp& tensor) { return !is_plain_memory(state_of_view(tensor)) && !is_empty(shape_of(tensor)); }

/// Of the operations that `sink` needs, the first that cannot be compiled; null if each can by itself.
UOp first_uncompilable(const UOp& sink, FunctionRef<void(const UOp&)> compile) {
  constexpr size_t most = 256;
  constexpr std::chrono::seconds long_enough{5};
  const auto start = std::chrono::steady_clock::now();
  std::vector<UOp> stores, tensors;
  for (const UOp& u : toposort(sink)) {
    if (!u.is(Op::TENSOR) || !is_computed(u)) continue;
    tensors.push_back(u);
    stores.push_back(store(make_memory(shape_of(u), u.dtype(), Placements().of(u)), u));
  }
  const size_t begin = stores.size() > most ? stores.size() - most : 0;
  const auto fails = [&](size_t end) {  // so do all that have more
    try {
      compile(tinygrad::sink(std::span(stores).subspan(begin, end - begin)));
      return false;
    } catch (const Cancelled&) {
      throw;
    } catch (const Error&) {
      return true;
    }
  };
  size_t good = begin, bad = stores.size();
  if (good == bad || !fails(bad)) return {};
  while (bad - good > 1 && std::chrono::steady_clock::now() - start < long_enough) {
    const size_t middle = good + (bad - good) / 2;
    (fails(middle) ? bad : good) = middle;
  }
  return tensors[bad - 1];
}

std::string bytes_text(size_t bytes) {
  if (bytes < size_t{1} << 20) return fmt::format("{} bytes", bytes);
  return fmt::format("{:.1f} MiB", double(bytes) / double(1 << 20));
}

/// The live tensors with most memory, one for each piece of it.
std::string largest_tensors() {
  constexpr size_t most = 5;
  struct Held {
    size_t bytes;
    UOp tensor;
    std::string device;
  };
  std::map<const Buffer*, Held> held;
  size_t total = 0;
  for (const detail::CellPtr& c : detail::live_cells()) {
    const UOp node = c->node(), state = state_of_view(node);
    if (!state) continue;
    for (const Buffer* part : buffers_of(buffer_of_state(state))) {
      const Buffer& memory = part->origin();
      if (!memory.is_allocated()) continue;
      if (held.try_emplace(&memory, Held{memory.nbytes(), node, std::string(memory.device().name().str())}).second)
        total += memory.nbytes();
    }
  }
  std::vector<Held> largest;
  for (auto& [memory, h] : held) largest.push_back(std::move(h));
  std::ranges::stable_sort(largest, std::greater(), &Held::bytes);
  std::string out = fmt::format("\n  live tensors have {}", bytes_text(total));
  for (size_t i = 0; i < std::min(most, largest.size()); ++i)
    out += fmt::format("{}{} on {}, {}", i ? "; " : ", the largest: ", bytes_text(largest[i].bytes), largest[i].device,
                       describe(largest[i].tensor));
  return out;
}

std::string explanation(const UOp& sink, bool memory, FunctionRef<void(const UOp&)> compile) {
  const UOp culprit = memory ? UOp() : first_uncompilable(sink, compile);
  if (culprit) return "\n  while computing " + describe(culprit);
  return Computed(sink).text() + (memory ? largest_tensors() : "");
}

bool is_out_of_memory() {
  try {
    throw;
  } catch (const OutOfMemoryError&) {
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// rethrow_as(), with more text behind what the error says.
[[noreturn]] void rethrow_with(FunctionRef<std::string()> more) {
  rethrow_as([&](std::string_view what) {
    try {
      return std::string(what) + more();
    } catch (const std::bad_alloc&) {
      return std::string(what);
    }
  });
}

/// "matmul: (8, 4) float32 of (8, 16) and (16, 4)"
std::string what_text(const UOp& tensor) {
  std::string out = fmt::format("{}: {}", origin_of(tensor).operation, shape_and_dtype(tensor));
  constexpr size_t most = 4;
  const std::vector<UOp> sources = tensors_below(tensor.src());
  for (size_t i = 0; i < std::min(most, sources.size()); ++i) out += (i ? ", " : " of ") + tinygrad::to_string(shape_of(sources[i]));
  if (sources.size() > most) out += fmt::format(" and {} more", sources.size() - most);
  return out;
}

}  // namespace

void set_place_provider(PlaceProvider p) { provider.store(p, std::memory_order_release); }

ValueOrigin ValueOrigin::of(const char* operation) noexcept {
  const PlaceProvider p = provider.load(std::memory_order_acquire);
  return {operation, p ? p() : nullptr};
}

std::string place_text(const ValueOrigin& origin) {
  if (!origin.place) return {};
  const SourcePlace& p = *origin.place;
  std::string out = fmt::format(", at {}:{}", p.file, p.line);
  if (p.function != "<module>") out += " in " + p.function;
  if (const std::string text = text_at(p); !text.empty()) out += ": " + text;
  return out;
}

std::string describe(const UOp& tensor) { return what_text(tensor) + place_text(origin_of(tensor)); }

Computed::Computed(const UOp& sink) {
  constexpr size_t most = 3;
  std::vector<UOp> tensors = tensors_below(std::span(&sink, 1));
  std::erase_if(tensors, [](const UOp& t) { return !is_computed(t); });
  for (size_t i = tensors.size(); i-- > 0 && last_.size() < most;) last_.push_back({what_text(tensors[i]), origin_of(tensors[i])});
  more_ = tensors.size() - last_.size();
}

std::string Computed::text() const {
  std::string out;
  for (const Value& v : last_) out += "\n  while computing " + v.what + place_text(v.origin);
  return more_ ? out + fmt::format("\n  and {} more", more_) : out;
}

void rethrow_in_replay(std::string_view where, const Computed& computed) {
  const bool memory = is_out_of_memory();
  rethrow_with(
      [&] { return fmt::format("\n  in a replay of a jitted function{}{}{}", where, computed.text(), memory ? largest_tensors() : ""); });
}

void rethrow_explained(const UOp& sink, FunctionRef<void(const UOp& sink)> compile) {
  const bool memory = is_out_of_memory();
  rethrow_with([&] { return explanation(sink, memory, compile); });
}

}  // namespace tinygrad::tensor
