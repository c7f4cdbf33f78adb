#include "renderer/ptx/tensor_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "renderer/nvidia_matrix.h"

namespace tinygrad::renderer::ptx {

TensorMemory::TensorMemory(Emitter& out, const KernelInfo& info)
    : out_(out),
      info_(info),
      item_(out.fresh(RegisterKind::bits32)),
      is_first_(out.fresh(RegisterKind::predicate)),
      is_first_warp_(out.fresh(RegisterKind::predicate)),
      starts_products_(out.fresh(RegisterKind::predicate)),
      base_(out.fresh(RegisterKind::bits32)),
      done_(out.fresh(RegisterKind::bits64)),
      phase_(out.fresh(RegisterKind::bits32)),
      lane_(out.fresh(RegisterKind::bits32)) {}

TensorTile TensorMemory::add_tile(int32_t columns) {
  TensorTile tile{.place = out_.fresh(RegisterKind::bits32),
                  .lanes = out_.fresh(RegisterKind::bits32),
                  .adds = out_.fresh(RegisterKind::predicate),
                  .columns = columns};
  tiles_ += fmt::format("  add.s32 {}, {}, {};\n  add.s32 {}, {}, {};\n  setp.ne.b32 {}, 0, 0;\n", tile.place, base_, used_, tile.lanes,
                        tile.place, lane_, tile.adds);
  used_ += columns;
  return tile;
}

void TensorMemory::clear(const TensorTile& tile) { out_.line(fmt::format("setp.ne.b32 {}, 0, 0;", tile.adds)); }

void TensorMemory::write(const TensorTile& tile, const std::vector<std::string>& sums) {
  if (needs_barrier_) barrier();
  out_.line(fmt::format("tcgen05.st.sync.aligned.32x32b.x{}.b32 [{}], {{{}}};", sums.size(), tile.lanes, fmt::join(sums, ", ")));
  out_.line("tcgen05.wait::st.sync.aligned;");
  out_.line(fmt::format("setp.eq.b32 {}, 0, 0;", tile.adds));
  needs_barrier_ = true;
}

void TensorMemory::read(const TensorTile& tile, DType dtype, const std::vector<std::string>& sums) {
  out_.line(fmt::format("tcgen05.ld.sync.aligned.32x32b.x{}.b32 {{{}}}, [{}];", sums.size(), fmt::join(sums, ", "), tile.lanes));
  out_.line("tcgen05.wait::ld.sync.aligned;");
  const std::string_view zero = dtype == DType::float32 ? "0f00000000" : "0", type = dtype == DType::float32 ? "f32" : "b32";
  for (const std::string& x : sums) out_.line(fmt::format("selp.{0} {1}, {1}, {2}, {3};", type, x, zero, tile.adds));
  needs_barrier_ = true;
}

void TensorMemory::begin_product(const TensorCore& core, const TensorTile& tile, std::string_view a, std::string_view b) {
  if (needs_barrier_) barrier();
  const std::string description = out_.constant(Scalar::from_int(tcgen05_description(core), DType::uint32));
  out_.line(fmt::format("@{} {}", starts_products_, tcgen05_instruction(core, tile.place, a, b, description, tile.adds)));
  out_.line(fmt::format("setp.eq.b32 {}, 0, 0;", tile.adds));
}

/// The barrier's phases are told apart by one bit, so nobody may be two of them ahead.
void TensorMemory::wait() {
  out_.line(fmt::format("@{} tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{}];", starts_products_, done_));
  const std::string again = out_.fresh_label("wait"), is_done = out_.fresh(RegisterKind::predicate);
  out_.label(again);
  out_.line(fmt::format("mbarrier.try_wait.parity.shared::cta.b64 {}, [{}], {};", is_done, done_, phase_));
  out_.line(fmt::format("@!{} bra {};", is_done, again));
  out_.line(fmt::format("xor.b32 {0}, {0}, 1;", phase_));
  out_.line("tcgen05.fence::after_thread_sync;");
  needs_barrier_ = true;
}

void TensorMemory::barrier() {
  out_.line("fence.proxy.async.shared::cta;");
  out_.line("tcgen05.fence::before_thread_sync;");
  out_.line("bar.sync 0;");
  out_.line("tcgen05.fence::after_thread_sync;");
  needs_barrier_ = false;
}

std::string TensorMemory::prologue(std::string_view shared) const {
  const int32_t parts = tensor_memory_parts(info_);
  std::string text;
  const auto line = [&](std::string_view format, const auto&... values) {
    text += "  " + fmt::format(fmt::runtime(format), values...) + ";\n";
  };
  line("mov.u32 {}, %tid.x", item_);
  const int64_t sizes[] = {info_.local[0].evaluate({}), info_.local[1].evaluate({}), info_.local[2].evaluate({})};
  for (int dim = 1; dim < 3; ++dim) {
    if (sizes[dim] == 1) continue;
    line("mov.u32 {}, %tid.{}", lane_, "xyz"[dim]);
    line("mad.lo.s32 {0}, {1}, {2}, {0}", item_, lane_, dim == 1 ? sizes[0] : sizes[0] * sizes[1]);
  }
  line("setp.eq.s32 {}, {}, 0", is_first_, item_);
  line("setp.lt.s32 {}, {}, 32", is_first_warp_, item_);
  line("@{} tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [{}], {}", is_first_warp_, shared, tensor_memory_columns(info_, used_));
  line("@{} tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned", is_first_warp_);
  for (int32_t part = 0; part < parts; ++part) line("@{} mbarrier.init.shared::cta.b64 [{}+{}], 1", is_first_, shared, 8 + 8 * part);
  line("@{} fence.mbarrier_init.release.cluster", is_first_);
  line("tcgen05.fence::before_thread_sync");
  line("bar.sync 0");
  line("tcgen05.fence::after_thread_sync");
  // Each 128 items have columns and a barrier of their own, and each warp of these 32 rows.
  line("ld.shared.b32 {}, [{}]", base_, shared);
  line("shr.s32 {}, {}, 7", lane_, item_);
  line("mad.lo.s32 {0}, {1}, {2}, {0}", base_, lane_, used_);
  line("mad.wide.s32 {}, {}, 8, {}", done_, lane_, shared);
  line("add.s64 {0}, {0}, 8", done_);
  line("and.b32 {}, {}, 127", lane_, item_);
  line("setp.eq.s32 {}, {}, 0", starts_products_, lane_);
  line("and.b32 {}, {}, 96", lane_, item_);
  line("shl.b32 {0}, {0}, 16", lane_);
  line("mov.b32 {}, 0", phase_);
  return text + tiles_;
}

std::string TensorMemory::epilogue() const {
  return fmt::format("  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n  @{} tcgen05.dealloc.cta_group::1.sync.aligned.b32 {}, {};\n",
                     is_first_warp_, base_, tensor_memory_columns(info_, used_));
}

}  // namespace tinygrad::renderer::ptx
