#include "renderer/cstyle/tensor_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "renderer/nvidia_matrix.h"

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

}  // namespace

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

}  // namespace tinygrad::renderer::cstyle
