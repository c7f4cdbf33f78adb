// Products of matrices: mma.sync, wgmma and tcgen05.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "dtype/scalar.h"
#include "support/fake_cuda/ptx_group.h"
#include "target/target.h"

namespace tinygrad::test {
namespace {

/// What a unit that reads float32 from memory takes of it.
double cut_to_tf32(double x) {
  return static_cast<double>(std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(x)) & 0xffffe000));
}

DType element_type(std::string_view name) {
  static const std::map<std::string_view, DType> kTypes{{"f16", DType::float16}, {"bf16", DType::bfloat16}, {"tf32", DType::float32},
                                                        {"f32", DType::float32}, {"e4m3", DType::fp8e4m3},  {"e5m2", DType::fp8e5m2},
                                                        {"s8", DType::int8},     {"u8", DType::uint8},      {"s32", DType::int32}};
  return kTypes.at(name);
}

/// Numbers of a name such as "m64n128k16".
struct MatrixSizes {
  size_t m = 0, n = 0, k = 0;
  explicit MatrixSizes(const std::string& name) {
    const size_t n_at = name.find('n'), k_at = name.find('k');
    m = std::stoul(name.substr(1)), n = std::stoul(name.substr(n_at + 1)), k = std::stoul(name.substr(k_at + 1));
  }
};

}  // namespace

/// By the descriptor, as rows along k. Without swizzling a matrix is made of core matrices: eight rows of 16 bytes, one behind the other.
/// Of one that lies along k these are rows of the factor, else eight steps along k. Swizzled, the rows of 16 bytes that follow each other
/// along k, or across it, lie together, 2 or 8 of them; bits 4 to 6 of an address are xored with bits 7 to 9 then.
std::vector<double> PtxMachine::shared_factor(const Group& group, const Instruction& i, uint64_t descriptor, bool lies_along_k,
                                              size_t across, DType dtype) {
  const auto field = [&](int first) { return size_t(descriptor >> first & 0x3fff) * 16; };
  const uint64_t swizzles = descriptor >> 62;
  if ((descriptor >> 46 & 0xffff) != 0 || swizzles == 2) fail(i.line, "the descriptor has a base offset or swizzles 64 bytes: not known");
  const size_t together = swizzles == 1 ? 8 : swizzles == 3 ? 2 : 1, row_bytes = together * 16;  // rows of 16 bytes
  if (field(0) % (8 * row_bytes) != 0 && together > 1) fail(i.line, "what is swizzled begins inside of a pattern");
  if (together > 1 && lies_along_k != (together == 2)) fail(i.line, "this way to lie is not known");
  const size_t begin = field(0), leading = field(16), stride = field(32), each = itemsize(dtype), piece = 16 / each, depth = 2 * piece;
  std::vector<double> out(across * depth);
  for (size_t row = 0; row < across; ++row)
    for (size_t k = 0; k < depth; ++k) {
      size_t at = begin;
      if (together > 1) {
        const size_t far = lies_along_k ? row : k, off = (lies_along_k ? k : row) * each;
        at += far / 8 * stride + far % 8 * row_bytes + off / row_bytes * leading + off % row_bytes;
        at ^= (at >> 7) % together << 4;
      } else {
        at += lies_along_k ? k / piece * leading + k % piece * each + row / 8 * stride + row % 8 * 16
                           : row / piece * stride + row % piece * each + k / 8 * leading + k % 8 * 16;
      }
      if (at + each > group.shared.size()) fail(i.line, fmt::format("a factor reaches to {:#x}, outside of shared memory", at));
      if (std::any_of(&group.hidden[at], &group.hidden[at] + each, [](uint8_t h) { return h != 0; }))
        fail(i.line, fmt::format("what was written at {:#x} has not been made visible to it", at));
      uint64_t bits = 0;
      std::memcpy(&bits, &group.shared[at], each);
      const double x = Scalar::from_storage_bits(bits, dtype).as_double();
      out[row * depth + k] = dtype == DType::float32 && std::isfinite(x) ? cut_to_tf32(x) : x;
    }
  return out;
}

/// Both factors in shared memory. The sums are there once they are waited for; sums that are under way may be gone on with.
void PtxMachine::multiply_shared(Group& group, size_t first_item) {
  const Instruction& i = code_[group.items[first_item].pc];
  if (group.items.size() - first_item < 128) fail(i.line, "a warpgroup is 128 items");
  const MatrixSizes size(i.name[4]);
  const DType sum_type = element_type(i.name[5]), a_type = element_type(i.name[6]), b_type = element_type(i.name[7]);
  const auto modifier = [&](size_t n) { return i.operands.at(n).bits; };
  const bool is_real = is_float(a_type), has_majors = itemsize(a_type) == 2;
  if (i.operands.size() != (has_majors ? 8u : is_real ? 6u : 4u)) fail(i.line, "has another number of operands");
  if (is_real && (modifier(4) != 1 || modifier(5) != 1)) fail(i.line, "negates a factor: not known");
  if (size.m != 64 || size.k * itemsize(a_type) != 32) fail(i.line, "there is no such shape");
  const Item& first = group.items[first_item];
  for (size_t k = 1; k < 128; ++k)
    for (const size_t factor : {1, 2})
      if (value(group.items[first_item + k], i.operands[factor]) != value(first, i.operands[factor]))
        fail(i.line, "the items have different descriptors");
  const std::vector<double> a = shared_factor(group, i, value(first, i.operands[1]), !has_majors || modifier(6) == 0, size.m, a_type);
  const std::vector<double> b = shared_factor(group, i, value(first, i.operands[2]), !has_majors || modifier(7) == 0, size.n, b_type);
  const size_t per = 4 / itemsize(sum_type);
  for (size_t n = 0; n < 128; ++n) {
    Item& item = group.items[first_item + n];
    const bool adds = (value(item, i.operands[3]) & 1) != 0;
    for (size_t r = 0; r < i.operands[0].list_of.size(); ++r) {
      const int number = i.operands[0].list_of[r].index;
      const auto under_way = item.products.find(number);
      if (item.committed.contains(number)) fail(i.line, "adds to sums that were committed and not waited for");
      if (under_way == item.products.end() && item.changed[size_t(number)])
        fail(i.line, "adds to a register that was written after the last wgmma.fence");
      const uint64_t old = under_way == item.products.end() ? item.registers[size_t(number)] : under_way->second;
      uint64_t now = 0;
      for (size_t half = 0; half < per; ++half) {
        const size_t e = r * per + half, row = n / 32 * 16 + n % 32 / 4 + e / 2 % 2 * 8, column = e / 4 * 8 + n % 4 * 2 + e % 2;
        const int width = bitsize(sum_type), shift = int(half) * width;
        double sum = adds ? Scalar::from_storage_bits(cut(old >> shift, width), sum_type).as_double() : 0;
        for (size_t k = 0; k < size.k; ++k) sum += a[row * size.k + k] * b[column * size.k + k];
        now |= Scalar::from_double(sum, sum_type).storage_bits() << shift;
      }
      item.products[number] = now;
      item.registers[size_t(number)] = 0xdeadbeefcafef00d;
    }
  }
}

// Memory of tensor cores, of which products are done when a barrier in shared memory tells so.

void PtxMachine::use_tensor_memory(Group& group, Item& item, const Instruction& i) {
  const std::string what = i.name[0] == "tcgen05" ? i.name[1] : i.name[0] + " " + i.name[1];
  const auto address = [&](size_t n) { return item.registers[size_t(i.operands.at(n).index)] + i.operands[n].bits; };
  const auto number = [&](size_t n) { return value(item, i.operands.at(n)); };
  const auto item_number = size_t(&item - group.items.data());
  if (what == "mma") return multiply_into_memory(group, item, i);
  if (what == "ld" || what == "st") return access_tensor_memory(group, item, i);
  if (what == "alloc") {
    if (item_number >= 32) fail(i.line, "one warp takes it");
    const size_t columns = number(1);
    if (columns < 32 || columns > tensor_columns || !std::has_single_bit(columns)) fail(i.line, "32, 64, ... columns can be taken");
    if (item_number == 0 && group.columns != 0) fail(i.line, "it was taken already: not known");
    group.columns = columns;
    group.first_column = columns == tensor_columns ? 0 : tensor_columns - columns;
    group.sums.assign(tensor_rows * tensor_columns, 0xdeadbeef);
    const auto place = uint32_t(group.first_column);
    std::byte* to = resolve(group, item, i, "shared", address(0), sizeof place);
    std::memcpy(to, &place, sizeof place);
  } else if (what == "dealloc") {
    if (number(0) != group.first_column || (item_number == 0 && number(1) != group.columns)) fail(i.line, "this is not what was taken");
    if (item_number == 31) group.columns = 0;
  } else if (what == "commit") {
    Group::Done& d = group.done.at(address(0));
    if (d.is_expected) fail(i.line, "what was committed before was not waited for");
    d.is_expected = true;
    d.sums = std::move(group.under_way);
    group.under_way.clear();
  } else if (what == "mbarrier init") {
    if (number(1) != 1) fail(i.line, "more than one is to arrive: not known");
    group.done[address(0)] = {};
  } else if (what == "mbarrier try_wait") {
    Group::Done& d = group.done.at(address(1));
    if (d.is_expected) {
      for (const auto& [place, x] : d.sums) group.sums[place] = x;
      d = {.phase = d.phase + 1};
    }
    if (uint64_t(d.phase % 2) == number(2)) fail(i.line, "waits for ever");
    set(item, i.operands[0].index, 1);
    item.is_behind = false;
  } else if (what == "fence::before_thread_sync") {
    item.has_accessed = false;
  } else if (what == "fence::after_thread_sync") {
    item.is_behind = true;
  } else if (what == "wait::ld") {
    for (const auto& [r, x] : item.loads) set(item, r, x);
    item.loads.clear();
  } else if (what == "wait::st") {
    for (const auto& [place, x] : item.stores) group.sums[place] = x;
    item.stores.clear();
  } else if (what != "relinquish_alloc_permit" && what != "fence mbarrier_init") {
    fail(i.line, what + " is unknown");
  }
}

/// 32x32b: each item of a warp has neighbours of one of the 32 rows that its warp may access.
void PtxMachine::access_tensor_memory(Group& group, Item& item, const Instruction& i) const {
  const bool is_load = i.name[1] == "ld";
  const auto item_number = size_t(&item - group.items.data());
  const std::vector<Operand>& registers = i.operands[is_load ? 0 : 1].list_of;
  const uint64_t at = item.registers[size_t(i.operands[is_load ? 1 : 0].index)], row = at >> 16, column = at & 0xffff;
  if (i.name.at(4) != "32x32b" || i.name.at(5) != fmt::format("x{}", registers.size())) fail(i.line, "another shape: not known");
  if (row != item_number / 32 % 4 * 32) fail(i.line, "the warp does not reach these rows");
  if (column < group.first_column || column + registers.size() > group.first_column + group.columns)
    fail(i.line, "outside of what was taken");
  if (is_load && !item.is_behind) fail(i.line, "no fence behind what it waited for");
  for (size_t n = 0; n < registers.size(); ++n) {
    const size_t place = (row + item_number % 32) * tensor_columns + column + n;
    if (group.is_under_way(place)) fail(i.line, "a product there is under way");
    if (is_load) {
      item.loads[registers[n].index] = group.sums[place];
      item.registers[size_t(registers[n].index)] = 0xdeadbeefcafef00d;
    } else {
      item.stores[place] = uint32_t(value(item, registers[n]));
    }
  }
  item.has_accessed = true;
}

namespace {

/// What the number that goes with tcgen05.mma says.
struct Description {
  DType a, b, sum;
  size_t m, n;
  bool a_along_k, b_along_k;

  Description(std::string_view kind, uint32_t bits) {
    const auto field = [&](int first, int width) { return bits >> first & ((1u << width) - 1); };
    const auto element = [&](uint32_t code) {
      if (kind == "kind::tf32") return DType::float32;
      if (kind == "kind::f16") return code == 0 ? DType::float16 : DType::bfloat16;
      if (kind == "kind::f8f6f4") return code == 0 ? DType::fp8e4m3 : DType::fp8e5m2;
      return code == 0 ? DType::uint8 : DType::int8;
    };
    a = element(field(7, 3)), b = element(field(10, 3));
    sum = field(4, 2) == 2 ? DType::int32 : DType::float32;
    n = field(17, 6) * 8, m = field(24, 5) * 16;
    a_along_k = field(15, 1) == 0, b_along_k = field(16, 1) == 0;
    if ((bits & ~(3u << 4 | 0x3fu << 7 | 3u << 15 | 0x3fu << 17 | 0x1fu << 24)) != 0) throw std::runtime_error("PTX: tcgen05: not known");
  }
};

}  // namespace

/// One item begins it for all.
void PtxMachine::multiply_into_memory(Group& group, Item& item, const Instruction& i) const {
  if (i.name[2] != "cta_group::1") fail(i.line, "groups of groups: not known");
  const Description d(i.name[3], uint32_t(value(item, i.operands.at(3))));
  if (d.m != tensor_rows || d.n < 16 || d.n > 256) fail(i.line, "there is no such shape");
  if (!item.is_behind) fail(i.line, "no fence behind the barrier that other items wrote in front of");
  const size_t column = item.registers[size_t(i.operands[0].index)];
  if (column < group.first_column || column + d.n > group.first_column + group.columns) fail(i.line, "outside of what was taken");
  // The version stands in the descriptor.
  const auto place = [&](size_t n) {
    const uint64_t descriptor = value(item, i.operands.at(n));
    if (descriptor >> 46 != 1) fail(i.line, "the descriptor swizzles, or is of another version");
    return descriptor & ((uint64_t{1} << 46) - 1);
  };
  const std::vector<double> a = shared_factor(group, i, place(1), d.a_along_k, d.m, d.a);
  const std::vector<double> b = shared_factor(group, i, place(2), d.b_along_k, d.n, d.b);
  const bool adds = (value(item, i.operands.at(4)) & 1) != 0;
  const size_t depth = 32 / itemsize(d.a);
  for (size_t row = 0; row < d.m; ++row)
    for (size_t n = 0; n < d.n; ++n) {
      const size_t at = row * tensor_columns + column + n;
      const auto before = group.under_way.find(at);
      const uint32_t old = before == group.under_way.end() ? group.sums[at] : before->second;
      double sum = adds ? Scalar::from_storage_bits(old, d.sum).as_double() : 0;
      for (size_t k = 0; k < depth; ++k) sum += a[row * depth + k] * b[n * depth + k];
      group.under_way[at] = uint32_t(Scalar::from_double(sum, d.sum).storage_bits());
    }
}

/// By the layouts of the fragments in the manual, which the targets' tensor cores hold as bits.
void PtxMachine::multiply(Group& group, size_t first_item) {
  const Instruction& i = code_[group.items[first_item].pc];
  if (group.items.size() - first_item < 32) fail(i.line, "a tensor core needs 32 items");
  const std::string &a_type = i.name[7], &b_type = i.name[8], &sum_type = i.name[6];
  const TensorCore* core = find_tensor_core(Symbol(fmt::format("mma_{}_{}", i.name[3], [&] {
    if (a_type == b_type && (a_type[0] == 'f' || a_type == "bf16" || a_type == "tf32")) return fmt::format("{}_{}", a_type, sum_type);
    return fmt::format("{}_{}_{}", a_type, b_type, sum_type);
  }())));
  if (!core) fail(i.line, "no such tensor core");
  const auto element = [&](const Operand& registers, DType d, size_t item, int e) {
    const int per = std::max(1, 4 / int(itemsize(d)));
    const uint64_t bits = value(group.items[first_item + item], registers.list_of.at(size_t(e / per)));
    return Scalar::from_storage_bits(cut(bits >> (e % per * bitsize(d)), bitsize(d)), d).as_double();
  };
  const auto matrix = [&](const Operand& registers, DType d, const TensorCore::Layout& layout, int columns, size_t size) {
    std::vector<double> out(size);
    for (int item = 0; item < 32; ++item)
      for (int e = 0; e < layout.elements(); ++e)
        out[size_t(layout.row_of(item, e) * columns + layout.column_of(item, e))] = element(registers, d, size_t(item), e);
    return out;
  };
  const auto a = matrix(i.operands[1], core->a_type, core->a, core->k, size_t(core->m * core->k));
  const auto b = matrix(i.operands[2], core->b_type, core->b, core->n, size_t(core->k * core->n));
  const auto c = matrix(i.operands[3], core->out, core->c, core->n, size_t(core->m * core->n));
  const int per = std::max(1, 4 / int(itemsize(core->out)));
  for (int item = 0; item < 32; ++item) {
    std::vector<uint64_t> results(i.operands[0].list_of.size());
    for (int e = 0; e < core->c.elements(); ++e) {
      const int64_t row = core->c.row_of(item, e), column = core->c.column_of(item, e);
      double sum = c[size_t(row * core->n + column)];
      for (int k = 0; k < core->k; ++k) sum += a[size_t(row * core->k + k)] * b[size_t(k * core->n + column)];
      results[size_t(e / per)] |= Scalar::from_double(sum, core->out).storage_bits() << (e % per * bitsize(core->out));
    }
    for (size_t k = 0; k < results.size(); ++k)
      group.items[first_item + size_t(item)].registers[size_t(i.operands[0].list_of[k].index)] = results[k];
  }
}

}  // namespace tinygrad::test
