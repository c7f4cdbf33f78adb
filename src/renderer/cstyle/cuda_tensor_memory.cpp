// tcgen05 in CUDA C: statements around assembly. renderer/ptx/tensor_memory.h says what they are for.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernel/kernel_info.h"
#include "renderer/cstyle/cuda_matrix.h"
#include "renderer/cstyle/names.h"
#include "renderer/nvidia_matrix.h"
#include "uop/build.h"
#include "uop/node_map.h"

namespace tinygrad::renderer::cstyle {
namespace {

constexpr std::string_view kMeet =
    "void meet() {\n"
    "  asm volatile(\"fence.proxy.async.shared::cta;\\ntcgen05.fence::before_thread_sync;\" : : : \"memory\");\n"
    "  __syncthreads();\n"
    "  asm volatile(\"tcgen05.fence::after_thread_sync;\" : : : \"memory\");\n}";

constexpr std::string_view kTake =
    "Sums take(void* shared, int item, int own, int all) {\n"
    "  ulong near;\n"
    "  asm(\"cvta.to.shared.u64 %0, %1;\" : \"=l\"(near) : \"l\"(shared));\n"
    "  if (item < 32)\n"
    "    asm volatile(\"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;\\n\"\n"
    "                 \"tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\" : : \"l\"(near), \"r\"(all) : \"memory\");\n"
    "  if (item == 0) {\n"
    "    for (int i = 1; i <= 8; i++) asm volatile(\"mbarrier.init.shared::cta.b64 [%0], 1;\" : : \"l\"(near + 8 * i) : \"memory\");\n"
    "    asm volatile(\"fence.mbarrier_init.release.cluster;\" : : : \"memory\");\n"
    "  }\n"
    "  meet();\n"
    "  return Sums{*(volatile uint*)shared + item / 128 * own, (uint)(item & 96) << 16, 0, near + 8 + item / 128 * 8, item % 128 == 0};\n}";

constexpr std::string_view kGiveBack =
    "void give_back(const Sums& s, int item, int all) {\n"
    "  asm volatile(\"tcgen05.fence::before_thread_sync;\" : : : \"memory\");\n"
    "  __syncthreads();\n"
    "  if (item < 32) asm volatile(\"tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;\" : : \"r\"(s.place), \"r\"(all) : "
    "\"memory\");\n}";

constexpr std::string_view kWait =
    "void wait_for_sums(Sums& s) {\n"
    "  if (s.starts)\n"
    "    asm volatile(\"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];\" : : \"l\"(s.done) : \"memory\");\n"
    "  uint is_done;\n"
    "  do asm volatile(\"{\\n.reg .pred p;\\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\\nselp.b32 %0, 1, 0, p;\\n}\"\n"
    "                  : \"=r\"(is_done) : \"l\"(s.done), \"r\"(s.phase) : \"memory\");\n"
    "  while (!is_done);\n"
    "  s.phase ^= 1;\n"
    "  asm volatile(\"tcgen05.fence::after_thread_sync;\" : : : \"memory\");\n}";

/// {%1, %2, ...}
std::string numbers(int first, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += fmt::format("{}%{}", i ? ", " : "", first + i);
  return "{" + out + "}";
}

std::string operands(const Value& sums, std::string_view written) {
  std::string out;
  for (int i = 0; i < sums.lanes; ++i)
    out += fmt::format("{}\"{}{}\"(z.at[{}])", i ? ", " : "", written, sums.dtype == DType::float32 ? "f" : "r", i);
  return out;
}

class TensorMemory {
 public:
  TensorMemory(Prelude& prelude, const KernelInfo& info);

  /// The first of so many columns.
  int32_t add_tile(int32_t columns);
  /// `adds` is a bool: whether there is anything to add to.
  std::string begin_product(const TensorCore& core, int32_t tile, std::string_view a, std::string_view b, std::string_view adds);
  /// From and to a variable.
  std::string write(int32_t tile, const Value& sums);
  std::string read(int32_t tile, const Value& sums, std::string_view adds);
  std::string wait();
  std::string barrier();
  /// In front of what a barrier must precede, if none does; else empty.
  std::string needed_barrier();
  void forget_barrier() { needs_barrier_ = true; }

  /// Lines in front of the kernel's body, given a pointer to `tensor_memory_group_bytes` of the group's memory, and behind it.
  std::string prologue(std::string_view shared);
  std::string epilogue();

 private:
  Prelude& prelude_;
  const KernelInfo& info_;
  int32_t used_ = 0;  ///< columns of 128 items
  bool needs_barrier_ = false;
};

TensorMemory::TensorMemory(Prelude& prelude, const KernelInfo& info) : prelude_(prelude), info_(info) {
  for (const DType d : {DType::uint32, DType::uint64}) prelude_.type(d);
  prelude_.word("Sums");
  prelude_.function(std::string(kMeet));
}

int32_t TensorMemory::add_tile(int32_t columns) {
  used_ += columns;
  return used_ - columns;
}

std::string TensorMemory::begin_product(const TensorCore& core, int32_t tile, std::string_view a, std::string_view b,
                                        std::string_view adds) {
  const std::string wide = prelude_.type(DType::uint64);
  prelude_.function(fmt::format(
      "{0} matrix(const void* p) {{ {0} x; asm(\"cvta.to.shared.u64 %0, %1;\" : \"=l\"(x) : \"l\"(p)); return x >> 4; }}", wide));
  prelude_.function(fmt::format(
      "void {0}(const Sums& s, int tile, {1} x, {1} y, bool& adds) {{\n"
      "  if (s.starts)\n"
      "    asm volatile(\"{{\\n.reg .pred adds;\\nsetp.ne.b32 adds, %4, 0;\\n{2}\\n}}\"\n"
      "                 : : \"r\"(s.place + tile), \"l\"(x + {3}ul), \"l\"(y + {4}ul), \"r\"({5}u), \"r\"((int)adds) : \"memory\");\n"
      "  adds = true;\n}}",
      core.name.str(), wide, tcgen05_instruction(core, "%0", "%1", "%2", "%3", "adds"), matrix_descriptor(core, 0),
      matrix_descriptor(core, 1), tcgen05_description(core)));
  return fmt::format("{}(sums, {}, matrix({}), matrix({}), {});", core.name.str(), tile, a, b, adds);
}

std::string TensorMemory::write(int32_t tile, const Value& sums) {
  needs_barrier_ = true;
  prelude_.function(
      fmt::format("void write(const Sums& s, int tile, const {}& z) {{\n"
                  "  asm volatile(\"tcgen05.st.sync.aligned.32x32b.x{}.b32 [%0], {};\\ntcgen05.wait::st.sync.aligned;\"\n"
                  "               : : \"r\"(s.place + s.lane + tile), {} : \"memory\");\n}}",
                  prelude_.type(sums.dtype, sums.lanes), sums.lanes, numbers(1, sums.lanes), operands(sums, "")));
  return fmt::format("write(sums, {}, {});", tile, sums.expr.text);
}

std::string TensorMemory::read(int32_t tile, const Value& sums, std::string_view adds) {
  needs_barrier_ = true;
  const std::string type = prelude_.type(sums.dtype, sums.lanes);
  prelude_.function(
      fmt::format("void read(const Sums& s, int tile, bool adds, {0}& z) {{\n"
                  "  asm volatile(\"tcgen05.ld.sync.aligned.32x32b.x{1}.b32 {2}, [%{1}];\\ntcgen05.wait::ld.sync.aligned;\"\n"
                  "               : {3} : \"r\"(s.place + s.lane + tile) : \"memory\");\n"
                  "  if (!adds) z = {0}{{}};\n}}",
                  type, sums.lanes, numbers(0, sums.lanes), operands(sums, "=")));
  return fmt::format("read(sums, {}, {}, {});", tile, adds, sums.expr.text);
}

std::string TensorMemory::wait() {
  needs_barrier_ = true;
  prelude_.function(std::string(kWait));
  return "wait_for_sums(sums);";
}

std::string TensorMemory::barrier() {
  needs_barrier_ = false;
  return "meet();";
}

std::string TensorMemory::needed_barrier() { return needs_barrier_ ? barrier() : std::string(); }

std::string TensorMemory::prologue(std::string_view shared) {
  for (const std::string_view function : {kTake, kGiveBack}) prelude_.function(std::string(function));
  std::string item = "(int)threadIdx.x";
  int64_t before = 1;
  for (int dim = 0; dim < 2; ++dim) {
    before *= info_.local[dim].evaluate({});
    if (!info_.local[dim + 1].is_constant() || info_.local[dim + 1].evaluate({}) != 1)
      item += fmt::format(" + {} * (int)threadIdx.{}", before, "yz"[dim]);
  }
  return fmt::format("  const int item = {};\n  Sums sums = take({}, item, {}, {});\n", item, shared, used_,
                     tensor_memory_columns(info_, used_));
}

std::string TensorMemory::epilogue() { return fmt::format("  give_back(sums, item, {});\n", tensor_memory_columns(info_, used_)); }

/// Products given a tile add to it in place. Others get a tile of their own, which their sums are copied to and, when they are done, from.
class TensorMemoryProducts : public AsyncProducts {
 public:
  TensorMemoryProducts(Prelude& prelude, Names& names, const KernelInfo& info) : prelude_(prelude), names_(names), memory_(prelude, info) {
    for (const char* own : {"sums", "item"}) names.fresh(own);
  }

  Value begin(const UOp& product, const TensorCore& core, std::string_view a, std::string_view b, const Value* sums,
              Lines& lines) override {
    barrier_if_needed(lines);
    const auto add = [&](const Tile& t) { lines.push_back(memory_.begin_product(core, t.column, a, b, t.adds)); };
    if (!sums) {
      add(*tiles_.find(product.src(2).src(0)));
      return {};
    }
    if (const auto before = std::ranges::find(given_, product.src(2), &Given::product); before != given_.end()) {
      before->product = product;
      add(before->tile);
      return before->tile.sums;
    }
    const auto known = std::ranges::find(free_, core.n, &Tile::columns);
    Tile t = known == free_.end() ? new_tile(core.n) : *known;
    if (known != free_.end()) free_.erase(known);
    t.sums = {.expr = {names_.numbered("y")}, .dtype = core.out, .lanes = core.n};
    lines.push_back(fmt::format("{} {} = {};", prelude_.type(core.out, core.n), t.sums.expr.text, sums->expr.text));
    const bool is_new = is_zero(product.src(2));
    if (!is_new) {
      lines.push_back(memory_.write(t.column, t.sums));
      barrier_if_needed(lines);
    }
    lines.push_back(fmt::format("{} = {};", t.adds, is_new ? "false" : "true"));
    add(t);
    given_.push_back({product, t});
    return t.sums;
  }

  Lines wait() override {
    Lines lines{memory_.wait()};
    for (Given& g : given_) {
      lines.push_back(memory_.read(g.tile.column, g.tile.sums, g.tile.adds));
      free_.push_back(std::move(g.tile));
    }
    given_.clear();
    return lines;
  }

  Lines barrier() override { return {memory_.barrier()}; }
  void join() override { memory_.forget_barrier(); }

  void add_tile(const UOp& tile) override {
    const auto columns = int32_t(tile.arg_as<BufferArg>().size);
    Tile t = new_tile(columns);
    t.sums = {.expr = {names_.numbered("sums")}, .dtype = tile.dtype(), .lanes = columns};
    variables_ += fmt::format("  {} {};\n", prelude_.type(tile.dtype(), columns), t.sums.expr.text);
    tiles_[tile] = t;
  }
  Lines clear(const UOp& tile) override { return {fmt::format("{} = false;", tiles_.find(tile)->adds)}; }
  Value load(const UOp& tile, Lines& lines) override {
    const Tile& t = *tiles_.find(tile);
    lines.push_back(memory_.read(t.column, t.sums, t.adds));
    return t.sums;
  }

  void surround(KernelText& text, int64_t group_bytes) override {
    const std::string own = names_.fresh("own");
    text.arrays.push_back({"unsigned long", own, tensor_memory_group_bytes / 8, group_bytes});
    text.body = memory_.prologue(own) + variables_ + text.body + memory_.epilogue();
  }

 private:
  struct Tile {
    int32_t column = 0, columns = 0;
    Value sums = {};   ///< the variable that an item reads them to
    std::string adds;  ///< the variable that tells whether there is anything to add to
  };
  struct Given {
    UOp product;
    Tile tile;
  };

  Tile new_tile(int32_t columns) {
    Tile t{.column = memory_.add_tile(columns), .columns = columns, .adds = names_.numbered("adds")};
    variables_ += fmt::format("  bool {} = false;\n", t.adds);
    return t;
  }
  void barrier_if_needed(Lines& lines) {
    if (std::string needed = memory_.needed_barrier(); !needed.empty()) lines.push_back(std::move(needed));
  }

  Prelude& prelude_;
  Names& names_;
  TensorMemory memory_;
  NodeMap<Tile> tiles_;
  std::vector<Given> given_;  ///< products under way that were given sums, and the tiles for these
  std::vector<Tile> free_;    ///< tiles that such products do not use any more
  std::string variables_;
};

}  // namespace

std::unique_ptr<AsyncProducts> tensor_memory_products(Prelude& prelude, Names& names, const KernelInfo& info) {
  return std::make_unique<TensorMemoryProducts>(prelude, names, info);
}

}  // namespace tinygrad::renderer::cstyle
