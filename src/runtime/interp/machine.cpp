#include "runtime/interp/machine.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include <fmt/core.h>

#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include "base/options.h"
#include "runtime/interp/alu.h"
#include "runtime/interp/tile_sum.h"
#include "target/tensor_cores/tile_products.h"
#include "uop/graph.h"

namespace tinygrad::runtime::interp {

namespace {

size_t product(const int64_t (&sizes)[3]) { return static_cast<size_t>(sizes[0] * sizes[1] * sizes[2]); }

uint64_t step_limit() {
  const int64_t limit = current_options().interp_steps;
  return limit == 0 ? UINT64_MAX : static_cast<uint64_t>(limit);
}

}  // namespace

Machine::Machine(const Program& program, std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims)
    : program_(program), variables_(variables), dims_(dims), items_(product(dims.local)), max_steps_(step_limit()) {
  for (int d = 0; d < 3; ++d)
    if (dims.global[d] < 0 || dims.local[d] < 1)
      throw InternalError(
          fmt::format("kernel {}: cannot launch {} groups of {} items in dimension {}", program.name, dims.global[d], dims.local[d], d));
  parallel_ = items_ > 1 || product(dims.global) > 1 || dims.chunks > 1;
  uniform_.resize(size_t(program.uniform_numbers));
  varying_.resize(size_t(program.varying_numbers) * items_);
  set_up_memory(buffers);
}

void Machine::set_up_memory(std::span<void* const> buffers) {
  std::map<void*, int> shadow_of;  // slots may be given the same memory
  for (const Memory& m : program_.memories)
    if (m.scope == Scope::device && m.stored && size_t(m.slot) < buffers.size()) shadow_of[buffers[size_t(m.slot)]] = -1;
  for (const Memory& m : program_.memories) {
    Storage s;
    s.size = m.size;
    if (m.scope == Scope::device) {
      if (m.slot < 0 || size_t(m.slot) >= buffers.size())
        throw InternalError(fmt::format("kernel {}: launched with {} buffers, but uses slot {}", program_.name, buffers.size(), m.slot));
      s.bytes = static_cast<std::byte*>(buffers[size_t(m.slot)]);
      if (const auto found = shadow_of.find(s.bytes); parallel_ && found != shadow_of.end()) {
        if (found->second < 0) found->second = int(shadows_.size()), shadows_.emplace_back();
        s.shadow = found->second;
      }
    } else if (m.scope == Scope::group) {
      s.elements.resize(size_t(m.size));
      s.fetching.resize(size_t(m.size));
      s.shadow = int(shadows_.size());
      shadows_.emplace_back().resize(m.size);
    } else {
      s.elements.resize(size_t(m.size) * items_);
      s.written.resize(size_t(m.size) * items_);
    }
    storage_.push_back(std::move(s));
  }
}

void Machine::run() {
  for (group_[2] = 0; group_[2] < dims_.global[2]; ++group_[2])
    for (group_[1] = 0; group_[1] < dims_.global[1]; ++group_[1])
      for (group_[0] = 0; group_[0] < dims_.global[0]; ++group_[0]) run_group();
}

void Machine::begin_group() {
  ++now_.epoch;
  now_.group_begin = now_.epoch;
  now_.first_item += uint32_t(items_);
}

void Machine::run_group() {
  begin_group();
  for (size_t m = 0; m < storage_.size(); ++m) {
    std::fill(storage_[m].written.begin(), storage_[m].written.end(), uint8_t{0});
    if (program_.memories[m].scope == Scope::group) shadows_[size_t(storage_[m].shadow)].clear();
  }
  for (size_t pc = 0; pc < program_.code.size();) pc = step(pc);
  for (const auto& set : copies_)
    if (!set.empty()) fail(program_.code.back(), set[0].item, fmt::format("the copy to element {} is never waited for", set[0].to));
}

// Executes the instruction at `pc`; gives the next one.
size_t Machine::step(size_t pc) {
  if (++instructions_ % (1 << 16) == 0) check_interrupt();
  steps_ += items_;
  if (steps_ > max_steps_) give_up();
  const Instruction& i = program_.code[pc];
  switch (i.op) {
    case Op::CONST: data(reg(i.dst))[0] = program_.node(i).arg_as<ConstArg>().value.bits(); break;
    case Op::VAR: data(reg(i.dst))[0] = uint64_t(variables_[size_t(i.extra)]); break;
    case Op::PARAM: run_param(i); break;
    case Op::SPECIAL: run_special(i); break;
    case Op::RANGE: return run_range(i, pc);
    case Op::END: return run_end(i, pc);
    case Op::IF: return run_if(i, pc);
    case Op::ENDIF: masks_.pop_back(); break;
    case Op::BARRIER: run_barrier(i); break;
    case Op::FETCH: run_fetch(i); break;
    case Op::COMMIT:
      check_all_active(i);
      copies_.emplace_back();
      break;
    case Op::WAIT: run_wait(i); break;
    case Op::LOAD: run_load(i); break;
    case Op::STORE: run_store(i); break;
    case Op::INDEX:
    case Op::SHRINK:
    case Op::EXPAND:
    case Op::STACK: run_lanes(i); break;
    case Op::WMMA: run_wmma(i); break;
    default: run_elementwise(i);
  }
  return pc + 1;
}

void Machine::run_param(const Instruction& i) {
  Storage& s = storage_[size_t(i.memory)];
  if (i.src[0] >= 0) s.size = uniform_value(i, i.src[0]);  // that of an image is known
  if (s.shadow >= 0) shadows_[size_t(s.shadow)].resize(s.size);
}

void Machine::run_special(const Instruction& i) {
  const int64_t size = uniform_value(i, i.src[0]);
  const int64_t launched = i.kind == AxisKind::global ? dims_.global[i.extra] : dims_.local[i.extra];
  if (size != launched) fail(i, 0, fmt::format("the dimension has size {}, but {} were launched", size, launched));
  uint64_t* out = data(reg(i.dst));
  if (i.kind == AxisKind::global) {
    out[0] = uint64_t(group_[i.extra]);
    return;
  }
  size_t below = 1;
  for (int d = 0; d < i.extra; ++d) below *= size_t(dims_.local[d]);
  for (size_t item = 0; item < items_; ++item) out[item] = item / below % size_t(size);
}

size_t Machine::run_range(const Instruction& i, size_t pc) {
  const int64_t n = uniform_value(i, i.src[0]);
  if (i.kind == AxisKind::thread && n != dims_.chunks)
    fail(i, 0, fmt::format("the thread range has size {}, but {} chunks were launched", n, dims_.chunks));
  data(reg(i.dst))[0] = 0;
  return n > 0 ? pc + 1 : size_t(i.jump) + 1;
}

size_t Machine::run_end(const Instruction& i, size_t pc) {
  const Instruction& begin = program_.code[size_t(i.jump)];
  uint64_t& at = data(reg(i.dst))[0];
  if (int64_t(++at) >= uniform_value(begin, begin.src[0])) return pc + 1;
  if (begin.kind == AxisKind::thread) begin_group();  // nothing orders the iterations of different threads
  return size_t(i.jump) + 1;
}

size_t Machine::run_if(const Instruction& i, size_t pc) {
  std::vector<uint8_t> mask(items_);
  bool any = false;
  for (size_t item = 0; item < items_; ++item) {
    mask[item] = active(item) && at(i.src[0], 0, item) != 0;
    any = any || mask[item];
  }
  if (!any) return size_t(i.jump) + 1;
  masks_.push_back(std::move(mask));
  return pc + 1;
}

void Machine::check_all_active(const Instruction& i) const {
  for (size_t item = 0; item < items_; ++item)
    if (!active(item)) fail(i, item, "the item does not reach what others of its group wait at");
}

void Machine::run_barrier(const Instruction& i) {
  check_all_active(i);
  ++now_.epoch;
}

// The one value that all active items have.
int64_t Machine::uniform_value(const Instruction& i, int32_t r) const {
  if (reg(r).uniform) return int64_t(data(reg(r))[0]);
  bool any = false;
  uint64_t value = 0;
  for (size_t item = 0; item < items_; ++item) {
    if (!active(item)) continue;
    if (any && at(r, 0, item) != value)
      fail(i, item, fmt::format("the size is {}, for an earlier item {}: loops must be uniform", int64_t(at(r, 0, item)), int64_t(value)));
    value = at(r, 0, item);
    any = true;
  }
  return int64_t(value);
}

void Machine::run_load(const Instruction& i) {
  const Register& dst = reg(i.dst);
  const bool vector_index = reg(i.src[0]).lanes > 1;
  const Memory& memory = program_.memories[size_t(i.memory)];
  Storage& storage = storage_[size_t(i.memory)];
  const size_t n = count(dst);
  uint64_t* out = data(dst);
  for (size_t lane = 0; lane < size_t(dst.lanes); ++lane) {
    for (size_t item = 0; item < n; ++item) {
      uint64_t& to = out[lane * n + item];
      to = 0;
      if (!dst.uniform && !active(item)) continue;
      if (i.src[2] >= 0 && !at(i.src[2], lane, item)) {
        to = at(i.src[1], lane, item);
        continue;
      }
      if (memory.image_width != 0) {
        to = read_texel(i, storage, memory, lane, item);
        continue;
      }
      const int64_t address = int64_t(at(i.src[0], lane, item)) + (vector_index ? 0 : int64_t(lane));
      to = read(i, storage, memory, address, item);
    }
  }
}

/// The element that a lane of a texel is; -1 outside of the image.
int64_t Machine::place_in_image(const Instruction& i, const Memory& memory, size_t lane, size_t item) const {
  const auto y = int64_t(at(i.src[0], 0, item)), x = int64_t(at(i.extra, 0, item)), width = memory.image_width;
  const bool inside = y >= 0 && y < memory.size / 4 / width && x >= 0 && x < width;
  return inside ? (y * width + x) * 4 + int64_t(lane) : -1;
}

uint64_t Machine::read_texel(const Instruction& i, Storage& storage, const Memory& memory, size_t lane, size_t item) {
  const int64_t place = place_in_image(i, memory, lane, item);
  if (place < 0) return 0;
  return scalar_of(read(i, storage, memory, place, item), memory.dtype).cast(DType::float32).bits();
}

void Machine::run_store(const Instruction& i) {
  const size_t lanes = size_t(reg(i.src[1]).lanes);
  const bool vector_index = reg(i.src[0]).lanes > 1;
  const Memory& memory = program_.memories[size_t(i.memory)];
  Storage& storage = storage_[size_t(i.memory)];
  for (size_t lane = 0; lane < lanes; ++lane) {
    for (size_t item = 0; item < items_; ++item) {
      if (!active(item) || (i.src[2] >= 0 && !at(i.src[2], lane, item))) continue;
      if (memory.image_width != 0) {
        const Scalar value = scalar_of(at(i.src[1], lane, item), DType::float32).cast(memory.dtype);
        write(i, storage, memory, place_in_image(i, memory, lane, item), item, value.bits());
        continue;
      }
      const int64_t address = int64_t(at(i.src[0], lane, item)) + (vector_index ? 0 : int64_t(lane));
      write(i, storage, memory, address, item, at(i.src[1], lane, item));
    }
  }
}

void Machine::run_fetch(const Instruction& i) {
  const Memory& far = program_.memories[size_t(i.other_memory)];
  Storage& storage = storage_[size_t(i.other_memory)];
  for (size_t item = 0; item < items_; ++item) {
    if (!active(item) || (i.src[2] >= 0 && !at(i.src[2], 0, item))) continue;
    const bool valid = i.src[3] < 0 || at(i.src[3], 0, item) != 0;
    for (int32_t k = 0; k < i.width; ++k)
      begin_copy(i, int64_t(at(i.src[0], 0, item)) + k, item, valid ? read(i, storage, far, int64_t(at(i.src[1], 0, item)) + k, item) : 0);
  }
}

/// It may arrive at any time from now on: to everybody else that is a write.
void Machine::begin_copy(const Instruction& i, int64_t to, size_t item, uint64_t value) {
  Storage& storage = storage_[size_t(i.memory)];
  check_bounds(i, storage, to, item);
  if (storage.fetching[size_t(to)]) fail(i, item, fmt::format("race: another copy to element {} was not waited for", to));
  if (!shadows_[size_t(storage.shadow)].write(to, now_.first_item + uint32_t(item), now_))
    fail(i, item, fmt::format("race: another item reads or writes element {}, and no barrier is between", to));
  storage.fetching[size_t(to)] = 1;
  copies_.back().push_back({i.memory, to, item, value});
}

void Machine::run_wait(const Instruction& i) {
  check_all_active(i);
  for (; copies_.size() > size_t(i.extra) + 1; copies_.pop_front())
    for (const Copy& c : copies_.front()) {
      Storage& storage = storage_[size_t(c.memory)];
      storage.fetching[size_t(c.to)] = 0;
      write(i, storage, program_.memories[size_t(c.memory)], c.to, c.item, c.value);
    }
}

uint64_t Machine::read(const Instruction& i, Storage& storage, const Memory& memory, int64_t address, size_t item) {
  check_bounds(i, storage, address, item);
  const auto e = size_t(address);
  if (memory.scope == Scope::reg) {
    if (!storage.written[e * items_ + item]) fail(i, item, fmt::format("element {} is read before it is written", address));
    return storage.elements[e * items_ + item];
  }
  if (memory.scope == Scope::group && storage.fetching[e])
    fail(i, item, fmt::format("race: the copy to element {} was not waited for", address));
  if (memory.scope == Scope::group && !shadows_[size_t(storage.shadow)].written(address))
    fail(i, item, fmt::format("element {} is read before it is written", address));
  if (storage.shadow >= 0 && !shadows_[size_t(storage.shadow)].read(address, now_.first_item + uint32_t(item), now_))
    fail(i, item, fmt::format("race: another item writes element {}, and no barrier is between", address));
  if (memory.scope == Scope::group) return storage.elements[e];
  return Scalar::from_bytes(storage.bytes + e * itemsize(memory.dtype), memory.dtype).bits();
}

void Machine::write(const Instruction& i, Storage& storage, const Memory& memory, int64_t address, size_t item, uint64_t value) {
  check_bounds(i, storage, address, item);
  const auto e = size_t(address);
  if (memory.scope == Scope::reg) {
    storage.elements[e * items_ + item] = value;
    storage.written[e * items_ + item] = 1;
    return;
  }
  if (memory.scope == Scope::group && storage.fetching[e])
    fail(i, item, fmt::format("race: the copy to element {} was not waited for", address));
  if (storage.shadow >= 0 && !shadows_[size_t(storage.shadow)].write(address, now_.first_item + uint32_t(item), now_))
    fail(i, item, fmt::format("race: another item reads or writes element {}, and no barrier is between", address));
  if (memory.scope == Scope::group)
    storage.elements[e] = value;
  else
    scalar_of(value, memory.dtype).to_bytes(storage.bytes + e * itemsize(memory.dtype));
}

void Machine::check_bounds(const Instruction& i, const Storage& storage, int64_t address, size_t item) const {
  if (address < 0 || address >= storage.size)
    fail(i, item, fmt::format("index {} is out of bounds of memory of {} elements", address, storage.size));
}

void Machine::copy_lane(int32_t from, int32_t lane, int32_t to, int32_t to_lane) {
  const size_t n = count(reg(to));
  uint64_t* out = data(reg(to)) + size_t(to_lane) * n;
  for (size_t item = 0; item < n; ++item) out[item] = at(from, size_t(lane), item);
}

void Machine::run_lanes(const Instruction& i) {
  for (int32_t lane = 0; lane < reg(i.dst).lanes; ++lane) {
    if (i.op == Op::STACK)
      copy_lane(program_.operands[size_t(i.extra + lane)], 0, i.dst, lane);
    else
      copy_lane(i.src[0], i.op == Op::EXPAND ? 0 : i.extra + lane, i.dst, lane);
  }
}

void Machine::run_elementwise(const Instruction& i) {
  const Register& dst = reg(i.dst);
  const size_t n = count(dst), sources = program_.node(i).src_count();
  const DType in_dtype = reg(i.src[i.op == Op::WHERE ? 1 : 0]).dtype;
  bool mixed = false;  // a source that the items share beside one that each has
  for (size_t k = 0; k < sources; ++k) mixed = mixed || count(reg(i.src[k])) != n;
  const size_t runs = mixed ? size_t(dst.lanes) : 1;
  const size_t length = mixed ? n : n * size_t(dst.lanes);
  for (size_t run = 0; run < runs; ++run) {
    Operand in[3];
    for (size_t k = 0; k < sources; ++k) {
      const Register& r = reg(i.src[k]);
      in[k] = {data(r) + run * count(r), count(r) == n ? size_t{1} : size_t{0}};
    }
    apply(i.op, dst.dtype, in_dtype, data(dst) + run * n, in, length);
  }
}

namespace {

/// A matrix as the items of a tensor core hold it, row-major. Items that hold copies must agree; `differs` is called with one that does
/// not.
template <class Read, class Differs>
std::vector<double> gathered(const TensorCore::Layout& layout, int64_t items, int64_t columns, size_t size, Read&& read,
                             Differs&& differs) {
  std::vector<double> out(size);
  std::vector<bool> known(size);
  for (int64_t item = 0; item < items; ++item)
    for (int64_t e = 0; e < layout.elements(); ++e) {
      const auto at = size_t(layout.row_of(item, e) * columns + layout.column_of(item, e));
      const double value = read(size_t(item), size_t(e));
      if (known[at] && std::bit_cast<uint64_t>(value) != std::bit_cast<uint64_t>(out[at])) differs(size_t(item));
      known[at] = true;
      out[at] = value;
    }
  return out;
}

/// A factor with as much of its mantissa as the core takes, as of TF32.
double taken(const TensorCore& core, double value) {
  if (core.kept_bits == 0 || !std::isfinite(value)) return value;
  const int dropped = 23 - core.kept_bits;
  const uint32_t half = core.cuts_off ? 0 : uint32_t{1} << (dropped - 1);
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value)) + half;
  return static_cast<double>(std::bit_cast<float>(bits >> dropped << dropped));
}

/// A factor, which may be held as the bits of a dtype that the target does not have.
double factor_of(uint64_t bits, DType held, DType dtype) {
  const Scalar value = scalar_of(bits, held);
  return (held == dtype ? value : value.bitcast(dtype)).as_double();
}

}  // namespace

/// What the items from `first` on multiply, row-major. All of them read it: it must be there for more than the one that may have written
/// it.
std::vector<double> Machine::factor_in_memory(const Instruction& i, int factor, size_t first) {
  const TensorCore& core = *program_.cores[size_t(i.extra)];
  const TensorCore::Layout& layout = factor == 0 ? core.a : core.b;
  const DType dtype = factor == 0 ? core.a_type : core.b_type;
  const int columns = factor == 0 ? core.k : core.n;
  const int32_t number = factor == 0 ? i.memory : i.other_memory;
  const Memory& memory = program_.memories[size_t(number)];
  const auto begin = int64_t(at(i.src[factor], 0, first));
  const size_t last = first + (reg(i.dst).lanes == core.c.elements() ? size_t(core.items) - 1 : 0);  // items may be lanes of one
  for (size_t item = first; item <= last; ++item)
    if (int64_t(at(i.src[factor], 0, item)) != begin) fail(i, item, "the items of a tensor core name different places");
  std::vector<double> out(size_t(layout.elements()));
  for (int64_t e = 0; e < layout.elements(); ++e) {
    uint64_t bits = 0;
    for (const size_t item : {first, last}) bits = read(i, storage_[size_t(number)], memory, begin + layout.place_of(e), item);
    out[size_t(layout.row_of(0, e) * columns + layout.column_of(0, e))] = taken(core, factor_of(bits, memory.dtype, dtype));
  }
  return out;
}

// Sums are exact to double and rounded once, which is between what different tensor cores do, but for tiles, whose rounding is known.
void Machine::run_wmma(const Instruction& i) {
  const TensorCore& core = *program_.cores[size_t(i.extra)];
  const auto items = size_t(core.items);
  const bool in_lanes = reg(i.dst).lanes != core.c.elements(), in_tiles = multiplies_tiles(core);
  if (!in_lanes && items_ % items != 0) fail(i, 0, fmt::format("a group of {} items, the tensor core takes {} at a time", items_, items));
  for (size_t item = 0; item < items_ && !in_lanes; ++item)
    if (!active(item)) fail(i, item, "the item does not take part in what the tensor core does with others");
  uint64_t* out = data(reg(i.dst));
  // A tile has its rows one after another, other vectors what each lane holds.
  const auto lane_of = [&](size_t item, size_t e, size_t elements) { return in_tiles ? e * items + item : item * elements + e; };
  for (size_t first = 0; first < items_; first += in_lanes ? 1 : items) {
    const auto matrix = [&](int source, const TensorCore::Layout& layout, int rows, int columns) {
      const auto read = [&](size_t item, size_t e) {
        const DType held = reg(i.src[source]).dtype, types[] = {core.a_type, core.b_type, core.out};
        const auto elements = size_t(layout.elements());
        const size_t lane = in_lanes && size_t(reg(i.src[source]).lanes) != elements ? lane_of(item, e, elements) : e;
        const double value = factor_of(at(i.src[source], lane, in_lanes ? first : first + item), held, types[source]);
        return source < 2 ? taken(core, value) : value;
      };
      return gathered(layout, core.items, columns, size_t(rows * columns), read,
                      [&](size_t item) { fail(i, first + item, "the items of a tensor core hold different copies of an element"); });
    };
    const auto factor = [&](int source, const TensorCore::Layout& layout, int rows, int columns) {
      return layout.in_memory ? factor_in_memory(i, source, first) : matrix(source, layout, rows, columns);
    };
    const std::vector<double> a = factor(0, core.a, core.m, core.k), b = factor(1, core.b, core.k, core.n),
                              c = matrix(2, core.c, core.m, core.n);
    for (size_t item = 0; item < items; ++item)
      for (int e = 0; e < core.c.elements(); ++e) {
        const auto row = size_t(core.c.row_of(int64_t(item), e)), column = size_t(core.c.column_of(int64_t(item), e));
        const auto n = size_t(core.n), depth = size_t(core.k);
        double sum = c[row * n + column];
        if (in_tiles) sum = tile_sum(core, &a[row * depth], &b[column], n, sum);
        for (size_t k = 0; k < depth && !in_tiles; ++k) sum += a[row * depth + k] * b[k * n + column];
        const uint64_t bits = Scalar::from_double(sum, core.out).bits();
        if (in_lanes)
          out[lane_of(item, size_t(e), size_t(core.c.elements())) * items_ + first] = bits;
        else
          out[size_t(e) * items_ + first + item] = bits;
      }
  }
}

void Machine::give_up() const {
  throw DeviceError(fmt::format(
      "INTERP: kernel {} has run {} instructions and has not ended; if it only is long, INTERP_STEPS gives it more, 0 any number",
      program_.name, max_steps_));
}

void Machine::fail(const Instruction& i, size_t item, std::string_view what) const {
  const auto x = size_t(dims_.local[0]), y = size_t(dims_.local[1]);
  throw InternalError(fmt::format("kernel {}: {}: in item ({}, {}, {}) of group ({}, {}, {}): {}", program_.name,
                                  print_expr(program_.node(i)), item % x, item / x % y, item / x / y, group_[0], group_[1], group_[2],
                                  what));
}

}  // namespace tinygrad::runtime::interp
